// RUN: fp8-opt %s --fp8-fuse-elementwise --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// What a loop reads is computed once, before it.
// CHECK: func.func @outside
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: arith.addf
func.func @outside(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%carry = %y) -> (tensor<8xf32>) {
    %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%exp, %carry : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %n = arith.addf %a, %b : f32
      linalg.yield %n : f32
    } -> tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// A stack whose every slot is written need not be cleared, forwards or back.
// CHECK: func.func @stacks
// CHECK-NOT: linalg.fill
// CHECK: %[[UP:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK: %[[DOWN:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[UP]], %{{.*}} = %[[DOWN]])
func.func @stacks(%x: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zeros = arith.constant dense<0.0> : tensor<4x8xf32>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%up = %zeros, %down = %zeros) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = tensor.insert_slice %x into %up[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    %j = arith.subi %c3, %i : index
    %1 = tensor.insert_slice %x into %down[%j, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    scf.yield %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %r#0, %r#1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Not so if a slot is left as it was, or read before it is written.
// CHECK: func.func @partial
// CHECK: linalg.fill
// CHECK: scf.for
func.func @partial(%x: tensor<8xf32>) -> tensor<5x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zeros = arith.constant dense<0.0> : tensor<5x8xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%stack = %zeros) -> (tensor<5x8xf32>) {
    %0 = tensor.insert_slice %x into %stack[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<5x8xf32>
    scf.yield %0 : tensor<5x8xf32>
  }
  return %r : tensor<5x8xf32>
}
