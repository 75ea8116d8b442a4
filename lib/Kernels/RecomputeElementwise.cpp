//===- RecomputeElementwise.cpp - Recomputation instead of storing --------===//
//
// A tensor that is quantized by its own amax is needed twice: for the amax, and
// again once the amax is known. In between it would be stored in f32. If its
// operands are smaller (the payloads of an optimizer's state, the input of a
// norm), a second sweep recomputes it from them.
//
// Levels separate the sweeps: a value's level is the number of reductions over
// whole tensors on the longest path to it.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RECOMPUTEELEMENTWISE
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Smaller tensors stay in the caches.
constexpr int64_t kMinElements = 8192;
/// Bytes of traffic per byte that is stored and read again: the write, the
/// cache line that it fetches, and the read.
constexpr int64_t kStoreTraffic = 3;

/// Returns true if `op` computes every element on its own, from tensors alone.
bool isElementwise(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !allParallel(generic))
    return false;
  for (OpOperand &init : generic.getDpsInitsMutable())
    if (!init.get().getDefiningOp<tensor::EmptyOp>() ||
        generic.payloadUsesValueFromOperand(&init))
      return false;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::all_of(captured, [](Value value) {
    return isa_and_nonnull<arith::ConstantOp>(value.getDefiningOp());
  });
}

/// Returns true for a reduction that shares no loop with the readers of its
/// result.
bool isWholeReduction(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && generic.getNumParallelLoops() == 0 &&
         iterationVolume(generic) >= kMinElements;
}

/// Returns the cost of computing an element, as the bytes of traffic that take
/// as long.
int64_t costOf(Operation *op) {
  int64_t cost = 0;
  for (Operation &inner : op->getRegion(0).front()) {
    if (isa<arith::DivFOp>(inner))
      cost += 2;
    else if (isa<math::SqrtOp, math::RsqrtOp>(inner))
      cost += 4;
    else if (isa<math::MathDialect>(inner.getDialect()) &&
             !isa<math::AbsFOp, math::CopySignOp, math::FmaOp, math::CeilOp,
                  math::FloorOp, math::IsFiniteOp, math::IsNaNOp>(inner))
      cost += 8;
  }
  return cost;
}

/// A stored value that a later sweep reads.
struct Crossing {
  Value value;
  unsigned level; ///< The level of its readers.
  SmallVector<OpOperand *> reads;
  /// The ops that the sweep recomputes, and the values that these read.
  SetVector<Operation *> slice = {};
  SetVector<Value> leaves = {};
};

class BlockSweeps {
public:
  BlockSweeps(Block &block, int64_t &sweeps) : block(block), sweeps(sweeps) {}

  void run();

private:
  void findLevels();
  unsigned levelOf(Value value) const { return levels.lookup(value); }
  bool findReads(Value value, unsigned level,
                 llvm::MapVector<unsigned, SmallVector<OpOperand *>> &reads,
                 bool &isReadHere);
  void findCrossings();
  void findSlice(Crossing &crossing, Value value);
  bool isStoredAnyway(Value leaf, const SetVector<Operation *> &slice);
  void recompute(ArrayRef<Crossing *> crossings);

  Block &block;
  int64_t &sweeps;
  DenseMap<Value, unsigned> levels;
  std::vector<Crossing> crossings;
};

void BlockSweeps::findLevels() {
  for (Operation &op : block) {
    unsigned level = 0;
    SetVector<Value> used;
    used.insert(op.operand_begin(), op.operand_end());
    getUsedValuesDefinedAbove(op.getRegions(), used);
    for (Value value : used)
      level = std::max(level, levelOf(value));
    if (isWholeReduction(&op))
      ++level;
    for (Value result : op.getResults())
      levels[result] = level;
  }
}

/// Collects the elementwise ops of later levels that read `value` or a view of
/// it. Returns false if another reader needs it in memory.
bool BlockSweeps::findReads(
    Value value, unsigned level,
    llvm::MapVector<unsigned, SmallVector<OpOperand *>> &reads,
    bool &isReadHere) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (user->getBlock() != &block)
      return false;
    if (isTensorView(user)) {
      if (!findReads(user->getResult(0), level, reads, isReadHere))
        return false;
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic || isDot(generic) || generic.isDpsInit(&use))
      return false;
    unsigned operandLevel = 0;
    for (Value operand : user->getOperands())
      operandLevel = std::max(operandLevel, levelOf(operand));
    if (operandLevel == level) {
      isReadHere = true;
      continue;
    }
    // A read after more than one reduction is much later, often in the backward
    // pass: the operands would have to live until then.
    if (!isElementwise(user) || operandLevel != level + 1)
      return false;
    reads[operandLevel].push_back(&use);
  }
  return true;
}

void BlockSweeps::findCrossings() {
  for (Operation &op : block) {
    if (!isElementwise(&op))
      continue;
    for (Value result : op.getResults()) {
      if (elementsOf(result) < kMinElements)
        continue;
      unsigned level = levelOf(result);
      bool isReadHere = false;
      llvm::MapVector<unsigned, SmallVector<OpOperand *>> reads;
      if (!findReads(result, level, reads, isReadHere) || !isReadHere ||
          reads.size() != 1)
        continue;
      Crossing crossing{result, reads.front().first, reads.front().second};
      findSlice(crossing, result);
      crossings.push_back(std::move(crossing));
    }
  }
}

/// Collects the ops to recompute for `value`.
void BlockSweeps::findSlice(Crossing &crossing, Value value) {
  Operation *def = value.getDefiningOp();
  // A splat constant takes no memory.
  if (matchPattern(value, m_Constant<SplatElementsAttr>(nullptr)))
    return;
  bool isPart = def && def->getBlock() == &block &&
                elementsOf(value) >= kMinElements &&
                (isElementwise(def) || isTensorView(def));
  if (!isPart) {
    if (elementsOf(value) >= kMinElements)
      crossing.leaves.insert(value);
    return;
  }
  if (crossing.slice.contains(def))
    return;
  if (isTensorView(def))
    findSlice(crossing, def->getOperand(0));
  else
    for (Value input : cast<linalg::GenericOp>(def).getInputs())
      findSlice(crossing, input);
  crossing.slice.insert(def); // after what it reads
}

/// Returns true if a value is stored in any case, because ops other than the
/// recomputed ones read it.
bool BlockSweeps::isStoredAnyway(Value leaf,
                                 const SetVector<Operation *> &slice) {
  Operation *def = leaf.getDefiningOp();
  if (!def || def->getBlock() != &block || !isa<linalg::GenericOp>(def))
    return true;
  return llvm::any_of(leaf.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    auto generic = dyn_cast<linalg::GenericOp>(user);
    return !slice.contains(user) &&
           (!generic || isDot(generic) ||
            levelOf(user->getResult(0)) != levelOf(leaf));
  });
}

/// Clones the ops that compute the crossing values in front of their readers.
void BlockSweeps::recompute(ArrayRef<Crossing *> members) {
  int64_t number = ++sweeps;
  IRMapping mapping;
  llvm::SmallPtrSet<Operation *, 16> cloned;
  for (Crossing *crossing : members) {
    for (Operation *op : crossing->slice) {
      if (!cloned.insert(op).second)
        continue;
      OpBuilder builder(op);
      builder.setInsertionPointAfter(op);
      Operation *copy = builder.clone(*op, mapping);
      if (!isTensorView(op))
        copy->setAttr(FP8Dialect::kSweepAttrName,
                      builder.getI64IntegerAttr(number));
    }
    for (OpOperand *read : crossing->reads) {
      // A view between them is cloned too.
      Value value = read->get();
      SmallVector<Operation *> views;
      for (; value != crossing->value; value = views.back()->getOperand(0))
        views.push_back(value.getDefiningOp());
      Value copy = mapping.lookup(value);
      for (Operation *view : llvm::reverse(views)) {
        OpBuilder builder(read->getOwner());
        IRMapping viewMapping;
        viewMapping.map(view->getOperand(0), copy);
        copy = builder.clone(*view, viewMapping)->getResult(0);
      }
      read->set(copy);
    }
  }
}

void BlockSweeps::run() {
  findLevels();
  findCrossings();
  // Crossings that read the same value are recomputed together, or not at all.
  llvm::EquivalenceClasses<unsigned> sets;
  DenseMap<std::pair<Value, unsigned>, unsigned> firstReader;
  for (auto [index, crossing] : llvm::enumerate(crossings)) {
    sets.insert(index);
    for (Value leaf : crossing.leaves) {
      auto [entry, isNew] =
          firstReader.try_emplace({leaf, crossing.level}, index);
      if (!isNew)
        sets.unionSets(entry->second, index);
    }
  }
  llvm::MapVector<unsigned, SmallVector<Crossing *>> members;
  for (unsigned index : llvm::seq<unsigned>(crossings.size()))
    members[sets.getLeaderValue(index)].push_back(&crossings[index]);
  for (auto &[leader, set] : members) {
    int64_t stored = 0, read = 0;
    SetVector<Operation *> slice;
    SetVector<Value> leaves;
    for (Crossing *crossing : set) {
      stored += kStoreTraffic * bytesOf(crossing->value);
      slice.insert_range(crossing->slice);
      leaves.insert_range(crossing->leaves);
    }
    for (Value leaf : leaves)
      read += (isStoredAnyway(leaf, slice) ? 1 : kStoreTraffic) * bytesOf(leaf);
    for (Operation *op : slice)
      if (!isTensorView(op))
        read += costOf(op) * iterationVolume(cast<linalg::GenericOp>(op));
    if (read < stored)
      recompute(set);
  }
}

struct RecomputeElementwise
    : fp8::impl::RecomputeElementwiseBase<RecomputeElementwise> {
  using RecomputeElementwiseBase::RecomputeElementwiseBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    int64_t sweeps = 0;
    std::function<void(Block &)> visit = [&](Block &block) {
      for (Operation &op : block)
        if (isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp>(op) &&
            !isIrregular(&op))
          for (Region &region : op.getRegions())
            for (Block &inner : region)
              visit(inner);
      BlockSweeps(block, sweeps).run();
    };
    visit(getOperation().getBody().front());
    numSweeps += sweeps;
  }
};

} // namespace
