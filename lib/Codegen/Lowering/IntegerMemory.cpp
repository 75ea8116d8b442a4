//===- IntegerMemory.cpp - Vectors of bf16 in memory as integers ----------===//
//
// If the CPU has avx512_bf16, LLVM 22 keeps bf16 as a legal type but cannot
// split, for instance, a store of 9 elements: "do not know how to soft promote
// this operator's operand" ends the process. Integers of the same size do not
// have this problem, and moving values needs no other type.
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
    });
  }

private:
  static void rewrite(OpBuilder &builder, LLVM::LoadOp load) {
    Type type = load.getType(), integers = getIntegers(type);
    if (!integers)
      return;
    load.getResult().setType(integers);
    builder.setInsertionPointAfter(load);
    auto cast =
        LLVM::BitcastOp::create(builder, load.getLoc(), type, load.getResult());
    load.getResult().replaceAllUsesExcept(cast, cast);
  }

  static void rewrite(OpBuilder &builder, LLVM::StoreOp store) {
    Type integers = getIntegers(store.getValue().getType());
    if (!integers)
      return;
    builder.setInsertionPoint(store);
    store.getValueMutable().assign(builder.createOrFold<LLVM::BitcastOp>(
        store.getLoc(), integers, store.getValue()));
  }
};

} // namespace
