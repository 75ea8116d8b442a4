//===- Contraction.h - Packed vector loops for contractions -----*- C++ -*-===//
//
// Emits the loops of one tile of a contraction (a dot as linalg.generic on
// memrefs): operands are packed into panels, f8 decoded exactly while packing,
// and multiplied by a register-tiled FMA (or bf16 dot) kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CODEGEN_CONTRACTION_H
#define FP8_CODEGEN_CONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir {
class OpBuilder;
namespace fp8 {

/// What the emitted vector code may use.
struct TargetInfo {
  unsigned vectorBits = 128;
  bool hasFMA = false;
  /// vcvtph2ps, which decodes f8 through f16.
  bool hasF16C = false;
  /// Byte permutes of two registers, a table of 128 bytes (AVX512-VBMI).
  bool hasVBMI = false;
  bool hasAVX512BF16 = false;
  /// Pack for bf16 dots but compute them from FMAs: for tests of the packing.
  bool emulateBF16Dots = false;

  /// The machine the compiler runs on.
  static TargetInfo host();
  unsigned getLanes() const { return vectorBits / 32; }
};

/// The loop dimensions of a contraction by the operands that they index:
/// batch all three, m lhs and result, n rhs and result, k lhs and rhs.
struct ContractionDims {
  SmallVector<unsigned> batch, m, n, k;
  /// The inputs that hold the scales of lhs and rhs, if they have some.
  std::array<std::optional<unsigned>, 2> scales;
};

/// The dimensions of `op` when it is a contraction, on tensors or memrefs: two
/// inputs of float type and one f32 result, indexed by pure dimensions, whose
/// body adds the product of the inputs (extended to f32) to the result. Either
/// input may be multiplied by a further one, its scales, which are indexed by
/// dimensions of the input they scale, divided by constants, and by zeros.
///
/// Scales that change along k are applied to partial sums, not to elements; so
/// that sums of up to `fp8.promote_every` products, if that is given, are added
/// up in f32.
FailureOr<ContractionDims> inferContractionDims(linalg::GenericOp op);

/// True for what inferContractionDims accepts.
bool isContraction(linalg::GenericOp op);

/// One tile of a contraction.
struct ContractionTile {
  /// The contraction, on memrefs of static shape and strides.
  linalg::GenericOp op;
  /// The first index of the tile, per loop dimension.
  SmallVector<Value> offsets;
  /// The extent of the tile, per loop dimension; whole for k.
  SmallVector<int64_t> sizes;
  /// Where the result goes (it is overwritten). Indexed by absolute indices
  /// through the result's map, or, when local, of the tile's own sizes (in the
  /// order of the result's map).
  Value out;
  bool outIsLocal = false;
  /// memref<Nxi8> aligned to 64 bytes with N >= contractionScratchBytes.
  Value scratch;
};

/// The scratch that emitContraction needs for tiles of these sizes.
int64_t contractionScratchBytes(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                                const TargetInfo &target);

/// Emits the tile as scf, vector, memref and arith operations. The sum over k
/// is in an order that depends only on the tile's sizes and the target.
LogicalResult emitContraction(OpBuilder &builder, Location loc,
                              const ContractionTile &tile,
                              const TargetInfo &target);

/// Registers the pass test-fp8-contraction.
void registerTestContractionPass();

} // namespace fp8
} // namespace mlir

#endif // FP8_CODEGEN_CONTRACTION_H
