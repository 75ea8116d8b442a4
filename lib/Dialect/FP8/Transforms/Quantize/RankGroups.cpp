//===- RankGroups.cpp - Groups of ranks that share a value ----------------===//

#include "RankGroups.h"
#include "../SmallTensors.h"

#include "fp8/Dialect/StableHLO/IR/Reductions.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether the values that ranks have sent are summed in the form that
/// `stablehlo-lower-collectives` makes: along the dimension that counts the
/// ranks.
static bool isSummed(ExchangeOp exchange) {
  if (!exchange.getResult().hasOneUse() ||
      exchange.getKind() == ExchangeKind::Permute)
    return false;
  auto reduce =
      dyn_cast<stablehlo::ReduceOp>(*exchange.getResult().user_begin());
  return reduce && reduce.getDimensions() == ArrayRef<int64_t>{0} &&
         isa<stablehlo::AddOp>(reduce.getBody().front().front());
}

ExchangeOp fp8::findSumOverRanks(Value value) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      auto exchange = dyn_cast<ExchangeOp>(user);
      if (exchange && isSummed(exchange))
        return exchange;
      if (isa<RescaleOp, stablehlo::ConvertOp, stablehlo::PadOp,
              stablehlo::ReshapeOp, stablehlo::TransposeOp>(user))
        worklist.push_back(user->getResult(0));
    }
  return nullptr;
}

Value fp8::reduceMaxOverGroups(OpBuilder &builder, Value value,
                               DenseIntElementsAttr ranks, StringAttr label,
                               StringRef reason) {
  Location loc = value.getLoc();
  RankedTensorType type = tensorOf(value);
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), ranks.getType().getDimSize(1));
  auto all = ExchangeOp::create(builder, loc, type.clone(shape),
                                ExchangeKind::Gather, value, ranks, label);
  all->setAttr(FP8Dialect::kWireReasonAttrName, builder.getStringAttr(reason));
  auto scalar = RankedTensorType::get({}, type.getElementType());
  return makeReduction<stablehlo::MaxOp>(
      builder, loc, all.getResult(), makeSplat(builder, loc, scalar, 0), {0});
}
