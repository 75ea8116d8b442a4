// RUN: fp8-opt %s --fp8-lower-kernels --fp8-lower-schedule | FileCheck %s

#id = affine_map<(i) -> (i)>

// A buffer of bytes that is the whole arena is at offset 0.
// CHECK-DAG: dense<[-1, 0]>
// CHECK-DAG: dense<[0, -2]>
func.func @main(%arena: memref<64xi8> {fp8.arena}, %a: memref<64xi8>, %b: memref<64xi8>) attributes {fp8.arena_bytes = 64 : i64} {
  call @kernel_0(%a, %arena) : (memref<64xi8>, memref<64xi8>) -> ()
  call @kernel_0(%arena, %b) : (memref<64xi8>, memref<64xi8>) -> ()
  return
}
func.func private @kernel_0(%x: memref<64xi8>, %y: memref<64xi8>) attributes {fp8.domain = array<i64>, fp8.tile = array<i64>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<64xi8>) outs(%y : memref<64xi8>) attrs = {fp8.task_dims = array<i64>} {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  }
  return
}
