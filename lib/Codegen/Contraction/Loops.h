//===- Loops.h - Merged loops of a contraction ------------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_LOOPS_H
#define FP8_LIB_CODEGEN_CONTRACTION_LOOPS_H

#include "fp8/Codegen/Contraction.h"
#include "fp8/Kernels/ContractionDims.h"

#include <array>
#include <numeric>

namespace mlir::fp8::contraction {

/// How the index of a scale depends on a dimension: (d floordiv tile) * stride.
struct ScaleStep {
  int64_t stride = 0;
  int64_t tile = 1;
};

/// One dimension after merging: its extent, its strides in lhs, rhs and out,
/// and its steps in their scales.
struct Dim {
  int64_t size = 1;
  /// Whether it is an open loop, of which `size` only limits the end.
  bool isOpen = false;
  std::array<int64_t, 3> strides = {0, 0, 0};
  std::array<ScaleStep, 2> scales = {};
  /// The merged loops, each with its stride in this dimension.
  SmallVector<std::pair<unsigned, int64_t>, 2> loops = {};

  /// Returns whether steps of this size may be used, which leave no remainder
  /// in an open loop.
  bool isDividedBy(int64_t step) const {
    return !isOpen || OpenLoop::kMultiple % step == 0;
  }
  /// Returns the size of the steps that run over what is left by steps of this
  /// size: all of it if that is known, else a number that divides it.
  int64_t stepOfRest(int64_t step) const {
    return isOpen ? std::gcd(step, OpenLoop::kMultiple) : size % step;
  }
};

/// Returns the stride of every loop dimension in an operand.
SmallVector<int64_t> stridesOfLoops(AffineMap map, ArrayRef<int64_t> strides);

/// Returns the position in an operand at which all loops begin.
int64_t offsetOf(AffineMap map, ArrayRef<int64_t> strides);

/// Returns the step of every loop in the scales of an operand.
SmallVector<ScaleStep> stepsOfLoops(AffineMap map, ArrayRef<int64_t> strides);

/// Returns the strides of a type; those of a tensor are row-major.
LogicalResult stridesOf(Type type, SmallVector<int64_t> &strides);

/// The loops of an operation: their extents in the tile and in the whole op,
/// their strides in lhs, rhs and out, and their steps in the scales.
struct LoopInfo {
  SmallVector<int64_t> sizes, extents;
  std::array<SmallVector<int64_t>, 3> strides;
  std::array<SmallVector<ScaleStep>, 2> scales;
  std::optional<OpenLoop> open;

  /// Returns the loops of a tile of `op`. `localInputs` replace the types of
  /// lhs and rhs where they are given. Fails for operands with unknown strides.
  static FailureOr<LoopInfo>
  of(linalg::GenericOp op, const ContractionDims &dims, ArrayRef<int64_t> sizes,
     std::array<Type, 2> localInputs, ArrayRef<int64_t> outStrides,
     const std::optional<OpenLoop> &open = {});
};

/// Merges the dimensions of a group that nest in every operand; an open loop
/// stays alone. The result is sorted by stride, outermost first.
SmallVector<Dim> mergeDims(ArrayRef<unsigned> dims, const LoopInfo &loops,
                           unsigned sortOperand);

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_LOOPS_H
