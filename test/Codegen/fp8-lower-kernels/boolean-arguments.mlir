// RUN: fp8-opt %s --fp8-kernels --fp8-target=cpu=x86-64-v3 --fp8-plan-tiles --fp8-lower-kernels | FileCheck %s

#id = affine_map<(i) -> (i)>

// Booleans are bytes at the boundary of the schedule too.
// CHECK: fp8.schedule @main({{.*}}memref<64xi8>{{.*}}memref<64xi8>
func.func @main(%p: tensor<64xi1>) -> tensor<64xi1> {
  %e = tensor.empty() : tensor<64xi1>
  %true = arith.constant true
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<64xi1>) outs(%e : tensor<64xi1>) {
  ^bb0(%a: i1, %o: i1):
    %n = arith.xori %a, %true : i1
    linalg.yield %n : i1
  } -> tensor<64xi1>
  return %0 : tensor<64xi1>
}
