// RUN: fp8-opt %s --fp8-slice-collectives --split-input-file --verify-diagnostics

fp8.schedule @shard(%w: memref<4x64xf32> {fp8.shard = 1 : i64, fp8.slices = 2 : i64}, %g: memref<4x64xf32>) {
  // expected-error@+1 {{expected 4 slices of shard 1 but got 2}}
  %0 = fp8.start_all_reduce mean %g into %g shard = 1 slices = 4 : memref<4x64xf32>
  fp8.wait %0 (%g, %g) : memref<4x64xf32>, memref<4x64xf32>
  fp8.return
}
