//===- StateParts.cpp - State that is split among ranks -------------------===//

#include "StateParts.h"
#include "../SmallTensors.h"
#include "../StoredForm.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// How a tensor is split into parts.
struct Split {
  SmallVector<int64_t> part;    ///< Sizes.
  SmallVector<int64_t> offsets; ///< Of all ranks' parts, rank by rank.
  DictionaryAttr attr = {};     ///< The `stablehlo.part` of the slice.

  bool operator==(const Split &other) const {
    return part == other.part && offsets == other.offsets;
  }
  ArrayRef<int64_t> offsetOf(int64_t rank) const {
    return ArrayRef(offsets).slice(rank * part.size(), part.size());
  }
  int64_t numRanks() const { return offsets.size() / part.size(); }
  /// Returns groups of ranks that together have every part once, in the order
  /// of the parts; none if there are no such groups.
  std::optional<DenseIntElementsAttr> groups(MLIRContext *context) const;
};

/// A tensor that this rank has gathered, with its own part.
struct Gathered {
  Value part;
  Split split;
};

/// Arrays of the state that depend on each other element by element, and the
/// values between them.
class ElementwiseComponent {
public:
  ElementwiseComponent(func::FuncOp func, const Signature &signature,
                       int64_t devices)
      : func(func), signature(signature), devices(devices),
        end(func.getBody().front().getTerminator()) {}

  /// Collects the values that belong to an argument.
  void grow(BlockArgument arg);
  /// Whether all collected values can be split.
  bool isSplit();
  /// Splits all collected values: from now on each rank has its part.
  void split();

  ArrayRef<BlockArgument> getState() const { return state.getArrayRef(); }
  /// Whether the step only works on parts of it, inside of shard_map.
  bool isOnlyMoved() const { return ops.empty() && reductions.empty(); }
  /// Returns the sizes of a part, once the component is known to be split.
  ArrayRef<int64_t> getPart() const { return wanted.part; }

private:
  void add(Value value);
  void addDefinition(Value value);
  void addUse(OpOperand &use);
  bool addReduction(stablehlo::ReduceOp reduce);
  void addMembersOf(Operation *op);
  bool isSplatLike(Value value) const;
  Value broadcastToPart(Value value, OpBuilder &b) const;
  void reduceOverRanks(stablehlo::ReduceOp reduce);

  func::FuncOp func;
  const Signature &signature;
  int64_t devices;
  Operation *end;
  SmallVector<int64_t> shape; ///< Of all values.
  SetVector<Value> values;
  SmallVector<Value> worklist;
  SetVector<BlockArgument> state;
  SetVector<Operation *> ops, cuts, reductions;
  SmallVector<Value> gathers;
  bool isWhole = false; ///< An op reads or makes it as a whole.
  Split wanted;
};

} // namespace

std::optional<DenseIntElementsAttr> Split::groups(MLIRContext *context) const {
  std::map<std::vector<int64_t>, SmallVector<int64_t>> ranks;
  for (int64_t rank = 0; rank < numRanks(); ++rank)
    ranks[offsetOf(rank).vec()].push_back(rank);
  int64_t copies = ranks.begin()->second.size();
  SmallVector<int64_t> groups;
  for (int64_t copy = 0; copy < copies; ++copy)
    for (const auto &[offset, holders] : ranks) {
      if (static_cast<int64_t>(holders.size()) != copies)
        return std::nullopt;
      groups.push_back(holders[copy]);
    }
  auto type =
      RankedTensorType::get({copies, static_cast<int64_t>(ranks.size())},
                            IntegerType::get(context, 64));
  return DenseIntElementsAttr::get(type, groups);
}

//===----------------------------------------------------------------------===//
// Slices and gathers
//===----------------------------------------------------------------------===//

/// Matches a slice of a rank's part that `stablehlo-one-rank` has made.
static std::optional<Split> matchCut(Operation *op) {
  auto part = op->getAttrOfType<DictionaryAttr>(stablehlo::kPartAttrName);
  if (!part || !isa<stablehlo::DynamicSliceOp>(op))
    return std::nullopt;
  auto offsets = part.getAs<DenseIntElementsAttr>(stablehlo::kPartOffsetsName);
  return Split{llvm::to_vector(shapeOf(op->getResult(0))),
               llvm::to_vector(offsets.getValues<int64_t>()), part};
}

/// Matches a gather that concatenates the parts of a group's ranks along a
/// dimension, as `stablehlo-lower-collectives` makes it from an `all_gather`.
static std::optional<Gathered> matchGather(Value whole, int64_t devices) {
  auto reshape = whole.getDefiningOp<stablehlo::ReshapeOp>();
  if (!reshape)
    return std::nullopt;
  Value parts = reshape.getOperand();
  int64_t dim = 0;
  if (auto transpose = parts.getDefiningOp<stablehlo::TransposeOp>()) {
    // The dimension of the ranks moves to its place; the others keep their
    // order.
    ArrayRef<int64_t> order = transpose.getPermutation();
    dim = llvm::find(order, 0) - order.begin();
    for (int64_t i = 0, next = 1; i < static_cast<int64_t>(order.size()); ++i)
      if (i != dim && order[i] != next++)
        return std::nullopt;
    parts = transpose.getOperand();
  }
  auto exchange = parts.getDefiningOp<ExchangeOp>();
  if (!exchange || exchange.getKind() != ExchangeKind::Gather)
    return std::nullopt;
  Value part = exchange.getInput();
  SmallVector<int64_t> merged(shapeOf(part));
  int64_t count = exchange.getRanks().getType().getDimSize(1);
  if (dim >= static_cast<int64_t>(merged.size()))
    return std::nullopt;
  merged[dim] *= count;
  if (shapeOf(whole) != ArrayRef(merged))
    return std::nullopt;
  int64_t rank = merged.size();
  Split split{llvm::to_vector(shapeOf(part)),
              SmallVector<int64_t>(devices * rank)};
  for (auto [i, device] :
       llvm::enumerate(exchange.getRanks().getValues<int64_t>())) {
    if (device >= devices)
      return std::nullopt;
    split.offsets[device * rank + dim] = i % count * split.part[dim];
  }
  return Gathered{part, split};
}

/// Matches gathers along several dimensions, down to parts split as in
/// `wanted`.
static std::optional<Gathered> matchGathers(Value whole, const Split &wanted,
                                            int64_t devices) {
  std::optional<Gathered> found = matchGather(whole, devices);
  while (found && !(found->split == wanted)) {
    std::optional<Gathered> inner = matchGather(found->part, devices);
    if (!inner)
      return std::nullopt;
    for (auto [offset, outer] :
         llvm::zip_equal(inner->split.offsets, found->split.offsets))
      offset += outer;
    found = inner;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Values that depend on each other element by element
//===----------------------------------------------------------------------===//

void ElementwiseComponent::add(Value value) {
  if (values.insert(value))
    worklist.push_back(value);
}

/// Whether all elements of a value are equal. Such values are made again for
/// parts, where they are read.
bool ElementwiseComponent::isSplatLike(Value value) const {
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant.isSplat();
  auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>();
  return broadcast && shapeOf(broadcast.getOperand()).empty();
}

void ElementwiseComponent::addMembersOf(Operation *op) {
  if (op->getBlock() != end->getBlock()) {
    isWhole = true;
    return;
  }
  ops.insert(op);
  for (Value value : op->getOperands())
    if (shapeOf(value) == ArrayRef(shape) && !isSplatLike(value))
      add(value);
  for (Value value : op->getResults())
    add(value);
}

void ElementwiseComponent::addDefinition(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    if (arg.getOwner() != end->getBlock() ||
        signature.args[arg.getArgNumber()].role != ArgRole::State) {
      isWhole = true;
      return;
    }
    state.insert(arg);
    StringRef path = signature.args[arg.getArgNumber()].path;
    for (const SignatureResult &result : signature.results)
      if (result.statePath == path)
        add(end->getOperand(result.index));
    return;
  }
  Operation *op = value.getDefiningOp();
  if (stablehlo::worksByElement(op))
    addMembersOf(op);
  else if (matchGather(value, devices))
    gathers.push_back(value);
  else
    isWhole = true;
}

/// Whether `init` is the neutral element of a reduction.
static bool isNeutral(Operation *combiner, Value init) {
  if (isa<stablehlo::AddOp>(combiner))
    return stablehlo::isZeros(init);
  if (isa<stablehlo::MaxOp>(combiner))
    return matchPattern(init, m_NegInfFloat());
  if (isa<stablehlo::MinOp>(combiner))
    return matchPattern(init, m_PosInfFloat());
  if (isa<stablehlo::AndOp>(combiner))
    return matchPattern(init, m_One());
  return isa<stablehlo::OrOp>(combiner) && matchPattern(init, m_Zero());
}

/// Adds a reduction of all elements to one: each rank reduces its part.
bool ElementwiseComponent::addReduction(stablehlo::ReduceOp reduce) {
  if (reduce->getNumResults() != 1 || reduce->getBlock() != end->getBlock() ||
      !shapeOf(reduce->getResult(0)).empty())
    return false;
  Operation *combiner = stablehlo::getCombiner(reduce.getBody());
  if (!combiner || !isNeutral(combiner, reduce->getOperand(1)))
    return false;
  reductions.insert(reduce);
  return true;
}

void ElementwiseComponent::addUse(OpOperand &use) {
  Operation *user = use.getOwner();
  if (user == end) {
    StringRef path = signature.results[use.getOperandNumber()].statePath;
    const SignatureArg *arg = path.empty() ? nullptr : signature.findArg(path);
    arg ? add(func.getArgument(arg->index)) : void(isWhole = true);
    return;
  }
  if (std::optional<Split> cut = matchCut(user);
      cut && use.getOperandNumber() == 0 && user->getBlock() == end->getBlock())
    cuts.insert(user);
  else if (stablehlo::worksByElement(user))
    addMembersOf(user);
  else if (auto reduce = dyn_cast<stablehlo::ReduceOp>(user);
           !reduce || !addReduction(reduce))
    isWhole = true;
}

void ElementwiseComponent::grow(BlockArgument arg) {
  shape = llvm::to_vector(shapeOf(arg));
  add(arg);
  while (!worklist.empty() && !isWhole) {
    Value value = worklist.pop_back_val();
    if (shapeOf(value) != ArrayRef(shape)) {
      isWhole = true;
      return;
    }
    addDefinition(value);
    for (OpOperand &use : value.getUses())
      addUse(use);
  }
}

bool ElementwiseComponent::isSplit() {
  if (isWhole || cuts.empty())
    return false;
  wanted = *matchCut(cuts.front());
  return llvm::all_of(
             cuts, [&](Operation *cut) { return *matchCut(cut) == wanted; }) &&
         llvm::all_of(gathers,
                      [&](Value whole) {
                        return bool(matchGathers(whole, wanted, devices));
                      }) &&
         wanted.groups(func.getContext());
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Makes a value of equal elements again, in the shape of a part.
Value ElementwiseComponent::broadcastToPart(Value value, OpBuilder &b) const {
  RankedTensorType type = tensorOf(value).clone(wanted.part);
  if (Value splat = resizeSplat(b, value.getLoc(), value, type))
    return splat;
  return stablehlo::BroadcastInDimOp::create(
      b, value.getLoc(), type, value.getDefiningOp()->getOperand(0),
      b.getDenseI64ArrayAttr({}));
}

/// Reduces the results of all ranks to one, in the order of the parts.
void ElementwiseComponent::reduceOverRanks(stablehlo::ReduceOp reduce) {
  OpBuilder b(reduce);
  b.setInsertionPointAfter(reduce);
  Location loc = reduce.getLoc();
  Value mine = reduce->getResult(0);
  DenseIntElementsAttr groups = *wanted.groups(func.getContext());
  auto all = ExchangeOp::create(
      b, loc, tensorOf(mine).clone({groups.getType().getDimSize(1)}),
      ExchangeKind::Gather, mine, groups, b.getStringAttr("state in parts"));
  all->setAttr(FP8Dialect::kWireReasonAttrName,
               b.getStringAttr("each rank reduces its part of the state"));
  auto one = stablehlo::ReduceOp::create(
      b, loc, TypeRange{mine.getType()}, ValueRange{all.getResult()},
      ValueRange{reduce->getOperand(1)}, b.getDenseI64ArrayAttr({0}));
  IRMapping mapping;
  reduce.getBody().cloneInto(&one.getBody(), mapping);
  mine.replaceAllUsesExcept(one->getResult(0), all);
}

void ElementwiseComponent::split() {
  OpBuilder b(func.getContext());
  for (Value whole : gathers)
    whole.replaceAllUsesWith(matchGathers(whole, wanted, devices)->part);
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands())
      if (shapeOf(operand.get()) == ArrayRef(shape) &&
          isSplatLike(operand.get()))
        operand.set(broadcastToPart(operand.get(), b));
    for (Value result : op->getResults())
      result.setType(tensorOf(result).clone(wanted.part));
  }
  for (BlockArgument arg : state) {
    arg.setType(tensorOf(arg).clone(wanted.part));
    func.setArgAttr(arg.getArgNumber(), stablehlo::kPartAttrName, wanted.attr);
  }
  for (Operation *cut : cuts) {
    cut->getResult(0).replaceAllUsesWith(cut->getOperand(0));
    cut->erase();
  }
  for (Operation *reduce : reductions)
    reduceOverRanks(cast<stablehlo::ReduceOp>(reduce));
}

//===----------------------------------------------------------------------===//
// The recipe
//===----------------------------------------------------------------------===//

/// Whether the recipe can store parts of the array in the form of the whole. If
/// the step itself works on parts of a moment, these are stored as they can be.
static bool storesParts(const SignatureArg &arg, const Recipe *recipe,
                        const ElementwiseComponent &component) {
  if (!recipe)
    return true;
  ArrayRef<int64_t> part = component.getPart();
  auto storesSo = [&](const StorageRecipe &storage) {
    return !storage.changes() ||
           StoredForm::canStoreParts(
               storage, part, cast<RankedTensorType>(arg.type).getShape());
  };
  const OptimizerRecipe &optimizer = recipe->optimizer;
  if (optimizer.clipUpdate)
    return false;
  bool isMoment = arg.kind == StateKind::Moment1 ||
                  arg.kind == StateKind::Moment2 ||
                  arg.kind == StateKind::Gradient;
  if (isMoment && component.isOnlyMoved())
    return true;
  switch (arg.kind) {
  case StateKind::Parameter:
    return storesSo(optimizer.master) &&
           recipe->weightCopies == WeightCopyTime::Step;
  case StateKind::Moment1:
    return storesSo(optimizer.moment1);
  case StateKind::Moment2:
    return storesSo(optimizer.moment2);
  case StateKind::Gradient:
    return storesSo(recipe->gradients);
  case StateKind::Other: // perhaps a master copy
    return arg.parameter.empty() || storesSo(optimizer.master);
  default:
    return true;
  }
}

/// Finds the kinds of moments that the import could not determine: without
/// slices and gathers the updates are visible.
static void findKinds(func::FuncOp func, const Signature &signature) {
  SignatureOptions options;
  options.functionKind = FunctionKind::Step;
  for (const SignatureArg &arg : signature.args)
    if (arg.role != ArgRole::State)
      options.roles.push_back({arg.path, stringifyEnum(arg.role).str()});
  for (const SignatureResult &result : signature.results) {
    if (!result.statePath.empty())
      options.states.push_back({result.statePath, result.path});
    if (result.kind == ResultKind::Loss)
      options.loss = result.path;
  }
  ScopedDiagnosticHandler quiet(func.getContext(),
                                [](Diagnostic &) { return success(); });
  FailureOr<Signature> found = analyzeSignature(func, options);
  if (failed(found))
    return;
  auto text = [&](StringRef name) {
    return StringAttr::get(func.getContext(), name);
  };
  for (const SignatureArg &arg : found->args) {
    if (!func.getArgAttr(arg.index, stablehlo::kPartAttrName) ||
        signature.args[arg.index].kind != StateKind::Other ||
        !signature.args[arg.index].parameter.empty())
      continue;
    func.setArgAttr(arg.index, FP8Dialect::kKindAttrName,
                    text(stringifyEnum(arg.kind)));
    if (!arg.parameter.empty())
      func.setArgAttr(arg.index, FP8Dialect::kParameterAttrName,
                      text(arg.parameter));
  }
}

void fp8::splitState(func::FuncOp func, const Signature &signature,
                     const Recipe *recipe) {
  auto devices = func->getAttrOfType<IntegerAttr>(stablehlo::kDevicesAttrName);
  llvm::DenseSet<Value> seen;
  bool anySplit = false;
  for (const SignatureArg &arg : signature.args) {
    BlockArgument argument = func.getArgument(arg.index);
    if (!devices || arg.role != ArgRole::State || !seen.insert(argument).second)
      continue;
    ElementwiseComponent component(func, signature, devices.getInt());
    component.grow(argument);
    bool isSplit = component.isSplit();
    for (BlockArgument each : component.getState()) {
      seen.insert(each);
      isSplit = isSplit && storesParts(signature.args[each.getArgNumber()],
                                       recipe, component);
    }
    if (isSplit) {
      component.split();
      anySplit = true;
    }
  }
  func.walk([](stablehlo::DynamicSliceOp slice) {
    slice->removeAttr(stablehlo::kPartAttrName);
  });
  Block &body = func.getBody().front();
  func.setType(FunctionType::get(func.getContext(), body.getArgumentTypes(),
                                 body.getTerminator()->getOperandTypes()));
  if (anySplit)
    findKinds(func, signature);
}
