//===- WeightCopies.cpp - FP8 copies of weights as state ------------------===//

#include "WeightCopies.h"

#include "../SmallTensors.h"
#include "../State/FirstScale.h"
#include "../State/StateFunctions.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/Barriers.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

static StringAttr getStringAttr(func::FuncOp function, BlockArgument arg,
                                StringRef name) {
  return function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
}

/// Returns the result that is the argument's next value; null for a frozen
/// argument.
static Value getNext(func::FuncOp function, BlockArgument arg) {
  StringAttr path = getStringAttr(function, arg, FP8Dialect::kPathAttrName);
  for (unsigned i = 0; path && i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, FP8Dialect::kStateAttrName) == path)
      return function.getBody().front().getTerminator()->getOperand(i);
  return nullptr;
}

/// Whether two values are the same computation on the same values.
static bool isSame(Value a, Value b) {
  a = stablehlo::skipBarriers(a);
  b = stablehlo::skipBarriers(b);
  if (a == b)
    return true;
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  return first && second && first->getName() == second->getName() &&
         cast<OpResult>(a).getResultNumber() ==
             cast<OpResult>(b).getResultNumber() &&
         first->getAttrDictionary() == second->getAttrDictionary() &&
         first->getResultTypes() == second->getResultTypes() &&
         first->getNumOperands() == second->getNumOperands() &&
         llvm::all_of(llvm::zip(first->getOperands(), second->getOperands()),
                      [](auto pair) {
                        return isSame(std::get<0>(pair), std::get<1>(pair));
                      });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Adds the ops that compute `value`; fails if they depend on more than state.
bool WeightCopies::addOps(Copy &copy, Value value,
                          DenseSet<Operation *> &seen) const {
  value = stablehlo::skipBarriers(value);
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    func::FuncOp step = function;
    if (arg.getOwner() != &step.getBody().front())
      return false;
    if (!llvm::is_contained(copy.leaves, arg))
      copy.leaves.push_back(arg);
    // The function has no attributes of a new argument yet; it has no next
    // value either.
    if (arg.getArgNumber() >= step.getNumArguments())
      return false;
    std::optional<ArgRole> role = argRoleOf(arg);
    return role == ArgRole::Frozen ||
           (role == ArgRole::State && getNext(step, arg));
  }
  Operation *op = value.getDefiningOp();
  if (!isPure(op) || op->getNumRegions() != 0)
    return false;
  if (!seen.insert(op).second)
    return true;
  for (Value operand : op->getOperands())
    if (!addOps(copy, operand, seen))
      return false;
  copy.ops.push_back(op);
  return true;
}

BlockArgument WeightCopies::addArgument(Type type, const std::string &path) {
  return delayed.getSignature().addStateArgument(
      type, path, stringifyEnum(StateKind::Other), function.getLoc());
}

Value WeightCopies::get(StringRef name, const OperandRecipe &recipe,
                        ScaledType type, Value source, Overflow overflow,
                        const DelayedScaling::Rule &rule) {
  for (const Copy &copy : copies)
    if (copy.type == type && copy.recipe == recipe &&
        isSame(copy.source, source))
      return copy.payload;
  Copy copy{"", 0, recipe, type, source, overflow, rule, {}, {}};
  DenseSet<Operation *> seen;
  if (!addOps(copy, source, seen))
    return nullptr;
  copy.state = delayed.getState(name, /*slots=*/{}, recipe, rule);
  // Parts of one parameter share the state of their scales.
  copy.name = delayed.getName(copy.state).str();
  for (unsigned number = 2; llvm::any_of(
           copies, [&](const Copy &other) { return other.name == copy.name; });
       ++number)
    copy.name =
        (delayed.getName(copy.state) + "." + std::to_string(number)).str();
  copy.payload = addArgument(type, copy.name + ".payload");
  copy.amax = addArgument(rule.type, copy.name + ".amax");
  delayed.addAmax(copy.state, copy.amax);
  copies.push_back(copy);
  return copy.payload;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Returns whether any element is true.
static Value makeAny(OpBuilder &b, Location loc, Value value) {
  RankedTensorType type = tensorOf(value);
  if (type.getRank() == 0)
    return value;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value no = stablehlo::ConstantOp::create(
      b, loc, DenseElementsAttr::get(scalar, ArrayRef<bool>(false)));
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq(type.getRank()));
  return makeReduction<stablehlo::OrOp>(b, loc, value, no, dims);
}

/// Computes the source from other values.
Value WeightCopies::cloneSource(const Copy &copy,
                                function_ref<Value(BlockArgument)> leaf) {
  IRMapping mapping;
  for (BlockArgument arg : copy.leaves)
    mapping.map(arg, leaf(arg));
  for (Operation *op : copy.ops) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand,
                    mapping.lookupOrDefault(stablehlo::skipBarriers(operand)));
    // The report lists the original dot, not this copy.
    builder.clone(*op, mapping)->removeAttr(FP8Dialect::kVerdictAttrName);
  }
  return mapping.lookupOrDefault(stablehlo::skipBarriers(copy.source));
}

ComputeScaleOp WeightCopies::makeScale(const Copy &copy, Value amax) {
  return ComputeScaleOp::create(
      builder, amax.getLoc(), copy.type.getScaleTensorType(), amax.getType(),
      amax, copy.rule.rule, builder.getI64IntegerAttr(copy.recipe.margin),
      copy.rule.format);
}

/// Returns the scale of the next step, which is known before the weight. If no
/// scale was ever set, the weight's own amax gives it. This happens in a
/// branch, so that in all other steps nothing waits for an amax.
DelayedScaling::Scale
WeightCopies::getNextScale(const Copy &copy, function_ref<Value()> makeSource) {
  Location loc = function.getLoc();
  Value kept = delayed.getNextQuantizer(copy.state);
  RankedTensorType type = tensorOf(kept);
  if (copy.recipe.initial == InitialScale::One) {
    Value one = makeSplat(builder, loc, type, 1);
    return delayed.orFirst(builder, loc, kept, {one, one});
  }
  return delayed.orFirst(
      builder, loc, kept, {}, [&](Value unset) -> DelayedScaling::Scale {
        Value any = makeAny(builder, loc, unset);
        return makeFirstScale(builder, loc, any, type, [&]() {
          Value amax = AmaxOp::create(builder, loc, makeSource(), copy.type);
          return makeScale(copy, amax);
        });
      });
}

/// Computes the weight as the step leaves it.
Value WeightCopies::makeNextSource(const Copy &copy) {
  return cloneSource(copy, [&](BlockArgument arg) {
    Value next = getNext(function, arg);
    return next ? next : arg;
  });
}

/// Computes payload, scale and amax of the weight as the step leaves it.
SmallVector<Value> WeightCopies::makeNext(const Copy &copy) {
  Location loc = copy.source.getLoc();
  auto makeSource = [&]() { return makeNextSource(copy); };
  DelayedScaling::Scale by = getNextScale(copy, makeSource);
  Value source = makeSource();
  Value amax = AmaxOp::create(builder, loc, source, copy.type);
  Value quantized =
      QuantizeOp::create(builder, loc, copy.type, source, by.scale,
                         by.quantizer, Rounding::NearestEven, copy.overflow);
  auto unpack = UnpackOp::create(builder, loc, copy.type.getPayloadType(),
                                 copy.type.getScaleTensorType(), quantized);
  return {unpack.getPayload(), unpack.getScale(), amax};
}

/// Makes the payload and the amax that the first step reads.
void WeightCopies::makeFirst(const Copy &copy, StateFunction &store) {
  Location loc = copy.source.getLoc();
  builder.setInsertionPoint(store.getTerminator());
  Value source = cloneSource(copy, [&](BlockArgument arg) {
    StringAttr path = getStringAttr(function, arg, FP8Dialect::kPathAttrName);
    return store.getArgument(path, arg.getType(), arg.getLoc());
  });
  Value amax = AmaxOp::create(builder, loc, source, copy.type);
  DelayedScaling::Scale by;
  if (copy.recipe.initial == InitialScale::One) {
    by.scale = by.quantizer = makeSplat(builder, loc, copy.rule.type, 1);
  } else {
    ComputeScaleOp scale = makeScale(copy, amax);
    by = {scale.getScale(), scale.getQuantizer()};
  }
  Value quantized =
      QuantizeOp::create(builder, loc, copy.type, source, by.scale,
                         by.quantizer, Rounding::NearestEven, copy.overflow);
  store.addResult(copy.name + ".payload", quantized);
  store.addResult(copy.name + ".amax", amax);
}

/// Whether a copy follows from state that may change when no parameter does, as
/// averages and counters do.
bool WeightCopies::followsFromOtherState(const Copy &copy) const {
  func::FuncOp step = function;
  return llvm::any_of(copy.leaves, [&](BlockArgument arg) {
    return getNext(step, arg) && stateKindOf(arg) != StateKind::Parameter;
  });
}

/// Returns when a copy is made anew: if the step takes its update, or if the
/// weight has become NaN without one. Null: always.
Value WeightCopies::makeCondition(const Copy &copy, const TakenUpdate &when) {
  if (followsFromOtherState(copy))
    return nullptr;
  if (!when.taken || !when.assumesFinite)
    return when.taken;
  Location loc = copy.source.getLoc();
  Value amax = AmaxOp::create(builder, loc, makeNextSource(copy), copy.type);
  Value broken = stablehlo::CompareOp::create(
      builder, loc, amax, amax, stablehlo::ComparisonDirection::NE);
  return stablehlo::OrOp::create(builder, loc, when.taken,
                                 makeAny(builder, loc, broken));
}

void WeightCopies::makeNextPayloads(const TakenUpdate &when) {
  if (copies.empty())
    return;
  StateFunction store(function, "store");
  // There is nothing to load: the weights themselves stay.
  getStateFunction(function, "load");
  Operation *ret = function.getBody().front().getTerminator();
  SignatureExtension &signature = delayed.getSignature();
  for (const Copy &copy : copies) {
    makeFirst(copy, store);
    builder.setInsertionPoint(ret);
    Location loc = copy.source.getLoc();
    SmallVector<Value> parts;
    Value taken = makeCondition(copy, when);
    if (!taken) {
      parts = makeNext(copy);
    } else {
      auto old = UnpackOp::create(builder, loc, copy.type.getPayloadType(),
                                  copy.type.getScaleTensorType(), copy.payload);
      SmallVector<Value> kept{old.getPayload(), old.getScale(), copy.amax};
      OperationState state(loc, stablehlo::IfOp::getOperationName(), taken,
                           ValueRange(kept).getTypes());
      state.addRegion();
      state.addRegion();
      Operation *branch = builder.create(state);
      builder.createBlock(&branch->getRegion(0));
      SmallVector<Value> next = makeNext(copy);
      stablehlo::ReturnOp::create(builder, loc, next);
      builder.createBlock(&branch->getRegion(1));
      stablehlo::ReturnOp::create(builder, loc, kept);
      builder.setInsertionPoint(ret);
      parts.assign(branch->result_begin(), branch->result_end());
    }
    signature.addStateResult(
        copy.name + ".payload",
        builder.createOrFold<PackOp>(loc, copy.type, parts[0], parts[1]));
    signature.addStateResult(copy.name + ".amax", parts[2]);
  }
  store.applySignature();
  signature.apply();
}
