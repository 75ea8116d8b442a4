// RUN: fp8-opt %s --fp8-target=cpu=x86-64-v3 --fp8-lower-kernels | FileCheck %s

// The last tile of a loop may be smaller than the others and yet need more
// scratch: 96 columns are packed in other panels than 128.

#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (k, n)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK: func.func private @whole(%{{.*}}: index, %{{.*}}: memref<[[WHOLE:[0-9]+]]xi8>
fp8.kernel @whole(read %a: memref<8x64x128xf8E4M3>, read %b: memref<128x384xf8E4M3>, write %c: memref<8x64x384xf32>) domain = [384] plan = #fp8.cpu_plan<tile = [128]> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x64x384xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<8x64x128xf8E4M3>, memref<128x384xf8E4M3>) outs(%c : memref<8x64x384xf32>) attrs = {fp8.task_dims = array<i64: 2>} {
  ^bb0(%x: f8E4M3, %y: f8E4M3, %sum: f32):
    %0 = arith.extf %x : f8E4M3 to f32
    %1 = arith.extf %y : f8E4M3 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %sum, %2 : f32
    linalg.yield %3 : f32
  }
  fp8.return
}

// CHECK-NOT: func.func private @smaller(%{{.*}}: index, %{{.*}}: memref<[[WHOLE]]xi8>
// CHECK: func.func private @smaller
fp8.kernel @smaller(read %a: memref<8x64x128xf8E4M3>, read %b: memref<128x352xf8E4M3>, write %c: memref<8x64x352xf32>) domain = [352] plan = #fp8.cpu_plan<tile = [128]> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x64x352xf32>)
  linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<8x64x128xf8E4M3>, memref<128x352xf8E4M3>) outs(%c : memref<8x64x352xf32>) attrs = {fp8.task_dims = array<i64: 2>} {
  ^bb0(%x: f8E4M3, %y: f8E4M3, %sum: f32):
    %0 = arith.extf %x : f8E4M3 to f32
    %1 = arith.extf %y : f8E4M3 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %sum, %2 : f32
    linalg.yield %3 : f32
  }
  fp8.return
}
