// RUN: fp8-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected the operands of a linear layer's dot in FP8 but got activation and gradient of role forward}}
module attributes {a = #fp8.verdict<fp8, role = forward, category = linear, lhs = activation, rhs = gradient, batch = 1, m = 1, n = 1, k = 1, lhs_format = f8E5M2, rhs_format = f8E5M2, lhs_tile = tensor, rhs_tile = tensor, reason = "">} {}

// -----

// expected-error @+1 {{expected FP8 formats of an FP8 dot but got 'f32' and 'f8E5M2'}}
module attributes {a = #fp8.verdict<fp8, role = forward, category = linear, lhs = activation, rhs = weight, batch = 1, m = 1, n = 1, k = 1, lhs_format = f32, rhs_format = f8E5M2, lhs_tile = tensor, rhs_tile = tensor, reason = "">} {}

// -----

// expected-error @+1 {{expected tiles of FP8 dots, and of no other}}
module attributes {a = #fp8.verdict<fallback, role = other, category = other, batch = 1, m = 1, n = 1, k = 1, lhs_format = f32, rhs_format = f32, lhs_tile = row, rhs_tile = "1x128", reason = "">} {}

// -----

// expected-error @+1 {{expected current_scale of an FP8 dot that reads a weight}}
module attributes {a = #fp8.verdict<high_precision, role = other, category = other, batch = 1, m = 1, n = 1, k = 1, lhs_format = f32, rhs_format = f32, current_scale = true, reason = "">} {}

// -----

// expected-error @+1 {{expected sizes, rule and number to be 0 or more but got -4}}
module attributes {a = #fp8.verdict<high_precision, role = other, category = other, batch = 1, m = -4, n = 1, k = 1, lhs_format = f32, rhs_format = f32, reason = "">} {}

// -----

// expected-error @+1 {{expected notes to be strings but got [1]}}
module attributes {a = #fp8.verdict<high_precision, role = other, category = other, batch = 1, m = 4, n = 1, k = 1, lhs_format = f32, rhs_format = f32, reason = "", notes = [1]>} {}

// -----

// expected-error @+1 {{expected float types but got 'i32' and 'f16'}}
module attributes {a = #fp8.state_verdict<kind = "moment1", elements = 4, from = i32, to = f16, bytes = 8, reason = "">} {}

// -----

// expected-error @+1 {{expected elements and bytes to be 0 or more but got 4 and -8}}
module attributes {a = #fp8.state_verdict<kind = "moment1", elements = 4, from = f32, to = f16, bytes = -8, reason = "">} {}

// -----

// expected-error @+1 {{expected sizes to be 0 or more but got -3}}
module attributes {a = #fp8.softmax_verdict<stored, batch = 1, queries = -3, keys = 4, reason = "">} {}

// -----

// expected-error @+1 {{expected an obstacle of stored scores only}}
module attributes {a = #fp8.softmax_verdict<tiled, batch = 1, queries = 3, keys = 4, reason = "", obstacle = "f.py:1:1">} {}

// -----

// expected-error @+1 {{expected attribute 'fp8.softmax_verdict' to be a #fp8.softmax_verdict but got 1 : i64}}
memref.global "private" @g : memref<8xf32> {fp8.softmax_verdict = 1}
