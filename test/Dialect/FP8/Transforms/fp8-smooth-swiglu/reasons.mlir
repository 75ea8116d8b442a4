// RUN: fp8-opt %s --fp8-resolve-recipe="recipe=tensorwise set=smooth_swiglu.granularity=channel" --fp8-smooth-swiglu=emit-remarks \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// What looks like a gated unit but is none stays as it is, with the reason.
// CHECK-NOT: fp8.rescale

// Another factor: dropout, for example.
func.func @mask(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"},
    %mask: tensor<3x4xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s_s = stablehlo.logistic %a : tensor<3x4xf32>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf32>
  %p = stablehlo.multiply %s, %b : tensor<3x4xf32>
  %h = stablehlo.multiply %p, %mask : tensor<3x4xf32>
  // expected-remark @below {{left alone: the product reads something besides the results of two linear layers}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// Three branches.
func.func @three(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"},
    %third: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['third']"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %c = stablehlo.dot_general %x, %third, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s_s = stablehlo.logistic %a : tensor<3x4xf32>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf32>
  %p = stablehlo.multiply %s, %b : tensor<3x4xf32>
  %h = stablehlo.multiply %p, %c : tensor<3x4xf32>
  // expected-remark @below {{left alone: the product reads the results of 3 linear layers; expected two}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// Branches of two inputs.
func.func @inputs(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"},
    %x2: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x2, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s_s = stablehlo.logistic %a : tensor<3x4xf32>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf32>
  %h = stablehlo.multiply %s, %b : tensor<3x4xf32>
  // expected-remark @below {{left alone: its two linear layers have different inputs}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// An activation that is not known.
func.func @unknown(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s = stablehlo.cosine %a : tensor<3x4xf32>
  %h = stablehlo.multiply %s, %b : tensor<3x4xf32>
  // expected-remark @below {{left alone: the activation of the gate is none of silu, gelu, gelu_tanh, quick_gelu, relu, sigmoid and identity}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// A known one on both sides.
func.func @both(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s_s = stablehlo.logistic %a : tensor<3x4xf32>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf32>
  %t = stablehlo.tanh %b : tensor<3x4xf32>
  %h = stablehlo.multiply %s, %t : tensor<3x4xf32>
  // expected-remark @below {{left alone: the product is linear in neither of its two branches}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// No product of two results: nothing to report but that.
// expected-remark @below {{no gated unit: no linear layer reads the product of two others}}
func.func @plain(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %h_s = stablehlo.logistic %a : tensor<3x4xf32>
  %h = stablehlo.multiply %a, %h_s : tensor<3x4xf32>
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// The recipe keeps the dot in high precision (a head has no other layer behind
// it).
func.func @kept(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x2xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s_s = stablehlo.logistic %a : tensor<3x4xf32>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf32>
  %h = stablehlo.multiply %s, %b : tensor<3x4xf32>
  // expected-remark @below {{left alone: its product is not quantized: the dot stays in high precision}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// A constant factor.
func.func @factor(
    %gate: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf32> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf32> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf32> {fp8.role = "batch"}) -> tensor<3x3xf32> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %s_s = stablehlo.logistic %a : tensor<3x4xf32>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf32>
  %p = stablehlo.multiply %s, %b : tensor<3x4xf32>
  %thirty = stablehlo.constant dense<30.0> : tensor<3x4xf32>
  %h = stablehlo.multiply %thirty, %p : tensor<3x4xf32>
  // expected-remark @below {{left alone: the product has a constant factor besides silu of the gate and the linear branch}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

// Factors may take f16 out of its range.
func.func @f16(
    %gate: tensor<2x4xf16> {fp8.role = "frozen", fp8.path = "p['gate']"},
    %up: tensor<2x4xf16> {fp8.role = "frozen", fp8.path = "p['up']"},
    %down: tensor<4x2xf16> {fp8.role = "frozen", fp8.path = "p['down']"},
    %head: tensor<2x3xf16> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<3x2xf16> {fp8.role = "batch"}) -> tensor<3x3xf16> {
  %a = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0]
      : (tensor<3x2xf16>, tensor<2x4xf16>) -> tensor<3x4xf16>
  %b = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<3x2xf16>, tensor<2x4xf16>) -> tensor<3x4xf16>
  %s_s = stablehlo.logistic %a : tensor<3x4xf16>
  %s = stablehlo.multiply %a, %s_s : tensor<3x4xf16>
  %p = stablehlo.multiply %s, %b : tensor<3x4xf16>
  %one = stablehlo.constant dense<1.0> : tensor<3x4xf16>
  %h = stablehlo.multiply %p, %one : tensor<3x4xf16>
  // expected-remark @below {{left alone: it computes in f16, where smoothed weights may underflow}}
  %y = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
      : (tensor<3x4xf16>, tensor<4x2xf16>) -> tensor<3x2xf16>
  %z = stablehlo.dot_general %y, %head, contracting_dims = [1] x [0]
      : (tensor<3x2xf16>, tensor<2x3xf16>) -> tensor<3x3xf16>
  return %z : tensor<3x3xf16>
}
