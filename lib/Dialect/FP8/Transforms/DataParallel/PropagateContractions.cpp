//===- PropagateContractions.cpp - Layouts through dots and reductions ----===//

#include "Propagation.h"

#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

/// Visits a dot none of whose operands has rows.
LogicalResult Propagation::visitDotWithoutRows(stablehlo::DotGeneralOp op) {
  Layout sides[] = {layoutOf(op.getLhs()), layoutOf(op.getRhs())};
  for (unsigned i : {0u, 1u})
    if (sides[i].isPartial(Reduction::Sum) && sides[1 - i].isWhole()) {
      Layout layout = weighted(sides[i]);
      layout.byCount |= sides[1 - i].byCount;
      return assign(op, layout);
    }
  if (failed(requireWhole(op, op.getLhs())) ||
      failed(requireWhole(op, op.getRhs())))
    return failure();
  return replicate(op);
}

namespace {
/// What a dot does with the rows of one operand.
struct DotRows {
  /// Those that the other operand must have, and those of the result.
  RowDims matching, result;
  /// How many are contracted, and how many are free.
  unsigned contracted = 0, free = 0;
};
} // namespace

static DotRows matchRows(stablehlo::DotGeneralOp op, unsigned side,
                         ArrayRef<RowDim> rows) {
  stablehlo::OperandDims own = stablehlo::getOperandDims(op, side);
  stablehlo::OperandDims other = stablehlo::getOperandDims(op, 1 - side);
  SmallVector<int64_t> inResult = stablehlo::getResultDims(op, side);
  DotRows found;
  for (const RowDim &row : rows) {
    if (auto at = positionIn(own.contracting, row.dim)) {
      ++found.contracted;
      found.matching.push_back({other.contracting[*at], row.outer, row.size});
      continue;
    }
    if (auto at = positionIn(own.batching, row.dim))
      found.matching.push_back({other.batching[*at], row.outer, row.size});
    else
      ++found.free;
    found.result.push_back({inResult[row.dim], row.outer, row.size});
  }
  for (RowDims *each : {&found.matching, &found.result})
    llvm::sort(*each, [](const RowDim &a, const RowDim &b) {
      return std::tie(a.dim, a.outer) < std::tie(b.dim, b.outer);
    });
  return found;
}

LogicalResult Propagation::visitDot(stablehlo::DotGeneralOp op) {
  if (!anyOf(op, Kind::Rows))
    return visitDotWithoutRows(op);
  unsigned side = layoutOf(op.getLhs()).is(Kind::Rows) ? 0 : 1;
  Layout own = layoutOf(op->getOperand(side));
  Value otherValue = op->getOperand(1 - side);
  Layout other = layoutOf(otherValue);
  DotRows rows = matchRows(op, side, own.rows);
  bool bothRows = other.is(Kind::Rows);
  if ((rows.free && bothRows) || (rows.free && rows.contracted) ||
      (rows.contracted && rows.contracted != own.rows.size()))
    return emitRowError(op, "it contracts rows with other rows");
  if ((!rows.matching.empty() || bothRows || other.is(Kind::Partial)) &&
      failed(requireRows(op, otherValue, rows.matching)))
    return failure();
  if (isTooMixed(op, otherValue))
    return emitRowError(op,
                        "it reads a value that follows from the parameters and "
                        "the rows of all ranks");
  if (rows.contracted) {
    double elements = 1;
    for (int64_t dim : stablehlo::getOperandDims(op, 0).contracting)
      elements *= shapeOf(op.getLhs())[dim];
    return assign(op, sumOf(elements));
  }
  Layout layout = Layout::of(Kind::Rows);
  layout.rows = rows.result;
  return assign(op, layout);
}

LogicalResult Propagation::visitConvolution(stablehlo::ConvolutionOp op) {
  if (!anyOf(op, Kind::Rows)) {
    Layout a = layoutOf(op.getLhs()), b = layoutOf(op.getRhs());
    if (a.isPartial(Reduction::Sum) && b.isWhole())
      return assign(op, weighted(a));
    if (b.isPartial(Reduction::Sum) && a.isWhole())
      return assign(op, weighted(b));
    for (Value operand : op->getOperands())
      if (failed(requireWhole(op, operand)))
        return failure();
    return replicate(op);
  }
  auto dims = op.getDimensionNumbers();
  Layout lhs = layoutOf(op.getLhs()), rhs = layoutOf(op.getRhs());
  auto isRow = [](const Layout &layout, int64_t dim) {
    return layout.is(Kind::Rows) && layout.rows.size() == 1 &&
           layout.rows[0].dim == dim && layout.rows[0].outer == 1;
  };
  if (isRow(lhs, dims.getInputBatchDimension()) && rhs.isWhole() &&
      !isTooMixed(op, op.getRhs()) && op.getBatchGroupCount() == 1) {
    Layout layout = lhs;
    layout.rows[0].dim = dims.getOutputBatchDimension();
    return assign(op, layout);
  }
  // The gradient of a convolution's kernel: rows are features here, and are
  // contracted.
  if (isRow(lhs, dims.getInputFeatureDimension()) &&
      isRow(rhs, dims.getKernelInputFeatureDimension()) &&
      lhs.rows[0].size == rhs.rows[0].size && op.getFeatureGroupCount() == 1)
    return assign(op, sumOf(0));
  return emitRowError(
      op, "it is a convolution over rows, or with rows as its kernel");
}

LogicalResult Propagation::visitReduce(stablehlo::ReduceOp op) {
  for (Value init : op.getInitValues())
    if (failed(requireWhole(op, init)))
      return failure();
  Operation *combiner = stablehlo::getCombiner(op.getBody());
  Layout input = layoutOf(op.getInputs()[0]);
  double elements = 1;
  for (int64_t dim : op.getDimensions())
    elements *= shapeOf(op.getInputs()[0])[dim];
  if (!anyOf(op, Kind::Rows)) {
    bool sum = isa_and_nonnull<stablehlo::AddOp>(combiner) &&
               layoutOf(op.getInitValues()[0]).is(Kind::Zero);
    std::optional<Reduction> extreme = extremeOf(combiner);
    bool same = extreme && input.isPartial(*extreme);
    if (sum && (input.isPartial(Reduction::Sum) || input.isCounted)) {
      input.elements *= elements;
      return assign(op, input);
    }
    if (same)
      return assign(op, input);
    for (Value operand : op.getInputs())
      if (failed(requireWhole(op, operand)))
        return failure();
    return replicate(op);
  }
  RowDims rows;
  for (Value value : op.getInputs())
    if (Layout layout = layoutOf(value); layout.is(Kind::Rows))
      rows = layout.rows;
  for (Value value : op.getInputs())
    if (failed(requireRows(op, value, rows)))
      return failure();
  unsigned reduced = llvm::count_if(rows, [&](const RowDim &row) {
    return llvm::is_contained(op.getDimensions(), row.dim);
  });
  if (reduced == 0)
    return assignRows(
        op, rows,
        [&](int64_t dim) {
          return std::optional<int64_t>(
              dim - llvm::count_if(op.getDimensions(),
                                   [&](int64_t d) { return d < dim; }));
        },
        "");
  if (reduced != rows.size())
    return emitRowError(
        op, "it reduces some of the rows, not all of a micro-batch");
  if (isa_and_nonnull<stablehlo::AddOp>(combiner)) {
    if (!layoutOf(op.getInitValues()[0]).is(Kind::Zero))
      return emitRowError(op, "its sum over rows does not begin at zero");
    return assign(op, sumOf(elements));
  }
  if (std::optional<Reduction> extreme = extremeOf(combiner)) {
    Layout layout = Layout::of(Kind::Partial);
    layout.reduction = *extreme;
    return assign(op, layout);
  }
  return emitRowError(op,
                      "it reduces the rows by something else than a sum, a "
                      "maximum, a minimum, or the and or the or of booleans");
}
