//===- Reciprocals.cpp - Reciprocals of vectors ---------------------------===//
//
// CUDA's assembler makes a branch of every IEEE reciprocal: numbers whose
// reciprocal is neither zero, subnormal nor infinite take an approximation and
// one step of Newton's method, others a function. It moves nothing across these
// branches, so every element would wait for the one before. Here the elements
// of a vector share one branch. Both of its sides compute the same bits as the
// assembler's.
//
//===----------------------------------------------------------------------===//

#include "Reciprocals.h"
#include "FastSoftmax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Twice the bits of 2^-126, the smallest normal number, and the distance from
/// there to those of 2^126, the reciprocal of that.
static constexpr int64_t kLeastBits = 0x01000000, kRange = 0xFC000000;

/// Returns whether an op is a vector of IEEE reciprocals in f32.
static bool isReciprocal(arith::DivFOp div) {
  auto type = dyn_cast<VectorType>(div.getType());
  Value lhs = div.getLhs();
  if (auto broadcast = lhs.getDefiningOp<vector::BroadcastOp>())
    lhs = broadcast.getSource();
  return type && type.getRank() == 1 && type.getElementType().isF32() &&
         div.getFastmath() == arith::FastMathFlags::none &&
         matchPattern(lhs, m_OneFloat());
}

static Value splat(OpBuilder &b, Location loc, VectorType type,
                   Attribute value) {
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, value));
}

/// Returns whether all elements have magnitudes from 2^-126 to below 2^126.
static Value areOrdinary(OpBuilder &b, Location loc, Value x) {
  auto type =
      VectorType::get(cast<VectorType>(x.getType()).getShape(), b.getI32Type());
  auto of = [&](int64_t value) {
    return splat(b, loc, type,
                 b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  Value bits = arith::BitcastOp::create(b, loc, type, x);
  bits = arith::ShLIOp::create(b, loc, bits, of(1));
  bits = arith::SubIOp::create(b, loc, bits, of(kLeastBits));
  Value areIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, bits,
                                      of(kRange));
  Value all;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value isIn = vector::ExtractOp::create(b, loc, areIn, i);
    all = all ? Value(arith::AndIOp::create(b, loc, all, isIn)) : isIn;
  }
  return all;
}

/// Returns the reciprocals of ordinary numbers.
static Value approximateAndCorrect(OpBuilder &b, Location loc, Value x) {
  auto type = cast<VectorType>(x.getType());
  Value first = callForEach(b, loc, "llvm.nvvm.rcp.approx.ftz.f", x);
  Value error = math::FmaOp::create(
      b, loc, x, first, splat(b, loc, type, b.getF32FloatAttr(-1.0f)));
  return math::FmaOp::create(b, loc, first,
                             arith::NegFOp::create(b, loc, error), first);
}

void gpu_codegen::expandReciprocals(Operation *op) {
  op->walk([](arith::DivFOp div) {
    if (!isReciprocal(div))
      return;
    OpBuilder b(div);
    Location loc = div.getLoc();
    Value x = div.getRhs();
    auto branch = scf::IfOp::create(
        b, loc, areOrdinary(b, loc, x),
        [&](OpBuilder &b, Location loc) {
          scf::YieldOp::create(b, loc, approximateAndCorrect(b, loc, x));
        },
        [&](OpBuilder &b, Location loc) {
          Value same =
              arith::DivFOp::create(b, loc, div.getLhs(), div.getRhs());
          scf::YieldOp::create(b, loc, same);
        });
    div.replaceAllUsesWith(branch.getResult(0));
    div.erase();
  });
}
