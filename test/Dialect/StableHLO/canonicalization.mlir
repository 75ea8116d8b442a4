// RUN: fp8-opt %s --canonicalize --cse | FileCheck %s

// CHECK: func.func @identities(%[[A:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<i32>
// CHECK-NEXT: return %[[A]], %[[A]], %[[A]], %[[A]], %[[A]], %[[A]], %[[A]], %[[A]], %[[A]], %[[A]], %[[A]] :
func.func @identities(%a: tensor<4x8xf32>, %i: tensor<i32>, %p: tensor<i1>, %v: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.transpose %a, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.convert %a : tensor<4x8xf32>
  %3 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.slice %a [0:4, 0:8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = stablehlo.pad %a, %v, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %6 = stablehlo.concatenate %a, dim = 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = stablehlo.reverse %a, dims = [] : tensor<4x8xf32>
  %8 = stablehlo.dynamic_slice %a, %i, %i, sizes = [4, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %9 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<4x8xf32>
  %n = stablehlo.negate %a : tensor<4x8xf32>
  %10 = stablehlo.negate %n : tensor<4x8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// An update of everything is the new value, wherever it begins.
// CHECK: func.func @update_of_all(%{{.*}}: tensor<4x8xf32>, %[[U:.*]]: tensor<4x8xf32>
// CHECK-NEXT: return %[[U]]
func.func @update_of_all(%a: tensor<4x8xf32>, %u: tensor<4x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// What only looks like an identity stays.
// CHECK: func.func @square_transpose
// CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [1, 0]
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0]
func.func @square_transpose(%a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK: func.func @reshapes(%[[A:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %[[A]] : (tensor<4x8xf32>) -> tensor<2x16xf32>
// CHECK-NEXT: return %[[R]]
func.func @reshapes(%a: tensor<4x8xf32>) -> tensor<2x16xf32> {
  %0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = stablehlo.reshape %0 : (tensor<32xf32>) -> tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// x + 0 is not x for -0, and x * 0 is left alone.
// CHECK: func.func @zeros(%[[A:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<4xi32>)
// CHECK: %[[SUM:.*]] = stablehlo.add %[[A]], %{{.*}} : tensor<4xf32>
// CHECK: %[[PRODUCT:.*]] = stablehlo.multiply %[[I]], %{{.*}} : tensor<4xi32>
// CHECK: return %[[SUM]], %[[A]], %[[A]], %[[A]], %[[I]], %[[PRODUCT]] :
func.func @zeros(%a: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %nzero = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %izero = stablehlo.constant dense<0> : tensor<4xi32>
  %0 = stablehlo.add %a, %zero : tensor<4xf32>
  %1 = stablehlo.add %a, %nzero : tensor<4xf32>
  %2 = stablehlo.subtract %a, %zero : tensor<4xf32>
  %3 = stablehlo.multiply %one, %a : tensor<4xf32>
  %4 = stablehlo.add %i, %izero : tensor<4xi32>
  %5 = stablehlo.multiply %i, %izero : tensor<4xi32>
  return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>
}

// Division by zero is not folded.
// CHECK: func.func @constants
// CHECK-DAG: %[[ZERO_ONE:.*]] = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
// CHECK-DAG: %[[TRUE:.*]] = stablehlo.constant dense<true> : tensor<i1>
// CHECK-DAG: %[[SEVEN:.*]] = stablehlo.constant dense<[-7, 2147483647]> : tensor<2xi32>
// CHECK-DAG: %[[THREE:.*]] = stablehlo.constant dense<3.000000e+00> : tensor<f32>
// CHECK-DAG: %[[TWO:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<2x4xf32>
// CHECK-DAG: %[[THIRD:.*]] = stablehlo.constant dense<0.333333343> : tensor<f32>
// CHECK-DAG: %[[SIGNED:.*]] = stablehlo.constant dense<[-3, 1073741823]> : tensor<2xi32>
// CHECK-DAG: %[[UNSIGNED:.*]] = stablehlo.constant dense<[2147483647, 3]> : tensor<2xui32>
// CHECK-DAG: %[[GREATER:.*]] = stablehlo.constant dense<true> : tensor<2xi1>
// CHECK-DAG: %[[SATURATED:.*]] = stablehlo.constant dense<[2147483647, -1, 0]> : tensor<3xi32>
// CHECK-DAG: %[[FLOATS:.*]] = stablehlo.constant dense<[4.2949673E+9, 7.000000e+00]> : tensor<2xf32>
// CHECK-DAG: %[[RESHAPED:.*]] = stablehlo.constant dense<{{\[\[}}1, 2], [3, 4], [5, 6], [7, 8]]> : tensor<4x2xi32>
// CHECK: %[[DIVIDED:.*]] = stablehlo.divide %[[SEVEN]], %[[ZERO_ONE]] : tensor<2xi32>
// CHECK: return %[[TWO]], %[[THIRD]], %[[SIGNED]], %[[UNSIGNED]], %[[TRUE]], %[[GREATER]], %[[SATURATED]], %[[FLOATS]], %[[THREE]], %[[TRUE]], %[[RESHAPED]], %[[DIVIDED]] :
func.func @constants() -> (tensor<2x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xui32>, tensor<i1>, tensor<2xi1>, tensor<3xi32>, tensor<2xf32>, tensor<f32>, tensor<i1>, tensor<4x2xi32>, tensor<2xi32>) {
  %c2 = stablehlo.constant dense<2.0> : tensor<f32>
  %c3 = stablehlo.constant dense<3.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c2, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
  %m = stablehlo.multiply %c2, %c3 : tensor<f32>
  %1 = stablehlo.divide %c2, %m : tensor<f32>
  %i = stablehlo.constant dense<[-7, 2147483647]> : tensor<2xi32>
  %i2 = stablehlo.constant dense<2> : tensor<2xi32>
  %2 = stablehlo.divide %i, %i2 : tensor<2xi32>
  %u = stablehlo.constant dense<[4294967295, 7]> : tensor<2xui32>
  %u2 = stablehlo.constant dense<2> : tensor<2xui32>
  %3 = stablehlo.divide %u, %u2 : tensor<2xui32>
  %t = stablehlo.constant dense<true> : tensor<i1>
  %f = stablehlo.constant dense<false> : tensor<i1>
  %4 = stablehlo.add %t, %f : tensor<i1>
  %5 = stablehlo.compare GT, %u, %u2, UNSIGNED : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xi1>
  %x = stablehlo.constant dense<[1.0e20, -1.5, 0x7FC00000]> : tensor<3xf32>
  %6 = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xi32>
  %7 = stablehlo.convert %u : (tensor<2xui32>) -> tensor<2xf32>
  %8 = stablehlo.select %f, %c2, %c3 : tensor<i1>, tensor<f32>
  %9 = stablehlo.convert %c2 : (tensor<f32>) -> tensor<i1>
  %w = stablehlo.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
  %10 = stablehlo.reshape %w : (tensor<8xi32>) -> tensor<4x2xi32>
  %z = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
  %11 = stablehlo.divide %i, %z : tensor<2xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<2x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xui32>, tensor<i1>, tensor<2xi1>, tensor<3xi32>, tensor<2xf32>, tensor<f32>, tensor<i1>, tensor<4x2xi32>, tensor<2xi32>
}

// Pure ops are merged and removed, effects stay.
// CHECK: func.func @effects(%[[A:.*]]: tensor<4xf32>)
// CHECK-NEXT: stablehlo.custom_call @effect(%[[A]])
// CHECK-NEXT: %[[SQRT:.*]] = stablehlo.sqrt %[[A]]
// CHECK-NEXT: return %[[SQRT]], %[[SQRT]] :
func.func @effects(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.custom_call @pure(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @effect(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.sqrt %a : tensor<4xf32>
  %3 = stablehlo.sqrt %a : tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}
