//===- ComputeType.h - What unquantized dots compute in ---------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_COMPUTETYPE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_COMPUTETYPE_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// Whether a dot reads f32 operands that bf16 may take the place of: both are
/// f32 and summed over.
bool canReadBF16(stablehlo::DotGeneralOp dot);

/// Makes all such dots of a function read operands rounded to bf16; sums and
/// results stay f32. A value that several dots read is rounded once.
void readBF16InDots(func::FuncOp function);

/// Rounds what is saved for the backward pass to bf16 where it is read, so that
/// the bf16 form is all that is kept. `isQuantized` tells the dots that read a
/// payload instead.
void saveInBF16(ArrayRef<OpOperand *> uses,
                llvm::function_ref<bool(Operation *)> isQuantized);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_COMPUTETYPE_H
