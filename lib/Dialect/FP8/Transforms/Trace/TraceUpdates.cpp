//===- TraceUpdates.cpp - How large updates are ---------------------------===//
//
// Loss spikes come a few steps after a second moment has been too small for the
// gradients (arXiv 2304.13013): then the mean of g^2 / v is far above 1.
//
//===----------------------------------------------------------------------===//

#include "../State/SecondMoments.h"
#include "Statistics.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8TRACEUPDATES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// Records the number of elements of a gradient g and a second moment v, and
/// the sum of g^2 / v.
static void traceUpdate(Statistics &statistics, const SecondMoment &update) {
  if (tensorOf(update.moment).getNumElements() == 0)
    return;
  OpBuilder builder(update.root);
  StatisticBuilder m{builder, update.root->getLoc()};
  Value g = m.convert(update.gradient, builder.getF64Type());
  Value v = m.convert(update.moment, builder.getF64Type());
  // A parameter without a gradient is not updated: avoid 0 / 0.
  double least = std::numeric_limits<float>::min();
  v = stablehlo::MaxOp::create(builder, m.loc, v, m.like(v, least));
  Value ratio =
      stablehlo::DivOp::create(builder, m.loc, m.mul(g, g), v).getResult();
  Value sum = m.reduceAll({ratio}, {false}, 0).front();
  Value count = m.like(sum, tensorOf(ratio).getNumElements());
  statistics.record(update.parameter, ResultKind::TraceUpdate,
                    m.row({count, sum}), {}, {}, {false, false});
}

namespace {
struct TraceUpdates : public fp8::impl::FP8TraceUpdatesBase<TraceUpdates> {
  void runOnOperation() override {
    Statistics statistics(getOperation());
    for (const SecondMoment &update : findSecondMoments(getOperation()))
      traceUpdate(statistics, update);
    statistics.addResults();
  }
};
} // namespace
