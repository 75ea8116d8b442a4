//===- CollectiveVerdicts.cpp - Wire formats of collectives ---------------===//

#include "../EffectiveRecipe.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

using namespace mlir;
using namespace mlir::fp8;

static void readPlace(Operation *op, CollectiveVerdict &row) {
  auto function = op->getParentOfType<func::FuncOp>();
  row.function = function.getName().str();
  row.location = describeLocation(op->getLoc());
  if (auto reason =
          op->getAttrOfType<StringAttr>(FP8Dialect::kWireReasonAttrName))
    row.reason = reason.str();
  for (Operation *parent = op->getParentOp(); parent != function;
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<stablehlo::WhileOp>(parent)) {
      auto counted = stablehlo::matchCountedLoop(loop);
      row.loops.push_back(counted ? counted->trips : 0);
    } else {
      row.inBranch = true;
    }
}

static void readType(Value value, CollectiveVerdict &row) {
  auto type = cast<RankedTensorType>(value.getType());
  row.shape = llvm::to_vector(type.getShape());
  row.from = printType(type.getElementType());
  row.wire = row.from;
}

static CollectiveVerdict readAllReduce(AllReduceOp reduce) {
  CollectiveVerdict row;
  readPlace(reduce, row);
  readType(reduce.getInput(), row);
  row.what = reduce.getLabel().value_or("").str();
  row.operation = stringifyReduction(reduce.getReduction()).str();
  if (reduce.getWire() != Wire::None)
    row.wire = stringifyWire(reduce.getWire()).str();
  row.block = static_cast<int64_t>(reduce.getBlock().value_or(0));
  // Parts of a tensor go to all ranks, reduced parts come back.
  row.bytes = 2 * getWireBytes(reduce);
  return row;
}

/// Returns the value that was quantized or rounded for the wire.
static Value valueBefore(Value value) {
  if (auto unpack = value.getDefiningOp<UnpackOp>())
    if (auto quantize = unpack.getInput().getDefiningOp<QuantizeOp>())
      return quantize.getInput();
  auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
  return convert ? convert.getOperand() : value;
}

static CollectiveVerdict readExchange(ExchangeOp exchange) {
  CollectiveVerdict row;
  readPlace(exchange, row);
  readType(exchange.getInput(), row);
  row.from = printType(
      getElementTypeOrSelf(valueBefore(exchange.getInput()).getType()));
  row.what = exchange.getLabel().value_or("").str();
  row.operation = stringifyExchangeKind(exchange.getKind()).str();
  row.bytes = getSentBytes(exchange);
  if (row.reason.empty())
    row.reason = "the step says so (shard_map)";
  return row;
}

std::vector<CollectiveVerdict>
CollectiveVerdict::getAll(func::FuncOp function) {
  std::vector<CollectiveVerdict> rows;
  function.walk([&](Operation *op) {
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      rows.push_back(readAllReduce(reduce));
    else if (auto exchange = dyn_cast<ExchangeOp>(op))
      rows.push_back(readExchange(exchange));
  });
  return rows;
}
