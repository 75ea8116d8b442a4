// RUN: split-file %s %t
// RUN: fp8-opt %t/cpu.mlir --fp8-lower-schedule | FileCheck %t/cpu.mlir
// RUN: fp8-opt %t/gpu.mlir --fp8-lower-schedule | FileCheck %t/gpu.mlir

//--- cpu.mlir
// CHECK-DAG: llvm.mlir.global internal constant @[[LABEL:.*_label]]("gradient w\00")
// CHECK: llvm.mlir.global internal constant @[[WHAT:fp8_entry_all_reduce_0]]()
// CHECK: llvm.mlir.addressof @[[LABEL]]
// The mean (1) of f8E4M3FN (2) codes, of f32 (13), in blocks of 128.
// CHECK: llvm.mlir.constant(1 : i64)
// CHECK: llvm.mlir.constant(2 : i64)
// CHECK: llvm.mlir.constant(13 : i64)
// CHECK: llvm.mlir.constant(128 : i64)
// CHECK: llvm.mlir.constant(256 : i64)
// CHECK-LABEL: func.func @fp8_entry
// CHECK-DAG: %[[P:.*]] = llvm.mlir.addressof @[[WHAT]]
// CHECK-DAG: %[[THREE:.*]] = llvm.mlir.constant(3 : i64)
// CHECK: llvm.call @fp8_all_reduce_start(%arg0, %{{.*}}, %[[P]], %{{.*}}, %{{.*}}, %[[THREE]])
// CHECK: llvm.call @fp8_wait(%arg0, %{{.*}})
fp8.schedule @main(%arena: memref<0xi8>, %g: memref<256xf32>, %mu: memref<2xf32>) arena_bytes = 0 {
  %0 = fp8.start_all_reduce mean %g into %g mu %mu : memref<2xf32> wire = f8E4M3FN block = 128 label = "gradient w" number = 0 : memref<256xf32>
  fp8.wait %0 (%g, %g, %mu) : memref<256xf32>, memref<256xf32>, memref<2xf32>
  fp8.return
}

//--- gpu.mlir
// A GPU's step calls the same functions of the runtime.
// CHECK-LABEL: func.func @fp8_entry
// CHECK: llvm.call @fp8_all_reduce_start(%arg0,
// CHECK: llvm.call @fp8_wait(%arg0,
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx80">} {
  fp8.schedule @main(%arena: memref<0xi8>, %g: memref<4xf32>) arena_bytes = 0 {
    %0 = fp8.start_all_reduce mean %g into %g number = 0 : memref<4xf32>
    fp8.wait %0 (%g, %g) : memref<4xf32>, memref<4xf32>
    fp8.return
  }
}
