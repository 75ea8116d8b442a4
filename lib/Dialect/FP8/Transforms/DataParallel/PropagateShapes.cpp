//===- PropagateShapes.cpp - Layouts through ops that move elements -------===//

#include "Propagation.h"
#include "RowParts.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

LogicalResult Propagation::visitShape(Operation *op) {
  if (gathers.contains(op))
    return assign(op, Layout::of(Kind::Replicated));
  Layout layout = parts.contains(op) ? partOf(op->getOperand(0))
                                     : layoutOf(op->getOperand(0));
  if (!layout.is(Kind::Rows))
    return assign(op, layout);
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op)) {
    std::optional<RowDims> rows =
        reshapeRows(layout.rows, shapeOf(reshape.getOperand()),
                    shapeOf(reshape.getResult()));
    if (!rows)
      return emitRowError(
          op, "it joins rows and other indices to one dimension and "
              "cuts that elsewhere");
    if (batch == BatchOf::AllRanks && rows->size() > layout.rows.size())
      return emitCut(op);
    layout.rows = *rows;
    return assign(op, layout);
  }
  auto map = [&](int64_t dim) -> std::optional<int64_t> {
    if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op))
      return positionIn(transpose.getPermutation(), dim);
    if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op))
      return broadcast.getBroadcastDimensions()[dim];
    if (auto reverse = dyn_cast<stablehlo::ReverseOp>(op);
        reverse && llvm::is_contained(reverse.getDimensions(), dim))
      return std::nullopt;
    return dim;
  };
  return assignRows(op, layout.rows, map, "it reverses the rows");
}

LogicalResult Propagation::visitWindows(WindowsOp op) {
  Layout layout = layoutOf(op.getInput());
  if (!layout.is(Kind::Rows))
    return assign(op, layout);
  return assignRows(
      op, layout.rows,
      [&](int64_t dim) {
        return llvm::is_contained(op.getDims(), dim)
                   ? std::nullopt
                   : std::optional(op.getResultDim(dim));
      },
      "it is a convolution over rows");
}

/// Whether a slice takes every n-th element of the groups that rows are, the
/// same ones of each.
static bool takesOfEachRow(Operation *op, const RowDim &row) {
  auto slice = dyn_cast<stablehlo::SliceOp>(op);
  if (!slice)
    return false;
  int64_t extent = shapeOf(slice.getOperand())[row.dim];
  int64_t inner = extent / (row.outer * row.size);
  int64_t stride = slice.getStrides()[row.dim];
  return stride > 1 && inner % stride == 0 &&
         slice.getStartIndices()[row.dim] < stride &&
         shapeOf(slice)[row.dim] == extent / stride;
}

/// Whether a slice takes adjacent elements of a dimension, from a multiple of
/// `unit` on.
static bool beginsAtMultiple(Operation *op, int64_t dim, int64_t unit) {
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op))
    return slice.getStrides()[dim] == 1 &&
           slice.getStartIndices()[dim] % unit == 0;
  return isMultipleOf(op->getOperand(1 + dim), unit);
}

LogicalResult Propagation::visitSlices(Operation *op) {
  Layout layout = layoutOf(op->getOperand(0));
  for (Value start : op->getOperands().drop_front())
    if (failed(requireWhole(op, start)))
      return failure();
  if (!layout.is(Kind::Rows))
    return assign(op, layout);
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0)),
                    to = shapeOf(op->getResult(0));
  RowDims left;
  for (const RowDim &row : layout.rows) {
    int64_t unit = 1;
    if (from[row.dim] == to[row.dim] || takesOfEachRow(op, row)) {
      left.push_back(row);
    } else if (auto part = cutRows(row, from[row.dim], to[row.dim], unit);
               part && part->size != 1 && beginsAtMultiple(op, row.dim, unit)) {
      if (batch == BatchOf::AllRanks && part->size != row.size)
        return emitCut(op);
      left.push_back(*part);
    }
    // A micro-batch keeps the rows along the other dimension.
    else if (to[row.dim] != 1)
      return emitRowError(op, "it cuts some of the rows");
  }
  if (left.empty()) {
    std::optional<LayerSlot> turn = matchOneRow(op, layout.rows);
    if (!turn)
      return emitRowError(op, "it takes single rows");
    for (auto [dim, start] : llvm::enumerate(op->getOperands().drop_front()))
      if (static_cast<int64_t>(dim) != layout.rows[0].dim &&
          failed(requireRow(op, start, *turn)))
        return failure();
    layout.turn = turn;
  }
  layout.rows = left;
  return assign(op, layout);
}

LogicalResult Propagation::visitUpdate(stablehlo::DynamicUpdateSliceOp op) {
  for (Value start : op.getStartIndices())
    if (failed(requireWhole(op, start)))
      return failure();
  Layout stack = layoutOf(op.getOperand()), part = layoutOf(op.getUpdate());
  if (stack.isSum() && part.isSum())
    return assign(op, *join(stack, part));
  if (!stack.is(Kind::Rows) && !part.is(Kind::Rows)) {
    if (failed(requireWhole(op, op.getOperand())) ||
        failed(requireWhole(op, op.getUpdate())))
      return failure();
    return replicate(op);
  }
  RowDims rows = part.is(Kind::Rows) ? part.rows : stack.rows;
  for (const RowDim &row : rows)
    if (shapeOf(op.getOperand())[row.dim] != shapeOf(op.getUpdate())[row.dim])
      return emitRowError(op, "it writes to places along the rows");
  if (failed(requireRows(op, op.getOperand(), rows)) ||
      failed(requireRows(op, op.getUpdate(), rows)))
    return failure();
  Layout layout = Layout::of(Kind::Rows);
  layout.rows = rows;
  return assign(op, layout);
}

static bool isAlong(ArrayRef<RowDim> rows, int64_t dim) {
  return llvm::any_of(rows, [&](const RowDim &row) { return row.dim == dim; });
}

LogicalResult Propagation::emitBesideRows(Operation *op) {
  return emitRowError(op, "it puts other elements beside the rows");
}

LogicalResult Propagation::visitConcatenate(stablehlo::ConcatenateOp op) {
  if (!anyOf(op, Kind::Rows)) {
    Layout joined;
    bool sums = true;
    for (Value operand : op->getOperands()) {
      Layout layout = layoutOf(operand);
      sums &= layout.isSum();
      if (std::optional<Layout> both = join(joined, layout); both && sums)
        joined = *both;
    }
    if (sums)
      return assign(op, joined);
    for (Value operand : op->getOperands())
      if (failed(requireWhole(op, operand)))
        return failure();
    return replicate(op);
  }
  Value first = *llvm::find_if(op->getOperands(), [&](Value operand) {
    return layoutOf(operand).is(Kind::Rows);
  });
  RowDims rows = layoutOf(first).rows;
  int64_t along = op.getDimension();
  for (Value other : op->getOperands()) {
    // Copies of the rows beside each other, of the same number of elements.
    bool isCopy = shapeOf(other)[along] == shapeOf(first)[along];
    if (failed(isCopy || !isAlong(rows, along) ? requireRows(op, other, rows)
                                               : emitBesideRows(op)))
      return failure();
  }
  for (RowDim &row : rows)
    if (row.dim == along) {
      auto whole = embedRows(row, shapeOf(first)[along],
                             shapeOf(op.getResult())[along], 0);
      if (!whole)
        return emitBesideRows(op);
      row = *whole;
    }
  Layout layout = Layout::of(Kind::Rows);
  layout.rows = rows;
  return assign(op, layout);
}

LogicalResult Propagation::visitPad(stablehlo::PadOp op) {
  Layout layout = layoutOf(op.getOperand());
  Layout padding = layoutOf(op.getPaddingValue());
  if (layout.isPartial(Reduction::Sum) && padding.is(Kind::Zero))
    return assign(op, layout);
  if (failed(requireWhole(op, op.getPaddingValue())))
    return failure();
  if (!layout.is(Kind::Rows)) {
    if (failed(requireWhole(op, op.getOperand())))
      return failure();
    return layout.is(Kind::Zero) && padding.is(Kind::Zero) ? assign(op, layout)
                                                           : replicate(op);
  }
  // (The gradient of a part of what is put beside each other is padded.)
  for (RowDim &row : layout.rows) {
    int64_t low = op.getEdgePaddingLow()[row.dim],
            high = op.getEdgePaddingHigh()[row.dim];
    int64_t between = op.getInteriorPadding()[row.dim];
    if (low == 0 && high == 0 && between == 0)
      continue;
    // (Or of every n-th element of each row.)
    if (between > 0 && low >= 0 && high >= 0 && low + high == between)
      continue;
    int64_t part = shapeOf(op.getOperand())[row.dim];
    auto whole = low < 0 || high < 0 || between != 0
                     ? std::nullopt
                     : embedRows(row, part, low + part + high, low);
    if (!whole)
      return emitRowError(op, "it pads the rows");
    row = *whole;
  }
  return assign(op, layout);
}

/// Handles ops whose operands all have the same rows. The op keeps the
/// dimensions for which `keeps` returns true.
LogicalResult Propagation::visitAlongRows(
    Operation *op, llvm::function_ref<bool(int64_t)> keeps, StringRef why) {
  RowDims rows;
  for (Value operand : op->getOperands())
    if (Layout layout = layoutOf(operand); layout.is(Kind::Rows))
      rows = layout.rows;
  for (Value operand : op->getOperands())
    if (failed(rows.empty() ? requireWhole(op, operand)
                            : requireRows(op, operand, rows)))
      return failure();
  if (rows.empty())
    return replicate(op);
  return assignRows(
      op, rows,
      [&](int64_t dim) {
        return keeps(dim) ? std::optional(dim) : std::nullopt;
      },
      why);
}

/// Handles ops that sort along a dimension, in each row independently.
LogicalResult Propagation::visitSort(Operation *op, int64_t along) {
  return visitAlongRows(
      op, [&](int64_t other) { return other != along; },
      "it puts the rows in an order, and no median or other quantile of all "
      "rows follows from those of each rank");
}

/// Handles ops on windows, none of which may contain several rows.
LogicalResult Propagation::visitWindows(Operation *op,
                                        ArrayRef<int64_t> window) {
  auto keeps = [&](int64_t dim) {
    return dim < static_cast<int64_t>(window.size()) && window[dim] == 1 &&
           shapeOf(op->getResult(0))[dim] == shapeOf(op->getOperand(0))[dim];
  };
  return visitAlongRows(op, keeps, "its windows hold several rows");
}
