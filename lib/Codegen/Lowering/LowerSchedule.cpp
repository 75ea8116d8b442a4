//===- LowerSchedule.cpp - The schedule as launches -----------------------===//

#include "fp8/Codegen/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERSCHEDULE
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

class ScheduleLowering {
public:
  ScheduleLowering(ModuleOp module, func::FuncOp schedule)
      : module(module), schedule(schedule), builder(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult run();

private:
  FailureOr<int64_t> operandCode(Value buffer);
  LLVM::LLVMFuncOp wrapperOf(func::FuncOp kernel);
  LLVM::GlobalOp operandTable(ArrayRef<int64_t> codes, Location loc);

  ModuleOp module;
  func::FuncOp schedule;
  OpBuilder builder;
  Type pointer;
  DenseMap<StringRef, int64_t> constants; // external buffer numbers
  unsigned tables = 0;
};

/// An offset in the arena, or the complement of an external buffer's number.
FailureOr<int64_t> ScheduleLowering::operandCode(Value buffer) {
  while (Operation *def = buffer.getDefiningOp()) {
    if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(def)) {
      buffer = def->getOperand(0);
      continue;
    }
    if (auto view = dyn_cast<memref::ViewOp>(def)) {
      auto offset = view.getByteShift().getDefiningOp<arith::ConstantIndexOp>();
      if (view.getSource() != schedule.getArgument(0) || !offset)
        return def->emitOpError("expected a constant offset into the arena");
      return offset.value();
    }
    if (auto global = dyn_cast<memref::GetGlobalOp>(def))
      return ~constants.lookup(global.getName());
    return def->emitOpError("expected a view of the arena, an argument or a "
                            "constant as operand of a kernel");
  }
  // The arena is argument 0. A view of all of it, as bytes, folds to it.
  int64_t number = cast<BlockArgument>(buffer).getArgNumber();
  return number == 0 ? 0 : ~(number - 1);
}

/// void (i64 task, ptr operands, ptr scratch), as the runtime calls it.
LLVM::LLVMFuncOp ScheduleLowering::wrapperOf(func::FuncOp kernel) {
  std::string name = (kernel.getSymName() + "_task").str();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(kernel);
  Location loc = kernel.getLoc();
  Type i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), {i64, pointer, pointer});
  auto wrapper = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  Block *block = wrapper.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  // Kernels take bare pointers, so a cast of each pointer is all there is.
  auto toKernelType = [&](Value value, Type type) {
    return UnrealizedConversionCastOp::create(builder, loc, type, value)
        .getResult(0);
  };
  SmallVector<Value> arguments;
  arguments.push_back(
      toKernelType(block->getArgument(0), builder.getIndexType()));
  auto asMemref = [&](Value base, Type type) {
    // A bare pointer becomes a static memref descriptor.
    auto memref = cast<MemRefType>(type);
    auto structType = LLVM::LLVMStructType::getLiteral(
        builder.getContext(),
        memref.getRank() == 0
            ? SmallVector<Type>{pointer, pointer, i64}
            : SmallVector<Type>{
                  pointer, pointer, i64,
                  LLVM::LLVMArrayType::get(i64, memref.getRank()),
                  LLVM::LLVMArrayType::get(i64, memref.getRank())});
    Value descriptor = LLVM::PoisonOp::create(builder, loc, structType);
    auto insert = [&](Value value, ArrayRef<int64_t> position) {
      descriptor = LLVM::InsertValueOp::create(builder, loc, descriptor, value,
                                               position);
    };
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(builder, loc, i64,
                                      builder.getI64IntegerAttr(value));
    };
    insert(base, {0});
    insert(base, {1});
    insert(constant(0), {2});
    int64_t stride = 1;
    for (int64_t dim = memref.getRank() - 1; dim >= 0; --dim) {
      insert(constant(memref.getDimSize(dim)), {3, dim});
      insert(constant(stride), {4, dim});
      stride *= memref.getDimSize(dim);
    }
    return toKernelType(descriptor, type);
  };
  arguments.push_back(
      asMemref(block->getArgument(2), kernel.getArgumentTypes()[1]));
  for (auto [index, type] :
       llvm::enumerate(kernel.getArgumentTypes().drop_front(2))) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, pointer, pointer, block->getArgument(1),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    Value base = LLVM::LoadOp::create(builder, loc, pointer, slot);
    arguments.push_back(asMemref(base, type));
  }
  func::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange{});
  return wrapper;
}

LLVM::GlobalOp ScheduleLowering::operandTable(ArrayRef<int64_t> codes,
                                              Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), codes.size());
  auto values = DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(codes.size())},
                            builder.getI64Type()),
      codes);
  return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                LLVM::Linkage::Internal,
                                "operands_" + std::to_string(tables++), values);
}

LogicalResult ScheduleLowering::run() {
  int64_t external = schedule.getNumArguments() - 1;
  for (auto global : module.getOps<memref::GlobalOp>())
    constants[global.getSymName()] = external++;

  Location loc = schedule.getLoc();
  builder.setInsertionPointToStart(module.getBody());
  Type i64 = builder.getI64Type();
  Type none = LLVM::LLVMVoidType::get(builder.getContext());
  auto launch = LLVM::LLVMFuncOp::create(
      builder, loc, "fp8_launch",
      LLVM::LLVMFunctionType::get(none, {pointer, pointer, i64, pointer, i64}));
  auto entry = LLVM::LLVMFuncOp::create(
      builder, loc, "fp8_entry", LLVM::LLVMFunctionType::get(none, {pointer}));
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  auto constant = [&](int64_t value, Location loc) -> Value {
    return LLVM::ConstantOp::create(builder, loc, i64,
                                    builder.getI64IntegerAttr(value));
  };
  // Each call is in the loop over its tasks, unless there is just one.
  SmallVector<func::CallOp> calls;
  schedule.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto kernel = module.lookupSymbol<func::FuncOp>(call.getCallee());
    auto tasks = kernel->getAttrOfType<IntegerAttr>(kTasksAttr);
    if (!tasks)
      return call.emitOpError("expected a kernel lowered by fp8-lower-kernels");
    SmallVector<int64_t> codes;
    // After the task and its scratch.
    for (Value operand : call.getOperands().drop_front(2)) {
      FailureOr<int64_t> code = operandCode(operand);
      if (failed(code))
        return failure();
      codes.push_back(*code);
    }
    Location loc = call.getLoc();
    Value table =
        LLVM::AddressOfOp::create(builder, loc, operandTable(codes, loc));
    Value function = LLVM::AddressOfOp::create(builder, loc, wrapperOf(kernel));
    LLVM::CallOp::create(builder, loc, launch,
                         ValueRange{block->getArgument(0), function,
                                    constant(tasks.getInt(), loc), table,
                                    constant(codes.size(), loc)});
  }
  LLVM::ReturnOp::create(builder, loc, ValueRange{});
  schedule.erase();
  return success();
}

class LowerSchedule : public fp8::impl::LowerScheduleBase<LowerSchedule> {
public:
  void runOnOperation() override {
    SmallVector<func::FuncOp> schedules;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr(kArenaBytesAttr))
        schedules.push_back(func);
    if (schedules.size() != 1) {
      getOperation().emitOpError("expected one planned schedule but got ")
          << schedules.size();
      return signalPassFailure();
    }
    if (failed(ScheduleLowering(getOperation(), schedules.front()).run()))
      signalPassFailure();
  }
};

} // namespace
