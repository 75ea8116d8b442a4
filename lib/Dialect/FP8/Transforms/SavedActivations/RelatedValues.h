//===- RelatedValues.h - The inputs of norms and of gated units -*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_RELATEDVALUES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_RELATEDVALUES_H

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Finds norms, which take the root of a sum over a function of their input.
/// Returns the inputs and the values that are computed from them row by row.
DenseSet<Value> findValuesOfNorms(func::FuncOp function,
                                  const LinearLayers &layers);

/// Returns the gates and linear branches of gated units, with the values that
/// are related to them by elementwise ops.
DenseSet<Value> findValuesOfGatedUnits(func::FuncOp function,
                                       const LinearLayers &layers);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_RELATEDVALUES_H
