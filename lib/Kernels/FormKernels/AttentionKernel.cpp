//===- AttentionKernel.cpp - Outlining of an attention --------------------===//

#include "AttentionKernel.h"
#include "../LaunchLabels.h"

#include "LoopClasses.h"
#include "Preparation.h"
#include "SumOrder.h"
#include "Work.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Bytes of scores that a task holds at once.
static constexpr int64_t kScoreBytes = 1 << 19;
/// Bounds for the number of queries in a block. With fewer, packing panels of
/// keys does not pay.
static constexpr int64_t kMinQueries = 16, kMaxQueries = 128;

bool fp8::isAttention(Operation *op) {
  return isa<AttentionOp, AttentionBackwardOp>(op);
}

namespace {

using Loop = LoopClasses::Loop;

class AttentionOutliner {
public:
  explicit AttentionOutliner(Operation *op)
      : op(op), body(op->getRegion(0).front()) {}

  LogicalResult run(StringRef name);

private:
  void mergeResults();
  LogicalResult check();
  void foldCopies();
  bool sumsAtTheEnd(linalg::GenericOp generic) const;
  linalg::GenericOp sumBefore(linalg::GenericOp last) const;
  void moveEpiloguesOut();
  linalg::GenericOp copyOutside(linalg::GenericOp last, Value sum);
  enum class Kind { None, Parallel, Summed };
  Kind kindOf(const Loop &leader) const;
  void chooseDomain();
  int64_t blockOfQueries() const;
  Value destinationOf(Value yielded) const;
  KernelOp createKernel(StringRef name);

  Operation *op;
  Block &body;
  /// The result of the launch that each result of the op is.
  SmallVector<unsigned> places;
  SmallVector<linalg::GenericOp> generics;
  LoopClasses classes;
  /// One loop of each class in the domain, and its extent. If `block` is not 0,
  /// the last one is run in order.
  SmallVector<Loop> leaders;
  SmallVector<int64_t> domain;
  int64_t block = 0;
  /// An elementwise op on a result that moves behind the kernel. `standIn`
  /// replaces that result until the launch exists.
  struct Outside {
    unsigned result;
    Value standIn;
    linalg::GenericOp last;
  };
  SmallVector<Outside> outside;
};

} // namespace

/// Makes the body yield each value once. Two results are one value if the step
/// computes it twice.
void AttentionOutliner::mergeResults() {
  Operation *end = body.getTerminator();
  llvm::SetVector<Value> kept;
  for (Value value : end->getOperands()) {
    kept.insert(value);
    places.push_back(llvm::find(kept, value) - kept.begin());
  }
  end->setOperands(kept.getArrayRef());
}

/// Checks that the body is what FuseElementwise leaves: structured ops and no
/// views.
LogicalResult AttentionOutliner::check() {
  for (Operation &inner : body.without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(inner)) {
      generics.push_back(generic);
      continue;
    }
    if (!isDestination(&inner) && !isa<arith::ConstantOp>(inner))
      return inner.emitOpError("expected linalg.generic, fills and constants "
                               "in the body of an attention");
  }
  for (Value value : body.getTerminator()->getOperands())
    if (!value.getDefiningOp<linalg::GenericOp>())
      return op->emitOpError("expected results that its body computes");
  return success();
}

/// Folds a transpose into the dot that is its only operand: the dot writes the
/// transposed result.
void AttentionOutliner::foldCopies() {
  for (auto copy :
       llvm::make_early_inc_range(body.getOps<linalg::GenericOp>())) {
    auto dot = isCopy(copy)
                   ? copy.getInputs()[0].getDefiningOp<linalg::GenericOp>()
                   : linalg::GenericOp();
    if (!dot || !isDot(dot) || !dot->hasOneUse())
      continue;
    if (!writeInOrderOfReader(copy->getOpOperand(0)))
      continue;
    copy.replaceAllUsesWith(dot.getResults());
    copy.erase();
  }
}

/// Returns true if `generic` reduces to a result that no op of the body reads.
bool AttentionOutliner::sumsAtTheEnd(linalg::GenericOp generic) const {
  return generic->getNumResults() == 1 && reductionCombiner(generic, 0) &&
         llvm::all_of(generic->getUsers(),
                      [](Operation *user) { return isa<YieldOp>(user); });
}

/// Returns the reduction that is the only input of `last`, an elementwise op
/// with one result such as a cast, if it reduces over a loop that is parallel
/// in other ops (queries). Returns null otherwise.
linalg::GenericOp AttentionOutliner::sumBefore(linalg::GenericOp last) const {
  auto sum = last && last.getNumDpsInputs() == 1
                 ? last.getInputs()[0].getDefiningOp<linalg::GenericOp>()
                 : linalg::GenericOp();
  if (!sum || !allParallel(last) || last->getNumResults() != 1 ||
      !last->hasOneUse() || !sum->hasOneUse() ||
      !llvm::all_of(*last.getBody(), [&](Operation &inner) {
        return llvm::all_of(inner.getOperands(), [&](Value operand) {
          return operand.getParentBlock() == last.getBody() ||
                 operand.getDefiningOp<arith::ConstantOp>();
        });
      }))
    return nullptr;
  auto isSummed = [&](unsigned loop) {
    return sum.getIteratorTypesArray()[loop] ==
               utils::IteratorType::reduction &&
           llvm::any_of(generics, [&](linalg::GenericOp other) {
             std::optional<unsigned> own = classes.loopOf(other, {sum, loop});
             return own && other.getIteratorTypesArray()[*own] ==
                               utils::IteratorType::parallel;
           });
  };
  return llvm::any_of(llvm::seq(sum.getNumLoops()), isSummed) &&
                 reductionCombiner(sum, 0)
             ? sum
             : nullptr;
}

/// A sum over queries is complete only after the last block of them. Moves the
/// elementwise ops on such sums out of the kernel.
void AttentionOutliner::moveEpiloguesOut() {
  classes = LoopClasses(generics);
  bool changed = false;
  Operation *end = body.getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    auto last = operand.get().getDefiningOp<linalg::GenericOp>();
    linalg::GenericOp sum = sumBefore(last);
    if (!sum)
      continue;
    SmallVector<AffineMap> maps = last.getIndexingMapsArray();
    if (maps[0] != maps[1] && writeInOrderOfReader(last->getOpOperand(0)))
      classes = LoopClasses(generics);
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(sum->getResult(0).getType());
    Value standIn = tensor::EmptyOp::create(
        builder, last.getLoc(), type.getShape(), type.getElementType());
    outside.push_back(
        {operand.getOperandNumber(), standIn, copyOutside(last, standIn)});
    operand.set(sum->getResult(0));
    llvm::erase(generics, last);
    Operation *destination = last.getDpsInits()[0].getDefiningOp();
    last->erase();
    if (destination && destination->use_empty())
      destination->erase();
    changed = true;
  }
  if (!changed)
    return;
  classes = LoopClasses(generics);
}

/// Creates, in front of the attention, a copy of `last` that reads `sum`.
linalg::GenericOp AttentionOutliner::copyOutside(linalg::GenericOp last,
                                                 Value sum) {
  OpBuilder builder(op);
  IRMapping mapping;
  mapping.map(last.getInputs()[0], sum);
  auto type = cast<RankedTensorType>(last->getResult(0).getType());
  mapping.map(last.getDpsInits()[0],
              tensor::EmptyOp::create(builder, last.getLoc(), type.getShape(),
                                      type.getElementType())
                  .getResult());
  last.getBody()->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto constant = operand.getDefiningOp<arith::ConstantOp>();
          constant && operand.getParentBlock() == &body)
        mapping.map(operand, builder.clone(*constant)->getResult(0));
  });
  return cast<linalg::GenericOp>(builder.clone(*last, mapping));
}

/// Classifies a class of loops: Parallel if every op can run its part on its
/// own, Summed if all but some final sums can.
AttentionOutliner::Kind AttentionOutliner::kindOf(const Loop &leader) const {
  Kind kind = Kind::Parallel;
  for (linalg::GenericOp generic : generics) {
    SmallVector<unsigned> loops = classes.loopsOf(generic, leader);
    bool isResult = llvm::any_of(generic->getUsers(), llvm::IsaPred<YieldOp>);
    if (loops.size() > 1 || (isResult && loops.empty()))
      return Kind::None;
    if (loops.empty())
      continue;
    unsigned loop = loops.front();
    if (classes.isUneven({generic, loop}))
      return Kind::None;
    if (generic.getIteratorTypesArray()[loop] ==
        utils::IteratorType::reduction) {
      if (!sumsAtTheEnd(generic))
        return Kind::None;
      kind = Kind::Summed;
    } else if (!llvm::all_of(
                   generic.getDpsInitsMutable(), [&](OpOperand &init) {
                     return plainPosition(generic.getMatchingIndexingMap(&init),
                                          loop)
                         .has_value();
                   })) {
      return Kind::None;
    }
  }
  return kind;
}

/// Returns the number of queries in a block, such that their scores fit into
/// kScoreBytes. It depends on shapes alone, because it decides how sums over
/// queries are split.
int64_t AttentionOutliner::blockOfQueries() const {
  int64_t bytes = 0, extent = domain.back();
  for (linalg::GenericOp generic : generics) {
    std::optional<unsigned> query = classes.loopOf(generic, leaders.back());
    if (!query || generic.getIteratorTypesArray()[*query] !=
                      utils::IteratorType::parallel)
      continue;
    for (Value result : generic->getResults()) {
      int64_t size = byteSize(cast<RankedTensorType>(result.getType()));
      for (const Loop &leader : leaders)
        if (std::optional<unsigned> loop = classes.loopOf(generic, leader);
            loop && generic.getIteratorTypesArray()[*loop] ==
                        utils::IteratorType::parallel)
          size /= generic.getStaticLoopRanges()[*loop];
      bytes += size;
    }
  }
  int64_t fitting = kScoreBytes / std::max<int64_t>(bytes, 1);
  int64_t rows = llvm::bit_floor<uint64_t>(
      std::clamp<int64_t>(fitting, kMinQueries, kMaxQueries));
  return std::min(rows, extent);
}

void AttentionOutliner::chooseDomain() {
  // Dots have one loop more than the scores.
  linalg::GenericOp first = *llvm::max_element(
      generics, [](linalg::GenericOp a, linalg::GenericOp b) {
        return a.getNumLoops() < b.getNumLoops();
      });
  SmallVector<int64_t> extents = first.getStaticLoopRanges();
  std::optional<unsigned> inOrder;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    Kind kind = kindOf({first, loop});
    if (kind == Kind::Parallel) {
      leaders.push_back({first, loop});
      domain.push_back(extents[loop]);
    } else if (kind == Kind::Summed &&
               (!inOrder || extents[*inOrder] < extents[loop])) {
      inOrder = loop;
    }
  }
  if (!inOrder)
    return;
  leaders.push_back({first, *inOrder});
  domain.push_back(extents[*inOrder]);
  // The gradient of a bias sums over batches. A task then has one of them at a
  // time, and many queries.
  bool isBatch =
      isDot(first) &&
      llvm::is_contained(inferContractionDims(first)->batch, *inOrder);
  block = isBatch ? 1 : blockOfQueries();
}

/// Returns the empty tensor that a result is computed into.
Value AttentionOutliner::destinationOf(Value yielded) const {
  auto result = cast<OpResult>(yielded);
  Value destination = cast<linalg::GenericOp>(result.getOwner())
                          .getTiedOpOperand(result)
                          ->get();
  while (auto fill = destination.getDefiningOp<linalg::FillOp>())
    destination = fill.getOutputs()[0];
  return destination;
}

/// Creates the kernel and moves the body of the attention into it.
KernelOp AttentionOutliner::createKernel(StringRef name) {
  auto end = cast<YieldOp>(body.getTerminator());
  SmallVector<Type> arguments(body.getArgumentTypes());
  llvm::append_range(arguments, end.getOperandTypes());
  SmallVector<Access> accesses(body.getNumArguments(), Access::Read);
  accesses.append(end.getNumOperands(), Access::Write);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(op->getParentOfType<ModuleOp>().getBody());
  auto kernel = KernelOp::create(
      builder, op->getLoc(), name,
      builder.getFunctionType(arguments, end.getOperandTypes()), accesses,
      domain);
  if (block > 0)
    kernel.setBlock(block);
  for (linalg::GenericOp generic : generics) {
    SmallVector<int64_t> loops;
    for (const Loop &leader : leaders) {
      std::optional<unsigned> loop = classes.loopOf(generic, leader);
      loops.push_back(loop ? static_cast<int64_t>(*loop) : -1);
    }
    generic->setAttr(FP8Dialect::kTaskDimsAttrName,
                     builder.getDenseI64ArrayAttr(loops));
  }
  for (Value value : end.getOperands()) {
    BlockArgument argument = body.addArgument(value.getType(), value.getLoc());
    Operation *empty = destinationOf(value).getDefiningOp();
    empty->replaceAllUsesWith(ValueRange{argument});
    empty->erase();
  }
  builder.setInsertionPoint(end);
  ReturnOp::create(builder, end.getLoc(), end.getOperands());
  end.erase();
  kernel.getBody().takeBody(op->getRegion(0));
  return kernel;
}

LogicalResult AttentionOutliner::run(StringRef name) {
  foldCopies();
  Block *blocks[] = {&body};
  prepareForGrouping(blocks);
  mergeResults();
  if (failed(check()))
    return failure();
  moveEpiloguesOut();
  chooseDomain();
  SmallVector<Value> operands(op->getOperands());
  SmallVector<Type> types(body.getTerminator()->getOperandTypes());
  KernelOp kernel = createKernel(name);
  OpBuilder builder(op);
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    operands.push_back(tensor::EmptyOp::create(
        builder, op->getLoc(), tensor.getShape(), tensor.getElementType()));
  }
  std::string label = (op->getName().stripDialect() + " " + placeOf(op)).str();
  auto launch = LaunchOp::create(builder, op->getLoc(), kernel, operands,
                                 builder.getStringAttr(label));
  SmallVector<Value> distinct(launch.getResults());
  for (auto &[number, standIn, last] : outside) {
    standIn.replaceAllUsesWith(launch.getResult(number));
    standIn.getDefiningOp()->erase();
    last->moveAfter(launch);
    distinct[number] = last->getResult(0);
  }
  SmallVector<Value> results = llvm::map_to_vector(
      places, [&](unsigned place) { return distinct[place]; });
  op->replaceAllUsesWith(results);
  op->erase();
  return success();
}

LogicalResult fp8::outlineAttention(Operation *op, StringRef name) {
  return AttentionOutliner(op).run(name);
}
