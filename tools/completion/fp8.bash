# Completion for bash, from a program's own --help, so that it is never out of
# date. `cmake --install` puts it where bash-completion looks; else source it.

# Prints the options of a program, one per line, those with a value with a `=`:
# the lines of --help that are indented like options (2 columns) or passes (6).
_fp8_options() {
  "$1" --help 2>/dev/null | sed -nE 's/^(  |      )(--?[A-Za-z0-9][A-Za-z0-9_.-]*)(=| <)?.*/\2\3/p' | sed 's/ <$//'
}

# Prints the values that --help lists below an option, and those in the option's
# <A|B>.
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
  # Bash splits words at `=`.
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
  # Other words are files.
  ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _fp8_complete fp8-opt fp8-run fp8-train fp8-reduce fp8-lsp-server
