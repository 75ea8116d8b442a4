// RUN: fp8-opt %s --fp8-expand-math --split-input-file | FileCheck %s

// CHECK: func.func @exp
// CHECK-NOT: math.exp
// CHECK: math.fma {{.*}} : vector<16xf32>
// CHECK: arith.bitcast {{.*}} : vector<16xi32> to vector<16xf32>
// CHECK-NOT: f64
// CHECK: return
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// -----

// A narrow type is computed in f32.
// CHECK: func.func @narrow
// CHECK-SAME: %[[X:.*]]: bf16
// CHECK: arith.extf %[[X]] : bf16 to f32
// CHECK-NOT: math.tanh
// CHECK: %[[R:.*]] = arith.truncf {{.*}} : f32 to bf16
// CHECK: return %[[R]]
func.func @narrow(%x: bf16) -> bf16 {
  %0 = math.tanh %x : bf16
  return %0 : bf16
}

// -----

// CHECK: func.func @rsqrt
// CHECK: %[[S:.*]] = math.sqrt
// CHECK: arith.divf %{{.*}}, %[[S]]
func.func @rsqrt(%x: f32) -> f32 {
  %0 = math.rsqrt %x : f32
  return %0 : f32
}

// -----

// What stays.
// CHECK: func.func @stays
// CHECK: math.fma
// CHECK: math.sqrt
// CHECK: math.absf
// CHECK: math.floor
// CHECK: math.ceil
// CHECK: math.roundeven
// CHECK: math.copysign
// CHECK: math.exp {{.*}} : f64
func.func @stays(%x: f32, %y: f64) -> (f32, f64) {
  %0 = math.fma %x, %x, %x : f32
  %1 = math.sqrt %0 : f32
  %2 = math.absf %1 : f32
  %3 = math.floor %2 : f32
  %4 = math.ceil %3 : f32
  %5 = math.roundeven %4 : f32
  %6 = math.copysign %5, %x : f32
  %7 = math.exp %y : f64
  return %6, %7 : f32, f64
}

// -----

// Through f64, without a branch or a call.
// CHECK: func.func @sin
// CHECK: arith.extf {{.*}} : vector<8xf32> to vector<8xf64>
// CHECK-NOT: math.sin
// CHECK-NOT: call
// CHECK: return
func.func @sin(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.sin %x : vector<8xf32>
  return %0 : vector<8xf32>
}

// -----

// AVX-512 multiplies by a power of two in one instruction, which is slow if the
// result is zero: such arguments take the power of another one.
module attributes {fp8.target = #fp8.cpu_target<triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v4", features = "", vector_bits = 512>} {
  // CHECK: func.func @ldexp(%[[X:.*]]: vector
  // CHECK: %[[BOUND:.*]] = arith.constant dense<-1.040000e+02>
  // CHECK: %[[IS_ZERO:.*]] = arith.cmpf ole, %[[X]], %[[BOUND]]
  // CHECK: arith.select %[[IS_ZERO]], %{{.*}}, %[[X]]
  // CHECK: %[[Y:.*]] = llvm.call_intrinsic "llvm.ldexp"(%{{.*}}, %{{.*}}) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
  // CHECK: %[[RESULT:.*]] = arith.select %[[IS_ZERO]], %{{.*}}, %[[Y]]
  // CHECK: return %[[RESULT]]
  func.func @ldexp(%x: vector<16xf32>) -> vector<16xf32> {
    %0 = math.exp %x : vector<16xf32>
    return %0 : vector<16xf32>
  }

  // LLVM has vectors of one dimension only.
  // CHECK: func.func @two_dimensions
  // CHECK-NOT: ldexp
  // CHECK: return
  func.func @two_dimensions(%x: vector<2x16xf32>) -> vector<2x16xf32> {
    %0 = math.exp %x : vector<2x16xf32>
    return %0 : vector<2x16xf32>
  }
}
