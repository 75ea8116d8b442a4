// RUN: fp8-opt %s --fp8-batch-launches | FileCheck %s


// The kernels: an amax, a scale, a history and a quantization.
fp8.kernel @amax(read %x: memref<65536xf32>, write %y: memref<f32>) domain = []
fp8.kernel @scale(read %a: memref<f32>, write %s: memref<f32>) domain = []
fp8.kernel @history(read %a: memref<f32>, update %h: memref<16xf32>) domain = []
fp8.kernel @quantize(read %x: memref<65536xf32>, read %s: memref<f32>, write %q: memref<65536xi8>) domain = []

// Histories wait until the end, in which nobody needs them, and are one launch. An amax that only reads an argument and
// a scale move up to the first of their kind. What is as large as a payload stays where it was.
// CHECK-LABEL: fp8.schedule @layers
// CHECK-SAME: (%[[W0:.*]]: memref<65536xf32>, %[[W1:.*]]: memref<65536xf32>, %[[H0:.*]]: memref<16xf32>, %[[H1:.*]]: memref<16xf32>)
// CHECK: %[[A0:.*]] = memref.alloc() : memref<f32>
// CHECK: %[[A1:.*]] = memref.alloc() : memref<f32>
// CHECK: fp8.launch @amax(read %[[W0]], write %[[A0]])(read %[[W1]], write %[[A1]]) label = "amax w[0] and 1 more" : (memref<65536xf32>, memref<f32>) -> ()
// CHECK: fp8.launch @scale(read %[[A0]], write %[[S0:.*]])(read %[[A1]], write %[[S1:.*]]) : (memref<f32>, memref<f32>) -> ()
// CHECK: fp8.launch @quantize(read %[[W0]], read %[[S0]], write %[[Q:.*]]) :
// CHECK-NEXT: fp8.launch @quantize(read %[[W1]], read %[[S1]], write %[[Q]]) :
// CHECK-NEXT: fp8.launch @history(read %[[A0]], update %[[H0]])(read %[[A1]], update %[[H1]]) : (memref<f32>, memref<16xf32>) -> ()
// CHECK-NEXT: fp8.return
fp8.schedule @layers(%w0: memref<65536xf32>, %w1: memref<65536xf32>, %h0: memref<16xf32>, %h1: memref<16xf32>) {
  %q = memref.alloc() : memref<65536xi8>
  %a0 = memref.alloc() : memref<f32>
  %s0 = memref.alloc() : memref<f32>
  fp8.launch @amax(read %w0, write %a0) label = "amax w[0]" : (memref<65536xf32>, memref<f32>) -> ()
  fp8.launch @history(read %a0, update %h0) : (memref<f32>, memref<16xf32>) -> ()
  fp8.launch @scale(read %a0, write %s0) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @quantize(read %w0, read %s0, write %q) : (memref<65536xf32>, memref<f32>, memref<65536xi8>) -> ()
  %a1 = memref.alloc() : memref<f32>
  %s1 = memref.alloc() : memref<f32>
  fp8.launch @amax(read %w1, write %a1) label = "amax w[1]" : (memref<65536xf32>, memref<f32>) -> ()
  fp8.launch @history(read %a1, update %h1) : (memref<f32>, memref<16xf32>) -> ()
  fp8.launch @scale(read %a1, write %s1) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @quantize(read %w1, read %s1, write %q) : (memref<65536xf32>, memref<f32>, memref<65536xi8>) -> ()
  fp8.return
}

// Each launch needs what the one before it has written, so none is the partner of another.
// CHECK-LABEL: fp8.schedule @chain
// CHECK-COUNT-3: fp8.launch @scale(read %{{[^)]*}}) :
// CHECK-NEXT: fp8.return
fp8.schedule @chain(%x: memref<f32>, %y: memref<f32>) {
  fp8.launch @scale(read %x, write %y) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @scale(read %y, write %x) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @scale(read %x, write %y) : (memref<f32>, memref<f32>) -> ()
  fp8.return
}

// A launch that overwrites what another one reads comes after it, and not in the same launch.
// CHECK-LABEL: fp8.schedule @overwrites
// CHECK: fp8.launch @scale(read %arg0, write %arg1)(read %arg0, write %arg3)
// CHECK-NEXT: fp8.launch @scale(read %arg2, write %arg0)
// CHECK-NEXT: fp8.return
fp8.schedule @overwrites(%x: memref<f32>, %y: memref<f32>, %z: memref<f32>, %w: memref<f32>) {
  fp8.launch @scale(read %x, write %y) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @scale(read %x, write %w) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @scale(read %z, write %x) : (memref<f32>, memref<f32>) -> ()
  fp8.return
}

// The chains of two tensors become one launch for each of their kernels, however they are interleaved. A view moves in
// front of the launch that moves up to the other one.
// CHECK-LABEL: fp8.schedule @chains
// CHECK: fp8.launch @scale(read %arg0, write %[[A:.*]])(read %arg1, write %[[B:.*]]) :
// CHECK: %[[V:.*]] = memref.collapse_shape %arg3
// CHECK: fp8.launch @history(read %[[A]], update %arg2)(read %[[B]], update %[[V]]) :
// CHECK-NOT: fp8.launch
// CHECK: fp8.return
fp8.schedule @chains(%x: memref<f32>, %y: memref<f32>, %h: memref<16xf32>, %g: memref<1x16xf32>) {
  %a = memref.alloc() : memref<f32>
  fp8.launch @scale(read %x, write %a) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @history(read %a, update %h) : (memref<f32>, memref<16xf32>) -> ()
  %b = memref.alloc() : memref<f32>
  %v = memref.collapse_shape %g [[0, 1]] : memref<1x16xf32> into memref<16xf32>
  fp8.launch @scale(read %y, write %b) : (memref<f32>, memref<f32>) -> ()
  fp8.launch @history(read %b, update %v) : (memref<f32>, memref<16xf32>) -> ()
  fp8.return
}

// Launches that only some ranks run stay as they are, and so do dots.
// CHECK-LABEL: fp8.schedule @alone
// CHECK: fp8.launch @scale(read %arg0, write %arg1) {fp8.shard = 1 : i64}
// CHECK-NEXT: fp8.launch @scale(read %arg2, write %arg3) {fp8.shard = 1 : i64}
// CHECK-NEXT: fp8.launch @dot(read %arg4, update %arg5) :
// CHECK-NEXT: fp8.launch @dot(read %arg4, update %arg6) :
fp8.schedule @alone(%a: memref<f32>, %b: memref<f32> {fp8.shard = 1 : i64}, %c: memref<f32>, %d: memref<f32> {fp8.shard = 1 : i64},
    %x: memref<8x8xf32>, %y: memref<8x8xf32>, %z: memref<8x8xf32>) {
  fp8.launch @scale(read %a, write %b) {fp8.shard = 1 : i64} : (memref<f32>, memref<f32>) -> ()
  fp8.launch @scale(read %c, write %d) {fp8.shard = 1 : i64} : (memref<f32>, memref<f32>) -> ()
  fp8.launch @dot(read %x, update %y) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
  fp8.launch @dot(read %x, update %z) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
  fp8.return
}
fp8.kernel @dot(read %x: memref<8x8xf32>, update %y: memref<8x8xf32>) domain = [8] {
  linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }
  fp8.return
}
