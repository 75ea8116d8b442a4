//===- StoreState.cpp - How the optimizer's state is stored ---------------===//
//
// A step reads an array in its stored form and computes with the value that it
// represents; the new value, fresh from the update, is stored at the end. A
// branch that passes the old value on passes on the stored form: an update that
// is not taken changes no bit.
//
//===----------------------------------------------------------------------===//

#include "../EffectiveRecipe.h"
#include "../Quantize/DelayedScaling.h"
#include "../Seeds.h"
#include "../StoredForm.h"
#include "../TakenUpdate.h"
#include "ClipUpdates.h"
#include "FirstScale.h"
#include "StateFunctions.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/FunctionAttributes.h"
#include "fp8/Support/Recipe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8STORESTATE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

namespace {

/// One array of the state and how it is stored.
struct StoredArray : StoredForm {
  unsigned argument = 0;
  std::string path = {};
  StringAttr kind = {};
  /// The type of the whole array, of which each rank may have a part.
  RankedTensorType whole = {};

  /// Returns the stored form of the whole array.
  StoredArray getWhole() const {
    StoredArray array = *this;
    static_cast<StoredForm &>(array) = StoredForm::get(recipe, whole);
    return array;
  }
  Type getType() const { return scaled ? Type(scaled) : Type(narrow); }
  int64_t getBytes() const {
    int64_t bytes = 0;
    for (RankedTensorType type : getPartTypes())
      bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    return bytes;
  }
};

} // namespace

/// Returns the suffixes of the paths that a range expansion adds.
static ArrayRef<StringRef> getSuffixes(const StoredArray &array) {
  static const StringRef suffixes[] = {".center", ".exponent"};
  return array.recipe.expand ? ArrayRef(suffixes) : ArrayRef<StringRef>();
}

/// Returns the parts of an array that a range expansion adds, after payload and
/// scale.
static ArrayRef<Value> getExpansion(ArrayRef<Value> parts) {
  return parts.size() > 2 ? parts.drop_front(2) : ArrayRef<Value>();
}

namespace {

/// The decision about one array; see `#fp8.state_verdict`.
struct StateDecision {
  unsigned argument = 0;
  std::string path, kind, parameter;
  int64_t elements = 0;
  Type from, to;
  std::optional<StorageTiling> tile;
  int64_t bytes = 0;
  bool changed = false;
  std::string reason;
  SmallVector<std::string> notes;

  StateVerdictAttr getAttribute(MLIRContext *context) const;
};

/// Rewrites one step.
class StateStorer {
public:
  StateStorer(func::FuncOp function, const Recipe &recipe)
      : function(function), recipe(recipe), builder(function.getContext()),
        seeds(function, recipe.seed), delayed(function) {}

  std::vector<StateDecision> decisions;

  LogicalResult run();

private:
  /// An array of the state inside a block: its value, and the parts (payload,
  /// scale, ...) from which the value was loaded.
  struct LoadedArray {
    Value value;
    SmallVector<Value> parts;
  };

  void decide();
  void clip();
  const StorageRecipe *getStorage(const SignatureArg &arg) const;
  std::string getReasonUnchanged(const SignatureArg &arg,
                                 const StorageRecipe *storage,
                                 StringRef owner) const;
  void change(const SignatureArg &arg, const StorageRecipe &storage,
              StateDecision &decision);
  void changeArgument(StoredArray &array);
  LogicalResult storeResult(StoredArray &array);
  Value pack(StoredArray &array, ArrayRef<Value> parts, Location loc);
  SmallVector<Value> unpack(StoredArray &array, Value stored, Location loc);
  FailureOr<SmallVector<Value>>
  store(StoredArray &array, const LoadedArray &loaded, OpOperand &value);
  FailureOr<SmallVector<Value>> storeInBranches(StoredArray &array,
                                                const LoadedArray &loaded,
                                                OpResult value);
  FailureOr<SmallVector<Value>>
  storeInLoop(StoredArray &array, const LoadedArray &loaded, OpResult value);
  FailureOr<SmallVector<Value>>
  storeFresh(StoredArray &array, const LoadedArray &loaded, OpOperand &value);
  FailureOr<SmallVector<Value>> quantize(StoredArray &array, Value value,
                                         Location loc, bool initial);
  void loadInBranches(StoredArray &array);
  bool passesOn(Value value, Value loaded) const;
  BlockArgument addArgument(const StoredArray &array, Type type,
                            StringRef suffix);
  DictionaryAttr getPartOfTiles(const StoredArray &array);
  void makeStateFunctions();

  func::FuncOp function;
  const Recipe &recipe;
  OpBuilder builder;
  Seeds seeds;
  DelayedScaling delayed;
  std::vector<StoredArray> arrays;
  DenseMap<unsigned, LoadedArray> loadedArrays; ///< By argument.
  DenseMap<StringAttr, unsigned> resultOfState; ///< By path.
};

} // namespace

/// Whether an array is the master copy of a parameter.
static bool isMaster(const SignatureArg &arg) {
  return arg.kind == StateKind::Other && !arg.parameter.empty();
}

/// Returns why an array is not stored in another form; empty if it is.
std::string StateStorer::getReasonUnchanged(const SignatureArg &arg,
                                            const StorageRecipe *storage,
                                            StringRef owner) const {
  auto type = cast<RankedTensorType>(arg.type);
  Type element = type.getElementType();
  if (!storage)
    return "neither a parameter nor a moment, a gradient or a master copy of "
           "one";
  if (!storage->changes())
    return "the recipe stores it as it is";
  if (!element.isF32() && !element.isBF16() && !element.isF16())
    return "expected elements of f32, bf16 or f16 but got " +
           printType(element);
  if (type.getRank() == 0)
    return "a scalar";
  Type whole = getWholeType(function, arg.index);
  int64_t elements = cast<RankedTensorType>(whole).getNumElements();
  if (elements < recipe.optimizer.minElements)
    return llvm::formatv("{0} elements, fewer than min_elements: {1}", elements,
                         recipe.optimizer.minElements)
        .str();
  for (const std::string &glob : recipe.optimizer.keep)
    if (fp8binding::matchesPath(glob, owner))
      return "kept by '" + glob + "'";
  if (storage->tile == StorageTiling::None &&
      storage->rounding == Rounding::NearestEven &&
      element == getStorageType(storage->format, type.getContext()))
    return "the step has it so";
  if (whole != type &&
      !StoredForm::canStoreParts(*storage, type.getShape(),
                                 cast<RankedTensorType>(whole).getShape()))
    return "each rank has a part of it, which takes current scales, of the "
           "whole or of groups in one part";
  return "";
}

StateVerdictAttr StateDecision::getAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<StringRef> noteTexts(notes.begin(), notes.end());
  return StateVerdictAttr::get(
      context, b.getStringAttr(kind),
      parameter.empty() ? StringAttr() : b.getStringAttr(parameter), elements,
      from, to, tile, bytes, changed, b.getStringAttr(reason),
      notes.empty() ? ArrayAttr() : b.getStrArrayAttr(noteTexts));
}

/// Returns how the recipe stores an array of this kind; null if it does not
/// store this kind.
const StorageRecipe *StateStorer::getStorage(const SignatureArg &arg) const {
  switch (arg.kind) {
  case StateKind::Moment1:
    return &recipe.optimizer.moment1;
  case StateKind::Moment2:
    return &recipe.optimizer.moment2;
  case StateKind::Gradient:
    return &recipe.gradients;
  case StateKind::Parameter:
    return &recipe.optimizer.master;
  default:
    return isMaster(arg) ? &recipe.optimizer.master : nullptr;
  }
}

/// Stores the array as the recipe says.
void StateStorer::change(const SignatureArg &arg, const StorageRecipe &storage,
                         StateDecision &decision) {
  StoredArray array{StoredForm::get(storage, cast<RankedTensorType>(arg.type))};
  array.argument = arg.index;
  array.path = arg.path;
  array.whole = cast<RankedTensorType>(getWholeType(function, arg.index));
  array.kind = function.getArgAttrOfType<StringAttr>(arg.index,
                                                     FP8Dialect::kKindAttrName);
  decision.changed = true;
  decision.to = getElementTypeOrSelf(array.getPartTypes().front());
  if (!array.isCast())
    decision.tile = storage.tile;
  decision.bytes = array.getBytes();
  decision.reason = "as the recipe says";
  if (storage.rounding == Rounding::Stochastic)
    decision.notes.push_back("rounded stochastically");
  if (storage.expand)
    decision.notes.push_back("with range expansion");
  if (storage.scaling == Scaling::Delayed)
    decision.notes.push_back("scaled by earlier steps");
  arrays.push_back(std::move(array));
}

void StateStorer::decide() {
  FailureOr<Signature> signature = Signature::fromAttributes(function);
  assert(succeeded(signature) && "expected the marks to be checked");
  // Parameters of which the optimizer updates a master copy.
  llvm::StringMap<std::string> masters;
  for (const SignatureArg &arg : signature->args)
    if (isMaster(arg))
      masters[arg.parameter] = arg.path;
  for (const SignatureArg &arg : signature->args) {
    auto type = dyn_cast<RankedTensorType>(arg.type);
    if (arg.role != ArgRole::State || !type ||
        !isa<FloatType>(type.getElementType()) || type.getRank() == 0 ||
        arg.zeroInit)
      continue;
    StateDecision decision;
    decision.argument = arg.index;
    decision.path = arg.path;
    decision.kind = isMaster(arg) ? "master" : stringifyEnum(arg.kind).str();
    decision.parameter = arg.parameter;
    decision.elements = type.getNumElements();
    decision.from = decision.to = type.getElementType();
    decision.bytes = decision.elements * type.getElementTypeBitWidth() / 8;
    const StorageRecipe *storage = getStorage(arg);
    decision.reason = getReasonUnchanged(
        arg, storage,
        arg.kind == StateKind::Parameter ? arg.path : arg.parameter);
    auto master = masters.find(arg.path);
    if (master != masters.end() && decision.reason.empty())
      decision.reason =
          "the optimizer updates its master copy, " + master->second;
    if (decision.reason.empty())
      change(arg, *storage, decision);
    decisions.push_back(std::move(decision));
  }
}

/// Clips the updates, and notes for every parameter whether its update is
/// clipped.
void StateStorer::clip() {
  llvm::StringSet<> clipped = clipUpdates(function);
  for (StateDecision &decision : decisions)
    if (decision.kind == "parameter")
      decision.notes.push_back(
          clipped.contains(decision.path)
              ? "its update is divided by max(1, RMS(g / sqrt(v)))"
              : "its update is not clipped: no division by the root of a "
                "second moment was found");
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

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

/// Removes results of branches that are no longer read.
static void dropUnusedResults(func::FuncOp function) {
  OpBuilder builder(function.getContext());
  SmallVector<Operation *> branches;
  function.walk([&](Operation *op) {
    if (stablehlo::isBranch(op))
      branches.push_back(op);
  });
  // Outer branches first: inner ones need not return what outer ones do not.
  for (Operation *op : llvm::reverse(branches)) {
    SmallVector<unsigned> kept;
    SmallVector<Type> types;
    for (OpResult result : op->getResults())
      if (!result.use_empty()) {
        kept.push_back(result.getResultNumber());
        types.push_back(result.getType());
      }
    if (kept.size() == op->getNumResults())
      continue;
    for (Region &region : op->getRegions()) {
      Operation *yield = region.front().getTerminator();
      SmallVector<Value> values;
      for (unsigned index : kept)
        values.push_back(yield->getOperand(index));
      yield->setOperands(values);
    }
    builder.setInsertionPoint(op);
    OperationState state(op->getLoc(), op->getName(), op->getOperands(), types,
                         op->getAttrs());
    for (Region &region : op->getRegions())
      state.addRegion()->takeBody(region);
    Operation *copy = builder.create(state);
    for (auto [index, result] : llvm::enumerate(copy->getResults()))
      op->getResult(kept[index]).replaceAllUsesWith(result);
    op->erase();
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult StateStorer::run() {
  decide();
  if (recipe.optimizer.clipUpdate)
    clip();
  if (arrays.empty())
    return success();
  // Find this before the step is changed.
  std::optional<TakenUpdate> when;
  if (llvm::any_of(arrays, [](const StoredArray &array) {
        return array.recipe.scaling == Scaling::Delayed;
      }))
    when = findTakenUpdate(function);
  if (llvm::any_of(arrays, [](const StoredArray &array) {
        return array.recipe.rounding == Rounding::Stochastic;
      }))
    seeds.prepare();
  for (StoredArray &array : arrays)
    changeArgument(array);
  resultOfState = resultsByState(function);
  for (StoredArray &array : arrays)
    if (failed(storeResult(array))) {
      delayed.getSignature().apply();
      return failure();
    }
  for (StoredArray &array : arrays)
    if (array.changesType())
      loadInBranches(array);
  delayed.getSignature().apply();
  Block &body = function.getBody().front();
  function.setType(builder.getFunctionType(
      body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  if (when)
    delayed.addResults(*when);
  dropUnusedResults(function);
  if (llvm::any_of(
          arrays, [](const StoredArray &array) { return array.changesType(); }))
    makeStateFunctions();
  return success();
}

namespace {
struct StoreState : fp8::impl::FP8StoreStateBase<StoreState> {
  using FP8StoreStateBase::FP8StoreStateBase;

  void runOnOperation() override;

private:
  LogicalResult store(func::FuncOp function, const Recipe &recipe);
};
} // namespace

static void emitStateRemark(Location loc, const StateDecision &decision) {
  InFlightDiagnostic diag = emitRemark(loc);
  diag << (decision.changed ? "stored as " : "stays ")
       << printType(decision.to);
  if (decision.tile)
    diag << " (scales: " << stringifyStorageTiling(*decision.tile) << ")";
  diag << ": " << decision.kind << " " << decision.path;
  if (!decision.parameter.empty())
    diag << " of " << decision.parameter;
  diag << ", " << decision.elements << " elements of "
       << printType(decision.from) << ": " << decision.reason;
  for (const std::string &note : decision.notes)
    diag << "; " << note;
}

/// Checks that each path that the recipe keeps is one of a parameter.
static LogicalResult checkKept(func::FuncOp function,
                               ArrayRef<StateDecision> decisions,
                               ArrayRef<std::string> globs) {
  for (const std::string &glob : globs)
    if (llvm::none_of(decisions, [&](const StateDecision &decision) {
          return fp8binding::matchesPath(glob, decision.kind == "parameter"
                                                   ? decision.path
                                                   : decision.parameter);
        }))
      return function.emitError()
             << "expected the path '" << glob
             << "' of optimizer.keep to match a parameter of the step, but it "
                "matches none";
  return success();
}

LogicalResult StoreState::store(func::FuncOp function, const Recipe &recipe) {
  if (!replacesState(function))
    return success();
  if (failed(Signature::fromAttributes(function)))
    return failure();
  StateStorer storer(function, recipe);
  if (failed(storer.run()) ||
      failed(checkKept(function, storer.decisions, recipe.optimizer.keep)))
    return failure();
  DenseMap<unsigned, Attribute> verdicts;
  for (const StateDecision &decision : storer.decisions) {
    if (emitRemarks)
      emitStateRemark(function.getArgument(decision.argument).getLoc(),
                      decision);
    verdicts[decision.argument] = decision.getAttribute(&getContext());
    ++numArrays;
    numStored += decision.changed;
  }
  updateArgAttrs(function, [&](unsigned index, NamedAttrList &attributes) {
    if (Attribute verdict = verdicts.lookup(index))
      attributes.set(FP8Dialect::kStateVerdictAttrName, verdict);
  });
  return success();
}

void StoreState::runOnOperation() {
  FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
  if (failed(recipe))
    return signalPassFailure();
  if (recipe->optimizer.changesNothing() && !recipe->gradients.changes())
    return markAllAnalysesPreserved();
  for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
    if (failed(store(function, *recipe)))
      return signalPassFailure();
}
