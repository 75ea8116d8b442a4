//===- RowParts.cpp - Parts of a dimension that counts rows ---------------===//

#include "RowParts.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Finds multiples of a number. The carry of a loop is assumed to be one, until
/// its initial value or its iteration shows otherwise.
class Multiples {
public:
  explicit Multiples(int64_t unit) : unit(unit) {}
  bool contain(Value value);

private:
  bool containAll(ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return contain(value); });
  }
  bool containCarry(stablehlo::WhileOp loop, unsigned index) {
    return contain(loop->getOperand(index)) &&
           contain(loop.getBody().front().getTerminator()->getOperand(index));
  }
  bool containProduct(stablehlo::MulOp multiply);
  bool containConstant(DenseElementsAttr elements) const {
    return isa<IntegerType>(elements.getElementType()) &&
           llvm::all_of(elements.getValues<APInt>(), [&](const APInt &value) {
             return value.getSExtValue() % unit == 0;
           });
  }

  int64_t unit;
  llvm::DenseSet<Value> assumed;
};

} // namespace

/// (One factor decides, since no second one may be tried after a first one was
/// assumed to be a multiple.)
bool Multiples::containProduct(stablehlo::MulOp multiply) {
  for (Value factor : multiply->getOperands()) {
    DenseElementsAttr elements;
    if (!matchPattern(factor, m_Constant(&elements)))
      continue;
    Value other =
        multiply.getLhs() == factor ? multiply.getRhs() : multiply.getLhs();
    return containConstant(elements) || contain(other);
  }
  return false;
}

bool Multiples::contain(Value value) {
  if (!assumed.insert(value).second)
    return true;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<stablehlo::WhileOp>(arg.getOwner()->getParentOp());
    return loop && containCarry(loop, arg.getArgNumber());
  }
  Operation *op = value.getDefiningOp();
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return containConstant(elements);
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return containCarry(loop, cast<OpResult>(value).getResultNumber());
  if (auto multiply = dyn_cast<stablehlo::MulOp>(op))
    return containProduct(multiply);
  if (isa<stablehlo::SelectOp>(op))
    return containAll(op->getOperands().drop_front());
  if (isa<stablehlo::DynamicSliceOp>(op))
    return contain(op->getOperand(0));
  return isa<stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::NegOp,
             stablehlo::MinOp, stablehlo::MaxOp, stablehlo::ClampOp,
             stablehlo::ConvertOp, stablehlo::ReshapeOp,
             stablehlo::BroadcastInDimOp, stablehlo::SliceOp>(op) &&
         isa<IntegerType>(getElementTypeOrSelf(op->getOperand(0).getType())) &&
         containAll(op->getOperands());
}

bool fp8::isMultipleOf(Value value, int64_t unit) {
  return Multiples(unit).contain(value);
}

std::optional<RowDim> fp8::cutRows(const RowDim &row, int64_t extent,
                                   int64_t part, int64_t &unit) {
  if (part == 0)
    return std::nullopt;
  int64_t copy = extent / row.outer, inner = copy / row.size;
  if (part % copy == 0) {
    unit = copy;
    return RowDim{row.dim, part / copy, row.size};
  }
  int64_t rows = part / inner;
  if (row.outer != 1 || part % inner != 0 || row.size % rows != 0)
    return std::nullopt;
  unit = part;
  return RowDim{row.dim, 1, rows};
}

std::optional<RowDim> fp8::embedRows(const RowDim &row, int64_t part,
                                     int64_t extent, int64_t start) {
  int64_t copy = part / row.outer;
  if (copy == 0 || extent % copy != 0 || start % copy != 0)
    return std::nullopt;
  return RowDim{row.dim, extent / copy, row.size};
}
