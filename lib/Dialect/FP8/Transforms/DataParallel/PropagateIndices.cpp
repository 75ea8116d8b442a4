//===- PropagateIndices.cpp - Layouts through gathers and scatters --------===//

#include "Propagation.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

/// Returns the dimension of a gather's result (or a scatter's updates) that
/// corresponds to dimension `dim` of the indices.
static std::optional<int64_t> indexToResult(int64_t dim, int64_t vectorDim,
                                            ArrayRef<int64_t> offsetDims) {
  if (dim == vectorDim)
    return std::nullopt;
  int64_t left = dim > vectorDim ? dim - 1 : dim;
  for (int64_t result = 0;; ++result)
    if (!llvm::is_contained(offsetDims, result) && left-- == 0)
      return result;
}

/// Returns the rows of indices: their own, or those along which each row of
/// `table` has its indices.
static RowDims rowsOfIndices(const Layout &indices, const Layout &table,
                             ArrayRef<int64_t> tableBatchingDims,
                             ArrayRef<int64_t> indicesBatchingDims) {
  if (indices.is(Kind::Rows))
    return indices.rows;
  RowDims rows;
  if (table.is(Kind::Rows))
    for (const RowDim &row : table.rows)
      if (auto at = positionIn(tableBatchingDims, row.dim))
        rows.push_back({indicesBatchingDims[*at], row.outer, row.size});
  return rows;
}

LogicalResult Propagation::visitGather(stablehlo::GatherOp op) {
  auto dims = op.getDimensionNumbers();
  Layout table = layoutOf(op.getOperand()),
         indices = layoutOf(op.getStartIndices());
  if (indices.is(Kind::Partial) &&
      failed(requireWhole(op, op.getStartIndices())))
    return failure();
  RowDims indexRows =
      rowsOfIndices(indices, table, dims.getOperandBatchingDims(),
                    dims.getStartIndicesBatchingDims());
  if (!indexRows.empty()) {
    if (failed(requireRows(op, op.getStartIndices(), indexRows)))
      return failure();
    if (table.is(Kind::Partial) && failed(requireWhole(op, op.getOperand())))
      return failure();
    if (isTooMixed(op, op.getOperand()))
      return emitRowError(
          op, "it reads a value that follows from the parameters and "
              "the rows of all ranks");
    // Rows that are batching dimensions have their own tables.
    RowDims matching;
    for (const RowDim &row : indexRows)
      if (auto at = positionIn(dims.getStartIndicesBatchingDims(), row.dim))
        matching.push_back(
            {dims.getOperandBatchingDims()[*at], row.outer, row.size});
      else if (table.is(Kind::Rows))
        return emitRowError(op, "rows are indices into rows");
    if (!matching.empty() && failed(requireRows(op, op.getOperand(), matching)))
      return failure();
    return assignRows(
        op, indexRows,
        [&](int64_t dim) {
          return indexToResult(dim, dims.getIndexVectorDim(),
                               dims.getOffsetDims());
        },
        "rows are parts of one index");
  }
  if (!table.is(Kind::Rows))
    return table.is(Kind::Partial) ? assign(op, table) : replicate(op);
  // Slices that contain all rows, at indices that are the same for all rows.
  return assignRows(
      op, table.rows,
      [&](int64_t dim) -> std::optional<int64_t> {
        if (op.getSliceSizes()[dim] != shapeOf(op.getOperand())[dim] ||
            llvm::is_contained(dims.getCollapsedSliceDims(), dim) ||
            llvm::is_contained(dims.getOperandBatchingDims(), dim))
          return std::nullopt;
        int64_t offset = 0;
        for (int64_t d = 0; d < dim; ++d)
          offset += !llvm::is_contained(dims.getCollapsedSliceDims(), d) &&
                    !llvm::is_contained(dims.getOperandBatchingDims(), d);
        return dims.getOffsetDims()[offset];
      },
      "it takes rows by their index");
}

static bool addsUp(stablehlo::ScatterOp op) {
  return isa_and_nonnull<stablehlo::AddOp>(
      stablehlo::getCombiner(op.getUpdateComputation()));
}

/// Handles indices that have rows: they say where each row of the updates is
/// written.
LogicalResult Propagation::visitScatterOfRows(stablehlo::ScatterOp op,
                                              const RowDims &indexRows) {
  auto dims = op.getScatterDimensionNumbers();
  Value target = op.getInputs()[0], updates = op.getUpdates()[0];
  RowDims updateRows, targetRows;
  bool own = true;
  for (const RowDim &row : indexRows) {
    auto result = indexToResult(row.dim, dims.getIndexVectorDim(),
                                dims.getUpdateWindowDims());
    if (!result)
      return emitRowError(op, "rows are parts of one index");
    updateRows.push_back({*result, row.outer, row.size});
    auto at = positionIn(dims.getScatterIndicesBatchingDims(), row.dim);
    own &= at.has_value();
    if (at)
      targetRows.push_back(
          {dims.getInputBatchingDims()[*at], row.outer, row.size});
  }
  if (failed(requireRows(op, updates, updateRows)))
    return failure();
  if (own) {
    if (failed(requireRows(op, target, targetRows)))
      return failure();
    Layout layout = Layout::of(Kind::Rows);
    layout.rows = targetRows;
    return assign(op, layout);
  }
  if (!addsUp(op) || !layoutOf(target).isSum())
    return emitRowError(op,
                        "rows are written to places that others may write too, "
                        "and not added to zeros");
  return assign(op, sumOf(0));
}

/// Whether all rows of the updates go to the same indices.
bool Propagation::goToSamePlaces(stablehlo::ScatterOp op, const RowDims &rows) {
  auto dims = op.getScatterDimensionNumbers();
  RowDims ofIndices;
  for (const RowDim &row : rows)
    if (auto dim = dimOfIndices(dims.getUpdateWindowDims(),
                                dims.getIndexVectorDim(), row.dim))
      ofIndices.push_back({*dim, row.outer, row.size});
  if (!isSameForRows(op.getScatterIndices(), ofIndices))
    return false;
  if (!ofIndices.empty())
    shareOperand(op, op.getScatterIndices(), ofIndices);
  return true;
}

/// Handles values that all ranks share and that are written into rows: each
/// window contains all rows.
LogicalResult Propagation::visitScatterIntoRows(stablehlo::ScatterOp op,
                                                const RowDims &rows) {
  Value target = op.getInputs()[0], updates = op.getUpdates()[0];
  SmallVector<int64_t> windowDims = windowDimsOf(op);
  ArrayRef<int64_t> updateDims =
      op.getScatterDimensionNumbers().getUpdateWindowDims();
  RowDims updateRows;
  for (const RowDim &row : rows) {
    auto at = positionIn(windowDims, row.dim);
    if (!at || shapeOf(target)[row.dim] != shapeOf(updates)[updateDims[*at]])
      return emitRowError(op, "it writes to places along the rows");
    updateRows.push_back({updateDims[*at], row.outer, row.size});
  }
  if (failed(requireRows(op, updates, updateRows)))
    return failure();
  Layout layout = Layout::of(Kind::Rows);
  layout.rows = rows;
  return assign(op, layout);
}

/// Handles indices without rows: each window contains all rows, or the rows are
/// added up.
LogicalResult Propagation::visitScatterOfWindows(stablehlo::ScatterOp op,
                                                 const RowDims &rows) {
  auto dims = op.getScatterDimensionNumbers();
  Value target = op.getInputs()[0], updates = op.getUpdates()[0];
  RowDims targetRows;
  SmallVector<int64_t> windowDims = windowDimsOf(op);
  bool scattered = false;
  for (const RowDim &row : rows) {
    auto at = positionIn(dims.getUpdateWindowDims(), row.dim);
    if (!at) {
      scattered = true;
      continue;
    }
    int64_t dim = windowDims[*at];
    if (shapeOf(target)[dim] != shapeOf(updates)[row.dim])
      return emitRowError(op, "it writes to places along the rows");
    targetRows.push_back({dim, row.outer, row.size});
  }
  if (scattered) {
    if (!targetRows.empty() || !addsUp(op) || !layoutOf(target).isSum() ||
        !goToSamePlaces(op, rows))
      return emitRowError(
          op, "it writes rows to places that differ along the batch");
    return assign(op, sumOf(0));
  }
  if (failed(requireRows(op, target, targetRows)))
    return failure();
  Layout layout = Layout::of(Kind::Rows);
  layout.rows = targetRows;
  return assign(op, layout);
}

/// Whether a scatter adds updates to what is there, or puts them in its place:
/// both are linear.
static bool isLinear(stablehlo::ScatterOp op) {
  Block &body = op.getUpdateComputation().front();
  return body.getTerminator()->getOperand(0) == body.getArgument(1) ||
         isa_and_nonnull<stablehlo::AddOp>(
             stablehlo::getCombiner(op.getUpdateComputation()));
}

LogicalResult Propagation::visitScatter(stablehlo::ScatterOp op) {
  if (op.getInputs().size() != 1)
    return anyOf(op, Kind::Rows) || anyOf(op, Kind::Partial)
               ? emitRowError(op, "it scatters several tensors at once")
               : replicate(op);
  Layout into = layoutOf(op.getInputs()[0]),
         from = layoutOf(op.getUpdates()[0]),
         indices = layoutOf(op.getScatterIndices());
  if (!anyOf(op, Kind::Rows)) {
    if (indices.isWhole() && into.isSum() && from.isSum() && isLinear(op))
      return into.is(Kind::Zero) && from.is(Kind::Zero)
                 ? replicate(op)
                 : assign(op, weighted(*join(into, from)));
    for (Value operand : op->getOperands())
      if (failed(requireWhole(op, operand)))
        return failure();
    return replicate(op);
  }
  if (indices.is(Kind::Partial) &&
      failed(requireWhole(op, op.getScatterIndices())))
    return failure();
  auto dims = op.getScatterDimensionNumbers();
  RowDims indexRows = rowsOfIndices(indices, into, dims.getInputBatchingDims(),
                                    dims.getScatterIndicesBatchingDims());
  if (indexRows.empty() && from.is(Kind::Rows))
    for (const RowDim &row : from.rows)
      if (auto dim = dimOfIndices(dims.getUpdateWindowDims(),
                                  dims.getIndexVectorDim(), row.dim);
          dim && llvm::is_contained(dims.getScatterIndicesBatchingDims(), *dim))
        indexRows.push_back({*dim, row.outer, row.size});
  if (!indexRows.empty())
    return failed(requireRows(op, op.getScatterIndices(), indexRows))
               ? failure()
               : visitScatterOfRows(op, indexRows);
  return from.is(Kind::Rows) ? visitScatterOfWindows(op, from.rows)
                             : visitScatterIntoRows(op, into.rows);
}
