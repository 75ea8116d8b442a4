//===- Booleans.cpp - Booleans are bytes in memory ------------------------===//

#include "Booleans.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

Type lowering::storageType(Type type) {
  return type.isInteger(1) ? IntegerType::get(type.getContext(), 8) : type;
}

static MemRefType byteType(MemRefType type) {
  return MemRefType::get(type.getShape(), storageType(type.getElementType()));
}

void lowering::storeBooleansAsBytes(ScheduleOp schedule) {
  OpBuilder builder(schedule.getContext());
  auto convert = [](Value value) {
    if (auto type = dyn_cast<MemRefType>(value.getType()))
      value.setType(byteType(type));
  };
  schedule.walk([&](Block *block) {
    llvm::for_each(block->getArguments(), convert);
    for (Operation &op : *block)
      llvm::for_each(op.getResults(), convert);
  });
  // The schedule itself reads conditions and writes flags.
  schedule.walk([&](Operation *op) {
    builder.setInsertionPointAfter(op);
    if (auto load = dyn_cast<memref::LoadOp>(op);
        load && load.getType().isInteger(1)) {
      Value byte = memref::LoadOp::create(builder, op->getLoc(),
                                          load.getMemRef(), load.getIndices());
      Value bit =
          arith::TruncIOp::create(builder, op->getLoc(), load.getType(), byte);
      load.replaceAllUsesWith(bit);
      load.erase();
    } else if (auto store = dyn_cast<memref::StoreOp>(op);
               store && store.getValueToStore().getType().isInteger(1)) {
      builder.setInsertionPoint(op);
      Value byte = arith::ExtUIOp::create(
          builder, op->getLoc(), builder.getI8Type(), store.getValueToStore());
      store.getValueMutable().assign(byte);
    }
  });
  schedule.setFunctionType(builder.getFunctionType(
      schedule.getBody().front().getArgumentTypes(), {}));
}

void lowering::storeBooleansAsBytes(ModuleOp module) {
  OpBuilder builder(module.getContext());
  for (auto global : module.getOps<memref::GlobalOp>()) {
    auto elements =
        dyn_cast_or_null<DenseElementsAttr>(global.getInitialValueAttr());
    if (!elements || !elements.getElementType().isInteger(1))
      continue;
    auto bytes = elements.mapValues(
        builder.getI8Type(), [](const APInt &bit) { return bit.zext(8); });
    global.setInitialValueAttr(bytes);
    global.setType(byteType(cast<MemRefType>(global.getType())));
  }
}
