// RUN: split-file %s %t
// RUN: fp8-opt %t/cpu.mlir --fp8-lower-schedule | FileCheck %t/cpu.mlir
// RUN: fp8-opt %t/gpu.mlir --fp8-lower-schedule | FileCheck %t/gpu.mlir

//--- cpu.mlir
// CHECK-DAG: llvm.mlir.global internal constant @[[LABEL:.*_label]]("heads\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[RANKS:.*_ranks]](dense<[0, 2, 1, 3]> : tensor<4xi64>) {{.*}}: !llvm.array<4 x i64>
// CHECK: llvm.mlir.global internal constant @[[WHAT:fp8_entry_exchange_0]]()
// CHECK: llvm.mlir.addressof @[[LABEL]]
// All to all (0): 64 bytes to each of two ranks, in two groups.
// CHECK: llvm.mlir.constant(0 : i64)
// CHECK: llvm.mlir.constant(64 : i64)
// CHECK: llvm.mlir.constant(2 : i64)
// CHECK: llvm.mlir.constant(2 : i64)
// CHECK: llvm.mlir.addressof @[[RANKS]]
// CHECK-LABEL: func.func @fp8_entry
// CHECK-DAG: %[[P:.*]] = llvm.mlir.addressof @[[WHAT]]
// CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: llvm.call @fp8_exchange_start(%arg0, %{{.*}}, %[[P]], %{{.*}}, %{{.*}}, %[[TWO]])
// CHECK: llvm.call @fp8_wait(%arg0, %{{.*}})
fp8.schedule @main(%arena: memref<0xi8>, %x: memref<2x32xbf16>, %y: memref<2x32xbf16>) arena_bytes = 0 {
  %0 = fp8.start_exchange all_to_all %x into %y ranks = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64> label = "heads" number = 0 : memref<2x32xbf16> -> memref<2x32xbf16>
  fp8.wait %0 (%x, %y) : memref<2x32xbf16>, memref<2x32xbf16>
  fp8.return
}

//--- gpu.mlir
// A GPU's step calls the same functions of the runtime.
// CHECK-LABEL: func.func @fp8_entry
// CHECK: llvm.call @fp8_exchange_start(%arg0,
// CHECK: llvm.call @fp8_wait(%arg0,
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx80">} {
  fp8.schedule @main(%arena: memref<0xi8>, %g: memref<4xf32>, %r: memref<4xf32>) arena_bytes = 0 {
    %0 = fp8.start_exchange permute %g into %r ranks = dense<[[0, 1]]> : tensor<1x2xi64> number = 0 : memref<4xf32> -> memref<4xf32>
    fp8.wait %0 (%g, %r) : memref<4xf32>, memref<4xf32>
    fp8.return
  }
}
