//===- Irregular.h - Loop nests that are one kernel -------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_IRREGULAR_H
#define FP8_DIALECT_FP8_IR_IRREGULAR_H

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace mlir::fp8 {

inline void markIrregular(Operation *loop) {
  loop->setAttr(FP8Dialect::kIrregularAttrName,
                UnitAttr::get(loop->getContext()));
}

inline bool isIrregular(Operation *op) {
  return op->hasAttr(FP8Dialect::kIrregularAttrName);
}

/// Returns the loops of a nest in the order of its text, in which
/// `fp8.task_dims` counts them.
inline SmallVector<scf::ForOp> loopsOfNest(Operation *nest) {
  SmallVector<scf::ForOp> loops;
  nest->walk<WalkOrder::PreOrder>(
      [&](scf::ForOp loop) { loops.push_back(loop); });
  return loops;
}

} // namespace mlir::fp8

#endif // FP8_DIALECT_FP8_IR_IRREGULAR_H
