//===- ShareBatch.cpp - A batch of all ranks becomes a rank's own ---------===//
//
// The dimensions that count rows become shorter. Nothing else changes: what a
// step computes from each row stays the same, and sums over rows, completed
// over the ranks, have as many elements as before. Literal numbers of rows
// (the divisor of a mean) so stay right, and the step computes what one process
// computes from the whole batch.
//
//===----------------------------------------------------------------------===//

#include "ShareBatch.h"

#include "ShardArguments.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

namespace {

class BatchSharing {
public:
  BatchSharing(func::FuncOp func, const Propagation &layouts,
               ArrayRef<Operation *> gathers, int64_t ranks)
      : func(func), layouts(layouts), gathers(gathers), ranks(ranks) {}

  LogicalResult run();

private:
  LogicalResult verifyCount(Operation *op, int64_t rows);
  LogicalResult verifyTurn(Operation *op, const LayerSlot &turn);
  LogicalResult verifyRows(Operation *op, Value value);
  LogicalResult verifyRows();
  std::optional<RowDim> dividedDim(Value value) const;
  RankedTensorType typeOfPart(Value value, const RowDim &row) const;
  SmallVector<int64_t> divide(ArrayRef<int64_t> values, int64_t dim) const;
  void shareSlice(stablehlo::SliceOp op);
  void shareDynamicSlice(stablehlo::DynamicSliceOp op);
  void shareUpdate(stablehlo::DynamicUpdateSliceOp op);
  void shareTurn(Value stack, int64_t dim, OpOperand &start);
  void shareLoop(stablehlo::WhileOp loop);
  void sharePad(stablehlo::PadOp op);
  void shareGather(stablehlo::GatherOp op);
  void shareAttributes(Operation *op);
  Value sliceRows(OpBuilder &builder, Value value, const RowDim &row,
                  bool areOwn);
  void gatherRows(Operation *reshape, const RowDim &row);
  Value partOf(Value value, const RowDim &row);
  Value makePart(OpBuilder &builder, Value value, const RowDim &row);
  void shareOperand(OpOperand &operand, ArrayRef<RowDim> rows);
  void shareBetweenRegions(Operation *op);
  DictionaryAttr describeParts(RankedTensorType whole, const RowDim &row);
  void shareTypes();

  func::FuncOp func;
  const Propagation &layouts;
  ArrayRef<Operation *> gathers;
  int64_t ranks;
  llvm::SetVector<stablehlo::WhileOp> loopsOverRows;
  /// The parts of values that all rows share, by value, dimension and
  /// repetitions of the rows.
  llvm::DenseMap<std::tuple<Value, int64_t, int64_t>, Value> made;
};

} // namespace

/// Returns the dimension of which a rank has a part, if a value has rows: of a
/// batch in micro-batches that of the rows in each of them.
std::optional<RowDim> BatchSharing::dividedDim(Value value) const {
  Layout layout = layouts.layoutOf(value);
  if (!layout.is(Kind::Rows) || layout.rows.empty())
    return std::nullopt;
  return layout.rows.back();
}

LogicalResult BatchSharing::verifyRows(Operation *op, Value value) {
  Layout layout = layouts.layoutOf(value);
  if (layout.is(Kind::Rows) && layout.turn)
    return verifyTurn(op, *layout.turn);
  std::optional<RowDim> row = dividedDim(value);
  return row ? verifyCount(op, row->size) : success();
}

LogicalResult BatchSharing::verifyCount(Operation *op, int64_t rows) {
  if (rows % ranks == 0)
    return success();
  return op->emitOpError("expected the number of rows to be a multiple of the ")
         << ranks << " ranks that share the batch but got " << rows;
}

/// Checks that a loop takes the rows one by one, and does nothing else as
/// often.
LogicalResult BatchSharing::verifyTurn(Operation *op, const LayerSlot &turn) {
  auto loop = cast<stablehlo::WhileOp>(turn.counter.getOwner()->getParentOp());
  std::optional<stablehlo::CountedLoop> counted =
      stablehlo::matchCountedLoop(loop);
  if (!counted || counted->trips != turn.count ||
      !loop->getResult(counted->counter).use_empty())
    return op->emitOpError("expected a loop that takes the rows one by one to "
                           "do nothing else, in a step whose batch is that of "
                           "all ranks");
  loopsOverRows.insert(loop);
  return verifyCount(op, turn.count);
}

LogicalResult BatchSharing::verifyRows() {
  for (BlockArgument arg : func.getArguments())
    if (std::optional<RowDim> row = dividedDim(arg); row && row->size % ranks) {
      auto path = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                    FP8Dialect::kPathAttrName);
      return func.emitError("expected the rows of ")
             << (row->outer > 1 ? "each micro-batch, or other part, of '" : "'")
             << (path ? path.getValue() : "?") << "' to be a multiple of the "
             << ranks << " ranks that share the batch but got " << row->size;
    }
  WalkResult result = func.walk([&](Operation *op) {
    return llvm::all_of(
               op->getResults(),
               [&](Value value) { return succeeded(verifyRows(op, value)); })
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

RankedTensorType BatchSharing::typeOfPart(Value value,
                                          const RowDim &row) const {
  auto type = cast<RankedTensorType>(value.getType());
  return type.clone(divide(type.getShape(), row.dim));
}

SmallVector<int64_t> BatchSharing::divide(ArrayRef<int64_t> values,
                                          int64_t dim) const {
  SmallVector<int64_t> divided(values);
  divided[dim] /= ranks;
  return divided;
}

//===----------------------------------------------------------------------===//
// Attributes that count rows
//===----------------------------------------------------------------------===//

/// (A slice along the rows takes micro-batches: those of a rank begin at a part
/// of what those of all ranks begin at. Or it takes every n-th element of each
/// row.)
void BatchSharing::shareSlice(stablehlo::SliceOp op) {
  std::optional<RowDim> row = dividedDim(op.getOperand());
  if (!row)
    return;
  SmallVector<int64_t> limits(op.getLimitIndices());
  if (op.getStrides()[row->dim] == 1)
    op.setStartIndices(divide(op.getStartIndices(), row->dim));
  else
    limits[row->dim] = shapeOf(op.getOperand())[row->dim];
  op.setLimitIndices(divide(limits, row->dim));
}

void BatchSharing::shareDynamicSlice(stablehlo::DynamicSliceOp op) {
  std::optional<RowDim> row = dividedDim(op.getOperand());
  if (!row)
    return;
  OpOperand &start = op->getOpOperand(1 + row->dim);
  if (layouts.layoutOf(op).turn)
    return shareTurn(op.getOperand(), row->dim, start);
  bool takesAll =
      op.getSliceSizes()[row->dim] == shapeOf(op.getOperand())[row->dim];
  op.setSliceSizes(divide(op.getSliceSizes(), row->dim));
  if (takesAll)
    return;
  OpBuilder builder(op);
  Value by = stablehlo::integerConstant(builder, op.getLoc(),
                                        start.get().getType(), ranks);
  start.set(stablehlo::DivOp::create(builder, op.getLoc(), start.get(), by));
}

void BatchSharing::shareUpdate(stablehlo::DynamicUpdateSliceOp op) {
  std::optional<RowDim> row = dividedDim(op.getOperand());
  if (!row)
    row = dividedDim(op);
  if (row && shapeOf(op.getUpdate())[row->dim] != shapeOf(op)[row->dim])
    shareTurn(op, row->dim, op->getOpOperand(2 + row->dim));
}

/// Handles the place of a row in a loop that takes them one by one: a loop that
/// begins at the last row begins at the last one of the rank.
void BatchSharing::shareTurn(Value stack, int64_t dim, OpOperand &start) {
  std::optional<LayerSlot> slot = matchSlot(start.get(), stack.getType(), dim);
  auto loop = cast<stablehlo::WhileOp>(slot->counter.getOwner()->getParentOp());
  if (slot->scale * stablehlo::matchCountedLoop(loop)->step > 0)
    return;
  OpBuilder builder(start.getOwner());
  Location loc = start.getOwner()->getLoc();
  Value others = stablehlo::integerConstant(builder, loc, start.get().getType(),
                                            slot->count - slot->count / ranks);
  start.set(stablehlo::SubtractOp::create(builder, loc, start.get(), others));
}

/// Makes a loop that takes the rows one by one end when those of a rank have
/// been taken.
void BatchSharing::shareLoop(stablehlo::WhileOp loop) {
  stablehlo::CountedLoop counted = *stablehlo::matchCountedLoop(loop);
  Block &cond = loop.getCond().front();
  auto builder = OpBuilder::atBlockTerminator(&cond);
  Location loc = loop.getLoc();
  Value counter = cond.getArgument(counted.counter);
  Value end = stablehlo::integerConstant(builder, loc, counter.getType(),
                                         counted.lower + counted.trips / ranks *
                                                             counted.step);
  Value more = stablehlo::CompareOp::create(builder, loc, counter, end,
                                            stablehlo::ComparisonDirection::NE);
  cond.getTerminator()->setOperand(0, more);
}

void BatchSharing::sharePad(stablehlo::PadOp op) {
  std::optional<RowDim> row = dividedDim(op.getOperand());
  // (Padding between elements of a row is the same for each.)
  if (!row || op.getInteriorPadding()[row->dim] > 0)
    return;
  op.setEdgePaddingLow(divide(op.getEdgePaddingLow(), row->dim));
  op.setEdgePaddingHigh(divide(op.getEdgePaddingHigh(), row->dim));
}

/// (A slice of a table with rows takes all of them, or the row's own one.)
void BatchSharing::shareGather(stablehlo::GatherOp op) {
  std::optional<RowDim> row = dividedDim(op.getOperand());
  if (row &&
      op.getSliceSizes()[row->dim] == shapeOf(op.getOperand())[row->dim] &&
      !llvm::is_contained(op.getDimensionNumbers().getOperandBatchingDims(),
                          row->dim))
    op.setSliceSizes(divide(op.getSliceSizes(), row->dim));
}

void BatchSharing::shareAttributes(Operation *op) {
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op))
    shareSlice(slice);
  else if (auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op))
    shareDynamicSlice(slice);
  else if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(op))
    shareUpdate(update);
  else if (auto pad = dyn_cast<stablehlo::PadOp>(op))
    sharePad(pad);
  else if (auto gather = dyn_cast<stablehlo::GatherOp>(op))
    shareGather(gather);
  else if (auto state = dyn_cast<RowStateOp>(op))
    state.setBlocks(llvm::divideCeil(state.getBlocks(), ranks));
}

//===----------------------------------------------------------------------===//
// Values that all rows share
//===----------------------------------------------------------------------===//

/// Returns the shape of rows with a dimension of its own for what repeats them.
static SmallVector<int64_t> splitRepetitions(Value value, const RowDim &row) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[row.dim] /= row.outer;
  shape.insert(shape.begin() + row.dim, row.outer);
  return shape;
}

/// Returns the rows of this rank, or as many from the first on, of each
/// repetition.
Value BatchSharing::sliceRows(OpBuilder &builder, Value value,
                              const RowDim &row, bool areOwn) {
  Location loc = value.getLoc();
  RankedTensorType type = typeOfPart(value, row);
  SmallVector<int64_t> shape = splitRepetitions(value, row);
  Value repeated = makeReshape(builder, loc, value, shape);
  int64_t size = shape[row.dim + 1] /= ranks;
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  SmallVector<Value> starts(shape.size(), makeZeros(builder, loc, scalar));
  if (areOwn) {
    Value rank = makeReshape(
        builder, loc,
        RowIotaOp::create(builder, loc, scalar.clone({1}), /*dim=*/0), {});
    starts[row.dim + 1] = stablehlo::MulOp::create(
        builder, loc, rank,
        stablehlo::integerConstant(builder, loc, scalar, size));
  }
  Value part = stablehlo::DynamicSliceOp::create(
      builder, loc, type.clone(shape), repeated, starts,
      builder.getDenseI64ArrayAttr(shape));
  return makeReshape(builder, loc, part, type.getShape());
}

/// Replaces a reshape by the rows of all ranks, in the order of these.
void BatchSharing::gatherRows(Operation *reshape, const RowDim &row) {
  Value rows = reshape->getOperand(0);
  Location loc = reshape->getLoc();
  OpBuilder builder(reshape);
  rows = makeReshape(builder, loc, rows, splitRepetitions(rows, row));
  Value all = gatherFromRanks(builder, rows, ranks, "rows of all ranks");
  // The ranks move to the dimension of the rows.
  auto type = cast<RankedTensorType>(all.getType());
  auto order = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  order.insert(order.begin() + row.dim + 1, 0);
  all = stablehlo::TransposeOp::create(
      builder, loc, type.clone(applyPermutation(type.getShape(), order)), all,
      builder.getDenseI64ArrayAttr(order));
  reshape->getResult(0).replaceAllUsesWith(
      makeReshape(builder, loc, all, shapeOf(reshape->getResult(0))));
  reshape->erase();
}

/// Returns the part of a value that all ranks have that belongs to the rows of
/// this rank.
Value BatchSharing::partOf(Value value, const RowDim &row) {
  auto key = std::tuple(value, row.dim, row.outer);
  if (Value known = made.lookup(key))
    return known;
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfterValue(value);
  return made[key] = makePart(builder, value, row);
}

/// Makes it in a cheaper way than by a slice, where there is one.
Value BatchSharing::makePart(OpBuilder &builder, Value value,
                             const RowDim &row) {
  if (!isSameForRows(value, row))
    return sliceRows(builder, value, row, /*areOwn=*/true);
  Location loc = value.getLoc();
  RankedTensorType type = typeOfPart(value, row);
  if (Value splat = resizeSplat(builder, loc, value, type))
    return splat;
  Operation *op = value.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<stablehlo::BroadcastInDimOp>(op)) {
    std::optional<int64_t> from =
        positionIn(broadcast.getBroadcastDimensions(), row.dim);
    if (!from || shapeOf(broadcast.getOperand())[*from] == 1)
      return stablehlo::BroadcastInDimOp::create(
          builder, loc, type, broadcast.getOperand(),
          broadcast.getBroadcastDimensionsAttr());
  }
  if (auto iota = dyn_cast_or_null<stablehlo::IotaOp>(op))
    return stablehlo::IotaOp::create(builder, loc, type,
                                     iota.getIotaDimension());
  if (op && stablehlo::worksByElement(op) && op->getNumResults() == 1) {
    IRMapping parts;
    for (Value operand : op->getOperands())
      if (!shapeOf(operand).empty())
        parts.map(operand, partOf(operand, row));
    Value part = builder.clone(*op, parts)->getResult(0);
    part.setType(type);
    return part;
  }
  return sliceRows(builder, value, row, /*areOwn=*/false);
}

void BatchSharing::shareOperand(OpOperand &operand, ArrayRef<RowDim> rows) {
  operand.set(partOf(operand.get(), rows.back()));
}

/// Handles values that are rows in one turn of a loop or in one branch, and the
/// same for all rows in another.
void BatchSharing::shareBetweenRegions(Operation *op) {
  auto loop = dyn_cast<stablehlo::WhileOp>(op);
  if (!loop && !stablehlo::isBranch(op))
    return;
  for (OpResult result : op->getResults()) {
    Layout layout = layouts.layoutOf(result);
    if (!dividedDim(result))
      continue;
    unsigned index = result.getResultNumber();
    SmallVector<OpOperand *> sources;
    if (loop)
      sources = {&loop->getOpOperand(index),
                 &loop.getBody().front().getTerminator()->getOpOperand(index)};
    else
      for (Region &region : op->getRegions())
        sources.push_back(&region.front().getTerminator()->getOpOperand(index));
    for (OpOperand *source : sources)
      if (!dividedDim(source->get()))
        shareOperand(*source, layout.rows);
  }
}

//===----------------------------------------------------------------------===//
// All values
//===----------------------------------------------------------------------===//

/// Returns where each rank's part of a batch argument begins: in each of its
/// micro-batches, if it has several.
DictionaryAttr BatchSharing::describeParts(RankedTensorType whole,
                                           const RowDim &row) {
  Builder builder(func.getContext());
  int64_t rank = whole.getRank();
  int64_t rows = whole.getDimSize(row.dim) / (row.outer * ranks);
  SmallVector<int64_t> offsets(ranks * rank);
  for (int64_t i = 0; i < ranks; ++i)
    offsets[i * rank + row.dim] = i * rows;
  auto type = RankedTensorType::get({ranks, rank}, builder.getI64Type());
  return stablehlo::makePart(
      whole.getShape(),
      DenseIntElementsAttr::get(type, ArrayRef<int64_t>(offsets)),
      ranks > 1 ? row.outer : 1);
}

void BatchSharing::shareTypes() {
  auto share = [&](Value value) {
    if (std::optional<RowDim> row = dividedDim(value))
      value.setType(typeOfPart(value, *row));
  };
  for (BlockArgument arg : func.getArguments())
    if (std::optional<RowDim> row = dividedDim(arg))
      func.setArgAttr(
          arg.getArgNumber(), stablehlo::kPartAttrName,
          describeParts(cast<RankedTensorType>(arg.getType()), *row));
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), share);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), share);
  });
  Operation *end = func.getBody().front().getTerminator();
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().getArgumentTypes(),
                                 end->getOperandTypes()));
}

LogicalResult BatchSharing::run() {
  if (failed(verifyRows()))
    return failure();
  // (New ops have no layout, so that they are left alone.)
  func.walk([&](Operation *op) { shareAttributes(op); });
  for (const auto &[operand, rows] : layouts.getSharedOperands())
    shareOperand(*operand, rows);
  for (stablehlo::WhileOp loop : loopsOverRows)
    shareLoop(loop);
  func.walk([&](Operation *op) { shareBetweenRegions(op); });
  shareTypes();
  for (Operation *gather : gathers)
    gatherRows(gather, *dividedDim(gather->getOperand(0)));
  return success();
}

LogicalResult fp8::shareBatch(func::FuncOp func, const Propagation &layouts,
                              ArrayRef<Operation *> gathers, int64_t ranks) {
  return BatchSharing(func, layouts, gathers, ranks).run();
}
