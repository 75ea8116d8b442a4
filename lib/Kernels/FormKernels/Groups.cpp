//===- Groups.cpp - Ops of a block that will be one kernel ----------------===//

#include "Groups.h"

#include "Work.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include <queue>

using namespace mlir;
using namespace mlir::fp8;

/// A joined kernel keeps at least this many domain points, unless it is small.
static constexpr int64_t kMinTasks = 16;
/// The most rows or columns of a dot that a block of a GPU has, the most
/// elements that it keeps of another value, and its most iterations.
static constexpr int64_t kMostOfDot = 128, kMostKept = 1 << 14,
                         kMostBlockWork = 1 << 17;
/// Work (iterations) below which parallelism does not matter.
static constexpr int64_t kSmallWork = 1 << 14;
/// How many times as many elements a group has as another one, which would take
/// a part of its tasks, has iterations.
static constexpr int64_t kMuchMore = 16;
/// The most ops in a kernel without parallel loops. Without this limit, many
/// small computations that share one value (the flags of an optimizer, the
/// scales of a recipe) would become one unique kernel instead of launches of
/// one kernel that they share.
static constexpr unsigned kMaxSmallOps = 16;

namespace {

/// A walk over groups, breadth first, one edge after another: a group may have
/// thousands of edges.
class GroupWalk {
public:
  GroupWalk(unsigned begin, ArrayRef<SmallVector<unsigned>> neighbors,
            MutableArrayRef<unsigned> reached)
      : neighbors(neighbors), queue{begin}, reached(reached) {}

  /// Goes to the next edge; returns false after the last one.
  bool next(ArrayRef<KernelGroup> groups) {
    for (; position < queue.size(); ++position, node = 0) {
      const SetVector<unsigned> &nodes = groups[queue[position]].nodes;
      for (; node < nodes.size(); ++node, edge = 0)
        if (edge < neighbors[nodes[node]].size()) {
          target = neighbors[nodes[node]][edge++];
          return true;
        }
    }
    return false;
  }
  /// The group at which the edge begins, and the node at which it ends.
  unsigned getSource() const { return queue[position]; }
  unsigned getTarget() const { return target; }

  /// Appends a group unless the walk has reached it before.
  bool reach(unsigned group, unsigned walk) {
    if (std::exchange(reached[group], walk) == walk)
      return false;
    queue.push_back(group);
    return true;
  }
  /// The groups that were reached.
  ArrayRef<unsigned> getReached() const { return ArrayRef(queue).drop_front(); }

private:
  /// Those of each node, in the direction of the walk.
  ArrayRef<SmallVector<unsigned>> neighbors;
  SmallVector<unsigned> queue;
  /// In the queue, in the nodes of its group, and in the node's neighbors.
  size_t position = 0, node = 0, edge = 0;
  unsigned target = 0;
  MutableArrayRef<unsigned> reached;
};

} // namespace

/// Returns the op that defines `value`, behind reshapes.
static Operation *definitionOf(Value value) {
  Operation *def = value.getDefiningOp();
  while (def && isTensorView(def))
    def = def->getOperand(0).getDefiningOp();
  return def;
}

/// Returns true if `op`, which is not work, may stay in the schedule.
static bool mayStay(Operation *op) {
  return isControlFlow(op) ||
         isa<LaunchOp, AllReduceOp, ExchangeOp, RankOp, tensor::ExtractSliceOp,
             tensor::InsertSliceOp, tensor::ExtractOp, tensor::FromElementsOp>(
             op) ||
         isa<arith::ArithDialect>(op->getDialect());
}

SmallVector<unsigned> KernelGroups::membersOf(unsigned group) const {
  const SetVector<unsigned> &members = groups[group].nodes;
  SmallVector<unsigned> order(members.begin(), members.end());
  llvm::sort(order);
  for (auto it = order.begin(); it != order.end(); ++it)
    std::rotate(placeBySources(order.begin(), it), it, std::next(it));
  return order;
}

/// Returns whether a node computes each element from those at the same indices,
/// into results that only other groups read.
bool KernelGroups::isElementwiseEnd(unsigned node) const {
  auto generic = dyn_cast<linalg::GenericOp>(nodes[node].op);
  return generic && allParallel(generic) &&
         llvm::all_of(generic.getOutputs(),
                      [](Value init) {
                        return init.getDefiningOp<tensor::EmptyOp>();
                      }) &&
         llvm::none_of(nodeSuccs[node], [&](unsigned reader) {
           return nodes[reader].group == nodes[node].group;
         });
}

/// Returns whether two nodes of a group are elementwise ops that run over the
/// same loops.
bool KernelGroups::shareNest(unsigned first, unsigned second) const {
  auto a = dyn_cast<linalg::GenericOp>(nodes[first].op);
  auto b = dyn_cast<linalg::GenericOp>(nodes[second].op);
  const auto &loops = groups[nodes[first].group].loops;
  return a && b && allParallel(a) && allParallel(b) &&
         a.getStaticLoopRanges() == b.getStaticLoopRanges() &&
         loops.lookup(first) == loops.lookup(second);
}

/// Returns where in its group, in order from `begin`, the node at `it` belongs:
/// a result of the kernel is computed right after what it reads if they can
/// share a nest, so that no other op stands between them and the values stay in
/// registers. (The moments of an optimizer are one nest, the maximum of one of
/// them is the next, and the payload of the other one needs no maximum.)
unsigned *KernelGroups::placeBySources(unsigned *begin, unsigned *it) const {
  if (!isElementwiseEnd(*it))
    return it;
  unsigned *place = it;
  while (place != begin && !llvm::is_contained(nodePreds[*it], place[-1]))
    --place;
  if (place == begin || !shareNest(place[-1], *it))
    return it;
  while (place != it && shareNest(*place, *it))
    ++place;
  return place;
}

/// Attaches to a node the fills and empties that it writes into.
void KernelGroups::attachDestinations(unsigned index) {
  for (OpOperand &init : destinationsOf(nodes[index].op)) {
    Value destination = init.get();
    while (Operation *def = destination.getDefiningOp()) {
      if (!isDestination(def) || def->getBlock() != &block)
        break;
      nodes[index].attached.push_back(def);
      nodeOf[def] = index;
      auto fill = dyn_cast<linalg::FillOp>(def);
      if (!fill)
        break;
      destination = fill.getOutputs()[0];
    }
  }
}

/// Finds dependences between nodes, through views.
void KernelGroups::findDependences(unsigned index) {
  KernelNode &node = nodes[index];
  llvm::SmallSetVector<unsigned, 8> preds;
  auto nodeThatDefines = [&](Operation *def) -> std::optional<unsigned> {
    auto it = nodeOf.find(def);
    if (!def || it == nodeOf.end() || it->second == index)
      return std::nullopt;
    return it->second;
  };
  for (OpOperand &operand : node.op->getOpOperands())
    if (auto pred = nodeThatDefines(definitionOf(operand.get()))) {
      preds.insert(*pred);
      node.reads.push_back({*pred, &operand});
    }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(node.op->getRegions(), captured);
  for (Value value : captured)
    if (auto pred = nodeThatDefines(definitionOf(value))) {
      preds.insert(*pred);
      node.reads.push_back({*pred});
    }
  for (Operation *attached : node.attached)
    for (Value operand : attached->getOperands())
      if (auto pred = nodeThatDefines(definitionOf(operand)))
        preds.insert(*pred);
  nodePreds[index] = preds.takeVector();
  for (unsigned pred : nodePreds[index])
    nodeSuccs[pred].push_back(index);
  node.afterRecompute = node.op->hasAttr(FP8Dialect::kRecomputeAttrName) ||
                        llvm::any_of(nodePreds[index], [&](unsigned pred) {
                          return nodes[pred].afterRecompute;
                        });
}

LogicalResult KernelGroups::collectNodes() {
  for (Operation &op : block.without_terminator()) {
    if (isDestination(&op) || isTensorView(&op) || isa<arith::ConstantOp>(op))
      continue;
    if (!isWork(&op) && !mayStay(&op))
      return emitError(locationForError(&op))
             << "'" << op.getName()
             << "' op expected structured ops, reshapes, slices, control flow "
                "and constants before kernels are formed";
    unsigned index = nodes.size();
    nodeOf[&op] = index;
    nodes.emplace_back().op = &op;
    if (isWork(&op))
      attachDestinations(index);
  }
  nodePreds.resize(nodes.size());
  nodeSuccs.resize(nodes.size());
  for (unsigned index = 0; index < nodes.size(); ++index)
    findDependences(index);
  return success();
}

/// Makes a group of one node. Its domain is every parallel loop that indexes
/// each of the op's results exactly once.
void KernelGroups::initGroup(unsigned index) {
  KernelGroup group;
  group.nodes.insert(index);
  Operation *op = nodes[index].op;
  group.schedule = !isWork(op);
  group.recompute = op->hasAttr(FP8Dialect::kRecomputeAttrName);
  group.afterRecompute = nodes[index].afterRecompute;
  group.sweep = op->getAttr(FP8Dialect::kSweepAttrName);
  group.shard = op->getAttrOfType<IntegerAttr>(FP8Dialect::kShardAttrName);
  SmallVector<unsigned> loops;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    group.contraction = isDot(generic);
    group.work = iterationVolume(generic);
    for (Type type : generic->getResultTypes())
      group.elements = std::max(group.elements,
                                cast<RankedTensorType>(type).getNumElements());
    SmallVector<int64_t> extents = generic.getStaticLoopRanges();
    SmallVector<utils::IteratorType> iterators =
        generic.getIteratorTypesArray();
    for (unsigned loop = 0; loop < extents.size(); ++loop) {
      // An empty loop cannot be tiled.
      if (iterators[loop] != utils::IteratorType::parallel ||
          extents[loop] == 0)
        continue;
      bool plain =
          llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
            return plainPosition(generic.getMatchingIndexingMap(&init), loop)
                .has_value();
          });
      if (!plain)
        continue;
      loops.push_back(loop);
      group.domain.push_back(extents[loop]);
    }
  }
  group.loops[index] = loops;
  nodes[index].group = groups.size();
  groups.push_back(std::move(group));
}

/// Finds, for each domain position of the producer, the consumer's position
/// along which `operand` is read at the index at which it is written. `mapping`
/// holds -2 for a position that has not been seen, -1 for no match.
void KernelGroups::matchLoops(const KernelGroup &producer,
                              const KernelGroup &consumer, OpOperand &operand,
                              unsigned consumerNode,
                              MutableArrayRef<int> mapping) {
  auto writer = operand.get().getDefiningOp<linalg::GenericOp>();
  auto reader = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap write =
      writer.getIndexingMapMatchingResult(cast<OpResult>(operand.get()));
  AffineMap read = reader.getMatchingIndexingMap(&operand);
  SmallVector<unsigned> writeLoops =
      producer.loops.lookup(nodeOf.lookup(writer));
  SmallVector<unsigned> readLoops = consumer.loops.lookup(consumerNode);
  for (unsigned i = 0; i < mapping.size(); ++i) {
    int found = -1;
    if (auto position = plainPosition(write, writeLoops[i]))
      if (auto dim = dyn_cast<AffineDimExpr>(read.getResult(*position)))
        if (plainPosition(read, dim.getPosition()))
          for (unsigned j = 0; j < readLoops.size(); ++j)
            if (readLoops[j] == dim.getPosition() &&
                consumer.domain[j] == producer.domain[i])
              found = j;
    mapping[i] = mapping[i] == -2 || mapping[i] == found ? found : -1;
  }
}

/// Returns pairs (domain position in producer, domain position in consumer)
/// along which all values that pass between the groups are read at the index at
/// which they are written. Returns nullopt if a value passes through a reshape
/// or is captured by a region.
std::optional<KernelGroups::DomainPairs>
KernelGroups::sharedDomain(unsigned producerGroup, unsigned consumerGroup) {
  const KernelGroup &producer = groups[producerGroup];
  const KernelGroup &consumer = groups[consumerGroup];
  SmallVector<int> mapping(producer.domain.size(), -2);
  bool connected = false;
  for (unsigned consumerNode : consumer.nodes) {
    Operation *op = nodes[consumerNode].op;
    for (const KernelNode::Read &read : nodes[consumerNode].reads) {
      if (nodes[read.node].group != producerGroup)
        continue;
      // A region that captures a value of the producer may read it anywhere.
      if (!read.operand)
        return std::nullopt;
      Operation *def = definitionOf(read.operand->get());
      bool throughView = def != read.operand->get().getDefiningOp();
      if (throughView || !isa<linalg::GenericOp>(op) ||
          !isa<linalg::GenericOp>(def))
        return std::nullopt;
      connected = true;
      matchLoops(producer, consumer, *read.operand, consumerNode, mapping);
    }
  }
  if (!connected)
    return std::nullopt;
  DomainPairs pairs;
  llvm::SmallDenseSet<int> taken;
  for (auto [i, j] : llvm::enumerate(mapping))
    if (j >= 0 && taken.insert(j).second)
      pairs.push_back({static_cast<unsigned>(i), static_cast<unsigned>(j)});
  return pairs;
}

/// Gives a producer and its consumer places in the order that are next to each
/// other. Fails if there is a path from one to the other through a third group.
/// (There is no path back: the groups have no cycle.) Two walks through the
/// groups that lie between them, on from the producer and back from the
/// consumer, take turns until they meet or one of them ends: thousands of
/// updates follow from the norm of all gradients, which follows from most of
/// the step.
LogicalResult KernelGroups::makeNeighbors(unsigned producer,
                                          unsigned consumer) {
  ++walk;
  GroupWalk on(producer, nodeSuccs, reachedOn),
      back(consumer, nodePreds, reachedBack);
  // Goes along one edge; returns true if it completes a path.
  auto step = [&](GroupWalk &from, unsigned begin, unsigned end,
                  ArrayRef<unsigned> reachedByOther) {
    unsigned group = nodes[from.getTarget()].group;
    if (group == end)
      return from.getSource() != begin;
    return groupOrder.isBefore(producer, group) &&
           groupOrder.isBefore(group, consumer) && from.reach(group, walk) &&
           reachedByOther[group] == walk;
  };
  while (true) {
    // What follows from the producer may come after the consumer.
    if (!on.next(groups)) {
      groupOrder.moveAfter(SmallVector<unsigned>(on.getReached()), consumer);
      groupOrder.moveBefore({producer}, consumer);
      return success();
    }
    // What the consumer needs may come before the producer.
    if (!back.next(groups)) {
      groupOrder.moveBefore(SmallVector<unsigned>(back.getReached()), producer);
      groupOrder.moveAfter({consumer}, producer);
      return success();
    }
    if (step(on, producer, consumer, reachedBack) ||
        step(back, consumer, producer, reachedOn))
      return failure();
  }
}

/// Returns a node of a group that has the most elements, and the map of these.
std::optional<std::pair<unsigned, AffineMap>>
KernelGroups::findLargest(const KernelGroup &group) const {
  for (unsigned node : group.nodes) {
    auto generic = dyn_cast<linalg::GenericOp>(nodes[node].op);
    if (generic && cast<RankedTensorType>(generic->getResult(0).getType())
                           .getNumElements() == group.elements)
      return std::pair(
          node, generic.getIndexingMapMatchingResult(generic->getOpResult(0)));
  }
  return std::nullopt;
}

/// Returns into how many parts the `kept` loops of its domain divide a group,
/// of which none is less than a line of the cache along the last dimension of
/// its largest result: parts of columns would read every line several times.
int64_t KernelGroups::countLines(const KernelGroup &group,
                                 ArrayRef<unsigned> kept) const {
  int64_t parts = 1;
  for (unsigned position : kept)
    parts *= group.domain[position];
  auto largest = findLargest(group);
  if (!largest || largest->second.getNumResults() == 0)
    return parts;
  auto last = dyn_cast<AffineDimExpr>(largest->second.getResults().back());
  for (unsigned position : kept)
    if (last &&
        group.loops.lookup(largest->first)[position] == last.getPosition())
      return parts / group.domain[position] *
             llvm::divideCeil(group.domain[position], kLineElements);
  return parts;
}

/// Returns whether the `kept` loops of its domain divide the largest result of
/// a group into columns: another loop of the domain is outside of one of them.
bool KernelGroups::areColumns(const KernelGroup &group,
                              ArrayRef<unsigned> kept) const {
  auto largest = findLargest(group);
  if (!largest)
    return false;
  unsigned lastKept = 0, firstLost = ~0u;
  for (auto [position, loop] :
       llvm::enumerate(group.loops.lookup(largest->first))) {
    unsigned place = plainPosition(largest->second, loop).value_or(0);
    if (llvm::is_contained(kept, position))
      lastKept = std::max(lastKept, place);
    else
      firstLost = std::min(firstLost, place);
  }
  return firstLost < lastKept;
}

/// Returns true if two groups should become one kernel with the common loops
/// `pairs`.
bool KernelGroups::isWorthJoining(const KernelGroup &producer,
                                  const KernelGroup &consumer,
                                  const DomainPairs &pairs) {
  auto volume = [](ArrayRef<int64_t> extents) {
    return llvm::product_of(extents);
  };
  SmallVector<int64_t> domain;
  SmallVector<unsigned> ofProducer, ofConsumer;
  for (auto [i, j] : pairs) {
    domain.push_back(producer.domain[i]);
    ofProducer.push_back(i);
    ofConsumer.push_back(j);
  }
  int64_t before = std::max(volume(producer.domain), volume(consumer.domain));
  bool small = producer.work + consumer.work <= kSmallWork;
  if (!small && volume(domain) < std::min(kMinTasks, before))
    return false;
  auto losesLines = [&](const KernelGroup &group, ArrayRef<unsigned> kept) {
    return kept.size() < group.domain.size() &&
           countLines(group, kept) <
               std::min(kColumnLines, volume(group.domain));
  };
  if (!small && !forBlocks &&
      (losesLines(producer, ofProducer) || losesLines(consumer, ofConsumer)))
    return false;
  int64_t most = producer.contraction ? kMostOfDot : kMostKept;
  if (!small && forBlocks &&
      (before > most * volume(domain) ||
       (!producer.contraction &&
        producer.work + consumer.work > kMostBlockWork * volume(domain))))
    return false;
  // The sum of partials would take the tasks of what they are partials of.
  if (!small && domain.size() < producer.domain.size() &&
      consumer.work * kMuchMore <= producer.elements)
    return false;
  // A bias or a scale would make columns of what it is added to.
  if (!small && !forBlocks && producer.work * kMuchMore <= consumer.elements &&
      areColumns(consumer, ofConsumer))
    return false;
  if (!domain.empty())
    return true;
  // A contraction keeps a row loop, over which tasks share a packed panel.
  return !producer.contraction &&
         producer.nodes.size() + consumer.nodes.size() <= kMaxSmallOps;
}

/// Moves the nodes of the consumer into the producer.
void KernelGroups::join(unsigned producerIndex, unsigned consumerIndex,
                        const DomainPairs &pairs) {
  KernelGroup &producer = groups[producerIndex];
  KernelGroup &consumer = groups[consumerIndex];
  SmallVector<int64_t> domain;
  for (auto [i, j] : pairs)
    domain.push_back(producer.domain[i]);
  for (unsigned node : producer.nodes) {
    SmallVector<unsigned> kept;
    for (auto [i, j] : pairs)
      kept.push_back(producer.loops[node][i]);
    producer.loops[node] = kept;
  }
  for (unsigned node : consumer.nodes) {
    SmallVector<unsigned> kept;
    for (auto [i, j] : pairs)
      kept.push_back(consumer.loops[node][j]);
    producer.loops[node] = kept;
    producer.nodes.insert(node);
    nodes[node].group = producerIndex;
  }
  producer.domain = domain;
  producer.work += consumer.work;
  producer.elements = std::max(producer.elements, consumer.elements);
  producer.recompute |= consumer.recompute;
  producer.afterRecompute |= consumer.afterRecompute;
  consumer = KernelGroup();
}

/// Joins two groups if that is legal and worth it.
void KernelGroups::tryJoin(unsigned producerIndex, unsigned consumerIndex) {
  const KernelGroup &producer = groups[producerIndex];
  const KernelGroup &consumer = groups[consumerIndex];
  // The operands of a contraction must be complete before it starts.
  if (consumer.contraction || producer.schedule || consumer.schedule)
    return;
  // A kernel is run either by all ranks or by the owner of one shard.
  if (producer.shard != consumer.shard)
    return;
  // A recomputed value next to the original computation would have to be kept
  // from there on.
  if (consumer.recompute && !producer.afterRecompute)
    return;
  // A sweep begins with the ops that it recomputes.
  if (consumer.sweep && consumer.sweep != producer.sweep)
    return;
  std::optional<DomainPairs> pairs = sharedDomain(producerIndex, consumerIndex);
  if (pairs && isWorthJoining(producer, consumer, *pairs) &&
      succeeded(makeNeighbors(producerIndex, consumerIndex)))
    join(producerIndex, consumerIndex, *pairs);
}

void KernelGroups::grow() {
  for (unsigned index = 0; index < nodes.size(); ++index)
    initGroup(index);
  reachedOn.resize(groups.size());
  reachedBack.resize(groups.size());
  groupOrder = GroupOrder(order());
  for (unsigned index = 0; index < nodes.size(); ++index) {
    // Latest producer first: its data is most likely still in the caches.
    SmallVector<unsigned> preds = nodePreds[index];
    llvm::sort(preds, std::greater<>());
    for (unsigned pred : preds) {
      unsigned from = nodes[pred].group, to = nodes[index].group;
      if (from != to)
        tryJoin(from, to);
    }
  }
}

LogicalResult KernelGroups::form() {
  if (failed(collectNodes()))
    return failure();
  grow();
  // Without these attributes, recomputing kernels equal the original ones.
  for (KernelNode &node : nodes) {
    node.op->removeAttr(FP8Dialect::kRecomputeAttrName);
    node.op->removeAttr(FP8Dialect::kKeptAttrName);
    node.op->removeAttr(FP8Dialect::kSweepAttrName);
    node.op->removeAttr(FP8Dialect::kShardAttrName);
  }
  return success();
}

SmallVector<unsigned> KernelGroups::order() const {
  SmallVector<llvm::SmallDenseSet<unsigned>> preds(groups.size());
  SmallVector<SmallVector<unsigned>> succs(groups.size());
  SmallVector<unsigned> first(groups.size(), nodes.size());
  for (unsigned node = 0; node < nodes.size(); ++node) {
    unsigned group = nodes[node].group;
    first[group] = std::min(first[group], node);
    for (unsigned pred : nodePreds[node]) {
      unsigned before = nodes[pred].group;
      if (before != group && preds[group].insert(before).second)
        succs[before].push_back(group);
    }
  }
  std::priority_queue<std::pair<unsigned, unsigned>,
                      std::vector<std::pair<unsigned, unsigned>>,
                      std::greater<>>
      ready;
  SmallVector<unsigned> missing(groups.size());
  for (unsigned group = 0; group < groups.size(); ++group) {
    missing[group] = preds[group].size();
    if (first[group] < nodes.size() && missing[group] == 0)
      ready.push({first[group], group});
  }
  SmallVector<unsigned> order;
  while (!ready.empty()) {
    unsigned group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (unsigned next : succs[group])
      if (--missing[next] == 0)
        ready.push({first[next], next});
  }
  return order;
}
