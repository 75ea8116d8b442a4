//===- Holders.cpp - Which ranks have a value -----------------------------===//

#include "../FormKernels/Work.h"
#include "Slices.h"
#include "StateDealer.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;

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
