//===- ClipUpdates.cpp - StableAdamW's update clipping --------------------===//

#include "ClipUpdates.h"
#include "../SmallTensors.h"
#include "SecondMoments.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// The op that divides an update by the root of a second moment.
struct Division {
  Operation *op = nullptr;
  /// The number that is added to the root.
  double epsilon = 1e-8;
};
} // namespace

/// Returns the first op that divides by a value computed from the root, or
/// multiplies by its inverse.
static Division findDivision(Operation *root) {
  Division found;
  llvm::SetVector<Value> open;
  open.insert(root->getResult(0));
  for (unsigned i = 0; i < open.size() && i < 16; ++i)
    for (OpOperand &use : open[i].getUses()) {
      Operation *user = use.getOwner();
      if (isa<stablehlo::AddOp>(user)) {
        if (auto number =
                getNumber(user->getOperand(1 - use.getOperandNumber())))
          found.epsilon = *number;
        open.insert(user->getResult(0));
      } else if (isa<stablehlo::ConvertOp, stablehlo::MaxOp>(user)) {
        open.insert(user->getResult(0));
      } else if (isa<stablehlo::DivOp>(user)) {
        if (use.getOperandNumber() == 1 && !getNumber(user->getOperand(0))) {
          found.op = user;
          return found;
        }
        open.insert(user->getResult(0)); // Bias correction, or the inverse.
      } else if (isa<stablehlo::MulOp>(user)) {
        Value other = user->getOperand(1 - use.getOperandNumber());
        if (!other.getDefiningOp<stablehlo::BroadcastInDimOp>() &&
            !getNumber(other)) {
          found.op = user;
          return found;
        }
        open.insert(user->getResult(0));
      }
    }
  return found;
}

/// Makes max(1, RMS(g / sqrt(v))).
static Value makeDivisor(OpBuilder &b, Location loc, Value gradient,
                         Value moment, double epsilon) {
  auto f32 = RankedTensorType::get(shapeOf(gradient), b.getF32Type());
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  auto toF32 = [&](Value value) -> Value {
    if (value.getType() == f32)
      return value;
    return stablehlo::ConvertOp::create(b, loc, f32, value);
  };
  gradient = toF32(gradient);
  Value square = stablehlo::MulOp::create(b, loc, gradient, gradient);
  Value floor = makeSplat(b, loc, f32, std::max(epsilon * epsilon, 1e-30));
  Value ratio = stablehlo::DivOp::create(
      b, loc, square,
      stablehlo::MaxOp::create(b, loc, toF32(moment), floor).getResult());
  Value sum = makeReduction<stablehlo::AddOp>(
      b, loc, ratio, makeSplat(b, loc, scalar, 0),
      llvm::to_vector(llvm::seq<int64_t>(f32.getRank())));
  Value mean = stablehlo::MulOp::create(
      b, loc, sum, makeSplat(b, loc, scalar, 1.0 / f32.getNumElements()));
  Value rms = stablehlo::SqrtOp::create(b, loc, scalar, mean);
  return stablehlo::MaxOp::create(b, loc, makeSplat(b, loc, scalar, 1), rms);
}

llvm::StringSet<> fp8::clipUpdates(func::FuncOp function) {
  llvm::StringSet<> clipped;
  OpBuilder builder(function.getContext());
  for (const SecondMoment &found : findSecondMoments(function)) {
    Division division = findDivision(found.root);
    if (!division.op || shapeOf(found.gradient).empty() ||
        shapeOf(found.gradient) != shapeOf(found.moment) ||
        shapeOf(found.gradient) != shapeOf(division.op->getResult(0)))
      continue;
    Value update = division.op->getResult(0);
    auto type = cast<RankedTensorType>(update.getType());
    Location loc = division.op->getLoc();
    builder.setInsertionPointAfter(division.op);
    Value divisor = makeDivisor(builder, loc, found.gradient, found.moment,
                                division.epsilon);
    auto scalar = RankedTensorType::get({}, type.getElementType());
    if (divisor.getType() != scalar)
      divisor = stablehlo::ConvertOp::create(builder, loc, scalar, divisor);
    Value spread = stablehlo::BroadcastInDimOp::create(
        builder, loc, type, divisor, builder.getDenseI64ArrayAttr({}));
    auto result = stablehlo::DivOp::create(builder, loc, update, spread);
    update.replaceAllUsesExcept(result, result);
    clipped.insert(found.parameter);
  }
  return clipped;
}
