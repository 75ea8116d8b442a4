// RUN: fp8-opt %s --fp8-kernels --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// The new state goes into the state's own buffer, element by element.
// CHECK: func.func @main(%{{[^:]*}}: memref<0xi8> {fp8.arena}, %[[P:[^:]*]]: memref<64xf32> {fp8.path = "p"})
// CHECK: call @kernel_0(%[[P]], %[[P]])
func.func @main(%p: tensor<64xf32> {fp8.path = "p"}) -> (tensor<64xf32> {fp8.path = "q", fp8.state = "p"}) {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>
#back = affine_map<(i) -> (63 - i)>

// Not so when an element is read after another one was written.
// CHECK: func.func @main(%[[ARENA:[^:]*]]: memref<256xi8> {fp8.arena}, %[[P:[^:]*]]: memref<64xf32> {fp8.path = "p"})
// CHECK: %[[NEW:.*]] = memref.view %[[ARENA]]
// CHECK: call @kernel_0(%[[P]], %[[NEW]])
// CHECK: call @copy_64_f32(%[[NEW]], %[[P]])
func.func @main(%p: tensor<64xf32> {fp8.path = "p"}) -> (tensor<64xf32> {fp8.path = "q", fp8.state = "p"}) {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#back, #id], iterator_types = ["parallel"]} ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// States that change places pass through a temporary.
// CHECK: func.func @main(%{{.*}}, %[[A:[^:]*]]: memref<64xf32> {fp8.path = "a"}, %[[B:[^:]*]]: memref<64xf32> {fp8.path = "b"})
// CHECK: call @copy_64_f32(%[[B]], %[[OLDB:[^)]*]])
// CHECK: call @copy_64_f32(%[[A]], %[[B]])
// CHECK: call @copy_64_f32(%[[OLDB]], %[[A]])
func.func @main(%a: tensor<64xf32> {fp8.path = "a"}, %b: tensor<64xf32> {fp8.path = "b"})
    -> (tensor<64xf32> {fp8.path = "r0", fp8.state = "a"}, tensor<64xf32> {fp8.path = "r1", fp8.state = "b"}) {
  return %b, %a : tensor<64xf32>, tensor<64xf32>
}
