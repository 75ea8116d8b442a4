// RUN: fp8-opt %s --fp8-expand-casts | FileCheck %s
// RUN: fp8-opt %s --fp8-expand-casts --convert-scf-to-cf --convert-vector-to-llvm --finalize-memref-to-llvm \
// RUN:   --convert-arith-to-llvm --convert-cf-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts \
// RUN:   | tee %t | FileCheck %s --check-prefix=LLVM

// RUN: mlir-translate --mlir-to-llvmir %t -o /dev/null

// Nothing is left for LLVM to refuse.
// LLVM-NOT: unrealized_conversion_cast
// LLVM-NOT: arith.
// LLVM-NOT: to f8E

// The addition rounds; the rest is integer.
// CHECK-LABEL: func @encode(
// CHECK-SAME: %[[X:.*]]: vector<16xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[A:.*]] = arith.minui
// CHECK: %[[E:.*]] = arith.maxui
// CHECK: %[[C:.*]] = arith.addi %[[E]]
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: %[[R:.*]] = arith.bitcast %{{.*}} : vector<16xi8> to vector<16xf8E4M3FN>
// CHECK: return %[[R]]
func.func @encode(%x: vector<16xf32>) -> vector<16xf8E4M3FN> {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xf8E4M3FN>
  return %0 : vector<16xf8E4M3FN>
}

// CHECK-LABEL: func @decode(
// CHECK-SAME: %[[X:.*]]: f8E5M2
// CHECK: %[[CODE:.*]] = arith.bitcast %[[X]] : f8E5M2 to i8
// CHECK: arith.extui %[[CODE]] : i8 to i32
// CHECK: arith.subf
// CHECK-COUNT-2: arith.select
// CHECK: arith.bitcast %{{.*}} : i32 to f32
// CHECK-NOT: arith.extf
func.func @decode(%x: f8E5M2) -> f32 {
  %0 = arith.extf %x : f8E5M2 to f32
  return %0 : f32
}

// The f32 number is exact in bf16: no rounding, only its upper half.
// CHECK-LABEL: func @f8_to_bf16(
// CHECK-NOT: arith.truncf
// CHECK: arith.ori
// CHECK: %[[UPPER:.*]] = arith.shrui
// CHECK-NEXT: %[[HALF:.*]] = arith.trunci %[[UPPER]] : vector<8xi32> to vector<8xi16>
// CHECK-NEXT: arith.bitcast %[[HALF]] : vector<8xi16> to vector<8xbf16>
func.func @f8_to_bf16(%x: vector<8xf8E4M3FN>) -> vector<8xbf16> {
  %0 = arith.extf %x : vector<8xf8E4M3FN> to vector<8xbf16>
  return %0 : vector<8xbf16>
}

// CHECK-LABEL: func @bf16(
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK: arith.mulf
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK-NOT: truncf
func.func @bf16(%x: bf16) -> bf16 {
  %0 = arith.extf %x : bf16 to f32
  %1 = arith.mulf %0, %0 : f32
  %2 = arith.truncf %1 : f32 to bf16
  return %2 : bf16
}

// Rounded to odd on the way, so that it is rounded once.
// CHECK-LABEL: func @from_f64(
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.cmpf one
// CHECK: arith.trunci %{{.*}} : i32 to i8
func.func @from_f64(%x: f64) -> f8E4M3FN {
  %0 = arith.truncf %x : f64 to f8E4M3FN
  return %0 : f8E4M3FN
}

// CHECK-LABEL: func @integers_and_comparisons(
// CHECK: arith.sitofp %{{.*}} : i32 to f32
// CHECK: arith.cmpf olt, %{{.*}} : f32
// CHECK: arith.fptosi %{{.*}} : f32 to i32
func.func @integers_and_comparisons(%i: i32, %x: f8E4M3FN) -> (i1, i32) {
  %0 = arith.sitofp %i : i32 to f8E4M3FN
  %1 = arith.cmpf olt, %0, %x : f8E4M3FN
  %2 = arith.fptosi %x : f8E4M3FN to i32
  return %1, %2 : i1, i32
}

// Memory keeps the type.
// CHECK-LABEL: func @memory(
// CHECK: vector.load %{{.*}} : memref<64xf8E5M2>, vector<16xf8E5M2>
// CHECK: vector.store %{{.*}} : memref<64xf8E4M3FN>, vector<16xf8E4M3FN>
func.func @memory(%in: memref<64xf8E5M2>, %out: memref<64xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %in[%c0] : memref<64xf8E5M2>, vector<16xf8E5M2>
  %1 = arith.extf %0 : vector<16xf8E5M2> to vector<16xf32>
  %2 = arith.truncf %1 : vector<16xf32> to vector<16xf8E4M3FN>
  vector.store %2, %out[%c0] : memref<64xf8E4M3FN>, vector<16xf8E4M3FN>
  %zero = arith.constant 0.0 : f8E4M3FN
  memref.store %zero, %out[%c0] : memref<64xf8E4M3FN>
  return
}
