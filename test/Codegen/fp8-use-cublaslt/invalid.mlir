// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-use-cublaslt

module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "all">} {
  // expected-error@+1 {{'fp8.schedule' op expected a planned schedule: run --fp8-plan-memory first}}
  fp8.schedule @step(%a: memref<8xf32>) {
    fp8.return
  }
}

// -----

// expected-error@+1 {{expected cublaslt to be table or all but got 'some'}}
module attributes {fp8.target = #fp8.gpu_target<chip = "sm_90a", features = "+ptx84", cublaslt = "some">} {}

// -----

// expected-error@+1 {{expected positive sizes but got 0, 16 and 32}}
fp8.kernel @k(read %a: memref<8xf32>) domain = [] plan = #fp8.cublaslt_plan<rows = 0, columns = 16, depth = 32, lhs_along_k = true, rhs_along_k = true, scaled = false, fast_accumulation = false, workspace = 0>
