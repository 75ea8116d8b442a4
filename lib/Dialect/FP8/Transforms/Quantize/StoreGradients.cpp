//===- StoreGradients.cpp - Gradients of weights in FP8 -------------------===//
//
// FP8-LM (arXiv 2310.18313) keeps the gradients of linear layers in FP8: the
// result of a wgrad dot is quantized, and so is every sum of micro-batches,
// which is dequantized, added to and quantized with its new amax (`add_to_fp8`
// of MS-AMP).
//
//===----------------------------------------------------------------------===//

#include "../EffectiveRecipe.h"
#include "../Seeds.h"
#include "../SmallTensors.h"
#include "../StoredForm.h"
#include "../TakenUpdate.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <optional>

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8STOREGRADIENTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Rewrites the path of gradients from the wgrad dots to the optimizer. A
/// gradient is stored as *parts*: payload and scale, or one array in a narrower
/// type.
class GradientStorer {
public:
  GradientStorer(const StorageRecipe &recipe, Seeds &seeds,
                 MLIRContext *context)
      : recipe(recipe), seeds(seeds), builder(context) {}

  /// With a name the quantizations of a gradient are traced by it.
  LogicalResult store(Value gradient, StringAttr name);
  int64_t getNumStored() const { return numStored; }

private:
  using Parts = SmallVector<Value>;

  FailureOr<Parts> encode(Value value, unsigned layers);
  Parts makeZeroParts(Location loc, const StoredForm &form);
  FailureOr<Parts> encodeInitial(Value initial, unsigned layers);
  Value decode(Location loc, ArrayRef<Value> parts, RankedTensorType type,
               unsigned layers);
  stablehlo::WhileOp addCarries(stablehlo::WhileOp loop, unsigned index,
                                ArrayRef<Value> initial);
  LogicalResult storeHere(Value value, unsigned layers);
  LogicalResult storeCarriedSum(Operation *add, unsigned addend, unsigned index,
                                unsigned layers);
  LogicalResult storeStack(stablehlo::DynamicUpdateSliceOp update,
                           unsigned index, ArrayRef<Value> parts);
  LogicalResult follow(Value gradient, unsigned layers);

  const StorageRecipe &recipe;
  Seeds &seeds;
  OpBuilder builder;
  StringAttr name;        ///< Of the gradient that is being stored, or null.
  DenseSet<Value> stored; ///< The values of stored gradients.
  int64_t numStored = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Where a gradient goes
//===----------------------------------------------------------------------===//

/// Whether all elements of a tensor are equal.
static bool isUniformFactor(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<stablehlo::ConstantOp>(op))
    return cast<ElementsAttr>(constant.getValue()).isSplat();
  if (isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
                      stablehlo::ReshapeOp>(op))
    return isUniformFactor(op->getOperand(0));
  return tensorOf(value).getNumElements() == 1;
}

/// Whether an op only changes the layout or the type of a gradient, or
/// multiplies it by a factor.
static bool isArrangement(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::ConvertOp>(
          op))
    return true;
  if (isa<stablehlo::BroadcastInDimOp>(op))
    return tensorOf(op->getOperand(0)).getNumElements() ==
           tensorOf(op->getResult(0)).getNumElements();
  if (isa<RescaleOp>(op))
    return use.getOperandNumber() == 0;
  if (isa<stablehlo::MulOp>(op))
    return isUniformFactor(op->getOperand(1 - use.getOperandNumber()));
  return isa<stablehlo::DivOp>(op) && use.getOperandNumber() == 0 &&
         isUniformFactor(op->getOperand(1));
}

/// Returns the carry of a loop that `argument` is, if the loop only uses it to
/// yield `next`.
static std::optional<unsigned> matchCarry(Value argument, Value next) {
  auto carry = dyn_cast<BlockArgument>(argument);
  if (!carry || !carry.hasOneUse() || !next.hasOneUse())
    return std::nullopt;
  auto loop = dyn_cast<stablehlo::WhileOp>(carry.getOwner()->getParentOp());
  Operation *yield = *next.user_begin();
  unsigned index = carry.getArgNumber();
  if (!loop || carry.getOwner()->getParent() != &loop.getBody() ||
      yield != carry.getOwner()->getTerminator() ||
      yield->getOperand(index) != next ||
      !loop.getCond().getArgument(index).use_empty())
    return std::nullopt;
  return index;
}

//===----------------------------------------------------------------------===//
// Storing
//===----------------------------------------------------------------------===//

/// Makes the stored form of `value` at the builder's insertion point.
FailureOr<GradientStorer::Parts> GradientStorer::encode(Value value,
                                                        unsigned layers) {
  // Distinct from the numbers of tensors that dots read and of the state.
  int64_t tensor = (int64_t(1) << 40) + numStored++;
  FailureOr<Parts> parts =
      StoredForm::get(recipe, tensorOf(value), layers)
          .store(builder, value.getLoc(), value, &seeds, tensor);
  if (failed(parts) || !name)
    return parts;
  if (auto unpack = parts->front().getDefiningOp<UnpackOp>())
    unpack.getInput().getDefiningOp()->setAttr(FP8Dialect::kTensorAttrName,
                                               name);
  return parts;
}

/// Restores the gradient from `parts`.
Value GradientStorer::decode(Location loc, ArrayRef<Value> parts,
                             RankedTensorType type, unsigned layers) {
  Value value = StoredForm::get(recipe, type, layers).load(builder, loc, parts);
  stored.insert(value);
  return value;
}

/// Gives a loop new carries for the stored parts of carry `index`, which the
/// loop no longer changes. Returns the new loop.
stablehlo::WhileOp GradientStorer::addCarries(stablehlo::WhileOp loop,
                                              unsigned index,
                                              ArrayRef<Value> initial) {
  SmallVector<Value> operands(loop->getOperands());
  SmallVector<Type> types(loop->getResultTypes());
  for (Value value : initial) {
    operands.push_back(value);
    types.push_back(value.getType());
  }
  Operation *copy = cloneAroundRegions(builder, loop, operands, types);
  loop->erase();
  for (Region &region : copy->getRegions())
    for (Value value : initial)
      region.addArgument(value.getType(), copy->getLoc());
  Block &body = copy->getRegion(1).front();
  body.getTerminator()->setOperand(index, body.getArgument(index));
  return cast<stablehlo::WhileOp>(copy);
}

/// Makes the stored form of zeros.
GradientStorer::Parts GradientStorer::makeZeroParts(Location loc,
                                                    const StoredForm &form) {
  return llvm::map_to_vector(form.getPartTypes(), [&](Type type) {
    return makeZeros(builder, loc, type);
  });
}

/// Makes the stored form of a sum before anything is added to it.
FailureOr<GradientStorer::Parts>
GradientStorer::encodeInitial(Value initial, unsigned layers) {
  if (!isZero(initial))
    return encode(initial, layers);
  return makeZeroParts(initial.getLoc(),
                       StoredForm::get(recipe, tensorOf(initial), layers));
}

/// Stores the sum from iteration to iteration if `add` is the last op on a
/// carry of a loop over micro-batches.
LogicalResult GradientStorer::storeCarriedSum(Operation *add, unsigned addend,
                                              unsigned index, unsigned layers) {
  auto loop = cast<stablehlo::WhileOp>(add->getParentOp());
  Location loc = add->getLoc();
  RankedTensorType type = tensorOf(add->getResult(0));
  builder.setInsertionPoint(loop);
  FailureOr<Parts> initial = encodeInitial(loop->getOperand(index), layers);
  if (failed(initial))
    return failure();
  unsigned first = loop->getNumResults();
  loop = addCarries(loop, index, *initial);
  Block &body = loop.getBody().front();
  builder.setInsertionPoint(add);
  Parts carried(body.getArguments().drop_front(first));
  add->setOperand(1 - addend, decode(loc, carried, type, layers));
  builder.setInsertionPointAfter(add);
  FailureOr<Parts> parts = encode(add->getResult(0), layers);
  if (failed(parts))
    return failure();
  Operation *yield = body.getTerminator();
  yield->insertOperands(yield->getNumOperands(), *parts);

  builder.setInsertionPointAfter(loop);
  Parts results(loop->getResults().drop_front(first));
  Value sum = decode(loc, results, type, layers);
  loop->getResult(index).replaceAllUsesWith(sum);
  return follow(sum, layers);
}

/// Stacks the stored parts if `update` writes a layer's gradient into a stack
/// that a loop carries.
LogicalResult GradientStorer::storeStack(stablehlo::DynamicUpdateSliceOp update,
                                         unsigned index,
                                         ArrayRef<Value> parts) {
  auto loop = cast<stablehlo::WhileOp>(update->getParentOp());
  Location loc = update.getLoc();
  RankedTensorType type = tensorOf(update->getResult(0));
  SmallVector<Value> starts(update.getStartIndices());
  builder.setInsertionPoint(loop);
  Parts initial =
      makeZeroParts(loc, StoredForm::get(recipe, type, /*layers=*/1));
  unsigned first = loop->getNumResults();
  loop = addCarries(loop, index, initial);
  Block &body = loop.getBody().front();
  builder.setInsertionPoint(update);
  Operation *yield = body.getTerminator();
  for (auto [number, part] : llvm::enumerate(parts)) {
    Value stack = body.getArgument(first + number);
    SmallVector<int64_t> shape(tensorOf(stack).getShape());
    shape[0] = 1;
    Value slot = makeReshape(builder, loc, part, shape);
    Value next = stablehlo::DynamicUpdateSliceOp::create(
        builder, loc, stack.getType(), stack, slot, starts);
    yield->insertOperands(yield->getNumOperands(), next);
  }
  update->erase();

  builder.setInsertionPointAfter(loop);
  Parts results(loop->getResults().drop_front(first));
  Value gradients = decode(loc, results, type, /*layers=*/1);
  loop->getResult(index).replaceAllUsesWith(gradients);
  return follow(gradients, /*layers=*/1);
}

/// Stores the sums of a stored gradient with others as well.
LogicalResult GradientStorer::follow(Value gradient, unsigned layers) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : gradient.getUses())
    uses.push_back(&use);
  for (OpOperand *use : uses) {
    Operation *add = use->getOwner();
    // The shape must not change, so that the dimensions of layers stay.
    if (gradient.hasOneUse() && isArrangement(*use) &&
        tensorOf(add->getResult(0)).getShape() ==
            tensorOf(gradient).getShape() &&
        !isa<stablehlo::TransposeOp>(add)) {
      stored.insert(add->getResult(0));
      if (failed(follow(add->getResult(0), layers)))
        return failure();
      continue;
    }
    if (!isa<stablehlo::AddOp>(add))
      continue;
    unsigned addend = use->getOperandNumber();
    Value other = add->getOperand(1 - addend), sum = add->getResult(0);
    if (std::optional<unsigned> index = matchCarry(other, sum)) {
      if (failed(storeCarriedSum(add, addend, *index, layers)))
        return failure();
    } else if (stored.contains(other) && !stored.contains(sum)) {
      if (failed(storeHere(sum, layers)))
        return failure();
    }
  }
  return success();
}

/// Stores `value` where it is computed, and the sums it becomes part of.
LogicalResult GradientStorer::storeHere(Value value, unsigned layers) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    uses.push_back(&use);
  builder.setInsertionPointAfterValue(value);
  FailureOr<Parts> parts = encode(value, layers);
  if (failed(parts))
    return failure();
  stored.insert(value);
  if (uses.size() == 1) {
    auto update =
        dyn_cast<stablehlo::DynamicUpdateSliceOp>(uses[0]->getOwner());
    if (update && layers == 0 && uses[0]->getOperandNumber() == 1 &&
        tensorOf(value).getDimSize(0) == 1)
      if (std::optional<unsigned> index =
              matchCarry(update.getOperand(), update->getResult(0)))
        return storeStack(update, *index, *parts);
  }
  Value read = decode(value.getLoc(), *parts, tensorOf(value), layers);
  for (OpOperand *use : uses)
    use->set(read);
  return follow(read, layers);
}

LogicalResult GradientStorer::store(Value gradient, StringAttr name) {
  this->name = name;
  // The gradient is stored in the shape in which the optimizer reads it.
  while (gradient.hasOneUse() && isArrangement(*gradient.use_begin()))
    gradient = gradient.use_begin()->getOwner()->getResult(0);
  return stored.contains(gradient) ? success() : storeHere(gradient, 0);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Returns a function's wgrad dots, except those that a rule keeps in high
/// precision: these layers stay in high precision as a whole.
static SmallVector<Operation *> findGradients(func::FuncOp function) {
  SmallVector<Operation *> gradients;
  function.walk([&](Operation *op) {
    VerdictAttr verdict = getVerdict(op);
    if (verdict && verdict.getRole() == DotRole::Wgrad &&
        !verdict.isKeptByRule())
      gradients.push_back(op);
  });
  return gradients;
}

namespace {
struct StoreGradients : fp8::impl::FP8StoreGradientsBase<StoreGradients> {
  using FP8StoreGradientsBase::FP8StoreGradientsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getEffectiveRecipe(module);
    if (failed(recipe) || failed(verifyAnyVerdict(module)) ||
        failed(verifyDotsQuantized(module)))
      return signalPassFailure();
    if (!recipe->gradients.changes())
      return markAllAnalysesPreserved();
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(store(function, *recipe)))
        signalPassFailure();
  }

  LogicalResult store(func::FuncOp function, const Recipe &recipe) {
    SmallVector<Operation *> gradients = findGradients(function);
    if (gradients.empty())
      return success();
    Seeds seeds(function, recipe.seed);
    if (recipe.gradients.rounding == Rounding::Stochastic)
      seeds.prepare();
    GradientStorer storer(recipe.gradients, seeds, &getContext());
    for (Operation *dot : gradients)
      if (failed(storer.store(dot->getResult(0), getTraceName(dot))))
        return failure();
    numGradients += storer.getNumStored();
    return success();
  }

  /// Returns the name of the gradient of a dot's weight in traces, if it is to
  /// have one.
  StringAttr getTraceName(Operation *dot) const {
    StringAttr layer = getVerdict(dot).getLayer();
    if (!nameTensors || !layer)
      return nullptr;
    return StringAttr::get(dot->getContext(),
                           layer.getValue() + ".weight_gradient");
  }
};
} // namespace
