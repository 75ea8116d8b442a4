// RUN: fp8-opt %s --fp8-integer-maxima | FileCheck %s

// The amax of a row: the accumulator begins at -inf, but a loop that runs leaves an absolute value in it.
// CHECK-LABEL: func.func @amax
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK:   %[[ABS:.*]] = math.absf
// CHECK-DAG: %[[A:.*]] = arith.bitcast %[[ACC]] : vector<16xf32> to vector<16xi32>
// CHECK-DAG: %[[B:.*]] = arith.bitcast %[[ABS]] : vector<16xf32> to vector<16xi32>
// CHECK:   %[[MAX:.*]] = arith.maxsi %[[A]], %[[B]] : vector<16xi32>
// CHECK:   arith.bitcast %[[MAX]] : vector<16xi32> to vector<16xf32>
// CHECK: arith.maxsi %{{.*}} : vector<8xi32>
// CHECK-NOT: maximumf
// CHECK: return
func.func @amax(%x: memref<4x16xf32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %low = arith.constant dense<0xFF800000> : vector<16xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %low) -> vector<16xf32> {
    %row = vector.load %x[%i, %c0] : memref<4x16xf32>, vector<16xf32>
    %abs = math.absf %row : vector<16xf32>
    %max = arith.maximumf %acc, %abs : vector<16xf32>
    scf.yield %max : vector<16xf32>
  }
  %a = vector.extract_strided_slice %r {offsets = [0], sizes = [8], strides = [1]} : vector<16xf32> to vector<8xf32>
  %b = vector.extract_strided_slice %r {offsets = [8], sizes = [8], strides = [1]} : vector<16xf32> to vector<8xf32>
  %half = arith.maximumf %a, %b : vector<8xf32>
  return %half : vector<8xf32>
}

// If the loop may have no iteration, -inf may be left, and the order of two negative floats is not that of their bits.
// CHECK-LABEL: func.func @perhaps_empty
// CHECK: arith.maxsi
// CHECK: arith.maximumf
func.func @perhaps_empty(%x: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = arith.constant 0xFF800000 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %low) -> f32 {
    %e = memref.load %x[%i] : memref<?xf32>
    %abs = math.absf %e : f32
    %max = arith.maximumf %acc, %abs : f32
    scf.yield %max : f32
  }
  %twice = arith.maximumf %r, %low : f32
  return %twice : f32
}

// An accumulator that some path makes negative, or that begins as a NaN with a sign, is not known.
// CHECK-LABEL: func.func @unknown
// CHECK-COUNT-3: arith.maximumf
// CHECK-NOT: maxsi
// CHECK: return
func.func @unknown(%x: memref<8xf32>, %y: f32) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %nan = arith.constant 0xFFC00000 : f32
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %zero, %b = %nan) -> (f32, f32) {
    %e = memref.load %x[%i] : memref<8xf32>
    %abs = math.absf %e : f32
    %max = arith.maximumf %a, %abs : f32
    %lower = arith.subf %max, %y : f32
    %second = arith.maximumf %b, %abs : f32
    scf.yield %lower, %second : f32, f32
  }
  %relu = arith.maximumf %y, %zero : f32
  return %r#0, %r#1, %relu : f32, f32, f32
}

// Half precision has 16 bits; AVX2 has no maximum of 64.
// CHECK-LABEL: func.func @widths
// CHECK: arith.maxsi %{{.*}} : vector<16xi16>
// CHECK: arith.maximumf %{{.*}} : f64
func.func @widths(%x: vector<16xbf16>, %y: f64) -> (vector<16xbf16>, f64) {
  %zeros = arith.constant dense<0.0> : vector<16xbf16>
  %zero = arith.constant 0.0 : f64
  %a = math.absf %x : vector<16xbf16>
  %b = math.absf %y : f64
  %c = arith.maximumf %a, %zeros : vector<16xbf16>
  %d = arith.maximumf %b, %zero : f64
  return %c, %d : vector<16xbf16>, f64
}
