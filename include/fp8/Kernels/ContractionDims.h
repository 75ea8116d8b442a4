//===- ContractionDims.h - Recognition of contractions ----------*- C++ -*-===//

#ifndef FP8_KERNELS_CONTRACTIONDIMS_H
#define FP8_KERNELS_CONTRACTIONDIMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <optional>

namespace mlir::fp8 {

/// The loop dimensions of a contraction, grouped by the operands that they
/// index: batch indexes all three, m lhs and result, n rhs and result, k lhs
/// and rhs.
struct ContractionDims {
  SmallVector<unsigned> batch, m, n, k;
  /// The indices of the inputs that hold the scales of lhs and rhs, if any.
  std::array<std::optional<unsigned>, 2> scales;
};

/// Returns the iterations of some loops, of all of which these are the extents.
int64_t iterationsOf(ArrayRef<unsigned> loops, ArrayRef<int64_t> extents);

/// Where an op reads or writes along one dimension of an operand: at the sum of
/// `offset` and of its loops' indices, each times a coefficient.
struct LinearIndex {
  SmallVector<int64_t> coefficients;
  int64_t offset = 0;
};

/// Returns the linear form of an index, if it has one.
std::optional<LinearIndex> getLinearIndex(AffineExpr expr, unsigned numLoops);

/// Returns true if all indices of a map are linear, and no two depend on the
/// same loop.
bool isLinearMap(AffineMap map);

/// Returns the dimensions of `op` if it is a contraction on tensors or memrefs:
/// it has two inputs of float type and one f32 result, and its body adds the
/// product of the inputs (extended to f32) to the result. The result is indexed
/// by pure dimensions. The inputs have linear maps, as the image of a
/// convolution does. Each input may be multiplied by a further input, its
/// scales. Scales are indexed by dimensions of the input they scale, divided by
/// constants, and by zeros.
///
/// Scales that change along k multiply partial sums, not elements. If
/// `fp8.promote_every` is given, sums of up to that many products are likewise
/// added up in f32.
FailureOr<ContractionDims> inferContractionDims(linalg::GenericOp op);

/// Returns true if `op` is a dot: a contraction with both row and column loops,
/// for which packing pays. Other contractions are treated as reductions.
bool isDot(linalg::GenericOp op);

} // namespace mlir::fp8

#endif // FP8_KERNELS_CONTRACTIONDIMS_H
