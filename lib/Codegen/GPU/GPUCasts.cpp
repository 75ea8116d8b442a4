//===- GPUCasts.cpp - f8 and bf16 casts as GPU instructions ---------------===//

#include "fp8/Codegen/GPU/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_GPUCASTS
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {

/// The parameters of a format's instructions.
struct Format {
  StringRef pair; // part of the intrinsics' names
  /// Larger values round to no finite number.
  float limit;
  /// Whether the limit itself overflows, too.
  bool limitOverflows;
  int64_t overflowCode; // without the sign
  bool overflowHasSign;
};

std::optional<Format> formatOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<Float8E4M3FNType>(element))
    // Halfway between 448 and 480. The code of 480 would be odd, and means NaN.
    return Format{"e4m3x2", 464.0f, false, 0x7f, false};
  if (isa<Float8E5M2Type>(element))
    // Halfway between 57344 and 65536, which is infinity and has an even code.
    return Format{"e5m2x2", 61440.0f, true, 0x7c, true};
  return std::nullopt;
}

/// Builds ops on vectors; scalars become vectors of one element.
class CastBuilder {
public:
  CastBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  VectorType vector(int64_t size, Type element) {
    return VectorType::get({size}, element);
  }
  Value element(Value v, int64_t i) {
    return vector::ExtractOp::create(b, loc, v, i);
  }
  Value constant(VectorType type, TypedAttr value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, Attribute(value)));
  }
  Value call(StringRef name, Type result, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                         operands)
        .getResult(0);
  }

  /// Encodes `x`, a vector of an even number of f32, to bytes.
  Value encode(Value x, const Format &format);
  /// Decodes bytes to f32.
  Value decode(Value bytes, const Format &format);

  OpBuilder &b;
  Location loc;
};

} // namespace

Value CastBuilder::encode(Value x, const Format &format) {
  int64_t size = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<Value> pairs;
  std::string name = ("llvm.nvvm.ff.to." + format.pair + ".rn").str();
  for (int64_t i = 0; i < size; i += 2) // The first operand is the upper byte.
    pairs.push_back(
        call(name, b.getI16Type(), {element(x, i + 1), element(x, i)}));
  Value words = vector::FromElementsOp::create(
      b, loc, vector(size / 2, b.getI16Type()), pairs);
  VectorType byteType = vector(size, b.getI8Type());
  Value bytes = vector::BitCastOp::create(b, loc, byteType, words);
  // The instruction saturates, but a cast does not.
  Value magnitude = math::AbsFOp::create(b, loc, x);
  Value limit =
      constant(cast<VectorType>(x.getType()), b.getF32FloatAttr(format.limit));
  Value beyond =
      arith::CmpFOp::create(b, loc,
                            format.limitOverflows ? arith::CmpFPredicate::OGE
                                                  : arith::CmpFPredicate::OGT,
                            magnitude, limit);
  Value code = constant(byteType, b.getI8IntegerAttr(format.overflowCode));
  if (format.overflowHasSign) {
    Value sign = arith::AndIOp::create(
        b, loc, bytes, constant(byteType, b.getI8IntegerAttr(-128)));
    code = arith::OrIOp::create(b, loc, code, sign);
  }
  return arith::SelectOp::create(b, loc, beyond, code, bytes);
}

Value CastBuilder::decode(Value bytes, const Format &format) {
  int64_t size = cast<VectorType>(bytes.getType()).getNumElements();
  Value words = vector::BitCastOp::create(
      b, loc, vector(size / 2, b.getI16Type()), bytes);
  SmallVector<Value> halves;
  std::string name = ("llvm.nvvm." + format.pair + ".to.f16x2.rn").str();
  for (int64_t i = 0; i < size / 2; ++i) {
    Value pair = call(name, vector(2, b.getF16Type()), {element(words, i)});
    for (int64_t j = 0; j < 2; ++j)
      halves.push_back(element(pair, j));
  }
  Value all = vector::FromElementsOp::create(
      b, loc, vector(size, b.getF16Type()), halves);
  return arith::ExtFOp::create(b, loc, vector(size, b.getF32Type()), all);
}

namespace {

/// Pads `value`, as f32 or as bytes, to an even number of elements, runs
/// `convert` on it, and returns the result without the padding.
Value onPairs(CastBuilder &builder, Value value,
              function_ref<Value(Value)> convert) {
  OpBuilder &b = builder.b;
  Location loc = builder.loc;
  Type element = getElementTypeOrSelf(value.getType());
  auto type = dyn_cast<VectorType>(value.getType());
  int64_t size = type ? type.getNumElements() : 1;
  if (type && size % 2 == 0)
    return convert(value);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < size; ++i)
    elements.push_back(type ? builder.element(value, i) : value);
  elements.push_back(arith::ConstantOp::create(b, loc, b.getZeroAttr(element)));
  Value padded = vector::FromElementsOp::create(
      b, loc, builder.vector(size + 1, element), elements);
  Value result = convert(padded);
  if (!type)
    return builder.element(result, 0);
  elements.clear();
  for (int64_t i = 0; i < size; ++i)
    elements.push_back(builder.element(result, i));
  return vector::FromElementsOp::create(
      b, loc, builder.vector(size, getElementTypeOrSelf(result.getType())),
      elements);
}

/// Returns true for a vector of one dimension or a scalar.
bool isFlat(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return !vector || (vector.getRank() == 1 && !vector.isScalable());
}

struct ConvertTruncF : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isF32() || !isFlat(op.getType()) ||
        (op.getRoundingmode() &&
         *op.getRoundingmode() != arith::RoundingMode::to_nearest_even))
      return failure();
    if (getElementTypeOrSelf(op.getType()).isBF16()) {
      rewriter.replaceOpWithNewOp<LLVM::FPTruncOp>(op, op.getType(),
                                                   op.getIn());
      return success();
    }
    std::optional<Format> format = formatOf(op.getType());
    if (!format)
      return failure();
    CastBuilder builder(rewriter, op.getLoc());
    Value bytes = onPairs(builder, op.getIn(),
                          [&](Value x) { return builder.encode(x, *format); });
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bytes);
    return success();
  }
};

struct ConvertExtF : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32() || !isFlat(op.getType()))
      return failure();
    Type from = op.getIn().getType();
    if (getElementTypeOrSelf(from).isBF16()) {
      rewriter.replaceOpWithNewOp<LLVM::FPExtOp>(op, op.getType(), op.getIn());
      return success();
    }
    std::optional<Format> format = formatOf(from);
    if (!format)
      return failure();
    CastBuilder builder(rewriter, op.getLoc());
    Type byteType = rewriter.getI8Type();
    if (auto vector = dyn_cast<VectorType>(from))
      byteType = vector.clone(byteType);
    Value bytes =
        arith::BitcastOp::create(rewriter, op.getLoc(), byteType, op.getIn());
    rewriter.replaceOp(op, onPairs(builder, bytes, [&](Value codes) {
                         return builder.decode(codes, *format);
                       }));
    return success();
  }
};

class GPUCasts : public fp8::impl::GPUCastsBase<GPUCasts> {
public:
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ConvertTruncF, ConvertExtF>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
