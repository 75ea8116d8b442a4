// RUN: split-file %s %t
// RUN: fp8-opt %t/cpu.mlir --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels --fp8-lower-schedule | FileCheck %t/cpu.mlir

//--- cpu.mlir
#id = affine_map<(i, j) -> (i, j)>

// For a shard with slices the runtime runs the tasks for the slices that a rank
// owns; a launch for a shard with one owner is in a branch.
// CHECK: func.func @fp8_entry(%[[STEP:[^:]*]]: !llvm.ptr)
// CHECK-DAG: %[[SHARD:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK: llvm.call @fp8_launch_owned(%[[STEP]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
// CHECK: %[[OWNS:.*]] = llvm.call @fp8_owns(%[[STEP]], %{{.*}})
// CHECK: %[[IF:.*]] = llvm.icmp "ne" %[[OWNS]]
// CHECK: scf.if %[[IF]]
// CHECK: llvm.call @fp8_launch(%[[STEP]],
fp8.schedule @main(%arena: memref<0xi8>,
    %x: memref<4x64xi8> {fp8.shard = 2 : i64, fp8.slices = 4 : i64, fp8.role = "state"},
    %y: memref<4x64xi8> {fp8.shard = 1 : i64, fp8.role = "state"}) arena_bytes = 0 {
  fp8.launch @k(update %x) number = 0 {fp8.shard = 2 : i64} : (memref<4x64xi8>) -> ()
  fp8.launch @k(update %y) number = 1 {fp8.shard = 1 : i64} : (memref<4x64xi8>) -> ()
  fp8.return
}
fp8.kernel @k(update %x: memref<4x64xi8>) domain = [4] plan = #fp8.cpu_plan<tile = [1]> attributes {fp8.slices = 4 : i64} {
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : memref<4x64xi8>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%o: i8):
    %0 = arith.addi %o, %o : i8
    linalg.yield %0 : i8
  }
  fp8.return
}
