# Whether $1 is a name or flag of the words after it, each of which ends with a colon and what it is about.
_parley_has() {
  local wanted=$1
  shift
  local -a found=("${(@)argv%%:*}")
  (( $found[(Ie)$wanted] ))
}

# The sessions that were used last on this machine, in values.
_parley_sessions() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}
  [[ -z $XDG_CACHE_HOME && $OSTYPE == darwin* ]] && folder=$HOME/Library/Caches
  [[ -f $folder/parley/sessions ]] || return 0
  values=("${(@f)$(<$folder/parley/sessions)}")
  values=("${(@)values:#*[^A-Za-z0-9_-]*}")
}

_parley() {
  local -a names flags values shown
  local called= flag= source= word
  integer i position=0 is_over=0
  _parley_names "$called"
  for ((i = 2; i < CURRENT; i++)); do
    word=${(Q)words[i]}
    if [[ -n $flag ]]; then
      flag=
    elif (( is_over )) || [[ $word != -?* ]]; then
      if (( ! position )) && _parley_has "$word" "$names[@]"; then
        called+=${called:+ }$word
        _parley_names "$called"
      else
        (( ++position ))
      fi
    elif [[ $word == -- ]]; then
      is_over=1
    else
      _parley_flags "$called"
      _parley_has "$word=" "$flags[@]" && flag=$word
    fi
  done
  _parley_flags "$called"
  if [[ -n $flag ]]; then
    _parley_values "$called" "$flag"
  elif (( ! is_over )) && [[ $PREFIX == --*=* ]]; then
    flag=${PREFIX%%=*}
    _parley_has "$flag=" "$flags[@]" || return 1
    compset -P 1 '*='
    _parley_values "$called" "$flag"
  elif (( ! is_over )) && [[ $PREFIX == -* ]]; then
    shown=("${(@)flags/=:/:}")
    _describe -o flag shown
    return
  elif (( ! position && $#names )); then
    _describe command names
    return
  else
    _parley_values "$called" "$position"
  fi
  case $source in
    profiles) values=("${(@f)$(command parley config profiles 2>/dev/null </dev/null)}") ;;
    sessions) _parley_sessions; compadd -V sessions -a values; return ;;
    files) _files; return ;;
    texts) compset -P 1 @ && _files; return ;;
  esac
  (( $#values )) && compadd -a values
}

# A file of this in a folder for completions is itself the function, when it is first called.
if [[ $funcstack[1] == _parley ]]; then
  _parley "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _parley parley
fi
