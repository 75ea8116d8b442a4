// RUN: fp8-opt %s --split-input-file --verify-diagnostics

// The attribute is checked as strictly as a file.

// expected-error @+1 {{missing key 'name' in a recipe}}
module attributes {fp8.recipe = #fp8.recipe<{seed = 1}>} {}

// -----

// expected-error @+1 {{unknown key 'wieght' in 'forward'; did you mean 'weight'? valid keys: activation, weight, accumulator}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine, forward = {wieght = {format = f8E4M3FN}}}>} {}

// -----

// expected-error @+1 {{unknown value '2x2' of key 'tile'; valid values: tensor, row, 1x128, 128x128, 1x32}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine, forward = {activation = {format = f8E5M2, tile = "2x2"}}}>} {}

// -----

// expected-error @+1 {{expected the value of key 'seed' to be an integer from 0 to 9223372036854775807 but got '-1'}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine, seed = -1}>} {}

// -----

// expected-error @+1 {{duplicate key 'seed'}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine, seed = 1, seed = 2}>} {}

// -----

// expected-error @+1 {{expected the places of 1 rules but got 2}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine, rules = [{keep = {part = head}}]}, rules at ["a.yaml":1:1, "a.yaml":2:1]>} {}

// -----

// expected-error @+1 {{expected '{'}}
module attributes {fp8.recipe = #fp8.recipe<{name = }>} {}

// -----

// expected-error @+1 {{expected 'at'}}
module attributes {fp8.recipe = #fp8.recipe<{name = mine}, rules in []>} {}
