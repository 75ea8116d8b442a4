// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels | FileCheck %s

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#s3 = affine_map<(q, k, d) -> (q, k)>
#p = affine_map<(q, d, k) -> (q, k)>
#c = affine_map<(q, k) -> (k)>
#v = affine_map<(q, d, k) -> (k, d)>
#o = affine_map<(q, d, k) -> (q, d)>
#s = affine_map<(q, k) -> (q, k)>
#r = affine_map<(q, k) -> (q)>

// Tiles that see the first 64 keys have code of their own. All others run over
// 192 keys from a multiple of 16 on, and so do the loops over their scores,
// which hold no other keys.
// CHECK-LABEL: func.func private @window
// CHECK-SAME: (%[[TASK:.*]]: index
// CHECK: memref.view {{.*}} to memref<64x192xf32>
// CHECK: %[[SEEN:.*]] = arith.addi %[[QUERY:.*]], %c64
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[SEEN]], %c64
// CHECK: scf.if %[[FEW]]
// CHECK: else
// CHECK: %[[BEFORE:.*]] = arith.addi %[[QUERY]], %c-99
// CHECK: %[[KEY:.*]] = arith.maxsi %[[BEFORE]], %c0
// CHECK: %[[STEP:.*]] = arith.divui %[[KEY]], %c16
// CHECK: %[[BEGIN:.*]] = arith.muli %[[STEP]], %c16
// CHECK: %[[FIRST:.*]] = arith.minsi %[[BEGIN]], %c320
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c192{{.*}} step %c16
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[I]], %[[FIRST]]
// CHECK: %[[OWN:.*]] = arith.subi %[[AT]], %[[FIRST]]
// CHECK: vector.load %{{.*}}[%{{.*}}, %[[OWN]]] : memref<64x192xf32>
fp8.kernel @window(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = [64, 192]> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %low = arith.constant -1.0e+30 : f32
  %s = memref.alloc() : memref<512x512xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<512x512xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<512x64xf32>, memref<512x64xf32>) outs(%s : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  %m = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<512x512xf32>) outs(%m : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %causal = arith.cmpi sge, %q, %k : index
    %distance = arith.subi %q, %k : index
    %size = arith.constant 100 : index
    %near = arith.cmpi slt, %distance, %size : index
    %seen = arith.andi %causal, %near : i1
    %t = arith.select %seen, %x, %low : f32
    linalg.yield %t : f32
  }
  %max = memref.alloc() : memref<512xf32>
  linalg.fill ins(%inf : f32) outs(%max : memref<512xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%m : memref<512x512xf32>) outs(%max : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  }
  %e = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%m, %max : memref<512x512xf32>, memref<512xf32>) outs(%e : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.subf %x, %z : f32
    %u = math.exp %t : f32
    linalg.yield %u : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512x64xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e, %b : memref<512x512xf32>, memref<512x64xf32>) outs(%y : memref<512x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  fp8.return
}


// Data hide keys, too. If the maximum of a row says that it has no visible key,
// the tile runs over all keys.
// CHECK-LABEL: func.func private @padded
// CHECK: %[[DONE:.*]] = scf.if %{{.*}} -> (i1)
// CHECK: arith.maximumf
// CHECK: %[[ALL:.*]] = scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} iter_args(%[[SOFAR:.*]] = %true{{.*}}) -> (i1)
// CHECK: %[[LEAST:.*]] = arith.constant -5.000000e+08 : f32
// CHECK: %[[SEES:.*]] = arith.cmpf ogt, %{{.*}}, %[[LEAST]]
// CHECK: %[[SO_DO_ALL:.*]] = arith.andi %[[SOFAR]], %[[SEES]]
// CHECK: scf.yield %[[SO_DO_ALL]]
// CHECK: %[[SEE:.*]] = arith.andi %{{.*}}, %[[ALL]]
// CHECK: scf.if %[[SEE]]
// CHECK: math.exp
// CHECK: scf.yield %[[SEE]] : i1
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT: scf.yield %[[FALSE]]
// CHECK: scf.if %[[DONE]] {
// CHECK-NEXT: } else {
// CHECK: arith.maximumf
// CHECK: math.exp
fp8.kernel @padded(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, read %ids: memref<512xi32>, write %y: memref<512x64xf32>) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = [256, 512]> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %low = arith.constant -1.0e+30 : f32
  %s = memref.alloc() : memref<512x512xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<512x512xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<512x64xf32>, memref<512x64xf32>) outs(%s : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  %m = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #r, #c, #s], iterator_types = ["parallel", "parallel"]}
      ins(%s, %ids, %ids : memref<512x512xf32>, memref<512xi32>, memref<512xi32>) outs(%m : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %iq: i32, %ik: i32, %o: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %causal = arith.cmpi sge, %q, %k : index
    %none = arith.constant 0 : i32
    %valid = arith.cmpi ne, %ik, %none : i32
    %seen = arith.andi %causal, %valid : i1
    %t = arith.select %seen, %x, %low : f32
    linalg.yield %t : f32
  }
  %max = memref.alloc() : memref<512xf32>
  linalg.fill ins(%inf : f32) outs(%max : memref<512xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%m : memref<512x512xf32>) outs(%max : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  }
  %e = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%m, %max : memref<512x512xf32>, memref<512xf32>) outs(%e : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.subf %x, %z : f32
    %u = math.exp %t : f32
    linalg.yield %u : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512x64xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e, %b : memref<512x512xf32>, memref<512x64xf32>) outs(%y : memref<512x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  fp8.return
}
