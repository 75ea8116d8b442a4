// Kernels that write FP8 payloads in the orders that dots read agree with the
// CPU's, in the emulator: both orders of a weight, a gradient and an activation
// with batches, payloads behind sums of rows and of columns, the payload of a
// dot's own result, columns that are no multiple of a word, and a payload that
// the step itself transposes. All dots
// read both operands along k, by cp.async.
// RUN: fp8-opt --fp8-import=kind=function --fp8-quantize=recipe=none --fp8-structure --fp8-kernels=layouts=along-k %s -o %t.mlir
// RUN: FileCheck %s --check-prefix=ORDERS < %t.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-gpu-codegen %t.mlir | FileCheck %s --check-prefix=CODE
// RUN: fp8-check-gpu-kernels --chip=sm_90a --seeds=2 %t.mlir | FileCheck %s
// RUN: fp8-check-gpu-kernels --chip=sm_89 --quiet %t.mlir | FileCheck %s

// ORDERS-DAG: write %{{.*}}: memref<80x48xf8E4M3FN>, write %{{.*}}: memref<48x80xf8E4M3FN>)
// ORDERS-DAG: write %{{.*}}: memref<4x24x80xf8E4M3FN>, write %{{.*}}: memref<80x4x24xf8E4M3FN>)
// ORDERS-DAG: write %{{.*}}: memref<4x24x48xf8E5M2>, write %{{.*}}: memref<48x4x24xf8E5M2>)
// ORDERS-DAG: write %{{.*}}: memref<200x112xf8E4M3FN>) domain = [112]
// ORDERS-DAG: write %{{.*}}: memref<40x144xf8E4M3FN>) domain = [40]
// ORDERS-DAG: read %{{.*}}: memref<96x32xf8E4M3FN>, write %{{.*}}: memref<64x96xf8E4M3FN>, write %{{.*}}: memref<96x64xf8E4M3FN>)
// ORDERS-DAG: write %{{.*}}: memref<38x48xf8E4M3FN>)

// No operand of a dot comes through registers.
// CODE-NOT: vector.load {{.*}}xf8E{{[^ ,]*}}>,
// CODE: nvgpu.device_async_copy
// CODE-NOT: vector.load {{.*}}xf8E{{[^ ,]*}}>,

// CHECK-NOT: FAIL
// CHECK: kernels, 0 failed

func.func @main(%x: tensor<4x24x80xf32>, %dy: tensor<4x24x48xf32>, %w: tensor<80x48xf32>,
                %r: tensor<112x200xf32>, %c: tensor<144x40xf32>,
                %a: tensor<64x32xf8E4M3FN>, %b: tensor<96x32xf8E4M3FN>,
                %o: tensor<48x38xf32>, %g: tensor<32x3x48xf32>,
                %p: tensor<16x112xf8E4M3FN>, %q: tensor<16x144xf8E4M3FN>, %s: tensor<16x64xf8E4M3FN>,
                %t: tensor<16x96xf8E4M3FN>, %u: tensor<16x48xf8E4M3FN>, %v: tensor<16x32xf8E4M3FN>, %z: tensor<16x144xf8E4M3FN>)
    -> (tensor<4x24x48xf32>, tensor<4x24x80xf32>, tensor<80x48xf32>, tensor<16x200xf32>, tensor<16x40xf32>,
        tensor<16x96xf32>, tensor<16x64xf32>, tensor<16x38xf32>, tensor<16x3x48xf32>, tensor<16x32xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // A linear layer, forward and backward.
  %fx = stablehlo.convert %x : (tensor<4x24x80xf32>) -> tensor<4x24x80xf8E4M3FN>
  %fw = stablehlo.convert %w : (tensor<80x48xf32>) -> tensor<80x48xf8E4M3FN>
  %fdy = stablehlo.convert %dy : (tensor<4x24x48xf32>) -> tensor<4x24x48xf8E5M2>
  %y = stablehlo.dot_general %fx, %fw, contracting_dims = [2] x [0]
      : (tensor<4x24x80xf8E4M3FN>, tensor<80x48xf8E4M3FN>) -> tensor<4x24x48xf32>
  %dx = stablehlo.dot_general %fdy, %fw, contracting_dims = [2] x [1]
      : (tensor<4x24x48xf8E5M2>, tensor<80x48xf8E4M3FN>) -> tensor<4x24x80xf32>
  %dw = stablehlo.dot_general %fx, %fdy, contracting_dims = [0, 1] x [0, 1]
      : (tensor<4x24x80xf8E4M3FN>, tensor<4x24x48xf8E5M2>) -> tensor<80x48xf32>
  // Rows and columns divided by their sums.
  %sr = stablehlo.reduce(%r init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<112x200xf32>, tensor<f32>) -> tensor<112xf32>
  %br = stablehlo.broadcast_in_dim %sr, dims = [0] : (tensor<112xf32>) -> tensor<112x200xf32>
  %nr = stablehlo.divide %r, %br : tensor<112x200xf32>
  %fr = stablehlo.convert %nr : (tensor<112x200xf32>) -> tensor<112x200xf8E4M3FN>
  %yr = stablehlo.dot_general %p, %fr, contracting_dims = [1] x [0]
      : (tensor<16x112xf8E4M3FN>, tensor<112x200xf8E4M3FN>) -> tensor<16x200xf32>
  %sc = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<144x40xf32>, tensor<f32>) -> tensor<40xf32>
  %bc = stablehlo.broadcast_in_dim %sc, dims = [1] : (tensor<40xf32>) -> tensor<144x40xf32>
  %nc = stablehlo.divide %c, %bc : tensor<144x40xf32>
  %fc = stablehlo.convert %nc : (tensor<144x40xf32>) -> tensor<144x40xf8E4M3FN>
  %yc = stablehlo.dot_general %q, %fc, contracting_dims = [1] x [0]
      : (tensor<16x144xf8E4M3FN>, tensor<144x40xf8E4M3FN>) -> tensor<16x40xf32>
  // The result of a dot, in both orders.
  %ab = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1]
      : (tensor<64x32xf8E4M3FN>, tensor<96x32xf8E4M3FN>) -> tensor<64x96xf32>
  %fab = stablehlo.convert %ab : (tensor<64x96xf32>) -> tensor<64x96xf8E4M3FN>
  %y1 = stablehlo.dot_general %s, %fab, contracting_dims = [1] x [0]
      : (tensor<16x64xf8E4M3FN>, tensor<64x96xf8E4M3FN>) -> tensor<16x96xf32>
  %y2 = stablehlo.dot_general %t, %fab, contracting_dims = [1] x [1]
      : (tensor<16x96xf8E4M3FN>, tensor<64x96xf8E4M3FN>) -> tensor<16x64xf32>
  // Columns that are no multiple of a word.
  %fo = stablehlo.convert %o : (tensor<48x38xf32>) -> tensor<48x38xf8E4M3FN>
  %yo = stablehlo.dot_general %u, %fo, contracting_dims = [1] x [0]
      : (tensor<16x48xf8E4M3FN>, tensor<48x38xf8E4M3FN>) -> tensor<16x38xf32>
  // A payload that is computed across the lines of what it is computed from.
  %gt = stablehlo.transpose %g, dims = [1, 2, 0] : (tensor<32x3x48xf32>) -> tensor<3x48x32xf32>
  %e = stablehlo.exponential %gt : tensor<3x48x32xf32>
  %fg = stablehlo.convert %e : (tensor<3x48x32xf32>) -> tensor<3x48x32xf8E5M2>
  %y3 = stablehlo.dot_general %v, %fg, contracting_dims = [1] x [2]
      : (tensor<16x32xf8E4M3FN>, tensor<3x48x32xf8E5M2>) -> tensor<16x3x48xf32>
  %fr2 = stablehlo.reshape %z : (tensor<16x144xf8E4M3FN>) -> tensor<16x3x48xf8E4M3FN>
  %y4 = stablehlo.dot_general %fr2, %fg, contracting_dims = [1, 2] x [0, 1]
      : (tensor<16x3x48xf8E4M3FN>, tensor<3x48x32xf8E5M2>) -> tensor<16x32xf32>
  return %y, %dx, %dw, %yr, %yc, %y1, %y2, %yo, %y3, %y4 : tensor<4x24x48xf32>, tensor<4x24x80xf32>, tensor<80x48xf32>, tensor<16x200xf32>, tensor<16x40xf32>,
      tensor<16x96xf32>, tensor<16x64xf32>, tensor<16x38xf32>, tensor<16x3x48xf32>, tensor<16x32xf32>
}
