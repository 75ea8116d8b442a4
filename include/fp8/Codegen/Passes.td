//===- Passes.td - Kernels and schedule to loops, vectors and LLVM --------===//

#ifndef FP8_CODEGEN_PASSES
#define FP8_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def LowerKernels : Pass<"fp8-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn structured ops of a kernel into the loops of one task";
  let description = [{
    A kernel `@k(operands...)` becomes `@k(task, scratch, operands...)`: the
    task number selects one tile of the domain; every structured op runs over
    that tile. Elementwise ops and reductions with equal loops share one nest:
    values pass between them in registers. The innermost contiguous loop is cut
    into vectors of 16 lanes; a reduction over it keeps 16 partial results per
    accumulator and combines them in a fixed tree, so results depend on shapes
    alone. Dots go through packed panels and a register tile. Intermediates of
    the kernel live in the task's scratch, as large as one tile.
    `fp8.scratch_bytes` and `fp8.tasks` say what a kernel needs.

    Example input:

    ```mlir
    func.func private @double(%x: memref<8xf32>, %y: memref<8xf32>) attributes {
        fp8.domain = array<i64: 8>, fp8.tile = array<i64: 8>} {
      linalg.generic {
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {fp8.task_dims = array<i64: 0>} {
      ^bb0(%a: f32, %o: f32):
        %d = arith.addf %a, %a : f32
        linalg.yield %d : f32
      }
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def LowerSchedule : Pass<"fp8-lower-schedule", "::mlir::ModuleOp"> {
  let summary = "Turn the schedule into launches through the runtime's C ABI";
  let description = [{
    The public function becomes `@fp8_entry(%step: !llvm.ptr)`, one call of the
    runtime's `fp8_launch` per kernel call. Operands are 64-bit codes: an offset
    into the arena, or the complement of an external buffer's number
    (arguments, outputs, constants, in this order). Each kernel gets a wrapper
    with the runtime's calling convention.

    Example input:

    ```mlir
    func.func @step(%arena: memref<64xi8>, %x: memref<8xf32>)
        attributes {fp8.arena_bytes = 64 : i64} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %scratch = memref.alloc() : memref<0xi8>
      scf.for %task = %c0 to %c4 step %c1 {
        func.call @k(%task, %scratch, %x) : (index, memref<0xi8>, memref<8xf32>) -> ()
      }
      return
    }
    func.func private @k(index, memref<0xi8>, memref<8xf32>)
        attributes {fp8.domain = array<i64: 8>, fp8.tasks = 4 : i64}
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def IntegerMemory : Pass<"fp8-integer-memory", "::mlir::ModuleOp"> {
  let summary = "Load and store vectors of bf16 as integers";
  let description = [{
    LLVM 22 cannot split every load and store of vectors of bf16 where the CPU
    has avx512_bf16. Such a vector is loaded and stored as one of i16; a bitcast
    stands between it and what computes with bf16.

    Example:

    ```mlir
    llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr) {
      %0 = llvm.load %from : !llvm.ptr -> vector<9xbf16>
      llvm.store %0, %to : vector<9xbf16>, !llvm.ptr
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VerifyLowered : Pass<"fp8-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "Check that nothing is left above the LLVM dialect";
  let description = [{
    Upstream conversions skip what they do not know without an error (f8 casts
    among them); this check turns any op that is not LLVM dialect, and any f8
    typed value, into one error that names it.

    Example:

    ```mlir
    llvm.func @f(%x: f32) -> f32 {
      %0 = llvm.fneg %x : f32
      llvm.return %0 : f32
    }
    ```
  }];
}

#endif // FP8_CODEGEN_PASSES
