//===- TransposeTile.h - Tiles of transposed payloads -----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_BLOCKS_TRANSPOSETILE_H
#define FP8_LIB_CODEGEN_GPU_BLOCKS_TRANSPOSETILE_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8::gpu_codegen {

/// Chooses the tile of a kernel without a dot that transposes a payload: it has
/// lines along both of the dimensions that are exchanged.
class TransposeTile {
public:
  /// `op` is the transpose, `volume` the iterations of the kernel's largest op,
  /// and `work` those of a block.
  TransposeTile(KernelOp kernel, linalg::GenericOp op, int64_t volume,
                int64_t work);

  /// Takes more lines where there are `enough` blocks, and fewer where a tile
  /// does not fit into shared memory.
  SmallVector<int64_t> choose(int64_t enough,
                              function_ref<bool(ArrayRef<int64_t>)> fits) const;

private:
  SmallVector<int64_t> tileOf(int64_t rows, int64_t columns) const;

  SmallVector<int64_t> domain;
  /// The loops of the domain over rows and columns; past the end if a block has
  /// them whole.
  size_t row, column;
  /// The points of the domain that are enough work for a block.
  int64_t points;
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_BLOCKS_TRANSPOSETILE_H
