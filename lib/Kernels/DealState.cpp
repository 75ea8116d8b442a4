//===- DealState.cpp - Shards of the state, each with an owner ------------===//
//
// On several ranks, a value of the step is the same on all of them, differs
// between them, or is known only to the owner of a shard. A shard is a
// parameter with its moments. A value that is computed from these and from
// values that all ranks have belongs to the owner, until another rank reads it.
//
// The shard of a stack of layers has slices along its leading dimension, each
// with an owner, if every op that owners run computes the slices of its results
// from the same slices of its operands. Each owner then runs the tasks of a
// kernel that work on its slices.
//
//===----------------------------------------------------------------------===//

#include "FormKernels/Work.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DEALSTATE
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The ranks that have a value.
struct Holder {
  enum class Kind {
    Unknown, ///< Not known yet: a carry at its first visit.
    All,     ///< All ranks have the same value.
    Each,    ///< Each rank has another value.
    Owner    ///< Only the owner of a shard has it.
  };
  Kind kind = Kind::Unknown;
  int64_t shard = 0;

  static Holder all() { return {Kind::All, 0}; }
  static Holder each() { return {Kind::Each, 0}; }
  static Holder owner(int64_t shard) { return {Kind::Owner, shard}; }
  bool isOwner() const { return kind == Kind::Owner; }
  bool operator==(const Holder &other) const {
    return kind == other.kind && shard == other.shard;
  }
  bool operator!=(const Holder &other) const { return !(*this == other); }
};

/// Returns the operands of an op and the outside values that its regions use.
SetVector<Value> valuesReadBy(Operation *op) {
  SetVector<Value> values;
  values.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

/// Returns the value that a chain of views and slices starts from.
Value rootOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isTensorView(def) && !isa<tensor::ExtractSliceOp>(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Returns whether the first result of a map is the first loop, which no other
/// result uses. Slices of an operand with such a map are slices of the loop.
bool isLeading(AffineMap map) {
  return map.getNumResults() > 0 && plainPosition(map, 0) == 0u;
}

/// Returns whether the leading dimension of a tensor divides into `count`
/// slices.
bool hasSlices(Value value, int64_t count) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.getDimSize(0) > 0 &&
         type.getDimSize(0) % count == 0;
}

/// Returns whether an op computes all of its results slice by slice.
bool writesSlices(Operation *op, int64_t count) {
  if (isTensorView(op))
    return hasSlices(op->getResult(0), count);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumLoops() == 0 ||
      generic.getIteratorTypesArray()[0] != utils::IteratorType::parallel)
    return false;
  return llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
    return hasSlices(init.get(), count) &&
           isLeading(generic.getMatchingIndexingMap(&init));
  });
}

/// Returns whether an op reads an operand slice by slice, as it writes its
/// results.
bool readsSlices(OpOperand &operand) {
  if (isTensorView(operand.getOwner()))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(operand.getOwner());
  return generic && isLeading(generic.getMatchingIndexingMap(&operand));
}

/// Returns the number of layers of a stack: of an argument that a loop reads
/// layer by layer, itself or a value made from it slice by slice. Returns 1 if
/// the argument is no stack.
int64_t layersOf(BlockArgument arg) {
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (!type || type.getRank() == 0 || type.getDimSize(0) < 2)
    return 1;
  int64_t layers = type.getDimSize(0);
  SetVector<Value> values;
  values.insert(arg);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user)) {
        int64_t rows = slice.getSourceType().getDimSize(0);
        if (slice.isDynamicOffset(0) && slice.getStaticSize(0) > 0 &&
            slice.getStaticSize(0) * layers == rows)
          return layers;
      } else if (readsSlices(use) && writesSlices(user, layers)) {
        values.insert(user->result_begin(), user->result_end());
      }
    }
  return 1;
}

/// Returns how often an op runs in one step, as far as trip counts are static.
int64_t runsOf(Operation *op) {
  int64_t runs = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (std::optional<APInt> trips = loop.getStaticTripCount())
      runs *= std::max<int64_t>(trips->getSExtValue(), 1);
  return runs;
}

class StateDealer {
public:
  explicit StateDealer(func::FuncOp func)
      : func(func), arguments(argumentsByPath(func)) {}

  void run();

private:
  // Shards and gradients.
  void findShards();
  void findStacks();
  void keepTogether(int64_t shard, const Twine &reason);
  int64_t slicesOf(Holder holder) const {
    return holder.isOwner() ? slices[holder.shard] : 1;
  }
  void findGradients();
  std::optional<int64_t> shardOfGradient(AllReduceOp reduce);
  bool replicateCheapParameters();
  bool dealDerivedState();
  std::optional<BlockArgument> stateOfResult(unsigned index);
  /// Returns whether each rank has only its part of an argument.
  bool hasPart(unsigned index) {
    return bool(func.getArgAttr(index, stablehlo::kPartAttrName));
  }

  // Holders of values.
  void analyze();
  void visitBlock(Block &block);
  void visit(Operation *op);
  void visitWork(Operation *op);
  bool worksOnSlices(Operation *op, Holder holder);
  bool isPartOfResult(Value value, Holder holder);
  bool mayBeReadByAll(const SetVector<Value> &read, Holder holder);
  void visitExchange(ExchangeOp op);
  void visitFor(scf::ForOp loop);
  void visitWhile(scf::WhileOp loop);
  void visitBranches(Operation *op);
  void visitReturn(func::ReturnOp op);
  Holder join(Value a, Value b);
  Holder holderOf(Value value) const {
    return sent.contains(value) ? Holder::all() : holders.lookup(value);
  }
  void send(Value value);
  void setAll(Operation *op, Holder holder) {
    for (Value result : op->getResults())
      holders[result] = holder;
  }

  // Attributes and sends.
  void markOpsForOneReader();
  bool isReadInSlices(Operation *op, int64_t count);
  void mark();

  func::FuncOp func;
  llvm::StringMap<BlockArgument> arguments; // by path
  /// The parameter that each shard is named after. Shards count from 1.
  SmallVector<StringAttr> names;
  llvm::MapVector<BlockArgument, int64_t> shardOf;
  /// By shard, from 1: the number of slices, and the reason if a stack has only
  /// one.
  SmallVector<int64_t> slices;
  SmallVector<std::string> reasons;
  /// By shard, from 1: the bytes of its state.
  SmallVector<int64_t> stored;
  /// The number of slices by the value of the attribute `fp8.shard`.
  llvm::DenseMap<int64_t, int64_t> slicesOfMark;
  /// State that all ranks hold, because not only its owner reads it.
  llvm::DenseSet<Value> whole;
  /// Gradients that only an owner gets, and those that all ranks get.
  llvm::MapVector<Operation *, int64_t> gradients;
  llvm::DenseSet<Operation *> plain;
  /// Values that owners send to all ranks as soon as they are computed.
  SetVector<Value> sent;
  llvm::DenseMap<Value, Holder> holders;
  /// Views and extracted parts of values with slices, if they do not consist of
  /// whole slices.
  llvm::DenseSet<Value> cuts;
  bool changed = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Shards and gradients
//===----------------------------------------------------------------------===//

static bool isParameter(Value arg) {
  return stateKindOf(arg) == StateKind::Parameter;
}

/// Finds the shards: each is a parameter and the state that belongs to it, with
/// their scales.
void StateDealer::findShards() {
  llvm::StringMap<int64_t> numbers;
  auto attrOf = [&](BlockArgument arg, StringRef name) {
    return func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
  };
  llvm::StringSet<> parameters;
  for (BlockArgument arg : func.getArguments())
    if (auto path = attrOf(arg, FP8Dialect::kPathAttrName);
        path && isParameter(arg))
      parameters.insert(path.getValue());
  for (BlockArgument arg : func.getArguments()) {
    auto name = attrOf(arg, FP8Dialect::kParameterAttrName);
    if (!name && isParameter(arg)) {
      name = attrOf(arg, FP8Dialect::kPathAttrName);
      StringRef base = name ? name.getValue() : "";
      if (base.consume_back(FP8Dialect::kScaleSuffix) &&
          parameters.contains(base))
        name = StringAttr::get(func.getContext(), base);
    }
    if (argRoleOf(arg) != ArgRole::State || !name ||
        hasPart(arg.getArgNumber()))
      continue;
    auto [entry, isNew] =
        numbers.try_emplace(name.getValue(), names.size() + 1);
    if (isNew)
      names.push_back(name);
    shardOf[arg] = entry->second;
  }
}

/// Finds the shards of stacks. They have slices if all of their state has.
void StateDealer::findStacks() {
  slices.assign(names.size() + 1, 1);
  reasons.assign(names.size() + 1, "");
  stored.assign(names.size() + 1, 0);
  for (auto [arg, shard] : shardOf) {
    stored[shard] += bytesOf(arg);
    auto path = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                  FP8Dialect::kPathAttrName);
    if (path && path == names[shard - 1])
      slices[shard] = layersOf(arg);
  }
  // All ranks hold small state without slices, such as a scale that all layers
  // share.
  constexpr int64_t little = 256;
  for (auto [arg, shard] : shardOf)
    if (slices[shard] > 1 && !hasSlices(arg, slices[shard])) {
      if (bytesOf(arg) <= little)
        whole.insert(arg);
      else
        keepTogether(shard, "state of it has no slices");
    }
}

/// Gives all layers of a stack to one owner.
void StateDealer::keepTogether(int64_t shard, const Twine &reason) {
  reasons[shard] = reason.str();
  slices[shard] = 1;
  changed = true;
}

/// Returns the shard of a gradient: the only one whose state is combined
/// element by element with the gradient or with values computed from it.
std::optional<int64_t> StateDealer::shardOfGradient(AllReduceOp reduce) {
  llvm::SmallDenseSet<int64_t> found;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{reduce.getResult()};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      if (isWork(user))
        for (Value read : valuesReadBy(user))
          if (auto arg = dyn_cast<BlockArgument>(rootOf(read)))
            if (auto shard = shardOf.find(arg); shard != shardOf.end())
              found.insert(shard->second);
      if (isWork(user) || isTensorView(user))
        for (Value result : user->getResults())
          if (elementsOf(result) == elementsOf(reduce.getResult()))
            worklist.push_back(result);
    }
  }
  if (found.size() != 1)
    return std::nullopt;
  return *found.begin();
}

void StateDealer::findGradients() {
  gradients.clear();
  func.walk([&](AllReduceOp reduce) {
    bool isSum = reduce.getReduction() == Reduction::Sum ||
                 reduce.getReduction() == Reduction::Mean;
    if (!isSum || elementsOf(reduce.getResult()) < 2 || plain.contains(reduce))
      return;
    if (std::optional<int64_t> shard = shardOfGradient(reduce))
      gradients[reduce] = *shard;
  });
}

/// Lets all ranks hold the parameters that are smaller than the values that
/// would otherwise be sent. Returns whether it finds any.
bool StateDealer::replicateCheapParameters() {
  SmallVector<int64_t> cost(names.size() + 1), parameters(names.size() + 1);
  for (Value value : sent)
    if (Holder holder = holders.lookup(value);
        holder.isOwner() && !isPartOfResult(value, holder)) {
      Operation *def = value.getDefiningOp();
      cost[holder.shard] +=
          bytesOf(value) * runsOf(def ? def : &value.getParentBlock()->front());
    }
  for (auto [arg, shard] : shardOf)
    if (isParameter(arg))
      parameters[shard] += bytesOf(arg);
  // Small values such as sums of squares are sent in any case.
  constexpr int64_t little = 256;
  bool found = false;
  for (auto [arg, shard] : shardOf)
    if (isParameter(arg) && cost[shard] > parameters[shard] + little)
      found |= whole.insert(arg).second;
  return found;
}

std::optional<BlockArgument> StateDealer::stateOfResult(unsigned index) {
  auto path =
      func.getResultAttrOfType<StringAttr>(index, FP8Dialect::kStateAttrName);
  BlockArgument arg =
      path ? arguments.lookup(path.getValue()) : BlockArgument();
  return arg ? std::optional(arg) : std::nullopt;
}

/// Adds other state to a shard if only the owner reads it and computes its new
/// value. Returns whether it finds any.
bool StateDealer::dealDerivedState() {
  bool found = false;
  Operation *end = func.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    Holder holder = holders.lookup(operand.get());
    std::optional<BlockArgument> arg =
        stateOfResult(operand.getOperandNumber());
    if (!arg || !holder.isOwner() || shardOf.contains(*arg) ||
        whole.contains(*arg) ||
        (slicesOf(holder) > 1 && !hasSlices(*arg, slicesOf(holder))))
      continue;
    bool isOwners = true;
    SmallVector<Value> views{*arg};
    while (!views.empty())
      for (Operation *user : views.pop_back_val().getUsers()) {
        if (isTensorView(user) || isa<tensor::ExtractSliceOp>(user))
          views.push_back(user->getResult(0));
        else
          isOwners &= user->getNumResults() > 0 && isWork(user) &&
                      holders.lookup(user->getResult(0)) == holder;
      }
    if (!isOwners)
      continue;
    shardOf[*arg] = holder.shard;
    found = true;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Holders of values
//===----------------------------------------------------------------------===//

/// Gives a value to all ranks: they hold it if it is state, its all-reduce
/// reaches them if it is a gradient, and otherwise its owner sends it.
void StateDealer::send(Value value) {
  // Owners send the whole value of which this is a part.
  while (cuts.contains(value))
    value = value.getDefiningOp()->getOperand(0);
  Value root = rootOf(value);
  auto arg = dyn_cast<BlockArgument>(root);
  if (arg && arg.getOwner() == &func.getBody().front()) {
    changed |= whole.insert(arg).second;
    return;
  }
  Operation *def = value.getDefiningOp();
  if (def && gradients.contains(def)) {
    changed |= plain.insert(def).second;
    return;
  }
  changed |= sent.insert(value);
}

/// Returns the holder of a value that is either `a` or `b`. If neither can hold
/// it, the owners of both send them.
Holder StateDealer::join(Value a, Value b) {
  Holder of[] = {holderOf(a), holderOf(b)};
  if (of[0] == of[1] || of[1].kind == Holder::Kind::Unknown)
    return of[0];
  if (of[0].kind == Holder::Kind::Unknown)
    return of[1];
  bool isEach = of[0] == Holder::each() || of[1] == Holder::each();
  if (isEach || (of[0].isOwner() && of[1].isOwner())) {
    if (of[0].isOwner())
      send(a);
    if (of[1].isOwner())
      send(b);
    return isEach ? Holder::each() : Holder::all();
  }
  return of[0].isOwner() ? of[0] : of[1];
}

/// Returns whether an op computes the slices of its results from the same
/// slices of the operands that `holder` has.
bool StateDealer::worksOnSlices(Operation *op, Holder holder) {
  if (!writesSlices(op, slicesOf(holder)))
    return false;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::none_of(
             captured,
             [&](Value value) { return holderOf(value) == holder; }) &&
         llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           return holderOf(operand.get()) != holder ||
                  (readsSlices(operand) && !cuts.contains(operand.get()));
         });
}

/// Returns whether a value is small relative to the stack of its owners, for
/// example the partial sums of all elements.
bool StateDealer::isPartOfResult(Value value, Holder holder) {
  constexpr int64_t share = 32;
  return slicesOf(holder) > 1 && bytesOf(value) * share <= stored[holder.shard];
}

/// Returns whether all ranks may read the values of a stack's owners that an op
/// reads, because they are small in this sense.
bool StateDealer::mayBeReadByAll(const SetVector<Value> &read, Holder holder) {
  return llvm::all_of(read, [&](Value value) {
    Operation *def = value.getDefiningOp();
    return holderOf(value) != holder ||
           (!cuts.contains(value) && !isa<BlockArgument>(rootOf(value)) &&
            !gradients.contains(def) && isPartOfResult(value, holder));
  });
}

void StateDealer::visitWork(Operation *op) {
  SetVector<Value> read = valuesReadBy(op);
  Value largest;
  bool isEach = false, hasState = false, isMixed = false;
  for (Value value : read) {
    Holder holder = holderOf(value);
    isEach |= holder == Holder::each();
    if (!holder.isOwner())
      continue;
    isMixed |= largest && holder != holderOf(largest);
    hasState |= isa<BlockArgument>(rootOf(value));
    if (!largest || bytesOf(value) > bytesOf(largest))
      largest = value;
  }
  Holder holder = isEach ? Holder::each() : Holder::all();
  // All ranks may read small values of several owners. Otherwise the owner of
  // the largest value runs the op.
  constexpr int64_t little = 1024;
  if (largest && !isEach && (!isMixed || hasState || bytesOf(largest) > little))
    holder = holderOf(largest);
  if (slicesOf(holder) > 1 && !worksOnSlices(op, holder)) {
    if (isa<tensor::ExtractSliceOp>(op) || isTensorView(op)) {
      cuts.insert(op->getResult(0));
    } else if (mayBeReadByAll(read, holder)) {
      holder = Holder::all();
    } else {
      keepTogether(holder.shard, "what is computed at " +
                                     describeLocation(op->getLoc()) +
                                     " reads several slices at once");
    }
  }
  for (Value value : read)
    if (Holder other = holderOf(value); other.isOwner() && other != holder)
      send(value);
  setAll(op, holder);
}

/// All ranks take part in an exchange. A gather over all ranks has the same
/// result everywhere; other results differ between ranks.
void StateDealer::visitExchange(ExchangeOp op) {
  if (holderOf(op.getInput()).isOwner())
    send(op.getInput());
  bool isSame = op.getKind() == ExchangeKind::Gather &&
                cast<ShapedType>(op.getRanks().getType()).getDimSize(0) == 1;
  setAll(op, isSame ? Holder::all() : Holder::each());
}

void StateDealer::visitFor(scf::ForOp loop) {
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (auto [carry, init] :
         llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs())) {
      Holder first = holderOf(init), now = holders.lookup(carry);
      if (now.kind == Holder::Kind::Unknown)
        holders[carry] = first;
    }
    holders[loop.getInductionVar()] = Holder::all();
    visitBlock(*loop.getBody());
    for (auto [carry, init, yielded] :
         llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs(),
                   loop.getYieldedValues())) {
      Holder both = join(init, yielded);
      isNew |= both != holders.lookup(carry) && !sent.contains(carry);
      holders[carry] = both;
    }
  }
  for (auto [result, carry] :
       llvm::zip(loop.getResults(), loop.getRegionIterArgs()))
    holders[result] = holders.lookup(carry);
}

void StateDealer::visitWhile(scf::WhileOp loop) {
  Block &before = *loop.getBeforeBody(), &after = *loop.getAfterBody();
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (auto [carry, init] : llvm::zip(before.getArguments(), loop.getInits()))
      if (holders.lookup(carry).kind == Holder::Kind::Unknown)
        holders[carry] = holderOf(init);
    visitBlock(before);
    for (auto [arg, passed] :
         llvm::zip(after.getArguments(), loop.getConditionOp().getArgs()))
      holders[arg] = holderOf(passed);
    visitBlock(after);
    for (auto [carry, init, yielded] :
         llvm::zip(before.getArguments(), loop.getInits(),
                   loop.getYieldOp().getOperands())) {
      Holder both = join(init, yielded);
      isNew |= both != holders.lookup(carry) && !sent.contains(carry);
      holders[carry] = both;
    }
  }
  for (auto [result, passed] :
       llvm::zip(loop.getResults(), loop.getConditionOp().getArgs()))
    holders[result] = holderOf(passed);
}

void StateDealer::visitBranches(Operation *op) {
  for (Region &region : op->getRegions())
    if (!region.empty())
      visitBlock(region.front());
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Value first;
    Holder holder;
    for (Region &region : op->getRegions()) {
      Value yielded = region.front().getTerminator()->getOperand(index);
      holder = first ? join(first, yielded) : holderOf(yielded);
      if (!first || holderOf(yielded) == holder)
        first = yielded;
    }
    holders[result] = holder;
  }
}

void StateDealer::visitReturn(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Holder holder = holderOf(operand.get());
    std::optional<BlockArgument> arg =
        stateOfResult(operand.getOperandNumber());
    if (holder.isOwner() && (!arg || shardOf.lookup(*arg) != holder.shard))
      send(operand.get());
    // All ranks hold state whose new value all of them have: an average that
    // is evaluated in the same step, for example.
    if (arg && holder == Holder::all() && shardOf.contains(*arg))
      changed |= whole.insert(*arg).second;
  }
}

void StateDealer::visit(Operation *op) {
  if (isIrregular(op))
    return visitWork(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitWhile(loop);
  if (isa<scf::IfOp, scf::IndexSwitchOp>(op))
    return visitBranches(op);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return visitReturn(ret);
  if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    for (Value operand : reduce->getOperands())
      if (holderOf(operand).isOwner())
        send(operand);
    setAll(op, Holder::all());
    if (auto found = gradients.find(op); found != gradients.end()) {
      holders[reduce.getResult()] = Holder::owner(found->second);
      int64_t count = slices[found->second];
      if (count > 1 && !hasSlices(reduce.getResult(), count))
        keepTogether(found->second, "its gradient has no slices");
    }
    return;
  }
  if (isa<RankOp>(op))
    return setAll(op, Holder::each());
  if (auto exchange = dyn_cast<ExchangeOp>(op))
    return visitExchange(exchange);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return;
  // All ranks need the scalars that control the schedule.
  if (isa<tensor::ExtractOp>(op) && holderOf(op->getOperand(0)).isOwner())
    send(op->getOperand(0));
  visitWork(op);
}

void StateDealer::visitBlock(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

/// Finds the holders of all values. Repeats until no more values have to be
/// sent.
void StateDealer::analyze() {
  do {
    changed = false;
    shardOf.remove_if(
        [&](const auto &entry) { return whole.contains(entry.first); });
    findGradients();
    holders.clear();
    cuts.clear();
    SmallVector<int64_t> before = slices;
    for (BlockArgument arg : func.getArguments()) {
      bool isEach =
          argRoleOf(arg) == ArgRole::Batch || hasPart(arg.getArgNumber());
      int64_t shard = shardOf.lookup(arg);
      holders[arg] = shard    ? Holder::owner(shard)
                     : isEach ? Holder::each()
                              : Holder::all();
    }
    visitBlock(func.getBody().front());
    // The values to send change if state has left its shard, or if a stack has
    // one owner now.
    if (changed && (before != slices || llvm::any_of(whole, [&](Value value) {
                      return shardOf.contains(cast<BlockArgument>(value));
                    })))
      sent.clear();
  } while (changed);
}

//===----------------------------------------------------------------------===//
// Attributes and sends
//===----------------------------------------------------------------------===//

static std::optional<int64_t> markOf(Operation *op) {
  auto mark = op->getAttrOfType<IntegerAttr>(FP8Dialect::kShardAttrName);
  return mark ? std::optional(mark.getInt()) : std::nullopt;
}

/// Returns whether all users read an op's results slice by slice.
bool StateDealer::isReadInSlices(Operation *op, int64_t count) {
  if (!writesSlices(op, count))
    return false;
  return llvm::all_of(op->getUses(), [&](OpOperand &use) {
    return readsSlices(use) && (!isTensorView(use.getOwner()) ||
                                isReadInSlices(use.getOwner(), count));
  });
}

/// Gives ops that all ranks could run to an owner if it alone reads the
/// results.
void StateDealer::markOpsForOneReader() {
  for (Block *block : scheduleBlocks(func))
    for (Operation &op : llvm::reverse(*block)) {
      if (!isWork(&op) || markOf(&op))
        continue;
      std::optional<int64_t> shard;
      bool isOne = true;
      SmallVector<Value> views(op.result_begin(), op.result_end());
      for (Value result : op.getResults())
        isOne &= holderOf(result) == Holder::all() && !sent.contains(result);
      while (!views.empty() && isOne)
        for (Operation *user : views.pop_back_val().getUsers()) {
          if (isTensorView(user)) {
            views.push_back(user->getResult(0));
            continue;
          }
          // A use in a region counts as a use by the op around it.
          while (user && !isWork(user) && !isa<func::FuncOp>(user))
            user = user->getParentOp();
          std::optional<int64_t> mark =
              user && isWork(user) ? markOf(user) : std::nullopt;
          isOne &= mark && (!shard || shard == mark);
          shard = mark;
        }
      int64_t count = shard ? slicesOfMark.lookup(*shard) : 1;
      if (isOne && shard && (count == 1 || isReadInSlices(&op, count)))
        op.setAttr(
            FP8Dialect::kShardAttrName,
            IntegerAttr::get(IntegerType::get(func.getContext(), 64), *shard));
    }
}

void StateDealer::mark() {
  Builder builder(func.getContext());
  // Renumber the shards that still have state.
  llvm::MapVector<int64_t, int64_t> numbers;
  for (BlockArgument arg : func.getArguments())
    if (int64_t shard = shardOf.lookup(arg)) {
      int64_t number =
          numbers.try_emplace(shard, numbers.size() + 1).first->second;
      func.setArgAttr(arg.getArgNumber(), FP8Dialect::kShardAttrName,
                      builder.getI64IntegerAttr(number));
      slicesOfMark[number] = slices[shard];
      if (slices[shard] > 1)
        func.setArgAttr(arg.getArgNumber(), FP8Dialect::kSlicesAttrName,
                        builder.getI64IntegerAttr(slices[shard]));
      if (!reasons[shard].empty())
        func.setArgAttr(arg.getArgNumber(), FP8Dialect::kWholeReasonAttrName,
                        builder.getStringAttr(reasons[shard]));
    }
  for (Block *block : scheduleBlocks(func))
    for (Operation &op : *block)
      if (isWork(&op) && op.getNumResults() > 0)
        if (Holder holder = holders.lookup(op.getResult(0)); holder.isOwner())
          op.setAttr(FP8Dialect::kShardAttrName,
                     builder.getI64IntegerAttr(numbers.lookup(holder.shard)));
  markOpsForOneReader();
  for (auto [op, shard] : gradients)
    cast<AllReduceOp>(op).setShard(numbers.lookup(shard));
  for (Value value : sent) {
    // Once other values are sent, all ranks may compute this one.
    if (!holders.lookup(value).isOwner())
      continue;
    int64_t shard = holders.lookup(value).shard;
    OpBuilder after(func.getContext());
    after.setInsertionPointAfterValue(value);
    auto reduce = AllReduceOp::create(
        after, value.getLoc(), Reduction::Owner, value,
        builder.getStringAttr("owner of " + names[shard - 1].getValue()),
        builder.getI64IntegerAttr(numbers.lookup(shard)));
    value.replaceAllUsesExcept(reduce.getResult(), reduce);
  }
}

void StateDealer::run() {
  findShards();
  findStacks();
  do {
    sent.clear();
    analyze();
  } while (replicateCheapParameters() || dealDerivedState());
  mark();
}

namespace {

class DealState : public fp8::impl::DealStateBase<DealState> {
public:
  void runOnOperation() override {
    if (!getOperation()->hasAttr(FP8Dialect::kZeroAttrName))
      return;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration() && !func->hasAttr(FP8Dialect::kEntryAttrName))
        StateDealer(func).run();
  }
};

} // namespace
