//===- ExpandMath.cpp - Expansion of math functions -----------------------===//

#include "fp8/Conversion/ExpandMath/ExpandMath.h"

#include "MathFunctions.h"

#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8::expandmath;

namespace mlir::fp8 {
#define GEN_PASS_DEF_EXPANDMATH
#include "fp8/Conversion/ExpandMath/Passes.h.inc"
} // namespace mlir::fp8

static V trunc(V x) { return x.abs().floor().copysign(x); }

/// Rounds half away from zero.
static V round(V x) {
  V a = x.abs();
  V down = a.floor();
  V up = cmp(arith::CmpFPredicate::OGE, a - down, a.f(0.5));
  return select(up, down + 1.0, down).copysign(x);
}

/// Returns whether a power may be approximated: it says so, and its base is not
/// negative.
static bool isApproximate(math::PowFOp op) {
  return bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn) &&
         op.getLhs().getDefiningOp<math::AbsFOp>();
}

/// Returns the expansion of an op with f32 operands, or null for ops that stay.
static Value expandF32(Operation *op, ArrayRef<V> x) {
  auto in64 = [&](V (*function)(V)) {
    return function(x[0].toF64()).toF32().v;
  };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return exp32(x[0]).v; })
      .Case([&](math::Exp2Op) { return exp2_32(x[0]).v; })
      .Case([&](math::TanhOp) { return tanh32(x[0]).v; })
      .Case([&](math::ErfOp) { return erf32(x[0]).v; })
      .Case([&](math::RsqrtOp) { return (1.0 / x[0].sqrt()).v; })
      .Case([&](math::SinOp) { return sine(x[0], 0).v; })
      .Case([&](math::CosOp) { return sine(x[0], 1).v; })
      .Case([&](math::TanOp) { return tan(x[0]).v; })
      .Case([&](math::PowFOp pow) {
        return (isApproximate(pow) ? approximatePow32 : pow32)(x[0], x[1]).v;
      })
      .Case([&](math::Atan2Op) {
        return atan2_64(x[0].toF64(), x[1].toF64()).toF32().v;
      })
      .Case([&](math::ExpM1Op) { return in64(expm1_64); })
      .Case([&](math::LogOp) { return in64(log64); })
      .Case([&](math::Log2Op) { return in64(log2_64); })
      .Case([&](math::Log10Op) { return in64(log10_64); })
      .Case([&](math::Log1pOp) { return in64(log1p64); })
      .Case([&](math::AtanOp) { return in64(atan64); })
      .Case([&](math::AsinOp) { return in64(asin64); })
      .Case([&](math::AcosOp) { return in64(acos64); })
      .Case([&](math::SinhOp) { return in64(sinh64); })
      .Case([&](math::CoshOp) { return in64(cosh64); })
      .Case([&](math::AsinhOp) { return in64(asinh64); })
      .Case([&](math::AcoshOp) { return in64(acosh64); })
      .Case([&](math::AtanhOp) { return in64(atanh64); })
      .Case([&](math::ErfcOp) { return in64(erfc64); })
      .Case([&](math::CbrtOp) { return in64(cbrt64); })
      .Default([](Operation *) { return Value(); });
}

/// Returns the expansion of an op that works for every float type, or null for
/// other ops.
static Value expandForAnyType(Operation *op, V x) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::TruncOp) { return trunc(x).v; })
      .Case([&](math::RoundOp) { return round(x).v; })
      .Case([&](math::IsNaNOp) { return isNaN(x).v; })
      .Case([&](math::IsInfOp) { return eq(x.abs(), kInf).v; })
      .Case([&](math::IsFiniteOp) { return lt(x.abs(), kInf).v; })
      .Default([](Operation *) { return Value(); });
}

/// Returns the expansion of an op on f64, or null for ops that stay.
static Value expandF64(Operation *op, V x) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::RsqrtOp) { return (1.0 / x.sqrt()).v; })
      .Case([&](math::ExpM1Op) { return expm1F64(x).v; })
      .Case([&](math::Log1pOp) { return log1p64(x).v; })
      .Case([&](math::CbrtOp) { return cbrtF64(x).v; })
      .Case([&](math::AsinhOp) { return asinhF64(x).v; })
      .Case([&](math::AcoshOp) { return acoshF64(x).v; })
      .Case([&](math::AtanhOp) { return atanhF64(x).v; })
      .Case([&](math::ErfOp) { return erfF64(x).v; })
      .Case([&](math::ErfcOp) { return erfcF64(x).v; })
      .Default([](Operation *) { return Value(); });
}

/// Returns the expansion of an op on f32, or on a narrower type, which is
/// converted to f32 and back; null for ops that stay.
static Value expandUpToF32(Operation *op, MathBuilder &b,
                           PatternRewriter &rewriter) {
  Type type = op->getOperand(0).getType();
  Type element = getElementTypeOrSelf(type);
  bool narrow = element.isF16() || element.isBF16();
  if (!element.isF32() && !narrow)
    return nullptr;
  SmallVector<V> operands;
  for (Value operand : op->getOperands()) {
    if (operand.getType() != type)
      return nullptr;
    V x{&b, operand};
    if (narrow)
      x = x.wrap(arith::ExtFOp::create(b, x.withElement(b.getF32Type()), x.v));
    operands.push_back(x);
  }
  Value result = expandF32(op, operands);
  if (result && narrow)
    return arith::TruncFOp::create(b, type, result);
  for (V x : operands)
    if (!result && narrow)
      rewriter.eraseOp(x.v.getDefiningOp());
  return result;
}

namespace {
struct ExpandFunction : RewritePattern {
  ExpandFunction(MLIRContext *context, bool hasLdexp)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), hasLdexp(hasLdexp) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa_and_present<math::MathDialect>(op->getDialect()) ||
        op->getNumResults() != 1)
      return failure();
    MathBuilder b(op->getLoc(), rewriter, hasLdexp);
    V first{&b, op->getOperand(0)};
    if (!first.isFloat())
      return failure();
    Value result = expandForAnyType(op, first);
    if (!result)
      result = first.elementType().isF64() ? expandF64(op, first)
                                           : expandUpToF32(op, b, rewriter);
    if (!result)
      return failure();
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  bool hasLdexp;
};

struct ExpandMathPass : fp8::impl::ExpandMathBase<ExpandMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandFunction>(
        &getContext(), fp8::TargetInfo::around(getOperation()).hasAVX512);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

/// Calls `function` in f64 for an f32 or f64 value.
template <V (*function)(V)>
static Value expandIn64(OpBuilder &builder, Location loc, Value value) {
  MathBuilder b(loc, builder, /*hasLdexp=*/false);
  V x{&b, value};
  return x.elementType().isF64() ? function(x).v
                                 : function(x.toF64()).toF32().v;
}

Value fp8::expandLgamma(OpBuilder &builder, Location loc, Value x) {
  return expandIn64<lgamma64>(builder, loc, x);
}

Value fp8::expandDigamma(OpBuilder &builder, Location loc, Value x) {
  return expandIn64<digamma64>(builder, loc, x);
}

Value fp8::expandErfInv(OpBuilder &builder, Location loc, Value x) {
  if (getElementTypeOrSelf(x).isF64())
    return expandIn64<erfInvF64>(builder, loc, x);
  return expandIn64<erfInv64>(builder, loc, x);
}
