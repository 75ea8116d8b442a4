// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8.kernel(fp8-divide-scatters))' | FileCheck %s
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-target,fp8.kernel(fp8-divide-scatters),fp8-plan-tiles{threads=2})' | FileCheck %s --check-prefix=PLAN
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-target,fp8.kernel(fp8-divide-scatters),fp8-plan-tiles{threads=2},fp8-lower-kernels)' | FileCheck %s --check-prefix=LOWER

// The columns of all rows are divided. Tasks have whole lines of the cache.
// CHECK: fp8.kernel @columns({{.*}}) domain = [400] {
// CHECK: fp8.task_dims = array<i64: 1>
// PLAN: fp8.kernel @columns({{.*}}) domain = [400] plan = #fp8.cpu_plan<tile = [208]>
// The second task has fewer columns, so it has code of its own.
// LOWER-LABEL: func.func private @columns(
// LOWER: scf.if
// LOWER: scf.for %{{.*}} = %{{.*}} to %c192
// LOWER: else
// LOWER: %[[COLUMNS:.*]] = arith.constant 208 : index
// LOWER: scf.for %[[J:.*]] = %{{.*}} to %[[COLUMNS]]
// LOWER: %[[COLUMN:.*]] = arith.addi %[[J]], %{{.*}} : index
// LOWER: memref.load %{{.*}}[%{{.*}}, %[[COLUMN]]] : memref<64x400xf32>
// LOWER: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[COLUMN]]] : memref<1000x400xf32>
fp8.kernel @columns(read %tokens: memref<64xindex>, read %rows: memref<64x400xf32>, write %out: memref<1000x400xf32>) domain = [] {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c400 = arith.constant 400 : index
  linalg.fill ins(%zero : f32) outs(%out : memref<1000x400xf32>)
  scf.for %i = %c0 to %c64 step %c1 {
    %token = memref.load %tokens[%i] : memref<64xindex>
    scf.for %j = %c0 to %c400 step %c1 {
      %sum = memref.load %out[%token, %j] : memref<1000x400xf32>
      %row = memref.load %rows[%i, %j] : memref<64x400xf32>
      %next = arith.addf %sum, %row : f32
      memref.store %next, %out[%token, %j] : memref<1000x400xf32>
    } {fp8.irregular}
  } {fp8.irregular, fp8.task_dims = array<i64>}
  fp8.return
}

// A batch is divided first. Its index is clamped to where it is anyway.
// CHECK: fp8.kernel @batch({{.*}}) domain = [8] {
// CHECK: fp8.task_dims = array<i64: 0>
// PLAN: fp8.kernel @batch({{.*}}) domain = [8] plan = #fp8.cpu_plan<tile = [1]>
fp8.kernel @batch(read %tokens: memref<8x64xindex>, read %rows: memref<8x64x32xf32>, write %out: memref<8x1000x32xf32>) domain = [] {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  linalg.fill ins(%zero : f32) outs(%out : memref<8x1000x32xf32>)
  scf.for %b = %c0 to %c8 step %c1 {
    scf.for %i = %c0 to %c64 step %c1 {
      %token = memref.load %tokens[%b, %i] : memref<8x64xindex>
      scf.for %j = %c0 to %c32 step %c1 {
        %low = arith.maxsi %b, %c0 : index
        %batch = arith.minsi %low, %c7 : index
        %sum = memref.load %out[%batch, %token, %j] : memref<8x1000x32xf32>
        %row = memref.load %rows[%b, %i, %j] : memref<8x64x32xf32>
        %next = arith.addf %sum, %row : f32
        memref.store %next, %out[%batch, %token, %j] : memref<8x1000x32xf32>
      } {fp8.irregular}
    } {fp8.irregular}
  } {fp8.irregular, fp8.task_dims = array<i64>}
  fp8.return
}

// Single elements at places that are data have no such loop; nor have elements
// that are read in another column than they are written in, or whose column is
// clamped to fewer than there are.
// CHECK: fp8.kernel @elements({{.*}}) domain = [] {
// CHECK: fp8.kernel @neighbors({{.*}}) domain = [] {
// CHECK: fp8.kernel @clamped({{.*}}) domain = [] {
// PLAN: fp8.kernel @elements({{.*}}) domain = [] plan = #fp8.cpu_plan<tile = []>
fp8.kernel @elements(read %places: memref<64xindex>, read %x: memref<64xf32>, update %out: memref<1000xf32>) domain = [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %place = memref.load %places[%i] : memref<64xindex>
    %a = memref.load %out[%place] : memref<1000xf32>
    %b = memref.load %x[%i] : memref<64xf32>
    %sum = arith.addf %a, %b : f32
    memref.store %sum, %out[%place] : memref<1000xf32>
  } {fp8.irregular, fp8.task_dims = array<i64>}
  fp8.return
}

fp8.kernel @neighbors(read %places: memref<64xindex>, update %out: memref<1000x64xf32>) domain = [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %place = memref.load %places[%i] : memref<64xindex>
    scf.for %j = %c0 to %c63 step %c1 {
      %next = arith.addi %j, %c1 : index
      %a = memref.load %out[%place, %next] : memref<1000x64xf32>
      memref.store %a, %out[%place, %j] : memref<1000x64xf32>
    } {fp8.irregular}
  } {fp8.irregular, fp8.task_dims = array<i64>}
  fp8.return
}

fp8.kernel @clamped(read %places: memref<64xindex>, read %x: memref<64x8xf32>, update %out: memref<1000x8xf32>) domain = [] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %place = memref.load %places[%i] : memref<64xindex>
    scf.for %j = %c0 to %c8 step %c1 {
      %column = arith.minsi %j, %c3 : index
      %a = memref.load %x[%i, %j] : memref<64x8xf32>
      memref.store %a, %out[%place, %column] : memref<1000x8xf32>
    } {fp8.irregular}
  } {fp8.irregular, fp8.task_dims = array<i64>}
  fp8.return
}

// A plan is that of the domain, so a kernel with one stays as it is.
// CHECK: fp8.kernel @planned({{.*}}) domain = [] plan
fp8.kernel @planned(read %i: memref<8xindex>, read %x: memref<8x64xf32>, update %y: memref<16x64xf32>) domain = []
    plan = #fp8.cpu_plan<tile = []> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %r = %c0 to %c8 step %c1 {
    %to = memref.load %i[%r] : memref<8xindex>
    scf.for %c = %c0 to %c64 step %c1 {
      %a = memref.load %x[%r, %c] : memref<8x64xf32>
      %b = memref.load %y[%to, %c] : memref<16x64xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %y[%to, %c] : memref<16x64xf32>
    } {fp8.irregular}
  } {fp8.irregular, fp8.task_dims = array<i64>}
  fp8.return
}
