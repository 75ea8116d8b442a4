//===- StoreState.cpp - What the optimizer's state is stored in -----------===//
//
// A step reads an array as it was stored and computes with what that stands
// for; the new value, fresh from the update, is stored at the end. Where a
// branch passes the old value on, it passes on what was stored: an update that
// is not taken changes no bit.
//
//===----------------------------------------------------------------------===//

#include "ClipUpdates.h"
#include "DelayedScaling.h"
#include "FirstScale.h"
#include "Seeds.h"
#include "StateFunctions.h"
#include "StoredForm.h"
#include "TakenUpdate.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
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
  /// What the function takes: the array, center and exponent of an expansion.
  SmallVector<unsigned> arguments = {};

  Type getType() const { return scaled ? Type(scaled) : Type(narrow); }
  int64_t getBytes() const {
    int64_t bytes = 0;
    for (RankedTensorType type : getPartTypes())
      bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    return bytes;
  }
};

} // namespace

static std::string printElement(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << getElementTypeOrSelf(type);
  return text;
}

/// Of the paths of what an expansion adds.
static ArrayRef<StringRef> getSuffixes(const StoredArray &array) {
  static const StringRef suffixes[] = {".center", ".exponent"};
  return array.recipe.expand ? ArrayRef(suffixes) : ArrayRef<StringRef>();
}

/// What an expansion adds to the parts of an array: behind payload and scale.
static ArrayRef<Value> getExpansion(ArrayRef<Value> parts) {
  return parts.size() > 2 ? parts.drop_front(2) : ArrayRef<Value>();
}

namespace {

/// Rewrites one step.
class StateStorer {
public:
  StateStorer(func::FuncOp function, const Recipe &recipe)
      : function(function), recipe(recipe), builder(function.getContext()),
        seeds(function, recipe.seed), delayed(function) {}

  /// What becomes of each array.
  std::vector<StateVerdict> verdicts;
  /// The argument of each verdict.
  SmallVector<unsigned> verdictArguments;

  LogicalResult run();

private:
  /// What stands for an array inside of a block: its value, and what that was
  /// loaded from.
  struct Own {
    Value value;
    SmallVector<Value> parts;
  };

  void decide();
  void clip();
  std::string whyNot(const SignatureArg &arg, const StorageRecipe *storage,
                     StringRef owner) const;
  void changeArgument(StoredArray &array);
  LogicalResult storeResult(StoredArray &array);
  Value pack(StoredArray &array, ArrayRef<Value> parts, Location loc);
  SmallVector<Value> unpack(StoredArray &array, Value stored, Location loc);
  FailureOr<SmallVector<Value>> store(StoredArray &array, const Own &own,
                                      OpOperand &value);
  FailureOr<SmallVector<Value>> storeInBranches(StoredArray &array,
                                                const Own &own, OpResult value);
  FailureOr<SmallVector<Value>> storeInLoop(StoredArray &array, const Own &own,
                                            OpResult value);
  FailureOr<SmallVector<Value>> storeFresh(StoredArray &array, const Own &own,
                                           OpOperand &value);
  FailureOr<SmallVector<Value>> quantize(StoredArray &array, Value value,
                                         Location loc, bool initial);
  void loadInBranches(StoredArray &array);
  bool passesOn(Value value, Value own) const;
  unsigned addArgument(const StoredArray &array, Type type, StringRef suffix);
  void addResult(const StoredArray &array, Value value, StringRef suffix);
  void makeStateFunctions();

  func::FuncOp function;
  const Recipe &recipe;
  OpBuilder builder;
  Seeds seeds;
  DelayedScaling delayed;
  std::vector<StoredArray> arrays;
  DenseMap<unsigned, Own> owns; ///< By argument.
};

} // namespace

/// Why an array stays as it is; empty if it does not.
std::string StateStorer::whyNot(const SignatureArg &arg,
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
           printElement(element);
  if (type.getRank() == 0)
    return "a scalar";
  if (type.getNumElements() < recipe.optimizer.minElements)
    return llvm::formatv("{0} elements, fewer than min_elements: {1}",
                         type.getNumElements(), recipe.optimizer.minElements)
        .str();
  for (const std::string &glob : recipe.optimizer.keep)
    if (matchesPath(glob, owner))
      return "kept by '" + glob + "'";
  if (storage->tile == StorageTiling::None &&
      storage->rounding == Rounding::NearestEven &&
      element == getStorageType(storage->format, type.getContext()))
    return "the step has it so";
  return "";
}

void StateStorer::decide() {
  FailureOr<Signature> signature = Signature::fromAttributes(function);
  assert(succeeded(signature) && "expected the marks to be checked");
  // Parameters whose master copy is what the optimizer updates.
  llvm::StringMap<std::string> masters;
  for (const SignatureArg &arg : signature->args)
    if (arg.kind == StateKind::Other && !arg.parameter.empty())
      masters[arg.parameter] = arg.path;
  for (const SignatureArg &arg : signature->args) {
    auto type = dyn_cast<RankedTensorType>(arg.type);
    if (arg.role != ArgRole::State || !type ||
        !isa<FloatType>(type.getElementType()) || type.getRank() == 0 ||
        arg.zeroInit)
      continue;
    StateVerdict verdict;
    verdict.function = function.getName().str();
    verdict.path = arg.path;
    verdict.parameter = arg.parameter;
    verdict.elements = type.getNumElements();
    verdict.from = verdict.to = printElement(type);
    verdict.bytes = verdict.elements * type.getElementTypeBitWidth() / 8;
    verdict.kind = stringify(arg.kind).str();
    const StorageRecipe *storage = nullptr;
    StringRef owner = arg.parameter;
    if (arg.kind == StateKind::Moment1) {
      storage = &recipe.optimizer.moment1;
    } else if (arg.kind == StateKind::Moment2) {
      storage = &recipe.optimizer.moment2;
    } else if (arg.kind == StateKind::Gradient) {
      storage = &recipe.gradients;
    } else if (arg.kind == StateKind::Parameter) {
      storage = &recipe.optimizer.master;
      owner = arg.path;
    } else if (!arg.parameter.empty()) {
      verdict.kind = "master";
      storage = &recipe.optimizer.master;
    }
    verdict.reason = whyNot(arg, storage, owner);
    if (auto master = masters.find(arg.path);
        master != masters.end() && verdict.reason.empty())
      verdict.reason =
          "the optimizer updates its master copy, " + master->second;
    if (verdict.reason.empty()) {
      StoredArray array{StoredForm::get(*storage, type)};
      array.argument = arg.index;
      array.path = arg.path;
      array.kind = function.getArgAttrOfType<StringAttr>(arg.index, kKindAttr);
      verdict.changed = true;
      verdict.to = printElement(array.getPartTypes().front());
      if (!array.isCast())
        verdict.tile = stringifyStorageTiling(storage->tile).str();
      verdict.bytes = array.getBytes();
      verdict.reason = "as the recipe says";
      if (storage->rounding == Rounding::Stochastic)
        verdict.notes.push_back("rounded stochastically");
      if (storage->expand)
        verdict.notes.push_back("with range expansion");
      if (storage->scaling == Scaling::Delayed)
        verdict.notes.push_back("scaled by earlier steps");
      arrays.push_back(std::move(array));
    }
    verdictArguments.push_back(arg.index);
    verdicts.push_back(std::move(verdict));
  }
}

/// Clips the updates, and says of every parameter whether its own is.
void StateStorer::clip() {
  llvm::StringSet<> clipped = clipUpdates(function);
  for (StateVerdict &verdict : verdicts)
    if (verdict.kind == "parameter")
      verdict.notes.push_back(
          clipped.contains(verdict.path)
              ? "its update is divided by max(1, RMS(g / sqrt(v)))"
              : "its update is not clipped: no division by the root of a "
                "second moment was found");
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

unsigned StateStorer::addArgument(const StoredArray &array, Type type,
                                  StringRef suffix) {
  unsigned index = function.getNumArguments();
  DictionaryAttr attrs = builder.getDictionaryAttr(
      {builder.getNamedAttr(kPathAttr,
                            builder.getStringAttr(array.path + suffix)),
       builder.getNamedAttr(kRoleAttr, builder.getStringAttr("state")),
       builder.getNamedAttr(kKindAttr, array.kind)});
  (void)function.insertArgument(index, type, attrs,
                                function.getArgument(array.argument).getLoc());
  return index;
}

void StateStorer::changeArgument(StoredArray &array) {
  BlockArgument arg = function.getArgument(array.argument);
  array.arguments.push_back(array.argument);
  Own own;
  if (!array.changesType()) {
    owns[array.argument] = {arg, {arg}};
    return;
  }
  // Uses move to the loaded value, which is made of the argument.
  builder.setInsertionPointToStart(&function.getBody().front());
  Location loc = arg.getLoc();
  Value placeholder =
      UnrealizedConversionCastOp::create(builder, loc, array.real, ValueRange())
          .getResult(0);
  arg.replaceAllUsesWith(placeholder);
  arg.setType(array.getType());
  own.parts = unpack(array, arg, loc);
  for (StringRef suffix : getSuffixes(array)) {
    array.arguments.push_back(
        addArgument(array, getQuantizerType(array.scaled), suffix));
    own.parts.push_back(function.getArgument(array.arguments.back()));
  }
  own.value = array.load(builder, loc, own.parts);
  placeholder.replaceAllUsesWith(own.value);
  placeholder.getDefiningOp()->erase();
  owns[array.argument] = own;
}

/// What the step takes or returns, without the parts of an expansion.
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

/// Whether a branch, or a loop that does not run, passes on what an array was.
bool StateStorer::passesOn(Value value, Value own) const {
  if (value == own)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<stablehlo::OptimizationBarrierOp, stablehlo::WhileOp>(op))
    return passesOn(op->getOperand(index), own);
  if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op))
    return llvm::any_of(op->getRegions(), [&](Region &region) {
      return passesOn(yielded(region, index), own);
    });
  return false;
}

/// Whether a loop takes parts of what it carries: a loop over layers, not over
/// steps.
static bool isSliced(stablehlo::WhileOp loop, unsigned index) {
  return llvm::any_of(
      loop.getBody().getArgument(index).getUsers(), [](Operation *user) {
        return isa<stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp,
                   stablehlo::GatherOp, stablehlo::ScatterOp>(user);
      });
}

/// What is stored of a value that a terminator returns: parts that are made
/// before the terminator.
FailureOr<SmallVector<Value>>
StateStorer::store(StoredArray &array, const Own &own, OpOperand &use) {
  Value value = use.get();
  while (isa_and_nonnull<stablehlo::OptimizationBarrierOp>(
             value.getDefiningOp()) &&
         passesOn(value, own.value))
    value = value.getDefiningOp()->getOperand(
        cast<OpResult>(value).getResultNumber());
  if (value == own.value)
    return own.parts;
  Operation *op = value.getDefiningOp();
  if (op && op->getBlock() == use.getOwner()->getBlock() &&
      passesOn(value, own.value)) {
    if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op))
      return storeInBranches(array, own, cast<OpResult>(value));
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op);
        loop && !isSliced(loop, cast<OpResult>(value).getResultNumber()))
      return storeInLoop(array, own, cast<OpResult>(value));
  }
  return storeFresh(array, own, use);
}

/// Every branch stores, or passes on, what it returns.
FailureOr<SmallVector<Value>> StateStorer::storeInBranches(StoredArray &array,
                                                           const Own &own,
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
        store(array, own, yield->getOpOperand(index));
    if (failed(parts))
      return failure();
    yield->insertOperands(yield->getNumOperands(), *parts);
  }
  return SmallVector<Value>(copy->getResults().drop_front(first));
}

/// A loop over whole steps carries what is stored.
FailureOr<SmallVector<Value>>
StateStorer::storeInLoop(StoredArray &array, const Own &own, OpResult value) {
  auto loop = cast<stablehlo::WhileOp>(value.getOwner());
  unsigned index = value.getResultNumber(), first = loop->getNumResults();
  FailureOr<SmallVector<Value>> initial =
      store(array, own, loop->getOpOperand(index));
  if (failed(initial))
    return failure();
  SmallVector<Value> operands(loop->getOperands());
  SmallVector<Type> types(loop->getResultTypes());
  llvm::append_range(operands, *initial);
  llvm::append_range(types, array.getPartTypes());
  Operation *copy = cloneAroundRegions(builder, loop, operands, types);
  loop->erase();
  Own inside;
  for (Region &region : copy->getRegions()) {
    Block &block = region.front();
    inside.parts.clear();
    for (RankedTensorType type : array.getPartTypes())
      inside.parts.push_back(block.addArgument(type, copy->getLoc()));
    builder.setInsertionPointToStart(&block);
    inside.value = array.load(builder, copy->getLoc(), inside.parts);
    block.getArgument(index).replaceAllUsesWith(inside.value);
  }
  // The value itself is carried no longer: what is read of it after the loop is
  // loaded there. What looks at the loop meanwhile finds as many results as
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
  Value loaded = array.load(builder, copy->getLoc(), results);
  copy->getResult(index).replaceAllUsesWith(loaded);
  return results;
}

/// Of every element whether `changed` holds or it is NaN.
static Value makeOrNaN(OpBuilder &builder, Location loc, Value changed,
                       Value value) {
  Value isNaN = stablehlo::CompareOp::create(
      builder, loc, value, value, stablehlo::ComparisonDirection::NE);
  Value spread = stablehlo::BroadcastInDimOp::create(
      builder, loc, isNaN.getType(), changed, builder.getDenseI64ArrayAttr({}));
  return stablehlo::OrOp::create(builder, loc, spread, isNaN);
}

/// Quantizes a new value, unless the update that made it is not taken.
FailureOr<SmallVector<Value>>
StateStorer::storeFresh(StoredArray &array, const Own &own, OpOperand &use) {
  Operation *terminator = use.getOwner();
  Change change =
      findChange(function, use.get(), own.value, terminator->getBlock());
  Value value = use.get();
  // What the step rounds at the end is stored as it was before.
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
  for (auto [part, old] : llvm::zip_equal(*parts, own.parts))
    part = stablehlo::SelectOp::create(
        builder, loc, part == parts->front() ? changesElement : changed, part,
        old);
  return parts;
}

static Format getFormat(StorageFormat storage) {
  return storage == StorageFormat::F8E5M2 ? Format::F8E5M2 : Format::F8E4M3FN;
}

/// The parts that `value` is stored in, made where the builder stands.
/// `initial`: of a value that no step has made.
FailureOr<SmallVector<Value>> StateStorer::quantize(StoredArray &array,
                                                    Value value, Location loc,
                                                    bool initial) {
  const StorageRecipe &storage = array.recipe;
  // Others than those of the tensors that dots read.
  int64_t tensor = (int64_t(1) << 32) + array.argument;
  if (initial)
    return array.store(builder, loc, value, /*seeds=*/nullptr, tensor);
  if (storage.scaling != Scaling::Delayed)
    return array.store(builder, loc, value, &seeds, tensor);
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
    Recomputation first(amax.getInput());
    OpBuilder::InsertionGuard guard(builder);
    first.setInsertionPoint(builder);
    return delayed.get(builder, "fp8." + array.path, {}, operand, current,
                       std::nullopt, [&](Value unset) {
                         return makeFirstScale(builder, unset, first,
                                               array.scaled, current);
                       });
  };
  return array.store(builder, loc, value, &seeds, tensor, choose);
}

/// Loads an array again in the branches that read it: what is computed there is
/// made of what is stored, with no f32 copy before the branch.
void StateStorer::loadInBranches(StoredArray &array) {
  const Own &own = owns[array.argument];
  DenseMap<Block *, Value> loaded;
  for (OpOperand &use : llvm::make_early_inc_range(own.value.getUses())) {
    // The innermost branch with no loop between it and the function.
    Block *branch = nullptr;
    Block *block = use.getOwner()->getBlock();
    for (; block->getParentOp() != function;
         block = block->getParentOp()->getBlock()) {
      bool isBranch =
          isa<stablehlo::IfOp, stablehlo::CaseOp>(block->getParentOp());
      if (!isBranch)
        branch = nullptr;
      else if (!branch)
        branch = block;
    }
    if (!branch)
      continue;
    Value &value = loaded[branch];
    if (!value) {
      builder.setInsertionPointToStart(branch);
      value = array.load(builder, own.value.getLoc(), own.parts);
    }
    use.set(value);
  }
}

void StateStorer::addResult(const StoredArray &array, Value value,
                            StringRef suffix) {
  StringAttr path = builder.getStringAttr(array.path + suffix);
  Operation *ret = function.getBody().front().getTerminator();
  (void)function.insertResult(
      function.getNumResults(), value.getType(),
      builder.getDictionaryAttr({builder.getNamedAttr(kPathAttr, path),
                                 builder.getNamedAttr(kStateAttr, path)}));
  ret->insertOperands(ret->getNumOperands(), value);
}

LogicalResult StateStorer::storeResult(StoredArray &array) {
  Operation *ret = function.getBody().front().getTerminator();
  unsigned index = 0;
  while (function.getResultAttr(index, kStateAttr) !=
         builder.getStringAttr(array.path))
    ++index;
  FailureOr<SmallVector<Value>> parts =
      store(array, owns[array.argument], ret->getOpOperand(index));
  if (failed(parts))
    return failure();
  builder.setInsertionPoint(ret);
  Location loc = function.getArgument(array.argument).getLoc();
  ret->setOperand(index, pack(array, *parts, loc));
  for (auto [suffix, part] :
       llvm::zip(getSuffixes(array), getExpansion(*parts)))
    addResult(array, part, suffix);
  return success();
}

//===----------------------------------------------------------------------===//
// Functions beside the step
//===----------------------------------------------------------------------===//

/// Adds what changes its type to the functions that store and load.
void StateStorer::makeStateFunctions() {
  func::FuncOp store = getStateFunction(function, "store");
  func::FuncOp load = getStateFunction(function, "load");
  for (StoredArray &array : arrays) {
    if (!array.changesType())
      continue;
    Location loc = function.getArgument(array.argument).getLoc();
    Value value = getStateArgument(store, array.path, array.real, loc);
    builder.setInsertionPoint(store.getBody().front().getTerminator());
    SmallVector<Value> parts = *quantize(array, value, loc, /*initial=*/true);
    addStateResult(store, array.path, pack(array, parts, loc));
    for (auto [suffix, part] :
         llvm::zip(getSuffixes(array), getExpansion(parts)))
      addStateResult(store, (array.path + suffix).str(), part);

    Value stored = getStateArgument(load, array.path, array.getType(), loc);
    builder.setInsertionPoint(load.getBody().front().getTerminator());
    parts = unpack(array, stored, loc);
    for (StringRef suffix : getSuffixes(array))
      parts.push_back(getStateArgument(load, (array.path + suffix).str(),
                                       getQuantizerType(array.scaled), loc));
    addStateResult(load, array.path, array.load(builder, loc, parts));
  }
}

/// Removes the results of branches that nothing reads any more.
static void dropUnusedResults(func::FuncOp function) {
  OpBuilder builder(function.getContext());
  SmallVector<Operation *> branches;
  function.walk([&](Operation *op) {
    if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op))
      branches.push_back(op);
  });
  // Outer ones first: what they do not return, inner ones need not either.
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
  // Found while the step still is what it was.
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
  for (StoredArray &array : arrays)
    if (failed(storeResult(array)))
      return failure();
  for (StoredArray &array : arrays)
    if (array.changesType())
      loadInBranches(array);
  Block &body = function.getBody().front();
  function.setType(builder.getFunctionType(
      body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  if (when)
    delayed.finish(*when);
  dropUnusedResults(function);
  if (llvm::any_of(
          arrays, [](const StoredArray &array) { return array.changesType(); }))
    makeStateFunctions();
  return success();
}

namespace {
struct StoreState : fp8::impl::FP8StoreStateBase<StoreState> {
  using FP8StoreStateBase::FP8StoreStateBase;
  StoreState(FP8StoreStateOptions options, std::shared_ptr<VerdictReport> sink)
      : FP8StoreStateBase(std::move(options)), sink(std::move(sink)) {}

  LogicalResult initialize(MLIRContext *context) override {
    FailureOr<Recipe> loaded = loadRecipe(this->recipe, context, *set);
    if (failed(loaded))
      return failure();
    effective = std::move(*loaded);
    return success();
  }

  void runOnOperation() override;

  Recipe effective;
  std::shared_ptr<VerdictReport> sink;
};
} // namespace

static void emitStateRemark(Location loc, const StateVerdict &verdict) {
  InFlightDiagnostic diag = emitRemark(loc);
  diag << (verdict.changed ? "stored as " : "stays ") << verdict.to;
  if (!verdict.tile.empty())
    diag << " (scales: " << verdict.tile << ")";
  diag << ": " << verdict.kind << " " << verdict.path;
  if (!verdict.parameter.empty())
    diag << " of " << verdict.parameter;
  diag << ", " << verdict.elements << " elements of " << verdict.from << ": "
       << verdict.reason;
  for (const std::string &note : verdict.notes)
    diag << "; " << note;
}

void StoreState::runOnOperation() {
  VerdictReport verdicts;
  if (!sink)
    sink = std::make_shared<VerdictReport>();
  sink->state.clear();
  if (!effective.optimizer.changesNothing() || effective.gradients.changes()) {
    for (auto function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!replacesState(function))
        continue;
      if (failed(Signature::fromAttributes(function)))
        return signalPassFailure();
      StateStorer storer(function, effective);
      if (failed(storer.run()))
        return signalPassFailure();
      for (auto [verdict, argument] :
           llvm::zip_equal(storer.verdicts, storer.verdictArguments)) {
        if (emitRemarks)
          emitStateRemark(function.getArgument(argument).getLoc(), verdict);
        ++numArrays;
        numStored += verdict.changed;
        sink->state.push_back(std::move(verdict));
      }
    }
  }
  if (report.empty() || sink->state.empty())
    return;
  sink->recipe = effective.name;
  // The table of the dots is printed already.
  if (report == "-")
    return sink->printStateTable(llvm::errs());
  std::string error;
  if (failed(sink->write(report, error))) {
    emitError(UnknownLoc::get(&getContext())) << error;
    signalPassFailure();
  }
}

std::unique_ptr<Pass>
fp8::createStoreStatePass(FP8StoreStateOptions options,
                          std::shared_ptr<VerdictReport> sink) {
  return std::make_unique<StoreState>(std::move(options), std::move(sink));
}
