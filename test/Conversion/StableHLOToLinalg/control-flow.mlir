// RUN: fp8-opt %s --convert-stablehlo-to-scf --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-structure --split-input-file | FileCheck %s --check-prefix=FORM

// Layers read their weight from a stack and write a row of another one.
// CHECK-LABEL: @layers
// CHECK-SAME: (%[[W:.*]]: tensor<4x8x8xf32>, %[[X:.*]]: tensor<2x8xf32>, %[[OUT:.*]]: tensor<4x2x8xf32>)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[R:.*]]:2 = scf.for %[[I:[^ ]+]] = %[[C0]] to %[[C4]] step %[[C1]] iter_args(%[[H:.*]] = %[[X]], %[[S:.*]] = %[[OUT]])
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[W]][%[[I]], 0, 0] [1, 8, 8] [1, 1, 1] : tensor<4x8x8xf32> to tensor<8x8xf32>
// CHECK: %[[D:.*]] = stablehlo.dot_general %[[H]], %[[PART]]
// CHECK: %[[N:.*]] = tensor.insert_slice %[[H]] into %[[S]][%[[I]], 0, 0] [1, 2, 8] [1, 1, 1] : tensor<2x8xf32> into tensor<4x2x8xf32>
// CHECK: scf.yield %[[D]], %[[N]]
// CHECK: return %[[R]]#0, %[[R]]#1
// FORM-LABEL: @layers
// FORM: scf.for
// FORM: tensor.extract_slice
// FORM: linalg.generic
// FORM: tensor.insert_slice
func.func @layers(%w: tensor<4x8x8xf32>, %x: tensor<2x8xf32>, %out: tensor<4x2x8xf32>) -> (tensor<2x8xf32>, tensor<4x2x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %h = %x, %s = %out) : tensor<i32>, tensor<2x8xf32>, tensor<4x2x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.dot_general %h, %2, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %4 = stablehlo.broadcast_in_dim %h, dims = [1, 2] : (tensor<2x8xf32>) -> tensor<1x2x8xf32>
    %5 = stablehlo.dynamic_update_slice %s, %4, %i, %zero, %zero : (tensor<4x2x8xf32>, tensor<1x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x2x8xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %3, %5 : tensor<i32>, tensor<2x8xf32>, tensor<4x2x8xf32>
  }
  return %0#1, %0#2 : tensor<2x8xf32>, tensor<4x2x8xf32>
}

// -----

// The counter runs down from 9 by 2 (9, 7, 5, 3): the offset is 3 * i - 9, and
// its last value is known after the loop. Unsigned stacks are views too.
// CHECK-LABEL: @down
// CHECK: scf.for %[[I:[^ ]+]] = %{{.*}} to %[[TRIPS:.*]] step
// CHECK-DAG: %[[SCALE:.*]] = arith.constant -6 : index
// CHECK-DAG: %[[OFFSET:.*]] = arith.constant 18 : index
// CHECK-DAG: %[[M:.*]] = arith.muli %[[I]], %[[SCALE]] : index
// CHECK: %[[A:.*]] = arith.addi %[[M]], %[[OFFSET]] : index
// CHECK: tensor.extract_slice %{{.*}}[%[[A]], 0] [2, 5] [1, 1] : tensor<20x5xui32> to tensor<2x5xui32>
// CHECK: %[[LAST:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK: return %[[LAST]]
// FORM-LABEL: @down
// FORM: tensor.extract_slice {{.*}} : tensor<20x5xi32> to tensor<2x5xi32>
func.func @down(%w: tensor<20x5xui32>, %x: tensor<2x5xui32>) -> (tensor<i32>, tensor<2x5xui32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %0:2 = stablehlo.while(%i = %nine, %h = %x) : tensor<i32>, tensor<2x5xui32>
  cond {
    %1 = stablehlo.compare LE, %three, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %a = stablehlo.multiply %three, %i : tensor<i32>
    %b = stablehlo.subtract %a, %nine : tensor<i32>
    %1 = stablehlo.dynamic_slice %w, %b, %zero, sizes = [2, 5] : (tensor<20x5xui32>, tensor<i32>, tensor<i32>) -> tensor<2x5xui32>
    %3 = stablehlo.add %h, %1 : tensor<2x5xui32>
    %6 = stablehlo.subtract %i, %two : tensor<i32>
    stablehlo.return %6, %3 : tensor<i32>, tensor<2x5xui32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<2x5xui32>
}

// -----

// What might be clamped (the last start is 4 of at most 3) stays a kernel, and
// so does what is not contiguous. Kernels read the counter from a tensor.
// CHECK-LABEL: @kernels
// CHECK: scf.for %[[I:[^ ]+]] = %
// CHECK: %[[V:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK: %[[T:.*]] = tensor.from_elements %[[V]] : tensor<i32>
// CHECK: stablehlo.dynamic_slice %{{.*}}, %[[T]]
// CHECK: stablehlo.dynamic_slice
// FORM-LABEL: @kernels
// FORM: scf.for
// FORM: tensor.from_elements
// FORM: linalg.generic
// FORM: scf.for
// FORM: } {fp8.irregular}
func.func @kernels(%w: tensor<5x4xf32>, %x: tensor<2x4xf32>, %z: tensor<5x2xf32>) -> (tensor<2x4xf32>, tensor<5x2xf32>, tensor<5x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %h = %x, %k = %z, %s = %w) : tensor<i32>, tensor<2x4xf32>, tensor<5x2xf32>, tensor<5x4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %w, %i, %zero, sizes = [2, 4] : (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %2 = stablehlo.add %1, %h : tensor<2x4xf32>
    %3 = stablehlo.dynamic_slice %w, %zero, %i, sizes = [5, 2] : (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x2xf32>
    %4 = stablehlo.add %3, %k : tensor<5x2xf32>
    %5 = stablehlo.dynamic_update_slice %s, %2, %i, %zero : (tensor<5x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %2, %4, %5 : tensor<i32>, tensor<2x4xf32>, tensor<5x2xf32>, tensor<5x4xf32>
  }
  return %0#1, %0#2, %0#3 : tensor<2x4xf32>, tensor<5x2xf32>, tensor<5x4xf32>
}

// -----

// Nested loops: each offset has its own counter.
// CHECK-LABEL: @nested
// CHECK: scf.for %[[I:[^ ]+]] = %
// CHECK: scf.for %[[J:[^ ]+]] = %
// CHECK: tensor.extract_slice %{{.*}}[%[[I]], %[[J]], 0] [1, 1, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<8xf32>
// FORM-LABEL: @nested
// FORM: scf.for
// FORM: scf.for
// FORM: tensor.extract_slice
func.func @nested(%w: tensor<3x4x8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2:2 = stablehlo.while(%j = %zero, %g = %h) : tensor<i32>, tensor<8xf32>
    cond {
      %1 = stablehlo.compare LT, %j, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.dynamic_slice %w, %i, %j, %zero, sizes = [1, 1, 8] : (tensor<3x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x8xf32>
      %3 = stablehlo.reshape %1 : (tensor<1x1x8xf32>) -> tensor<8xf32>
      %4 = stablehlo.add %g, %3 : tensor<8xf32>
      %6 = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %6, %4 : tensor<i32>, tensor<8xf32>
    }
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %2#1 : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}

// -----

// CHECK-LABEL: @condition
// CHECK: %[[R:.*]]:2 = scf.while (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK: %[[C:.*]] = stablehlo.compare LT, %[[A]], %[[B]]
// CHECK: %[[P:.*]] = tensor.extract %[[C]][] : tensor<i1>
// CHECK: scf.condition(%[[P]]) %[[A]], %[[B]]
// CHECK: ^bb0(%[[A2:.*]]: tensor<f32>, %[[B2:.*]]: tensor<f32>):
// CHECK: %[[S:.*]] = stablehlo.add %[[A2]], %[[B2]]
// CHECK: scf.yield %[[S]], %[[B2]]
// FORM-LABEL: @condition
// FORM: scf.while
// FORM: linalg.generic
// FORM: tensor.extract
// FORM: scf.condition
func.func @condition(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0:2 = stablehlo.while(%a = %x, %b = %y) : tensor<f32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1, %b : tensor<f32>, tensor<f32>
  }
  return %0#0 : tensor<f32>
}

// -----

// The step may wrap around, so that nothing is known of the trips.
// CHECK-LABEL: @wraps
// CHECK: scf.while
// FORM-LABEL: @wraps
func.func @wraps() -> tensor<i8> {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %step = stablehlo.constant dense<100> : tensor<i8>
  %end = stablehlo.constant dense<120> : tensor<i8>
  %0 = stablehlo.while(%a = %zero) : tensor<i8>
  cond {
    %1 = stablehlo.compare LT, %a, %end, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %a, %step : tensor<i8>
    stablehlo.return %1 : tensor<i8>
  }
  return %0 : tensor<i8>
}

// -----

// CHECK-LABEL: @branches
// CHECK: %[[P:.*]] = tensor.extract %{{.*}}[] : tensor<i1>
// CHECK: %[[A:.*]] = scf.if %[[P]] -> (tensor<4xf32>) {
// CHECK: scf.yield
// CHECK: } else {
// CHECK: scf.yield
// CHECK: %[[N:.*]] = tensor.extract %{{.*}}[] : tensor<i32>
// CHECK: %[[I:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK: scf.index_switch %[[I]] -> tensor<4xf32>
// CHECK: case 0 {
// CHECK: stablehlo.sine
// CHECK: case 1 {
// CHECK: stablehlo.cosine
// CHECK: default {
// CHECK: stablehlo.abs
// FORM-LABEL: @branches
// FORM: scf.if
// FORM: scf.index_switch
func.func @branches(%p: tensor<i1>, %i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %2 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %0 : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.cosine %0 : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.abs %0 : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A slice that nothing reads.
// CHECK-LABEL: @unused
// CHECK: scf.for
// CHECK-NOT: stablehlo.dynamic_slice
// CHECK: stablehlo.add
// FORM-LABEL: @unused
// FORM: scf.for
func.func @unused(%stack: tensor<4x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %unused = stablehlo.dynamic_slice %stack, %i, %zero, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %2 = stablehlo.add %y, %y : tensor<8x8xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
