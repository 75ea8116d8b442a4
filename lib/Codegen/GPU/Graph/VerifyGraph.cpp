//===- VerifyGraph.cpp - Check of the order of a graph --------------------===//

#include "GraphOrder.h"

#include "fp8/Codegen/GPU/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYGRAPH
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

class GraphVerifier {
public:
  GraphVerifier(ScheduleOp schedule, const SymbolTable &symbols)
      : schedule(schedule), memory(schedule, symbols) {}

  LogicalResult verify() { return verify(schedule.getBody().front()); }

private:
  /// The nodes of a block since its last barrier.
  struct Known {
    SmallVector<std::pair<Location, int64_t>> nodes; // with their numbers
    DenseMap<int64_t, int64_t> places;               // in `nodes`, by number
    GraphConflicts conflicts;
    GraphPaths paths;
  };
  LogicalResult verify(Block &block);
  LogicalResult verifyNode(Location loc, Attribute numberAttr,
                           Attribute afterAttr, ArrayRef<GraphAccess> accesses,
                           Known &known);
  LogicalResult verifyResults(Known &known);

  ScheduleOp schedule;
  GraphMemory memory;
  llvm::DenseSet<int64_t> numbers;
};

} // namespace

LogicalResult GraphVerifier::verifyNode(Location loc, Attribute numberAttr,
                                        Attribute afterAttr,
                                        ArrayRef<GraphAccess> accesses,
                                        Known &known) {
  if (!numberAttr || !afterAttr)
    return emitError(loc) << "expected '" << FP8Dialect::kNodeAttrName
                          << "' and '" << FP8Dialect::kAfterAttrName
                          << "', as every node of a graph with '"
                          << FP8Dialect::kGraphAttrName << "' has them";
  int64_t number = cast<IntegerAttr>(numberAttr).getInt();
  if (!numbers.insert(number).second)
    return emitError(loc) << "expected a node with a number of its own but got "
                          << number << " again";
  SmallVector<int64_t> after;
  for (int64_t other : cast<DenseI64ArrayAttr>(afterAttr).asArrayRef()) {
    auto found = known.places.find(other);
    if (found == known.places.end())
      return emitError(loc)
             << "expected an earlier node of the same block but got " << other;
    after.push_back(found->second);
  }
  auto local = static_cast<int64_t>(known.nodes.size());
  known.paths.add(after);
  known.nodes.push_back({loc, number});
  known.places[number] = local;
  for (int64_t other : known.conflicts.add(local, accesses)) {
    if (known.paths.isPath(other, local))
      continue;
    const auto &[place, otherNumber] = known.nodes[other];
    InFlightDiagnostic error =
        emitError(loc) << "expected a path from node " << otherNumber
                       << " to node " << number
                       << ": both access the same bytes, and one writes";
    error.attachNote(place) << "node " << otherNumber;
    return error;
  }
  return success();
}

LogicalResult GraphVerifier::verifyResults(Known &known) {
  for (BlockArgument argument : schedule.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (schedule.getArgAttr(number, FP8Dialect::kOutputAttrName) &&
        failed(
            verifyNode(argument.getLoc(),
                       schedule.getArgAttr(number, FP8Dialect::kNodeAttrName),
                       schedule.getArgAttr(number, FP8Dialect::kAfterAttrName),
                       memory.readsOf(argument), known)))
      return failure();
  }
  return success();
}

LogicalResult GraphVerifier::verify(Block &block) {
  Known known;
  for (Operation &op : block) {
    if (isGraphBarrier(&op)) {
      known = Known();
      continue;
    }
    if (isa<scf::ForOp>(op) && !isGraphNode(&op))
      return op.emitOpError("expected the loops of a graph with '")
             << FP8Dialect::kGraphAttrName
             << "' to be counted by the GPU or expanded";
    if (isGraphNode(&op) &&
        failed(verifyNode(op.getLoc(), op.getAttr(FP8Dialect::kNodeAttrName),
                          op.getAttr(FP8Dialect::kAfterAttrName),
                          memory.accessesOf(&op), known)))
      return failure();
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (failed(verify(inner)))
          return failure();
  }
  return block.getParentOp() == schedule ? verifyResults(known) : success();
}

namespace {

class VerifyGraph : public fp8::impl::VerifyGraphBase<VerifyGraph> {
public:
  using VerifyGraphBase::VerifyGraphBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto schedule : getOperation().getOps<ScheduleOp>())
      if (schedule->hasAttr(FP8Dialect::kGraphAttrName) &&
          failed(GraphVerifier(schedule, symbols).verify()))
        return signalPassFailure();
  }
};

} // namespace
