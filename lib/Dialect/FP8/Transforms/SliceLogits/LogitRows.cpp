//===- LogitRows.cpp - Row-wise computations on logits --------------------===//

#include "LogitRows.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

const RowDim *RowWork::rowsOf(OpOperand &operand) const {
  const auto *origin = llvm::find_if(operands, [&](const RowOrigin &origin) {
    return origin.operand == &operand;
  });
  return origin == operands.end() ? nullptr : &origin->rows.front();
}

//===----------------------------------------------------------------------===//
// How one op works on rows
//===----------------------------------------------------------------------===//

/// Whether the rows agree with those of the values that are already known.
static bool agrees(Operation *op, ArrayRef<RowOrigin> origins,
                   const DenseMap<Value, RowDim> &rowsOf) {
  for (OpOperand &operand : op->getOpOperands()) {
    const auto *origin = llvm::find_if(origins, [&](const RowOrigin &origin) {
      return origin.operand == &operand;
    });
    bool hasRows = origin != origins.end();
    if (hasRows && (origin->rows.size() != 1 || origin->rows[0].outer != 1))
      return false;
    auto known = rowsOf.find(operand.get());
    if (known != rowsOf.end() &&
        (!hasRows || !(origin->rows[0] == known->second)))
      return false;
  }
  return true;
}

/// Matches a dot that sums over the rows: a contracting dimension of both
/// operands.
static SmallVector<RowOrigin>
findContractedRows(Dot dot, const DenseMap<Value, RowDim> &rowsOf) {
  auto dims = dot.getDotDimensionNumbers();
  for (auto [lhs, rhs] : llvm::zip_equal(dims.getLhsContractingDimensions(),
                                         dims.getRhsContractingDimensions()))
    for (auto [value, dim] :
         {std::pair(dot.getLhs(), lhs), {dot.getRhs(), rhs}})
      if (auto known = rowsOf.find(value);
          known != rowsOf.end() && known->second.dim == dim) {
        int64_t outer = known->second.outer, size = known->second.size;
        return {{&dot->getOpOperand(0), {{lhs, outer, size}}},
                {&dot->getOpOperand(1), {{rhs, outer, size}}}};
      }
  return {};
}

/// Whether a reduction can combine partial results of rows: a sum, a maximum or
/// a minimum.
static bool combinesInParts(stablehlo::ReduceOp op) {
  if (op->getNumResults() != 1)
    return false;
  Operation *combiner = stablehlo::getCombiner(op.getBody());
  if (isa_and_nonnull<stablehlo::AddOp>(combiner))
    return isZero(op.getInitValues()[0]);
  return isa_and_nonnull<stablehlo::MaxOp, stablehlo::MinOp>(combiner);
}

std::optional<RowWork>
fp8::matchRowWork(Operation *op, int64_t size,
                  const DenseMap<Value, RowDim> &rowsOf) {
  if (op->getNumResults() == 0 ||
      (op->getNumResults() > 1 && !isa<stablehlo::ReduceOp>(op)))
    return std::nullopt;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(op->getResult(0)))) {
    RowDim candidate{static_cast<int64_t>(dim), 1, size};
    if (extent == 0 || extent % size != 0)
      continue;
    auto origins = findRowOrigins(op->getResult(0), candidate);
    if (origins && agrees(op, *origins, rowsOf))
      return RowWork{std::move(*origins), candidate};
  }
  SmallVector<RowOrigin> combined;
  if (auto sum = dyn_cast<Dot>(op))
    combined = findContractedRows(sum, rowsOf);
  else if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
           reduce && combinesInParts(reduce))
    if (auto known = rowsOf.find(reduce.getInputs()[0]);
        known != rowsOf.end() &&
        llvm::is_contained(reduce.getDimensions(), known->second.dim))
      combined = {{&op->getOpOperand(0), {known->second}}};
  if (combined.empty() || !agrees(op, combined, rowsOf))
    return std::nullopt;
  return RowWork{std::move(combined), std::nullopt};
}

std::optional<SmallVector<RowOrigin>>
fp8::findCheapOrigins(Value value, const RowDim &rows) {
  Operation *op = value.getDefiningOp();
  bool isCheap =
      op &&
      (stablehlo::worksByElement(op) ||
       isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
           stablehlo::TransposeOp, stablehlo::ScatterOp, stablehlo::ReduceOp>(
           op));
  if (!isCheap || op->getNumResults() != 1)
    return std::nullopt;
  auto origins = findRowOrigins(cast<OpResult>(value), rows);
  if (!origins || llvm::any_of(*origins, [](const RowOrigin &origin) {
        return origin.rows.size() != 1 || origin.rows[0].outer != 1;
      }))
    return std::nullopt;
  return origins;
}

void fp8::setRowAttributes(Operation *op, int64_t dim, int64_t extent) {
  auto set = [&](ArrayRef<int64_t> sizes) {
    SmallVector<int64_t> result(sizes);
    result[dim] = extent;
    return result;
  };
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op))
    slice.setLimitIndices(set(slice.getLimitIndices()));
  if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op))
    slice.setSliceSizes(set(slice.getSliceSizes()));
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

LogitRows::LogitRows(Dot dot, const RowDim &rows,
                     const DenseSet<Operation *> &others)
    : dot(dot), rows(rows) {
  auto origins = findRowOrigins(cast<OpResult>(dot.getResult()), rows);
  if (!origins || !agrees(dot, *origins, rowsOf)) {
    obstacle = dot;
    return;
  }
  rowsOf[dot.getResult()] = rows;
  ops.insert({dot, RowWork{std::move(*origins), rows}});
  collect(others);
  dropOpsOnSmallValues();
  obstacle = findObstacle();
}

bool LogitRows::isLarge(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumElements() >=
                     cast<RankedTensorType>(dot->getResult(0).getType())
                             .getNumElements() /
                         4;
}

/// Follows the rows through the block, up to other dots.
void LogitRows::collect(const DenseSet<Operation *> &others) {
  for (Operation *op = dot->getNextNode(); op; op = op->getNextNode()) {
    if (others.contains(op) ||
        llvm::none_of(op->getOperands(),
                      [&](Value value) { return rowsOf.contains(value); }))
      continue;
    std::optional<RowWork> work = matchRowWork(op, rows.size, rowsOf);
    if (!work)
      continue;
    if (work->results && !isa<Dot>(op))
      for (Value result : op->getResults())
        rowsOf[result] = *work->results;
    ops.insert({op, std::move(*work)});
  }
}

/// Keeps only the ops that read a large value, and those that lead to them.
void LogitRows::dropOpsOnSmallValues() {
  DenseSet<Operation *> needed{dot};
  for (auto &[op, work] : llvm::reverse(ops)) {
    bool readsLarge = llvm::any_of(op->getOperands(), [&](Value value) {
      return rowsOf.contains(value) && isLarge(value);
    });
    if (readsLarge || llvm::any_of(op->getUsers(), [&](Operation *user) {
          return needed.contains(user);
        }))
      needed.insert(op);
  }
  ops.remove_if([&](auto &entry) { return !needed.contains(entry.first); });
}

bool LogitRows::isReadOutside(Value value) const {
  Block *block = dot->getBlock();
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return !ops.contains(block->findAncestorOpInBlock(*user));
  });
}

/// Returns an op outside this set that reads a large value.
Operation *LogitRows::findOutsideReader() const {
  for (auto &[op, work] : ops)
    for (Value result : op->getResults())
      if (rowsOf.contains(result) && isLarge(result))
        for (Operation *user : result.getUsers())
          if (!ops.contains(user))
            return user;
  return nullptr;
}

/// Returns the op that prevents slicing. Also finds the ops that have to move
/// after the last one.
Operation *LogitRows::findObstacle() {
  if (Operation *reader = findOutsideReader())
    return reader;
  Block *block = dot->getBlock();
  DenseSet<Operation *> after;
  auto follows = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && def->getBlock() == block &&
           (after.contains(def) || ops.contains(def));
  };
  // Whether a value depends on all rows.
  auto isOfAllRows = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return after.contains(def) || late.contains(def) ||
           (ops.contains(def) && !rowsOf.contains(value));
  };
  Operation *last = ops.back().first;
  for (Operation *op = dot; op != last->getNextNode(); op = op->getNextNode()) {
    if (ops.contains(op)) {
      if (llvm::any_of(op->getOperands(), isOfAllRows))
        late.insert(op);
      continue;
    }
    bool isAfter = false;
    stablehlo::forEachRead(op, [&](Value value) { isAfter |= follows(value); });
    if (isAfter) {
      after.insert(op);
      followers.push_back(op);
    }
  }
  return late.empty() ? nullptr : late.front();
}

/// Computes a large value again, from operands behind barriers, so that it is
/// not merged with the first one. Rows of few elements are kept.
Value LogitRows::again(Value value, OpBuilder &builder,
                       IRMapping &copies) const {
  Operation *op = value.getDefiningOp();
  if (!isLarge(value) || !ops.contains(op) || late.contains(op))
    return value;
  if (Value copy = copies.lookupOrNull(value))
    return copy;
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, op == dot ? stablehlo::OptimizationBarrierOp::create(
                                          builder, operand.getLoc(),
                                          operand.getType(), operand)
                                          ->getResult(0)
                                    : again(operand, builder, copies));
  Operation *copy = builder.clone(*op, operands);
  copies.map(op, copy);
  copies.map(op->getResults(), copy->getResults());
  return copies.lookup(value);
}

Dot LogitRows::recompute(DenseSet<Operation *> &others) {
  if (late.empty())
    return nullptr;
  IRMapping copies;
  for (Operation *op : late) {
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(again(operand.get(), builder, copies));
    others.insert(op);
  }
  for (auto [op, copy] : copies.getOperationMap())
    others.insert(copy);
  Value logits = copies.lookupOrNull(dot->getResult(0));
  if (!logits)
    return nullptr;
  // The backward pass reads what the copy reads: its layer is that of the copy.
  auto copy = logits.getDefiningOp<Dot>();
  for (auto [operand, barrier] :
       llvm::zip_equal(dot->getOperands(), copy->getOperands()))
    operand.replaceUsesWithIf(barrier, [&](OpOperand &use) {
      return late.contains(use.getOwner()) &&
             copy->isBeforeInBlock(use.getOwner());
    });
  return copy;
}
