# Prints the verdict summary of every step in a directory.
# Usage: summaries.sh FP8_OPT DIRECTORY
set -e
for step in "$2"/*.mlir; do
  name=$(basename "$step" .mlir)
  "$1" "$step" --fp8-import --fp8-quantize="recipe=tensorwise report=$2/$name.txt fail-on-fallback" -o /dev/null
  echo "$name: $(sed -n 's/^recipe tensorwise: //p' "$2/$name.txt")"
done
