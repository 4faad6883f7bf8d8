#compdef parley

# Sets the table of words. A row is a key, a tab, a word, a tab, and a description.
_parley_rows() {
  rows=(
ROWS
  )
}

# Adds the words of the rows with the key $1 to found, each with a colon and a description. A word in
# <> is another key, whose words are added, or a source of words, such as <files>, which is stored in source.
_parley_find() {
  local row tab=$'\t'
  for row in "${(@M)rows:#$1$tab*}"; do
    row=${row#*$tab}
    if [[ $row == \<* ]]; then
      source=${row[2,-2]}
      _parley_find "$source"
    else
      found+=("${row/$tab/:}")
    fi
  done
}

# Adds the values of the flag $1 to found. A row for a value of a shared flag has no command in its key.
_parley_values() {
  _parley_find "$called,$1"
  [[ -n $source || $#found -gt 0 ]] || _parley_find ",$1"
}

# Returns whether $1 is one of the words in found.
_parley_has() {
  local -a words=("${(@)found%%:*}")
  (( $words[(Ie)$1] ))
}

_parley() {
  local -a rows found
  local called= flag= source= word
  integer i position=0 is_over=0
  _parley_rows
  for ((i = 2; i < CURRENT; i++)); do
    word=${(Q)words[i]}
    found=()
    if [[ -n $flag ]]; then
      flag=
    elif (( is_over )) || [[ $word != -?* ]]; then
      _parley_find "$called,"
      if (( ! position )) && _parley_has "$word"; then
        called+=${called:+ }$word
      else
        (( ++position ))
      fi
    elif [[ $word == -- ]]; then
      is_over=1
    else
      _parley_find "$called,-"
      _parley_has "$word=" && flag=$word
    fi
  done
  found=()
  source=
  if [[ -n $flag ]]; then
    _parley_values "$flag"
  elif (( ! is_over )) && [[ $PREFIX == --*=* ]]; then
    flag=${PREFIX%%=*}
    compset -P 1 '*='
    _parley_values "$flag"
  elif (( ! is_over )) && [[ $PREFIX == -* ]]; then
    _parley_find "$called,-"
    found=("${(@)found/=:/:}")
    _describe -o flag found
    return
  else
    _parley_find "$called,$position"
  fi
  case $source in
    profiles) found=("${(@f)$(command parley config profiles 2>/dev/null </dev/null)}"); compadd -a found ;;
    files) _files ;;
    texts) compset -P 1 @ && _files ;;
    *) _describe word found ;;
  esac
}

# If this text is a file in the folder for completions, zsh runs it as the body of _parley at the
# first call.
if [[ $funcstack[1] == _parley ]]; then
  _parley "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _parley parley
fi
