// RUN: fp8-opt %s --fp8-fuse-elementwise --fp8-form-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels | FileCheck %s --check-prefix=PLAN
// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v4 --fp8-codegen | FileCheck %s --check-prefix=LOOPS
// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v4 --fp8-codegen --fp8-to-llvm | FileCheck %s --check-prefix=LLVM

// A dot, the softmax of its rows and the partials of the result's amax are one
// kernel over rows; the amax itself and its use need all rows and are another.
// CHECK: func.func @main
// CHECK: fp8.launch @kernel_0(read %{{.*}}, read %{{.*}}, write %{{.*}}, write %{{.*}}) label = "dot_softmax_amax
// CHECK: fp8.launch @kernel_1({{.*}}label = "max
// CHECK-NOT: fp8.launch
// CHECK: fp8.kernel @kernel_0
// CHECK-SAME: domain = [256]
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: math.exp
// CHECK: math.absf
// CHECK: fp8.kernel @kernel_1

// The state argument is updated in place, only the partials are in the arena.
// PLAN: fp8.schedule @main(%[[ARENA:.*]]: memref<1024xi8>, %[[X:.*]]: memref<256x64xf32> {{.*}}, %[[W:[^:]*]]: memref<64x128xf32>
// PLAN: %[[PARTIALS:.*]] = memref.view %[[ARENA]]
// PLAN: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[X]], read %[[W]], write %{{.*}}, write %[[PARTIALS]]){{.*}}number = 0
// PLAN: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[PARTIALS]], read %[[W]], write %{{.*}}, write %[[W]]){{.*}}number = 1

// LOOPS: fp8.launch @kernel_
// LOOPS: func.func private @kernel_{{[0-9a-f]+}}(%{{.*}}: index, %{{.*}}: memref<{{.*}}xi8>
// LOOPS-SAME: fp8.tasks = 2
// LOOPS: vector.store {{.*}} vector<64xf32>

// LLVM: llvm.mlir.global internal constant @fp8_entry_operands_1(dense<[0, -2, -4, -2]>
// LLVM: llvm.call @fp8_launch
// LLVM: llvm.call @fp8_launch

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#s = affine_map<(i, j) -> ()>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<256x64xf32> {fp8.path = "x"}, %w: tensor<64x128xf32> {fp8.path = "w"}) -> (tensor<256x128xf32> {fp8.path = "y"}, tensor<f32> {fp8.path = "amax"}, tensor<64x128xf32> {fp8.path = "w2", fp8.state = "w"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %d = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<256x64xf32>, tensor<64x128xf32>) outs(%f : tensor<256x128xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %r, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<256x128xf32>
  // softmax over j
  %er = tensor.empty() : tensor<256xf32>
  %ninf = arith.constant 0xFF800000 : f32
  %fm = linalg.fill ins(%ninf : f32) outs(%er : tensor<256xf32>) -> tensor<256xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<256x128xf32>) outs(%fm : tensor<256xf32>) {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.maximumf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<256xf32>
  %ex = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %m : tensor<256x128xf32>, tensor<256xf32>) outs(%e : tensor<256x128xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.subf %p, %q : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<256x128xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%er : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%ex : tensor<256x128xf32>) outs(%fs : tensor<256xf32>) {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<256xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%ex, %sum : tensor<256x128xf32>, tensor<256xf32>) outs(%e : tensor<256x128xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.divf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<256x128xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %am = linalg.generic {indexing_maps = [#id, #s], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<256x128xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%p: f32, %q: f32):
    %2 = math.absf %p : f32
    %0 = arith.maximumf %2, %q : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %ew = tensor.empty() : tensor<64x128xf32>
  %w2 = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %am : tensor<64x128xf32>, tensor<f32>) outs(%ew : tensor<64x128xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64x128xf32>
  return %y, %am, %w2 : tensor<256x128xf32>, tensor<f32>, tensor<64x128xf32>
}
