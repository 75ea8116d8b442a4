//===- DotPlan.h - How a block of a GPU computes a dot ----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTPLAN_H
#define FP8_LIB_CODEGEN_GPU_DOTPLAN_H

#include "../Contraction/Loops.h"

namespace mlir::fp8::gpu_codegen {

using contraction::Dim;

/// Threads of a block that computes a dot, in warps.
inline constexpr int64_t kWarp = 32, kDotWarps = 4;
inline constexpr int64_t kDotThreads = kWarp * kDotWarps;
/// Rows, columns and bytes along k of one `mma.sync`.
inline constexpr int64_t kMmaRows = 16, kMmaColumns = 8, kMmaBytes = 32;
/// Threads of a warpgroup, and the rows of the result that it has of a `wgmma`;
/// columns and bytes along k are those above.
inline constexpr int64_t kWarpgroup = 128, kWgmmaRows = 64;
/// The most bytes along k that one stage of an operand's tile has, for
/// `mma.sync` and FMA, and for `wgmma` (the longest line of its swizzles).
inline constexpr int64_t kStageBytes = 64, kWgmmaStageBytes = 128;
/// What tiles of `wgmma` begin at multiples of: eight lines of a swizzle.
inline constexpr int64_t kWgmmaAlignment = 8 * kWgmmaStageBytes;
/// Stages in shared memory: one is filled while the other is read.
inline constexpr int64_t kStages = 2;

/// How an operand comes into shared memory.
struct OperandPlan {
  /// Its elements, and what they are in shared memory.
  Type from, to;
  /// Neighbours along k lie beside each other; else those along the rows.
  bool alongK = true;
  /// The elements of one access.
  int64_t width = 1;
};

/// What multiplies and adds.
enum class Multiplier { FMA, MmaSync, Wgmma };

/// Every static decision about the dot of a tile. Rows are those of the lhs,
/// columns those of the rhs; both count through several dimensions.
struct DotPlan {
  SmallVector<Dim> outer, rows, columns, outerK;
  Dim k;
  Multiplier multiplier = Multiplier::FMA;
  /// Threads of the block.
  int64_t threads = 0;
  std::array<OperandPlan, 2> operands;
  std::array<bool, 2> scaled = {false, false};
  /// Products that one partial sum has; all of k where there are no parts.
  int64_t run = 0;
  /// Bytes along k of one stage of an operand's tile.
  int64_t stageBytes = 0;
  /// The tile that the block computes at once, and the warps along each side.
  int64_t tileRows = 0, tileColumns = 0, warpRows = 0, warpColumns = 0;

  int64_t elementBytes() const {
    return operands[0].to.getIntOrFloatBitWidth() / 8;
  }
  /// Elements along k of one stage.
  int64_t stageDepth() const { return stageBytes / elementBytes(); }
  bool usesWgmma() const { return multiplier == Multiplier::Wgmma; }
  /// The distance of a tile's rows: such that the eight rows of a fragment lie
  /// in different banks. `wgmma` has a swizzle for that.
  int64_t rowBytes() const { return stageBytes + (usesWgmma() ? 0 : 16); }
  bool hasParts() const {
    return run != k.size || !outerK.empty() || isScaled();
  }
  bool isScaled() const { return scaled[0] || scaled[1]; }
  /// Tiles of `mma.sync` that a warp has along each side. Of `wgmma` it has a
  /// quarter of the rows of its warpgroup and all columns, which are the same
  /// places.
  int64_t mmaRows() const { return tileRows / warpRows / kMmaRows; }
  int64_t mmaColumns() const { return tileColumns / warpColumns / kMmaColumns; }
  /// Bytes of one stage of an operand's tile.
  int64_t stageSize(unsigned operand) const {
    return (operand ? tileColumns : tileRows) * rowBytes();
  }
  int64_t getSharedBytes() const {
    return kStages * (stageSize(0) + stageSize(1));
  }
};

/// The plan of a tile of `op` whose result has these strides. `alignments` are
/// those of both operands in bytes, `localInputs` the types of those that the
/// block has made itself (null for the others). With `wgmma`, dots that it can
/// compute are computed by it. Fails for what is no contraction of operands
/// with known strides.
FailureOr<DotPlan> makeDotPlan(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> outStrides,
                               std::array<int64_t, 2> alignments,
                               std::array<Type, 2> localInputs, int64_t threads,
                               bool wgmma);

/// Whether `mma.sync` and `wgmma` have instructions for the operands.
bool multipliesMatrices(linalg::GenericOp dot);

int64_t volumeOf(ArrayRef<Dim> dims);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTPLAN_H
