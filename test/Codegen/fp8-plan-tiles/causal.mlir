// RUN: fp8-opt %s --fp8-plan-tiles | FileCheck %s
// RUN: fp8-opt %s --fp8-plan-tiles | fp8-opt | FileCheck %s

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#s3 = affine_map<(q, k, d) -> (q, k)>
#p = affine_map<(q, d, k) -> (q, k)>
#v = affine_map<(q, d, k) -> (k, d)>
#o = affine_map<(q, d, k) -> (q, d)>
#s = affine_map<(q, k) -> (q, k)>
#r = affine_map<(q, k) -> (q)>
#c = affine_map<(q, k) -> (k)>

// The first 64 of 512 queries see 64 keys at most, the last ones all.
// CHECK: fp8.kernel @causal({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512>
fp8.kernel @causal(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %seen = arith.cmpi sge, %q, %k : index
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

// The largest weight of a row begins at 0, which the weights of hidden keys are.
// CHECK: fp8.kernel @largest_weight({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [32], keys = 512>
fp8.kernel @largest_weight(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %seen = arith.cmpi sge, %q, %k : index
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
  %begin = arith.constant 0.0 : f32
  %largest = memref.alloc() : memref<512xf32>
  linalg.fill ins(%begin : f32) outs(%largest : memref<512xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<512x512xf32>) outs(%largest : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  }
  %p = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%e, %largest : memref<512x512xf32>, memref<512xf32>) outs(%p : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.divf %x, %z : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512x64xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %b : memref<512x512xf32>, memref<512x64xf32>) outs(%y : memref<512x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  fp8.return
}

// One that begins below 0 would be that of a hidden key.
// CHECK: fp8.kernel @larger_than_none({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [32]>
fp8.kernel @larger_than_none(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %seen = arith.cmpi sge, %q, %k : index
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
  %begin = arith.constant -1.0 : f32
  %largest = memref.alloc() : memref<512xf32>
  linalg.fill ins(%begin : f32) outs(%largest : memref<512xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<512x512xf32>) outs(%largest : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  }
  %p = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%e, %largest : memref<512x512xf32>, memref<512xf32>) outs(%p : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.divf %x, %z : f32
    linalg.yield %t : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512x64xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %b : memref<512x512xf32>, memref<512x64xf32>) outs(%y : memref<512x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  fp8.return
}

// The same, the other way round, with the sides of the choice exchanged.
// CHECK: fp8.kernel @turned({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512>
fp8.kernel @turned(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %hidden = arith.cmpi sgt, %k, %q : index
    %true = arith.constant true
    %seen = arith.xori %hidden, %true : i1
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

// The first query sees no key: it is the mean of all.
// CHECK: fp8.kernel @none_for_the_first({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64]>
fp8.kernel @none_for_the_first(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %seen = arith.cmpi sgt, %q, %k : index
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

// So may be a query whose keys are padding, but its largest score tells.
// CHECK: fp8.kernel @padded({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512>
fp8.kernel @padded(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, read %mask: memref<512xi1>, write %y: memref<512x64xf32>) domain = [512] {
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
  linalg.generic {indexing_maps = [#s, #c, #s], iterator_types = ["parallel", "parallel"]}
      ins(%s, %mask : memref<512x512xf32>, memref<512xi1>) outs(%m : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %valid: i1, %o: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %causal = arith.cmpi sge, %q, %k : index
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

// A bias could hide keys, too.
// CHECK: fp8.kernel @biased({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512>
fp8.kernel @biased(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, read %h: memref<512xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
  linalg.generic {indexing_maps = [#s, #c, #s], iterator_types = ["parallel", "parallel"]}
      ins(%s, %h : memref<512x512xf32>, memref<512xf32>) outs(%m : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %bias: f32, %o: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %seen = arith.cmpi sge, %q, %k : index
    %biased = arith.addf %x, %bias : f32
    %t = arith.select %seen, %biased, %low : f32
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

// A score can be below this.
// CHECK: fp8.kernel @weak({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64]>
fp8.kernel @weak(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %low = arith.constant -1.0e+02 : f32
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
    %seen = arith.cmpi sge, %q, %k : index
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

// Scores that others may read are needed all.
// CHECK: fp8.kernel @written({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64]>
fp8.kernel @written(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %w: memref<512x512xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
  linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<512x512xf32>) outs(%w : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %seen = arith.cmpi sge, %q, %k : index
    %t = arith.select %seen, %x, %low : f32
    linalg.yield %t : f32
  }
  %max = memref.alloc() : memref<512xf32>
  linalg.fill ins(%inf : f32) outs(%max : memref<512xf32>)
  linalg.generic {indexing_maps = [#s, #r], iterator_types = ["parallel", "reduction"]}
      ins(%w : memref<512x512xf32>) outs(%max : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  }
  %e = memref.alloc() : memref<512x512xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%w, %max : memref<512x512xf32>, memref<512xf32>) outs(%e : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
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
