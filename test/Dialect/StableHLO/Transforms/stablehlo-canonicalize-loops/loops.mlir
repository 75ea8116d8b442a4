// RUN: fp8-opt %s --stablehlo-canonicalize-loops --split-input-file | FileCheck %s

// An invariant carry (%w), a dead one (%d feeds only itself), two counters that
// go alike, and one that starts elsewhere and takes other steps: one counter is
// left.
// CHECK-LABEL: @carries
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<32x4xf32>)
// CHECK: %[[R:.*]]:2 = stablehlo.while(%[[I:.*]] = %{{.*}}, %[[H:.*]] = %[[X]]) : tensor<i32>, tensor<4xf32>
// CHECK: stablehlo.compare LT, %[[I]]
// CHECK: } do {
// CHECK-DAG: %[[M:.*]] = stablehlo.multiply %[[I]], %{{.*}} : tensor<i32>
// CHECK-DAG: %[[J:.*]] = stablehlo.add %[[M]], %{{.*}} : tensor<i32>
// CHECK-DAG: %[[P:.*]] = stablehlo.multiply %[[H]], %[[W]]
// CHECK-DAG: stablehlo.dynamic_slice %[[T]], %[[I]]
// CHECK-DAG: stablehlo.dynamic_slice %[[T]], %[[J]]
// CHECK: stablehlo.return %{{.*}}, %{{.*}} : tensor<i32>, tensor<4xf32>
// CHECK: return %[[R]]#1, %[[LAST:.*]] : tensor<4xf32>, tensor<i32>
func.func @carries(%x: tensor<4xf32>, %w: tensor<4xf32>, %t: tensor<32x4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %end = stablehlo.constant dense<10> : tensor<i32>
  %0:6 = stablehlo.while(%i = %zero, %j = %zero, %k = %seven, %h = %x, %c = %w, %d = %x) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %t, %j, %zero, sizes = [1, 4] : (tensor<32x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %b = stablehlo.dynamic_slice %t, %k, %zero, sizes = [1, 4] : (tensor<32x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %s = stablehlo.add %a, %b : tensor<1x4xf32>
    %r = stablehlo.reshape %s : (tensor<1x4xf32>) -> tensor<4xf32>
    %p = stablehlo.multiply %h, %c : tensor<4xf32>
    %q = stablehlo.add %p, %r : tensor<4xf32>
    %e = stablehlo.add %d, %c : tensor<4xf32>
    %ni = stablehlo.add %i, %one : tensor<i32>
    %nj = stablehlo.add %j, %one : tensor<i32>
    %nk = stablehlo.add %k, %two : tensor<i32>
    stablehlo.return %ni, %nj, %nk, %q, %c, %e : tensor<i32>, tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#3, %0#2 : tensor<4xf32>, tensor<i32>
}

// -----

// The counter after a loop is known: 7 + 2 * 10.
// CHECK-LABEL: @after
// CHECK: %[[C:.*]] = stablehlo.constant dense<27> : tensor<i32>
// CHECK: return %[[C]]
func.func @after(%x: tensor<4xf32>) -> tensor<i32> {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %end = stablehlo.constant dense<26> : tensor<i32>
  %0 = stablehlo.while(%i = %seven) : tensor<i32>
  cond {
    %1 = stablehlo.compare LE, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %two : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }
  return %0 : tensor<i32>
}

// -----

// A loop with a bound that is only known at run time keeps its condition.
// CHECK-LABEL: @dynamic
// CHECK-SAME: (%[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<4xf32>)
// CHECK: stablehlo.while(%[[I:.*]] = %{{.*}}, %[[H:.*]] = %[[X]]) : tensor<i32>, tensor<4xf32>
// CHECK: stablehlo.compare LT, %[[I]], %[[N]]
func.func @dynamic(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %m = %n, %h = %x) : tensor<i32>, tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.add %h, %h : tensor<4xf32>
    stablehlo.return %1, %m, %2 : tensor<i32>, tensor<i32>, tensor<4xf32>
  }
  return %0#2 : tensor<4xf32>
}

// -----

// No iteration, and one.
// CHECK-LABEL: @few
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>)
// CHECK-NOT: stablehlo.while
// CHECK: %[[Y:.*]] = stablehlo.dot_general %[[X]], %[[X]]
// CHECK: return %[[X]], %[[Y]]
func.func @few(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<4x4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.add %h, %h : tensor<4x4xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<4x4xf32>
  }
  %1:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<4x4xf32>
  cond {
    %2 = stablehlo.compare LT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.dot_general %h, %h, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<4x4xf32>
  }
  return %0#1, %1#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Rounds on elements are unrolled, nested ones too; a loop with a dot is not.
// CHECK-LABEL: @rounds
// CHECK-NOT: stablehlo.while
// CHECK-COUNT-6: stablehlo.add %{{.*}} : tensor<4xui32>
// CHECK-NOT: stablehlo.add %{{.*}} : tensor<4xui32>
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
func.func @rounds(%x: tensor<4xui32>, %m: tensor<4x4xf32>) -> (tensor<4xui32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<4xui32>
  cond {
    %1 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2:2 = stablehlo.while(%j = %zero, %g = %h) : tensor<i32>, tensor<4xui32>
    cond {
      %3 = stablehlo.compare LT, %j, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = stablehlo.add %j, %one : tensor<i32>
      %4 = stablehlo.add %g, %g : tensor<4xui32>
      stablehlo.return %3, %4 : tensor<i32>, tensor<4xui32>
    }
    stablehlo.return %1, %2#1 : tensor<i32>, tensor<4xui32>
  }
  %1:2 = stablehlo.while(%i = %zero, %h = %m) : tensor<i32>, tensor<4x4xf32>
  cond {
    %2 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.dot_general %h, %h, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<4x4xf32>
  }
  return %0#1, %1#1 : tensor<4xui32>, tensor<4x4xf32>
}

// -----

// JAX wraps negative indices; a counter has none. Its reverse, 3 - i, has none
// either, but 2 - i has.
// CHECK-LABEL: @wrapped
// CHECK: } do {
// CHECK: stablehlo.dynamic_slice %arg0, %[[I:[^ ]+]],
// CHECK: %[[R:.*]] = stablehlo.subtract %{{.*}}, %[[I]] : tensor<i32>
// CHECK: stablehlo.dynamic_slice %arg0, %[[R]],
// CHECK: %[[S:.*]] = stablehlo.select
// CHECK: stablehlo.dynamic_slice %arg0, %[[S]],
func.func @wrapped(%w: tensor<4x4096xf32>, %x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<1x4096xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %p1 = stablehlo.compare LT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %n1 = stablehlo.add %i, %four : tensor<i32>
    %s1 = stablehlo.select %p1, %n1, %i : tensor<i1>, tensor<i32>
    %a = stablehlo.dynamic_slice %w, %s1, %zero, sizes = [1, 4096] : (tensor<4x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
    %r = stablehlo.subtract %three, %i : tensor<i32>
    %p2 = stablehlo.compare LT, %r, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %n2 = stablehlo.add %r, %four : tensor<i32>
    %s2 = stablehlo.select %p2, %n2, %r : tensor<i1>, tensor<i32>
    %b = stablehlo.dynamic_slice %w, %s2, %zero, sizes = [1, 4096] : (tensor<4x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
    %q = stablehlo.subtract %two, %i : tensor<i32>
    %p3 = stablehlo.compare LT, %q, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %n3 = stablehlo.add %q, %four : tensor<i32>
    %s3 = stablehlo.select %p3, %n3, %q : tensor<i1>, tensor<i32>
    %c = stablehlo.dynamic_slice %w, %s3, %zero, sizes = [1, 4096] : (tensor<4x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
    %s = stablehlo.add %a, %b : tensor<1x4096xf32>
    %t = stablehlo.add %s, %c : tensor<1x4096xf32>
    %u = stablehlo.add %t, %h : tensor<1x4096xf32>
    %ni = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %ni, %u : tensor<i32>, tensor<1x4096xf32>
  }
  return %0#1 : tensor<1x4096xf32>
}

// -----

// Nor has a sum of the counters of two loops, whose product with a constant
// stays in the range of its type; 2 i + j - 1 has.
// CHECK-LABEL: @wrapped_sum
// CHECK: %[[TWICE:.*]] = stablehlo.multiply
// CHECK: %[[SUM:.*]] = stablehlo.add %[[TWICE]],
// CHECK: stablehlo.dynamic_slice %arg0, %[[SUM]],
// CHECK: %[[S:.*]] = stablehlo.select
// CHECK: stablehlo.dynamic_slice %arg0, %[[S]],
func.func @wrapped_sum(%w: tensor<4x4096xf32>, %x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<1x4096xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %twice = stablehlo.multiply %i, %two : tensor<i32>
    %2:2 = stablehlo.while(%j = %zero, %g = %h) : tensor<i32>, tensor<1x4096xf32>
    cond {
      %1 = stablehlo.compare LT, %j, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %k = stablehlo.add %twice, %j : tensor<i32>
      %p1 = stablehlo.compare LT, %k, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %n1 = stablehlo.add %k, %four : tensor<i32>
      %s1 = stablehlo.select %p1, %n1, %k : tensor<i1>, tensor<i32>
      %a = stablehlo.dynamic_slice %w, %s1, %zero, sizes = [1, 4096] : (tensor<4x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
      %l = stablehlo.subtract %k, %one : tensor<i32>
      %p2 = stablehlo.compare LT, %l, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %n2 = stablehlo.add %l, %four : tensor<i32>
      %s2 = stablehlo.select %p2, %n2, %l : tensor<i1>, tensor<i32>
      %b = stablehlo.dynamic_slice %w, %s2, %zero, sizes = [1, 4096] : (tensor<4x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
      %s = stablehlo.add %a, %b : tensor<1x4096xf32>
      %u = stablehlo.add %s, %g : tensor<1x4096xf32>
      %nj = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %nj, %u : tensor<i32>, tensor<1x4096xf32>
    }
    %ni = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %ni, %2#1 : tensor<i32>, tensor<1x4096xf32>
  }
  return %0#1 : tensor<1x4096xf32>
}

// -----

// An element of a table with constant differences follows from its index: here
// 7 - 2 (3 - i) = 2 i + 1.
// CHECK-LABEL: @progression
// CHECK-DAG: %[[TWO:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-DAG: %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK: stablehlo.while(%[[I:.*]] = %{{.*}}, %{{.*}} = %arg1)
// CHECK: %[[M:.*]] = stablehlo.multiply %[[I]], %[[TWO]]
// CHECK: %[[K:.*]] = stablehlo.add %[[M]], %[[ONE]]
// CHECK: stablehlo.dynamic_slice %arg0, %[[K]],
func.func @progression(%w: tensor<8x4096xf32>, %x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %twos = stablehlo.constant dense<2> : tensor<4xi32>
  %sevens = stablehlo.constant dense<7> : tensor<4xi32>
  %iota = stablehlo.iota dim = 0 : tensor<4xi32>
  %reversed = stablehlo.reverse %iota, dims = [0] : tensor<4xi32>
  %doubled = stablehlo.multiply %twos, %reversed : tensor<4xi32>
  %table = stablehlo.subtract %sevens, %doubled : tensor<4xi32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<1x4096xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %k1 = stablehlo.dynamic_slice %table, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %k = stablehlo.reshape %k1 : (tensor<1xi32>) -> tensor<i32>
    %a = stablehlo.dynamic_slice %w, %k, %zero, sizes = [1, 4096] : (tensor<8x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4096xf32>
    %u = stablehlo.add %a, %h : tensor<1x4096xf32>
    %ni = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %ni, %u : tensor<i32>, tensor<1x4096xf32>
  }
  return %0#1 : tensor<1x4096xf32>
}

// -----

// A dot of invariant values and what it needs leave the loop; a large sum, which
// is as cheap to compute again, stays, and so does what is behind a barrier.
// CHECK-LABEL: @invariant
// CHECK: %[[N:.*]] = stablehlo.negate
// CHECK: %[[D:.*]] = stablehlo.dot_general %[[N]]
// CHECK: stablehlo.while
// CHECK: stablehlo.return
// CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<64x64xf32>
// CHECK: stablehlo.optimization_barrier
// CHECK: stablehlo.dot_general
func.func @invariant(%w: tensor<64x64xf32>, %x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<64x64xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %n = stablehlo.negate %w : tensor<64x64xf32>
    %d = stablehlo.dot_general %n, %w, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = stablehlo.add %w, %w : tensor<64x64xf32>
    %b = stablehlo.optimization_barrier %w : tensor<64x64xf32>
    %e = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.add %d, %s : tensor<64x64xf32>
    %2 = stablehlo.add %1, %e : tensor<64x64xf32>
    %3 = stablehlo.add %2, %h : tensor<64x64xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<64x64xf32>
  }
  return %0#1 : tensor<64x64xf32>
}

// -----

// Rematerialization survives: what is computed behind a barrier is not merged
// with what was computed before.
// CHECK-LABEL: @remat
// CHECK-COUNT-2: stablehlo.tanh
func.func @remat(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%true) ({
    %1 = stablehlo.tanh %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %2 = stablehlo.optimization_barrier %x : tensor<4xf32>
  %3 = stablehlo.tanh %2 : tensor<4xf32>
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// `jnp.take(x, i, 0)`, whose only index is valid: a slice. Outside of loops,
// and with several indices, a gather stays.
// CHECK-LABEL: @gather
// CHECK: "stablehlo.gather"(%arg0, %arg1)
// CHECK: "stablehlo.gather"(%arg0, %arg2)
// CHECK: } do {
// CHECK-NEXT: %[[S:.*]] = stablehlo.dynamic_slice %arg0, %[[I:.*]], %{{.*}}, sizes = [1, 300]
// CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %[[S]] : (tensor<1x300xf32>) -> tensor<300xf32>
// CHECK-NEXT: stablehlo.add %{{.*}}, %[[R]]
func.func @gather(%x: tensor<5x300xf32>, %k: tensor<1xi32>, %l: tensor<2xi32>) -> (tensor<300xf32>, tensor<2x300xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<300xf32>
  %z = stablehlo.constant dense<0.0> : tensor<2x300xf32>
  %f = stablehlo.constant dense<4> : tensor<1xi32>
  %x0 = "stablehlo.gather"(%x, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 300>, indices_are_sorted = false}> : (tensor<5x300xf32>, tensor<1xi32>) -> tensor<300xf32>
  %0:3 = stablehlo.while(%i = %zero, %h = %x0, %s = %z) : tensor<i32>, tensor<300xf32>, tensor<2x300xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %j = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c = stablehlo.compare LE, %j, %f, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %v = stablehlo.reduce(%c init: %true) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %g = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 300>, indices_are_sorted = false}> : (tensor<5x300xf32>, tensor<1xi32>) -> tensor<300xf32>
    %m = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<i1>) -> tensor<300xi1>
    %w = stablehlo.select %m, %g, %nan : tensor<300xi1>, tensor<300xf32>
    %a = stablehlo.add %h, %w : tensor<300xf32>
    %q = "stablehlo.gather"(%x, %l) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 300>, indices_are_sorted = false}> : (tensor<5x300xf32>, tensor<2xi32>) -> tensor<2x300xf32>
    %t = stablehlo.add %s, %q : tensor<2x300xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %a, %t : tensor<i32>, tensor<300xf32>, tensor<2x300xf32>
  }
  return %0#1, %0#2 : tensor<300xf32>, tensor<2x300xf32>
}

// -----

// `x.at[4 - i].add(y)`; the last iteration of `x.at[i + 1].set(y)` is outside.
// CHECK-LABEL: @scatter
// CHECK: %[[U:.*]] = stablehlo.reshape %arg1 : (tensor<300xf32>) -> tensor<1x300xf32>
// CHECK: %[[J:.*]] = stablehlo.subtract
// CHECK: %[[O:.*]] = stablehlo.dynamic_slice %{{.*}}, %[[J]], %{{.*}}, sizes = [1, 300]
// CHECK: %[[S:.*]] = stablehlo.add %[[O]], %[[U]] : tensor<1x300xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[S]], %[[J]],
// CHECK: "stablehlo.scatter"
func.func @scatter(%x: tensor<5x300xf32>, %y: tensor<300xf32>) -> tensor<5x300xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<5x300xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %j = stablehlo.subtract %four, %i : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %j, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %2 = "stablehlo.scatter"(%h, %1, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %5 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<5x300xf32>, tensor<1xi32>, tensor<300xf32>) -> tensor<5x300xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %4 = "stablehlo.scatter"(%2, %3, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<5x300xf32>, tensor<1xi32>, tensor<300xf32>) -> tensor<5x300xf32>
    stablehlo.return %n, %4 : tensor<i32>, tensor<5x300xf32>
  }
  return %0#1 : tensor<5x300xf32>
}

// -----

// After quantization: a scaled tensor has no elements to count, and a dot of
// such ones is not unrolled. The weight is the same in every iteration.
// CHECK-LABEL: @scaled_in_loop
// CHECK: stablehlo.while
// CHECK: } do {
// CHECK: fp8.quantize
// CHECK: fp8.dot_general
// CHECK-NOT: fp8.dot_general
func.func @scaled_in_loop(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %s: tensor<f32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<64x64xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %half = stablehlo.multiply %w, %w : tensor<64x64xf32>
    %qw = fp8.quantize %half, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
    %qh = fp8.quantize %h, %s, %s rounding = nearest_even, overflow = saturate
      : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
    %1 = fp8.dot_general %qh, %qw, contracting_dims = [1] x [0] {accumulator = f32}
      : (!fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<64x64xf32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<64x64xf32>
  }
  return %0#1 : tensor<64x64xf32>
}

// -----

// As JAX writes a scan over `arange(3)` whose body reads `w[i]`: the loop stacks
// the index and the weight for the loop that reads them backwards.
// CHECK-LABEL: @indexed
// CHECK-SAME: (%[[W:.*]]: tensor<3x64x64xf32>, %[[X:.*]]: tensor<64x64xf32>)
// CHECK: stablehlo.while(%[[I:[a-zA-Z0-9_]+]] = {{.*}}, %{{.*}} = %[[X]]) : tensor<i32>, tensor<64x64xf32>
// CHECK: } do {
// CHECK: stablehlo.dynamic_slice %[[W]], %[[I]],
// CHECK-NOT: dynamic_update_slice
// CHECK: stablehlo.while(%[[J:[a-zA-Z0-9_]+]] =
// CHECK: } do {
// CHECK: %[[TWO:.*]] = stablehlo.subtract %{{.*}}, %[[J]]
// CHECK: stablehlo.dynamic_slice %[[W]], %[[TWO]],
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %{{.*}}, %[[TWO]],
func.func @indexed(%w: tensor<3x64x64xf32>, %x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<3x64x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<3xi32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x64x64xf32>
  %range = stablehlo.iota dim = 0 : tensor<3xi32>
  %0:4 = stablehlo.while(%i = %zero, %h = %x, %is = %none, %ws = %empty) : tensor<i32>, tensor<64x64xf32>, tensor<3xi32>, tensor<3x64x64xf32>
  cond {
    %c = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %e = stablehlo.dynamic_slice %range, %i, sizes = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>
    %k = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>
    %negative = stablehlo.compare LT, %k, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %wrapped = stablehlo.add %k, %three : tensor<i32>
    %at = stablehlo.select %negative, %wrapped, %k : tensor<i1>, tensor<i32>
    %part = stablehlo.dynamic_slice %w, %at, %zero, %zero, sizes = [1, 64, 64] : (tensor<3x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
    %layer = stablehlo.reshape %part : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
    %next = stablehlo.dot_general %h, %layer, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %atPart = stablehlo.broadcast_in_dim %at, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %is2 = stablehlo.dynamic_update_slice %is, %atPart, %i : (tensor<3xi32>, tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
    %layerPart = stablehlo.broadcast_in_dim %layer, dims = [1, 2] : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
    %ws2 = stablehlo.dynamic_update_slice %ws, %layerPart, %i, %zero, %zero : (tensor<3x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x64x64xf32>
    %i2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i2, %next, %is2, %ws2 : tensor<i32>, tensor<64x64xf32>, tensor<3xi32>, tensor<3x64x64xf32>
  }
  %1:3 = stablehlo.while(%j = %zero, %g = %0#1, %gs = %empty) : tensor<i32>, tensor<64x64xf32>, tensor<3x64x64xf32>
  cond {
    %c = stablehlo.compare LT, %j, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %back = stablehlo.subtract %two, %j : tensor<i32>
    %e = stablehlo.dynamic_slice %0#2, %back, sizes = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>
    %k = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>
    %part = stablehlo.dynamic_slice %0#3, %back, %zero, %zero, sizes = [1, 64, 64] : (tensor<3x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
    %layer = stablehlo.reshape %part : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
    %next = stablehlo.dot_general %g, %layer, contracting_dims = [1] x [1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %gPart = stablehlo.broadcast_in_dim %next, dims = [1, 2] : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
    %gs2 = stablehlo.dynamic_update_slice %gs, %gPart, %k, %zero, %zero : (tensor<3x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x64x64xf32>
    %j2 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j2, %next, %gs2 : tensor<i32>, tensor<64x64xf32>, tensor<3x64x64xf32>
  }
  return %1#1, %1#2 : tensor<64x64xf32>, tensor<3x64x64xf32>
}

// -----

// An invariant tensor is quantized once, however large it is.
// CHECK-LABEL: @quantized
// CHECK: fp8.amax
// CHECK: fp8.compute_scale
// CHECK: fp8.quantize
// CHECK: stablehlo.while
// CHECK-NOT: fp8.quantize
// CHECK: fp8.dot_general
func.func @quantized(%w: tensor<64x64xf32>, %x: !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<64x64xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %amax = fp8.amax %w : tensor<64x64xf32> -> tensor<f32>
    %scale, %quantizer = fp8.compute_scale %amax {format = f8E4M3FN, rule = #fp8.scale_rule<exact>} : tensor<f32> -> tensor<f32>
    %q = fp8.quantize %w, %scale, %quantizer rounding = nearest_even, overflow = saturate
      : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>
    %cast = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %factor = stablehlo.broadcast_in_dim %cast, dims = [] : (tensor<f32>) -> tensor<64x64xf32>
    %d = fp8.dot_general %x, %q, contracting_dims = [1] x [0] {accumulator = f32}
      : (!fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>, !fp8.scaled<64x64xf8E4M3FN, tile = [*, *], scale = f32>) -> tensor<64x64xf32>
    %1 = stablehlo.multiply %d, %factor : tensor<64x64xf32>
    %2 = stablehlo.add %sum, %1 : tensor<64x64xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<64x64xf32>
  }
  return %0#1 : tensor<64x64xf32>
}

// -----

// An array of one element that counts is no counter.
// CHECK-LABEL: @array_that_counts
// CHECK: stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[N:.*]] = %{{.*}}) : tensor<i32>, tensor<4xf32>, tensor<1xi32>
// CHECK: stablehlo.convert %[[N]] : (tensor<1xi32>) -> tensor<1xf32>
func.func @array_that_counts(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<32> : tensor<i32>
  %ones = stablehlo.constant dense<1> : tensor<1xi32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %n = %ones) : tensor<i32>, tensor<4xf32>, tensor<1xi32>
  cond {
    %1 = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.convert %n : (tensor<1xi32>) -> tensor<1xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %4 = stablehlo.multiply %y, %3 : tensor<4xf32>
    %5 = stablehlo.add %n, %ones : tensor<1xi32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %4, %5 : tensor<i32>, tensor<4xf32>, tensor<1xi32>
  }
  return %0#1 : tensor<4xf32>
}

// A loop over layers returns the weights that it slices: their stack is the
// array. Those of another order are a copy.
// CHECK-LABEL: @copies
// CHECK-SAME: (%[[W:.*]]: tensor<4x8x8xf32>
// CHECK: %[[LOOP:.*]]:3 = stablehlo.while
// CHECK: return %[[LOOP]]#1, %[[W]], %[[LOOP]]#2
func.func @copies(%w: tensor<4x8x8xf32>, %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x8x8xf32>
  %loop:4 = stablehlo.while(%i = %zero, %y = %x, %copy = %empty, %reversed = %empty) : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
  cond {
    %less = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %slice = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %layer = stablehlo.reshape %slice : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %next = stablehlo.dot_general %y, %layer, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %slot = stablehlo.broadcast_in_dim %layer, dims = [1, 2] : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %copied = stablehlo.dynamic_update_slice %copy, %slot, %i, %zero, %zero : (tensor<4x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x8xf32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %last = stablehlo.dynamic_update_slice %reversed, %slot, %back, %zero, %zero : (tensor<4x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x8xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %copied, %last : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
  }
  return %loop#1, %loop#2, %loop#3 : tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
}
