//===- RowOrigins.cpp - The operands that a row depends on ----------------===//

#include "RowOrigins.h"

#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Origins
//===----------------------------------------------------------------------===//

/// Maps a dimension of the result to one of an operand.
using DimMap = llvm::function_ref<std::optional<int64_t>(int64_t)>;

/// Returns the origin of rows whose dimensions all map to dimensions of one
/// operand, if any.
static SmallVector<RowOrigin> originAlong(OpOperand &operand,
                                          ArrayRef<RowDim> rows, DimMap map) {
  RowOrigin origin{&operand, {}};
  for (const RowDim &row : rows)
    if (std::optional<int64_t> dim = map(row.dim);
        dim && shapeOf(operand.get())[*dim] != 1)
      origin.rows.push_back({*dim, row.outer, row.size});
  if (origin.rows.empty())
    return {};
  return {origin};
}

static std::optional<SmallVector<RowOrigin>>
originsOfReshape(stablehlo::ReshapeOp op, ArrayRef<RowDim> rows) {
  std::optional<RowDims> from =
      reshapeRows(rows, shapeOf(op.getResult()), shapeOf(op.getOperand()));
  if (!from)
    return std::nullopt;
  return SmallVector<RowOrigin>{{&op->getOpOperand(0), *from}};
}

/// Returns the operand of a dot that has the rows, or both along a batching
/// dimension.
static SmallVector<RowOrigin> originsOfDot(stablehlo::DotGeneralOp op,
                                           const RowDim &row) {
  stablehlo::OperandDims lhs = stablehlo::getOperandDims(op, 0);
  stablehlo::OperandDims rhs = stablehlo::getOperandDims(op, 1);
  auto along = [&](unsigned operand, int64_t dim) {
    return RowOrigin{&op->getOpOperand(operand), {{dim, row.outer, row.size}}};
  };
  int64_t dim = row.dim, batches = lhs.batching.size();
  if (dim < batches)
    return {along(0, lhs.batching[dim]), along(1, rhs.batching[dim])};
  dim -= batches;
  int64_t ofLhs = lhs.free.size();
  if (dim < ofLhs)
    return {along(0, lhs.free[dim])};
  return {along(1, rhs.free[dim - ofLhs])};
}

std::optional<int64_t> fp8::dimOfIndices(ArrayRef<int64_t> windowDims,
                                         int64_t indexVectorDim, int64_t dim) {
  if (llvm::is_contained(windowDims, dim))
    return std::nullopt;
  int64_t index = dim - llvm::count_if(windowDims, [&](int64_t window) {
                    return window < dim;
                  });
  return index >= indexVectorDim ? index + 1 : index;
}

/// Handles rows of indices, each of which takes a slice of a table: the same
/// table for all rows, or the row's own if rows are batching dimensions.
static std::optional<SmallVector<RowOrigin>>
originsOfGather(stablehlo::GatherOp op, ArrayRef<RowDim> rows) {
  auto dims = op.getDimensionNumbers();
  RowOrigin table{&op.getOperandMutable(), {}};
  RowOrigin indices{&op.getStartIndicesMutable(), {}};
  for (const RowDim &row : rows) {
    std::optional<int64_t> index =
        dimOfIndices(dims.getOffsetDims(), dims.getIndexVectorDim(), row.dim);
    if (!index)
      return std::nullopt;
    indices.rows.push_back({*index, row.outer, row.size});
    if (auto batch = positionIn(dims.getStartIndicesBatchingDims(), *index))
      table.rows.push_back(
          {dims.getOperandBatchingDims()[*batch], row.outer, row.size});
  }
  if (table.rows.empty())
    return SmallVector<RowOrigin>{indices};
  return SmallVector<RowOrigin>{table, indices};
}

SmallVector<int64_t> fp8::windowDimsOf(stablehlo::ScatterOp op) {
  auto dims = op.getScatterDimensionNumbers();
  SmallVector<int64_t> windowDims;
  int64_t rank = shapeOf(op.getInputs()[0]).size();
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(dims.getInsertedWindowDims(), d) &&
        !llvm::is_contained(dims.getInputBatchingDims(), d))
      windowDims.push_back(d);
  return windowDims;
}

/// Handles updates of rows that are batching dimensions.
static std::optional<SmallVector<RowOrigin>>
originsOfScatter(stablehlo::ScatterOp op, ArrayRef<RowDim> rows) {
  auto dims = op.getScatterDimensionNumbers();
  if (op.getInputs().size() != 1)
    return std::nullopt;
  RowOrigin input{&op.getInputsMutable()[0], RowDims(rows)};
  RowOrigin indices{&op.getScatterIndicesMutable(), {}};
  RowOrigin updates{&op.getUpdatesMutable()[0], {}};
  for (const RowDim &row : rows) {
    auto batch = positionIn(dims.getInputBatchingDims(), row.dim);
    if (!batch)
      return std::nullopt;
    int64_t index = dims.getScatterIndicesBatchingDims()[*batch];
    indices.rows.push_back({index, row.outer, row.size});
    int64_t dim = 0;
    while (dimOfIndices(dims.getUpdateWindowDims(), dims.getIndexVectorDim(),
                        dim) != index)
      ++dim;
    updates.rows.push_back({dim, row.outer, row.size});
  }
  return SmallVector<RowOrigin>{input, indices, updates};
}

/// Handles a reduction of other dimensions.
static SmallVector<RowOrigin> originsOfReduce(stablehlo::ReduceOp op,
                                              ArrayRef<RowDim> rows) {
  auto map = [&](int64_t result) -> std::optional<int64_t> {
    int64_t dim = -1;
    for (int64_t left = result; left >= 0;)
      left -= !llvm::is_contained(op.getDimensions(), ++dim);
    return dim;
  };
  SmallVector<RowOrigin> origins;
  for (OpOperand &input : op.getInputsMutable())
    llvm::append_range(origins, originAlong(input, rows, map));
  return origins;
}

std::optional<int64_t> fp8::sortedDim(Operation *op) {
  int64_t dim = -1;
  if (auto sort = dyn_cast<stablehlo::SortOp>(op))
    dim = sort.getDimension();
  else if (!isa<chlo::TopKOp>(op))
    return std::nullopt;
  return dim < 0 ? dim + shapeOf(op->getOperand(0)).size() : dim;
}

/// Whether an op works on each index along the rows independently.
static bool keepsRows(Operation *op, ArrayRef<RowDim> rows) {
  if (stablehlo::worksByElement(op) ||
      isa<stablehlo::BitcastConvertOp, stablehlo::SliceOp,
          stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp>(op))
    return true;
  return llvm::none_of(rows, [&](const RowDim &row) {
    // Edges of 1 and -1 keep the extent but shift the rows.
    if (auto pad = dyn_cast<stablehlo::PadOp>(op))
      return pad.getEdgePaddingLow()[row.dim] != 0 ||
             pad.getInteriorPadding()[row.dim] != 0;
    if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op))
      return static_cast<int64_t>(concatenate.getDimension()) == row.dim;
    if (std::optional<int64_t> along = sortedDim(op))
      return *along == row.dim;
    if (auto reverse = dyn_cast<stablehlo::ReverseOp>(op))
      return llvm::is_contained(reverse.getDimensions(), row.dim);
    return true;
  });
}

/// Handles ops that work on each index along the rows independently. All
/// operands must have the same extent along the rows as the result.
static std::optional<SmallVector<RowOrigin>>
originsOfSameDims(OpResult result, ArrayRef<RowDim> rows) {
  Operation *op = result.getOwner();
  if (!keepsRows(op, rows))
    return std::nullopt;
  SmallVector<RowOrigin> origins;
  for (OpOperand &operand : op->getOpOperands()) {
    ArrayRef<int64_t> shape = shapeOf(operand.get());
    bool isBitcast = isa<stablehlo::BitcastConvertOp>(op);
    if (shape.empty() && !isBitcast)
      continue;
    // (A bitcast may add a dimension, or take one away.)
    for (const RowDim &row : rows)
      if (row.dim >= static_cast<int64_t>(shape.size()) ||
          shape[row.dim] != shapeOf(result)[row.dim])
        return std::nullopt;
    origins.push_back({&operand, RowDims(rows)});
  }
  return origins;
}

std::optional<SmallVector<RowOrigin>>
fp8::findRowOrigins(OpResult result, ArrayRef<RowDim> rows) {
  Operation *op = result.getOwner();
  if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op))
    return originAlong(op->getOpOperand(0), rows, [&](int64_t dim) {
      return positionIn(broadcast.getBroadcastDimensions(), dim);
    });
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op))
    return originAlong(op->getOpOperand(0), rows, [&](int64_t dim) {
      return std::optional<int64_t>(transpose.getPermutation()[dim]);
    });
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op))
    return originsOfReshape(reshape, rows);
  if (auto gather = dyn_cast<stablehlo::GatherOp>(op))
    return originsOfGather(gather, rows);
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op))
    return originsOfScatter(scatter, rows);
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op); dot && rows.size() == 1)
    return originsOfDot(dot, rows.front());
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op))
    return originsOfReduce(reduce, rows);
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return SmallVector<RowOrigin>{
        {&op->getOpOperand(result.getResultNumber()), RowDims(rows)}};
  return originsOfSameDims(result, rows);
}

//===----------------------------------------------------------------------===//
// Values that are the same along rows
//===----------------------------------------------------------------------===//

namespace {

/// Finds values that are the same along rows. A carry is assumed to be, until
/// its initial value or its iteration shows otherwise.
class SameForRows {
public:
  bool check(Value value, const RowDim &row);

private:
  bool checkAll(Value value, ArrayRef<RowDim> rows) {
    return llvm::all_of(rows,
                        [&](const RowDim &row) { return check(value, row); });
  }
  bool checkCarry(stablehlo::WhileOp loop, unsigned index, const RowDim &row);
  bool checkScatter(stablehlo::ScatterOp op, const RowDim &row);
  bool checkOrigins(OpResult result, const RowDim &row);

  llvm::DenseSet<std::tuple<Value, int64_t, int64_t, int64_t>> assumed;
};

} // namespace

bool SameForRows::checkCarry(stablehlo::WhileOp loop, unsigned index,
                             const RowDim &row) {
  return check(loop->getOperand(index), row) &&
         check(loop.getBody().front().getTerminator()->getOperand(index), row);
}

/// Handles windows that cover all of the dimension.
bool SameForRows::checkScatter(stablehlo::ScatterOp op, const RowDim &row) {
  if (op.getInputs().size() != 1)
    return false;
  auto window = positionIn(windowDimsOf(op), row.dim);
  if (!window)
    return checkOrigins(op->getResult(0), row);
  Value target = op.getInputs()[0], updates = op.getUpdates()[0];
  int64_t dim = op.getScatterDimensionNumbers().getUpdateWindowDims()[*window];
  return shapeOf(target)[row.dim] == shapeOf(updates)[dim] &&
         check(target, row) && check(updates, {dim, row.outer, row.size});
}

bool SameForRows::checkOrigins(OpResult result, const RowDim &row) {
  auto origins = findRowOrigins(result, row);
  return origins && llvm::all_of(*origins, [&](const RowOrigin &origin) {
           return checkAll(origin.operand->get(), origin.rows);
         });
}

bool SameForRows::check(Value value, const RowDim &row) {
  if (!assumed.insert({value, row.dim, row.outer, row.size}).second)
    return true;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<stablehlo::WhileOp>(arg.getOwner()->getParentOp());
    return loop && checkCarry(loop, arg.getArgNumber(), row);
  }
  Operation *op = value.getDefiningOp();
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return elements.isSplat();
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op))
    return static_cast<int64_t>(iota.getIotaDimension()) != row.dim;
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op))
    return checkScatter(scatter, row);
  auto result = cast<OpResult>(value);
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return checkCarry(loop, result.getResultNumber(), row);
  if (stablehlo::isBranch(op))
    return llvm::all_of(op->getRegions(), [&](Region &region) {
      Operation *end = region.front().getTerminator();
      return check(end->getOperand(result.getResultNumber()), row);
    });
  return checkOrigins(result, row);
}

bool fp8::isSameForRows(Value value, ArrayRef<RowDim> rows) {
  SameForRows same;
  return llvm::all_of(
      rows, [&](const RowDim &row) { return same.check(value, row); });
}
