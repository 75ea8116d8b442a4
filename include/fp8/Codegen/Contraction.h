//===- Contraction.h - Packed vector loops for contractions -----*- C++ -*-===//
//
// Emits the loops of one tile of a contraction (a dot as linalg.generic on
// memrefs). Operands are packed into panels, which decodes f8 exactly, and
// multiplied by a register-tiled kernel of FMAs or bf16 dot products.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CODEGEN_CONTRACTION_H
#define FP8_CODEGEN_CONTRACTION_H

#include "fp8/Codegen/Target.h"
#include "fp8/Kernels/ContractionDims.h"

namespace mlir {
class OpBuilder;
namespace fp8 {

/// A loop of a tile that runs over the first `end` of its indices, which is
/// only known at run time: a positive multiple of `kMultiple`, and at most the
/// extent of the tile. Vectors, and pairs of them along k, leave no remainder;
/// what register tiles leave over has steps that are known, too.
struct OpenLoop {
  static constexpr int64_t kMultiple = 32;
  unsigned loop = 0;
  Value end;
};

/// One tile of a contraction.
struct ContractionTile {
  /// The contraction, on memrefs of static shape and strides.
  linalg::GenericOp op;
  /// The first index of the tile, per loop dimension.
  SmallVector<Value> offsets;
  /// The extent of the tile, per loop dimension. It covers all of k.
  SmallVector<int64_t> sizes;
  /// The loop whose end is only known at run time, if there is one.
  std::optional<OpenLoop> open;
  /// Local buffers of the tile's own sizes that hold lhs and rhs; null where
  /// the operand is the op's own.
  std::array<Value, 2> localInputs;
  /// The buffer that the result overwrites. It is indexed with absolute indices
  /// through the result's map; if it is local, it has the tile's own sizes in
  /// the order of that map.
  Value out;
  bool outIsLocal = false;
  /// Whether the result is added to `out` instead.
  bool accumulate = false;
  /// memref<Nxi8> aligned to 64 bytes with N >= contractionScratchBytes.
  Value scratch;
};

/// Returns whether the sums of `op` are in the tile registers of AMX, unless
/// the dimensions that it sums over are too short.
bool usesTileRegisters(linalg::GenericOp op, const TargetInfo &target);

/// Returns the scratch bytes that emitContraction needs for tiles of these
/// sizes. `localInputs` are the types of lhs and rhs where they are local
/// buffers. The end of `open` need not be known yet.
int64_t contractionScratchBytes(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                                const TargetInfo &target,
                                std::array<Type, 2> localInputs,
                                const std::optional<OpenLoop> &open);

/// Emits the tile as scf, vector, memref and arith operations. The order of the
/// sum over k depends only on the tile's sizes and the target.
LogicalResult emitContraction(OpBuilder &builder, Location loc,
                              const ContractionTile &tile,
                              const TargetInfo &target);

} // namespace fp8
} // namespace mlir

#endif // FP8_CODEGEN_CONTRACTION_H
