//===- ExpandCasts.cpp - f8 casts in integer arithmetic -------------------===//
//
// Branch-free code that is exact for every input and vectorizes: an encoder
// that lets one f32 addition round at the last bit of the code, or the addition
// of a random number to its bits, and a decoder that shifts bits into place and
// renormalizes subnormals by one f32 subtraction, or by a conversion from f16.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace mlir::fp8 {
#define GEN_PASS_DEF_FP8EXPANDCASTS
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Returns the bits of the f32 number 2^exponent.
constexpr int32_t powerBits(int32_t exponent) { return (exponent + 127) << 23; }

/// The properties of a format of at most 8 bits, or of f16, that the arithmetic
/// uses.
struct BitLayout {
  explicit BitLayout(FloatType format) : width(format.getWidth()) {
    const llvm::fltSemantics &semantics = format.getFloatSemantics();
    mantissaBits = APFloat::semanticsPrecision(semantics) - 1;
    minExponent = APFloat::semanticsMinExponent(semantics);
    unsignedZero =
        isa<Float8E4M3FNUZType, Float8E5M2FNUZType, Float8E4M3B11FNUZType>(
            format);
    hasInfinity =
        isa<Float8E5M2Type, Float8E4M3Type, Float8E3M4Type, Float16Type>(
            format);
    hasNaN = !isa<Float4E2M1FNType, Float6E2M3FNType, Float6E3M2FNType>(format);
    largestCode =
        APFloat::getLargest(semantics).bitcastToAPInt().getZExtValue();
  }

  int32_t signMask() const { return 1 << (width - 1); }
  /// The code of NaN, which is -0 in formats that have neither NaN nor
  /// infinity, as in XLA.
  int32_t nanCode() const {
    if (unsignedZero || !hasNaN)
      return signMask();
    // The quiet bit after infinity's code, or the only NaN.
    return hasInfinity ? (largestCode + 1) | (1 << (mantissaBits - 1)) : 0x7f;
  }
  /// The number of bits by which a mantissa shifts between f32 and f8.
  int32_t shift() const { return 23 - mantissaBits; }
  /// The f32 bits of the number of the code 0, if that were not subnormal:
  /// those of other codes follow at distances of 2^shift.
  int32_t bias() const { return powerBits(minExponent - 1); }
  /// The f32 bits of the number after the largest, whose code is infinity's, or
  /// NaN's; those of the largest if there is neither.
  int32_t beyondBits() const {
    return ((largestCode + (hasNaN ? 1 : 0)) << shift()) + bias();
  }

  int32_t width, mantissaBits, minExponent, largestCode;
  bool unsignedZero, hasInfinity, hasNaN;
};

/// Builds ops on scalars or on vectors of one shape.
struct Emitter {
  OpBuilder &b;
  Location loc;
  /// A type of the shape of the results.
  Type like;

  Type type(Type element) const {
    if (auto shaped = dyn_cast<ShapedType>(like))
      return shaped.clone(element);
    return element;
  }
  Type i1() const { return type(b.getI1Type()); }
  Type i8() const { return type(b.getI8Type()); }
  Type i16() const { return type(b.getIntegerType(16)); }
  Type i32() const { return type(b.getI32Type()); }
  Type f32() const { return type(b.getF32Type()); }
  Type f64() const { return type(b.getF64Type()); }

  Value constant(TypedAttr attr) const {
    if (auto shaped = dyn_cast<ShapedType>(type(attr.getType())))
      attr = DenseElementsAttr::get(shaped, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value constant(int32_t value) const {
    return constant(b.getI32IntegerAttr(value));
  }
  template <typename OpTy> Value op(Value lhs, Value rhs) const {
    return OpTy::create(b, loc, lhs, rhs);
  }
  template <typename OpTy> Value op(Value lhs, int32_t rhs) const {
    Type element = getElementTypeOrSelf(lhs);
    return op<OpTy>(lhs, constant(b.getIntegerAttr(element, rhs)));
  }
  template <typename OpTy> Value cast(Type type, Value value) const {
    return OpTy::create(b, loc, type, value);
  }
  Value bitcast(Type type, Value value) const {
    return cast<arith::BitcastOp>(type, value);
  }
  Value cmp(arith::CmpIPredicate predicate, Value lhs, int32_t rhs) const {
    return arith::CmpIOp::create(b, loc, predicate, lhs, constant(rhs));
  }
  Value select(Value condition, Value lhs, Value rhs) const {
    return arith::SelectOp::create(b, loc, condition, lhs, rhs);
  }
};

} // namespace

/// Decodes E8M0, which has only powers of two: the code is f32's exponent.
static Value expandE8M0ToF32(Emitter e, Value value) {
  Value code = e.cast<arith::ExtUIOp>(e.i32(), e.bitcast(e.i8(), value));
  Value bits = e.op<arith::ShLIOp>(code, 23);
  // 2^-127 is subnormal in f32.
  bits = e.select(e.cmp(arith::CmpIPredicate::eq, code, 0),
                  e.constant(0x00400000), bits);
  bits = e.select(e.cmp(arith::CmpIPredicate::eq, code, 0xff),
                  e.constant(0x7fc00000), bits);
  return e.bitcast(e.f32(), bits);
}

/// Rounds to the nearest power of two, halves up. Values that are not positive
/// become NaN.
static Value expandF32ToE8M0(Emitter e, Value value, Type format) {
  Value bits = e.bitcast(e.i32(), value);
  Value code = e.op<arith::ShRUIOp>(e.op<arith::AddIOp>(bits, 0x00400000), 23);
  Value rest = e.cast<arith::ExtUIOp>(
      e.i32(), e.cmp(arith::CmpIPredicate::uge, bits, 0x00600000));
  code =
      e.select(e.cmp(arith::CmpIPredicate::ult, bits, 0x00800000), rest, code);
  Value positive = e.cmp(arith::CmpIPredicate::sgt, bits, 0);
  code = e.select(positive, e.op<arith::MinUIOp>(code, 0xff), e.constant(0xff));
  return e.bitcast(e.type(format), e.cast<arith::TruncIOp>(e.i8(), code));
}

Value fp8::expandF8ToF32(OpBuilder &builder, Location loc, Value value) {
  Emitter e{builder, loc, value.getType()};
  if (isa<Float8E8M0FNUType>(getElementTypeOrSelf(value)))
    return expandE8M0ToF32(e, value);
  BitLayout layout(cast<FloatType>(getElementTypeOrSelf(value)));
  Type integer = e.type(builder.getIntegerType(layout.width));
  Value code = e.cast<arith::ExtUIOp>(e.i32(), e.bitcast(integer, value));
  Value sign = e.op<arith::ShLIOp>(e.op<arith::AndIOp>(code, layout.signMask()),
                                   32 - layout.width);
  Value magnitude = e.op<arith::AndIOp>(code, layout.signMask() - 1);

  // Shift exponent and mantissa into place, and rebase the exponent from 1 (the
  // format's smallest normal) to f32's.
  Value placed = e.op<arith::ShLIOp>(magnitude, layout.shift());
  Value normal = e.op<arith::AddIOp>(placed, layout.bias());
  // A subnormal has no leading one: insert one by taking the next exponent, and
  // subtract it again in f32. Only normal f32 numbers take part.
  Value smallest = e.constant(powerBits(layout.minExponent));
  Value withOne = e.op<arith::AddIOp>(placed, smallest);
  Value subnormal =
      e.bitcast(e.i32(), e.op<arith::SubFOp>(e.bitcast(e.f32(), withOne),
                                             e.bitcast(e.f32(), smallest)));
  Value isSubnormal =
      e.cmp(arith::CmpIPredicate::ult, magnitude, 1 << layout.mantissaBits);
  Value bits = e.select(isSubnormal, subnormal, normal);

  if (layout.unsignedZero) {
    bits = e.op<arith::OrIOp>(bits, sign);
    Value isNaN = e.cmp(arith::CmpIPredicate::eq, code, 0x80);
    return e.bitcast(e.f32(), e.select(isNaN, e.constant(0x7fc00000), bits));
  }
  if (!layout.hasNaN)
    return e.bitcast(e.f32(), e.op<arith::OrIOp>(bits, sign));
  // Codes above the largest finite one are infinity or NaN: in f32, the
  // mantissa under the largest exponent, or the quiet NaN.
  Value special = layout.hasInfinity ? e.op<arith::OrIOp>(placed, 0x7f800000)
                                     : e.constant(0x7fc00000);
  Value isSpecial =
      e.cmp(arith::CmpIPredicate::ugt, magnitude, layout.largestCode);
  bits = e.select(isSpecial, special, bits);
  return e.bitcast(e.f32(), e.op<arith::OrIOp>(bits, sign));
}

/// Decodes E4M3FN or E5M2 by way of f16, whose exponents are as wide as those
/// of E5M2, so that one instruction finds the exponents of subnormals.
static Value expandF8ToF32ByF16(Emitter e, Value value) {
  Value code = e.bitcast(e.i8(), value);
  auto toF32 = [&](Value bits) {
    return e.cast<arith::ExtFOp>(e.f32(),
                                 e.bitcast(e.type(e.b.getF16Type()), bits));
  };
  if (isa<Float8E5M2Type>(getElementTypeOrSelf(value)))
    return toF32(e.op<arith::ShLIOp>(e.cast<arith::ExtUIOp>(e.i16(), code), 8));
  // After sign extension and the shift, copies of the sign occupy the bits
  // above the exponent: s ssss ssss eeee mmm -> s s eeee mmm 0000000, whose
  // second bit is cleared.
  Value moved = e.op<arith::ShLIOp>(e.cast<arith::ExtSIOp>(e.i16(), code), 7);
  Value bits = e.op<arith::AndIOp>(moved, -0x4001);
  // All ones is NaN: adding one carries into the cleared bit, which makes the
  // exponent the largest.
  Value carry = e.op<arith::AndIOp>(e.op<arith::AddIOp>(bits, 0x80), 0x4000);
  // The exponent is that of f16, whose bias is larger by 8.
  return e.op<arith::MulFOp>(toF32(e.op<arith::OrIOp>(bits, carry)),
                             e.constant(e.b.getF32FloatAttr(256.0f)));
}

static Value magnitudeOf(Emitter e, Value bits) {
  return e.op<arith::AndIOp>(bits, 0x7fffffff);
}

/// Returns the number of `format` with the code of the magnitude of the f32
/// number `bits`, and its sign; NaN if that is NaN.
static Value assemble(Emitter e, FloatType format, Value bits, Value code) {
  BitLayout layout(format);
  Value sign = e.op<arith::AndIOp>(
      e.op<arith::ShRUIOp>(bits, 32 - layout.width), layout.signMask());
  Value nan = e.constant(layout.nanCode());
  Value isNaN =
      e.cmp(arith::CmpIPredicate::ugt, magnitudeOf(e, bits), 0x7f800000);
  if (layout.unsignedZero) {
    // There is no negative zero: its code is NaN's.
    Value isZero = e.cmp(arith::CmpIPredicate::eq, code, 0);
    code = e.select(isZero, code, e.op<arith::OrIOp>(code, sign));
    code = e.select(isNaN, nan, code);
  } else {
    // Without infinity, the next code after the largest is already NaN's.
    if (layout.hasInfinity || !layout.hasNaN)
      code = e.select(isNaN, nan, code);
    code = e.op<arith::OrIOp>(code, sign);
  }
  Type integer = e.type(e.b.getIntegerType(layout.width));
  return e.bitcast(e.type(format), e.cast<arith::TruncIOp>(integer, code));
}

Value fp8::expandF32ToF8(OpBuilder &builder, Location loc, Value value,
                         FloatType format) {
  Emitter e{builder, loc, value.getType()};
  if (isa<Float8E8M0FNUType>(format))
    return expandF32ToE8M0(e, value, format);
  BitLayout layout(format);
  Value bits = e.bitcast(e.i32(), value);
  Value a = e.op<arith::MinUIOp>(magnitudeOf(e, bits), layout.beyondBits());

  // Add c, whose last bit has the weight of the last bit of the code: the f32
  // addition rounds there, to nearest even. Below the smallest normal that
  // weight is constant.
  int32_t smallest = powerBits(layout.minExponent);
  Value exponent =
      e.op<arith::MaxUIOp>(e.op<arith::AndIOp>(a, 0x7f800000), smallest);
  Value c = e.op<arith::AddIOp>(exponent, layout.shift() << 23);
  Value sum = e.op<arith::AddFOp>(e.bitcast(e.f32(), a), e.bitcast(e.f32(), c));
  Value significand = e.op<arith::SubIOp>(e.bitcast(e.i32(), sum), c);
  Value biased = e.op<arith::ShRUIOp>(e.op<arith::SubIOp>(exponent, smallest),
                                      layout.shift());
  return assemble(e, format, bits, e.op<arith::AddIOp>(significand, biased));
}

/// bf16 is the upper half of f32.
static Value expandBF16ToF32(Emitter e, Value value) {
  Value bits = e.cast<arith::ExtUIOp>(e.i32(), e.bitcast(e.i16(), value));
  return e.bitcast(e.f32(), e.op<arith::ShLIOp>(bits, 16));
}

static Value upperHalf(Emitter e, Value bits, Type bf16) {
  Value upper =
      e.cast<arith::TruncIOp>(e.i16(), e.op<arith::ShRUIOp>(bits, 16));
  return e.bitcast(e.type(bf16), upper);
}

/// Returns the upper half of `rounded`, the bits of the f32 number `value`
/// after rounding; NaN if that is NaN.
static Value finishBF16(Emitter e, Value value, Value rounded, Type bf16) {
  Value isNaN = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO,
                                      value, value);
  Value quiet = e.op<arith::OrIOp>(e.bitcast(e.i32(), value), 0x400000);
  return upperHalf(e, e.select(isNaN, quiet, rounded), bf16);
}

static Value expandF32ToBF16(Emitter e, Value value, Type type) {
  Value bits = e.bitcast(e.i32(), value);
  // Add half of the last place, less one unit where a tie must stay even.
  Value odd = e.op<arith::AndIOp>(e.op<arith::ShRUIOp>(bits, 16), 1);
  Value rounded = e.op<arith::AddIOp>(e.op<arith::AddIOp>(bits, 0x7fff), odd);
  return finishBF16(e, value, rounded, type);
}

Value fp8::expandStochasticCast(OpBuilder &builder, Location loc, Value value,
                                FloatType format, Value random) {
  Emitter e{builder, loc, value.getType()};
  Value bits = e.bitcast(e.i32(), value);
  // Of n bits that are cut off, as a fraction of 2^n, the upper n bits of this
  // number carry into the next bit if the fraction is above `random` / 2^24.
  Value carrying = e.op<arith::XOrIOp>(random, 0xffffff);
  auto carry = [&](Value fixed, int32_t below) {
    return e.op<arith::AddIOp>(fixed,
                               e.op<arith::ShRUIOp>(carrying, 24 - below));
  };
  if (format.isBF16())
    return finishBF16(e, value, carry(bits, 16), format);

  BitLayout layout(format);
  Value a = e.op<arith::MinUIOp>(magnitudeOf(e, bits), layout.beyondBits());
  auto round = [&](Value fixed, int32_t below) {
    return e.op<arith::ShRUIOp>(carry(fixed, below), below);
  };
  Value normal = round(e.op<arith::AddIOp>(a, -layout.bias()), layout.shift());

  // Subnormals are multiples of one distance, here a fixed-point number. It has
  // the bits of the random number, or as many as there is place for. A part
  // below them counts as one: this does not change the comparison.
  int32_t below = std::min(24, 30 - layout.mantissaBits);
  int32_t smallest = powerBits(layout.minExponent);
  Value small = e.bitcast(e.f32(), e.op<arith::MinUIOp>(a, smallest));
  Value steps = e.op<arith::MulFOp>(
      small, e.constant(e.b.getF32FloatAttr(std::ldexp(
                 1.0f, below + layout.mantissaBits - layout.minExponent))));
  Value fixed = e.cast<arith::FPToSIOp>(
      e.i32(), math::CeilOp::create(builder, loc, steps));
  Value isSubnormal = e.cmp(arith::CmpIPredicate::ult, a, smallest);
  return assemble(e, format, bits,
                  e.select(isSubnormal, round(fixed, below), normal));
}

/// Converts f64 to f32, rounding to odd. A second rounding to fewer bits then
/// gives the same result as a single one.
static Value roundToOdd(Emitter e, Value value) {
  Value nearest = e.cast<arith::TruncFOp>(e.f32(), value);
  Value back = e.cast<arith::ExtFOp>(e.f64(), nearest);
  Value bits = e.bitcast(e.i32(), nearest);
  auto cmp = [&](arith::CmpFPredicate predicate, Value lhs,
                 Value rhs) -> Value {
    return arith::CmpFOp::create(e.b, e.loc, predicate, lhs, rhs);
  };
  Value zero =
      arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(back.getType()));
  // If the rounding went away from zero, go one step back. (Test the sign of
  // the input, because the nearest number may be zero.)
  Value away = e.select(cmp(arith::CmpFPredicate::OGE, value, zero),
                        cmp(arith::CmpFPredicate::OGT, back, value),
                        cmp(arith::CmpFPredicate::OLT, back, value));
  Value truncated =
      e.op<arith::SubIOp>(bits, e.cast<arith::ExtUIOp>(e.i32(), away));
  Value inexact = cmp(arith::CmpFPredicate::ONE, back, value);
  Value odd =
      e.op<arith::OrIOp>(truncated, e.cast<arith::ExtUIOp>(e.i32(), inexact));
  return e.bitcast(e.f32(), odd);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Whether the elements are floats of at most 8 bits, including formats that no
/// recipe names.
static bool isF8(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 8;
}
static bool isBF16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

namespace {

struct ExpandExtF : OpRewritePattern<arith::ExtFOp> {
  ExpandExtF(MLIRContext *context, bool byF16)
      : OpRewritePattern(context), byF16(byF16) {}
  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Value in = op.getIn();
    Emitter e{rewriter, op.getLoc(), op.getType()};
    Value f32;
    if (byF16 && isa<Float8E4M3FNType, Float8E5M2Type>(
                     getElementTypeOrSelf(in.getType())))
      f32 = expandF8ToF32ByF16(e, in);
    else if (isF8(in.getType()))
      f32 = expandF8ToF32(rewriter, op.getLoc(), in);
    else if (isBF16(in.getType()))
      f32 = expandBF16ToF32(e, in);
    else
      return failure();
    Type element = getElementTypeOrSelf(op.getType());
    if (element.isF32())
      rewriter.replaceOp(op, f32);
    else if (element.getIntOrFloatBitWidth() > 32)
      rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), f32);
    else if (element.isBF16()) // Every f8 number is one of bf16.
      rewriter.replaceOp(op, upperHalf(e, e.bitcast(e.i32(), f32), element));
    else // And one of f16.
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), f32);
    return success();
  }

private:
  bool byF16;
};

struct ExpandTruncF : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isF8(op.getType()) && !isBF16(op.getType()))
      return failure();
    if (op.getRoundingmode() &&
        *op.getRoundingmode() != arith::RoundingMode::to_nearest_even)
      return rewriter.notifyMatchFailure(op, "rounds another way");
    Emitter e{rewriter, op.getLoc(), op.getType()};
    Value in = op.getIn();
    unsigned width = getElementTypeOrSelf(in).getIntOrFloatBitWidth();
    if (width > 64)
      return rewriter.notifyMatchFailure(op, "wider than f64");
    if (width == 64)
      in = roundToOdd(e, in);
    else if (width < 32)
      in = e.cast<arith::ExtFOp>(e.f32(), in);
    auto format = cast<FloatType>(getElementTypeOrSelf(op.getType()));
    rewriter.replaceOp(op,
                       isF8(op.getType())
                           ? expandF32ToF8(rewriter, op.getLoc(), in, format)
                           : expandF32ToBF16(e, in, format));
    return success();
  }
};

struct ExpandCmpF : OpRewritePattern<arith::CmpFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::CmpFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isF8(op.getLhs().getType()))
      return failure();
    rewriter.replaceOpWithNewOp<arith::CmpFOp>(
        op, op.getPredicate(),
        expandF8ToF32(rewriter, op.getLoc(), op.getLhs()),
        expandF8ToF32(rewriter, op.getLoc(), op.getRhs()));
    return success();
  }
};

/// Converts integers to f8 or bf16. Integers that f32 rounds are beyond every
/// f8 format, so that nothing is rounded twice; wide integers become bf16 by
/// way of f64.
template <typename OpTy> struct ExpandFromInt : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isF8(op.getType()) && !isBF16(op.getType()))
      return failure();
    Emitter e{rewriter, op.getLoc(), op.getType()};
    if (isBF16(op.getType())) {
      bool wide = getElementTypeOrSelf(op.getIn()).getIntOrFloatBitWidth() > 24;
      Value exact = e.cast<OpTy>(wide ? e.f64() : e.f32(), op.getIn());
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), exact);
      return success();
    }
    Value f32 = e.cast<OpTy>(e.f32(), op.getIn());
    rewriter.replaceOp(
        op, expandF32ToF8(rewriter, op.getLoc(), f32,
                          cast<FloatType>(getElementTypeOrSelf(op.getType()))));
    return success();
  }
};

template <typename OpTy> struct ExpandToInt : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isF8(op.getIn().getType()))
      return failure();
    rewriter.replaceOpWithNewOp<OpTy>(
        op, op.getType(), expandF8ToF32(rewriter, op.getLoc(), op.getIn()));
    return success();
  }
};

struct FP8ExpandCasts : fp8::impl::FP8ExpandCastsBase<FP8ExpandCasts> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateExpandCastsPatterns(patterns,
                                TargetInfo::around(getOperation()).hasF16C);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();

    // Report ops that would reach LLVM unlowered.
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
              op->getDialect()) ||
          isa<arith::BitcastOp, arith::ConstantOp, arith::SelectOp>(op))
        return WalkResult::advance();
      auto isF8Value = [](Type type) { return isF8(type); };
      if (llvm::none_of(op->getOperandTypes(), isF8Value) &&
          llvm::none_of(op->getResultTypes(), isF8Value))
        return WalkResult::advance();
      return op->emitOpError("expected f8 only in casts, comparisons and "
                             "copies but got f8 arithmetic");
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

void fp8::populateExpandCastsPatterns(RewritePatternSet &patterns, bool byF16) {
  patterns.add<ExpandExtF>(patterns.getContext(), byF16);
  patterns.add<ExpandTruncF, ExpandCmpF, ExpandFromInt<arith::SIToFPOp>,
               ExpandFromInt<arith::UIToFPOp>, ExpandToInt<arith::FPToSIOp>,
               ExpandToInt<arith::FPToUIOp>>(patterns.getContext());
}
