//===- KeepShapes.h - Scores that are reshaped and back ---------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_KEEPSHAPES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_KEEPSHAPES_H

#include "mlir/IR/Block.h"

namespace mlir::fp8 {

/// Computes what follows from scores elementwise between two reshapes, of which
/// the second one undoes the first, in the shape of the scores: what else is
/// read there (the mask of shifted windows) is reshaped instead. Returns the
/// number of reshapes that were removed.
unsigned keepShapes(Block &block);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_KEEPSHAPES_H
