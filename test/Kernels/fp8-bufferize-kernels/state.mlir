// RUN: fp8-opt %s --fp8-kernels --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// The new state goes into the state's own buffer, element by element.
// CHECK: fp8.schedule @main(%{{[^:]*}}: memref<0xi8>, %[[P:[^:]*]]: memref<64xf32> {fp8.path = "p"})
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[P]], write %[[P]])
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
// CHECK: fp8.schedule @main(%[[ARENA:[^:]*]]: memref<256xi8>, %[[P:[^:]*]]: memref<64xf32> {fp8.path = "p"})
// CHECK: %[[NEW:.*]] = memref.view %[[ARENA]]
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[P]], write %[[NEW]])
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[NEW]], write %[[P]]) label = "copy{{.*}}"
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
// CHECK: fp8.schedule @main(%{{.*}}, %[[A:[^:]*]]: memref<64xf32> {fp8.path = "a"}, %[[B:[^:]*]]: memref<64xf32> {fp8.path = "b"})
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[B]], write %[[OLDB:[^)]*]]) label = "copy{{.*}}"
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[A]], write %[[B]]) label = "copy{{.*}}"
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[OLDB]], write %[[A]]) label = "copy{{.*}}"
func.func @main(%a: tensor<64xf32> {fp8.path = "a"}, %b: tensor<64xf32> {fp8.path = "b"})
    -> (tensor<64xf32> {fp8.path = "r0", fp8.state = "a"}, tensor<64xf32> {fp8.path = "r1", fp8.state = "b"}) {
  return %b, %a : tensor<64xf32>, tensor<64xf32>
}
