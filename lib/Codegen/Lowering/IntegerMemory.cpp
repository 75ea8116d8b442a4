//===- IntegerMemory.cpp - bf16 is moved as integers ----------------------===//
//
// If the CPU has avx512_bf16, LLVM 22 keeps bf16 as a legal type but cannot
// split, for instance, a store of 9 elements: "do not know how to soft promote
// this operator's operand" ends the process. On other CPUs it selects in f32,
// and rounds with a call of a library function that no process has. Integers of
// the same size do not have these problems, and moving values needs no other
// type.
//
//===----------------------------------------------------------------------===//

#include "fp8/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_INTEGERMEMORY
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// Returns the i16 vector of the size of a vector of bf16; null for any other
/// type.
static Type getIntegers(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !vector.getElementType().isBF16())
    return nullptr;
  return vector.clone(IntegerType::get(type.getContext(), 16));
}

/// Makes the result of `op` one of `integers`, which its readers cast back.
static void castResult(OpBuilder &builder, Operation *op, Type integers) {
  Value result = op->getResult(0);
  Type type = result.getType();
  result.setType(integers);
  builder.setInsertionPointAfter(op);
  auto cast = LLVM::BitcastOp::create(builder, op->getLoc(), type, result);
  result.replaceAllUsesExcept(cast, cast);
}

static void castOperand(OpBuilder &builder, OpOperand &operand, Type integers) {
  Operation *op = operand.getOwner();
  builder.setInsertionPoint(op);
  operand.set(builder.createOrFold<LLVM::BitcastOp>(op->getLoc(), integers,
                                                    operand.get()));
}

namespace {

class IntegerMemory : public fp8::impl::IntegerMemoryBase<IntegerMemory> {
public:
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    getOperation().walk([&](Operation *op) {
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        rewrite(builder, load);
      else if (auto store = dyn_cast<LLVM::StoreOp>(op))
        rewrite(builder, store);
      else if (auto select = dyn_cast<LLVM::SelectOp>(op))
        rewrite(builder, select);
    });
  }

private:
  static void rewrite(OpBuilder &builder, LLVM::LoadOp load) {
    if (Type integers = getIntegers(load.getType()))
      castResult(builder, load, integers);
  }

  static void rewrite(OpBuilder &builder, LLVM::StoreOp store) {
    if (Type integers = getIntegers(store.getValue().getType()))
      castOperand(builder, store.getValueMutable(), integers);
  }

  static void rewrite(OpBuilder &builder, LLVM::SelectOp select) {
    Type integers = getIntegers(select.getType());
    if (select.getType().isBF16())
      integers = builder.getIntegerType(16);
    if (!integers)
      return;
    castOperand(builder, select.getTrueValueMutable(), integers);
    castOperand(builder, select.getFalseValueMutable(), integers);
    castResult(builder, select, integers);
  }
};

} // namespace
