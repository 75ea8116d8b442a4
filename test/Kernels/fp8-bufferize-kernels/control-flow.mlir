// RUN: fp8-opt %s --fp8-form-kernels --fp8-bufferize-kernels --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-kernels --split-input-file | FileCheck %s --check-prefix=PLANNED

#id = affine_map<(i, j) -> (i, j)>

// A scan: one buffer for the carry, the stack of weights is read in place, the
// stack of results is written in place.
// CHECK: fp8.schedule @main(%[[W:[^:]*]]: memref<4x8x8xf32>, %[[X:[^:]*]]: memref<8x8xf32>,
// CHECK: %[[CARRY:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[X]], write %[[CARRY]]) label = "copy{{.*}}"
// CHECK: %[[STACK:.*]] = memref.alloc() : memref<4x8x8xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:   %[[LAYER:.*]] = fp8.subbuffer %[[W]][%{{.*}}] : memref<4x8x8xf32> to memref<8x8xf32>
// CHECK:   %[[NEW:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[CARRY]], read %[[LAYER]], write %[[NEW]])
// CHECK:   %[[SLOT:.*]] = fp8.subbuffer %[[STACK]][%{{.*}}] : memref<4x8x8xf32> to memref<8x8xf32>
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[NEW]], write %[[SLOT]]) label = "copy{{.*}}"
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[NEW]], write %[[CARRY]]) label = "copy{{.*}}"
// CHECK: }

// The kernel writes into the stack, which is the result itself; there is one
// copy an iteration, to the carry.
// PLANNED: fp8.schedule @main(%{{[^:]*}}: memref<0xi8>, %[[W:[^:]*]]: memref<4x8x8xf32>, %[[X:[^:]*]]: memref<8x8xf32>, %[[LAST:[^:]*]]: memref<8x8xf32> {{.*}}, %[[STACK:[^:]*]]: memref<4x8x8xf32>
// PLANNED: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[X]], write %[[LAST]]) label = "copy{{.*}}"
// PLANNED: scf.for
// PLANNED:   %[[LAYER:.*]] = fp8.subbuffer %[[W]]
// PLANNED:   %[[SLOT:.*]] = fp8.subbuffer %[[STACK]]
// PLANNED:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[LAST]], read %[[LAYER]], write %[[SLOT]])
// PLANNED:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[SLOT]], write %[[LAST]]) label = "copy{{.*}}"
// PLANNED-NEXT: }
func.func @main(%w: tensor<4x8x8xf32>, %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %none = tensor.empty() : tensor<4x8x8xf32>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%carry = %x, %stack = %none) -> (tensor<8x8xf32>, tensor<4x8x8xf32>) {
    %layer = tensor.extract_slice %w[%i, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<4x8x8xf32> to tensor<8x8xf32>
    %e = tensor.empty() : tensor<8x8xf32>
    %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%carry, %layer : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      linalg.yield %m : f32
    } -> tensor<8x8xf32>
    %next = tensor.insert_slice %y into %stack[%i, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<8x8xf32> into tensor<4x8x8xf32>
    scf.yield %y, %next : tensor<8x8xf32>, tensor<4x8x8xf32>
  }
  return %r#0, %r#1 : tensor<8x8xf32>, tensor<4x8x8xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// A branch that leaves the state as it is costs nothing; the other updates it
// in place.
// PLANNED: fp8.schedule @main(%{{[^:]*}}: memref<0xi8>, %[[P:[^:]*]]: memref<64xf32> {fp8.path = "p"}, %[[C:[^:]*]]: memref<i1>)
// PLANNED: %[[CONDITION:.*]] = memref.load %[[C]][] : memref<i1>
// PLANNED: scf.if %[[CONDITION]] {
// PLANNED-NEXT: fp8.launch @kernel_{{[0-9a-f]+}}(read %[[P]], write %[[P]])
// PLANNED-NOT: copy
// PLANNED: fp8.return
func.func @main(%p: tensor<64xf32> {fp8.path = "p"}, %c: tensor<i1>) -> (tensor<64xf32> {fp8.path = "q", fp8.state = "p"}) {
  %condition = tensor.extract %c[] : tensor<i1>
  %new = scf.if %condition -> (tensor<64xf32>) {
    %e = tensor.empty() : tensor<64xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<64xf32>
    scf.yield %0 : tensor<64xf32>
  } else {
    scf.yield %p : tensor<64xf32>
  }
  return %new : tensor<64xf32>
}

// -----

// Carries that change places pass through a temporary; the condition is read
// from its buffer.
// CHECK: scf.while : () -> () {
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[COUNT:[^,]*]], write %[[FLAG:[^)]*]])
// CHECK:   %[[GO:.*]] = memref.load %[[FLAG]][] : memref<i1>
// CHECK:   scf.condition(%[[GO]])
// CHECK: } do {
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[B:[^,]*]], write %[[T1:[^)]*]]) label = "copy{{.*}}"
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[A:[^,]*]], write %[[T2:[^)]*]]) label = "copy{{.*}}"
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[T1]], write %[[A]]) label = "copy{{.*}}"
// CHECK:   fp8.launch @kernel_{{[0-9a-f]+}}(read %[[T2]], write %[[B]]) label = "copy{{.*}}"
// CHECK:   scf.yield
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %r:3 = scf.while (%x = %a, %y = %b, %k = %n) : (tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<i32>) {
    %e = tensor.empty() : tensor<i1>
    %more = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%k : tensor<i32>) outs(%e : tensor<i1>) {
    ^bb0(%v: i32, %o: i1):
      %zero = arith.constant 0 : i32
      %p = arith.cmpi sgt, %v, %zero : i32
      linalg.yield %p : i1
    } -> tensor<i1>
    %go = tensor.extract %more[] : tensor<i1>
    scf.condition(%go) %x, %y, %k : tensor<8xf32>, tensor<8xf32>, tensor<i32>
  } do {
  ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>, %k: tensor<i32>):
    %e = tensor.empty() : tensor<i32>
    %less = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%k : tensor<i32>) outs(%e : tensor<i32>) {
    ^bb0(%v: i32, %o: i32):
      %one = arith.constant 1 : i32
      %p = arith.subi %v, %one : i32
      linalg.yield %p : i32
    } -> tensor<i32>
    scf.yield %y, %x, %less : tensor<8xf32>, tensor<8xf32>, tensor<i32>
  }
  return %r#0 : tensor<8xf32>
}
