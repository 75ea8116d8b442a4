// RUN: fp8-opt %s --verify-roundtrip | FileCheck %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --mlir-print-debuginfo | fp8-opt | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// CHECK: module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "-avx512bf16", vector_bits = 512>}
module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "znver4", features = "-avx512bf16", vector_bits = 512>} {
  // CHECK: fp8.kernel @elsewhere(read memref<8xf32>, write memref<8xf32>, update memref<f32>) domain = []
  fp8.kernel @elsewhere(read memref<8xf32>, write memref<8xf32>, update memref<f32>) domain = []
  fp8.kernel @negate(read memref<8xf32>, write memref<8xf32>) domain = []

  // CHECK: fp8.kernel @nothing() domain = [] plan = #fp8.cpu_plan<tile = []> {
  // CHECK-NEXT: fp8.return
  fp8.kernel @nothing() domain = [] plan = #fp8.cpu_plan<tile = []> {
    fp8.return
  }

  // CHECK: fp8.kernel @copy(read %{{.*}}: memref<8x16xf32>, write %{{.*}}: memref<8x16xf32>) domain = [8] plan = #fp8.cpu_plan<tile = [4]> copy attributes {fp8.slices = 2 : i64} {
  fp8.kernel @copy(read %x: memref<8x16xf32>, write %y: memref<8x16xf32>) domain = [8]
      plan = #fp8.cpu_plan<tile = [4]> copy attributes {fp8.slices = 2 : i64} {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<8x16xf32>) outs(%y : memref<8x16xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
    fp8.return
  }

  // CHECK: fp8.kernel @on_tensors(read %{{.*}}: tensor<4xf32>, update %[[Y:.*]]: tensor<4xf32>) -> tensor<4xf32> domain = [4] {
  // CHECK-NEXT: fp8.return %[[Y]] : tensor<4xf32>
  fp8.kernel @on_tensors(read %x: tensor<4xf32>, update %y: tensor<4xf32>) -> tensor<4xf32> domain = [4] {
    fp8.return %y : tensor<4xf32>
  }

  // CHECK: fp8.schedule @step(%[[ARENA:.*]]: memref<64xi8>, %[[X:.*]]: memref<8xf32> {fp8.path = "x"}, %[[Y:.*]]: memref<8xf32>, %[[S:.*]]: memref<f32> {fp8.output, fp8.path = "loss"}) arena_bytes = 64 attributes {fp8.entry = "store"} {
  fp8.schedule @step(%arena: memref<64xi8>, %x: memref<8xf32> {fp8.path = "x"}, %y: memref<8xf32>, %s: memref<f32> {fp8.output, fp8.path = "loss"})
      arena_bytes = 64 attributes {fp8.entry = "store"} {
    %c0 = arith.constant 0 : index
    // CHECK: %[[T:.*]] = memref.view %[[ARENA]]
    %t = memref.view %arena[%c0][] : memref<64xi8> to memref<8xf32>
    // CHECK: fp8.launch @elsewhere(read %[[X]], write %[[T]], update %[[S]]) label = "sum of x" number = 0 : (memref<8xf32>, memref<8xf32>, memref<f32>) -> ()
    fp8.launch @elsewhere(read %x, write %t, update %s) label = "sum of x" number = 0 : (memref<8xf32>, memref<8xf32>, memref<f32>) -> ()
    // CHECK: fp8.launch @negate(read %[[X]], write %[[T]])(read %[[X]], write %[[Y]]) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
    fp8.launch @negate(read %x, write %t)(read %x, write %y) number = 1 : (memref<8xf32>, memref<8xf32>) -> ()
    // CHECK: fp8.launch @nothing() : () -> ()
    fp8.launch @nothing() : () -> ()
    // CHECK: fp8.return
    fp8.return
  }

  // CHECK: func.func @tensors
  func.func @tensors(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: fp8.launch @on_tensors(read %{{.*}}, update %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %0 = fp8.launch @on_tensors(read %x, update %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
