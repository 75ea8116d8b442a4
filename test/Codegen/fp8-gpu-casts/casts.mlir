// RUN: fp8-opt %s --fp8-gpu-casts | FileCheck %s

// CHECK-LABEL: func.func @encode
// CHECK-SAME: %[[X:.*]]: vector<4xf32>
// CHECK-DAG: %[[X0:.*]] = vector.extract %[[X]][0]
// CHECK-DAG: %[[X1:.*]] = vector.extract %[[X]][1]
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%[[X1]], %[[X0]]) : (f32, f32) -> i16
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"
// CHECK: arith.constant dense<4.640000e+02>
// CHECK: arith.cmpf ogt
// CHECK: arith.bitcast %{{.*}} : vector<4xi8> to vector<4xf8E4M3FN>
func.func @encode(%x: vector<4xf32>) -> vector<4xf8E4M3FN> {
  %0 = arith.truncf %x : vector<4xf32> to vector<4xf8E4M3FN>
  return %0 : vector<4xf8E4M3FN>
}

// One element is half of a pair.
// CHECK-LABEL: func.func @scalar
// CHECK: llvm.nvvm.ff.to.e5m2x2.rn
// CHECK: arith.constant dense<6.144000e+04>
// CHECK: arith.cmpf oge
func.func @scalar(%x: f32) -> f8E5M2 {
  %0 = arith.truncf %x : f32 to f8E5M2
  return %0 : f8E5M2
}

// CHECK-LABEL: func.func @decode
// CHECK: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%{{.*}}) : (i16) -> vector<2xf16>
// CHECK: arith.extf %{{.*}} : vector<4xf16> to vector<4xf32>
func.func @decode(%x: vector<3xf8E4M3FN>) -> vector<3xf32> {
  %0 = arith.extf %x : vector<3xf8E4M3FN> to vector<3xf32>
  return %0 : vector<3xf32>
}

// CHECK-LABEL: func.func @bf16
// CHECK: llvm.fptrunc
// CHECK: llvm.fpext
func.func @bf16(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = arith.truncf %x : vector<4xf32> to vector<4xbf16>
  %1 = arith.extf %0 : vector<4xbf16> to vector<4xf32>
  return %1 : vector<4xf32>
}

// Others are for fp8-expand-casts.
// CHECK-LABEL: func.func @other
// CHECK: arith.truncf %{{.*}} : f32 to f8E4M3FNUZ
func.func @other(%x: f32) -> f8E4M3FNUZ {
  %0 = arith.truncf %x : f32 to f8E4M3FNUZ
  return %0 : f8E4M3FNUZ
}
