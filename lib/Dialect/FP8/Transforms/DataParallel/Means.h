//===- Means.h - Sums that are divided by a number of rows ------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_MEANS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_MEANS_H

#include "Propagation.h"

namespace mlir::fp8 {

/// Decides whether a partial scalar, a linear function of sums over rows, is a
/// mean: whether its divisor is the number of summed rows, perhaps times sizes
/// of other summed dimensions, and perhaps twice that. It may divide what is
/// summed, too. (A layout only says whether a sum itself is divided by the
/// number of all its elements.)
class Means {
public:
  explicit Means(const Propagation &layouts) : layouts(layouts) {}

  bool isMean(Value value);
  /// Returns the constants by which the sums in `value` are multiplied.
  SmallVector<double> factorsOf(Value value);

private:
  /// A sum over rows and other dimensions, and what it is multiplied by.
  struct Sum {
    double rows = 1;
    SmallVector<double, 4> others;
    double factor = 1;
    bool isMean = false; ///< Known before; what follows is not looked at.
  };

  bool collect(Value value, Sum sum);
  bool collectReduce(stablehlo::ReduceOp reduce, Sum sum);
  bool collectDot(stablehlo::DotGeneralOp dot, Sum sum);
  bool collectLoop(OpResult result, Sum sum);
  void addDivisors(Value rows, Sum &sum);
  bool isMeanOf(const Sum &sum) const;

  const Propagation &layouts;
  SmallVector<Sum> sums;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_MEANS_H
