// RUN: fp8-opt %s --fp8-decide --verify-diagnostics --split-input-file

// expected-error @+1 {{expected #fp8.recipe in 'fp8.recipe' but got none; run fp8-resolve-recipe first}}
module {}

// -----

// expected-error @+1 {{expected attribute 'fp8.recipe' to be a #fp8.recipe but got "tensorwise"}}
module attributes {fp8.recipe = "tensorwise"} {}
