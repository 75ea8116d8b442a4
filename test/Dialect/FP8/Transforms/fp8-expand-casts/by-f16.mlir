// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-expand-casts | FileCheck %s
// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v2 --fp8-expand-casts | FileCheck %s --check-prefix=WITHOUT
// RUN: fp8-opt %s --fp8-target=nvptx=sm_90a --fp8-expand-casts | FileCheck %s --check-prefix=WITHOUT

// F16C converts f16 to f32; other targets have only integers.
// WITHOUT-NOT: f16

// The upper byte of an f16 is an f8E5M2.
// CHECK-LABEL: func @e5m2(
// CHECK-SAME: %[[X:.*]]: vector<16xf8E5M2>
// CHECK: %[[CODE:.*]] = arith.bitcast %[[X]] : vector<16xf8E5M2> to vector<16xi8>
// CHECK: %[[WIDE:.*]] = arith.extui %[[CODE]] : vector<16xi8> to vector<16xi16>
// CHECK: %[[BITS:.*]] = arith.shli %[[WIDE]]
// CHECK: %[[HALF:.*]] = arith.bitcast %[[BITS]] : vector<16xi16> to vector<16xf16>
// CHECK: %[[R:.*]] = arith.extf %[[HALF]] : vector<16xf16> to vector<16xf32>
// CHECK: return %[[R]]
func.func @e5m2(%x: vector<16xf8E5M2>) -> vector<16xf32> {
  %0 = arith.extf %x : vector<16xf8E5M2> to vector<16xf32>
  return %0 : vector<16xf32>
}

// The exponent of f8E4M3FN has another bias.
// CHECK-LABEL: func @e4m3(
// CHECK: %[[F32:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: arith.mulf %[[F32]], %{{.*}} : f32
func.func @e4m3(%x: f8E4M3FN) -> f32 {
  %0 = arith.extf %x : f8E4M3FN to f32
  return %0 : f32
}

// Formats without a NaN of all ones.
// CHECK-LABEL: func @fnuz(
// CHECK-NOT: f16
// CHECK: return
func.func @fnuz(%x: f8E4M3FNUZ) -> f32 {
  %0 = arith.extf %x : f8E4M3FNUZ to f32
  return %0 : f32
}
