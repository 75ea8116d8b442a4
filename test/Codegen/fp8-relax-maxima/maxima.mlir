// RUN: fp8-opt %s --pass-pipeline="builtin.module(fp8.kernel(fp8-relax-maxima))" | FileCheck %s

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// CHECK-LABEL: fp8.kernel @softmax
// CHECK: ^bb0(%[[X:.*]]: f32, %[[MAX:.*]]: f32):
// CHECK: arith.maximumf %[[X]], %[[MAX]] fastmath<nsz> : f32
fp8.kernel @softmax(read %x: memref<16x32xf32>, write %y: memref<16x32xf32>) domain = [16] {
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<16xf32>
  linalg.fill ins(%low : f32) outs(%max : memref<16xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<16x32xf32>) outs(%max : memref<16xf32>) {
  ^bb0(%a: f32, %m: f32):
    %larger = arith.maximumf %m, %a : f32
    linalg.yield %larger : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : memref<16x32xf32>, memref<16xf32>) outs(%y : memref<16x32xf32>) {
  ^bb0(%a: f32, %m: f32, %old: f32):
    %difference = arith.subf %a, %m : f32
    %e = math.exp %difference : f32
    linalg.yield %e : f32
  }
  fp8.return
}

// The quotient by a maximum depends on the sign of a zero.
// CHECK-LABEL: fp8.kernel @quotient
// CHECK: arith.maximumf %{{.*}}, %{{.*}} : f32
fp8.kernel @quotient(read %x: memref<16x32xf32>, write %y: memref<16x32xf32>) domain = [16] {
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<16xf32>
  linalg.fill ins(%low : f32) outs(%max : memref<16xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<16x32xf32>) outs(%max : memref<16xf32>) {
  ^bb0(%a: f32, %m: f32):
    %larger = arith.maximumf %m, %a : f32
    linalg.yield %larger : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : memref<16x32xf32>, memref<16xf32>) outs(%y : memref<16x32xf32>) {
  ^bb0(%a: f32, %m: f32, %old: f32):
    %difference = arith.subf %a, %m : f32
    %e = math.exp %difference : f32
    %q = arith.divf %e, %m : f32
    linalg.yield %q : f32
  }
  fp8.return
}

// So may whoever reads a result of the kernel.
// CHECK-LABEL: fp8.kernel @result
// CHECK: arith.maximumf %{{.*}}, %{{.*}} : f32
fp8.kernel @result(read %x: memref<16x32xf32>, write %max: memref<16xf32>) domain = [16] {
  %low = arith.constant 0xFF800000 : f32
  linalg.fill ins(%low : f32) outs(%max : memref<16xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<16x32xf32>) outs(%max : memref<16xf32>) {
  ^bb0(%a: f32, %m: f32):
    %larger = arith.maximumf %m, %a : f32
    linalg.yield %larger : f32
  }
  fp8.return
}
