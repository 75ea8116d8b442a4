# Usage: every-recipe.sh FP8_OPT RECIPES DIR: DIR/step.mlir, stage by stage, with
# each recipe of a folder.
set -euo pipefail
opt=$1 recipes=$2 dir=$3
number=0
for file in "$recipes"/*.yaml; do
  recipe=$(basename "$file" .yaml)
  "$opt" "$dir/step.mlir" --fp8-import -o "$dir/1.mlir"
  "$opt" "$dir/1.mlir" --fp8-quantize="recipe=$recipe" -o "$dir/2.mlir"
  "$opt" "$dir/2.mlir" --fp8-structure -o "$dir/3.mlir"
  "$opt" "$dir/3.mlir" --fp8-kernels -o "$dir/4.mlir"
  "$opt" "$dir/4.mlir" --fp8-codegen -o "$dir/5.mlir"
  "$opt" "$dir/5.mlir" --fp8-to-llvm -o "$dir/6.mlir"
  echo "$recipe: $(grep -c 'llvm.func @fp8_entry' "$dir/6.mlir") schedules"
  number=$((number + 1))
done
echo "$number recipes"
