// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels | FileCheck %s

// No multiple of 32, fewer keys than a tile sees, and more than there are.
// RUN: sed 's/keys = 192/keys = 200/' %s | not fp8-opt --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: sed 's/keys = 192/keys = 160/' %s | not fp8-opt --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: sed 's/keys = 192/keys = 544/' %s | not fp8-opt --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: expected a plan with keys to be that of an attention with a causal mask or a window, and its keys to be all, or a multiple of 32 that covers the window

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#s3 = affine_map<(q, k, d) -> (q, k)>
#p = affine_map<(q, d, k) -> (q, k)>
#c = affine_map<(q, k) -> (k)>
#v = affine_map<(q, d, k) -> (k, d)>
#o = affine_map<(q, d, k) -> (q, d)>
#s = affine_map<(q, k) -> (q, k)>
#r = affine_map<(q, k) -> (q)>

// Tiles run over the keys from a multiple of 16, shortly before the first that
// they see, up to the last one, in multiples of 32: dots along keys in steps of a
// vector or of one, maxima and exponentials in vectors. These are no more than
// 192, and the scores of a tile hold no others.
// CHECK-LABEL: func.func private @window
// CHECK-SAME: (%[[TASK:.*]]: index
// CHECK: memref.view {{.*}} to memref<64x192xf32>
// CHECK: %[[SEEN:.*]] = arith.addi %[[QUERY:.*]], %c64
// CHECK: %[[BEFORE:.*]] = arith.addi %[[QUERY]], %c-99
// CHECK: %[[KEY:.*]] = arith.maxsi %[[BEFORE]], %c0
// CHECK: %[[STEP:.*]] = arith.divui %[[KEY]], %c16
// CHECK: %[[BEGIN:.*]] = arith.muli %[[STEP]], %c16
// CHECK: %[[FIRST:.*]] = arith.minsi %[[BEGIN]], %c320
// CHECK: %[[OWN_SEEN:.*]] = arith.subi %[[SEEN]], %[[FIRST]]
// CHECK: %[[MORE:.*]] = arith.addi %[[OWN_SEEN]], %c31
// CHECK: %[[STEPS:.*]] = arith.divui %[[MORE]], %[[C32:.*]] : index
// CHECK: %[[KEYS:.*]] = arith.muli %[[STEPS]], %[[C32]] : index
// CHECK: %[[END:.*]] = arith.minui %[[KEYS]], %c192
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %[[END]] step %c16
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %[[END]] step %c16{{.*}} -> (vector<16xf32>)
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[I]], %[[FIRST]]
// CHECK: %[[OWN:.*]] = arith.subi %[[AT]], %[[FIRST]]
// CHECK: vector.load %{{.*}}[%{{.*}}, %[[OWN]]] : memref<64x192xf32>
// CHECK: arith.maximumf
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %[[END]] step %c16
// CHECK: math.exp
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %[[END]] step %c1{{.*}} -> (vector<8xf32>
// All tiles share this code.
// CHECK-NOT: math.exp
fp8.kernel @window(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 192> {
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
// the tile begins again and runs over all keys.
// CHECK-LABEL: func.func private @padded
// CHECK: %[[SEEN:.*]] = arith.minui %{{.*}}, %c512
// CHECK: scf.while (%[[END:.*]] = %[[SEEN]])
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %[[END]] step
// CHECK: arith.maximumf
// CHECK: %[[ALL:.*]] = scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} iter_args(%[[SOFAR:.*]] = %true{{.*}}) -> (i1)
// CHECK: %[[LEAST:.*]] = arith.constant -5.000000e+08 : f32
// CHECK: %[[SEES:.*]] = arith.cmpf ogt, %{{.*}}, %[[LEAST]]
// CHECK: %[[SO_DO_ALL:.*]] = arith.andi %[[SOFAR]], %[[SEES]]
// CHECK: scf.yield %[[SO_DO_ALL]]
// CHECK: %[[SEE:.*]] = arith.andi %{{.*}}, %[[ALL]]
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[END]], %c512
// CHECK: %[[ENOUGH:.*]] = arith.ori %[[SEE]], %[[WHOLE]]
// CHECK: scf.if %[[ENOUGH]]
// CHECK: math.exp
// CHECK: %[[AGAIN:.*]] = arith.xori %[[ENOUGH]], %true
// CHECK: scf.condition(%[[AGAIN]]) %c512
// CHECK-NOT: math.exp
fp8.kernel @padded(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, read %ids: memref<512xi32>, write %y: memref<512x64xf32>) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512> {
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
