// RUN: fp8-opt %s --fp8-verify-graph --split-input-file --verify-diagnostics

// A removed edge.
fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = []
fp8.schedule @missing(%arena: memref<64xi8>, %x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) arena_bytes = 64
    attributes {fp8.graph = {edges = 1, nodes = 3, path = 2}} {
  // expected-note@below {{node 0}}
  fp8.launch @k(read %x, write %y) {fp8.node = 0, fp8.after = array<i64>} : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @k(read %x, write %z) {fp8.node = 1, fp8.after = array<i64>} : (memref<8xf32>, memref<8xf32>) -> ()
  // expected-error@below {{expected a path from node 0 to node 2: both access the same bytes, and one writes}}
  fp8.launch @k(read %y, write %z) {fp8.node = 2, fp8.after = array<i64: 1>} : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

// An edge may follow from others.
fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = []
fp8.schedule @implied(%arena: memref<64xi8>, %x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) arena_bytes = 64
    attributes {fp8.graph = {edges = 2, nodes = 3, path = 3}} {
  fp8.launch @k(read %x, write %y) {fp8.node = 0, fp8.after = array<i64>} : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @k(read %x, write %z) {fp8.node = 1, fp8.after = array<i64: 0>} : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.launch @k(read %y, write %z) {fp8.node = 2, fp8.after = array<i64: 1>} : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// -----

// A result that is copied too early.
fp8.kernel @k(read %x: memref<8xf32>, write %y: memref<f32>) domain = []
// expected-error@below {{expected a path from node 0 to node 1}}
fp8.schedule @result(%arena: memref<64xi8>, %x: memref<8xf32>, %loss: memref<f32> {fp8.output, fp8.node = 1, fp8.after = array<i64>})
    arena_bytes = 64 attributes {fp8.graph = {edges = 0, nodes = 2, path = 1}} {
  // expected-note@below {{node 0}}
  fp8.launch @k(read %x, write %loss) {fp8.node = 0, fp8.after = array<i64>} : (memref<8xf32>, memref<f32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(update %x: memref<8xf32>) domain = []
fp8.schedule @later(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64
    attributes {fp8.graph = {edges = 1, nodes = 2, path = 2}} {
  // expected-error@below {{expected an earlier node of the same block but got 1}}
  fp8.launch @k(update %x) {fp8.node = 0, fp8.after = array<i64: 1>} : (memref<8xf32>) -> ()
  fp8.launch @k(update %x) {fp8.node = 1, fp8.after = array<i64>} : (memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(update %x: memref<8xf32>) domain = []
fp8.schedule @twice(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64
    attributes {fp8.graph = {edges = 1, nodes = 2, path = 2}} {
  fp8.launch @k(update %x) {fp8.node = 0, fp8.after = array<i64>} : (memref<8xf32>) -> ()
  // expected-error@below {{expected a node with a number of its own but got 0 again}}
  fp8.launch @k(update %x) {fp8.node = 0, fp8.after = array<i64: 0>} : (memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(update %x: memref<8xf32>) domain = []
fp8.schedule @none(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64
    attributes {fp8.graph = {edges = 0, nodes = 1, path = 1}} {
  // expected-error@below {{expected 'fp8.node' and 'fp8.after', as every node of a graph with 'fp8.graph' has them}}
  fp8.launch @k(update %x) : (memref<8xf32>) -> ()
  fp8.return
}

// -----

fp8.kernel @k(update %x: memref<8xf32>) domain = []
fp8.schedule @loop(%arena: memref<64xi8>, %x: memref<8xf32>) arena_bytes = 64
    attributes {fp8.graph = {edges = 0, nodes = 1, path = 1}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@below {{expected the loops of a graph with 'fp8.graph' to be counted by the GPU or expanded}}
  scf.for %i = %c0 to %c1 step %c1 {
    fp8.launch @k(update %x) {fp8.node = 0, fp8.after = array<i64>} : (memref<8xf32>) -> ()
  }
  fp8.return
}
