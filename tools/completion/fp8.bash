# Completion for bash: what a program's own --help lists, so that it is never out
# of date. `cmake --install` puts it where bash-completion looks; else source it.

# The options of a program, one a line, those with a value with a `=`: what
# --help has at the depth of an option (2 columns) or of a pass (6).
_fp8_options() {
  "$1" --help 2>/dev/null | sed -nE 's/^(  |      )(--?[A-Za-z0-9][A-Za-z0-9_.-]*)(=| <)?.*/\2\3/p' | sed 's/ <$//'
}

# The values that --help lists below an option, and those that it has in the
# option's <A|B>.
_fp8_values() {
  "$1" --help 2>/dev/null | awk -v option="$2" '
    /^ +--?[A-Za-z0-9]/ {
      split($1, parts, "[=<]"); listed = parts[1] == option
      if (listed && match($0, /=<[^<> ]*\|[^<> ]*>/)) {
        count = split(substr($0, RSTART + 2, RLENGTH - 3), values, "|")
        for (i = 1; i <= count; ++i) print values[i]
      }
      next
    }
    listed && /^ +=/ { sub(/^=/, "", $1); print $1 }'
}

_fp8_complete() {
  local word=${COMP_WORDS[COMP_CWORD]} option=
  # `=` is a word of its own.
  if [[ $word == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]} word=
  elif ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_fp8_options "$1")" -- "$word")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return
  elif ((COMP_CWORD > 1)); then
    option=${COMP_WORDS[COMP_CWORD - 1]}
  fi
  COMPREPLY=()
  [[ $option == -* ]] && mapfile -t COMPREPLY < <(compgen -W "$(_fp8_values "$1" "$option")" -- "$word")
  # Anything else is a file.
  ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _fp8_complete fp8-opt fp8-run fp8-train fp8-reduce fp8-lsp-server
