//===- LibraryDot.cpp - Dots that cuBLASLt can compute --------------------===//
//
// The rules follow the documentation of cublasLtMatmul.
//
//===----------------------------------------------------------------------===//

#include "LibraryDot.h"
#include "DotPlan.h"

#include "fp8/Codegen/Tiles.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Sizes of FP8 dots must be multiples of this.
static constexpr int64_t kSizeStep = 16;

/// Returns why the library cannot multiply these types, or an empty string.
static std::string typeReason(Type lhs, Type rhs) {
  auto isFP8 = [](Type type) {
    return isa<Float8E4M3FNType, Float8E5M2Type>(type);
  };
  if (isa<Float8E5M2Type>(lhs) && isa<Float8E5M2Type>(rhs))
    return "both operands are f8E5M2";
  if ((isFP8(lhs) && isFP8(rhs)) ||
      (lhs == rhs && (lhs.isBF16() || lhs.isF16())))
    return "";
  std::string text = "operands are ";
  llvm::raw_string_ostream os(text);
  os << lhs << " and " << rhs;
  return text;
}

/// Returns the strides of each loop in the memory of a dense buffer; fails for
/// maps with divisions.
static FailureOr<SmallVector<int64_t>> movesOf(AffineMap map, Type type) {
  SmallVector<int64_t> strides;
  if (failed(contraction::stridesOf(type, strides)))
    return failure();
  bool divides = false;
  map.walkExprs([&](AffineExpr expr) {
    divides |= expr.getKind() != AffineExprKind::Add &&
               expr.getKind() != AffineExprKind::Mul &&
               expr.getKind() != AffineExprKind::Constant &&
               expr.getKind() != AffineExprKind::DimId;
  });
  if (divides)
    return failure();
  auto placeOf = [&](ArrayRef<int64_t> point) {
    int64_t place = 0;
    for (auto [index, stride] : llvm::zip_equal(map.compose(point), strides))
      place += index * stride;
    return place;
  };
  SmallVector<int64_t> point(map.getNumDims(), 0), moves;
  if (placeOf(point) != 0)
    return failure();
  for (int64_t &index : point) {
    index = 1;
    moves.push_back(placeOf(point));
    index = 0;
  }
  return moves;
}

/// Returns true if `value` is the product of `a` and `b`.
static bool isProduct(Value value, Value a, Value b) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && ((product.getLhs() == a && product.getRhs() == b) ||
                     (product.getLhs() == b && product.getRhs() == a));
}

/// Returns true if the body yields the sum, multiplied by the product of the
/// scales if there are any, and possibly truncated.
static bool finishesSum(linalg::GenericOp op, Value sum, ValueRange scales) {
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  if (auto narrowed = yielded.getDefiningOp<arith::TruncFOp>())
    yielded = narrowed.getIn();
  if (scales.empty())
    return yielded == sum;
  auto scaled = yielded.getDefiningOp<arith::MulFOp>();
  if (!scaled)
    return false;
  Value factor = scaled.getLhs() == sum ? scaled.getRhs() : scaled.getLhs();
  return isProduct(yielded, sum, factor) &&
         isProduct(factor, scales[0], scales[1]);
}

/// Makes the op after the dot its epilogue, if the library supports that.
static void takeFinish(LibraryDot &dot) {
  Value sums = dot.result;
  Operation *next = dot.op->getNextNode();
  while (isa_and_nonnull<memref::AllocOp>(next))
    next = next->getNextNode();
  auto epilogue = dyn_cast_or_null<linalg::GenericOp>(next);
  // Nothing but the fill, the dot and the epilogue uses the sums.
  bool isOwn = sums.getDefiningOp<memref::AllocOp>() &&
               llvm::range_size(sums.getUsers()) == 3;
  if (!epilogue || !isOwn || !allParallel(epilogue) ||
      epilogue.getNumDpsInits() != 1)
    return;
  OpOperand *sum = nullptr;
  SmallVector<BlockArgument> scales;
  SmallVector<Value> scaleValues;
  for (OpOperand *input : epilogue.getDpsInputOperands()) {
    auto type = dyn_cast<MemRefType>(input->get().getType());
    auto argument = dyn_cast<BlockArgument>(input->get());
    if (input->get() == sums && !sum) {
      sum = input;
    } else if (argument && type && type.getRank() == 0 &&
               type.getElementType().isF32()) {
      scales.push_back(argument);
      scaleValues.push_back(epilogue.getMatchingBlockArgument(input));
    } else {
      return;
    }
  }
  // The library only applies scales to FP8 operands.
  bool hasScales = scales.size() == 2 && dot.isFP8();
  if (!sum || !(hasScales || scales.empty()))
    return;
  OpOperand *out = &epilogue.getDpsInitsMutable()[0];
  Type element = cast<MemRefType>(out->get().getType()).getElementType();
  bool isWritable =
      element.isF32() || element.isBF16() ||
      (element.isF16() && (dot.isFP8() || dot.elementOf(0).isF16()));
  FailureOr<SmallVector<int64_t>>
      from = movesOf(epilogue.getMatchingIndexingMap(sum), sums.getType()),
      to = movesOf(epilogue.getMatchingIndexingMap(out), out->get().getType());
  if (!isWritable || failed(from) || failed(to) || *from != *to ||
      !finishesSum(epilogue, epilogue.getMatchingBlockArgument(sum),
                   scaleValues))
    return;
  dot.epilogue = epilogue;
  dot.result = out->get();
  for (auto [i, scale] : llvm::enumerate(scales))
    dot.scales[i] = scale;
}

/// Computes the sizes of the matrices; returns an error text if the dot is no
/// product of matrices.
static std::string takeSizes(LibraryDot &dot) {
  ContractionDims dims = *inferContractionDims(dot.op);
  if (dims.scales[0] || dims.scales[1])
    return "operands have scales in blocks";
  SmallVector<int64_t> outStrides;
  (void)contraction::stridesOf(dot.result.getType(), outStrides);
  FailureOr<contraction::LoopInfo> loops = contraction::LoopInfo::of(
      dot.op, dims, dot.op.getStaticLoopRanges(), {}, outStrides);
  if (failed(loops))
    return "operands have strides that are not known";
  auto batch = contraction::mergeDims(dims.batch, *loops, 2);
  auto rows = contraction::mergeDims(dims.m, *loops, 0);
  auto columns = contraction::mergeDims(dims.n, *loops, 1);
  auto depth = contraction::mergeDims(dims.k, *loops, 0);
  if (!batch.empty())
    return "it has batches";
  if (rows.size() != 1 || columns.size() != 1 || depth.size() != 1)
    return "operands are no matrices";
  if (rows[0].strides[2] == 1) {
    std::swap(rows, columns);
    std::swap(dot.operands[0], dot.operands[1]);
    for (auto *dim : {&rows[0], &columns[0], &depth[0]})
      std::swap(dim->strides[0], dim->strides[1]);
  }
  dot.rows = rows[0].size;
  dot.columns = columns[0].size;
  dot.depth = depth[0].size;
  auto isDense = [](int64_t outer, int64_t inner, int64_t innerSize) {
    return inner == 1 && outer == innerSize;
  };
  if (!isDense(rows[0].strides[2], columns[0].strides[2], dot.columns))
    return "the result is no dense matrix";
  for (unsigned i = 0; i < 2; ++i) {
    const Dim &across = i ? columns[0] : rows[0];
    int64_t alongK = depth[0].strides[i], along = across.strides[i];
    dot.alongK[i] = isDense(along, alongK, dot.depth);
    if (!dot.alongK[i] && !isDense(alongK, along, across.size))
      return "an operand is no dense matrix";
  }
  if (dot.isFP8() && (dot.rows % kSizeStep || dot.columns % kSizeStep ||
                      dot.depth % kSizeStep))
    return "sizes are no multiples of 16";
  return "";
}

std::optional<LibraryDot> LibraryDot::find(KernelOp kernel,
                                           std::string &reason) {
  LibraryDot dot;
  dot.op = contractionOf(kernel);
  if (isAttention(kernel)) {
    reason = "it is part of an attention";
    return std::nullopt;
  }
  dot.result = dot.op.getDpsInits()[0];
  for (Operation &op : kernel.getBody().front()) {
    if (&op == dot.op)
      break;
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (fill && fill.getOutputs()[0] == dot.result)
      dot.zeros = fill;
    else if (!isa<memref::AllocOp, arith::ConstantOp>(op))
      reason = "its operands are computed in the same kernel";
  }
  for (unsigned i = 0; i < 2 && reason.empty(); ++i) {
    dot.operands[i] = dyn_cast<BlockArgument>(dot.op.getDpsInputs()[i]);
    if (!dot.operands[i])
      reason = "its operands are computed in the same kernel";
  }
  if (reason.empty() && !dot.zeros)
    reason = "it adds to what is there";
  if (reason.empty() && dot.op->hasAttr(FP8Dialect::kPromoteEveryAttrName))
    reason = "its sums are promoted to f32 by the recipe";
  if (reason.empty())
    reason = typeReason(dot.elementOf(0), dot.elementOf(1));
  if (reason.empty())
    reason = takeSizes(dot);
  if (!reason.empty())
    return std::nullopt;
  takeFinish(dot);
  return dot;
}
