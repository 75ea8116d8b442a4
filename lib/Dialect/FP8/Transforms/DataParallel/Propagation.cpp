//===- Propagation.cpp - Layouts through a step ---------------------------===//

#include "Propagation.h"
#include "RowParts.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

Layout Propagation::layoutOf(Value value) const {
  Layout part = layouts.lookup(value);
  if (!part.is(Kind::Partial) || !whole.contains(value))
    return part;
  Layout layout = Layout::of(Kind::Replicated);
  layout.learned = part.learned;
  layout.mixed = part.learned;
  layout.byCount = !part.learned && part.isPlainSum();
  if (part.isPartial(Reduction::Sum) && part.isCounted && !part.isMean &&
      !part.byCount) {
    layout.isCounted = true;
    layout.elements = part.elements;
    layout.factor = part.factor;
  }
  return layout;
}

Layout Propagation::asPart(Value value) const {
  Layout layout = layoutOf(value);
  if (!layout.is(Kind::Replicated) || !layout.isCounted)
    return layout;
  layout.kind = Kind::Partial;
  layout.byCount = false;
  return layout;
}

bool Propagation::learnedOf(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return layouts.lookup(operand).learned;
  });
}

bool Propagation::isTooMixed(Operation *op, Value value) const {
  return layoutOf(value).mixed &&
         (op->getNumResults() == 0 ||
          llvm::any_of(op->getResults(),
                       [&](Value result) { return trained.contains(result); }));
}

bool Propagation::anyOf(Operation *op, Kind kind) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return layoutOf(operand).is(kind);
  });
}

LogicalResult Propagation::assign(Operation *op, Layout layout) {
  layout.learned |= learnedOf(op);
  for (Value operand : op->getOperands())
    layout.mixed |= layoutOf(operand).mixed;
  for (Value result : op->getResults())
    layouts[result] = layout;
  return success();
}

LogicalResult Propagation::replicate(Operation *op) {
  Layout layout = Layout::of(Kind::Replicated);
  // Functions of a count of rows alone are counts, too.
  for (Value operand : op->getOperands())
    layout.byCount |= layoutOf(operand).byCount;
  if (llvm::none_of(op->getOperands(),
                    [&](Value operand) { return layoutOf(operand).isCounted; }))
    return assign(op, layout);
  // A linear function of a completed sum.
  std::optional<Layout> part =
      linear(op, [&](Value value) { return asPart(value); });
  if (part && part->isMean)
    suppressErrors ? void() : divided.push_back(op);
  else if (part && part->isCounted) {
    layout.isCounted = true;
    layout.elements = part->elements;
    layout.factor = part->factor;
  }
  return assign(op, layout);
}

LogicalResult Propagation::emitRowError(Operation *op, const Twine &why) {
  // (The layout is not decided yet; the last iteration reports the error.)
  (void)assign(op, Layout());
  if (suppressErrors)
    return success();
  return op->emitOpError("expected every example to be computed from its own "
                         "row of the batch, as data parallel ranks do, but ")
         << why;
}

LogicalResult Propagation::requireWhole(Operation *op, Value value) {
  Layout layout = layoutOf(value);
  if (layout.is(Kind::Rows))
    return emitRowError(op, "it needs one value for all rows");
  if (!layout.is(Kind::Partial))
    return success();
  found = true;
  whole.insert(value);
  return success();
}

/// Returns the value of which another one is a form with more elements.
static Value beforeBroadcasts(Value value) {
  Value narrow = value;
  for (Operation *def = value.getDefiningOp();
       isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(def);
       def = def->getOperand(0).getDefiningOp())
    if (isa<stablehlo::BroadcastInDimOp>(def))
      narrow = def->getOperand(0);
  return narrow;
}

LogicalResult Propagation::requireRows(Operation *op, Value value,
                                       ArrayRef<RowDim> rows) {
  Value completed = value;
  Layout layout = layoutOf(value);
  if (layout.is(Kind::Unknown) || layout.is(Kind::Zero))
    return success();
  if (layout.is(Kind::Partial)) {
    // What is broadcast to the rows travels before.
    completed = beforeBroadcasts(value);
    if (failed(requireWhole(op, completed)))
      return failure();
    layout = layoutOf(completed);
  }
  if (layout.is(Kind::Rows)) {
    if (ArrayRef<RowDim>(layout.rows) == rows)
      return success();
    return emitRowError(op, "it combines different rows of the batch");
  }
  if (isTooMixed(op, completed))
    return emitRowError(op,
                        "it reads a value that follows from the parameters and "
                        "the rows of all ranks");
  if (completed != value) // The next run sees that both are whole.
    return success();
  if (shapeOf(value).empty() || isSameForRows(value, rows))
    return success();
  if (draws.isDrawn(value, rows)) {
    drawn.push_back({value, RowDims(rows)});
    return success();
  }
  return emitRowError(op,
                      "it reads a value that is another one for every place in "
                      "the batch, such as a position or a random number");
}

LogicalResult
Propagation::assignRows(Operation *op, ArrayRef<RowDim> rows,
                        llvm::function_ref<std::optional<int64_t>(int64_t)> map,
                        StringRef why) {
  Layout layout = Layout::of(Kind::Rows);
  for (const RowDim &row : rows) {
    std::optional<int64_t> dim = map(row.dim);
    if (!dim)
      return emitRowError(op, why);
    layout.rows.push_back({*dim, row.outer, row.size});
  }
  llvm::sort(layout.rows, [](const RowDim &a, const RowDim &b) {
    return std::tie(a.dim, a.outer) < std::tie(b.dim, b.outer);
  });
  return assign(op, layout);
}

/// Returns the layout of rows that take all of a dimension.
static Layout rowsOf(int64_t dim, int64_t size) {
  Layout layout = Layout::of(Kind::Rows);
  layout.rows.push_back({dim, 1, size});
  return layout;
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

/// Returns which extreme of two values an op computes. For booleans, `or` is
/// the maximum and `and` the minimum.
static std::optional<Reduction> extremeOf(Operation *op) {
  if (!op)
    return std::nullopt;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (element.isInteger(1)) {
    if (isa<stablehlo::OrOp>(op))
      return Reduction::Max;
    if (isa<stablehlo::AndOp>(op))
      return Reduction::Min;
    return std::nullopt;
  }
  if (element.isUnsignedInteger())
    return std::nullopt;
  if (isa<stablehlo::MaxOp>(op))
    return Reduction::Max;
  if (isa<stablehlo::MinOp>(op))
    return Reduction::Min;
  return std::nullopt;
}

bool Propagation::isFreeOfCounts(Value value) const {
  SmallVector<Value> worklist{value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second || whole.contains(next))
      continue;
    if (auto arg = dyn_cast<BlockArgument>(next)) {
      if (arg.getOwner()->getParentOp() != func)
        return false;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (op->getNumRegions() && !isa<stablehlo::ReduceOp>(op))
      return false;
    if (op->getNumOperands() == 0 && !stablehlo::isZeros(next))
      return false;
    llvm::append_range(worklist, op->getOperands());
  }
  return true;
}

/// Returns the layout of a sum that is multiplied, or divided, by a value that
/// is the same on all ranks.
std::optional<Layout>
Propagation::scaled(Operation *op,
                    llvm::function_ref<Layout(Value)> layoutOf) const {
  bool divides = isa<stablehlo::DivOp>(op);
  if (!divides && !isa<stablehlo::MulOp>(op))
    return std::nullopt;
  if (divides && !isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))
    return std::nullopt;
  for (unsigned i = 0; i < (divides ? 1u : 2u); ++i) {
    Layout result = layoutOf(op->getOperand(i));
    Value by = op->getOperand(1 - i);
    if (!result.isPartial(Reduction::Sum) || !layoutOf(by).isWhole())
      continue;
    // (What is a mean already stays one.)
    result.byCount |= layoutOf(by).byCount && !result.isMean;
    if (isFreeOfCounts(by))
      return result;
    std::optional<double> factor = getNumber(by);
    if (factor && divides)
      factor = *factor != 0 ? std::optional(1 / *factor) : std::nullopt;
    result.scale(factor, divides);
    return result;
  }
  return std::nullopt;
}

std::optional<Layout>
Propagation::linear(Operation *op,
                    llvm::function_ref<Layout(Value)> layoutOf) const {
  auto layout = [&](unsigned i) { return layoutOf(op->getOperand(i)); };
  // The maximum of a partial value and one that is the same on all ranks is
  // partial.
  if (std::optional<Reduction> extreme = extremeOf(op)) {
    Layout a = layout(0), b = layout(1);
    if (a.isPartial(*extreme) && (b.isPartial(*extreme) || b.isWhole()))
      return a;
    if (b.isPartial(*extreme) && a.isWhole())
      return b;
    return std::nullopt;
  }
  if (auto convert = dyn_cast<stablehlo::ConvertOp>(op)) {
    Type from = getElementTypeOrSelf(convert.getOperand().getType());
    Type to = getElementTypeOrSelf(convert.getType());
    bool widens = isa<IntegerType>(from) && isa<IntegerType>(to) &&
                  from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth();
    if (isa<FloatType>(to) || widens)
      return layout(0);
    return std::nullopt;
  }
  auto isSum = [](const Layout &l) {
    return l.isPartial(Reduction::Sum) || l.is(Kind::Zero);
  };
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op)) {
    if (!isSum(layout(0)) || !isSum(layout(1)))
      return std::nullopt;
    return join(layout(0), layout(1));
  }
  if (isa<stablehlo::SelectOp>(op)) {
    if (!layout(0).isWhole() || !isSum(layout(1)) || !isSum(layout(2)))
      return std::nullopt;
    return join(layout(1), layout(2));
  }
  if (isa<stablehlo::ConcatenateOp, stablehlo::DynamicUpdateSliceOp>(op)) {
    std::optional<Layout> joined = Layout();
    unsigned count =
        isa<stablehlo::ConcatenateOp>(op) ? op->getNumOperands() : 2;
    for (unsigned i = 0; i < count && joined; ++i)
      joined = isSum(layout(i)) ? join(*joined, layout(i)) : std::nullopt;
    return joined;
  }
  if (isa<stablehlo::NegOp>(op) && isSum(layout(0))) {
    Layout result = layout(0);
    result.scale(-1);
    return result;
  }
  return scaled(op, layoutOf);
}

LogicalResult Propagation::visitElementwise(Operation *op) {
  if (anyOf(op, Kind::Partial) && !anyOf(op, Kind::Rows)) {
    // A divisor must be whole; the sum that it divides may then stay partial.
    if (isa<stablehlo::DivOp>(op) &&
        failed(requireWhole(op, op->getOperand(1))))
      return failure();
    if (std::optional<Layout> layout =
            linear(op, [&](Value value) { return layoutOf(value); }))
      return assign(op, *layout);
    for (Value operand : op->getOperands())
      if (failed(requireWhole(op, operand)))
        return failure();
  }
  for (Value operand : op->getOperands()) {
    Layout layout = layoutOf(operand);
    if (!layout.is(Kind::Rows))
      continue;
    for (Value other : op->getOperands())
      if (other != operand && failed(requireRows(op, other, layout.rows)))
        return failure();
    return assign(op, layout);
  }
  bool keepsZero = isa<stablehlo::ConvertOp, stablehlo::NegOp>(op);
  if (keepsZero && layoutOf(op->getOperand(0)).is(Kind::Zero))
    return assign(op, Layout::of(Kind::Zero));
  return replicate(op);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

LogicalResult Propagation::visitShape(Operation *op) {
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
    if (from[row.dim] == to[row.dim])
      left.push_back(row);
    else if (auto part = cutRows(row, from[row.dim], to[row.dim], unit);
             part && part->size != 1 && beginsAtMultiple(op, row.dim, unit))
      left.push_back(*part);
    // A micro-batch keeps the rows along the other dimension.
    else if (to[row.dim] != 1)
      return emitRowError(op, "it cuts some of the rows");
  }
  if (left.empty())
    return emitRowError(op, "it takes single rows");
  layout.rows = left;
  return assign(op, layout);
}

LogicalResult Propagation::visitUpdate(stablehlo::DynamicUpdateSliceOp op) {
  for (Value start : op.getStartIndices())
    if (failed(requireWhole(op, start)))
      return failure();
  Layout stack = layoutOf(op.getOperand()), part = layoutOf(op.getUpdate());
  auto isSum = [](const Layout &l) {
    return l.isPartial(Reduction::Sum) || l.is(Kind::Zero);
  };
  if (isSum(stack) && isSum(part))
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
      sums &= layout.isPartial(Reduction::Sum) || layout.is(Kind::Zero);
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
    if (low == 0 && high == 0 && op.getInteriorPadding()[row.dim] == 0)
      continue;
    int64_t part = shapeOf(op.getOperand())[row.dim];
    auto whole = low < 0 || high < 0 || op.getInteriorPadding()[row.dim] != 0
                     ? std::nullopt
                     : embedRows(row, part, low + part + high, low);
    if (!whole)
      return emitRowError(op, "it pads the rows");
    row = *whole;
  }
  return assign(op, layout);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Returns the layout of a partial sum of this many elements, 0 if the number
/// is unknown.
static Layout sumOf(double elements) {
  Layout layout = Layout::of(Kind::Partial);
  layout.isCounted = true;
  layout.elements = elements;
  return layout;
}

/// Returns the layout of a partial sum, combined linearly with weights that are
/// the same on all ranks.
static Layout weighted(Layout sum) {
  sum.scale(std::nullopt);
  return sum;
}

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

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// A generator whose state belongs to the rank gives bits for the rank's own
/// rows.
LogicalResult Propagation::visitGenerator(stablehlo::RngBitGeneratorOp op) {
  if (failed(requireWhole(op, op.getInitialState())))
    return failure();
  if (!op.getInitialState().getDefiningOp<RowStateOp>())
    return replicate(op);
  (void)replicate(op);
  layouts[op.getOutput()] = rowsOf(0, shapeOf(op.getOutput())[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// Indices known at run time
//===----------------------------------------------------------------------===//

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

static bool isSum(const Layout &layout) {
  return layout.isPartial(Reduction::Sum) || layout.is(Kind::Zero);
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
  if (!addsUp(op) || !isSum(layoutOf(target)))
    return emitRowError(op,
                        "rows are written to places that others may write too, "
                        "and not added to zeros");
  return assign(op, sumOf(0));
}

/// Whether all rows of the updates go to the same indices.
static bool goToSamePlaces(stablehlo::ScatterOp op, const RowDims &rows) {
  auto dims = op.getScatterDimensionNumbers();
  return llvm::all_of(rows, [&](const RowDim &row) {
    auto dim = dimOfIndices(dims.getUpdateWindowDims(),
                            dims.getIndexVectorDim(), row.dim);
    return !dim || isSameForRows(op.getScatterIndices(),
                                 RowDim{*dim, row.outer, row.size});
  });
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
    if (!targetRows.empty() || !addsUp(op) || !isSum(layoutOf(target)) ||
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
    if (indices.isWhole() && isSum(into) && isSum(from) && isLinear(op))
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

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Updates the number of elements of a carried sum: a loop that adds to it in
/// every iteration multiplies it by the trip count; after other loops it is
/// unknown.
static void scaleCountByTrips(stablehlo::WhileOp loop, unsigned index,
                              Layout &layout) {
  if (!layout.isCounted)
    return;
  Operation *yielded =
      loop.getBody().front().getTerminator()->getOperand(index).getDefiningOp();
  if (isa_and_nonnull<stablehlo::DynamicUpdateSliceOp>(yielded))
    return;
  std::optional<stablehlo::CountedLoop> counted =
      stablehlo::matchCountedLoop(loop);
  bool adds = isa_and_nonnull<stablehlo::AddOp>(yielded) && counted &&
              llvm::is_contained(yielded->getOperands(),
                                 loop.getBody().getArgument(index));
  if (adds) {
    layout.elements *= counted->trips;
    return;
  }
  layout.elements = 0;
}

LogicalResult Propagation::visitWhile(stablehlo::WhileOp loop) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  SmallVector<Layout> carries;
  for (Value init : loop->getOperands())
    carries.push_back(layoutOf(init));
  auto turn = [&]() -> LogicalResult {
    for (auto [index, carry] : llvm::enumerate(carries)) {
      // (A reference into the map ends where the map grows.)
      layouts[cond.getArgument(index)] = carry;
      layouts[body.getArgument(index)] = carry;
    }
    return failure(failed(visitBlock(cond)) || failed(visitBlock(body)));
  };
  // Layouts only gain information from one iteration to the next, except for
  // values that become whole.
  unsigned turns = 0;
  for (bool changed = true; changed;) {
    changed = false;
    if (++turns > 64)
      return emitRowError(loop,
                          "what its values are changes from turn to turn");
    ++suppressErrors;
    LogicalResult turned = turn();
    --suppressErrors;
    if (failed(turned))
      return failure();
    for (auto [index, carry] : llvm::enumerate(carries)) {
      Value yielded = body.getTerminator()->getOperand(index);
      Value init = loop->getOperand(index);
      std::optional<Layout> both = join(carry, layoutOf(yielded));
      if (!both) {
        for (Value value : {yielded, init})
          if (layoutOf(value).is(Kind::Partial)) {
            found = true;
            whole.insert(value);
          }
        both = join(layoutOf(init), layoutOf(yielded));
        if (!both)
          return emitRowError(loop,
                              "a value of the loop is rows in one turn and a "
                              "sum over rows in another");
        changed |= true;
      }
      if (both->is(Kind::Rows) && failed(requireRows(loop, init, both->rows)))
        return failure();
      changed |= *both != carry;
      carry = *both;
    }
  }
  if (failed(turn()))
    return failure();
  // The next turn reads as rows what this one yields.
  for (auto [index, carry] : llvm::enumerate(carries))
    if (carry.is(Kind::Rows) &&
        failed(requireRows(loop, body.getTerminator()->getOperand(index),
                           carry.rows)))
      return failure();
  if (failed(requireWhole(loop, cond.getTerminator()->getOperand(0))))
    return failure();
  for (auto [index, result] : llvm::enumerate(loop->getResults())) {
    Layout layout = carries[index];
    scaleCountByTrips(loop, index, layout);
    layouts[result] = layout;
  }
  return success();
}

LogicalResult Propagation::visitBranches(Operation *op) {
  if (failed(requireWhole(op, op->getOperand(0))))
    return failure();
  for (Region &region : op->getRegions())
    if (failed(visitBlock(region.front())))
      return failure();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    auto yielded = [&, index = index](Region &region) {
      return region.front().getTerminator()->getOperand(index);
    };
    Layout layout;
    bool agree = true;
    for (Region &region : op->getRegions()) {
      std::optional<Layout> both = join(layout, layoutOf(yielded(region)));
      agree &= both.has_value();
      if (both)
        layout = *both;
    }
    if (!agree) {
      layout = Layout();
      for (Region &region : op->getRegions()) {
        if (failed(requireWhole(op, yielded(region))))
          return failure();
        layout = join(layout, layoutOf(yielded(region))).value_or(layout);
      }
    }
    if (layout.is(Kind::Rows))
      for (Region &region : op->getRegions())
        if (failed(requireRows(op, yielded(region), layout.rows)))
          return failure();
    layouts[result] = layout;
  }
  return success();
}

LogicalResult Propagation::visitReturn(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (layoutOf(operand.get()).is(Kind::Rows)) {
      auto path = func.getResultAttrOfType<StringAttr>(
          operand.getOperandNumber(), kPathAttr);
      return emitRowError(op, "the result '" +
                                  (path ? path.getValue() : StringRef("?")) +
                                  "' is another one for every row");
    }
    if (failed(requireWhole(op, operand.get())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult Propagation::visitByKind(Operation *op) {
  if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp,
          stablehlo::BroadcastInDimOp, stablehlo::ReverseOp>(op))
    return visitShape(op);
  if (auto windows = dyn_cast<WindowsOp>(op))
    return visitWindows(windows);
  if (isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(op))
    return visitSlices(op);
  if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(op))
    return visitUpdate(update);
  if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op))
    return visitConcatenate(concatenate);
  if (auto pad = dyn_cast<stablehlo::PadOp>(op))
    return visitPad(pad);
  if (auto iota = dyn_cast<RowIotaOp>(op)) {
    auto dim = static_cast<int64_t>(iota.getDim());
    return assign(op, rowsOf(dim, iota.getType().getDimSize(dim)));
  }
  if (isa<RowStateOp>(op))
    return replicate(op);
  if (auto generator = dyn_cast<stablehlo::RngBitGeneratorOp>(op))
    return visitGenerator(generator);
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op))
    return visitDot(dot);
  if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op))
    return visitConvolution(convolution);
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op))
    return visitReduce(reduce);
  if (auto gather = dyn_cast<stablehlo::GatherOp>(op))
    return visitGather(gather);
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op))
    return visitScatter(scatter);
  if (std::optional<int64_t> along = sortedDim(op))
    return visitSort(op, *along);
  if (auto windows = dyn_cast<stablehlo::ReduceWindowOp>(op))
    return visitWindows(op, windows.getWindowDimensions());
  if (isa<stablehlo::BitcastConvertOp>(op))
    return visitAlongRows(
        op,
        [&](int64_t dim) {
          return dim < static_cast<int64_t>(shapeOf(op->getResult(0)).size());
        },
        "it joins rows to one number");
  if (stablehlo::worksByElement(op))
    return visitElementwise(op);
  for (Value operand : op->getOperands()) {
    if (layoutOf(operand).is(Kind::Rows))
      return emitRowError(op, "what this op does with rows is not known");
    if (failed(requireWhole(op, operand)))
      return failure();
  }
  return replicate(op);
}

LogicalResult Propagation::visit(Operation *op) {
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return visitWhile(loop);
  if (stablehlo::isBranch(op))
    return visitBranches(op);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return visitReturn(ret);
  if (isa<stablehlo::ReturnOp>(op))
    return success();
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    for (auto [operand, result] :
         llvm::zip_equal(op->getOperands(), op->getResults()))
      layouts[result] = layoutOf(operand);
    return success();
  }
  DenseElementsAttr elements;
  if (op->getNumResults() == 1 &&
      matchPattern(op->getResult(0), m_Constant(&elements))) {
    bool zero = getNumber(op->getResult(0)) == 0;
    return assign(op, Layout::of(zero ? Kind::Zero : Kind::Replicated));
  }
  // Some layouts are unknown in the first iteration over a loop.
  if (anyOf(op, Kind::Unknown))
    return assign(op, Layout());
  return visitByKind(op);
}

LogicalResult Propagation::visitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult Propagation::run(bool isQuiet) {
  found = false;
  drawn.clear();
  divided.clear();
  suppressErrors = isQuiet;
  return visitBlock(func.getBody().front());
}

bool Propagation::drawForRows() {
  for (const auto &[value, rows] : drawn)
    draws.draw(value, rows);
  return !drawn.empty();
}
