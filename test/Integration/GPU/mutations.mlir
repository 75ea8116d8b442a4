// Mistakes in the stages of a dot are found in the emulator: each line changes one
// thing in the kernels that codegen has made, and with every schedule of copies
// the emulator, or the numbers, say so.
// RUN: rm -rf %t && mkdir %t
// RUN: fp8-opt --fp8-import --fp8-quantize=recipe=none --fp8-structure --fp8-kernels %s -o %t/4.mlir
// RUN: fp8-opt --fp8-target=nvptx=sm_89 --fp8-gpu-codegen %t/4.mlir -o %t/5.mlir

// Nothing is changed.
// RUN: fp8-opt --fp8-to-nvvm %t/5.mlir -o %t/6.mlir
// RUN: fp8-check-gpu-kernels --seeds=3 --compiled=%t/6.mlir %t/4.mlir | FileCheck %s --check-prefix=GOOD
// GOOD: 2 kernels, 0 failed

// A group too few is waited for.
// RUN: sed "s/cp.async.wait.group 2/cp.async.wait.group 3/" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/wait.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/wait.mlir %t/4.mlir | FileCheck %s --check-prefix=PENDING
// PENDING-COUNT-6: FAIL {{.*}} where an asynchronous copy of {{.*}} has not been waited for
// PENDING: 2 kernels, 2 failed

// The stages that follow the first ones are in no group.
// RUN: sed "/^        }/{n;/cp.async.commit.group/d}" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/group.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/group.mlir %t/4.mlir | FileCheck %s --check-prefix=PENDING

// No barrier: a stage is filled again while others read it, and read before the
// copies of others have landed.
// RUN: sed "/cp.async.wait.group/{n;d}" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/barrier.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/barrier.mlir %t/4.mlir | FileCheck %s --check-prefix=RACE
// RACE-COUNT-6: FAIL {{.*(with no barrier between|has not been waited for|nothing has been written to)}}
// RACE: 2 kernels, 2 failed

// In the first kernel the places of what is copied have no swizzle, those of
// what is read have.
// RUN: sed "0,/commit.group/ s/arith.xori \(%%[^,]*\), %%[0-9][0-9]* /arith.addi \1, %%c0 /" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/swizzle.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/swizzle.mlir %t/4.mlir | FileCheck %s --check-prefix=NUMBERS
// NUMBERS-COUNT-3: FAIL {{.*}} argument 2 differs
// NUMBERS: 2 kernels, 1 failed

// Neither has one: the numbers are right, and lines that are read at once lie in
// one bank.
// RUN: sed "s/arith.xori \(%%[^,]*\), %%[0-9][0-9]* /arith.addi \1, %%c0 /" %t/5.mlir | fp8-opt --fp8-to-nvvm -o %t/banks.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/banks.mlir %t/4.mlir | FileCheck %s --check-prefix=BANKS
// BANKS-COUNT-6: FAIL {{.*}} conflicts of banks
// BANKS: 2 kernels, 2 failed

// By wgmma, without TMA. Here, too, a group too few is waited for.
// RUN: fp8-opt --fp8-target=nvptx=sm_90a --fp8-plan-blocks %t/4.mlir | sed "s/, tma = true//" | fp8-opt --fp8-gpu-codegen -o %t/group5.mlir
// RUN: sed "s/cp.async.wait.group 2/cp.async.wait.group 3/" %t/group5.mlir | fp8-opt --fp8-to-nvvm -o %t/group-wait.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/group-wait.mlir %t/4.mlir | FileCheck %s --check-prefix=PENDING

// What has landed is not shown to the async proxy, by no fence or by one before
// the wait.
// RUN: sed "/fence.proxy/d" %t/group5.mlir | fp8-opt --fp8-to-nvvm -o %t/no-fence.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/no-fence.mlir %t/4.mlir | FileCheck %s --check-prefix=FENCE
// FENCE-COUNT-6: FAIL {{.*}} wrote with no fence.proxy.async after it
// FENCE: 2 kernels, 2 failed
// RUN: sed "/cp.async.wait.group/{h;d}; /fence.proxy/G" %t/group5.mlir | fp8-opt --fp8-to-nvvm -o %t/early-fence.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/early-fence.mlir %t/4.mlir | FileCheck %s --check-prefix=FENCE1
// FENCE1-COUNT-6: FAIL {{.*}} wrote with no fence.proxy.async after it
// FENCE1: 2 kernels, 2 failed

// No barrier between a stage's last reader and its next copies.
// RUN: sed "/fence.proxy/{n;d}" %t/group5.mlir | fp8-opt --fp8-to-nvvm -o %t/group-barrier.mlir
// RUN: not fp8-check-gpu-kernels --seeds=3 --compiled=%t/group-barrier.mlir %t/4.mlir | FileCheck %s --check-prefix=GROUP
// GROUP-COUNT-6: FAIL
// GROUP: 2 kernels, 2 failed

func.func @main(%x: tensor<64x512xf8E4M3FN>, %w: tensor<64x512xf8E5M2>, %a: tensor<256x64xbf16>, %b: tensor<256x64xbf16>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
      : (tensor<64x512xf8E4M3FN>, tensor<64x512xf8E5M2>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
      : (tensor<256x64xbf16>, tensor<256x64xbf16>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
