//===- Contraction.h - Packed vector loops for contractions -----*- C++ -*-===//
//
// Emits the loops of one tile of a contraction (a dot as linalg.generic on
// memrefs): operands are packed into panels, f8 decoded exactly while packing,
// and multiplied by a register-tiled FMA (or bf16 dot) kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CODEGEN_CONTRACTION_H
#define FP8_CODEGEN_CONTRACTION_H

#include "fp8/Codegen/Target.h"
#include "fp8/Kernels/ContractionDims.h"

namespace mlir {
class OpBuilder;
namespace fp8 {

/// One tile of a contraction.
struct ContractionTile {
  /// The contraction, on memrefs of static shape and strides.
  linalg::GenericOp op;
  /// The first index of the tile, per loop dimension.
  SmallVector<Value> offsets;
  /// The extent of the tile, per loop dimension; whole for k.
  SmallVector<int64_t> sizes;
  /// Where lhs and rhs lie if not in the op's own operands: buffers of the
  /// tile's own sizes.
  std::array<Value, 2> localInputs;
  /// Where the result goes (it is overwritten). Indexed by absolute indices
  /// through the result's map, or, when local, of the tile's own sizes (in the
  /// order of the result's map).
  Value out;
  bool outIsLocal = false;
  /// The result is added to what is there instead.
  bool accumulate = false;
  /// memref<Nxi8> aligned to 64 bytes with N >= contractionScratchBytes.
  Value scratch;
};

/// The scratch that emitContraction needs for tiles of these sizes;
/// `localInputs` are the types of lhs and rhs if they do not lie in the op's
/// own operands.
int64_t contractionScratchBytes(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                                const TargetInfo &target,
                                std::array<Type, 2> localInputs = {});

/// Emits the tile as scf, vector, memref and arith operations. The sum over k
/// is in an order that depends only on the tile's sizes and the target.
LogicalResult emitContraction(OpBuilder &builder, Location loc,
                              const ContractionTile &tile,
                              const TargetInfo &target);

} // namespace fp8
} // namespace mlir

#endif // FP8_CODEGEN_CONTRACTION_H
