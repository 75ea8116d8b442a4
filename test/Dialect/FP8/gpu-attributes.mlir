// RUN: fp8-opt %s --verify-diagnostics --split-input-file | fp8-opt --split-input-file | FileCheck %s

// CHECK: fp8.target = #fp8.gpu_target<chip = "sm_120a", features = "+ptx87">
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_120a", features = "+ptx87">} {
  // CHECK: domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128>
  fp8.kernel @k(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128>
  // CHECK: threads = 128, wgmma = true, stages = 4>
  fp8.kernel @l(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 128, stages = 4, wgmma = true>
  // CHECK: threads = 64, stages = 3>
  fp8.kernel @m(read %x: memref<64xf32>) domain = [64] plan = #fp8.gpu_plan<tile = [16], sum_tile = [64], threads = 64, stages = 3>
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
