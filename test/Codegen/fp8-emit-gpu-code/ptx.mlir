// RUN: rm -rf %t && fp8-opt %fp8_src_root/test/Docs/Inputs/stages.mlir --fp8-import --fp8-quantize=recipe=tensorwise --fp8-structure --fp8-kernels -o %t.mlir
// RUN: fp8-opt %t.mlir --fp8-target=nvptx=sm_90a --fp8-gpu-codegen --fp8-to-nvvm --fp8-emit-gpu-code='image=ptx directory=%t' -o /dev/null
// RUN: cat %t/*.ptx | FileCheck %s
// RUN: cat %t/*.ptx | FileCheck %s --check-prefix=EXACT
// RUN: not fp8-opt %t.mlir --fp8-target=nvptx=sm_90a --fp8-emit-gpu-code 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not fp8-opt %t.mlir --fp8-target=nvptx=sm_90a --fp8-emit-gpu-code='image=elf directory=%t' 2>&1 | FileCheck %s --check-prefix=IMAGE

// The step of the documentation, all of its kernels. Quotients, sums and
// products are IEEE's, and nothing flushes subnormals.
// EXACT-NOT: .ftz
// EXACT-NOT: div.{{full|approx}}
// EXACT-NOT: {{mul|add|sub}}.f32
// CHECK-DAG: .target sm_90a
// CHECK-DAG: .reqntid 128
// CHECK-DAG: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
// CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k32.f32.e4m3.e5m2
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16
// CHECK-DAG: cvt.rn.satfinite.e4m3x2.f32
// CHECK-DAG: cvt.rn.satfinite.e5m2x2.f32
// CHECK-DAG: ld.global.v4.b32
// CHECK-DAG: st.global.v2.b32
// CHECK-DAG: shfl.sync.down
// CHECK-DAG: div.rn.f32

// NOWHERE: expected a directory to write to: directory=DIR
// IMAGE: expected an image of bitcode, ptx and cubin but got 'elf'
