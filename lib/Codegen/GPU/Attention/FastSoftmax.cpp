//===- FastSoftmax.cpp - Instructions for the softmax of 16 bits ----------===//
//
// The weights of an attention in bf16 or f16 have at most 11 bits. ex2.approx
// has an error of 2^-22 (PTX ISA, "Floating Point Instructions: ex2"), to which
// the rounding of x log2(e) adds |x| 2^-24, and a product with rcp.approx one
// of two units in the last place. So where all dots of an attention multiply
// such elements, these instructions are used instead of polynomials and IEEE's
// quotient, which take ten times as many. Results below 2^-126 become zero, and
// divisors are taken to be at least that large and at most 2^126.
//
//===----------------------------------------------------------------------===//

#include "FastSoftmax.h"

#include "../Dots/DotPlan.h"

#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

static constexpr arith::FastMathFlags kApproximate = arith::FastMathFlags::afn;

void gpu_codegen::allowFastSoftmax(KernelOp kernel) {
  auto generics = kernel.getBody().getOps<linalg::GenericOp>();
  if (!isAttention(kernel) || !llvm::all_of(generics, [](auto op) {
        return !isDot(op) || multipliesMatrices(op);
      }))
    return;
  auto flags = arith::FastMathFlagsAttr::get(kernel.getContext(), kApproximate);
  kernel.getBody().walk([&](Operation *op) {
    if (auto exp = dyn_cast<math::ExpOp>(op); exp && exp.getType().isF32())
      exp.setFastmathAttr(flags);
    if (auto div = dyn_cast<arith::DivFOp>(op); div && div.getType().isF32())
      div.setFastmathAttr(flags);
  });
}

Value gpu_codegen::callForEach(OpBuilder &b, Location loc,
                               StringRef instruction, Value x) {
  auto call = [&](Value element) {
    return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(),
                                         b.getStringAttr(instruction), element)
        .getResult(0);
  };
  auto type = dyn_cast<VectorType>(x.getType());
  if (!type)
    return call(x);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    elements.push_back(call(vector::ExtractOp::create(b, loc, x, i)));
  return vector::FromElementsOp::create(b, loc, type, elements);
}

static Value expandExp(OpBuilder &b, math::ExpOp exp) {
  Location loc = exp.getLoc();
  TypedAttr log2e = b.getF32FloatAttr(1.44269504f);
  if (auto type = dyn_cast<VectorType>(exp.getType()))
    log2e = DenseElementsAttr::get(type, cast<Attribute>(log2e));
  Value x = arith::MulFOp::create(b, loc, exp.getOperand(),
                                  arith::ConstantOp::create(b, loc, log2e));
  return callForEach(b, loc, "llvm.nvvm.ex2.approx.ftz.f32", x);
}

/// The reciprocal of a row is computed once for all of its elements.
static Value expandQuotient(OpBuilder &b, arith::DivFOp div) {
  Location loc = div.getLoc();
  Value reciprocal =
      callForEach(b, loc, "llvm.nvvm.rcp.approx.ftz.f", div.getRhs());
  return arith::MulFOp::create(b, loc, div.getLhs(), reciprocal);
}

void gpu_codegen::expandFastSoftmax(Operation *op) {
  op->walk([](Operation *inner) {
    OpBuilder b(inner);
    Value result;
    if (auto exp = dyn_cast<math::ExpOp>(inner);
        exp && bitEnumContainsAll(exp.getFastmath(), kApproximate))
      result = expandExp(b, exp);
    if (auto div = dyn_cast<arith::DivFOp>(inner);
        div && bitEnumContainsAll(div.getFastmath(), kApproximate))
      result = expandQuotient(b, div);
    if (!result)
      return;
    inner->replaceAllUsesWith(ValueRange(result));
    inner->erase();
  });
}
