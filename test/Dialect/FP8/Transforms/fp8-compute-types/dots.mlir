// RUN: fp8-opt %s --split-input-file --fp8-compute-types | FileCheck %s

// A value that two dots read is rounded once; sums and results stay f32. Dots
// of other types, and those that sum nothing up, are left alone.
// CHECK-LABEL: @bf16
// CHECK-SAME: (%[[A:.*]]: tensor<4x32xf32>, %[[B:.*]]: tensor<32x16xf32>, %[[H:.*]]: tensor<32x16xf16>)
// CHECK-DAG: %[[A16:.*]] = stablehlo.convert %[[A]] : (tensor<4x32xf32>) -> tensor<4x32xbf16>
// CHECK-DAG: %[[B16:.*]] = stablehlo.convert %[[B]] : (tensor<32x16xf32>) -> tensor<32x16xbf16>
// CHECK: stablehlo.dot_general %[[A16]], %[[B16]], {{.*}} -> tensor<4x16xf32>
// CHECK: stablehlo.dot_general %[[B16]], %[[A16]], {{.*}} -> tensor<16x4xf32>
// CHECK: stablehlo.dot_general %[[H]], %[[H]],
// CHECK: stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [] x []
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {unquantized_dots = bf16}}>} {
  func.func @bf16(%a: tensor<4x32xf32>, %b: tensor<32x16xf32>, %h: tensor<32x16xf16>)
      -> (tensor<4x16xf32>, tensor<16x4xf32>, tensor<16x16xf16>, tensor<4x32x32x16xf32>) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.dot_general %b, %a, contracting_dims = [0] x [1] : (tensor<32x16xf32>, tensor<4x32xf32>) -> tensor<16x4xf32>
    %2 = stablehlo.dot_general %h, %h, contracting_dims = [0] x [0] : (tensor<32x16xf16>, tensor<32x16xf16>) -> tensor<16x16xf16>
    %3 = stablehlo.dot_general %a, %b, contracting_dims = [] x [] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x32x32x16xf32>
    return %0, %1, %2, %3 : tensor<4x16xf32>, tensor<16x4xf32>, tensor<16x16xf16>, tensor<4x32x32x16xf32>
  }
}

// -----

// CHECK-LABEL: @f32
// CHECK-NOT: stablehlo.convert
module attributes {fp8.recipe = #fp8.recipe<{name = mine}>} {
  func.func @f32(%a: tensor<4x32xf32>, %b: tensor<32x16xf32>) -> tensor<4x16xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}

// -----

// A lookup by one-hot rows reads a table in bf16; data that they select, as in a
// loss, keep their bits.
// CHECK-LABEL: @one_hot
// CHECK-SAME: (%[[ROWS:.*]]: tensor<8x32xf32>, %[[TABLE:.*]]: tensor<32x16xf32>, %[[DATA:.*]]: tensor<32x16xf32>)
// CHECK-DAG: %[[TABLE16:.*]] = stablehlo.convert %[[TABLE]]
// CHECK-DAG: stablehlo.dot_general %{{.*}}, %[[TABLE16]]
// CHECK-DAG: stablehlo.dot_general %[[ROWS]], %[[DATA]], {{.*}} : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {unquantized_dots = bf16}}>} {
  func.func @one_hot(%rows: tensor<8x32xf32>, %table: tensor<32x16xf32>, %data: tensor<32x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %0 = stablehlo.dot_general %rows, %table, contracting_dims = [1] x [0]
        {fp8.verdict = #fp8.verdict<high_precision, role = embedding, category = embedding, layer = "p['table']", lhs = activation, rhs = weight,
        batch = 1, m = 8, n = 16, k = 32, lhs_format = bf16, rhs_format = bf16, reason = "one-hot">}
        : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.dot_general %rows, %data, contracting_dims = [1] x [0]
        {fp8.verdict = #fp8.verdict<high_precision, role = embedding, category = embedding, lhs = activation, rhs = activation,
        batch = 1, m = 8, n = 16, k = 32, lhs_format = f32, rhs_format = f32, reason = "one-hot">}
        : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  }
}

// -----

// A dot of one product each is elementwise: positions times frequencies.
// CHECK-LABEL: @outer
// CHECK-NOT: stablehlo.convert
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {unquantized_dots = bf16}}>} {
  func.func @outer(%positions: tensor<512x1xf32>, %frequencies: tensor<1x16xf32>) -> tensor<512x16xf32> {
    %0 = stablehlo.dot_general %positions, %frequencies, contracting_dims = [1] x [0] : (tensor<512x1xf32>, tensor<1x16xf32>) -> tensor<512x16xf32>
    return %0 : tensor<512x16xf32>
  }
}

// -----

// An image is rounded before its windows are made.
// CHECK-LABEL: @windows
// CHECK: %[[X:.*]] = stablehlo.convert %arg0 : (tensor<2x8x4xf32>) -> tensor<2x8x4xbf16>
// CHECK: %[[W:.*]] = fp8.windows %[[X]] dims = [1] {{.*}} : tensor<2x8x4xbf16> -> tensor<2x6x3x4xbf16>
// CHECK: stablehlo.dot_general %[[W]], %{{.*}} : (tensor<2x6x3x4xbf16>, tensor<3x4x16xbf16>) -> tensor<2x6x16xf32>
module attributes {fp8.recipe = #fp8.recipe<{name = mine, compute = {unquantized_dots = bf16}}>} {
  func.func @windows(%x: tensor<2x8x4xf32>, %w: tensor<3x4x16xf32>) -> tensor<2x6x16xf32> {
    %0 = fp8.windows %x dims = [1] sizes = [3] strides = [1] dilations = [1]
        low = [0] high = [0] interior = [0] reversed = [false] : tensor<2x8x4xf32> -> tensor<2x6x3x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [2, 3] x [0, 1] : (tensor<2x6x3x4xf32>, tensor<3x4x16xf32>) -> tensor<2x6x16xf32>
    return %1 : tensor<2x6x16xf32>
  }
}
