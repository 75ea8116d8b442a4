// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-quantize-dots --fp8-compute-types --fp8-drop-verdicts --cse | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-resolve-recipe=recipe=tensorwise --fp8-decide --fp8-report-verdicts=file=- -o /dev/null 2>&1 | tr -s " " | FileCheck %s --check-prefix=TABLE

// What stands between a parameter and its dot does not hide it.

// A reshaped weight of attention's output: the payload is reshaped, the tensor
// is not quantized again for the dot that reads it as it is.

// CHECK-LABEL: @reshaped
// CHECK-SAME: %[[WO:[a-z0-9]+]]: tensor<32x16xf32>
// CHECK: %[[S:.*]] = fp8.quantize %[[WO]]
// CHECK-NEXT: %[[P:.*]], %[[SCALE:.*]] = fp8.unpack %[[S]]
// CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %[[P]] : (tensor<32x16xf8E4M3FN>) -> tensor<4x8x16xf8E4M3FN>
// CHECK-NEXT: %[[RS:.*]] = fp8.pack %[[R]], %[[SCALE]] : !fp8.scaled<4x8x16xf8E4M3FN, tile = [*, *, *], scale = f32>
// CHECK-NOT: fp8.quantize %[[WO]]
// CHECK: fp8.dot_general %{{.*}}, %[[RS]], contracting_dims = [1, 2] x [0, 1]
// CHECK: fp8.dot_general %{{.*}}, %[[S]], contracting_dims = [1] x [0]
// TABLE: fp8 forward p['wo']
// TABLE-NEXT: fp8 forward p['wo']
// TABLE-NEXT: high_precision forward p['head']
func.func @reshaped(
    %wo: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['wo']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x4x8xf32> {fp8.role = "batch", fp8.path = "x"},
    %z: tensor<6x32xf32> {fp8.role = "batch", fp8.path = "z"}) -> tensor<6x8xf32> {
  %w = stablehlo.reshape %wo : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1, 2] x [0, 1]
      : (tensor<6x4x8xf32>, tensor<4x8x16xf32>) -> tensor<6x16xf32>
  %1 = stablehlo.dot_general %z, %wo, contracting_dims = [1] x [0]
      : (tensor<6x32xf32>, tensor<32x16xf32>) -> tensor<6x16xf32>
  %2 = stablehlo.add %0, %1 : tensor<6x16xf32>
  %3 = stablehlo.dot_general %2, %head, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}

// -----

// A transposed weight: the dot reads the payload as it lies.

// CHECK-LABEL: @transposed
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<16x16xf32>
// CHECK: %[[S:.*]] = fp8.quantize %[[W]]
// CHECK-NOT: stablehlo.transpose
// CHECK: fp8.dot_general %{{.*}}, %[[S]], contracting_dims = [1] x [1]
// CHECK-NOT: stablehlo.transpose
// CHECK: fp8.dot_general %{{.*}}, %[[S]], contracting_dims = [1] x [0]
func.func @transposed(
    %w: tensor<16x16xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<6x8xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %0 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  %2 = stablehlo.dot_general %1, %head, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}

// -----

// Slices of one weight (fused query, key and value; layers stacked for a scan)
// are weights of their own, each with its own scale.

// CHECK-LABEL: @fused
// CHECK: %[[A:.*]] = stablehlo.slice
// CHECK: fp8.amax %[[A]] : tensor<16x16xf32>
// CHECK: %[[B:.*]] = stablehlo.slice
// CHECK: fp8.amax %[[B]] : tensor<16x16xf32>
// CHECK: fp8.dot_general
// CHECK: fp8.dot_general
// TABLE: fp8 forward p['wkv']
// TABLE-NEXT: fp8 forward p['wkv']
func.func @fused(
    %w: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['wkv']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<6x8xf32> {
  %a = stablehlo.slice %w [0:16, 0:16] : (tensor<16x32xf32>) -> tensor<16x16xf32>
  %b = stablehlo.slice %w [0:16, 16:32] : (tensor<16x32xf32>) -> tensor<16x16xf32>
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  %1 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<6x16xf32>
  %3 = stablehlo.dot_general %2, %head, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}

// -----

// The weight on the left, as an einsum may put it, and in bf16.

// CHECK-LABEL: @swapped_bf16
// CHECK: %[[W:.*]] = stablehlo.convert
// CHECK: %[[S:.*]] = fp8.quantize %[[W]], {{.*}} : tensor<16x32xbf16> -> !fp8.scaled<16x32xf8E4M3FN
// CHECK: fp8.dot_general %[[S]], %{{.*}}, contracting_dims = [1] x [1]
// CHECK-SAME: -> tensor<16x6xbf16>
func.func @swapped_bf16(
    %w: tensor<16x32xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x32xbf16> {fp8.role = "batch", fp8.path = "x"}) -> tensor<6x8xf32> {
  %wb = stablehlo.convert %w : (tensor<16x32xf32>) -> tensor<16x32xbf16>
  %0 = stablehlo.dot_general %wb, %x, contracting_dims = [1] x [1]
      : (tensor<16x32xbf16>, tensor<6x32xbf16>) -> tensor<16x6xbf16>
  %1 = stablehlo.convert %0 : (tensor<16x6xbf16>) -> tensor<16x6xf32>
  %2 = stablehlo.dot_general %1, %head, contracting_dims = [0] x [0]
      : (tensor<16x6xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}

// -----

// Tied embeddings: the lookup by a one-hot dot is no linear layer, the head
// is the head.

// CHECK-LABEL: @tied
// CHECK-NOT: fp8.quantize
// TABLE: high_precision embedding p['emb'] {{.*}} embedding lookup by a one-hot operand
// TABLE-NEXT: high_precision forward p['emb'] {{.*}} head: no other layer reads
func.func @tied(
    %emb: tensor<32x16xf32> {fp8.role = "frozen", fp8.path = "p['emb']"},
    %tokens: tensor<6xi32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<6x32xf32> {
  %iota = stablehlo.iota dim = 1 : tensor<6x32xi32>
  %ids = stablehlo.broadcast_in_dim %tokens, dims = [0] : (tensor<6xi32>) -> tensor<6x32xi32>
  %eq = stablehlo.compare EQ, %ids, %iota, SIGNED : (tensor<6x32xi32>, tensor<6x32xi32>) -> tensor<6x32xi1>
  %onehot = stablehlo.convert %eq : (tensor<6x32xi1>) -> tensor<6x32xf32>
  %0 = stablehlo.dot_general %onehot, %emb, contracting_dims = [1] x [0]
      : (tensor<6x32xf32>, tensor<32x16xf32>) -> tensor<6x16xf32>
  %1 = stablehlo.tanh %0 : tensor<6x16xf32>
  %2 = stablehlo.dot_general %1, %emb, contracting_dims = [1] x [1]
      : (tensor<6x16xf32>, tensor<32x16xf32>) -> tensor<6x32xf32>
  return %2 : tensor<6x32xf32>
}

// -----

// Rematerialization: the backward pass computes the activation again behind a
// barrier. It is still the activation of the layer, and the weight is quantized
// once for both sides of the barrier.

// CHECK-LABEL: @remat
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<16x16xf32>
// CHECK: %[[WS:.*]] = fp8.quantize %[[W]]
// CHECK: fp8.dot_general %{{.*}}, %[[WS]], contracting_dims = [1] x [0]
// CHECK: stablehlo.optimization_barrier
// CHECK: fp8.dot_general {{.*}} contracting_dims = [0] x [0] {{.*}}xf8E5M2
// CHECK: fp8.dot_general %{{.*}}, %[[WS]], contracting_dims = [1] x [1] {{.*}}xf8E5M2
// TABLE: fp8 forward p['w']
// TABLE-NEXT: high_precision forward p['head']
// TABLE-NEXT: high_precision dgrad p['head']
// TABLE-NEXT: fp8 wgrad p['w']
// TABLE-NEXT: fp8 dgrad p['w']
func.func @remat(
    %w: tensor<16x16xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['w']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<6x16xf32> {fp8.role = "batch", fp8.path = "x"})
    -> (tensor<16x16xf32> {fp8.state = "p['w']"}, tensor<f32> {fp8.kind = "loss"}, tensor<6x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.tanh %x : tensor<6x16xf32>
  %h = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  %y = stablehlo.dot_general %h, %head, contracting_dims = [1] x [0]
      : (tensor<6x16xf32>, tensor<16x8xf32>) -> tensor<6x8xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<6x8xf32>, tensor<f32>) -> tensor<f32>
  %dh = stablehlo.dot_general %y, %head, contracting_dims = [1] x [1]
      : (tensor<6x8xf32>, tensor<16x8xf32>) -> tensor<6x16xf32>
  %b:3 = stablehlo.optimization_barrier %x, %w, %dh : tensor<6x16xf32>, tensor<16x16xf32>, tensor<6x16xf32>
  %a2 = stablehlo.tanh %b#0 : tensor<6x16xf32>
  %dw = stablehlo.dot_general %a2, %b#2, contracting_dims = [0] x [0]
      : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<16x16xf32>
  %dx = stablehlo.dot_general %b#2, %b#1, contracting_dims = [1] x [1]
      : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
  %w_new = stablehlo.subtract %w, %dw : tensor<16x16xf32>
  return %w_new, %loss, %dx : tensor<16x16xf32>, tensor<f32>, tensor<6x16xf32>
}

// -----

// An image cut into patches: rows of the image are in both of the dimensions
// that its layer contracts and keeps, and the weight's gradient is found.

// CHECK-LABEL: @patches
// CHECK-COUNT-3: fp8.dot_general
// TABLE: fp8 forward p['patch']
// TABLE-NEXT: fp8 forward p['w']
// TABLE: fp8 wgrad p['patch']
func.func @patches(
    %patch: tensor<16x8xf32> {fp8.role = "state", fp8.kind = "parameter", fp8.path = "p['patch']"},
    %w: tensor<8x8xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %head: tensor<8x4xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %image: tensor<2x16x16xf32> {fp8.role = "batch", fp8.path = "image"},
    %g: tensor<2x16x8xf32> {fp8.role = "batch", fp8.path = "g"})
    -> (tensor<f32> {fp8.path = "loss", fp8.kind = "loss"}, tensor<16x8xf32> {fp8.path = "new", fp8.state = "p['patch']"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %image : (tensor<2x16x16xf32>) -> tensor<2x4x4x4x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 1, 3, 2, 4] : (tensor<2x4x4x4x4xf32>) -> tensor<2x4x4x4x4xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x4x4x4x4xf32>) -> tensor<2x16x16xf32>
  %3 = stablehlo.dot_general %2, %patch, contracting_dims = [2] x [0]
      : (tensor<2x16x16xf32>, tensor<16x8xf32>) -> tensor<2x16x8xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [2] x [0]
      : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
  %5 = stablehlo.dot_general %4, %head, contracting_dims = [2] x [0]
      : (tensor<2x16x8xf32>, tensor<8x4xf32>) -> tensor<2x16x4xf32>
  %loss = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [0, 1, 2]
      : (tensor<2x16x4xf32>, tensor<f32>) -> tensor<f32>
  %6 = stablehlo.dot_general %g, %2, contracting_dims = [0, 1] x [0, 1]
      : (tensor<2x16x8xf32>, tensor<2x16x16xf32>) -> tensor<8x16xf32>
  %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %8 = stablehlo.subtract %patch, %7 : tensor<16x8xf32>
  return %loss, %8 : tensor<f32>, tensor<16x8xf32>
}

// -----

// Windows of an image: the image is quantized once, for all dots that read it or
// windows of it, and the zeros around it are those of its payload.

// CHECK-LABEL: @windows
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8x16xf32>
// CHECK: %[[S:.*]] = fp8.quantize %[[X]]
// CHECK-NOT: fp8.quantize %[[X]]
// CHECK: %[[P:.*]], %[[SCALE:.*]] = fp8.unpack %[[S]]
// CHECK: %[[W:.*]] = fp8.windows %[[P]] dims = [1] {{.*}} : tensor<2x8x16xf8E4M3FN> -> tensor<2x8x3x16xf8E4M3FN>
// CHECK: %[[WS:.*]] = fp8.pack %[[W]], %[[SCALE]]
// CHECK: fp8.dot_general %[[WS]], %{{.*}}, contracting_dims = [2, 3] x [0, 1]
// CHECK: fp8.dot_general %[[S]], %{{.*}}, contracting_dims = [2] x [0]
// TABLE: fp8 forward p['w']
// TABLE-NEXT: fp8 forward p['skip']
func.func @windows(
    %w: tensor<3x16x16xf32> {fp8.role = "frozen", fp8.path = "p['w']"},
    %skip: tensor<16x16xf32> {fp8.role = "frozen", fp8.path = "p['skip']"},
    %head: tensor<16x8xf32> {fp8.role = "frozen", fp8.path = "p['head']"},
    %x: tensor<2x8x16xf32> {fp8.role = "batch", fp8.path = "x"}) -> tensor<2x8x8xf32> {
  %windows = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
      low = [1] high = [1] interior = [0] reversed = [false] : tensor<2x8x16xf32> -> tensor<2x8x3x16xf32>
  %0 = stablehlo.dot_general %windows, %w, contracting_dims = [2, 3] x [0, 1]
      : (tensor<2x8x3x16xf32>, tensor<3x16x16xf32>) -> tensor<2x8x16xf32>
  %1 = stablehlo.dot_general %x, %skip, contracting_dims = [2] x [0]
      : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x8x16xf32>
  %3 = stablehlo.dot_general %2, %head, contracting_dims = [2] x [0]
      : (tensor<2x8x16xf32>, tensor<16x8xf32>) -> tensor<2x8x8xf32>
  return %3 : tensor<2x8x8xf32>
}
