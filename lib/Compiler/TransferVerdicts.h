//===- TransferVerdicts.h - Verdicts on transfers of shards -----*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_TRANSFERVERDICTS_H
#define FP8_LIB_COMPILER_TRANSFERVERDICTS_H

#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

namespace mlir {
namespace fp8 {

/// Completes the verdicts on collectives with what is known once the state is
/// dealt (`--zero`), from the schedules of a module: a gradient travels to the
/// owner of its shard alone, and an owner sends values to all ranks.
void addTransferVerdicts(ModuleOp module, VerdictReport &report);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_COMPILER_TRANSFERVERDICTS_H
