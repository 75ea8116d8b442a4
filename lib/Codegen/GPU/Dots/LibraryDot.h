//===- LibraryDot.h - Dots that cuBLASLt can compute ------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTS_LIBRARYDOT_H
#define FP8_LIB_CODEGEN_GPU_DOTS_LIBRARYDOT_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <string>

namespace mlir::fp8::gpu_codegen {

/// The dot of a kernel as a product of two dense matrices, and the part of its
/// epilogue that the library computes, too.
struct LibraryDot {
  linalg::GenericOp op;
  linalg::FillOp zeros;
  /// The operand with the result's rows, and the one with its columns.
  std::array<BlockArgument, 2> operands;
  std::array<bool, 2> alongK = {true, true};
  int64_t rows = 1, columns = 1, depth = 1;
  /// The op that multiplies the sums by the scales or converts them; may be
  /// null.
  linalg::GenericOp epilogue;
  /// The scales, one f32 each; null if there are none.
  std::array<BlockArgument, 2> scales;
  /// The buffer that the library writes: an argument, or a local of the kernel.
  Value result;

  Type elementOf(unsigned operand) const {
    return cast<MemRefType>(operands[operand].getType()).getElementType();
  }
  bool isFP8() const { return elementOf(0).getIntOrFloatBitWidth() == 8; }
  /// Returns true for an FP8 operand that must be transposed, because the
  /// library needs it contiguous along k.
  bool needsTranspose(unsigned operand) const {
    return isFP8() && !alongK[operand];
  }

  /// Returns the dot of `kernel`, which has exactly one. Returns nullopt and
  /// sets `reason` if the library cannot compute it.
  static std::optional<LibraryDot> find(KernelOp kernel, std::string &reason);
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTS_LIBRARYDOT_H
