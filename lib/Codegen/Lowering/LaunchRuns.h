//===- LaunchRuns.h - Launches that one loop makes --------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LAUNCHRUNS_H
#define FP8_LIB_CODEGEN_LOWERING_LAUNCHRUNS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Launches of one block in their order, with nothing between them that has an
/// effect.
using LaunchRun = SmallVector<LaunchOp>;

/// The runs of a schedule that are long enough for a loop over a table to be
/// less code than their calls. Only launches for which `isFixed` holds are in
/// them: what each is given is known when the schedule is compiled.
SmallVector<LaunchRun> findLaunchRuns(ScheduleOp schedule,
                                      function_ref<bool(LaunchOp)> isFixed);

} // namespace mlir::fp8

#endif // FP8_LIB_CODEGEN_LOWERING_LAUNCHRUNS_H
