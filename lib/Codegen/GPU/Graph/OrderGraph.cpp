//===- OrderGraph.cpp - Edges of a step's graph ---------------------------===//

#include "GraphOrder.h"

#include "fp8/Codegen/GPU/Passes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_ORDERGRAPH
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Expanded loops
//===----------------------------------------------------------------------===//

/// Returns true if `op` has several nodes of its block's graph: a counted loop
/// that the GPU does not count.
static bool isExpanded(Operation *op) {
  return isa<scf::ForOp>(op) && !op->hasAttr(FP8Dialect::kDeviceLoopAttrName);
}

/// Counts the nodes of a block once its loops are expanded.
static uint64_t nodesOf(Block &block) {
  uint64_t nodes = 0;
  for (Operation &op : block) {
    uint64_t inner = isGraphNode(&op) ? 1 : 0;
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        inner = llvm::SaturatingAdd(inner, nodesOf(nested));
    if (isExpanded(&op))
      if (auto trips = cast<scf::ForOp>(op).getStaticTripCount())
        inner = llvm::SaturatingMultiply(inner, trips->getZExtValue());
    nodes = llvm::SaturatingAdd(nodes, inner);
  }
  return nodes;
}

/// Replaces integer arithmetic on constants, such as the places of parts.
static void foldConstants(Block &block) {
  block.walk([](Operation *op) {
    SmallVector<Value> results;
    if (!isa<arith::ArithDialect>(op->getDialect()) ||
        op->hasTrait<OpTrait::ConstantLike>())
      return;
    OpBuilder builder(op);
    if (failed(builder.tryFold(op, results)) || results.empty())
      return;
    op->replaceAllUsesWith(results);
    op->erase();
  });
}

/// Replaces a loop by its iterations.
static void expand(scf::ForOp loop) {
  OpBuilder builder(loop);
  int64_t trips = loop.getStaticTripCount()->getSExtValue(),
          begin = *getConstantIntValue(loop.getLowerBound()),
          step = *getConstantIntValue(loop.getStep());
  for (int64_t i = 0; i < trips; ++i) {
    IRMapping mapping;
    Type type = loop.getInductionVar().getType();
    mapping.map(loop.getInductionVar(),
                arith::ConstantOp::create(
                    builder, loop.getLoc(),
                    builder.getIntegerAttr(type, begin + i * step)));
    for (Operation &op : loop.getBody()->without_terminator())
      builder.clone(op, mapping);
  }
  loop.erase();
}

/// Expands the loops of a block and of the blocks in it. Loops with conditions
/// stay as they are.
static void expandLoops(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isGraphBarrier(&op))
      continue;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        expandLoops(inner);
    if (isExpanded(&op))
      expand(cast<scf::ForOp>(op));
  }
}

/// Returns true if every loop that has to be expanded counts from a constant.
static bool canExpand(ScheduleOp schedule) {
  WalkResult result = schedule.walk([](scf::ForOp loop) {
    bool isKnown = loop.getNumResults() == 0 && loop.getStaticTripCount() &&
                   getConstantIntValue(loop.getLowerBound()) &&
                   getConstantIntValue(loop.getStep());
    return isKnown || !isExpanded(loop) ? WalkResult::advance()
                                        : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

namespace {

/// What is attached to a node.
struct NodeAttrs {
  IntegerAttr number;
  DenseI64ArrayAttr after;
};

class Orderer {
public:
  Orderer(ScheduleOp schedule, const SymbolTable &symbols)
      : schedule(schedule), memory(schedule, symbols) {}

  void run() { path = order(schedule.getBody().front()); }

  int64_t nodes = 0, edges = 0, path = 0;

private:
  /// The nodes of a block.
  struct Known {
    GraphConflicts conflicts;
    GraphPaths paths;
    SmallVector<int64_t> numbers, depths; // depths: nodes on the longest path
    int64_t base = 0;                     // the depth of the last barrier
  };
  int64_t order(Block &block);
  int64_t orderBodies(Operation &op);
  NodeAttrs add(ArrayRef<GraphAccess> accesses, Known &known);
  void orderResults(Known &known);

  ScheduleOp schedule;
  GraphMemory memory;
};

} // namespace

/// Adds a node with these accesses.
NodeAttrs Orderer::add(ArrayRef<GraphAccess> accesses, Known &known) {
  auto local = static_cast<int64_t>(known.numbers.size());
  SmallVector<int64_t> after;
  int64_t depth = known.base;
  for (int64_t node : known.paths.add(known.conflicts.add(local, accesses))) {
    after.push_back(known.numbers[node]);
    depth = std::max(depth, known.depths[node]);
  }
  known.numbers.push_back(nodes);
  known.depths.push_back(depth + 1);
  edges += static_cast<int64_t>(after.size());
  Builder builder(schedule.getContext());
  return {builder.getI64IntegerAttr(nodes++),
          builder.getDenseI64ArrayAttr(after)};
}

/// Returns the nodes on the longest path of the regions of `op`.
int64_t Orderer::orderBodies(Operation &op) {
  int64_t longest = 0;
  for (Region &region : op.getRegions())
    for (Block &inner : region)
      longest = std::max(longest, order(inner));
  return longest;
}

/// Orders the copies of results to the host.
void Orderer::orderResults(Known &known) {
  for (BlockArgument argument : schedule.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (!schedule.getArgAttr(number, FP8Dialect::kOutputAttrName))
      continue;
    NodeAttrs node = add(memory.readsOf(argument), known);
    schedule.setArgAttr(number, FP8Dialect::kNodeAttrName, node.number);
    schedule.setArgAttr(number, FP8Dialect::kAfterAttrName, node.after);
  }
}

/// Orders the nodes of a block. Returns how many of them lie on the longest
/// path.
int64_t Orderer::order(Block &block) {
  Known known;
  int64_t longest = 0;
  for (Operation &op : block) {
    if (isGraphBarrier(&op)) {
      longest = known.base = longest + 1;
      known.conflicts.clear();
    }
    if (!isGraphNode(&op))
      continue;
    NodeAttrs node = add(memory.accessesOf(&op), known);
    op.setAttr(FP8Dialect::kNodeAttrName, node.number);
    op.setAttr(FP8Dialect::kAfterAttrName, node.after);
    size_t local = known.depths.size() - 1;
    known.depths[local] += orderBodies(op);
    longest = std::max(longest, known.depths[local]);
  }
  if (block.getParentOp() == schedule) {
    orderResults(known);
    for (int64_t depth : known.depths)
      longest = std::max(longest, depth);
  }
  return longest;
}

namespace {

class OrderGraph : public fp8::impl::OrderGraphBase<OrderGraph> {
public:
  using OrderGraphBase::OrderGraphBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto schedule : getOperation().getOps<ScheduleOp>()) {
      Block &body = schedule.getBody().front();
      if (!schedule->hasAttr(FP8Dialect::kDeviceControlAttrName) ||
          !canExpand(schedule) || nodesOf(body) > static_cast<uint64_t>(nodes))
        continue;
      expandLoops(body);
      foldConstants(body);
      Orderer orderer(schedule, symbols);
      orderer.run();
      Builder builder(&getContext());
      auto count = [&](StringRef name, int64_t value) {
        return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
      };
      schedule->setAttr(
          FP8Dialect::kGraphAttrName,
          builder.getDictionaryAttr({count("edges", orderer.edges),
                                     count("nodes", orderer.nodes),
                                     count("path", orderer.path)}));
    }
  }
};

} // namespace
