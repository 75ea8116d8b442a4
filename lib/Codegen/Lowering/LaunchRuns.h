//===- LaunchRuns.h - Launches that become one loop -------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LAUNCHRUNS_H
#define FP8_LIB_CODEGEN_LOWERING_LAUNCHRUNS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Consecutive launches of one block, with no side effects between them.
using LaunchRun = SmallVector<LaunchOp>;

/// Returns whether all operands of a launch begin at addresses that are known
/// when the arena is: none is a part of a stack at a run-time offset.
bool hasFixedOperands(LaunchOp launch);

/// Returns the runs of a schedule that are long enough for a loop over a table
/// to be less code than calls. They only contain launches for which `isFixed`
/// holds, whose operands are known at compile time.
SmallVector<LaunchRun> findLaunchRuns(ScheduleOp schedule,
                                      function_ref<bool(LaunchOp)> isFixed);

} // namespace mlir::fp8

#endif // FP8_LIB_CODEGEN_LOWERING_LAUNCHRUNS_H
