//===- ExtendRows.cpp - Losses of a slice of the rows ---------------------===//

#include "ExtendRows.h"

#include "LogitRows.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;
using stablehlo::PadOp;

namespace {

/// Replaces ops on some rows by ops on all of them.
class RowExtension {
public:
  explicit RowExtension(Operation *start) : start(start) {}
  bool extendSlice();
  Dot extendDot(int64_t rowDim, int64_t allRows);

private:
  bool matchSlice(stablehlo::SliceOp slice);
  void collect();
  bool isLarge(Value value) const;
  bool isPadOfRows(Operation *op) const;
  bool canExtend() const;
  int64_t stepOf(Value value, int64_t dim) const;
  RankedTensorType typeOf(Value value, int64_t dim) const;

  Value extend(Value value, const RowDim &rows, OpBuilder &builder);
  Value compute(Value value, const RowDim &rows, OpBuilder &builder);
  Value pad(Value value, int64_t dim, OpBuilder &builder) const;
  bool hasOtherRowsOfZeros(Value value, int64_t dim) const;
  Value mask(Value value, int64_t dim, Value other, OpBuilder &builder) const;
  Operation *clone(Operation *op, const RowWork &work, OpBuilder &builder);
  void replace(Operation *op, const RowWork &work);
  void replacePad(PadOp pad);

  int64_t countElements() const {
    return tensorOf(start->getResult(0)).getNumElements();
  }
  bool findOps();
  void run();

  /// The op whose result has too few rows: a slice or a dot.
  Operation *start;
  /// Its rows: `extent` from `first` on, of `all`.
  int64_t dim = -1, first = 0, extent = 0, all = 0;
  DenseMap<Value, RowDim> rowsOf;
  /// The ops on the slice, in program order; pads have no work.
  llvm::MapVector<Operation *, std::optional<RowWork>> ops;
  /// The extended values, by the dimension of their rows.
  DenseMap<std::pair<Value, int64_t>, Value> known;
};

} // namespace

//===----------------------------------------------------------------------===//
// The ops on the slice
//===----------------------------------------------------------------------===//

/// Whether the slice leaves out indices of one dimension alone.
bool RowExtension::matchSlice(stablehlo::SliceOp slice) {
  ArrayRef<int64_t> from = shapeOf(slice.getOperand()),
                    to = shapeOf(slice.getResult());
  for (auto [i, size] : llvm::enumerate(from)) {
    if (slice.getStrides()[i] != 1 || to[i] == 0)
      return false;
    if (size == to[i])
      continue;
    if (dim >= 0)
      return false;
    dim = i;
    first = slice.getStartIndices()[i];
    extent = to[i];
    all = size;
  }
  return dim >= 0 && extent > 1;
}

bool RowExtension::isLarge(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && rowsOf.contains(value) &&
         type.getNumElements() >= countElements() / 4;
}

/// Whether an op adds rows to those of the slice so that they are all again, as
/// the gradient of the slice does.
bool RowExtension::isPadOfRows(Operation *op) const {
  auto pad = dyn_cast<PadOp>(op);
  auto rows = pad ? rowsOf.find(pad.getOperand()) : rowsOf.end();
  if (rows == rowsOf.end())
    return false;
  for (auto [i, size] : llvm::enumerate(shapeOf(pad.getOperand()))) {
    bool isRows = static_cast<int64_t>(i) == rows->second.dim;
    int64_t step = isRows ? stepOf(pad.getOperand(), rows->second.dim) : 0;
    if (pad.getEdgePaddingLow()[i] != first * step ||
        pad.getEdgePaddingHigh()[i] != (all - extent - first) * step ||
        pad.getInteriorPadding()[i] != 0)
      return false;
  }
  return true;
}

/// Finds the ops that read large values with the rows of the slice, and those
/// that lead to them.
void RowExtension::collect() {
  rowsOf[start->getResult(0)] = {dim, 1, extent};
  for (Operation *op = start->getNextNode(); op; op = op->getNextNode()) {
    if (llvm::none_of(op->getOperands(),
                      [&](Value value) { return rowsOf.contains(value); }))
      continue;
    if (isPadOfRows(op)) {
      ops.insert({op, std::nullopt});
      continue;
    }
    std::optional<RowWork> work = matchRowWork(op, extent, rowsOf);
    if (!work)
      continue;
    if (work->results && !isa<Dot>(op))
      for (Value result : op->getResults())
        rowsOf[result] = *work->results;
    ops.insert({op, std::move(work)});
  }
  DenseSet<Operation *> needed;
  for (auto &[op, work] : llvm::reverse(ops))
    if (llvm::any_of(op->getOperands(),
                     [&](Value value) { return isLarge(value); }) ||
        llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return needed.contains(user); }))
      needed.insert(op);
  ops.remove_if([&](auto &entry) { return !needed.contains(entry.first); });
}

/// Whether only these ops read large values of the slice.
bool RowExtension::canExtend() const {
  auto isReadInside = [&](Value value) {
    return !isLarge(value) ||
           llvm::all_of(value.getUsers(),
                        [&](Operation *op) { return ops.contains(op); });
  };
  return isReadInside(start->getResult(0)) &&
         llvm::all_of(ops, [&](const auto &entry) {
           return llvm::all_of(entry.first->getResults(), isReadInside);
         });
}

//===----------------------------------------------------------------------===//
// Values of all rows
//===----------------------------------------------------------------------===//

/// Returns the number of indices for one row: more than one if a reshape has
/// merged the rows with the dimensions behind them.
int64_t RowExtension::stepOf(Value value, int64_t dim) const {
  return shapeOf(value)[dim] / extent;
}

RankedTensorType RowExtension::typeOf(Value value, int64_t dim) const {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[dim] = all * stepOf(value, dim);
  return tensorOf(value).clone(shape);
}

/// Adds rows of zeros.
Value RowExtension::pad(Value value, int64_t dim, OpBuilder &builder) const {
  Location loc = value.getLoc();
  SmallVector<int64_t> low(shapeOf(value).size(), 0), high(low), interior(low);
  int64_t step = stepOf(value, dim);
  low[dim] = first * step;
  high[dim] = (all - extent - first) * step;
  return stablehlo::padWithZeros(builder, loc, value, low, high, interior);
}

/// Whether the other rows of `value` are zeros that a pad has added.
bool RowExtension::hasOtherRowsOfZeros(Value value, int64_t dim) const {
  auto pad = value.getDefiningOp<PadOp>();
  int64_t step = shapeOf(value)[dim] / all;
  return pad && isZero(pad.getPaddingValue()) &&
         shapeOf(pad.getOperand())[dim] == extent * step &&
         pad.getEdgePaddingLow()[dim] == first * step &&
         pad.getInteriorPadding()[dim] == 0;
}

/// Replaces the elements of the other rows by `other`, a scalar.
Value RowExtension::mask(Value value, int64_t dim, Value other,
                         OpBuilder &builder) const {
  if (isZero(other) && hasOtherRowsOfZeros(value, dim))
    return value;
  Location loc = value.getLoc();
  RankedTensorType type = tensorOf(value);
  auto integers = type.clone(builder.getI32Type());
  int64_t step = type.getDimSize(dim) / all;
  Value rows = stablehlo::IotaOp::create(builder, loc, integers, dim);
  auto compare = [&](stablehlo::ComparisonDirection direction, int64_t row) {
    return stablehlo::CompareOp::create(
        builder, loc, rows,
        stablehlo::integerConstant(builder, loc, integers, row * step),
        direction);
  };
  Value isOfSlice = compare(stablehlo::ComparisonDirection::LT, first + extent);
  if (first > 0)
    isOfSlice = stablehlo::AndOp::create(
        builder, loc, isOfSlice,
        compare(stablehlo::ComparisonDirection::GE, first));
  Value others = stablehlo::BroadcastInDimOp::create(
      builder, loc, type, other, builder.getDenseI64ArrayAttr({}));
  return stablehlo::SelectOp::create(builder, loc, type, isOfSlice, value,
                                     others);
}

/// Computes a constant, or a large value that follows from smaller ones, for
/// all rows; null if it has to be padded.
Value RowExtension::compute(Value value, const RowDim &rows,
                            OpBuilder &builder) {
  RankedTensorType type = typeOf(value, rows.dim);
  Location loc = value.getLoc();
  if (matchPattern(value, m_Constant()))
    return resizeSplat(builder, loc, value, type);
  if (tensorOf(value).getNumElements() < countElements() / 4)
    return nullptr;
  if (auto iota = value.getDefiningOp<stablehlo::IotaOp>();
      iota && static_cast<int64_t>(iota.getIotaDimension()) != rows.dim)
    return stablehlo::IotaOp::create(builder, loc, type,
                                     iota.getIotaDimension());
  auto origins = findCheapOrigins(value, rows);
  if (!origins)
    return nullptr;
  return clone(value.getDefiningOp(), RowWork{std::move(*origins), rows},
               builder)
      ->getResult(0);
}

Value RowExtension::extend(Value value, const RowDim &rows,
                           OpBuilder &builder) {
  if (Value extended = known.lookup({value, rows.dim}))
    return extended;
  Value extended = compute(value, rows, builder);
  if (!extended)
    extended = pad(value, rows.dim, builder);
  known[{value, rows.dim}] = extended;
  return extended;
}

//===----------------------------------------------------------------------===//
// Ops on all rows
//===----------------------------------------------------------------------===//

/// Clones an op for all rows. What is summed over rows has zeros (or the
/// initial value) in the others.
Operation *RowExtension::clone(Operation *op, const RowWork &work,
                               OpBuilder &builder) {
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    const RowDim *rows = work.rowsOf(operand);
    Value value = operand.get();
    if (rows) {
      value = extend(value, *rows, builder);
      if (!work.results) {
        auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
        auto scalar =
            RankedTensorType::get({}, tensorOf(value).getElementType());
        value = mask(value, rows->dim,
                     reduce ? Value(reduce.getInitValues()[0])
                            : makeZeros(builder, op->getLoc(), scalar),
                     builder);
      }
    }
    operands.push_back(value);
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  if (work.results)
    for (auto [result, extended] :
         llvm::zip_equal(op->getResults(), copy->getResults())) {
      int64_t dim = work.results->dim;
      extended.setType(typeOf(result, dim));
      setRowAttributes(copy, dim, shapeOf(extended)[dim]);
      known[{result, dim}] = extended;
    }
  return copy;
}

void RowExtension::replace(Operation *op, const RowWork &work) {
  OpBuilder builder(op);
  Operation *copy = clone(op, work, builder);
  for (auto [result, extended] :
       llvm::zip_equal(op->getResults(), copy->getResults())) {
    auto isOutside = [&](OpOperand &use) {
      return !ops.contains(use.getOwner());
    };
    if (!work.results) {
      result.replaceAllUsesWith(extended);
    } else if (llvm::any_of(result.getUses(), isOutside)) {
      SmallVector<int64_t> starts(shapeOf(result).size(), 0),
          limits(shapeOf(extended)), strides(starts.size(), 1);
      int64_t dim = work.results->dim, step = stepOf(result, dim);
      starts[dim] = first * step;
      limits[dim] = (first + extent) * step;
      Value part = stablehlo::SliceOp::create(
          builder, op->getLoc(), result.getType(), extended,
          builder.getDenseI64ArrayAttr(starts),
          builder.getDenseI64ArrayAttr(limits),
          builder.getDenseI64ArrayAttr(strides));
      result.replaceUsesWithIf(part, isOutside);
    }
  }
}

void RowExtension::replacePad(PadOp pad) {
  OpBuilder builder(pad);
  RowDim rows = rowsOf.lookup(pad.getOperand());
  Value extended = extend(pad.getOperand(), rows, builder);
  pad.getResult().replaceAllUsesWith(
      mask(extended, rows.dim, pad.getPaddingValue(), builder));
}

bool RowExtension::findOps() {
  collect();
  return !ops.empty() && canExtend();
}

/// Replaces the ops, once the extended result of the first one is known.
void RowExtension::run() {
  for (auto &[op, work] : ops) {
    if (work)
      replace(op, *work);
    else
      replacePad(cast<PadOp>(op));
  }
  for (auto &[op, work] : llvm::reverse(ops))
    op->erase();
  start->erase();
}

bool RowExtension::extendSlice() {
  auto slice = cast<stablehlo::SliceOp>(start);
  if (!matchSlice(slice) || !findOps())
    return false;
  known[{slice.getResult(), dim}] = slice.getOperand();
  run();
  return true;
}

Dot RowExtension::extendDot(int64_t rowDim, int64_t allRows) {
  auto dot = cast<Dot>(start);
  dim = rowDim;
  extent = shapeOf(dot.getResult())[dim];
  all = allRows;
  RowDim rows{dim, 1, extent};
  auto origins = findRowOrigins(cast<OpResult>(dot.getResult()), rows);
  if (!origins || !findOps())
    return nullptr;
  OpBuilder builder(dot);
  auto extended =
      cast<Dot>(clone(dot, RowWork{std::move(*origins), rows}, builder));
  run();
  return extended;
}

bool fp8::extendRows(stablehlo::SliceOp slice) {
  return RowExtension(slice).extendSlice();
}

Dot fp8::extendRows(Dot dot, int64_t dim, int64_t all) {
  return RowExtension(dot).extendDot(dim, all);
}
