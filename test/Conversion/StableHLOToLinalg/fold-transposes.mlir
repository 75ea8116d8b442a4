// RUN: fp8-opt %s --fp8-fold-transposes --split-input-file | FileCheck %s

// CHECK: func.func @wgrad(%[[X:.*]]: tensor<8x4xf32>, %[[D:.*]]: tensor<8x2xf32>)
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot_general %[[X]], %[[D]], contracting_dims = [0] x [0]
// CHECK-NEXT: return %[[R]]
func.func @wgrad(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0] : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// The fp8 dot too; two rows of loops move as one.
// CHECK: func.func @fp8
// CHECK-SAME: %[[A:.*]]: !fp8.scaled<8x4xf8E5M2, {{.*}}>, %[[B:.*]]: !fp8.scaled<8x2x3xf8E4M3FN, {{.*}}>)
// CHECK-NEXT: fp8.dot_general %[[B]], %[[A]], contracting_dims = [0] x [0]
// CHECK-SAME: -> tensor<2x3x4xf32>
// CHECK-NOT: transpose
func.func @fp8(%a: !fp8.scaled<8x4xf8E5M2, tile = [*, *], scale = f32>,
               %b: !fp8.scaled<8x2x3xf8E4M3FN, tile = [*, *, *], scale = f32>) -> tensor<2x3x4xf32> {
  %0 = fp8.dot_general %a, %b, batching_dims = [] x [], contracting_dims = [0] x [0] {accumulator = f32}
    : (!fp8.scaled<8x4xf8E5M2, tile = [*, *], scale = f32>, !fp8.scaled<8x2x3xf8E4M3FN, tile = [*, *, *], scale = f32>) -> tensor<4x2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// CHECK: func.func @operand(%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8x2xf32>)
// CHECK-NEXT: stablehlo.dot_general %[[X]], %[[Y]], contracting_dims = [1] x [0]
// CHECK-NOT: transpose
func.func @operand(%x: tensor<4x8xf32>, %y: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.dot_general %0, %y, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// The factors of channels follow their dimension.
// CHECK: func.func @rescaled(%[[X:.*]]: tensor<8x4xf32>, %[[D:.*]]: tensor<8x2xf32>, %[[F:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[R:.*]] = stablehlo.dot_general %[[X]], %[[D]], contracting_dims = [0] x [0]
// CHECK-NEXT: %[[S:.*]] = fp8.rescale %[[R]], %[[F]] dims = [0] : tensor<4x2xf32>, tensor<4xf32>
// CHECK-NEXT: return %[[S]]
func.func @rescaled(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>, %f: tensor<4xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0] : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = fp8.rescale %0, %f dims = [1] : tensor<2x4xf32>, tensor<4xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// -----

// Something else reads the rescaled dot.
// CHECK: func.func @rescaled_stays
// CHECK: %[[S:.*]] = fp8.rescale
// CHECK: stablehlo.transpose %[[S]]
func.func @rescaled_stays(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>, %f: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>) {
  %0 = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0] : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = fp8.rescale %0, %f dims = [1] : tensor<2x4xf32>, tensor<4xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %1, %2 : tensor<2x4xf32>, tensor<4x2xf32>
}

// -----

// Something else reads the dot, or rows and columns mix: it stays.
// CHECK: func.func @stays
// CHECK: stablehlo.transpose
// CHECK: stablehlo.transpose
func.func @stays(%x: tensor<8x4xf32>, %y: tensor<8x2xf32>, %z: tensor<8x2x3xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x4x3xf32>) {
  %0 = stablehlo.dot_general %y, %x, contracting_dims = [0] x [0] : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %2 = stablehlo.dot_general %x, %z, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x2x3xf32>) -> tensor<4x2x3xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  return %0, %1, %3 : tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x4x3xf32>
}

// -----

// An operand of an attention: its transpose folds into the dots in the body, and a conversion stays.
// CHECK: func.func @attention(%[[Q:.*]]: tensor<16x8xbf16>, %[[V:.*]]: tensor<16x8xf32>)
// CHECK: %[[NARROW:.*]] = stablehlo.convert %[[V]] : (tensor<16x8xf32>) -> tensor<16x8xbf16>
// CHECK: fp8.attention %[[Q]], %[[NARROW]]
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<16x8xbf16>, %[[B:.*]]: tensor<16x8xbf16>):
// CHECK-NEXT: %[[S:.*]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1] x [1]
// CHECK-NEXT: %[[O:.*]] = stablehlo.dot_general %[[S]], %[[B]], contracting_dims = [1] x [0]
// CHECK-NEXT: fp8.yield %[[O]]
func.func @attention(%q: tensor<16x8xbf16>, %v: tensor<16x8xf32>) -> tensor<16x8xbf16> {
  %t = stablehlo.transpose %v, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %c = stablehlo.convert %t : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  %0 = fp8.attention %q, %c : (tensor<16x8xbf16>, tensor<8x16xbf16>) -> tensor<16x8xbf16> {
  ^bb0(%a: tensor<16x8xbf16>, %b: tensor<8x16xbf16>):
    %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x8xbf16>, tensor<8x16xbf16>) -> tensor<16x16xbf16>
    %o = stablehlo.dot_general %s, %b, contracting_dims = [1] x [1] : (tensor<16x16xbf16>, tensor<8x16xbf16>) -> tensor<16x8xbf16>
    fp8.yield %o : tensor<16x8xbf16>
  }
  return %0 : tensor<16x8xbf16>
}

// -----

// Not only dots read this operand, and something else reads that transpose.
// CHECK: func.func @attention_stays
// CHECK-COUNT-2: stablehlo.transpose
// CHECK: fp8.attention_backward
// CHECK-NOT: transpose
func.func @attention_stays(%q: tensor<16x8xf32>, %v: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<8x16xf32>) {
  %s = stablehlo.transpose %q, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %t = stablehlo.transpose %v, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %0 = fp8.attention_backward %s, %t : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32> {
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>):
    %n = stablehlo.negate %a : tensor<8x16xf32>
    %d = stablehlo.dot_general %n, %b, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %o = stablehlo.dot_general %d, %b, contracting_dims = [1] x [1] : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
    fp8.yield %o : tensor<16x8xf32>
  }
  return %0, %t : tensor<16x8xf32>, tensor<8x16xf32>
}

// A convolution's kernel whose features have moved to the end stays so: the dot
// reads them as vectors.
// CHECK-LABEL: func @windows(
// CHECK: %[[W:.*]] = stablehlo.transpose %arg1
// CHECK: stablehlo.dot_general %{{.*}}, %[[W]], contracting_dims = [2, 3] x [1, 2]
func.func @windows(%x: tensor<2x8x16xf32>, %w: tensor<4x16x3xf32>) -> tensor<2x6x4xf32> {
  %t = stablehlo.transpose %w, dims = [0, 2, 1] : (tensor<4x16x3xf32>) -> tensor<4x3x16xf32>
  %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
      low = [0] high = [0] interior = [0] reversed = [false] : tensor<2x8x16xf32> -> tensor<2x6x3x16xf32>
  %1 = stablehlo.dot_general %0, %t, contracting_dims = [2, 3] x [1, 2] : (tensor<2x6x3x16xf32>, tensor<4x3x16xf32>) -> tensor<2x6x4xf32>
  return %1 : tensor<2x6x4xf32>
}

// -----

// A conversion between a transpose and a dot reads what is transposed.
// CHECK-LABEL: func @converted(
// CHECK: %[[NARROW:.*]] = stablehlo.convert %arg0 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
// CHECK: stablehlo.dot_general %arg1, %[[NARROW]], contracting_dims = [1] x [1] : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xf32>
// CHECK-NOT: stablehlo.transpose
func.func @converted(%x: tensor<8x4xf32>, %w: tensor<2x4xbf16>) -> tensor<2x8xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %n = stablehlo.convert %t : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %0 = stablehlo.dot_general %w, %n, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x8xbf16>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
