//===- BatchLaunches.cpp - One launch for many sets of operands -----------===//
//
// A step with many layers launches the same small kernels for the scales, amax
// histories and norms of each of them. This pass moves such launches to where
// several of one kernel are possible at once, and makes one launch of them.
//
// A launch may move up if it writes only small buffers and such that live
// anyway (arguments), and down if this holds for what it reads, too. So no
// large buffer lives longer than before. Every other op keeps its place in the
// order.
//
//===----------------------------------------------------------------------===//

#include "Dependences.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BATCHLAUNCHES
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// A buffer is small if it has at most this many bytes or this part of the
/// bytes that are live at once.
static constexpr int64_t kSmallBytes = 4096, kSmallPart = 1 << 14;
/// The part of the live bytes by which they may grow.
static constexpr int64_t kGrowthPart = 100;

namespace {

/// Indices of nodes that become one launch, or a single one.
using Batch = SmallVector<unsigned, 1>;

/// A new order of the nodes of a block.
class BatchOrder {
public:
  BatchOrder(ArrayRef<ScheduleNode> nodes, ArrayRef<bool> batchable)
      : nodes(nodes), batchable(batchable) {}

  /// Finds the order if launches may move that access no larger buffers than
  /// `isSmall` accepts where it matters.
  std::vector<Batch> find(function_ref<bool(Value)> isSmall);

private:
  void classify(function_ref<bool(Value)> isSmall);
  void reach(unsigned node);
  void place(unsigned node);
  void placeBatch(Batch batch);
  void placeRest();
  Attribute kernelOf(unsigned node) const {
    return cast<LaunchOp>(nodes[node].op).getKernelAttr();
  }

  ArrayRef<ScheduleNode> nodes;
  ArrayRef<bool> batchable;
  std::vector<bool> mayMoveUp, mayMoveDown, isPlaced;
  std::vector<unsigned> missing; // edges from nodes that are not placed
  /// Launches that may move up to the current place, by kernel.
  llvm::MapVector<Attribute, Batch> ready;
  std::vector<Batch> order;
};

} // namespace

void BatchOrder::classify(function_ref<bool(Value)> isSmall) {
  size_t count = nodes.size();
  mayMoveUp.assign(count, false);
  mayMoveDown.assign(count, false);
  isPlaced.assign(count, false);
  missing.assign(count, 0);
  ready.clear();
  order.clear();
  for (size_t i = 0; i < count; ++i) {
    missing[i] = nodes[i].before.size();
    if (!batchable[i])
      continue;
    ArrayRef<MemoryAccess> accesses = nodes[i].accesses;
    mayMoveUp[i] = llvm::all_of(accesses, [&](const MemoryAccess &access) {
      return !access.writes || isSmall(access.memory);
    });
    mayMoveDown[i] =
        mayMoveUp[i] && llvm::all_of(accesses, [&](const MemoryAccess &access) {
          return isSmall(access.memory);
        });
  }
}

/// Notes a node all of whose predecessors are placed.
void BatchOrder::reach(unsigned node) {
  if (mayMoveUp[node])
    ready[kernelOf(node)].push_back(node);
}

void BatchOrder::placeBatch(Batch batch) {
  for (unsigned node : batch)
    isPlaced[node] = true;
  for (unsigned node : batch)
    for (unsigned next : nodes[node].after)
      if (--missing[next] == 0)
        reach(next);
  order.push_back(std::move(batch));
}

/// Places a node, after those that must come before it, together with all other
/// launches of its kernel that are possible now.
void BatchOrder::place(unsigned node) {
  // (Chains of launches can be long: no recursion.)
  SmallVector<unsigned> stack{node};
  while (!stack.empty()) {
    unsigned top = stack.back();
    if (isPlaced[top]) {
      stack.pop_back();
      continue;
    }
    size_t height = stack.size();
    if (missing[top] > 0)
      for (unsigned earlier : llvm::reverse(nodes[top].before))
        if (!isPlaced[earlier])
          stack.push_back(earlier);
    if (stack.size() > height)
      continue;
    stack.pop_back();
    if (!mayMoveUp[top]) {
      placeBatch({top});
      continue;
    }
    Batch batch = std::exchange(ready[kernelOf(top)], {});
    llvm::sort(batch);
    placeBatch(std::move(batch));
  }
}

/// Places the launches that nothing in the block waits for: first kernels whose
/// launches are all possible, so that they become one.
void BatchOrder::placeRest() {
  llvm::MapVector<Attribute, size_t> left;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!isPlaced[i])
      ++left[kernelOf(i)];
  while (!left.empty()) {
    auto rank = [&](const auto &entry) {
      size_t count = ready[entry.first].size();
      return std::pair(count == entry.second, count);
    };
    auto best = llvm::max_element(
        left, [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
    Batch batch = std::exchange(ready[best->first], {});
    best->second -= batch.size();
    llvm::sort(batch);
    placeBatch(std::move(batch));
    left.remove_if([](const auto &entry) { return entry.second == 0; });
  }
}

std::vector<Batch> BatchOrder::find(function_ref<bool(Value)> isSmall) {
  classify(isSmall);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0)
      reach(i);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!mayMoveDown[i])
      place(i);
  placeRest();
  return std::move(order);
}

//===----------------------------------------------------------------------===//
// Live bytes
//===----------------------------------------------------------------------===//

/// Returns the most bytes of the block's own allocations that are live at once
/// if the nodes run in `order`, with the bytes of `inner` blocks.
static int64_t peakBytes(Block &block, ArrayRef<ScheduleNode> nodes,
                         ArrayRef<Batch> order,
                         const DenseMap<Operation *, int64_t> &inner) {
  llvm::MapVector<Value, std::pair<size_t, size_t>> live;
  std::vector<int64_t> change(order.size() + 1), inside(order.size());
  for (auto [position, batch] : llvm::enumerate(order))
    for (unsigned node : batch) {
      inside[position] += inner.lookup(nodes[node].op);
      for (const MemoryAccess &access : nodes[node].accesses)
        live.try_emplace(access.memory, position, position)
            .first->second.second = position;
    }
  for (auto &[buffer, range] : live) {
    auto alloc = buffer.getDefiningOp<memref::AllocOp>();
    if (!alloc || alloc->getBlock() != &block)
      continue;
    auto bytes = static_cast<int64_t>(
        llvm::alignTo(byteSize(alloc.getType()), kArenaAlignment));
    change[range.first] += bytes;
    change[range.second + 1] -= bytes;
  }
  int64_t now = 0, peak = 0;
  for (size_t position = 0; position < order.size(); ++position) {
    now += change[position];
    peak = std::max(peak, now + inside[position]);
  }
  return peak;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {

/// Gives a block its new order.
class BlockRewriter {
public:
  BlockRewriter(Block &block, ArrayRef<ScheduleNode> nodes,
                const SymbolTable &symbols)
      : block(block), nodes(nodes), symbols(symbols),
        builder(block.getTerminator()) {}

  void run(ArrayRef<Batch> order, ArrayRef<bool> batchable);

private:
  void move(Operation *op);
  void merge(const Batch &batch);

  Block &block;
  ArrayRef<ScheduleNode> nodes;
  const SymbolTable &symbols;
  OpBuilder builder;
  llvm::SmallPtrSet<Operation *, 32> moved;
};

} // namespace

/// Moves an op to the end of the new order, after the ops of the block that
/// make its operands.
void BlockRewriter::move(Operation *op) {
  if (!moved.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp();
        def && def->getBlock() == &block)
      move(def);
  op->moveBefore(block.getTerminator());
}

/// Returns the label of a launch for several sets of operands.
static StringAttr labelOfBatch(LaunchOp first, size_t sets) {
  std::optional<StringRef> label = first.getLabel();
  if (!label)
    return {};
  return StringAttr::get(first.getContext(),
                         *label + " and " + Twine(sets - 1) + " more");
}

void BlockRewriter::merge(const Batch &batch) {
  auto first = cast<LaunchOp>(nodes[batch.front()].op);
  SmallVector<Value> operands;
  for (unsigned node : batch)
    llvm::append_range(operands, nodes[node].op->getOperands());
  for (Value operand : operands)
    if (Operation *def = operand.getDefiningOp();
        def && def->getBlock() == &block)
      move(def);
  LaunchOp::create(builder, first.getLoc(),
                   symbols.lookup<KernelOp>(first.getKernel()), operands,
                   labelOfBatch(first, batch.size()));
  for (unsigned node : batch)
    nodes[node].op->erase();
}

void BlockRewriter::run(ArrayRef<Batch> order, ArrayRef<bool> batchable) {
  // Scalars and views stay in front of the ops that keep their places. (The
  // operands of launches that move up need nothing but views.)
  llvm::SmallPtrSet<Operation *, 32> launches;
  for (auto [node, mayMove] : llvm::zip(nodes, batchable))
    if (mayMove)
      launches.insert(node.op);
  SmallVector<Operation *> before;
  for (Operation &op : block.without_terminator())
    before.push_back(&op);
  ArrayRef<Operation *> left = before;
  auto moveUntil = [&](Operation *end) {
    for (; !left.empty() && left.front() != end; left = left.drop_front())
      if (!launches.contains(left.front()))
        move(left.front());
  };
  for (const Batch &batch : order) {
    Operation *op = nodes[batch.front()].op;
    if (batch.size() > 1) {
      merge(batch);
      continue;
    }
    if (!launches.contains(op))
      moveUntil(op);
    move(op);
  }
  moveUntil(nullptr);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

class BatchLaunches : public fp8::impl::BatchLaunchesBase<BatchLaunches> {
public:
  void runOnOperation() override {
    symbols.emplace(getOperation());
    kernels.clear();
    for (auto schedule : getOperation().getOps<ScheduleOp>()) {
      if (schedule.getArena()) {
        schedule.emitOpError("expected a schedule with allocations but got an "
                             "arena: run this pass before fp8-plan-memory");
        return signalPassFailure();
      }
      peaks.clear();
      // Inner blocks come first.
      schedule.walk([&](Block *block) { batch(*block); });
    }
  }

private:
  void batch(Block &block);
  bool isBatchable(Operation *op);
  bool isKernelBatchable(StringRef name);

  std::optional<SymbolTable> symbols;
  llvm::StringMap<bool> kernels;
  /// The most bytes that are live in the blocks of an op.
  DenseMap<Operation *, int64_t> peaks;
};

} // namespace

/// Dots are large, and have plans of their own on every target.
bool BatchLaunches::isKernelBatchable(StringRef name) {
  auto [known, isNew] = kernels.try_emplace(name, false);
  auto kernel = isNew ? symbols->lookup<KernelOp>(name) : KernelOp();
  if (!kernel)
    return known->second;
  bool hasDot = kernel
                    .walk([](linalg::GenericOp generic) {
                      return isDot(generic) ? WalkResult::interrupt()
                                            : WalkResult::advance();
                    })
                    .wasInterrupted();
  return known->second =
             !hasDot && !kernel.getBlock() && kernel.getNumArguments() > 0;
}

/// Returns true for launches with operands at fixed addresses that all ranks
/// run.
bool BatchLaunches::isBatchable(Operation *op) {
  auto launch = dyn_cast<LaunchOp>(op);
  if (!launch || launch.getNumSets() > 1 ||
      !launch->getDiscardableAttrs().empty() ||
      !isKernelBatchable(launch.getKernel()))
    return false;
  return llvm::all_of(launch.getOperands(), [](Value buffer) {
    Operation *def = buffer.getDefiningOp();
    while (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp>(def))
      def = def->getOperand(0).getDefiningOp();
    return !def || isa<memref::AllocOp, memref::GetGlobalOp>(def);
  });
}

void BatchLaunches::batch(Block &block) {
  std::optional<std::vector<ScheduleNode>> nodes = findDependences(block);
  if (!nodes)
    return;
  std::vector<Batch> before;
  SmallVector<bool> batchable;
  for (auto [index, node] : llvm::enumerate(*nodes)) {
    before.push_back({static_cast<unsigned>(index)});
    batchable.push_back(isBatchable(node.op));
  }
  int64_t peak = peakBytes(block, *nodes, before, peaks), peakAfter;
  // A buffer from outside lives as long as the loop around the block, anyway.
  bool isOutsideFree =
      isa<ScheduleOp, LoopLikeOpInterface>(block.getParentOp());
  auto order = [&](int64_t limit) {
    return BatchOrder(*nodes, batchable).find([&](Value buffer) {
      auto alloc = buffer.getDefiningOp<memref::AllocOp>();
      return !alloc || (isOutsideFree && alloc->getBlock() != &block) ||
             byteSize(alloc.getType()) <= limit;
    });
  };
  std::vector<Batch> after;
  // With a limit of 0, nothing lives longer.
  for (int64_t limit = std::max(kSmallBytes, peak / kSmallPart);; limit /= 2) {
    after = order(limit);
    peakAfter = peakBytes(block, *nodes, after, peaks);
    if (limit == 0 ||
        peakAfter - peak <= std::max(kSmallBytes, peak / kGrowthPart))
      break;
  }
  int64_t &outer = peaks[block.getParentOp()];
  outer = std::max(outer, peakAfter);
  if (after.size() == nodes->size())
    return;
  numBefore += nodes->size();
  numAfter += after.size();
  BlockRewriter(block, *nodes, *symbols).run(after, batchable);
}
