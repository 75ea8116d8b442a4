//===- StateValues.cpp - Loads and stores state ---------------------------===//

#include "../TakenUpdate.h"
#include "FirstScale.h"
#include "StateFunctions.h"
#include "StateStorer.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Support/FunctionAttributes.h"

using namespace mlir;
using namespace mlir::fp8;

BlockArgument StateStorer::addArgument(const StoredArray &array, Type type,
                                       StringRef suffix) {
  return delayed.getSignature().addStateArgument(
      type, array.path + suffix, array.kind.getValue(),
      function.getArgument(array.argument).getLoc(), /*startsAsZeros=*/false,
      getPartOfTiles(array));
}

/// Returns which part of the values of its tiles a rank has, if it has a part
/// of an array, which consists of whole tiles; null if it has the whole.
DictionaryAttr StateStorer::getPartOfTiles(const StoredArray &array) {
  auto part = function.getArgAttrOfType<DictionaryAttr>(
      array.argument, stablehlo::kPartAttrName);
  if (!part)
    return part;
  ArrayRef<int64_t> tile = array.scaled.getTile();
  auto offsets = part.getAs<DenseIntElementsAttr>(stablehlo::kPartOffsetsName);
  SmallVector<int64_t> ofTiles;
  for (auto [i, offset] : llvm::enumerate(offsets.getValues<int64_t>())) {
    int64_t size = tile[i % tile.size()];
    ofTiles.push_back(size == ScaledType::kWhole ? 0 : offset / size);
  }
  RankedTensorType tiles =
      getQuantizerType(StoredForm::get(array.recipe, array.whole).scaled);
  return stablehlo::makePart(
      tiles.getShape(), DenseIntElementsAttr::get(offsets.getType(), ofTiles));
}

void StateStorer::changeArgument(StoredArray &array) {
  BlockArgument arg = function.getArgument(array.argument);
  LoadedArray loaded;
  if (!array.changesType()) {
    loadedArrays[array.argument] = {arg, {arg}};
    return;
  }
  // Uses move to the loaded value, which is computed from the argument.
  builder.setInsertionPointToStart(&function.getBody().front());
  Location loc = arg.getLoc();
  Value placeholder =
      UnrealizedConversionCastOp::create(builder, loc, array.real, ValueRange())
          .getResult(0);
  arg.replaceAllUsesWith(placeholder);
  arg.setType(array.getType());
  loaded.parts = unpack(array, arg, loc);
  for (StringRef suffix : getSuffixes(array))
    loaded.parts.push_back(
        addArgument(array, getQuantizerType(array.scaled), suffix));
  loaded.value = array.load(builder, loc, loaded.parts);
  placeholder.replaceAllUsesWith(loaded.value);
  placeholder.getDefiningOp()->erase();
  loadedArrays[array.argument] = loaded;
}

/// Returns the value that the step takes or returns, without the parts of a
/// range expansion.
Value StateStorer::pack(StoredArray &array, ArrayRef<Value> parts,
                        Location loc) {
  return array.isCast() ? parts.front()
                        : builder.createOrFold<PackOp>(loc, array.scaled,
                                                       parts[0], parts[1]);
}

SmallVector<Value> StateStorer::unpack(StoredArray &array, Value stored,
                                       Location loc) {
  if (array.isCast())
    return {stored};
  auto unpack = UnpackOp::create(builder, loc, array.scaled.getPayloadType(),
                                 array.scaled.getScaleTensorType(), stored);
  return {unpack.getPayload(), unpack.getScale()};
}

//===----------------------------------------------------------------------===//
// Storing
//===----------------------------------------------------------------------===//

/// Whether `value` is the old value, passed on by branches or by loops that do
/// not run.
bool StateStorer::passesOn(Value value, Value loaded) const {
  if (value == loaded)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<stablehlo::OptimizationBarrierOp, stablehlo::WhileOp>(op))
    return passesOn(op->getOperand(index), loaded);
  if (stablehlo::isBranch(op))
    return llvm::any_of(op->getRegions(), [&](Region &region) {
      return passesOn(yielded(region, index), loaded);
    });
  return false;
}

/// Whether a loop slices a carry: it is then a loop over layers, not over
/// steps.
static bool isSliced(stablehlo::WhileOp loop, unsigned index) {
  return llvm::any_of(
      loop.getBody().getArgument(index).getUsers(), [](Operation *user) {
        return isa<stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp,
                   stablehlo::GatherOp, stablehlo::ScatterOp>(user);
      });
}

/// Returns the stored parts of a value that a terminator returns, made before
/// the terminator.
FailureOr<SmallVector<Value>> StateStorer::store(StoredArray &array,
                                                 const LoadedArray &loaded,
                                                 OpOperand &use) {
  Value value = use.get();
  while (isa_and_nonnull<stablehlo::OptimizationBarrierOp>(
             value.getDefiningOp()) &&
         passesOn(value, loaded.value))
    value = value.getDefiningOp()->getOperand(
        cast<OpResult>(value).getResultNumber());
  if (value == loaded.value)
    return loaded.parts;
  Operation *op = value.getDefiningOp();
  if (op && op->getBlock() == use.getOwner()->getBlock() &&
      passesOn(value, loaded.value)) {
    if (stablehlo::isBranch(op))
      return storeInBranches(array, loaded, cast<OpResult>(value));
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op);
        loop && !isSliced(loop, cast<OpResult>(value).getResultNumber()))
      return storeInLoop(array, loaded, cast<OpResult>(value));
  }
  return storeFresh(array, loaded, use);
}

/// Makes every branch store, or pass on, the value that it returns.
FailureOr<SmallVector<Value>>
StateStorer::storeInBranches(StoredArray &array, const LoadedArray &loaded,
                             OpResult value) {
  Operation *op = value.getOwner();
  unsigned index = value.getResultNumber(), first = op->getNumResults();
  SmallVector<Type> types(op->getResultTypes());
  llvm::append_range(types, array.getPartTypes());
  Operation *copy = cloneAroundRegions(
      builder, op, SmallVector<Value>(op->getOperands()), types);
  op->erase();
  for (Region &region : copy->getRegions()) {
    Operation *yield = region.front().getTerminator();
    FailureOr<SmallVector<Value>> parts =
        store(array, loaded, yield->getOpOperand(index));
    if (failed(parts))
      return failure();
    yield->insertOperands(yield->getNumOperands(), *parts);
  }
  return SmallVector<Value>(copy->getResults().drop_front(first));
}

/// Makes a loop over whole steps carry the stored parts.
FailureOr<SmallVector<Value>>
StateStorer::storeInLoop(StoredArray &array, const LoadedArray &loaded,
                         OpResult value) {
  auto loop = cast<stablehlo::WhileOp>(value.getOwner());
  unsigned index = value.getResultNumber(), first = loop->getNumResults();
  FailureOr<SmallVector<Value>> initial =
      store(array, loaded, loop->getOpOperand(index));
  if (failed(initial))
    return failure();
  SmallVector<Value> operands(loop->getOperands());
  SmallVector<Type> types(loop->getResultTypes());
  llvm::append_range(operands, *initial);
  llvm::append_range(types, array.getPartTypes());
  Operation *copy = cloneAroundRegions(builder, loop, operands, types);
  loop->erase();
  LoadedArray inside;
  for (Region &region : copy->getRegions()) {
    Block &block = region.front();
    inside.parts.clear();
    for (RankedTensorType type : array.getPartTypes())
      inside.parts.push_back(block.addArgument(type, copy->getLoc()));
    builder.setInsertionPointToStart(&block);
    inside.value = array.load(builder, copy->getLoc(), inside.parts);
    block.getArgument(index).replaceAllUsesWith(inside.value);
  }
  // The value itself is no longer carried; readers after the loop load it
  // there. Until the loop is complete, other code must find as many results as
  // carries.
  Operation *yield = copy->getRegion(1).front().getTerminator();
  yield->insertOperands(yield->getNumOperands(), inside.parts);
  FailureOr<SmallVector<Value>> parts =
      store(array, inside, yield->getOpOperand(index));
  if (failed(parts))
    return failure();
  yield->setOperands(first, parts->size(), *parts);
  yield->setOperand(index, copy->getRegion(1).front().getArgument(index));
  SmallVector<Value> results(copy->getResults().drop_front(first));
  builder.setInsertionPointAfter(copy);
  Value after = array.load(builder, copy->getLoc(), results);
  copy->getResult(index).replaceAllUsesWith(after);
  return results;
}

/// Returns, for every element, whether `changed` holds or the element is NaN.
static Value makeOrNaN(OpBuilder &builder, Location loc, Value changed,
                       Value value) {
  Value isNaN = stablehlo::CompareOp::create(
      builder, loc, value, value, stablehlo::ComparisonDirection::NE);
  Value spread = stablehlo::BroadcastInDimOp::create(
      builder, loc, isNaN.getType(), changed, builder.getDenseI64ArrayAttr({}));
  return stablehlo::OrOp::create(builder, loc, spread, isNaN);
}

/// Quantizes a new value, unless the update that made it is not taken.
FailureOr<SmallVector<Value>> StateStorer::storeFresh(StoredArray &array,
                                                      const LoadedArray &loaded,
                                                      OpOperand &use) {
  Operation *terminator = use.getOwner();
  Change change =
      findChange(function, use.get(), loaded.value, terminator->getBlock());
  Value value = use.get();
  // Store the value before the step rounds it.
  if (auto convert = value.getDefiningOp<stablehlo::ConvertOp>())
    if (getElementTypeOrSelf(convert.getOperand().getType()).isF32())
      value = convert.getOperand();
  builder.setInsertionPoint(terminator);
  FailureOr<SmallVector<Value>> parts =
      quantize(array, value, value.getLoc(), /*initial=*/false);
  if (failed(parts) || !change.changed)
    return parts;
  builder.setInsertionPoint(terminator);
  Location loc = value.getLoc();
  Value changed = change.changed, changesElement = changed;
  if (change.assumesFinite)
    changesElement = makeOrNaN(builder, loc, changed, value);
  for (auto [part, old] : llvm::zip_equal(*parts, loaded.parts))
    part = stablehlo::SelectOp::create(
        builder, loc, part == parts->front() ? changesElement : changed, part,
        old);
  return parts;
}

static Format getFormat(StorageFormat storage) {
  return storage == StorageFormat::F8E5M2 ? Format::F8E5M2 : Format::F8E4M3FN;
}

/// Makes the parts that store `value`, at the builder's insertion point.
/// `initial` marks a value that no step has computed.
FailureOr<SmallVector<Value>> StateStorer::quantize(StoredArray &array,
                                                    Value value, Location loc,
                                                    bool initial) {
  const StorageRecipe &storage = array.recipe;
  // Distinct from the numbers of tensors that dots read.
  int64_t tensor = (int64_t(1) << 32) + array.argument;
  if (initial)
    return array.store(builder, loc, value, /*seeds=*/nullptr, tensor);
  if (storage.scaling != Scaling::Delayed)
    return array.store(builder, loc, value, &seeds, tensor, nullptr,
                       array.whole == array.real ? "" : StringRef(array.path));
  OperandRecipe operand;
  operand.format = getFormat(storage.format);
  operand.scale = storage.scale;
  operand.margin = storage.margin;
  operand.scaling = Scaling::Delayed;
  operand.history = storage.history;
  operand.algorithm = storage.algorithm;
  // A scale of 1 would flush the first value of a second moment.
  auto choose = [&](ComputeScaleOp current) {
    auto amax = current.getAmax().getDefiningOp<AmaxOp>();
    FirstScaleClone first(amax.getInput());
    OpBuilder::InsertionGuard guard(builder);
    first.setInsertionPoint(builder);
    return delayed.get(builder, (kStatePrefix + array.path).str(), {}, operand,
                       current, std::nullopt, [&](Value unset) {
                         return makeFirstScale(builder, unset, first,
                                               array.scaled, current);
                       });
  };
  return array.store(builder, loc, value, &seeds, tensor, choose);
}

/// Loads an array again in the branches that read it, so that no f32 copy is
/// made before the branch.
void StateStorer::loadInBranches(StoredArray &array) {
  const LoadedArray &loaded = loadedArrays[array.argument];
  DenseMap<Block *, Value> inBranches;
  for (OpOperand &use : llvm::make_early_inc_range(loaded.value.getUses())) {
    // The innermost branch with no loop between it and the function.
    Block *branch = nullptr;
    Block *block = use.getOwner()->getBlock();
    for (; block->getParentOp() != function;
         block = block->getParentOp()->getBlock()) {
      bool isBranch = stablehlo::isBranch(block->getParentOp());
      if (!isBranch)
        branch = nullptr;
      else if (!branch)
        branch = block;
    }
    if (!branch)
      continue;
    Value &value = inBranches[branch];
    if (!value) {
      builder.setInsertionPointToStart(branch);
      value = array.load(builder, loaded.value.getLoc(), loaded.parts);
    }
    use.set(value);
  }
}

LogicalResult StateStorer::storeResult(StoredArray &array) {
  Operation *ret = function.getBody().front().getTerminator();
  Location loc = function.getArgument(array.argument).getLoc();
  auto replacing = resultOfState.find(builder.getStringAttr(array.path));
  if (replacing == resultOfState.end())
    return emitError(loc) << "expected a result that replaces '" << array.path
                          << "' but got none";
  unsigned index = replacing->second;
  FailureOr<SmallVector<Value>> parts =
      store(array, loadedArrays[array.argument], ret->getOpOperand(index));
  if (failed(parts))
    return failure();
  builder.setInsertionPoint(ret);
  ret->setOperand(index, pack(array, *parts, loc));
  for (auto [suffix, part] :
       llvm::zip(getSuffixes(array), getExpansion(*parts)))
    delayed.getSignature().addStateResult(array.path + suffix, part);
  return success();
}

//===----------------------------------------------------------------------===//
// Functions beside the step
//===----------------------------------------------------------------------===//

/// Adds the arrays whose type changes to the functions that store and load.
void StateStorer::makeStateFunctions() {
  StateFunction store(function, "store"), load(function, "load");
  for (const StoredArray &stored : arrays) {
    StoredArray array = stored.getWhole();
    if (!array.changesType())
      continue;
    Location loc = function.getArgument(array.argument).getLoc();
    Value value = store.getArgument(array.path, array.real, loc);
    builder.setInsertionPoint(store.getTerminator());
    SmallVector<Value> parts = *quantize(array, value, loc, /*initial=*/true);
    store.addResult(array.path, pack(array, parts, loc));
    for (auto [suffix, part] :
         llvm::zip(getSuffixes(array), getExpansion(parts)))
      store.addResult((array.path + suffix).str(), part);

    Value form = load.getArgument(array.path, array.getType(), loc);
    builder.setInsertionPoint(load.getTerminator());
    parts = unpack(array, form, loc);
    for (StringRef suffix : getSuffixes(array))
      parts.push_back(load.getArgument((array.path + suffix).str(),
                                       getQuantizerType(array.scaled), loc));
    load.addResult(array.path, array.load(builder, loc, parts));
  }
  store.applySignature();
  load.applySignature();
}
