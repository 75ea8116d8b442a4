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
/// Bytes that `cp.async` copies, and that `ldmatrix` reads of a line.
inline constexpr int64_t kPiece = 16;
/// Stages in shared memory: while one is read, others are filled. What comes by
/// way of registers needs no more than the fewest.
inline constexpr int64_t kFewestStages = 2, kMostStages = 4;

/// How an operand comes into shared memory.
struct OperandPlan {
  /// Its elements, and what they are in shared memory.
  Type from, to;
  /// Neighbours along k lie beside each other; else those along the rows.
  bool alongK = true;
  /// It lies along k in shared memory: as it does in global memory, or turned
  /// on its way.
  bool linesAlongK = true;
  /// It is copied by `cp.async`, which changes nothing; else it comes by way of
  /// registers.
  bool copied = false;
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
  /// Bytes along k of one stage of an operand's tile, and how many stages there
  /// are in shared memory.
  int64_t stageBytes = 0, stages = kFewestStages;
  /// The tile that the block computes at once, and the warps along each side.
  int64_t tileRows = 0, tileColumns = 0, warpRows = 0, warpColumns = 0;

  int64_t elementBytes() const {
    return operands[0].to.getIntOrFloatBitWidth() / 8;
  }
  /// Elements along k of one stage.
  int64_t stageDepth() const { return stageBytes / elementBytes(); }
  bool usesWgmma() const { return multiplier == Multiplier::Wgmma; }
  /// The lines of an operand's tile in shared memory, rows or elements along k:
  /// how many there are, and the bytes of each.
  int64_t lines(unsigned operand) const {
    return operands[operand].linesAlongK ? extentOf(operand) : stageDepth();
  }
  int64_t lineBytes(unsigned operand) const {
    return operands[operand].linesAlongK ? stageBytes
                                         : extentOf(operand) * elementBytes();
  }
  /// The distance of two lines. What FMA reads at once, 16 bytes of eight lines
  /// each, lies in different banks by a gap, elsewhere by a swizzle.
  int64_t lineDistance(unsigned operand) const {
    return lineBytes(operand) + (multiplier == Multiplier::FMA ? kPiece : 0);
  }
  bool isCopied() const { return operands[0].copied || operands[1].copied; }
  bool hasParts() const {
    return run != k.size || !outerK.empty() || isScaled();
  }
  bool isScaled() const { return scaled[0] || scaled[1]; }
  /// Tiles of `mma.sync` that a warp has along each side. Of `wgmma` it has a
  /// quarter of the rows of its warpgroup and all columns, which are the same
  /// places.
  int64_t mmaRows() const { return tileRows / warpRows / kMmaRows; }
  int64_t mmaColumns() const { return tileColumns / warpColumns / kMmaColumns; }
  int64_t extentOf(unsigned operand) const {
    return operand ? tileColumns : tileRows;
  }
  /// Bytes of one stage, of an operand's tile and of both.
  int64_t stageSize(unsigned operand) const {
    return lines(operand) * lineDistance(operand);
  }
  int64_t stageSize() const { return stageSize(0) + stageSize(1); }
  int64_t getSharedBytes() const { return stages * stageSize(); }
};

/// The plan of a tile of `op` whose result has these strides. `alignments` are
/// those of both operands in bytes, `localInputs` the types of those that the
/// block has made itself (null for the others). Operands that `cp.async` copies
/// have up to `stages`. With `wgmma`, dots that it can compute are computed by
/// it. Fails for what is no contraction of operands with known strides.
FailureOr<DotPlan> makeDotPlan(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> outStrides,
                               std::array<int64_t, 2> alignments,
                               std::array<Type, 2> localInputs, int64_t threads,
                               int64_t stages, bool wgmma);

/// Whether `mma.sync` and `wgmma` have instructions for the operands.
bool multipliesMatrices(linalg::GenericOp dot);

int64_t volumeOf(ArrayRef<Dim> dims);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTPLAN_H
