// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=delayed set=seed=7 set=weight_copies=state" | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=delayed set=seed=7 set=weight_copies=state" | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=none print-recipe" -o /dev/null | FileCheck %s --check-prefix=PRINT
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=delayed" --emit-bytecode | fp8-opt | FileCheck %s --check-prefix=BYTECODE
// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=coat" --fp8-structure | FileCheck %s --check-prefix=DONE

// The effective recipe, defaults and all, is an attribute of the module. Rules
// remember where they are written.
// CHECK: module attributes {fp8.recipe = #fp8.recipe<{
// CHECK-SAME: compute = {logits_bytes = 16777216, saved = bf16, saved_gated = same, saved_norms = same, unquantized_dots = bf16}
// CHECK-SAME: dgrad = {accumulator = {bits = 32, promote = 0}, gradient = {algorithm = max, format = f8E5M2, history = 1024, initial = current, margin = 0, overflow = saturate, rounding = nearest_even, scale = exact, scaling = delayed, tile = tensor}
// CHECK-SAME: name = delayed
// CHECK-SAME: keep = []
// CHECK-SAME: rules = [{keep = {part = head}}]
// CHECK-SAME: seed = 7
// CHECK-SAME: smooth_swiglu = {granularity = none}
// CHECK-SAME: weight_copies = state
// CHECK-SAME: }, rules at ["recipes/delayed.yaml":{{[0-9]+}}:{{[0-9]+}}]>} {
// BYTECODE: fp8.recipe = #fp8.recipe<{{.*}}name = delayed

// PRINT: name: none
// PRINT: seed: 0

// No later stage quantizes.
// DONE-NOT: fp8.recipe
module {}
