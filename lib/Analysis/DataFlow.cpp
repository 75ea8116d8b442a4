//===- DataFlow.cpp - Dependences between the values of a step ------------===//

#include "fp8/Analysis/DataFlow.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::isZero(Value value) {
  return stablehlo::isZeros(stablehlo::skipSpread(value));
}

std::optional<double> fp8::getNumber(Value value) {
  return stablehlo::getSplatNumber(stablehlo::skipSpread(value));
}

bool fp8::isSpreadAlong(Value value, int64_t dim) {
  auto spread = value.getDefiningOp<stablehlo::BroadcastInDimOp>();
  if (!spread)
    return false;
  ArrayRef<int64_t> dims = spread.getBroadcastDimensions();
  const int64_t *found = llvm::find(dims, dim);
  return found == dims.end() ||
         shapeOf(spread.getOperand().getType())[found - dims.begin()] !=
             shapeOf(value.getType())[dim];
}

void fp8::forEachSource(Value value, function_ref<void(Value)> visit) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (isa<func::FuncOp>(parent))
      return;
    unsigned i = arg.getArgNumber();
    if (isa<stablehlo::WhileOp>(parent)) {
      visit(parent->getOperand(i));
      visit(yielded(parent->getRegion(1), i));
      return;
    }
    llvm::for_each(parent->getOperands(), visit);
    return;
  }
  Operation *op = value.getDefiningOp();
  unsigned i = cast<OpResult>(value).getResultNumber();
  if (isa<stablehlo::WhileOp>(op)) {
    visit(op->getOperand(i));
    visit(yielded(op->getRegion(1), i));
    visit(yielded(op->getRegion(0), 0));
    return;
  }
  if (stablehlo::isBranch(op)) {
    visit(op->getOperand(0));
    for (Region &region : op->getRegions())
      visit(yielded(region, i));
    return;
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    visit(op->getOperand(i));
    return;
  }
  llvm::for_each(op->getOperands(), visit);
  for (Region &region : op->getRegions())
    if (!region.empty())
      llvm::for_each(region.front().getTerminator()->getOperands(), visit);
}

SmallVector<Value> fp8::choicesOf(Value value) {
  Operation *op = value.getDefiningOp();
  SmallVector<Value> choices;
  if (isa_and_nonnull<stablehlo::SelectOp>(op))
    llvm::append_range(choices, op->getOperands().drop_front());
  else if (op && stablehlo::isBranch(op))
    for (Region &region : op->getRegions())
      choices.push_back(
          yielded(region, cast<OpResult>(value).getResultNumber()));
  return choices;
}

static void forEachSource(Value value, const ValueSet &carried,
                          function_ref<void(Value)> visit) {
  if (carried.contains(value)) {
    auto arg = cast<BlockArgument>(value);
    visit(arg.getOwner()->getParentOp()->getOperand(arg.getArgNumber()));
    return;
  }
  forEachSource(value, visit);
}

bool fp8::forEachCarry(OpOperand &use, function_ref<void(Value)> visit) {
  Operation *op = use.getOwner();
  unsigned i = use.getOperandNumber();
  if (!isa<stablehlo::WhileOp, stablehlo::OptimizationBarrierOp>(op))
    return false;
  visit(op->getResult(i));
  for (Region &region : op->getRegions())
    visit(region.getArgument(i));
  return true;
}

void fp8::forEachPassage(OpOperand &use, function_ref<void(Value)> visit) {
  Operation *op = use.getOwner();
  unsigned i = use.getOperandNumber();
  if (forEachCarry(use, visit))
    return;
  if (op->hasTrait<OpTrait::IsTerminator>()) {
    Operation *parent = op->getParentOp();
    if (stablehlo::isBranch(parent))
      visit(parent->getResult(i));
    if (isa<stablehlo::WhileOp>(parent) &&
        op->getParentRegion() == &parent->getRegion(1)) {
      visit(parent->getResult(i));
      for (Region &region : parent->getRegions())
        visit(region.getArgument(i));
    }
  }
}

ValueSet fp8::sliceOf(ArrayRef<Value> roots, const ValueSet &carried,
                      const ValueSet &barred) {
  ValueSet seen(roots.begin(), roots.end());
  SmallVector<Value> stack(roots);
  while (!stack.empty())
    ::forEachSource(stack.pop_back_val(), carried, [&](Value source) {
      if (!barred.contains(source) && seen.insert(source).second)
        stack.push_back(source);
    });
  return seen;
}

/// Returns true if no gradient passes from a result of `op` to its operands.
/// Weights that are rounded before any dot may have a gradient all the same:
/// training for integer weights defines one.
static bool stopsGradient(Operation *op) {
  if (!isa<stablehlo::FloorOp, stablehlo::CeilOp, stablehlo::SignOp,
           stablehlo::RoundOp, stablehlo::RoundNearestEvenOp>(op))
    return false;
  return llvm::any_of(sliceOf({op->getOperand(0)}, {}, {}), [](Value value) {
    return isa_and_nonnull<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp>(
        value.getDefiningOp());
  });
}

ValueSet fp8::differentiableSliceOf(Value root, const ValueSet &carried,
                                    const ValueSet &barred) {
  ValueSet seen;
  if (!isFloat(root.getType()))
    return seen;
  seen.insert(root);
  SmallVector<Value> stack{root};
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    if (Operation *op = value.getDefiningOp(); op && stopsGradient(op))
      continue;
    ::forEachSource(value, carried, [&](Value source) {
      if (!barred.contains(source) && isFloat(source.getType()) &&
          seen.insert(source).second)
        stack.push_back(source);
    });
  }
  return seen;
}

//===----------------------------------------------------------------------===//
// Dependence
//===----------------------------------------------------------------------===//

Dependence::Dependence(func::FuncOp func, ArrayRef<Value> sources,
                       const ValueSet &carried, bool together,
                       const ValueSet &barred)
    : words(together ? 1 : std::max<size_t>(1, (sources.size() + 63) / 64)),
      carried(carried), barred(barred) {
  for (auto [i, source] : llvm::enumerate(sources)) {
    unsigned bit = together ? 0 : i;
    row(source)[bit / 64] |= Word(1) << (bit % 64);
  }
  visit(func.getBody().front());
}

Dependence::Word *Dependence::row(Value value) {
  auto [it, isNew] = rows.try_emplace(value, bits.size());
  if (isNew)
    bits.resize(bits.size() + words);
  return &bits[it->second];
}

const Dependence::Word *Dependence::find(Value value) const {
  auto it = rows.find(value);
  return it == rows.end() ? nullptr : &bits[it->second];
}

bool Dependence::add(Value to, Value from) {
  if (!find(from) || barred.contains(to))
    return false;
  Word *target = row(to);
  // Look up the source after the target, because a new row may move others.
  const Word *source = find(from);
  Word added = 0;
  for (unsigned i = 0; i < words; ++i) {
    added |= source[i] & ~target[i];
    target[i] |= source[i];
  }
  return added != 0;
}

void Dependence::visit(Block &block) {
  for (Operation &op : block)
    visit(op);
}

void Dependence::visit(Operation &op) {
  if (isa<stablehlo::WhileOp>(op)) {
    Region &condition = op.getRegion(0), &body = op.getRegion(1);
    unsigned count = op.getNumOperands();
    for (unsigned i = 0; i < count; ++i)
      for (Region *region : {&condition, &body})
        add(region->getArgument(i), op.getOperand(i));
    bool changed = true;
    while (changed) {
      changed = false;
      visit(condition.front());
      visit(body.front());
      for (unsigned i = 0; i < count; ++i)
        for (Region *region : {&condition, &body})
          if (!carried.contains(region->getArgument(i)))
            changed |= add(region->getArgument(i), yielded(body, i));
    }
    for (unsigned i = 0; i < count; ++i) {
      add(op.getResult(i), op.getOperand(i));
      add(op.getResult(i), yielded(body, i));
      add(op.getResult(i), yielded(condition, 0));
    }
    return;
  }
  if (stablehlo::isBranch(&op)) {
    for (Region &region : op.getRegions())
      visit(region.front());
    for (OpResult result : op.getResults()) {
      add(result, op.getOperand(0));
      for (Region &region : op.getRegions())
        add(result, yielded(region, result.getResultNumber()));
    }
    return;
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    for (OpResult result : op.getResults())
      add(result, op.getOperand(result.getResultNumber()));
    return;
  }
  // Regions of reductions, sorts and similar ops.
  for (Region &region : op.getRegions()) {
    if (region.empty())
      continue;
    for (Value argument : region.getArguments())
      for (Value operand : op.getOperands())
        add(argument, operand);
    visit(region.front());
  }
  for (Value result : op.getResults()) {
    for (Value operand : op.getOperands())
      add(result, operand);
    for (Region &region : op.getRegions())
      if (!region.empty())
        for (Value value : region.front().getTerminator()->getOperands())
          add(result, value);
  }
}

bool Dependence::depends(Value value, unsigned source) const {
  const Word *found = find(value);
  return found && (found[source / 64] >> (source % 64) & 1);
}

bool Dependence::dependsOnAny(Value value) const {
  const Word *found = find(value);
  return found && llvm::any_of(ArrayRef(found, words),
                               [](Word word) { return word != 0; });
}

bool Dependence::dependsOnAny(Value value,
                              function_ref<bool(unsigned)> accept) const {
  const Word *found = find(value);
  for (unsigned i = 0; found && i < words; ++i)
    for (Word rest = found[i]; rest; rest &= rest - 1)
      if (accept(i * 64 + llvm::countr_zero(rest)))
        return true;
  return false;
}
