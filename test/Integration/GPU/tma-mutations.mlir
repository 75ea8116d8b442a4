// Mistakes in a dot whose operands TMA brings are found in the emulator: each
// line changes one thing in the kernel that codegen has made, and with every
// schedule of copies the emulator, or the numbers, say so.
// RUN: rm -rf %t && mkdir %t
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t/4.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-gpu-codegen %t/4.mlir -o %t/5.mlir

// Nothing is changed.
// RUN: fp8-opt --fp8-to-nvvm %t/5.mlir -o %t/6.mlir
// RUN: fp8-check-gpu-kernels --seeds=3 --compiled=%t/6.mlir %t/4.mlir | FileCheck %s --check-prefix=GOOD
// GOOD: 1 kernels, 0 failed

// A stage is announced with too many bytes, or with too few.
// RUN: sed "s/arith.constant 16384 : i32/arith.constant 16400 : i32/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/many.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/many.mlir %t/4.mlir | FileCheck %s --check-prefix=DEADLOCK
// DEADLOCK-COUNT-3: FAIL {{.*}} deadlock: {{.*}} waits at '{{.*}}mbarrier.try.wait
// RUN: sed "s/arith.constant 16384 : i32/arith.constant 16368 : i32/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/few.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/few.mlir %t/4.mlir | FileCheck %s --check-prefix=EARLY
// EARLY-COUNT-3: FAIL {{.*(has not been waited for|with no barrier between|nothing has been written to|deadlock|an mbarrier waits for)}}

// The warps count a stage too few.
// RUN: sed "0,/arith.cmpi eq, %%[0-9]*, %%c4_i32/ s/\(arith.cmpi eq, %%[0-9]*\), %%c4_i32/\1, %%c3_i32/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/stage.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/stage.mlir %t/4.mlir | FileCheck %s --check-prefix=EARLY

// The producer waits for the next phase instead of the one before; all begin
// with the other parity.
// RUN: sed "s/arith.xori \(%%[0-9]*\), %%c1_i32 : i32/arith.addi \1, %%c0_i32 : i32/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/phase.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/phase.mlir %t/4.mlir | FileCheck %s --check-prefix=DEADLOCK
// RUN: sed "s/memref.store %%c0_i32, %%alloca_0/memref.store %%c1_i32, %%alloca_0/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/parity.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/parity.mlir %t/4.mlir | FileCheck %s --check-prefix=EARLY

// No warp releases a stage; three of four warps are enough; a stage is released
// while it is multiplied.
// RUN: sed "/= nvvm.mbarrier.arrive %%/d" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/release.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/release.mlir %t/4.mlir | FileCheck %s --check-prefix=DEADLOCK
// RUN: sed "s/\(nvvm.mbarrier.init %%[0-9]*\), %%c4_i32/\1, %%c3_i32/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/three.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/three.mlir %t/4.mlir | FileCheck %s --check-prefix=REFILL
// RUN: sed "s/wgmma.wait.group.sync.aligned 1/wgmma.wait.group.sync.aligned 2/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/group.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/group.mlir %t/4.mlir | FileCheck %s --check-prefix=REFILL
// REFILL-COUNT-3: FAIL {{.*(has not been waited for|with no barrier between|more arrivals but got|deadlock)}}

// The boxes have no swizzle, wgmma has.
// RUN: sed "s/swizzle = 128/swizzle = 0/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/swizzle.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/swizzle.mlir %t/4.mlir | FileCheck %s --check-prefix=NUMBERS
// NUMBERS-COUNT-3: FAIL {{.*}} argument 2 differs

// No fence precedes wgmma, or follows the barriers' making.
// RUN: sed "/wgmma.fence/d" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/fence.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/fence.mlir %t/4.mlir | FileCheck %s --check-prefix=FENCE
// FENCE-COUNT-3: FAIL {{.*}} there is no wgmma.fence between
// RUN: sed "/fence.mbarrier.init/d" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/init.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/init.mlir %t/4.mlir | FileCheck %s --check-prefix=INIT
// INIT-COUNT-3: FAIL {{.*}} with no fence.mbarrier_init or fence.proxy.async after it

func.func @main(%x: tensor<64x768xf8E4M3FN>, %w: tensor<64x768xf8E5M2>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
      : (tensor<64x768xf8E4M3FN>, tensor<64x768xf8E5M2>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
