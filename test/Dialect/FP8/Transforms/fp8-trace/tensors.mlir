// RUN: fp8-opt %s --fp8-trace --split-input-file | FileCheck %s

!x8 = !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
!rows8 = !fp8.scaled<4x32xf8E4M3FN, tile = [1, *], scale = f32>
!w8 = !fp8.scaled<32x16xf8E4M3FN, tile = [*, *], scale = f32>

// Every quantized tensor has a row of f64 numbers, called as the dots that read
// it say; the first in the alphabet wins. Quantized once more for a wgrad dot
// it is a second tensor; that the dot is one its role says, not the names. The
// dots' attributes go.
// CHECK-LABEL: func.func @names(
// CHECK-SAME: -> (tensor<4x16xf32> {fp8.kind = "output", fp8.path = "y"},
// CHECK-SAME: tensor<11xf64> {fp8.kind = "trace_quantization", fp8.path = "trace.quantization.p['a'].activation"},
// CHECK-SAME: tensor<11xf64> {fp8.kind = "trace_quantization", fp8.path = "trace.quantization.p['a'].activation.wgrad"})
// CHECK: %[[X8:.*]] = fp8.quantize %[[X:[^,]*]],
// CHECK: fp8.unpack %[[X8]]
// CHECK: fp8.dequantize %[[X8]]
// Elements are reduced to rows, and these to numbers, all in one op each.
// CHECK: %[[SUMS:.*]]:8 = stablehlo.reduce
// CHECK-SAME: dimensions = [0, 1]
// CHECK: stablehlo.maximum
// CHECK: stablehlo.add
// CHECK: stablehlo.concatenate {{.*}}-> tensor<11xf64>
// CHECK-NOT: fp8.tensors
func.func @names(%x: tensor<4x32xf32>, %w: !w8, %scale: tensor<f32>, %scales: tensor<4x1xf32>)
    -> (tensor<4x16xf32> {fp8.kind = "output", fp8.path = "y"}) {
  %x8 = fp8.quantize %x, %scale, %scale rounding = nearest_even, overflow = saturate : tensor<4x32xf32> -> !x8
  %rows = fp8.quantize %x, %scales, %scales rounding = nearest_even, overflow = saturate : tensor<4x32xf32> -> !rows8
  %0 = fp8.dot_general %x8, %w, contracting_dims = [1] x [0] {accumulator = f32, fp8.tensors = #fp8.dot_tensors<role = forward, lhs = activation, rhs = weight, lhs_name = "p['b'].activation", rhs_name = "p['b'].weight">}
      : (!x8, !w8) -> tensor<4x16xf32>
  %1 = fp8.dot_general %x8, %w, contracting_dims = [1] x [0] {accumulator = f32, fp8.tensors = #fp8.dot_tensors<role = forward, lhs = activation, rhs = weight, lhs_name = "p['a'].activation", rhs_name = "p['a'].weight">}
      : (!x8, !w8) -> tensor<4x16xf32>
  %2 = fp8.dot_general %rows, %w, contracting_dims = [1] x [0] {accumulator = f32, fp8.tensors = #fp8.dot_tensors<role = wgrad, lhs = activation, rhs = gradient, lhs_name = "p['a'].activation", rhs_name = "p['y'].weight">}
      : (!rows8, !w8) -> tensor<4x16xf32>
  %3 = stablehlo.add %0, %1 : tensor<4x16xf32>
  %4 = stablehlo.add %3, %2 : tensor<4x16xf32>
  return %4 : tensor<4x16xf32>
}

// -----

!x8 = !fp8.scaled<4x32xf8E5M2, tile = [*, *], scale = f32>

// What no dot reads has the path of the result that it becomes.
// CHECK-LABEL: func.func @stored(
// CHECK-SAME: fp8.path = "trace.quantization.opt['m']"
func.func @stored(%m: !x8 {fp8.role = "state", fp8.kind = "moment1", fp8.path = "opt['m']"},
                  %g: tensor<4x32xf32> {fp8.role = "batch", fp8.path = "g"}, %take: tensor<i1> {fp8.role = "batch", fp8.path = "take"})
    -> (!x8 {fp8.state = "opt['m']", fp8.path = "result"}) {
  %amax = fp8.amax %g : tensor<4x32xf32> -> tensor<f32>
  %scale, %quantizer = fp8.compute_scale %amax {rule = #fp8.scale_rule<exact>, format = f8E5M2} : tensor<f32> -> tensor<f32>
  %0 = fp8.quantize %g, %scale, %quantizer rounding = nearest_even, overflow = saturate : tensor<4x32xf32> -> !x8
  return %0 : !x8
}

// -----

!x8 = !fp8.scaled<2048x96x64xf8E4M3FN, tile = [1, 1, 32], scale = f8E8M0FNU>

// A large tensor is reduced row by row first; the scales of E8M0 are the
// quantizers' reciprocals.
// CHECK-LABEL: func.func @large(
// CHECK: stablehlo.reduce({{.*}}) {{.*}}dimensions = [2]
// CHECK: stablehlo.reduce({{.*}}) {{.*}}dimensions = [0, 1]
// CHECK: stablehlo.divide %{{.*}}, %[[Q:[^ ]*]] : tensor<2048x96x2xf32>
func.func @large(%x: tensor<2048x96x64xbf16>, %scale: tensor<2048x96x2xf8E8M0FNU>, %q: tensor<2048x96x2xf32>) -> (!x8 {fp8.path = "x", fp8.kind = "output"}) {
  %0 = fp8.quantize %x, %scale, %q rounding = nearest_even, overflow = saturate : tensor<2048x96x64xbf16> -> !x8
  return %0 : !x8
}

// -----

!x8 = !fp8.scaled<4x256xf8E4M3FN, tile = [1, 128], scale = f32>

// Values that a range expansion has changed are told of as they were before it;
// only what saturates is told of those behind it.
// CHECK-LABEL: func.func @expanded(
// CHECK-SAME: %[[M:[^:]*]]: tensor<4x256xf32>, %[[C:[^:]*]]: tensor<4x2xf32>, %[[E:[^:]*]]: tensor<4x2xf32>
// CHECK: %[[WIDE:.*]] = fp8.expand_range %[[M]], %[[C]], %[[E]]
// CHECK: %[[M8:.*]] = fp8.quantize %[[WIDE]],
// CHECK: %[[DECODED:.*]] = fp8.dequantize %[[M8]]
// CHECK: %[[BACK:.*]] = fp8.restore_range %[[DECODED]], %[[C]], %[[E]] tile = [1, 128]
// CHECK: stablehlo.compare NE, %[[M]],
// CHECK: %[[SIZE:.*]] = stablehlo.abs %[[WIDE]]
// CHECK: stablehlo.compare GT, %[[SIZE]],
// CHECK: stablehlo.is_finite %[[WIDE]]
// CHECK: %[[X:.*]] = stablehlo.convert %[[M]] : (tensor<4x256xf32>) -> tensor<4x256xf64>
// CHECK: %[[Y:.*]] = stablehlo.convert %[[BACK]] : (tensor<4x256xf32>) -> tensor<4x256xf64>
// CHECK: stablehlo.subtract %[[X]], %[[Y]]
// CHECK: stablehlo.abs %[[M]]
func.func @expanded(%m: tensor<4x256xf32>, %c: tensor<4x2xf32>, %e: tensor<4x2xf32>, %s: tensor<4x2xf32>)
    -> (!x8 {fp8.path = "m", fp8.kind = "output"}) {
  %wide = fp8.expand_range %m, %c, %e tile = [1, 128] : tensor<4x256xf32>, tensor<4x2xf32> -> tensor<4x256xf32>
  %0 = fp8.quantize %wide, %s, %s rounding = nearest_even, overflow = saturate : tensor<4x256xf32> -> !x8
  return %0 : !x8
}

// -----

!g8 = !fp8.scaled<4x4xf8E4M3FN, tile = [*, *], scale = f32>

// What has no path is named by its location, and is a tensor of its own even if
// there are others.
// CHECK-LABEL: func.func @places(
// CHECK-SAME: fp8.path = "trace.quantization.net.py:7:1"
// CHECK-SAME: fp8.path = "trace.quantization.net.py:7:1.2"
func.func @places(%s: tensor<f32>, %v: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = fp8.quantize %v, %s, %s rounding = nearest_even, overflow = saturate : tensor<4x4xf32> -> !g8 loc("net.py":7:1)
  %1 = fp8.quantize %w, %s, %s rounding = nearest_even, overflow = saturate : tensor<4x4xf32> -> !g8 loc("net.py":7:1)
  %2 = fp8.dequantize %0 : !g8 -> tensor<4x4xf32>
  %3 = fp8.dequantize %1 : !g8 -> tensor<4x4xf32>
  %4 = stablehlo.add %2, %3 : tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// Nothing quantized, nothing said.
// CHECK-LABEL: func.func @nothing(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> {
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// What no dot reads has the name that its quantization has been given; a second
// one, such as a sum, has a number.
// CHECK-LABEL: func.func @given(
// CHECK-SAME: fp8.path = "trace.quantization.p['w'].weight_gradient"}
// CHECK-SAME: fp8.path = "trace.quantization.p['w'].weight_gradient.2"}
// CHECK-NOT: fp8.tensor
func.func @given(%x: tensor<4x32xf32>, %scale: tensor<f32>) -> (tensor<4x32xf32> {fp8.kind = "output", fp8.path = "y"}) {
  %0 = fp8.quantize %x, %scale, %scale rounding = nearest_even, overflow = saturate {fp8.tensor = "p['w'].weight_gradient"} : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
  %1 = fp8.dequantize %0 : !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32> -> tensor<4x32xf32>
  %2 = stablehlo.add %1, %x : tensor<4x32xf32>
  %3 = fp8.quantize %2, %scale, %scale rounding = nearest_even, overflow = saturate {fp8.tensor = "p['w'].weight_gradient"} : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32>
  %4 = fp8.dequantize %3 : !fp8.scaled<4x32xf8E4M3FN, tile = [*, *], scale = f32> -> tensor<4x32xf32>
  return %4 : tensor<4x32xf32>
}
