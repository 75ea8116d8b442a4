// RUN: fp8-opt %s --verify-diagnostics --split-input-file | fp8-opt --split-input-file | FileCheck %s

// CHECK: fp8.target = #fp8.gpu_target<chip = "sm_120a", features = "+ptx87">
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_120a", features = "+ptx87">} {
  // CHECK: domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128>
  fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128>
  // CHECK: threads = 128, wgmma = true, stages = 4>
  fp8.kernel @l(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128, stages = 4, wgmma = true>
  // CHECK: threads = 64, stages = 3>
  fp8.kernel @m(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 64, stages = 3>
  // CHECK: threads = 128, wgmma = true, stages = 3, tma = true>
  fp8.kernel @n(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128, wgmma = true, stages = 3, tma = true>
  // CHECK: maps = [<operand = 1, element = bf16, sizes = [64, 100], strides = [128], box = [64, 32], swizzle = 128>, <operand = 0, element = f8E5M2, sizes = [64], strides = [], box = [32], swizzle = 0>]>
  func.func private @g() attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 4, threads = 160, shared = 64, dynamic_shared = 0, scratch = 0,
      maps = [#fp8.tensor_map<operand = 1, element = bf16, sizes = [64, 100], strides = [128], box = [64, 32], swizzle = 128>,
              #fp8.tensor_map<operand = 0, element = f8E5M2, sizes = [64], strides = [], box = [32], swizzle = 0>]>}
  // CHECK: fp8.gpu_launch = #fp8.gpu_launch<blocks = 4, threads = 128, shared = 64, dynamic_shared = 0, scratch = 256>
  func.func private @f() attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 4, threads = 128, shared = 64, dynamic_shared = 0, scratch = 256>}
}

// -----

// expected-error @+1 {{expected a chip of sm_89, sm_90a, sm_100a and sm_120a but got 'sm_80'}}
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_80", features = "">} {}

// -----

// expected-error @+1 {{expected threads to be a multiple of 32 up to 1024 but got 48}}
fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 48>

// -----

// expected-error @+1 {{expected 2 to 4 stages but got 5}}
fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 64, stages = 5>

// -----

// expected-error @+1 {{expected rows of a scatter, which has no tile, but got 4}}
fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 64, rows = 4>

// -----

// expected-error @+1 {{expected a tile of 1 extents but got 2}}
fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64, 1], threads = 64>

// -----

// expected-error @+1 {{expected blocks to be positive but got 0}}
func.func private @f() attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 0, threads = 128, shared = 64, dynamic_shared = 0, scratch = 256>}

// -----

// expected-error @+1 {{expected wgmma for operands by TMA}}
fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 64, tma = true>

// -----

// expected-error @+1 {{expected the number of an argument but got -1}}
#map = #fp8.tensor_map<operand = -1, element = bf16, sizes = [64, 100], strides = [128], box = [64, 32], swizzle = 128>

// -----

// expected-error @+1 {{expected elements of 1, 2 or 4 bytes}}
#map = #fp8.tensor_map<operand = 0, element = f64, sizes = [64, 100], strides = [512], box = [16, 32], swizzle = 128>

// -----

// expected-error @+1 {{expected 1 to 5 dimensions but got 0}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [], strides = [], box = [], swizzle = 128>

// -----

// expected-error @+1 {{expected a stride for each but the first and a box for each of 2 dimensions but got 2}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 100], strides = [128, 256], box = [64, 32], swizzle = 128>

// -----

// expected-error @+1 {{expected a size of 1 to 2^31 - 1 but got 0}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 0], strides = [128], box = [64, 32], swizzle = 128>

// -----

// expected-error @+1 {{expected a box of 1 to 256 but got 257}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 100], strides = [128], box = [64, 257], swizzle = 128>

// -----

// expected-error @+1 {{expected a stride that is a multiple of 16 bytes below 2^40 but got 136}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 100], strides = [136], box = [64, 32], swizzle = 128>

// -----

// expected-error @+1 {{expected a stride that is a multiple of 2 and at least 128 but got 112}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 100], strides = [112], box = [64, 32], swizzle = 128>

// -----

// expected-error @+1 {{expected a swizzle of 0, 32, 64 or 128 bytes but got 48}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 100], strides = [128], box = [64, 32], swizzle = 48>

// -----

// expected-error @+1 {{expected rows of a box that are a multiple of 16 bytes within the swizzle but got 128}}
#map = #fp8.tensor_map<operand = 0, element = bf16, sizes = [64, 100], strides = [128], box = [64, 32], swizzle = 64>

// -----

// expected-error @+1 {{expected 1 to 1024 threads but got 2048}}
module attributes {fp8.gpu_launch = #fp8.gpu_launch<blocks = 1, threads = 2048, shared = 0, dynamic_shared = 0, scratch = 0>} {}
