//===- GradientWire.cpp - How gradients travel between ranks --------------===//

#include "GradientWire.h"

#include "../Accumulators.h"

#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the slots of mu for a reduction in these loops, one for each
/// iteration; nothing if a loop has no fixed number of iterations, or if
/// slots cannot be numbered.
static std::optional<SmallVector<LayerSlot>> slotsOfIterations(Block *block) {
  SmallVector<LayerSlot> slots;
  for (Operation *op = block->getParentOp(); !isa<func::FuncOp>(op);
       block = op->getBlock(), op = op->getParentOp()) {
    auto loop = dyn_cast<stablehlo::WhileOp>(op);
    if (!loop)
      continue;
    std::optional<stablehlo::CountedLoop> counted =
        stablehlo::matchCountedLoop(loop);
    if (!counted || block != &loop.getBody().front() ||
        std::abs(counted->step) != 1)
      return std::nullopt;
    slots.insert(slots.begin(),
                 {block->getArgument(counted->counter), counted->step,
                  -counted->step * counted->lower, counted->trips});
  }
  return slots;
}

/// Returns why a value travels without a narrower wire format; empty if it
/// travels as the recipe says.
StringRef GradientWire::getReasonNotNarrowed(Value value,
                                             bool isGradient) const {
  auto type = cast<RankedTensorType>(value.getType());
  if (!isGradient)
    return "no gradient: it travels as it is";
  if (recipe.format == Wire::None)
    return "the recipe has no all_reduce";
  if (type.getNumElements() <= 1)
    return "a single number";
  if (!type.getElementType().isF32())
    return "not in f32";
  if (recipe.isFP8() && !slotsOfIterations(value.getParentBlock()))
    return "made whole in a loop that may run any number of times: mu is state "
           "of each iteration";
  return "";
}

/// Returns the shape of the mu of one iteration: two numbers for each slice.
static SmallVector<int64_t> shapeOfMu(AllReduceOp reduce) {
  SmallVector<int64_t> shape;
  if (std::optional<uint64_t> slices = reduce.getSlices())
    shape.push_back(static_cast<int64_t>(*slices));
  shape.push_back(2);
  return shape;
}

/// Replaces a reduction by one that travels as the recipe says.
AllReduceOp GradientWire::narrow(OpBuilder &builder, AllReduceOp reduce,
                                 Value mu) const {
  IntegerAttr block = recipe.tile == StorageTiling::Group128
                          ? builder.getI64IntegerAttr(128)
                          : IntegerAttr();
  auto narrow = AllReduceOp::create(
      builder, reduce.getLoc(), reduce.getType(0), mu ? mu.getType() : Type(),
      reduce.getReduction(), reduce.getInput(), mu, recipe.format, block,
      /*shard=*/IntegerAttr(), reduce.getSlicesAttr(), reduce.getLabelAttr());
  narrow->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
  reduce.getResult().replaceAllUsesWith(narrow.getResult());
  reduce.erase();
  return narrow;
}

/// Adds FP8-LM's automatic scale to the state, as zeros: it is not yet known. A
/// reduction in a loop has one for each iteration, and one of a stack has one
/// for each slice.
BlockArgument GradientWire::addMu(AllReduceOp reduce,
                                  ArrayRef<LayerSlot> slots) {
  Builder builder(func.getContext());
  StringRef label = reduce.getLabel().value_or("");
  label.consume_front("gradient ");
  std::string base = "fp8." + label.str() + ".all_reduce", name = base;
  for (unsigned copy = 2; !muNames.insert(name).second; ++copy)
    name = base + "." + std::to_string(copy);
  StringAttr path = builder.getStringAttr(name + ".mu");
  SmallVector<int64_t> shape;
  for (const LayerSlot &slot : slots)
    shape.push_back(slot.count);
  llvm::append_range(shape, shapeOfMu(reduce));
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  unsigned index = func.getNumArguments();
  (void)func.insertArgument(
      index, type,
      builder.getDictionaryAttr(
          {builder.getNamedAttr(FP8Dialect::kPathAttrName, path),
           builder.getNamedAttr(FP8Dialect::kRoleAttrName,
                                builder.getStringAttr("state")),
           builder.getNamedAttr(FP8Dialect::kKindAttrName,
                                builder.getStringAttr("other")),
           builder.getNamedAttr(FP8Dialect::kZeroInitAttrName,
                                builder.getUnitAttr())}),
      func.getLoc());
  (void)func.insertResult(
      func.getNumResults(), type,
      builder.getDictionaryAttr(
          {builder.getNamedAttr(FP8Dialect::kPathAttrName, path),
           builder.getNamedAttr(FP8Dialect::kStateAttrName, path)}));
  return func.getArgument(index);
}

/// Gives the reductions that need it their mu, through the loops and branches
/// around them.
void GradientWire::addMus() {
  Accumulators mus(func);
  for (AllReduceOp reduce : withoutMu) {
    auto type = RankedTensorType::get(shapeOfMu(reduce),
                                      Float32Type::get(func.getContext()));
    SmallVector<LayerSlot> slots = *slotsOfIterations(reduce->getBlock());
    unsigned mu =
        mus.add(addMu(reduce, slots), [&](OpBuilder &builder, Location,
                                          Value before, Value reduced) {
          return narrow(builder, reduced.getDefiningOp<AllReduceOp>(), before)
              .getNewMu();
        });
    mus.record(mu, reduce.getResult(), slots, type);
  }
  Operation *end = func.getBody().front().getTerminator();
  end->insertOperands(end->getNumOperands(), mus.materialize());
}

void GradientWire::choose(AllReduceOp reduce, bool isGradient) {
  OpBuilder builder(reduce);
  StringRef reason = getReasonNotNarrowed(reduce.getInput(), isGradient);
  bool isNarrow = reason.empty();
  if (isNarrow)
    reason = "a gradient, as all_reduce of the recipe says";
  reduce->setAttr(FP8Dialect::kWireReasonAttrName,
                  builder.getStringAttr(reason));
  if (isNarrow && recipe.isFP8())
    withoutMu.push_back(reduce);
  else if (isNarrow)
    narrow(builder, reduce, Value());
}
