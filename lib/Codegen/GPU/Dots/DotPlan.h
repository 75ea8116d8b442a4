//===- DotPlan.h - How a block of a GPU computes a dot ----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTS_DOTPLAN_H
#define FP8_LIB_CODEGEN_GPU_DOTS_DOTPLAN_H

#include "TensorMaps.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8::gpu_codegen {

using contraction::Dim;

/// The threads of a warp, and the warps and threads of a block that computes a
/// dot.
inline constexpr int64_t kWarp = 32, kDotWarps = 4;
inline constexpr int64_t kDotThreads = kWarp * kDotWarps;
/// The rows, columns and bytes along k of one `mma.sync`.
inline constexpr int64_t kMmaRows = 16, kMmaColumns = 8, kMmaBytes = 32;
/// The threads of a warpgroup, and the rows of the result that one `wgmma`
/// computes. Its columns are a multiple of kMmaColumns, its bytes along k are
/// kMmaBytes.
inline constexpr int64_t kWarpgroup = 128, kWgmmaRows = 64;
/// The largest size of a stage along k, in bytes: for `mma.sync` and FMA, and
/// for `wgmma`, where it is the longest line of a swizzle.
inline constexpr int64_t kStageBytes = 64, kWgmmaStageBytes = 128;
/// The alignment of the tiles of `wgmma`: eight lines of a swizzle.
inline constexpr int64_t kWgmmaAlignment = 8 * kWgmmaStageBytes;
/// The columns of a block's tile if TMA brings the operands and there are no
/// partial sums.
inline constexpr int64_t kWideColumns = 256;
/// The bytes of an mbarrier.
inline constexpr int64_t kBarrierBytes = 8;
/// The bytes that one `cp.async` copies, and that `ldmatrix` reads of a line.
inline constexpr int64_t kPiece = 16;
/// The number of stages in shared memory. While some are read, others are
/// filled. Two are enough for operands that are copied through registers.
inline constexpr int64_t kFewestStages = 2, kMostStages = 4;

/// How an operand is copied to shared memory.
struct OperandPlan {
  /// The element types in global and in shared memory.
  Type from, to;
  /// If true, the operand is contiguous along k in global memory, otherwise
  /// along the rows.
  bool alongK = true;
  /// The same for shared memory. If the two differ, the copy transposes.
  bool linesAlongK = true;
  /// If true, `cp.async` copies the operand unchanged. Otherwise it is copied
  /// through registers.
  bool copied = false;
  /// The number of elements in one access.
  int64_t width = 1;
};

/// The instruction that multiplies and adds.
enum class Multiplier { FMA, MmaSync, Wgmma };

/// Every static decision about the dot of a tile. Rows are those of the lhs,
/// columns those of the rhs; both may span several dimensions.
struct DotPlan {
  SmallVector<Dim> outer, rows, columns, outerK;
  Dim k;
  Multiplier multiplier = Multiplier::FMA;
  /// The threads of the block.
  int64_t threads = 0;
  std::array<OperandPlan, 2> operands;
  std::array<bool, 2> scaled = {false, false};
  /// Whether all rows or columns of a tile have one scale.
  std::array<bool, 2> sharesScale = {false, false};
  /// The products in one partial sum: all of k if there are no partial sums.
  int64_t run = 0;
  /// The bytes of a stage along k, and the number of stages in shared memory.
  int64_t stageBytes = 0, stages = kFewestStages;
  /// If true, a warp of its own brings both operands by TMA, in these boxes.
  /// Otherwise `whyNotTma` says why it does not, if it was asked for.
  bool tma = false;
  /// If true, both operands lie in shared memory as `wgmma` reads them, whole
  /// along k: TMA has brought them in these boxes, or the block has written
  /// them there (OperandTiles.h). An operand whose lines run along k lies there
  /// stage by stage, each with all of its lines; one whose lines run along the
  /// rows lies there band by band. See lines().
  bool inPlace = false;
  std::string whyNotTma;
  std::array<OperandBoxes, 2> boxes;
  /// The tile that the block computes at once, and the number of warps along
  /// each side of it.
  int64_t tileRows = 0, tileColumns = 0, warpRows = 0, warpColumns = 0;

  int64_t elementBytes() const {
    return operands[0].to.getIntOrFloatBitWidth() / 8;
  }
  /// Returns the elements of a stage along k.
  int64_t stageDepth() const { return stageBytes / elementBytes(); }
  bool usesWgmma() const { return multiplier == Multiplier::Wgmma; }
  /// Returns the number of lines of an operand's tile in shared memory, or the
  /// bytes of each. A line is a row, or one element along k of all rows. For
  /// `wgmma` a line is at most as long as a swizzle: rows are divided into
  /// bands, whose lines follow one another.
  int64_t lines(unsigned operand) const {
    return operands[operand].linesAlongK ? extentOf(operand)
                                         : bands(operand) * stageDepth();
  }
  int64_t lineBytes(unsigned operand) const {
    return operands[operand].linesAlongK ? stageBytes
                                         : bandRows(operand) * elementBytes();
  }
  /// The rows of a band, and the number of bands. Without bands, there is one.
  int64_t bandRows(unsigned operand) const {
    int64_t most = kWgmmaStageBytes / elementBytes();
    return usesWgmma() && !operands[operand].linesAlongK
               ? std::min(extentOf(operand), most)
               : extentOf(operand);
  }
  int64_t bands(unsigned operand) const {
    return extentOf(operand) / bandRows(operand);
  }
  /// Returns the distance between two lines in bytes. Accesses read 16 bytes of
  /// eight lines at once, which must lie in different banks: for FMA a gap
  /// behind each line ensures that, otherwise a swizzle.
  int64_t lineDistance(unsigned operand) const {
    return lineBytes(operand) + (multiplier == Multiplier::FMA ? kPiece : 0);
  }
  /// Returns the elements of the tile's result that a thread has.
  int64_t sumsPerThread() const { return tileRows * tileColumns / threads; }
  bool isCopied() const { return operands[0].copied || operands[1].copied; }
  bool hasParts() const {
    return run != k.size || !outerK.empty() || isScaled();
  }
  bool isScaled() const { return scaled[0] || scaled[1]; }
  /// Returns how many tiles of `mma.sync` a warp has along each side. With
  /// `wgmma`, a warp has all columns of a quarter of its warpgroup's rows,
  /// whose elements are distributed over the lanes in the same way.
  int64_t mmaRows() const { return tileRows / warpRows / kMmaRows; }
  int64_t mmaColumns() const { return tileColumns / warpColumns / kMmaColumns; }
  int64_t extentOf(unsigned operand) const {
    return operand ? tileColumns : tileRows;
  }
  /// Returns the bytes of one stage, of an operand's tile or of both.
  int64_t stageSize(unsigned operand) const {
    return lines(operand) * lineDistance(operand);
  }
  int64_t stageSize() const { return stageSize(0) + stageSize(1); }
  /// Returns the number of stages of operands in place.
  int64_t stagesInPlace() const {
    return llvm::divideCeil(k.size, stageDepth());
  }
  /// Returns the elements along k of one band or, with lines along k, of one
  /// stage.
  int64_t depthTogether(unsigned operand) const {
    return inPlace && !operands[operand].linesAlongK
               ? stagesInPlace() * stageDepth()
               : stageDepth();
  }
  /// Returns the distance of two bands in bytes.
  int64_t bandDistance(unsigned operand) const {
    return lineBytes(operand) * depthTogether(operand);
  }
  /// Returns the bytes of an operand in place.
  int64_t bytesInPlace(unsigned operand) const {
    return stagesInPlace() * stageSize(operand);
  }
  /// Returns the bytes of all stages, and of the two barriers of each that TMA
  /// needs, which follow them. Without TMA, every run begins with the first
  /// stage, and may need fewer.
  int64_t getSharedBytes() const {
    if (inPlace)
      return 0;
    if (tma)
      return stages * (stageSize() + 2 * kBarrierBytes);
    return std::min<int64_t>(stages, llvm::divideCeil(run, stageDepth())) *
           stageSize();
  }
};

/// What the plan of a kernel says about its dots.
struct DotOptions {
  /// The threads that compute.
  int64_t threads = 0;
  /// The most stages of operands that are copied asynchronously.
  int64_t stages = kFewestStages;
  /// Whether dots use `wgmma` where they can.
  bool wgmma = false;
  /// Whether TMA brings the operands of the kernel's only dot, if it can.
  bool tma = false;
  /// Whether the operands of all dots lie in shared memory, if they can.
  bool inPlace = false;
};

/// Plans a tile of `op` whose result has the strides `outStrides`. `sizes` are
/// the extents of its loops; `whole` are those of the kernel's largest tile,
/// which have one plan with all others if TMA brings operands. `alignments` are
/// those of the operands in bytes. `localInputs` are the types of operands that
/// the block has computed itself, null for others. Fails if `op` is no
/// contraction of operands with known strides.
FailureOr<DotPlan> makeDotPlan(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> whole,
                               ArrayRef<int64_t> outStrides,
                               std::array<int64_t, 2> alignments,
                               std::array<Type, 2> localInputs,
                               const DotOptions &options);

/// Returns the strides of a dense result whose loops have these extents. The
/// strides of a result do not change any size of a plan.
SmallVector<int64_t> denseResult(linalg::GenericOp dot,
                                 ArrayRef<int64_t> sizes);

/// Returns true if `mma.sync` and `wgmma` can multiply the operands.
bool multipliesMatrices(linalg::GenericOp dot);

int64_t volumeOf(ArrayRef<Dim> dims);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTS_DOTPLAN_H
