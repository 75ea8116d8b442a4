# What bash would offer: the completion's functions are called as it calls them.
source "$1"
cd "$(dirname "$1")" || exit 1

offer() { # program, words...
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _fp8_complete "$1" 2>/dev/null
}

for program in fp8-opt fp8-run fp8-train fp8-reduce fp8-lsp-server; do
  offer $program --
  # (Another way to read the same text.)
  expected=$($program --help | python3 -c '
import re, sys
for line in sys.stdin:
    found = re.match(r"(?:  |      )(--[\w.-]+)(=?)", line)
    if found and found[1] != "--":
        print(found[1] + found[2])' | sort -u)
  got=$(printf '%s\n' "${COMPREPLY[@]}" | sort -u)
  if [ "$got" = "$expected" ]; then
    echo "$program: $(wc -l <<<"$got") options, all of them"
  else
    echo "$program: other options:"
    diff <(echo "$expected") <(echo "$got")
  fi
done
for words in "fp8-run --check" "fp8-run --res" "fp8-opt --fp8-report-c" "fp8-run --export-format = f8" \
  "fp8-run --export-format " "fp8-lsp-server --log = v" "fp8-run fp8.b" "fp8-run --init fp8.b" "fp8-run --quux"; do
  IFS=' ' read -ra list <<<"$words"
  [[ $words == *' ' ]] && list+=("")
  offer "${list[@]}"
  echo "$words: ${COMPREPLY[*]}"
done
