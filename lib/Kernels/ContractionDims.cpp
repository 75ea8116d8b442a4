//===- ContractionDims.cpp - Recognition of contractions ------------------===//

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the block argument that `value` extends to a wider float, or is.
static BlockArgument stripExtensions(Value value) {
  while (auto ext = value.getDefiningOp<arith::ExtFOp>())
    value = ext.getIn();
  return dyn_cast<BlockArgument>(value);
}

namespace {
/// One factor of the product: an input, or an input times its scale.
struct Factor {
  BlockArgument element, scale;
};
} // namespace

static std::optional<Factor> matchFactor(Value value, Block *body) {
  auto mul = value.getDefiningOp<arith::MulFOp>();
  Factor factor;
  factor.element = stripExtensions(mul ? mul.getLhs() : value);
  if (mul)
    factor.scale = stripExtensions(mul.getRhs());
  if (!factor.element || factor.element.getOwner() != body)
    return std::nullopt;
  if (mul && (!factor.scale || factor.scale.getOwner() != body))
    return std::nullopt;
  return factor;
}

/// Returns true if a scale is indexed by zeros and by quotients of dimensions
/// of the input that it scales.
static bool isScaleMap(AffineMap scale, AffineMap element) {
  return llvm::all_of(scale.getResults(), [&](AffineExpr expr) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return constant.getValue() == 0;
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
      if (binary.getKind() != AffineExprKind::FloorDiv ||
          !isa<AffineConstantExpr>(binary.getRHS()))
        return false;
      expr = binary.getLHS();
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim && element.isFunctionOfDim(dim.getPosition());
  });
}

int64_t fp8::iterationsOf(ArrayRef<unsigned> loops, ArrayRef<int64_t> extents) {
  return llvm::product_of(
      llvm::map_range(loops, [&](unsigned loop) { return extents[loop]; }));
}

std::optional<LinearIndex> fp8::getLinearIndex(AffineExpr expr,
                                               unsigned numLoops) {
  bool isLinear = true;
  expr.walk([&](AffineExpr part) {
    isLinear &= part.isPureAffine() && part.getKind() != AffineExprKind::Mod &&
                part.getKind() != AffineExprKind::FloorDiv &&
                part.getKind() != AffineExprKind::CeilDiv;
  });
  if (!isLinear)
    return std::nullopt;
  MLIRContext *context = expr.getContext();
  SmallVector<AffineExpr> loops(numLoops, getAffineConstantExpr(0, context));
  auto evaluate = [&] {
    return cast<AffineConstantExpr>(expr.replaceDims(loops)).getValue();
  };
  LinearIndex index;
  index.offset = evaluate();
  for (AffineExpr &loop : loops) {
    loop = getAffineConstantExpr(1, context);
    index.coefficients.push_back(evaluate() - index.offset);
    loop = getAffineConstantExpr(0, context);
  }
  return index;
}

bool fp8::isLinearMap(AffineMap map) {
  llvm::SmallBitVector seen(map.getNumDims());
  for (AffineExpr expr : map.getResults()) {
    std::optional<LinearIndex> index = getLinearIndex(expr, map.getNumDims());
    if (!index)
      return false;
    for (auto [loop, coefficient] : llvm::enumerate(index->coefficients)) {
      if (coefficient == 0)
        continue;
      if (seen.test(loop))
        return false;
      seen.set(loop);
    }
  }
  return true;
}

/// Returns whether the operands of an op could be those of a contraction: two
/// tensors of floats, perhaps with their scales, and sums in f32.
static bool hasOperandsOfContraction(linalg::GenericOp op) {
  unsigned inputs = op.getNumDpsInputs();
  if (inputs < 2 || inputs > 4 || op.getNumDpsInits() != 1)
    return false;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<ShapedType>(operand.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return false;
  }
  if (!cast<ShapedType>(op.getDpsInits()[0].getType()).getElementType().isF32())
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return isLinearMap(maps[0]) && isLinearMap(maps[1]) &&
         maps.back().isProjectedPermutation();
}

/// Matches a body that adds a product of elements of the first two inputs to
/// the sum; returns its factors.
static std::optional<std::array<Factor, 2>> matchFactors(Block *body) {
  BlockArgument sum = body->getArguments().back();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return std::nullopt;
  Value product = add.getLhs() == sum   ? add.getRhs()
                  : add.getRhs() == sum ? add.getLhs()
                                        : Value();
  auto mul = product ? product.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  if (!mul)
    return std::nullopt;
  std::optional<Factor> x = matchFactor(mul.getLhs(), body);
  std::optional<Factor> y = matchFactor(mul.getRhs(), body);
  if (!x || !y || x->element == y->element || x->element.getArgNumber() > 1 ||
      y->element.getArgNumber() > 1)
    return std::nullopt;
  return std::array<Factor, 2>{*x, *y};
}

/// Finds the input with the scales of each factor. Every input but the first
/// two must be that of one factor.
static LogicalResult findScales(linalg::GenericOp op,
                                const std::array<Factor, 2> &factors,
                                ContractionDims &dims) {
  unsigned inputs = op.getNumDpsInputs(), scales = 0;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (const Factor &factor : factors) {
    if (!factor.scale)
      continue;
    unsigned input = factor.scale.getArgNumber();
    unsigned operand = factor.element.getArgNumber();
    if (input < 2 || input >= inputs || !isScaleMap(maps[input], maps[operand]))
      return failure();
    dims.scales[operand] = input;
    ++scales;
  }
  return success(scales == inputs - 2 &&
                 (scales != 2 || dims.scales[0] != dims.scales[1]));
}

/// Finds what each loop runs over, by the operands that it indexes.
static LogicalResult classifyLoops(linalg::GenericOp op,
                                   ContractionDims &dims) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned d = 0, e = op.getNumLoops(); d < e; ++d) {
    bool inLhs = maps[0].isFunctionOfDim(d), inRhs = maps[1].isFunctionOfDim(d),
         inOut = maps.back().isFunctionOfDim(d);
    if ((iterators[d] == utils::IteratorType::parallel) != inOut)
      return failure();
    if (inLhs && inRhs)
      (inOut ? dims.batch : dims.k).push_back(d);
    else if (inLhs && inOut)
      dims.m.push_back(d);
    else if (inRhs && inOut)
      dims.n.push_back(d);
    else
      return failure();
  }
  return success();
}

FailureOr<ContractionDims> fp8::inferContractionDims(linalg::GenericOp op) {
  if (!hasOperandsOfContraction(op))
    return failure();
  std::optional<std::array<Factor, 2>> factors = matchFactors(op.getBody());
  ContractionDims dims;
  if (!factors || failed(findScales(op, *factors, dims)) ||
      failed(classifyLoops(op, dims)))
    return failure();
  return dims;
}

bool fp8::isDot(linalg::GenericOp op) {
  // Empty dots have nothing to pack: they are treated as reductions.
  if (op.getNumReductionLoops() == 0 ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return false;
  FailureOr<ContractionDims> dims = inferContractionDims(op);
  return succeeded(dims) && !dims->m.empty() && !dims->n.empty();
}
