// RUN: fp8-opt %s --fp8-fuse-elementwise --fp8-form-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels | FileCheck %s --check-prefix=PLAN
// RUN: fp8-opt %s --fp8-kernels --fp8-codegen | FileCheck %s --check-prefix=LOOPS
// RUN: fp8-opt %s --fp8-kernels --fp8-codegen --fp8-to-llvm | FileCheck %s --check-prefix=LLVM

// A dot, the softmax of its rows and the partials of the result's amax are one
// kernel over rows; the amax itself and its use need all rows and are another.
// CHECK: func.func @main
// CHECK: call @kernel_0
// CHECK: call @kernel_1
// CHECK-NOT: call
// CHECK: func.func private @kernel_0
// CHECK-SAME: fp8.domain = array<i64: 256>, fp8.tile = array<i64: 128>
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: math.exp
// CHECK: math.absf
// CHECK: func.func private @kernel_1

// The state argument is updated in place, only the partials are in the arena.
// PLAN: func.func @main(%[[ARENA:.*]]: memref<1024xi8> {fp8.arena}, %[[X:.*]]: memref<256x64xf32> {{.*}}, %[[W:[^:]*]]: memref<64x128xf32>
// PLAN: %[[PARTIALS:.*]] = memref.view %[[ARENA]]
// PLAN: call @kernel_0(%[[X]], %[[W]], %{{.*}}, %[[PARTIALS]])
// PLAN: call @kernel_1(%[[PARTIALS]], %[[W]], %{{.*}}, %[[W]])

// LOOPS: scf.for {{.*}} {
// LOOPS: func.call @kernel_0
// LOOPS: func.func private @kernel_0(%{{.*}}: index, %{{.*}}: memref<{{.*}}xi8>
// LOOPS-SAME: fp8.tasks = 2
// LOOPS: vector.store {{.*}} vector<{{16|64}}xf32>

// LLVM: llvm.mlir.global internal constant @operands_1(dense<[0, -2, -4, -2]>
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
