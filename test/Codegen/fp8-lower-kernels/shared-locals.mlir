// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A softmax: what each elementwise op computes replaces what it reads. The 128
// bytes of the maxima and those of the sums lie behind it.
// CHECK: func.func private @in_place
// CHECK-SAME: fp8.scratch_bytes = 8448
// CHECK: memref.view %{{.*}}[%c0][] : memref<8448xi8> to memref<32x64xf32>
// CHECK: memref.view %{{.*}}[%c8192][] : memref<8448xi8> to memref<32xf32>
// CHECK: memref.view %{{.*}}[%c0][] : memref<8448xi8> to memref<32x64xf32>
// CHECK: memref.view %{{.*}}[%c8320][] : memref<8448xi8> to memref<32xf32>
// CHECK: return
fp8.kernel @in_place(read %x: memref<32x64xf32>, write %y: memref<32x64xf32>) domain = [32] plan = #fp8.cpu_plan<tile = [32]> {
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x64xf32>) outs(%scores : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  %largest = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%largest : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%scores : memref<32x64xf32>) outs(%largest : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  }
  %shifted = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%scores, %largest : memref<32x64xf32>, memref<32xf32>) outs(%shifted : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    linalg.yield %n : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%shifted : memref<32x64xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%shifted, %sum : memref<32x64xf32>, memref<32xf32>) outs(%y : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.divf %a, %b : f32
    linalg.yield %n : f32
  }
  fp8.return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// An op behind the one that writes reads the old values, too: they stay.
// CHECK: func.func private @read_again
// CHECK-SAME: fp8.scratch_bytes = 16640
// CHECK: memref.view %{{.*}}[%c0][] : memref<16640xi8> to memref<32x64xf32>
// CHECK: memref.view %{{.*}}[%c8320][] : memref<16640xi8> to memref<32x64xf32>
// CHECK: memref.view %{{.*}}[%c0][] : memref<16640xi8> to memref<32x64xf32>
// CHECK: return
fp8.kernel @read_again(read %x: memref<32x64xf32>, write %y: memref<32x64xf32>, write %z: memref<32x64xf32>, write %w: memref<32x64xf32>) domain = [32] plan = #fp8.cpu_plan<tile = [32]> {
  %zero = arith.constant 0.0 : f32
  %old = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x64xf32>) outs(%old : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  %sum = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%old : memref<32x64xf32>) outs(%sum : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  %new = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%old, %sum : memref<32x64xf32>, memref<32xf32>) outs(%new : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%old, %sum : memref<32x64xf32>, memref<32xf32>) outs(%z : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.mulf %a, %b : f32
    linalg.yield %n : f32
  }
  %total = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%total : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%new : memref<32x64xf32>) outs(%total : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  // It reads new values, as the op behind it does, and lies where the old ones
  // were.
  %last = memref.alloc() : memref<32x64xf32>
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%new, %total : memref<32x64xf32>, memref<32xf32>) outs(%last : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.divf %a, %b : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%new, %total : memref<32x64xf32>, memref<32xf32>) outs(%w : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.mulf %a, %b : f32
    linalg.yield %n : f32
  }
  %end = memref.alloc() : memref<32xf32>
  linalg.fill ins(%zero : f32) outs(%end : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%last : memref<32x64xf32>) outs(%end : memref<32xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%last, %end : memref<32x64xf32>, memref<32xf32>) outs(%y : memref<32x64xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.divf %a, %b : f32
    linalg.yield %n : f32
  }
  fp8.return
}
