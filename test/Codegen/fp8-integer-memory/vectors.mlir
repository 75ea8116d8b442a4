// RUN: fp8-opt %s --fp8-integer-memory | FileCheck %s

// What is only moved has no bf16 left; what is computed with is cast.

// CHECK-LABEL: llvm.func @copy
// CHECK: %[[V:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<9xi16>
// CHECK: llvm.store %[[V]], %{{.*}} {alignment = 2 : i64} : vector<9xi16>, !llvm.ptr
llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr) {
  %0 = llvm.load %from {alignment = 2 : i64} : !llvm.ptr -> vector<9xbf16>
  llvm.store %0, %to {alignment = 2 : i64} : vector<9xbf16>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @widen
// CHECK: %[[V:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<16xi16>
// CHECK: %[[B:.*]] = llvm.bitcast %[[V]] : vector<16xi16> to vector<16xbf16>
// CHECK: llvm.fpext %[[B]]
llvm.func @widen(%from: !llvm.ptr) -> vector<16xf32> {
  %0 = llvm.load %from : !llvm.ptr -> vector<16xbf16>
  %1 = llvm.fpext %0 : vector<16xbf16> to vector<16xf32>
  llvm.return %1 : vector<16xf32>
}

// Scalars and other types stay.
// CHECK-LABEL: llvm.func @scalar
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> bf16
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
llvm.func @scalar(%from: !llvm.ptr) -> bf16 {
  %0 = llvm.load %from : !llvm.ptr -> bf16
  %1 = llvm.load %from : !llvm.ptr -> vector<4xf32>
  llvm.return %0 : bf16
}

// CHECK-LABEL: llvm.func @select
// CHECK: %[[A:.*]] = llvm.bitcast %{{.*}} : vector<7xbf16> to vector<7xi16>
// CHECK: %[[B:.*]] = llvm.bitcast %{{.*}} : vector<7xbf16> to vector<7xi16>
// CHECK: %[[S:.*]] = llvm.select %{{.*}}, %[[A]], %[[B]] : vector<7xi1>, vector<7xi16>
// CHECK: llvm.bitcast %[[S]] : vector<7xi16> to vector<7xbf16>
// CHECK: llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, i16
llvm.func @select(%c: vector<7xi1>, %a: vector<7xbf16>, %b: vector<7xbf16>, %d: i1, %x: bf16, %y: bf16) -> bf16 {
  %0 = llvm.select %c, %a, %b : vector<7xi1>, vector<7xbf16>
  llvm.call @use(%0) : (vector<7xbf16>) -> ()
  %1 = llvm.select %d, %x, %y : i1, bf16
  llvm.return %1 : bf16
}
llvm.func @use(vector<7xbf16>)
