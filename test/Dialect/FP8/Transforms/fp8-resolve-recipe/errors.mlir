// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-resolve-recipe

// expected-error @+1 {{expected no 'fp8.recipe' but got one: the module's ops may follow it already}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine}>} {}
