//===- TensorMaps.h - How TMA brings the operands of a dot ------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTS_TENSORMAPS_H
#define FP8_LIB_CODEGEN_GPU_DOTS_TENSORMAPS_H

#include "../../Contraction/Loops.h"

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

namespace mlir::fp8::gpu_codegen {

struct DotPlan;

/// The size and the alignment of a tensor map.
inline constexpr int64_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

/// The boxes in which TMA brings an operand of a dot. Dimension 0 of the tensor
/// map is along k, or along the rows if these are contiguous.
struct OperandBoxes {
  TensorMapAttr map;
  /// The dimensions of the map along k and along the rows of a tile.
  unsigned k = 0, rows = 0;
  /// For each loop of the dot, the dimension of the map that it moves along,
  /// and by how many elements.
  SmallVector<std::pair<unsigned, int64_t>> loops;
};

/// Returns the boxes of an operand: one box has one stage along k and the rows
/// of a tile, or of a band of it. `tile` has the extents of the dot's loops in
/// a tile. Fails, and says why, if TMA cannot bring them.
FailureOr<OperandBoxes> planBoxes(linalg::GenericOp dot,
                                  const contraction::LoopInfo &loops,
                                  ArrayRef<int64_t> tile, const DotPlan &plan,
                                  unsigned operand, std::string &why);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTS_TENSORMAPS_H
