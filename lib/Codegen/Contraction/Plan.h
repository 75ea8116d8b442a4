//===- Plan.h - How the tile of a contraction is computed -------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_PLAN_H
#define FP8_LIB_CODEGEN_CONTRACTION_PLAN_H

#include "Loops.h"

#include "fp8/Codegen/Target.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8::contraction {

enum class LhsForm {
  /// Read where it lies.
  Direct,
  /// Packed as [m][k].
  RowMajor,
  /// Packed as [m / MR][k][MR].
  Panels,
};

/// A tile register of AMX has so many rows, of so many lanes of 32 bits.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRegisters = 8;

/// Every static decision about a tile.
struct Plan {
  /// The roles of lhs and rhs are exchanged: operand[0] is the one with rows.
  std::array<unsigned, 2> operand = {0, 1};
  SmallVector<Dim> outer, outerK;
  Dim m, n, k;
  int64_t lanes = 0;
  /// The register tile: rows, and columns in vectors.
  int64_t rows = 0, columns = 0;
  /// The extent of a block of k.
  int64_t kc = 0;
  /// Blocks are scaled, or are to be of that extent.
  bool fixedBlocks = false;
  /// Which operands have scales.
  std::array<bool, 2> scaled = {false, false};
  /// Values of k in one 32-bit lane of a panel: 2 for pairs of bf16.
  int64_t pack = 1;
  LhsForm lhs = LhsForm::Direct;
  bool packRhs = true;
  /// Sums are in the tile registers of AMX.
  bool inTiles = false;
  /// The result has no unit stride: it is stored through a register tile in
  /// scratch.
  bool storeThroughScratch = false;
  /// The number of f32 in the packed lhs, the packed rhs, the stored tile, the
  /// scales of rows and columns in a block of k, the sums from tile registers,
  /// the configuration of these, and their stand-in.
  int64_t lhsSize = 0, rhsSize = 0, tileSize = 0;
  std::array<int64_t, 2> scaleSizes = {0, 0};
  int64_t sumsSize = 0, configurationSize = 0, registersSize = 0;

  int64_t getScratchBytes() const {
    return 4 * (lhsSize + rhsSize + tileSize + scaleSizes[0] + scaleSizes[1] +
                sumsSize + configurationSize + registersSize);
  }
  int64_t panelColumns() const { return columns * lanes; }
  int64_t packedK() const { return llvm::divideCeil(kc, pack); }
  /// The lanes along k that one step multiplies.
  int64_t stepLanes() const { return inTiles ? kTileRows : 1; }
  /// The distance of the rows of a lhs packed as [m][k]; off a power of two.
  int64_t lhsRowStride() const {
    return llvm::alignTo(packedK(), lanes) + lanes;
  }
};

/// The plan of a tile of `op` whose result has these strides, and whose lhs and
/// rhs are of the types of its operands if not of others; fails for what is no
/// contraction of operands with known strides.
FailureOr<Plan> makePlan(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                         std::array<Type, 2> localInputs,
                         ArrayRef<int64_t> outStrides,
                         const TargetInfo &target);

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_PLAN_H
