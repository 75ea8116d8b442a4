//===- LibraryDot.h - Dots that cuBLASLt can compute ------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_LIBRARYDOT_H
#define FP8_LIB_CODEGEN_GPU_LIBRARYDOT_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <string>

namespace mlir::fp8::gpu_codegen {

/// The dot of a kernel as a product of two dense matrices, and how much of what
/// is done with it the library does too.
struct LibraryDot {
  linalg::GenericOp op;
  linalg::FillOp zeros;
  /// Of the first operand, the one with the result's rows, and of the second.
  std::array<BlockArgument, 2> operands;
  std::array<bool, 2> alongK = {true, true};
  int64_t rows = 1, columns = 1, depth = 1;
  /// What multiplies the sums by the scales or converts them; may be null.
  linalg::GenericOp epilogue;
  /// The scales, one f32 each; null where there are none.
  std::array<BlockArgument, 2> scales;
  /// What the library writes: an argument, or a buffer of the kernel's own.
  Value result;

  Type elementOf(unsigned operand) const {
    return cast<MemRefType>(operands[operand].getType()).getElementType();
  }
  bool isFP8() const { return elementOf(0).getIntOrFloatBitWidth() == 8; }
  /// An FP8 operand has to lie along k.
  bool isTurned(unsigned operand) const { return isFP8() && !alongK[operand]; }

  /// The dot of `kernel`, which has one. Where the library cannot compute it,
  /// nothing, and `reason` says why.
  static std::optional<LibraryDot> find(KernelOp kernel, std::string &reason);
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_LIBRARYDOT_H
