//===- Means.cpp - Sums that are divided by a number of rows --------------===//

#include "Means.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

/// Adds the sizes of summed dimensions, apart from the rows in them, to
/// `others`, and the number of rows to `rows`.
static void addSizes(ArrayRef<int64_t> shape, ArrayRef<int64_t> summed,
                     ArrayRef<RowDim> rowDims, double &rows,
                     SmallVectorImpl<double> &others) {
  for (int64_t dim : summed) {
    double rest = shape[dim];
    for (const RowDim &row : rowDims)
      if (row.dim == dim) {
        rows *= row.size;
        rest /= row.size;
      }
    if (rest > 1)
      others.push_back(rest);
  }
}

/// Walks back from rows that are summed to sums along other dimensions, and to
/// divisions by a constant. A product with one is no evidence: 0.25 seldom
/// counts rows.
void Means::addDivisors(Value rows, Sum &sum) {
  while (Operation *op = rows.getDefiningOp()) {
    if (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp, stablehlo::TransposeOp,
            stablehlo::NegOp>(op)) {
      rows = op->getOperand(0);
      continue;
    }
    if (isa<stablehlo::DivOp>(op)) {
      std::optional<double> by = getNumber(op->getOperand(1));
      if (!by || *by == 0)
        return;
      sum.factor /= *by;
      rows = op->getOperand(0);
      continue;
    }
    auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
    if (!reduce || reduce.getInputs().size() != 1 ||
        !isa_and_nonnull<stablehlo::AddOp>(
            stablehlo::getCombiner(reduce.getBody())))
      return;
    rows = reduce.getInputs()[0];
    double none = 1;
    addSizes(shapeOf(rows), reduce.getDimensions(), {}, none, sum.others);
  }
}

bool Means::collectReduce(stablehlo::ReduceOp reduce, Sum sum) {
  if (reduce.getInputs().size() != 1 ||
      !isa_and_nonnull<stablehlo::AddOp>(
          stablehlo::getCombiner(reduce.getBody())))
    return false;
  Value input = reduce.getInputs()[0];
  Layout layout = layouts.layoutOf(input);
  addSizes(shapeOf(input), reduce.getDimensions(), layout.rows, sum.rows,
           sum.others);
  if (!layout.is(Kind::Rows))
    return collect(input, sum);
  addDivisors(input, sum);
  sums.push_back(sum);
  return true;
}

/// A dot that contracts rows: an inner product, or a sum with weights, of which
/// only ones are known to change nothing.
bool Means::collectDot(stablehlo::DotGeneralOp dot, Sum sum) {
  Layout lhs = layouts.layoutOf(dot.getLhs()),
         rhs = layouts.layoutOf(dot.getRhs());
  if (!lhs.is(Kind::Rows) && !rhs.is(Kind::Rows))
    return false;
  unsigned side = lhs.is(Kind::Rows) ? 0 : 1;
  addSizes(shapeOf(dot->getOperand(side)),
           stablehlo::getOperandDims(dot, side).contracting,
           (side == 0 ? lhs : rhs).rows, sum.rows, sum.others);
  sums.push_back(sum);
  return true;
}

/// A loop that adds up parts of a sum.
bool Means::collectLoop(OpResult result, Sum sum) {
  auto loop = cast<stablehlo::WhileOp>(result.getOwner());
  unsigned index = result.getResultNumber();
  std::optional<stablehlo::CountedLoop> counted =
      stablehlo::matchCountedLoop(loop);
  Block &body = loop.getBody().front();
  auto add =
      body.getTerminator()->getOperand(index).getDefiningOp<stablehlo::AddOp>();
  if (!counted || !add ||
      !layouts.layoutOf(loop->getOperand(index)).is(Kind::Zero))
    return false;
  Value carry = body.getArgument(index);
  if (!llvm::is_contained(add->getOperands(), carry))
    return false;
  Value added = add->getOperand(add->getOperand(0) == carry);
  if (layouts.layoutOf(added).turn) {
    sum.rows *= counted->trips;
    addDivisors(added, sum);
    sums.push_back(sum);
    return true;
  }
  sum.others.push_back(counted->trips);
  return collect(added, sum);
}

/// Collects the sums that a partial value is a linear function of. Returns
/// false if it is another one.
bool Means::collect(Value value, Sum sum) {
  Layout part = layouts.partOf(value);
  if (part.is(Kind::Zero))
    return true;
  if (!part.isPartial(Reduction::Sum) || part.byCount || !value.getDefiningOp())
    return false;
  if (part.isMean) {
    sum.isMean = true;
    sums.push_back(sum);
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (isa<stablehlo::ConvertOp, stablehlo::ReshapeOp, stablehlo::NegOp>(op))
    return collect(op->getOperand(0), sum);
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op))
    return collect(op->getOperand(0), sum) && collect(op->getOperand(1), sum);
  if (isa<stablehlo::MulOp, stablehlo::DivOp>(op)) {
    unsigned at = isa<stablehlo::MulOp>(op) &&
                  !layouts.partOf(op->getOperand(0)).is(Kind::Partial);
    Value by = op->getOperand(1 - at);
    std::optional<double> factor = getNumber(by);
    if (!factor && !layouts.isFreeOfCounts(by))
      return false;
    if (factor && *factor != 0)
      sum.factor *= isa<stablehlo::MulOp>(op) ? *factor : 1 / *factor;
    return collect(op->getOperand(at), sum);
  }
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op))
    return collectReduce(reduce, sum);
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op))
    return collectDot(dot, sum);
  if (isa<stablehlo::WhileOp>(op))
    return collectLoop(cast<OpResult>(value), sum);
  return false;
}

bool Means::isMeanOf(const Sum &sum) const {
  if (sum.isMean)
    return true;
  // All products of sizes of other dimensions.
  SmallVector<double> products{1};
  for (double size : sum.others)
    for (size_t i = 0, e = products.size(); i < e; ++i)
      products.push_back(products[i] * size);
  double divisor = 1 / std::abs(sum.factor);
  // Whether `times` a product of `unit` is the divisor. (A divisor of two may
  // be another one, for instance that of squares.)
  auto divides = [&](double unit, double times) {
    return llvm::any_of(products, [&](double product) {
      double size = unit * product;
      return size > 2 && std::abs(divisor / size - times) < 1e-5;
    });
  };
  // A divisor that may as well count other dimensions alone proves nothing.
  if (divides(1, 1))
    return false;
  return divides(sum.rows, 1) || (divides(sum.rows, 2) && !divides(1, 2));
}

bool Means::isMean(Value value) {
  sums.clear();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 0 || !collect(value, Sum()) || sums.empty())
    return false;
  if (llvm::all_of(sums, [&](const Sum &sum) { return isMeanOf(sum); }))
    return true;
  // Parts of one sum, which are added before they are divided.
  Sum all = sums.front();
  all.others.clear();
  all.rows = 0;
  for (const Sum &sum : sums) {
    if (sum.isMean || std::abs(sum.factor) != std::abs(all.factor))
      return false;
    double elements = sum.rows;
    for (double size : sum.others)
      elements *= size;
    all.rows += elements;
  }
  return isMeanOf(all);
}

SmallVector<double> Means::factorsOf(Value value) {
  sums.clear();
  SmallVector<double> factors;
  if (collect(value, Sum()))
    for (const Sum &sum : sums)
      if (!sum.isMean && std::abs(sum.factor) != 1)
        factors.push_back(std::abs(sum.factor));
  return factors;
}
