//===- GraphOrder.cpp - Order of the nodes of a graph ---------------------===//

#include "GraphOrder.h"
#include "../../Lowering/DeviceLoops.h"
#include "LaunchedKernels.h"

#include "fp8-c/Runtime.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::isGraphNode(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop->hasAttr(FP8Dialect::kDeviceLoopAttrName);
  return isa<LaunchOp, memref::LoadOp, memref::StoreOp, StartAllReduceOp,
             StartExchangeOp, scf::IfOp, scf::IndexSwitchOp>(op);
}

bool fp8::isGraphBarrier(Operation *op) { return isa<scf::WhileOp>(op); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

GraphMemory::GraphMemory(ScheduleOp schedule, const SymbolTable &symbols)
    : symbols(symbols) {
  for (Value argument : schedule.getArguments())
    places[argument] = allocate(byteSize(cast<MemRefType>(argument.getType())));
  scratch = allocate(1);
  counters = allocate(FP8_GPU_LOOPS);
}

int64_t GraphMemory::allocate(int64_t bytes) {
  int64_t place = next;
  next += std::max<int64_t>(bytes, 1);
  return place;
}

int64_t GraphMemory::conditionOf(memref::LoadOp load) {
  auto [condition, isNew] = conditions.try_emplace(load, 0);
  if (isNew)
    condition->second = allocate(1);
  return condition->second;
}

/// Adds an access to the bytes of `buffer`. If it is a part of another buffer
/// at an unknown place, all of that one counts.
void GraphMemory::addBuffer(Value buffer, bool writes) {
  int64_t begin = 0, bytes = byteSize(cast<MemRefType>(buffer.getType()));
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    buffer = view.getViewSource();
    std::optional<int64_t> shift = beginOf(view);
    begin = shift ? begin + *shift : 0;
    if (!shift)
      bytes = byteSize(cast<MemRefType>(buffer.getType()));
  }
  auto place = places.find(buffer);
  // Nothing writes constants.
  if (place == places.end() || bytes == 0)
    return;
  begin += place->second;
  found.push_back({begin, begin + bytes, writes});
}

void GraphMemory::addLaunch(LaunchOp launch) {
  for (OpOperand &operand : launch->getOpOperands()) {
    Access access = launch.getAccess(operand.getOperandNumber());
    addBuffer(operand.get(), access != Access::Read);
  }
  GPULaunchAttr asked = gpu_codegen::gpuLaunchOf(launch, symbols);
  if (asked && asked.getScratch() > 0)
    found.push_back({scratch, scratch + 1, /*writes=*/true});
}

/// Adds what `op` accesses without the ops in it.
void GraphMemory::addOne(Operation *op) {
  auto addCondition = [&](const std::optional<Condition> &condition) {
    if (condition)
      found.push_back({conditionOf(condition->load),
                       conditionOf(condition->load) + 1, /*writes=*/false});
  };
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    addLaunch(launch);
  } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
    addBuffer(load.getMemRef(), /*writes=*/false);
    found.push_back({conditionOf(load), conditionOf(load) + 1, true});
    // The kernel that keeps a condition reads the counters of all loops, also
    // of those that are not around it.
    found.push_back({counters, counters + FP8_GPU_LOOPS, /*writes=*/false});
  } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
    addBuffer(store.getMemRef(), /*writes=*/true);
  } else if (isa<StartAllReduceOp, StartExchangeOp>(op)) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<MemRefType>(operand.get().getType()))
        addBuffer(operand.get(), mayWrite(operand));
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    addCondition(fp8::conditionOf(branch.getCondition()));
  } else if (auto choice = dyn_cast<scf::IndexSwitchOp>(op)) {
    addCondition(fp8::conditionOf(choice, 0));
  } else if (auto end = dyn_cast<scf::ConditionOp>(op)) {
    addCondition(fp8::conditionOf(end.getCondition()));
  } else if (isa<scf::ForOp>(op) &&
             op->hasAttr(FP8Dialect::kDeviceLoopAttrName)) {
    int64_t counter = counters + deviceLoopsAround(op).size();
    found.push_back({counter, counter + 1, /*writes=*/true});
  }
}

SmallVector<GraphAccess> GraphMemory::accessesOf(Operation *op) {
  found.clear();
  op->walk([&](Operation *inner) { addOne(inner); });
  return std::move(found);
}

SmallVector<GraphAccess> GraphMemory::readsOf(Value buffer) {
  found.clear();
  addBuffer(buffer, /*writes=*/false);
  return std::move(found);
}

//===----------------------------------------------------------------------===//
// Conflicts
//===----------------------------------------------------------------------===//

/// Lets a segment begin at `at`, if one contains it.
void GraphConflicts::split(int64_t at) {
  auto after = segments.upper_bound(at);
  if (after == segments.begin())
    return;
  auto before = std::prev(after);
  if (before->first == at || before->second.end <= at)
    return;
  Segment rest = before->second;
  before->second.end = at;
  segments.emplace_hint(after, at, std::move(rest));
}

/// Fills gaps between begin and end with segments that nobody has accessed.
void GraphConflicts::cover(int64_t begin, int64_t end) {
  split(begin);
  split(end);
  auto it = segments.lower_bound(begin);
  for (int64_t at = begin; at < end; at = it->second.end, ++it)
    if (it == segments.end() || it->first > at)
      it = segments.emplace_hint(
          it, at,
          Segment{it == segments.end() ? end : std::min(end, it->first),
                  /*writer=*/-1,
                  {}});
}

void GraphConflicts::read(int64_t node, const GraphAccess &access,
                          SmallVectorImpl<int64_t> &before) {
  cover(access.begin, access.end);
  for (auto it = segments.lower_bound(access.begin);
       it != segments.end() && it->first < access.end; ++it) {
    Segment &segment = it->second;
    if (segment.writer >= 0 && segment.writer != node)
      before.push_back(segment.writer);
    if (segment.readers.empty() || segment.readers.back() != node)
      segment.readers.push_back(node);
  }
}

void GraphConflicts::write(int64_t node, const GraphAccess &access,
                           SmallVectorImpl<int64_t> &before) {
  split(access.begin);
  split(access.end);
  auto first = segments.lower_bound(access.begin), it = first;
  for (; it != segments.end() && it->first < access.end; ++it) {
    const Segment &segment = it->second;
    // The readers follow the writer.
    bool isRead = false;
    for (int64_t reader : segment.readers)
      if (reader != node) {
        before.push_back(reader);
        isRead = true;
      }
    if (!isRead && segment.writer >= 0 && segment.writer != node)
      before.push_back(segment.writer);
  }
  segments.erase(first, it);
  segments[access.begin] = {access.end, node, {}};
}

SmallVector<int64_t> GraphConflicts::add(int64_t node,
                                         ArrayRef<GraphAccess> accesses) {
  SmallVector<int64_t> before;
  for (const GraphAccess &access : accesses)
    if (!access.writes)
      read(node, access, before);
  for (const GraphAccess &access : accesses)
    if (access.writes)
      write(node, access, before);
  llvm::sort(before);
  before.erase(llvm::unique(before), before.end());
  return before;
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

/// Returns a chain whose last node comes before the new one, or a new chain.
int32_t GraphPaths::chooseChain(const Clock &clock,
                                ArrayRef<int64_t> before) const {
  for (int64_t node : before)
    if (nodes[node].position + 1 == lengths[nodes[node].chain])
      return nodes[node].chain;
  for (size_t chain = 0; chain < clock.size(); ++chain)
    if (clock[chain] == lengths[chain])
      return static_cast<int32_t>(chain);
  return static_cast<int32_t>(lengths.size());
}

SmallVector<int64_t> GraphPaths::add(ArrayRef<int64_t> before) {
  SmallVector<int64_t> sorted(before), kept;
  llvm::sort(sorted, std::greater<>());
  Clock clock(lengths.size(), 0);
  // A node can only follow one with a smaller number.
  for (int64_t node : sorted) {
    if (covers(clock, node))
      continue;
    kept.push_back(node);
    const Node &other = nodes[node];
    for (size_t chain = 0; chain < other.reached.size(); ++chain)
      clock[chain] = std::max(clock[chain], other.reached[chain]);
    clock[other.chain] = std::max(clock[other.chain], other.position + 1);
  }
  int32_t chain = chooseChain(clock, kept);
  if (static_cast<size_t>(chain) == lengths.size())
    lengths.push_back(0);
  nodes.push_back({chain, lengths[chain]++, std::move(clock)});
  std::reverse(kept.begin(), kept.end());
  return kept;
}
