# Completes the words of parley. Requires bash 4.2 or later.

# Sets the table of words. A row is a key, a tab, a word, a tab, and a description.
_parley_rows() {
  rows=(
ROWS
  )
}

# Adds the words of the rows with the key $1 to found. A word in <> is another key, whose words
# are added, or a source of words, such as <files>, which is stored in source.
_parley_find() {
  local row
  for row in "${rows[@]}"; do
    [[ $row == "$1"$'\t'* ]] || continue
    row=${row#"$1"$'\t'}
    row=${row%%$'\t'*}
    if [[ $row == \<* ]]; then
      source=${row:1:-1}
      _parley_find "$source"
    else
      found+=("$row")
    fi
  done
}

# Adds the values of the flag $1 to found. A row for a value of a shared flag has no command in its key.
_parley_values() {
  _parley_find "$called,$1"
  [[ -n $source || ${#found[@]} -gt 0 ]] || _parley_find ",$1"
}

# Sets typed to the words up to the cursor. bash also splits words at = : and @, so this function
# joins pieces without a blank between them.
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

# Returns whether $1 is one of the other arguments.
_parley_has() {
  local each wanted=$1
  shift
  for each; do
    [[ $each == "$wanted" ]] && return
  done
  return 1
}

# Offers the words in found that begin with $2, each with the prefix $1.
_parley_offer() {
  local each shown whole=$1$2 begun=$2 quote='' breaks='' tail
  if [[ $begun == [\'\"]* ]]; then
    quote=${begun:0:1}
    begun=${begun:1}
  fi
  for each in = : @; do
    [[ $COMP_WORDBREAKS == *"$each"* ]] && breaks+=$each
  done
  # bash replaces only the text after the last = or : or @ (for @, including the @).
  tail=$whole
  [[ -n $breaks ]] && tail=${whole##*[$breaks]}
  whole=${whole%"$tail"}
  whole=${whole%@}
  for each in "${found[@]}"; do
    case $quote$each in
      # These words cannot be written within this kind of quotes.
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

# Adds the files that begin with $1 to found.
_parley_files() {
  local each
  for each in "${1//\\/}"*; do
    [[ -d $each ]] && each+=/
    [[ -e $each ]] && found+=("$each")
  done
  compopt -o nospace 2>/dev/null
}

_parley() {
  local -a typed=() rows=() found=()
  local called='' flag='' source='' stem='' word redirection='^[0-9&]*[<>]+'
  local -i i position=0 isOver=0
  COMPREPLY=()
  _parley_words
  _parley_rows
  for ((i = 1; i < ${#typed[@]} - 1; i++)); do
    word=${typed[i]}
    found=()
    if [[ -n $flag ]]; then
      flag=''
    elif [[ $word =~ $redirection ]]; then
      [[ $word == *[\<\>] ]] && flag=file
    elif ((isOver)) || [[ $word != -?* ]]; then
      _parley_find "$called,"
      if ((!position)) && _parley_has "$word" "${found[@]}"; then
        called+=${called:+ }$word
      else
        position+=1
      fi
    elif [[ $word == -- ]]; then
      isOver=1
    else
      _parley_find "$called,-"
      _parley_has "$word=" "${found[@]}" && flag=$word
    fi
  done
  word=${typed[i]}
  found=()
  source=''
  if [[ $flag == file || $word =~ $redirection ]]; then
    source=files
  elif [[ -n $flag ]]; then
    _parley_values "$flag"
  elif ((!isOver)) && [[ $word == --*=* ]]; then
    stem=${word%%=*}=
    word=${word#*=}
    _parley_values "${stem%=}"
  elif ((!isOver)) && [[ $word == -* ]]; then
    _parley_find "$called,-"
    found=("${found[@]%=}")
  else
    _parley_find "$called,$position"
  fi
  case $source in
    profiles)
      while IFS= read -r flag; do
        found+=("$flag")
      done <<<"$(command parley config profiles 2>/dev/null </dev/null)"
      ;;
    texts)
      [[ $word == @* ]] || return
      stem+=@
      word=${word#@}
      _parley_files "$word"
      ;;
    files)
      # bash itself completes file names better, but only if the name is a whole word for bash.
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
