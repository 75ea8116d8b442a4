//===- DealState.cpp - Gives work on shards to their owners ---------------===//

#include "../FormKernels/Work.h"
#include "Slices.h"
#include "StateDealer.h"

#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DEALSTATE
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

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
