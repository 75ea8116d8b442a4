// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels --fp8-lower-schedule | FileCheck %s

#id = affine_map<(i) -> (i)>

// A buffer of bytes that is the whole arena is at offset 0.
// CHECK-DAG: dense<[-1, 0]>
// CHECK-DAG: dense<[0, -2]>
fp8.schedule @main(%arena: memref<64xi8>, %a: memref<64xi8>, %b: memref<64xi8>) arena_bytes = 64 {
  fp8.launch @kernel_0(read %a, write %arena) number = 0 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.launch @kernel_0(read %arena, write %b) number = 1 : (memref<64xi8>, memref<64xi8>) -> ()
  fp8.return
}
fp8.kernel @kernel_0(read %x: memref<64xi8>, write %y: memref<64xi8>) domain = [] plan = #fp8.cpu_plan<tile = []> {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<64xi8>) outs(%y : memref<64xi8>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  }
  fp8.return
}
