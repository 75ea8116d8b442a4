//===- ContractionDims.h - Dots among structured ops ------------*- C++ -*-===//

#ifndef FP8_KERNELS_CONTRACTIONDIMS_H
#define FP8_KERNELS_CONTRACTIONDIMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <optional>

namespace mlir::fp8 {

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

/// A dot: a contraction with row and column loops, so that packing pays.
/// Contractions without either are ordinary reductions.
bool isDot(linalg::GenericOp op);

} // namespace mlir::fp8

#endif // FP8_KERNELS_CONTRACTIONDIMS_H
