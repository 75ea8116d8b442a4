//===- LaunchRuns.cpp - Launches that become one loop ---------------------===//

#include "LaunchRuns.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;

/// For fewer launches, a loop is not shorter than the calls.
static constexpr size_t kMinLaunches = 4;

bool fp8::hasFixedOperands(LaunchOp launch) {
  return llvm::none_of(launch.getOperands(), [](Value buffer) {
    Operation *def = buffer.getDefiningOp();
    while (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp>(def))
      def = cast<ViewLikeOpInterface>(def).getViewSource().getDefiningOp();
    return isa_and_nonnull<SubbufferOp>(def);
  });
}

SmallVector<LaunchRun>
fp8::findLaunchRuns(ScheduleOp schedule, function_ref<bool(LaunchOp)> isFixed) {
  SmallVector<LaunchRun> runs;
  schedule.walk([&](Block *block) {
    LaunchRun run;
    auto endRun = [&] {
      if (run.size() >= kMinLaunches)
        runs.push_back(run);
      run.clear();
    };
    for (Operation &op : *block) {
      auto launch = dyn_cast<LaunchOp>(op);
      if (launch && isFixed(launch))
        run.push_back(launch);
      else if (!isMemoryEffectFree(&op))
        endRun();
    }
    endRun();
  });
  return runs;
}
