//===- DealState.cpp - Shards of the state, each with an owner ------------===//
//
// On several ranks a value of the step is the same on all of them, another one
// on each, or known to the owner of a shard alone. A shard is a parameter with
// the moments that belong to it; what is computed from these and from values
// that all ranks have is the owner's, until somebody else reads it.
//
//===----------------------------------------------------------------------===//

#include "FormKernels/Work.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Conversion/StableHLOToLinalg/Irregular.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

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

/// Who has a value.
struct Holder {
  enum class Kind {
    Unknown, ///< Not computed yet: a loop's carry in its first turn.
    All,     ///< All ranks, the same.
    Each,    ///< Each rank another one.
    Owner    ///< The owner of a shard.
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

int64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isIntOrFloat())
    return 0;
  return type.getNumElements() *
         llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8);
}

int64_t elementsOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 0;
}

/// Operands, and what the regions read from outside.
SetVector<Value> valuesReadBy(Operation *op) {
  SetVector<Value> values;
  values.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

/// What a view or a slice is of.
Value rootOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isTensorView(def) && !isa<tensor::ExtractSliceOp>(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// How often an op runs in one step, as far as loops tell.
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
  explicit StateDealer(func::FuncOp func) : func(func) {}

  void run();

private:
  // What is dealt.
  void findShards();
  void findGradients();
  std::optional<int64_t> shardOfGradient(AllReduceOp reduce);
  bool keepDearParameters();
  bool dealWhatFollows();
  std::optional<BlockArgument> stateOfResult(unsigned index);
  /// Whether each rank has its part of an argument.
  bool hasPart(unsigned index) {
    return bool(func.getArgAttr(index, stablehlo::kPartAttrName));
  }

  // Who has what.
  void analyze();
  void visitBlock(Block &block);
  void visit(Operation *op);
  void visitWork(Operation *op);
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

  // The marks that it leaves.
  void markWhatIsReadByOwnersAlone();
  void mark();

  func::FuncOp func;
  /// The parameter that each shard is called after; shards count from 1.
  SmallVector<StringAttr> names;
  llvm::MapVector<BlockArgument, int64_t> shardOf;
  /// State that somebody else than its owner reads.
  llvm::DenseSet<Value> whole;
  /// Gradients that go to an owner alone, and those that do not.
  llvm::MapVector<Operation *, int64_t> gradients;
  llvm::DenseSet<Operation *> plain;
  /// What owners send to all ranks, where it is computed.
  SetVector<Value> sent;
  llvm::DenseMap<Value, Holder> holders;
  bool changed = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is dealt
//===----------------------------------------------------------------------===//

/// A parameter and the state that belongs to it, with their scales.
void StateDealer::findShards() {
  llvm::StringMap<int64_t> numbers;
  auto attrOf = [&](BlockArgument arg, StringRef name) {
    return func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
  };
  llvm::StringSet<> parameters;
  auto isParameter = [&](BlockArgument arg) {
    auto kind = attrOf(arg, kKindAttr);
    return kind && symbolizeStateKind(kind.getValue()) == StateKind::Parameter;
  };
  for (BlockArgument arg : func.getArguments())
    if (auto path = attrOf(arg, kPathAttr); path && isParameter(arg))
      parameters.insert(path.getValue());
  for (BlockArgument arg : func.getArguments()) {
    auto role = attrOf(arg, kRoleAttr);
    auto name = attrOf(arg, kParameterAttr);
    if (!name && isParameter(arg)) {
      name = attrOf(arg, kPathAttr);
      StringRef base = name ? name.getValue() : "";
      if (base.consume_back(FP8Dialect::kScaleSuffix) &&
          parameters.contains(base))
        name = StringAttr::get(func.getContext(), base);
    }
    if (!role || role.getValue() != "state" || !name ||
        hasPart(arg.getArgNumber()))
      continue;
    auto [entry, isNew] =
        numbers.try_emplace(name.getValue(), names.size() + 1);
    if (isNew)
      names.push_back(name);
    shardOf[arg] = entry->second;
  }
}

/// The one shard whose state the gradient reaches element by element.
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

/// Parameters that would cost more to send in the forms in which they are read
/// than as they are: all ranks have these. Has it found one?
bool StateDealer::keepDearParameters() {
  SmallVector<int64_t> cost(names.size() + 1), stored(names.size() + 1);
  for (Value value : sent)
    if (Holder holder = holders.lookup(value); holder.isOwner()) {
      Operation *def = value.getDefiningOp();
      cost[holder.shard] +=
          bytesOf(value) * runsOf(def ? def : &value.getParentBlock()->front());
    }
  auto isParameter = [&](BlockArgument arg) {
    auto kind =
        func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kKindAttr);
    return kind && symbolizeStateKind(kind.getValue()) == StateKind::Parameter;
  };
  for (auto [arg, shard] : shardOf)
    if (isParameter(arg))
      stored[shard] += bytesOf(arg);
  // Sums of squares and the like are sent whatever becomes of the parameter.
  constexpr int64_t little = 256;
  bool found = false;
  for (auto [arg, shard] : shardOf)
    if (isParameter(arg) && cost[shard] > stored[shard] + little)
      found |= whole.insert(arg).second;
  return found;
}

std::optional<BlockArgument> StateDealer::stateOfResult(unsigned index) {
  auto path = func.getResultAttrOfType<StringAttr>(index, kStateAttr);
  BlockArgument arg =
      path ? findArgument(func, path.getValue()) : BlockArgument();
  return arg ? std::optional(arg) : std::nullopt;
}

/// State that nobody but one owner reads, and whose new value that owner alone
/// computes, belongs to it too, whatever it is. Has it found some?
bool StateDealer::dealWhatFollows() {
  bool found = false;
  Operation *end = func.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    Holder holder = holders.lookup(operand.get());
    std::optional<BlockArgument> arg =
        stateOfResult(operand.getOperandNumber());
    if (!arg || !holder.isOwner() || shardOf.contains(*arg) ||
        whole.contains(*arg))
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
// Who has what
//===----------------------------------------------------------------------===//

/// All ranks need the value: its owner sends it, or, of state, all have it.
void StateDealer::send(Value value) {
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

/// Who has a value that is the one or the other.
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
  // Of what several owners have, little is read by all ranks; else the largest
  // stays where it is.
  constexpr int64_t little = 1024;
  if (largest && !isEach && (!isMixed || hasState || bytesOf(largest) > little))
    holder = holderOf(largest);
  for (Value value : read)
    if (Holder other = holderOf(value); other.isOwner() && other != holder)
      send(value);
  setAll(op, holder);
}

/// All ranks take part. What all of them gather is the same everywhere; what is
/// exchanged otherwise, a rank's own number too, is another one on each.
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
    if (auto found = gradients.find(op); found != gradients.end())
      holders[reduce.getResult()] = Holder::owner(found->second);
    return;
  }
  if (isa<RankOp>(op))
    return setAll(op, Holder::each());
  if (auto exchange = dyn_cast<ExchangeOp>(op))
    return visitExchange(exchange);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return;
  // What the schedule itself reads decides what all ranks do.
  if (isa<tensor::ExtractOp>(op) && holderOf(op->getOperand(0)).isOwner())
    send(op->getOperand(0));
  visitWork(op);
}

void StateDealer::visitBlock(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

/// Until nothing more has to be sent.
void StateDealer::analyze() {
  do {
    changed = false;
    shardOf.remove_if(
        [&](const auto &entry) { return whole.contains(entry.first); });
    findGradients();
    holders.clear();
    for (BlockArgument arg : func.getArguments()) {
      auto role =
          func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kRoleAttr);
      bool isEach =
          (role && role.getValue() == "batch") || hasPart(arg.getArgNumber());
      int64_t shard = shardOf.lookup(arg);
      holders[arg] = shard    ? Holder::owner(shard)
                     : isEach ? Holder::each()
                              : Holder::all();
    }
    visitBlock(func.getBody().front());
    // What is state in one place only has to be sent no more.
    if (changed && llvm::any_of(whole, [&](Value value) {
          return shardOf.contains(cast<BlockArgument>(value));
        }))
      sent.clear();
  } while (changed);
}

//===----------------------------------------------------------------------===//
// The marks that it leaves
//===----------------------------------------------------------------------===//

static std::optional<int64_t> markOf(Operation *op) {
  auto mark = op->getAttrOfType<IntegerAttr>(FP8Dialect::kShardAttrName);
  return mark ? std::optional(mark.getInt()) : std::nullopt;
}

/// What all ranks could compute but one owner alone reads, it computes alone.
void StateDealer::markWhatIsReadByOwnersAlone() {
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
          // (A scalar of a region is read by the op around it.)
          while (user && !isWork(user) && !isa<func::FuncOp>(user))
            user = user->getParentOp();
          std::optional<int64_t> mark =
              user && isWork(user) ? markOf(user) : std::nullopt;
          isOne &= mark && (!shard || shard == mark);
          shard = mark;
        }
      if (isOne && shard)
        op.setAttr(
            FP8Dialect::kShardAttrName,
            IntegerAttr::get(IntegerType::get(func.getContext(), 64), *shard));
    }
}

void StateDealer::mark() {
  Builder builder(func.getContext());
  // Shards that are left are counted anew.
  llvm::MapVector<int64_t, int64_t> numbers;
  for (BlockArgument arg : func.getArguments())
    if (int64_t shard = shardOf.lookup(arg)) {
      int64_t number =
          numbers.try_emplace(shard, numbers.size() + 1).first->second;
      func.setArgAttr(arg.getArgNumber(), FP8Dialect::kShardAttrName,
                      builder.getI64IntegerAttr(number));
    }
  for (Block *block : scheduleBlocks(func))
    for (Operation &op : *block)
      if (isWork(&op) && op.getNumResults() > 0)
        if (Holder holder = holders.lookup(op.getResult(0)); holder.isOwner())
          op.setAttr(FP8Dialect::kShardAttrName,
                     builder.getI64IntegerAttr(numbers.lookup(holder.shard)));
  markWhatIsReadByOwnersAlone();
  for (auto [op, shard] : gradients)
    cast<AllReduceOp>(op).setShard(numbers.lookup(shard));
  for (Value value : sent) {
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
  do {
    sent.clear();
    analyze();
  } while (keepDearParameters() || dealWhatFollows());
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
