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

// A query sees 100 keys, 64 queries see 163. A tile begins with one of the 16
// keys up to the first one that it sees, so it needs 178 keys, in multiples of 32.
// CHECK: fp8.kernel @window({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 192>
fp8.kernel @window(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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

// 100 keys on each side.
// CHECK: fp8.kernel @both_sides({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 288>
fp8.kernel @both_sides(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %distance = arith.subi %k, %q : index
    %absolute = math.absi %distance : index
    %size = arith.constant 100 : index
    %seen = arith.cmpi sle, %absolute, %size : index
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

// The last query sees no key if there are 100 fewer keys than queries. Values of
// rows tell whether one has no key, so all keys after a query are left out.
// CHECK: fp8.kernel @window_without_keys({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 412>
fp8.kernel @window_without_keys(read %a: memref<512x64xf32>, read %b: memref<412x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %low = arith.constant -1.0e+30 : f32
  %s = memref.alloc() : memref<512x412xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<512x412xf32>)
  linalg.generic {indexing_maps = [#qd, #kd, #s3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<512x64xf32>, memref<412x64xf32>) outs(%s : memref<512x412xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  %m = memref.alloc() : memref<512x412xf32>
  linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<512x412xf32>) outs(%m : memref<512x412xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
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
      ins(%m : memref<512x412xf32>) outs(%max : memref<512xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  }
  %e = memref.alloc() : memref<512x412xf32>
  linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]}
      ins(%m, %max : memref<512x412xf32>, memref<512xf32>) outs(%e : memref<512x412xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.subf %x, %z : f32
    %u = math.exp %t : f32
    linalg.yield %u : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512x64xf32>)
  linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e, %b : memref<512x412xf32>, memref<412x64xf32>) outs(%y : memref<512x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  fp8.return
}

// A query sees itself, whatever the segments are.
// CHECK: fp8.kernel @packed({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512>
fp8.kernel @packed(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, read %ids: memref<512xi32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %same = arith.cmpi eq, %iq, %ik : i32
    %seen = arith.andi %causal, %same : i1
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

// A mask that is added.
// CHECK: fp8.kernel @added({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [64], keys = 512>
fp8.kernel @added(read %a: memref<512x64xf32>, read %b: memref<512x64xf32>, write %y: memref<512x64xf32>) domain = [512] {
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
    %mask = arith.select %causal, %zero, %low : f32
    %t = arith.addf %x, %mask : f32
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

#bqkd = affine_map<(b, q, k, d) -> (b, q, d)>
#bkd = affine_map<(b, q, k, d) -> (b, k, d)>
#bs4 = affine_map<(b, q, k, d) -> (b, q, k)>
#bs = affine_map<(b, q, k) -> (b, q, k)>
#br = affine_map<(b, q, k) -> (b, q)>
#bqk = affine_map<(b, q, k) -> (q, k)>

// The gradient of a bias has an element for each hidden key, too.
// CHECK: fp8.kernel @bias_gradient({{.*}}) domain = [512] plan = #fp8.cpu_plan<tile = [{{[0-9]+}}]>
fp8.kernel @bias_gradient(read %a: memref<4x512x64xf32>, read %b: memref<4x512x64xf32>, read %rows: memref<4x512xf32>, write %y: memref<512x512xf32>) domain = [512] {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e+30 : f32
  %s = memref.alloc() : memref<4x512x512xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<4x512x512xf32>)
  linalg.generic {indexing_maps = [#bqkd, #bkd, #bs4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x512x64xf32>, memref<4x512x64xf32>) outs(%s : memref<4x512x512xf32>) attrs = {fp8.task_dims = array<i64: 1>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  %e = memref.alloc() : memref<4x512x512xf32>
  linalg.generic {indexing_maps = [#bs, #br, #bs], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %rows : memref<4x512x512xf32>, memref<4x512xf32>) outs(%e : memref<4x512x512xf32>) attrs = {fp8.task_dims = array<i64: 1>} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %q = linalg.index 1 : index
    %k = linalg.index 2 : index
    %seen = arith.cmpi sge, %q, %k : index
    %m = arith.select %seen, %x, %low : f32
    %t = arith.subf %m, %z : f32
    %u = math.exp %t : f32
    linalg.yield %u : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512x512xf32>)
  linalg.generic {indexing_maps = [#bs, #bqk], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%e : memref<4x512x512xf32>) outs(%y : memref<512x512xf32>) attrs = {fp8.task_dims = array<i64: 1>} {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %o, %x : f32
    linalg.yield %t : f32
  }
  fp8.return
}
