//===- FormKernels.cpp - Group ops into kernels and outline them ----------===//
//
// Ops of the step are nodes; a group is a set of nodes that will be one kernel.
// Groups grow along producer-consumer edges. Two groups may join when
//   - a non-empty set of loops (the domain) exists that all their ops share and
//     along which every value passed between them is written and read at the
//     same place, so that each task is self-contained;
//   - joining makes no cycle among groups;
//   - at most one contraction is in the result, and nothing comes before it.
//
//===----------------------------------------------------------------------===//

#include "LaunchLabels.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Conversion/StableHLOToLinalg/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>
#include <queue>

namespace mlir::fp8 {
#define GEN_PASS_DEF_FORMKERNELS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A joined kernel keeps at least this many domain points, unless it is small.
constexpr int64_t kMinTasks = 16;
/// Work (iterations) below which parallelism does not matter.
constexpr int64_t kSmallWork = 1 << 14;
/// Ops that a kernel without parallel loops may have: many small computations
/// that share one value (the flags of an optimizer, the scales of a recipe)
/// would become one kernel like no other, instead of one for all of them.
constexpr unsigned kMaxSmallOps = 16;
/// One op of the step: a structured op or an irregular loop nest, with the
/// fills and empties that only it uses as destinations. What controls the
/// schedule (a loop, a branch, a slice of a stack) is a node that no kernel
/// contains.
struct Node {
  Operation *op = nullptr;
  SmallVector<Operation *> attached;
  unsigned group = 0;
  bool late = false; // at or after what is computed again
};

struct Group {
  SetVector<unsigned> nodes; // in program order after sorting
  bool contraction = false;
  bool schedule = false;  // a loop, a branch, a slice: not outlined
  bool recompute = false; // computes again what is not to be kept
  bool late = false;      // has a node at or after what is computed again
  Attribute sweep;        // the sweep that it computes something again for
  /// Extents of the shared loops, and each node's loop for each of them.
  SmallVector<int64_t> domain;
  llvm::MapVector<unsigned, SmallVector<unsigned>> loops;
  int64_t work = 0;
  bool alive = true;
};

/// Is `op` work for a kernel?
bool isWork(Operation *op) {
  return isa<linalg::GenericOp>(op) || isIrregular(op);
}

bool isDestination(Operation *op) {
  return isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(op);
}

/// Operands that `op`, which is work, writes into.
MutableArrayRef<OpOperand> destinationsOf(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getInitArgsMutable();
  return cast<DestinationStyleOpInterface>(op).getDpsInitsMutable();
}

/// Does the owner of `operand`, which is work or a fill, write into it?
bool isDestination(OpOperand &operand) {
  return llvm::any_of(destinationsOf(operand.getOwner()),
                      [&](OpOperand &init) { return &init == &operand; });
}

/// Control flow of the schedule: its blocks hold kernels of their own.
bool isControlFlow(Operation *op) {
  return isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp>(op) &&
         !isIrregular(op);
}

/// The blocks whose ops become kernels: the body of `func` and, from the inside
/// out, those of its control flow.
SmallVector<Block *> scheduleBlocks(func::FuncOp func) {
  SmallVector<Block *> blocks;
  std::function<void(Block &)> collect = [&](Block &block) {
    for (Operation &op : block)
      if (isControlFlow(&op))
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            collect(inner);
    blocks.push_back(&block);
  };
  collect(func.getBody().front());
  return blocks;
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// Does an op besides `op` write a part of its result into `value`?
bool othersWriteInto(Value value, Operation *op) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    auto other = dyn_cast<linalg::GenericOp>(use.getOwner());
    return other && other != op && other.isDpsInit(&use);
  });
}

/// Gives every op its own fill or empty as destination, right in front of it.
/// The parts that two concatenations share are written twice too.
void privatizeDestinations(Operation *op) {
  OpBuilder builder(op);
  std::function<Value(Operation *)> cloneChain = [&](Operation *def) -> Value {
    Operation *copy = builder.clone(*def);
    // The buffer is called after what is written to it.
    copy->setLoc(op->getLoc());
    if (auto fill = dyn_cast<linalg::FillOp>(copy))
      if (Operation *empty = fill.getOutputs()[0].getDefiningOp();
          isa_and_nonnull<tensor::EmptyOp>(empty)) {
        Operation *emptyCopy = builder.clone(*empty);
        emptyCopy->setLoc(op->getLoc());
        fill.getOutputsMutable()[0].set(emptyCopy->getResult(0));
        fill->moveAfter(fill.getOutputs()[0].getDefiningOp());
      }
    return copy->getResult(0);
  };
  for (OpOperand &init : destinationsOf(op))
    if (Operation *def = init.get().getDefiningOp(); isDestination(def)) {
      init.set(cloneChain(def));
    } else if (auto part = init.get().getDefiningOp<linalg::GenericOp>();
               part && isa<linalg::GenericOp>(op) &&
               othersWriteInto(init.get(), op)) {
      unsigned number = cast<OpResult>(init.get()).getResultNumber();
      Operation *copy = builder.clone(*part);
      init.set(copy->getResult(number));
      privatizeDestinations(copy);
    }
}

/// Turns fills that are read as ordinary values into ops of their own, and
/// drops those that nothing uses any more.
void materializeFills(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isDestination(&op) && op.use_empty()) {
      op.erase();
      continue;
    }
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (!fill || llvm::all_of(fill->getUses(), [](OpOperand &use) {
          Operation *user = use.getOwner();
          return (isWork(user) || isDestination(user)) && isDestination(use);
        }))
      continue;
    OpBuilder builder(fill);
    auto type = cast<RankedTensorType>(fill.getResult(0).getType());
    Value scalar = fill.getInputs()[0];
    auto generic = linalg::GenericOp::create(
        builder, fill.getLoc(), TypeRange{type}, ValueRange{},
        fill.getOutputs(),
        ArrayRef<AffineMap>{builder.getMultiDimIdentityMap(type.getRank())},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [&](OpBuilder &b, Location l, ValueRange) {
          Value inside = b.clone(*scalar.getDefiningOp())->getResult(0);
          linalg::YieldOp::create(b, l, inside);
        });
    // Other fills may have the same destination.
    privatizeDestinations(generic);
    fill.replaceAllUsesWith(generic.getResults());
    fill.erase();
  }
}

/// A kernel takes tensors only: a loop counter that an op captures becomes a
/// tensor of one element.
void captureScalarsAsTensors(Operation *op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured) {
    if (isa<TensorType>(value.getType()) ||
        isa_and_nonnull<arith::ConstantOp>(value.getDefiningOp()))
      continue;
    OpBuilder builder(op);
    Type type = value.getType();
    Value stored = value;
    if (type.isIndex())
      stored = arith::IndexCastOp::create(builder, op->getLoc(),
                                          builder.getI64Type(), value);
    Value tensor = tensor::FromElementsOp::create(
        builder, op->getLoc(), RankedTensorType::get({}, stored.getType()),
        stored);
    builder.setInsertionPointToStart(&op->getRegion(0).front());
    Value inside = tensor::ExtractOp::create(builder, op->getLoc(), tensor);
    if (type.isIndex())
      inside = arith::IndexCastOp::create(builder, op->getLoc(), type, inside);
    replaceAllUsesInRegionWith(value, inside, op->getRegion(0));
  }
}

//===----------------------------------------------------------------------===//
// KernelFormer
//===----------------------------------------------------------------------===//

/// Forms the kernels of one block.
class KernelFormer {
public:
  KernelFormer(func::FuncOp func, Block &block, unsigned &numKernels)
      : func(func), block(block), numKernels(numKernels) {}

  LogicalResult run();

private:
  SmallVector<unsigned> orderGroups();
  LogicalResult collectNodes();
  void initGroup(unsigned node);
  void growGroups();
  bool tryJoin(unsigned producerGroup, unsigned consumerGroup);
  bool joinMakesCycle(unsigned a, unsigned b);
  std::optional<SmallVector<std::pair<unsigned, unsigned>>>
  sharedDomain(const Group &producer, const Group &consumer);
  StringRef stateOf(ArrayRef<Value> results);
  LogicalResult outline(unsigned group, unsigned number);
  bool isInside(Operation *user,
                const llvm::SmallPtrSetImpl<Operation *> &ops) {
    return ops.contains(block.findAncestorOpInBlock(*user));
  }

  func::FuncOp func;
  Block &block;
  unsigned &numKernels;
  SmallVector<Node> nodes;
  SmallVector<Group> groups;
  DenseMap<Operation *, unsigned> nodeOf; // also of attached ops
  SmallVector<SmallVector<unsigned>> nodePreds;
  /// Of every node, the last one in a group with it or with one before it.
  SmallVector<unsigned> lastWith;
};

LogicalResult KernelFormer::collectNodes() {
  for (Operation &op : block.without_terminator()) {
    if (isDestination(&op) || isTensorView(&op) || isa<arith::ConstantOp>(op))
      continue;
    if (!isWork(&op) && !isControlFlow(&op) &&
        !isa<tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::ExtractOp,
             tensor::FromElementsOp>(op) &&
        !isa<arith::ArithDialect>(op.getDialect()))
      return op.emitOpError("expected structured ops, reshapes, slices, "
                            "control flow and constants before kernels are "
                            "formed");
    unsigned index = nodes.size();
    Node node;
    node.op = &op;
    nodeOf[&op] = index;
    auto attach = [&](Value destination) {
      while (Operation *def = destination.getDefiningOp()) {
        if (!isDestination(def) || def->getBlock() != &block)
          return;
        node.attached.push_back(def);
        nodeOf[def] = index;
        auto fill = dyn_cast<linalg::FillOp>(def);
        if (!fill)
          return;
        destination = fill.getOutputs()[0];
      }
    };
    if (isWork(&op))
      for (OpOperand &init : destinationsOf(&op))
        attach(init.get());
    nodes.push_back(std::move(node));
  }
  // Node-level dependences, through views.
  nodePreds.resize(nodes.size());
  for (auto [index, node] : llvm::enumerate(nodes)) {
    SetVector<Value> used;
    for (Value operand : node.op->getOperands())
      used.insert(operand);
    getUsedValuesDefinedAbove(node.op->getRegions(), used);
    for (Operation *attached : node.attached)
      used.insert(attached->operand_begin(), attached->operand_end());
    llvm::SmallSetVector<unsigned, 8> preds;
    for (Value value : used) {
      Operation *def = value.getDefiningOp();
      while (def && isTensorView(def))
        def = def->getOperand(0).getDefiningOp();
      auto it = nodeOf.find(def);
      if (def && it != nodeOf.end() && it->second != index)
        preds.insert(it->second);
    }
    nodePreds[index] = preds.takeVector();
    node.late = node.op->hasAttr(kRecomputeAttr) ||
                llvm::any_of(nodePreds[index],
                             [&](unsigned pred) { return nodes[pred].late; });
  }
  return success();
}

/// Alone, an op's domain is every parallel loop that all its results are
/// indexed by exactly once.
void KernelFormer::initGroup(unsigned index) {
  Group group;
  group.nodes.insert(index);
  Operation *op = nodes[index].op;
  group.schedule = !isWork(op);
  group.recompute = op->hasAttr(kRecomputeAttr);
  group.late = nodes[index].late;
  group.sweep = op->getAttr(kSweepAttr);
  SmallVector<unsigned> loops;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    group.contraction = isDot(generic);
    group.work = iterationVolume(generic);
    SmallVector<int64_t> extents = generic.getStaticLoopRanges();
    SmallVector<utils::IteratorType> iterators =
        generic.getIteratorTypesArray();
    for (unsigned loop = 0; loop < extents.size(); ++loop) {
      // An empty loop cannot be cut into tiles.
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

/// Pairs (domain position in producer, domain position in consumer) along which
/// all values that pass between the groups are written and read alike. nullopt
/// when a value passes through a reshape, or is captured by a region.
std::optional<SmallVector<std::pair<unsigned, unsigned>>>
KernelFormer::sharedDomain(const Group &producer, const Group &consumer) {
  SmallVector<int> mapping(producer.domain.size(), -2); // -2: unseen, -1: no
  bool connected = false;
  for (unsigned consumerNode : consumer.nodes) {
    Operation *op = nodes[consumerNode].op;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    // A region that captures a value of the producer may read it anywhere.
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    auto inProducer = [&](Operation *def) {
      auto it = nodeOf.find(def);
      return def && it != nodeOf.end() && producer.nodes.contains(it->second);
    };
    for (Value value : captured)
      if (inProducer(value.getDefiningOp()))
        return std::nullopt;
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *def = operand.get().getDefiningOp();
      bool throughView = false;
      while (def && isTensorView(def)) {
        throughView = true;
        def = def->getOperand(0).getDefiningOp();
      }
      if (!inProducer(def))
        continue;
      if (throughView || !generic)
        return std::nullopt;
      auto writer = dyn_cast<linalg::GenericOp>(def);
      if (!writer)
        return std::nullopt;
      connected = true;
      AffineMap write =
          writer.getIndexingMapMatchingResult(cast<OpResult>(operand.get()));
      AffineMap read = generic.getMatchingIndexingMap(&operand);
      SmallVector<unsigned> writeLoops = producer.loops.lookup(nodeOf[def]);
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
  }
  if (!connected)
    return std::nullopt;
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  llvm::SmallDenseSet<int> taken;
  for (auto [i, j] : llvm::enumerate(mapping))
    if (j >= 0 && taken.insert(j).second)
      pairs.push_back({static_cast<unsigned>(i), static_cast<unsigned>(j)});
  return pairs;
}

/// Is there a path from group a to group b (or back) through a third group?
bool KernelFormer::joinMakesCycle(unsigned a, unsigned b) {
  // Walk backwards from both; reaching one of them again through another group
  // is a cycle. Program order bounds the walk: a node before the first node of
  // the pair cannot depend on it, unless it or another node before it is in one
  // group with a later one.
  unsigned first = std::min(*llvm::min_element(groups[a].nodes),
                            *llvm::min_element(groups[b].nodes));
  SmallVector<unsigned> stack;
  llvm::SmallDenseSet<unsigned> seen;
  auto inPair = [&](unsigned group) { return group == a || group == b; };
  auto push = [&](unsigned node) {
    unsigned group = nodes[node].group;
    if (!inPair(group) && seen.insert(group).second)
      stack.push_back(group);
  };
  for (unsigned group : {a, b})
    for (unsigned node : groups[group].nodes)
      for (unsigned pred : nodePreds[node])
        push(pred);
  while (!stack.empty()) {
    unsigned group = stack.pop_back_val();
    for (unsigned node : groups[group].nodes) {
      if (lastWith[node] < first)
        continue;
      for (unsigned pred : nodePreds[node]) {
        if (inPair(nodes[pred].group))
          return true;
        push(pred);
      }
    }
  }
  return false;
}

bool KernelFormer::tryJoin(unsigned producerIndex, unsigned consumerIndex) {
  Group &producer = groups[producerIndex];
  Group &consumer = groups[consumerIndex];
  // What a contraction reads is complete before it starts.
  if (consumer.contraction || producer.schedule || consumer.schedule)
    return false;
  // Computed again beside what it was first computed from, it would have to be
  // kept from there on.
  if (consumer.recompute && !producer.late)
    return false;
  // A sweep begins with what it computes again.
  if (consumer.sweep && consumer.sweep != producer.sweep)
    return false;
  auto pairs = sharedDomain(producer, consumer);
  if (!pairs)
    return false;
  auto volume = [](ArrayRef<int64_t> extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t(1),
                           std::multiplies<>());
  };
  SmallVector<int64_t> domain;
  for (auto [i, j] : *pairs)
    domain.push_back(producer.domain[i]);
  int64_t kept = volume(domain);
  int64_t before = std::max(volume(producer.domain), volume(consumer.domain));
  bool small = producer.work + consumer.work <= kSmallWork;
  if (!small && kept < std::min(kMinTasks, before))
    return false;
  if (domain.empty() &&
      producer.nodes.size() + consumer.nodes.size() > kMaxSmallOps)
    return false;
  // A contraction keeps a row loop that is long enough to share a panel over.
  if (producer.contraction && domain.empty())
    return false;
  if (joinMakesCycle(producerIndex, consumerIndex))
    return false;

  for (unsigned node : producer.nodes) {
    SmallVector<unsigned> kept;
    for (auto [i, j] : *pairs)
      kept.push_back(producer.loops[node][i]);
    producer.loops[node] = kept;
  }
  for (unsigned node : consumer.nodes) {
    SmallVector<unsigned> kept;
    for (auto [i, j] : *pairs)
      kept.push_back(consumer.loops[node][j]);
    producer.loops[node] = kept;
    producer.nodes.insert(node);
    nodes[node].group = producerIndex;
  }
  unsigned last = *llvm::max_element(producer.nodes);
  for (unsigned node = *llvm::min_element(producer.nodes);
       node < nodes.size() && lastWith[node] < last; ++node)
    lastWith[node] = last;
  producer.domain = domain;
  producer.work += consumer.work;
  producer.recompute |= consumer.recompute;
  producer.late |= consumer.late;
  consumer = Group();
  consumer.alive = false;
  return true;
}

void KernelFormer::growGroups() {
  for (unsigned index = 0; index < nodes.size(); ++index) {
    initGroup(index);
    lastWith.push_back(index);
  }
  for (unsigned index = 0; index < nodes.size(); ++index) {
    // Latest producer first: its data is the warmest.
    SmallVector<unsigned> preds = nodePreds[index];
    llvm::sort(preds, std::greater<>());
    for (unsigned pred : preds) {
      unsigned from = nodes[pred].group, to = nodes[index].group;
      if (from != to)
        tryJoin(from, to);
    }
  }
  // Kernels are the same as those that computed it first.
  for (Node &node : nodes) {
    node.op->removeAttr(kRecomputeAttr);
    node.op->removeAttr(kKeptAttr);
    node.op->removeAttr(kSweepAttr);
  }
}

/// The path of the state that one of `results` is the new value of: of a
/// parameter, if one is among them.
StringRef KernelFormer::stateOf(ArrayRef<Value> results) {
  StringRef found;
  for (Value result : results)
    for (OpOperand &use : result.getUses()) {
      if (!isa<func::ReturnOp>(use.getOwner()))
        continue;
      auto path = func.getResultAttrOfType<StringAttr>(use.getOperandNumber(),
                                                       kStateAttr);
      if (!path)
        continue;
      if (found.empty())
        found = path.getValue();
      BlockArgument arg = findArgument(func, path.getValue());
      auto kind =
          arg ? func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kKindAttr)
              : StringAttr();
      if (kind && symbolizeStateKind(kind.getValue()) == StateKind::Parameter)
        return path.getValue();
    }
  return found;
}

LogicalResult KernelFormer::outline(unsigned groupIndex, unsigned number) {
  Group &group = groups[groupIndex];
  SmallVector<unsigned> order(group.nodes.begin(), group.nodes.end());
  llvm::sort(order);
  llvm::SmallPtrSet<Operation *, 16> inside;
  SmallVector<Operation *> ops;
  for (unsigned node : order) {
    for (Operation *attached : llvm::reverse(nodes[node].attached)) {
      inside.insert(attached);
      ops.push_back(attached);
    }
    inside.insert(nodes[node].op);
    ops.push_back(nodes[node].op);
  }

  // Escaping results, and the destination each is written to.
  SmallVector<Value> results;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !isInside(user, inside);
          }))
        results.push_back(result);
  // The start of the chain of in-place updates that ends in `value`.
  auto destinationOf = [&](Value value) {
    while (Operation *def = value.getDefiningOp()) {
      if (!inside.contains(def) || isa<tensor::EmptyOp>(def))
        break;
      auto result = cast<OpResult>(value);
      if (auto loop = dyn_cast<scf::ForOp>(def))
        value = loop.getInitArgs()[result.getResultNumber()];
      else
        value = cast<DestinationStyleOpInterface>(def)
                    .getTiedOpOperand(result)
                    ->get();
    }
    return value;
  };
  // So do parts of what another kernel began to write: bufferization takes the
  // rest for overwritten, and what is used here alone for memory of its own.
  for (Operation *op : ops) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      Value result = generic.getTiedOpResult(&init);
      bool isWrittenOn = llvm::any_of(result.getUses(), [](OpOperand &use) {
        auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
        return user && user.isDpsInit(&use);
      });
      if (!isWrittenOn && !generic.payloadUsesValueFromOperand(&init) &&
          destinationOf(result).getDefiningOp<LaunchOp>() &&
          !llvm::is_contained(results, result))
        results.push_back(result);
    }
  }
  SmallVector<Value> destinations;
  for (Value result : results)
    destinations.push_back(destinationOf(result));

  // Inputs: all that is used and not made inside. Scalar constants are cloned.
  SetVector<Value> inputs;
  SmallVector<Operation *> constants;
  llvm::SmallPtrSet<Operation *, 8> constantSet;
  auto addInput = [&](Value value) {
    Operation *def = value.getDefiningOp();
    if (def && inside.contains(def))
      return;
    if (auto constant = dyn_cast_or_null<arith::ConstantOp>(def);
        constant && !isa<TensorType>(value.getType())) {
      if (constantSet.insert(def).second)
        constants.push_back(def);
      return;
    }
    inputs.insert(value);
  };
  // A value that is updated and read too (an array scattered into itself) is
  // both an input and a destination.
  auto isUpdate = [&](OpOperand &operand) {
    return llvm::is_contained(destinations, operand.get()) &&
           isDestination(operand);
  };
  for (Operation *op : ops) {
    for (OpOperand &operand : op->getOpOperands())
      if (!isUpdate(operand))
        addInput(operand.get());
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      addInput(value);
  }

  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(func->getBlock());
  SmallVector<Value> operands(inputs.begin(), inputs.end());
  operands.append(destinations.begin(), destinations.end());
  SmallVector<Type> resultTypes;
  for (Value result : results)
    resultTypes.push_back(result.getType());
  Location loc = ops.back()->getLoc();
  SmallVector<Access> accesses(inputs.size(), Access::Read);
  accesses.append(destinations.size(), Access::Update);
  auto kernel = KernelOp::create(
      builder, loc, "kernel_" + std::to_string(number),
      builder.getFunctionType(ValueRange(operands).getTypes(), resultTypes),
      accesses, group.domain);

  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  ArrayRef<BlockArgument> arguments = body->getArguments();
  mapping.map(destinations, arguments.drop_front(inputs.size()));
  // Reads win; updates are redirected below.
  mapping.map(inputs.getArrayRef(), arguments.take_front(inputs.size()));
  for (Operation *constant : constants)
    builder.clone(*constant, mapping);
  for (unsigned node : order) {
    for (Operation *attached : llvm::reverse(nodes[node].attached))
      if (!mapping.contains(attached->getResult(0)))
        builder.clone(*attached, mapping);
    Operation *copy = builder.clone(*nodes[node].op, mapping);
    for (OpOperand &operand : nodes[node].op->getOpOperands())
      if (inputs.contains(operand.get()) && isUpdate(operand)) {
        auto place = llvm::find(destinations, operand.get());
        copy->setOperand(
            operand.getOperandNumber(),
            arguments[inputs.size() + (place - destinations.begin())]);
      }
    SmallVector<int64_t> loops(group.loops[node].begin(),
                               group.loops[node].end());
    copy->setAttr(kTaskDimsAttr, builder.getDenseI64ArrayAttr(loops));
  }
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(mapping.lookup(result));
  ReturnOp::create(builder, loc, returned);
  for (BlockArgument argument : arguments.drop_front(inputs.size()))
    if (accessOf(argument) == Access::Write)
      kernel.setAccess(argument.getArgNumber(), Access::Write);

  // The call takes the place of the last op.
  builder.setInsertionPoint(ops.back());
  for (Value destination : destinations)
    if (Operation *def = destination.getDefiningOp();
        def && inside.contains(def))
      def->moveBefore(ops.back());
  builder.setInsertionPoint(ops.back());
  auto call =
      LaunchOp::create(builder, loc, kernel, operands,
                       builder.getStringAttr(labelOf(ops, stateOf(results))));
  for (auto [result, value] : llvm::zip(results, call.getResults()))
    result.replaceUsesWithIf(value, [&](OpOperand &use) {
      return !isInside(use.getOwner(), inside);
    });
  // Reshapes of what the kernel returns follow the call.
  Operation *last = call;
  std::function<void(Value)> moveViews = [&](Value value) {
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      if (!isTensorView(user) || user->getBlock() != &block)
        continue;
      user->moveAfter(last);
      last = user;
      moveViews(user->getResult(0));
    }
  };
  for (Value value : call.getResults())
    moveViews(value);
  for (Operation *op : llvm::reverse(ops))
    if (!llvm::is_contained(destinations, op->getNumResults() == 1
                                              ? op->getResult(0)
                                              : Value()))
      op->erase();
  return success();
}

/// Groups in an order in which each call comes after those it depends on: of
/// those that are ready the one that the program begins first. What is read
/// soon is made late that way, and buffers live short.
SmallVector<unsigned> KernelFormer::orderGroups() {
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

LogicalResult KernelFormer::run() {
  if (failed(collectNodes()))
    return failure();
  growGroups();
  SmallVector<unsigned> order = orderGroups();
  // Nodes move into that order first, with the views after what they read.
  Operation *terminator = block.getTerminator();
  SmallVector<Operation *> views;
  for (Operation &op : block)
    if (isTensorView(&op))
      views.push_back(&op);
  for (unsigned group : order) {
    SmallVector<unsigned> members(groups[group].nodes.begin(),
                                  groups[group].nodes.end());
    llvm::sort(members);
    for (unsigned node : members) {
      for (Operation *attached : llvm::reverse(nodes[node].attached))
        attached->moveBefore(terminator);
      nodes[node].op->moveBefore(terminator);
    }
  }
  for (Operation *view : views) {
    Operation *def = view->getOperand(0).getDefiningOp();
    if (def && def->getBlock() == &block)
      view->moveAfter(def);
    else
      view->moveBefore(&block, block.begin());
  }
  for (unsigned group : order)
    if (!groups[group].schedule && failed(outline(group, numKernels++)))
      return failure();
  return success();
}

class FormKernels : public fp8::impl::FormKernelsBase<FormKernels> {
public:
  void runOnOperation() override {
    numKernels = 0;
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!func.isDeclaration() && failed(form(func)))
        return signalPassFailure();
  }

private:
  LogicalResult form(func::FuncOp func) {
    SmallVector<Block *> blocks = scheduleBlocks(func);
    for (Block *scope : blocks)
      for (Operation &op : llvm::make_early_inc_range(*scope))
        if (isWork(&op)) {
          privatizeDestinations(&op);
          captureScalarsAsTensors(&op);
        }
    // Inner blocks first: what an outer fill is used for is known then.
    for (Block *block : blocks)
      materializeFills(*block);
    for (Block *block : blocks)
      if (failed(KernelFormer(func, *block, numKernels).run()))
        return failure();
    return success();
  }

  unsigned numKernels = 0;
};

} // namespace
