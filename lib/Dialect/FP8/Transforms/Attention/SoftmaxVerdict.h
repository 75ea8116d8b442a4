//===- SoftmaxVerdict.h - What became of scores -----------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SOFTMAXVERDICT_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SOFTMAXVERDICT_H

#include "Scores.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Whether any of the ops that read scores sums over queries, batches or heads.
bool isBackward(const Scores &scores, ArrayRef<Operation *> readers);

/// Makes the verdict on the scores that `readers` read. If they are stored,
/// `obstacle` is the op that prevents the attention.
SoftmaxVerdictAttr makeVerdict(const Scores &scores,
                               ArrayRef<Operation *> readers, ScoreStorage kind,
                               const Twine &reason, Operation *obstacle);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SOFTMAXVERDICT_H
