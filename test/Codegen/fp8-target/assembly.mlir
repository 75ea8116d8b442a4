// A dot of f8 with scales, a softmax and the update of a state compile for
// every CPU, whatever the machine that runs this test has.

// RUN: fp8-opt %s --fp8-kernels -o %t.mlir
// RUN: fp8-opt %t.mlir --fp8-target=cpu=x86-64-v2 --fp8-codegen --fp8-to-llvm | mlir-translate --mlir-to-llvmir --allow-unregistered-dialect | llc -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2 | FileCheck %s --check-prefix=V2
// RUN: fp8-opt %t.mlir --fp8-target=cpu=x86-64-v3 --fp8-codegen --fp8-to-llvm | mlir-translate --mlir-to-llvmir --allow-unregistered-dialect | llc -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3 | FileCheck %s --check-prefix=V3
// RUN: fp8-opt %t.mlir --fp8-target=cpu=x86-64-v4 --fp8-codegen --fp8-to-llvm | mlir-translate --mlir-to-llvmir --allow-unregistered-dialect | llc -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4 | FileCheck %s --check-prefix=V4
// RUN: fp8-opt %t.mlir --fp8-target=cpu=znver4 --fp8-codegen --fp8-to-llvm | mlir-translate --mlir-to-llvmir --allow-unregistered-dialect | llc -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 | FileCheck %s --check-prefix=BF16
// RUN: fp8-opt %t.mlir --fp8-target=cpu=sapphirerapids --fp8-codegen --fp8-to-llvm | mlir-translate --mlir-to-llvmir --allow-unregistered-dialect | llc -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids | FileCheck %s --check-prefix=AMX
// RUN: fp8-opt %t.mlir --fp8-target=cpu=neoverse-v2 --fp8-codegen --fp8-to-llvm | mlir-translate --mlir-to-llvmir --allow-unregistered-dialect | llc -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-v2 | FileCheck %s --check-prefix=ARM

// V2: mulps {{.*}}%xmm
// V3: vfmadd{{.*}}%ymm
// V4: vfmadd{{.*}}%zmm
// BF16: vdpbf16ps {{.*}}%zmm
// AMX: ldtilecfg
// AMX: tdpbf16ps {{.*}}%tmm
// AMX: tilerelease
// ARM: fmla v{{.*}}.4s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#s = affine_map<(i, j) -> ()>
func.func @main(%x: tensor<64x64xf8E4M3FN> {fp8.path = "x"}, %w: tensor<64x64xf8E4M3FN> {fp8.path = "w"}, %scale: tensor<f32> {fp8.path = "scale"},
                %state: tensor<64x64xf32> {fp8.path = "state"}) -> (tensor<64x64xf32> {fp8.path = "new", fp8.state = "state"}) {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %er = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>) outs(%f : tensor<64x64xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E4M3FN, %r: f32):
    %0 = arith.extf %p : f8E4M3FN to f32
    %1 = arith.extf %q : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %r, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x64xf32>
  %fm = linalg.fill ins(%ninf : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<64x64xf32>) outs(%fm : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.maximumf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %new = linalg.generic {indexing_maps = [#id, #row, #s, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d, %m, %scale, %state : tensor<64x64xf32>, tensor<64xf32>, tensor<f32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%p: f32, %q: f32, %t: f32, %u: f32, %o: f32):
    %0 = arith.subf %p, %q : f32
    %1 = arith.mulf %0, %t : f32
    %2 = math.exp %1 : f32
    %3 = arith.addf %u, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x64xf32>
  return %new : tensor<64x64xf32>
}
