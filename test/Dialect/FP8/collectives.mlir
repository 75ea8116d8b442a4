// RUN: fp8-opt %s | fp8-opt | FileCheck %s

// CHECK-LABEL: func.func @tensors
func.func @tensors(%g: tensor<64x32xf32>, %n: tensor<i32>, %mu: tensor<2xf32>)
    -> (tensor<64x32xf32>, tensor<i32>, tensor<64x32xf32>, tensor<2xf32>) {
  // CHECK: fp8.all_reduce mean %{{.*}} wire = bf16 label = "gradient w" : tensor<64x32xf32>
  %0 = fp8.all_reduce mean %g wire = bf16 label = "gradient w" : tensor<64x32xf32>
  // CHECK: fp8.all_reduce sum %{{.*}} : tensor<i32>
  %1 = fp8.all_reduce sum %n : tensor<i32>
  // CHECK: fp8.all_reduce sum %{{.*}} mu %{{.*}} wire = f8E4M3FN block = 128 : tensor<64x32xf32>, tensor<2xf32> -> tensor<2xf32>
  %2, %new = fp8.all_reduce sum %g mu %mu wire = f8E4M3FN block = 128 : tensor<64x32xf32>, tensor<2xf32> -> tensor<2xf32>
  // CHECK: fp8.all_reduce mean %{{.*}} wire = bf16 slices = 64 label = "stack" : tensor<64x32xf32>
  %3 = fp8.all_reduce mean %g wire = bf16 slices = 64 label = "stack" : tensor<64x32xf32>
  return %0, %1, %2, %new : tensor<64x32xf32>, tensor<i32>, tensor<64x32xf32>, tensor<2xf32>
}

// CHECK-LABEL: fp8.schedule @buffers
fp8.schedule @buffers(%g: memref<64xf32>, %mu: memref<2xf32>) {
  // CHECK: %[[H:.*]] = fp8.start_all_reduce mean %{{.*}} into %{{.*}} mu %{{.*}} : memref<2xf32> wire = f8E5M2 label = "g" number = 3 : memref<64xf32>
  // CHECK: fp8.wait %[[H]](%{{.*}}, %{{.*}}, %{{.*}}) : memref<64xf32>, memref<64xf32>, memref<2xf32>
  %0 = fp8.start_all_reduce mean %g into %g mu %mu : memref<2xf32> wire = f8E5M2 label = "g" number = 3 : memref<64xf32>
  fp8.wait %0 (%g, %g, %mu) : memref<64xf32>, memref<64xf32>, memref<2xf32>
  fp8.return
}

// CHECK-LABEL: fp8.schedule @slices
fp8.schedule @slices(%g: memref<64xf32>, %mu: memref<2xf32>, %i: memref<index>) {
  // CHECK: %[[ALL:.*]] = fp8.collectives
  %all = fp8.collectives
  %slice = memref.load %i[] : memref<index>
  // CHECK: fp8.start_all_reduce sum %{{.*}} into %{{.*}} mu %{{.*}} : memref<2xf32> slice %{{.*}} of %[[ALL]] wire = f8E5M2 shard = 2 : memref<64xf32>
  %0 = fp8.start_all_reduce sum %g into %g mu %mu : memref<2xf32> slice %slice of %all wire = f8E5M2 shard = 2 : memref<64xf32>
  // CHECK: fp8.wait %[[ALL]]
  fp8.wait %all (%g, %g, %mu) : memref<64xf32>, memref<64xf32>, memref<2xf32>
  fp8.return
}

// CHECK-LABEL: func.func @exchanges
func.func @exchanges(%p: tensor<2x8xf32>, %x: tensor<f32>, %m: tensor<4xi1>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<4xi1>) {
  // CHECK: fp8.exchange all_to_all %{{.*}} ranks = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64> : tensor<2x8xf32> -> tensor<2x8xf32>
  %0 = fp8.exchange all_to_all %p ranks = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64> : tensor<2x8xf32> -> tensor<2x8xf32>
  // CHECK: fp8.exchange gather %{{.*}} ranks = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64> label = "loss" : tensor<f32> -> tensor<2xf32>
  %1 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "loss" : tensor<f32> -> tensor<2xf32>
  // CHECK: fp8.exchange gather %{{.*}} ranks = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64> summed label = "loss" : tensor<f32> -> tensor<2xf32>
  %3 = fp8.exchange gather %x ranks = dense<[[0, 1]]> : tensor<1x2xi64> summed label = "loss" : tensor<f32> -> tensor<2xf32>
  // CHECK: fp8.exchange permute
  %2 = fp8.exchange permute %m ranks = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64> : tensor<4xi1> -> tensor<4xi1>
  return %0, %1, %2 : tensor<2x8xf32>, tensor<2xf32>, tensor<4xi1>
}

// CHECK-LABEL: fp8.schedule @exchange
fp8.schedule @exchange(%x: memref<64xf32>, %all: memref<2x64xf32>) {
  // CHECK: %[[H:.*]] = fp8.start_exchange gather %{{.*}} into %{{.*}} ranks = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64> label = "x" number = 3 : memref<64xf32> -> memref<2x64xf32>
  // CHECK: fp8.wait %[[H]](%{{.*}}, %{{.*}}) : memref<64xf32>, memref<2x64xf32>
  %0 = fp8.start_exchange gather %x into %all ranks = dense<[[0, 1]]> : tensor<1x2xi64> label = "x" number = 3 : memref<64xf32> -> memref<2x64xf32>
  fp8.wait %0 (%x, %all) : memref<64xf32>, memref<2x64xf32>
  fp8.return
}
