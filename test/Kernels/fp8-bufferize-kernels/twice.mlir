// RUN: fp8-opt %s --fp8-bufferize-kernels | FileCheck %s

// A kernel on buffers stays as it is: its launches know its accesses.
fp8.schedule @step(%x: memref<8xf32>, %y: memref<8xf32>) {
  // CHECK: fp8.launch @add(read %{{.*}}, write %{{.*}})
  fp8.launch @add(read %x, write %y) : (memref<8xf32>, memref<8xf32>) -> ()
  fp8.return
}

// CHECK: fp8.kernel @add(read %{{.*}}: memref<8xf32>, write %{{.*}}: memref<8xf32>)
fp8.kernel @add(read %x: memref<8xf32>, write %y: memref<8xf32>) domain = [8] {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  }
  fp8.return
}
