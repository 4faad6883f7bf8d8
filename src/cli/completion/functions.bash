# The words up to the cursor, in typed. bash has split them at = : and @ too: words without a blank between are one.
_parley_words() {
  local line=$COMP_LINE piece gap
  local -i i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    gap=${line%%[![:space:]]*}
    line=${line#"$gap"}
    line=${line#"$piece"}
    if [[ -n $gap || i -eq 0 ]]; then
      typed+=("$piece")
    else
      typed[${#typed[@]} - 1]+=$piece
    fi
  done
}

# Whether $1 is one of the words after it.
_parley_has() {
  local each wanted=$1
  shift
  for each; do
    [[ $each == "$wanted" ]] && return
  done
  return 1
}

# Completes to $1 and one of the values that begin like $2.
_parley_offer() {
  local each shown whole=$1$2 begun=$2 quote='' breaks='' tail
  if [[ $begun == [\'\"]* ]]; then
    quote=${begun:0:1}
    begun=${begun:1}
  fi
  for each in = : @; do
    [[ $COMP_WORDBREAKS == *"$each"* ]] && breaks+=$each
  done
  # bash replaces only what comes after the last of these, or from @ on.
  tail=$whole
  [[ -n $breaks ]] && tail=${whole##*[$breaks]}
  whole=${whole%"$tail"}
  whole=${whole%@}
  for each in "${values[@]}"; do
    case $quote$each in
      # These cannot be written within quotes of this kind.
      \'*\'* | \"*[\"\$\\\`\!]*) ;;
      [\'\"]"$begun"*) [[ -n $quote ]] && COMPREPLY+=("$each") ;;
    esac
    [[ -n $quote ]] && continue
    printf -v shown %q "$each"
    if [[ $shown == "$begun"* || $each == "$begun"* ]]; then
      shown=$1$shown
      COMPREPLY+=("${shown#"$whole"}")
    fi
  done
}

# The files that begin like $1, in values.
_parley_files() {
  local each
  for each in "${1//\\/}"*; do
    [[ -d $each ]] && each+=/
    [[ -e $each ]] && values+=("$each")
  done
  compopt -o nospace 2>/dev/null
}

# The sessions that were used last on this machine, in values.
_parley_sessions() {
  local each folder=${XDG_CACHE_HOME:-$HOME/.cache} LC_ALL=C
  [[ -z $XDG_CACHE_HOME && $OSTYPE == darwin* ]] && folder=$HOME/Library/Caches
  [[ -f $folder/parley/sessions ]] || return
  while IFS= read -r each; do
    [[ $each =~ ^[A-Za-z0-9_-]{1,128}$ ]] && values+=("$each")
  done <"$folder/parley/sessions"
  compopt -o nosort 2>/dev/null
}

_parley() {
  local -a typed=() names=() flags=() values=()
  local called='' flag='' source='' stem='' word redirection='^[0-9&]*[<>]+'
  local -i i position=0 isOver=0
  COMPREPLY=()
  _parley_words
  _parley_names "$called"
  for ((i = 1; i < ${#typed[@]} - 1; i++)); do
    word=${typed[i]}
    if [[ -n $flag ]]; then
      flag=''
    elif [[ $word =~ $redirection ]]; then
      [[ $word == *[\<\>] ]] && flag=file
    elif ((isOver)) || [[ $word != -?* ]]; then
      if ((!position)) && _parley_has "$word" "${names[@]}"; then
        called+=${called:+ }$word
        _parley_names "$called"
      else
        position+=1
      fi
    elif [[ $word == -- ]]; then
      isOver=1
    else
      _parley_flags "$called"
      _parley_has "$word=" "${flags[@]}" && flag=$word
    fi
  done
  word=${typed[i]}
  _parley_flags "$called"
  if [[ $flag == file || $word =~ $redirection ]]; then
    source=files
  elif [[ -n $flag ]]; then
    _parley_values "$called" "$flag"
  elif ((!isOver)) && [[ $word == --*=* ]]; then
    flag=${word%%=*}
    _parley_has "$flag=" "${flags[@]}" || return
    _parley_values "$called" "$flag"
    stem=$flag=
    word=${word#*=}
  elif ((!isOver)) && [[ $word == -* ]]; then
    values=("${flags[@]%=}")
  elif ((!position && ${#names[@]})); then
    values=("${names[@]}")
  else
    _parley_values "$called" "$position"
  fi
  case $source in
    profiles)
      while IFS= read -r flag; do
        values+=("$flag")
      done <<<"$(command parley config profiles 2>/dev/null </dev/null)"
      ;;
    sessions) _parley_sessions ;;
    texts)
      [[ $word == @* ]] || return
      stem+=@
      word=${word#@}
      _parley_files "$word"
      ;;
    files)
      # bash itself does it better, where it takes the name for a word.
      if [[ -z $stem || $COMP_WORDBREAKS == *=* ]]; then
        compopt -o default 2>/dev/null
      else
        _parley_files "$word"
      fi
      ;;
  esac
  _parley_offer "$stem" "$word"
}

complete -F _parley parley
