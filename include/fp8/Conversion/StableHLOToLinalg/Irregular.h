//===- Irregular.h - Loop nests that are one kernel -------------*- C++ -*-===//

#ifndef FP8_CONVERSION_STABLEHLOTOLINALG_IRREGULAR_H
#define FP8_CONVERSION_STABLEHLOTOLINALG_IRREGULAR_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace mlir::fp8 {

/// On the loops of a nest that is the code of one task (a scatter, a sort,
/// ...), at least on the outermost one that has several iterations. A loop
/// without it is control flow between kernels.
inline constexpr llvm::StringLiteral kIrregularAttr = "fp8.irregular";

/// On what reads values behind an optimization barrier: it computes again what
/// was computed before, and is not to be merged with it.
inline constexpr llvm::StringLiteral kRecomputeAttr = "fp8.recompute";
/// Op attribute (UnitAttr): its result is to be kept as it is, not computed
/// where it is read.
inline constexpr llvm::StringLiteral kKeptAttr = "fp8.kept";

inline void markIrregular(Operation *loop) {
  loop->setAttr(kIrregularAttr, UnitAttr::get(loop->getContext()));
}

inline bool isIrregular(Operation *op) { return op->hasAttr(kIrregularAttr); }

} // namespace mlir::fp8

#endif // FP8_CONVERSION_STABLEHLOTOLINALG_IRREGULAR_H
