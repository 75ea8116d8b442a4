//===- Usage.cpp - Uses of a step's inputs --------------------------------===//

#include "Usage.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::isKeyType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isUnsignedInteger(32) &&
         (tensor.getShape() == ArrayRef<int64_t>{2} ||
          tensor.getShape() == ArrayRef<int64_t>{4});
}

bool fp8::drawsBits(Value key) {
  if (!isKeyType(key.getType()))
    return false;
  ValueSet seen{key};
  SmallVector<Value> stack{key};
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    auto push = [&](Value next) {
      auto type = dyn_cast<IntegerType>(elementOf(next));
      if (type && type.isUnsigned() && seen.insert(next).second)
        stack.push_back(next);
    };
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (isa<stablehlo::XorOp, stablehlo::RngBitGeneratorOp>(op))
        return true;
      forEachPassage(use, push);
      // A lookup returns another value.
      if (!isa<stablehlo::WhileOp, stablehlo::OptimizationBarrierOp,
               stablehlo::GatherOp>(op))
        llvm::for_each(op->getResults(), push);
    }
  }
  return false;
}

namespace {
/// Analyzes the uses of one argument.
class UseReader {
public:
  UseReader(unsigned arg, const ValueSet &forward,
            const Dependence &onArguments, ArrayRef<ArgumentUse> uses)
      : arg(arg), forward(forward), onArguments(onArguments), uses(uses) {}

  ArgumentUse read(Value argument);

private:
  /// The origin of another operand.
  enum class Origin { Constant, Data, Weights, Unknown };
  Origin originOf(Value value) const;
  void visit(OpOperand &use, bool spread);
  void combineWith(Value other, Value result, bool spread);
  void push(Value value, bool spread) {
    if (forward.contains(value) && seen.insert(value).second)
      stack.push_back({value, spread});
  }

  unsigned arg;
  const ValueSet &forward;
  const Dependence &onArguments;
  ArrayRef<ArgumentUse> uses;
  ValueSet seen;
  /// Values, and whether all rows of a batch share them.
  SmallVector<std::pair<Value, bool>> stack;
  bool asData = false, asWeights = false;
};
} // namespace

/// Returns what `value` is before it is transposed, converted, or scaled by one
/// number: a weight divided by its norm is a weight, even if the norm depends
/// on data.
static Value withoutScale(Value value) {
  auto isNumber = [](Value value) {
    auto spread = value.getDefiningOp<stablehlo::BroadcastInDimOp>();
    return spread && isScalar(spread.getOperand().getType());
  };
  while (Operation *op = value.getDefiningOp()) {
    if (isa<stablehlo::TransposeOp, stablehlo::ConvertOp, stablehlo::ReshapeOp>(
            op) ||
        (isa<stablehlo::MulOp, stablehlo::DivOp>(op) &&
         isNumber(op->getOperand(1))))
      value = op->getOperand(0);
    else if (isa<stablehlo::MulOp>(op) && isNumber(op->getOperand(0)))
      value = op->getOperand(1);
    else
      break;
  }
  return value;
}

UseReader::Origin UseReader::originOf(Value value) const {
  value = withoutScale(value);
  bool data = false, weights = false, unknown = false;
  onArguments.dependsOnAny(value, [&](unsigned source) {
    data |= uses[source] == ArgumentUse::Data;
    weights |= uses[source] == ArgumentUse::Weights;
    unknown |= uses[source] == ArgumentUse::Unknown && source != arg;
    return data;
  });
  return data      ? Origin::Data
         : unknown ? Origin::Unknown
         : weights ? Origin::Weights
                   : Origin::Constant;
}

/// Returns true if `value` repeats one row over the leading dimension.
static bool isSpread(Value value) { return isSpreadAlong(value, 0); }

/// Handles an elementwise operation on the argument and `other`.
void UseReader::combineWith(Value other, Value result, bool spread) {
  switch (originOf(other)) {
  case Origin::Constant:
    return push(result, spread);
  case Origin::Data:
    (spread ? asWeights : asData) = true;
    return;
  case Origin::Weights:
    (isSpread(other) && !spread ? asData : asWeights) = true;
    return;
  case Origin::Unknown:
    return;
  }
}

void UseReader::visit(OpOperand &use, bool spread) {
  Operation *op = use.getOwner();
  unsigned i = use.getOperandNumber();
  forEachPassage(use, [&](Value next) { push(next, spread); });
  if (isa<stablehlo::WhileOp, stablehlo::OptimizationBarrierOp>(op) ||
      op->getNumResults() == 0 || !forward.contains(op->getResult(0)))
    return;
  Value result = op->getResult(0);
  if (isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp>(op)) {
    switch (originOf(op->getOperand(1 - i))) {
    case Origin::Constant:
      return push(result, spread);
    case Origin::Data:
      asWeights = true;
      return;
    case Origin::Weights:
      asData = true;
      return;
    case Origin::Unknown:
      return;
    }
  }
  if (isa<stablehlo::GatherOp>(op) && i == 0 &&
      originOf(op->getOperand(1)) == Origin::Data) {
    asWeights = true;
    return;
  }
  if (isa<stablehlo::SelectOp>(op)) {
    if (i == 0)
      return push(result, spread);
    return combineWith(op->getOperand(3 - i), result, spread);
  }
  if (op->getNumOperands() == 2 &&
      op->getOperand(0).getType() == op->getOperand(1).getType() &&
      op->hasTrait<OpTrait::Elementwise>())
    return combineWith(op->getOperand(1 - i), result, spread);
  for (Value next : op->getResults())
    push(next, spread || isSpread(next));
}

ArgumentUse UseReader::read(Value argument) {
  push(argument, false);
  while (!stack.empty()) {
    auto [value, spread] = stack.pop_back_val();
    for (OpOperand &use : value.getUses())
      visit(use, spread);
  }
  return asData      ? ArgumentUse::Data
         : asWeights ? ArgumentUse::Weights
                     : ArgumentUse::Unknown;
}

void fp8::findArgumentUses(func::FuncOp func, const ValueSet &forward,
                           const Dependence &onArguments,
                           std::vector<ArgumentUse> &uses) {
  // Each known use may determine the use of other arguments, so iterate to a
  // fixed point.
  bool changed = true;
  while (changed) {
    changed = false;
    for (BlockArgument argument : func.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (uses[i] != ArgumentUse::Unknown)
        continue;
      uses[i] = UseReader(i, forward, onArguments, uses).read(argument);
      changed |= uses[i] != ArgumentUse::Unknown;
    }
  }
}
