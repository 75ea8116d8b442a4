//===- Plan.h - The plan of a contraction's tile ----------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_PLAN_H
#define FP8_LIB_CODEGEN_CONTRACTION_PLAN_H

#include "Loops.h"

#include "fp8/Codegen/Contraction.h"
#include "fp8/Codegen/Target.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8::contraction {

enum class LhsForm {
  /// Read in place.
  Direct,
  /// Packed as [m][k].
  RowMajor,
  /// Packed as [m / MR][k][MR].
  Panels,
  /// Packed as tile registers: [m / 16][k / 16][16][16].
  Tiles,
};

/// The number of rows of an AMX tile register, which is that of 32-bit lanes of
/// a row, and all of its lanes.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileLanes = kTileRows * kTileRows;
constexpr int64_t kTileRegisters = 8;

/// Every static decision about a tile.
struct Plan {
  /// The operand that provides the rows, and the one that provides the columns:
  /// {1, 0} if the roles of lhs and rhs are exchanged.
  std::array<unsigned, 2> operand = {0, 1};
  SmallVector<Dim> outer, outerK;
  Dim m, n, k;
  int64_t lanes = 0;
  /// The register tile: its rows, and its columns in vectors.
  int64_t rows = 0, columns = 0;
  /// The extent of a block of k.
  int64_t kc = 0;
  /// Whether blocks must have exactly that extent, because of scales or of a
  /// limit on the length of partial sums.
  bool fixedBlocks = false;
  /// Which operands have scales.
  std::array<bool, 2> scaled = {false, false};
  /// Values of k in one 32-bit lane of a panel: 2 for pairs of bf16.
  int64_t pack = 1;
  LhsForm lhs = LhsForm::Direct;
  bool packRhs = true;
  /// How many panels of the rhs are packed together.
  int64_t panels = 1;
  /// Whether sums are in the tile registers of AMX.
  bool inTiles = false;
  /// Whether the result has no unit stride, so that it is stored through a
  /// register tile in scratch.
  bool storeThroughScratch = false;
  /// The number of f32 in the packed lhs, the packed rhs, the stored tile, the
  /// scales of rows and columns in a block of k, the sums from tile registers,
  /// their configuration, and their emulation.
  int64_t lhsSize = 0, rhsSize = 0, tileSize = 0;
  std::array<int64_t, 2> scaleSizes = {0, 0};
  int64_t sumsSize = 0, configurationSize = 0, registersSize = 0;

  int64_t getScratchBytes() const {
    return 4 * (lhsSize + rhsSize + tileSize + scaleSizes[0] + scaleSizes[1] +
                sumsSize + configurationSize + registersSize);
  }
  int64_t panelColumns() const { return columns * lanes; }
  int64_t groupColumns() const { return panels * panelColumns(); }
  int64_t packedK() const { return llvm::divideCeil(kc, pack); }
  /// Returns the lanes along k that one step multiplies.
  int64_t stepLanes() const { return inTiles ? kTileRows : 1; }
  /// Returns the lanes along k of a packed column.
  int64_t rhsLanes() const { return llvm::alignTo(packedK(), stepLanes()); }
  /// Returns the stride between the rows of a lhs packed as [m][k], which is
  /// not a power of two.
  int64_t lhsRowStride() const {
    return llvm::alignTo(packedK(), lanes) + lanes;
  }
  /// Returns the size of the tile registers of 16 rows of the lhs.
  int64_t lhsTilesStride() const {
    return kTileRows * llvm::alignTo(packedK(), kTileRows);
  }
};

/// Returns the plan of a tile of `op` whose result has these strides.
/// `localInputs` replace the types of lhs and rhs where they are given. Fails
/// if `op` is not a contraction, an operand has unknown strides, or blocks of k
/// do not fit an open loop.
FailureOr<Plan> makePlan(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                         const std::optional<OpenLoop> &open,
                         std::array<Type, 2> localInputs,
                         ArrayRef<int64_t> outStrides,
                         const TargetInfo &target);

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_PLAN_H
