//===- Seeds.cpp - Seeds of stochastic rounding ---------------------------===//

#include "Seeds.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether an argument of the step counts its steps.
static bool countsSteps(func::FuncOp function, BlockArgument arg) {
  auto kind = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                    FP8Dialect::kKindAttrName);
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  return kind && kind.getValue() == "step" && type && type.getRank() == 0 &&
         (type.getElementType().isInteger(32) ||
          type.getElementType().isInteger(64));
}

FailureOr<Value> Seeds::get(Block *block) {
  if (Value known = seeds.lookup(block))
    return known;
  Location loc = function.getLoc();
  Operation *parent = block->getParentOp();
  if (parent == function) {
    auto step = llvm::find_if(block->getArguments(), [&](BlockArgument arg) {
      return countsSteps(function, arg);
    });
    if (step == block->getArguments().end())
      return function.emitError()
             << "rounding: stochastic draws other numbers each step, but no "
                "argument counts the steps; expected one of kind 'step', such "
                "as the count in an optimizer's state";
    builder.setInsertionPointToStart(block);
    auto type = RankedTensorType::get({}, builder.getI64Type());
    Value base = stablehlo::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, seed));
    return seeds[block] =
               MixSeedOp::create(builder, loc, type, base, *step).getResult();
  }
  FailureOr<Value> outer = get(parent->getBlock());
  if (failed(outer))
    return failure();
  auto loop = dyn_cast<stablehlo::WhileOp>(parent);
  if (!loop)
    return seeds[block] = *outer;
  std::optional<stablehlo::CountedLoop> counted =
      stablehlo::matchCountedLoop(loop);
  if (!counted)
    return loop->emitError() << "rounding: stochastic draws other numbers each "
                                "iteration, but this loop has no counter";
  builder.setInsertionPointToStart(block);
  return seeds[block] =
             MixSeedOp::create(builder, loc, outer->getType(), *outer,
                               block->getArgument(counted->counter))
                 .getResult();
}
