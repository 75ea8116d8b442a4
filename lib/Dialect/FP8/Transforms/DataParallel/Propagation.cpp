//===- Propagation.cpp - Layouts through a step ---------------------------===//
//
// What it does at loops and branches and at ops that move or combine rows is in
// the files Propagate*.cpp.
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

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

/// (If the batch is that of all ranks, sums over it are those of one process,
/// and their gradients are, too.)
bool Propagation::isTooMixed(Operation *op, Value value) const {
  return batch == BatchOf::OneRank && layoutOf(value).mixed &&
         (op->getNumResults() == 0 ||
          llvm::any_of(op->getResults(),
                       [&](Value result) { return trained.contains(result); }));
}

/// Whether a value is a parameter, another form or a part of one, or one to
/// which something was added: what an update makes.
static bool isParameter(Value value,
                        llvm::function_ref<bool(BlockArgument)> isLearned) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    unsigned index = 0;
    if (auto arg = dyn_cast<BlockArgument>(next)) {
      op = arg.getOwner()->getParentOp();
      index = arg.getArgNumber();
      if (isa<func::FuncOp>(op)) {
        if (isLearned(arg))
          return true;
        continue;
      }
    } else {
      index = cast<OpResult>(next).getResultNumber();
    }
    if (isa<stablehlo::WhileOp, stablehlo::OptimizationBarrierOp>(op))
      worklist.push_back(op->getOperand(index));
    else if (isa<stablehlo::AddOp>(op))
      llvm::append_range(worklist, op->getOperands());
    else if (isa<stablehlo::SelectOp>(op))
      llvm::append_range(worklist, op->getOperands().drop_front());
    else if (isa<stablehlo::SubtractOp, stablehlo::ConvertOp,
                 stablehlo::ReshapeOp, stablehlo::TransposeOp,
                 stablehlo::SliceOp, stablehlo::DynamicSliceOp>(op))
      worklist.push_back(op->getOperand(0));
  }
  return false;
}

bool Propagation::followsParameter(Value value) const {
  return isParameter(
      value, [&](BlockArgument arg) { return layouts.lookup(arg).learned; });
}

bool Propagation::isMixed(Operation *op) const {
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return layoutOf(operand).mixed; });
}

bool Propagation::isUpdate(Value value) const {
  Layout layout = layoutOf(value);
  Operation *op = value.getDefiningOp();
  return op && layout.is(Kind::Replicated) && !layout.mixed && isMixed(op);
}

bool Propagation::anyOf(Operation *op, Kind kind) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return layoutOf(operand).is(kind);
  });
}

LogicalResult Propagation::assign(Operation *op, Layout layout) {
  layout.learned |= learnedOf(op);
  layout.mixed |= isMixed(op);
  // (No gradient flows back through a new parameter, unless through sums that
  // are mixed themselves.)
  if (layout.mixed && layout.is(Kind::Replicated) && op->getNumResults() == 1)
    layout.mixed = !followsParameter(op->getResult(0));
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

void Propagation::set(BlockArgument arg, const Layout &layout) {
  layouts[arg] = layout;
  if (!layout.is(Kind::Rows))
    return;
  int64_t rows = layout.rows.size() == 1 ? layout.rows.front().size : 0;
  allRows = allRows.value_or(rows) == rows ? rows : 0;
}

/// Whether a dimension has all rows of a batch that ranks share, in its order:
/// those of a rank are then together, and each knows where its own are.
bool Propagation::areInOrder(ArrayRef<RowDim> rows) const {
  return batch == BatchOf::AllRanks && rows.size() == 1 && allRows &&
         rows.front().size == *allRows;
}

/// Whether an op that needs rows of other ranks may read those of all.
bool Propagation::canGather(Operation *op) const {
  bool isRegion = isa<stablehlo::WhileOp>(op) || stablehlo::isBranch(op);
  return !isRegion && anyOf(op, Kind::Rows) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           Layout layout = layoutOf(operand);
           return !layout.is(Kind::Rows) ||
                  (!layout.turn && areInOrder(layout.rows));
         });
}

LogicalResult Propagation::emitRowError(Operation *op, const Twine &why) {
  // (The layout is not decided yet; the last iteration reports the error.)
  (void)assign(op, Layout());
  if (suppressErrors)
    return success();
  if (canGather(op)) {
    ungathered = op;
    return failure();
  }
  return op->emitOpError("expected every example to be computed from its own "
                         "row of the batch, as data parallel ranks do, but ")
         << why;
}

LogicalResult Propagation::emitCut(Operation *op) {
  (void)assign(op, Layout());
  if (suppressErrors)
    return success();
  cut = true;
  return op->emitOpError("expected the leading dimension of a batch that ranks "
                         "share to be cut into equal parts, of each of which a "
                         "rank has some rows, but it cuts the rows differently "
                         "from other operations");
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

void Propagation::shareOperand(Operation *op, Value value,
                               ArrayRef<RowDim> rows) {
  // (What enters and leaves regions is found at their values.)
  if (suppressErrors || shapeOf(value).empty() || isa<stablehlo::WhileOp>(op) ||
      stablehlo::isBranch(op))
    return;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == value)
      shared[&operand] = RowDims(rows);
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
  if (layout.is(Kind::Zero))
    shareOperand(op, value, rows);
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
  if (shapeOf(value).empty() || isSameForRows(value, rows)) {
    shareOperand(op, value, rows);
    return success();
  }
  if (draws.isDrawn(value, rows)) {
    drawn.push_back({value, RowDims(rows)});
    return success();
  }
  if (areInOrder(rows)) {
    shareOperand(op, value, rows);
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

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

std::optional<Reduction> fp8::extremeOf(Operation *op) {
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
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op)) {
    if (!layout(0).isSum() || !layout(1).isSum())
      return std::nullopt;
    return join(layout(0), layout(1));
  }
  if (isa<stablehlo::SelectOp>(op)) {
    if (!layout(0).isWhole() || !layout(1).isSum() || !layout(2).isSum())
      return std::nullopt;
    return join(layout(1), layout(2));
  }
  if (isa<stablehlo::ConcatenateOp, stablehlo::DynamicUpdateSliceOp>(op)) {
    std::optional<Layout> joined = Layout();
    unsigned count =
        isa<stablehlo::ConcatenateOp>(op) ? op->getNumOperands() : 2;
    for (unsigned i = 0; i < count && joined; ++i)
      joined = layout(i).isSum() ? join(*joined, layout(i)) : std::nullopt;
    return joined;
  }
  if (isa<stablehlo::NegOp>(op) && layout(0).isSum()) {
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
// Random numbers
//===----------------------------------------------------------------------===//

/// Returns the layout of rows that take all of a dimension.
static Layout rowsOf(int64_t dim, int64_t size) {
  Layout layout = Layout::of(Kind::Rows);
  layout.rows.push_back({dim, 1, size});
  return layout;
}

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
// The walk
//===----------------------------------------------------------------------===//

bool fp8::isOutput(OpOperand &operand) {
  auto end = dyn_cast<func::ReturnOp>(operand.getOwner());
  if (!end)
    return false;
  auto kind =
      end->getParentOfType<func::FuncOp>().getResultAttrOfType<StringAttr>(
          operand.getOperandNumber(), FP8Dialect::kKindAttrName);
  return kind && kind.getValue() == stringifyEnum(ResultKind::Output);
}

LogicalResult Propagation::visitReturn(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (Layout layout = layoutOf(operand.get()); layout.is(Kind::Rows)) {
      if (isOutput(operand) && !layout.turn)
        continue;
      auto path = func.getResultAttrOfType<StringAttr>(
          operand.getOperandNumber(), FP8Dialect::kPathAttrName);
      return emitRowError(op, "the result '" +
                                  (path ? path.getValue() : StringRef("?")) +
                                  "' is another one for every row");
    }
    if (failed(requireWhole(op, operand.get())))
      return failure();
  }
  return success();
}

LogicalResult Propagation::visitByKind(Operation *op) {
  for (Value operand : op->getOperands())
    if (Layout layout = layoutOf(operand); layout.turn)
      return visitOneRow(op, *layout.turn);
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
  if (auto pool = dyn_cast<stablehlo::SelectAndScatterOp>(op))
    return visitWindows(op, stablehlo::orOnes(pool.getWindowDimensions(),
                                              pool.getType().getRank()));
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
  ungathered = nullptr;
  drawn.clear();
  divided.clear();
  shared.clear();
  suppressErrors = isQuiet;
  return visitBlock(func.getBody().front());
}

FailureOr<bool> Propagation::drawForRows() {
  bool changed = false;
  for (const auto &[value, rows] : drawn)
    changed |= draws.draw(value, rows);
  if (!changed && !drawn.empty())
    return emitError(drawn.front().first.getLoc())
           << "expected random numbers for rows that a rank can draw for its "
              "own rows but found nothing in them that counts the rows";
  return changed;
}
