//===- FastSoftmax.cpp - Instructions for the softmax of 16 bits ----------===//
//
// The weights of an attention in bf16 or f16 have at most 11 bits. ex2.approx
// has an error of 2^-22 (PTX ISA, "Floating Point Instructions: ex2"), to which
// the rounding of x log2(e) adds |x| 2^-24, and div.approx one of two units in
// the last place. So where all dots of an attention multiply such elements,
// these instructions are used instead of polynomials and IEEE's quotient, which
// take ten times as many.
//
//===----------------------------------------------------------------------===//

#include "FastSoftmax.h"

#include "DotPlan.h"

#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;

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

/// Returns 2 to the power of each element.
static Value makeEx2(OpBuilder &b, Location loc, Value x) {
  auto ex2 = [&](Value element) {
    return LLVM::CallIntrinsicOp::create(
               b, loc, b.getF32Type(),
               b.getStringAttr("llvm.nvvm.ex2.approx.f32"), element)
        .getResult(0);
  };
  auto type = dyn_cast<VectorType>(x.getType());
  if (!type)
    return ex2(x);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    elements.push_back(ex2(vector::ExtractOp::create(b, loc, x, i)));
  return vector::FromElementsOp::create(b, loc, type, elements);
}

void gpu_codegen::expandFastExponentials(Operation *op) {
  op->walk([](math::ExpOp exp) {
    if (!bitEnumContainsAll(exp.getFastmath(), kApproximate))
      return;
    OpBuilder b(exp);
    Location loc = exp.getLoc();
    TypedAttr log2e = b.getF32FloatAttr(1.44269504f);
    if (auto type = dyn_cast<VectorType>(exp.getType()))
      log2e = DenseElementsAttr::get(type, cast<Attribute>(log2e));
    Value x = arith::MulFOp::create(b, loc, exp.getOperand(),
                                    arith::ConstantOp::create(b, loc, log2e));
    exp.replaceAllUsesWith(makeEx2(b, loc, x));
    exp.erase();
  });
}
