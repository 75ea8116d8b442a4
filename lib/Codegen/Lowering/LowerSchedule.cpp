//===- LowerSchedule.cpp - The schedule as launches -----------------------===//

#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERSCHEDULE
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Where a buffer is: an operand code (see fp8_launch) and, for a part of it at
/// a place known at run time, how many bytes further.
struct Place {
  int64_t code;
  Value offset; // i64 or null
};

class ScheduleLowering {
public:
  ScheduleLowering(ModuleOp module, func::FuncOp schedule)
      : module(module), schedule(schedule), builder(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult run();

private:
  FailureOr<Place> placeOf(Value buffer);
  LogicalResult lowerCall(func::CallOp call, int64_t number);
  FailureOr<Value> address(Operation *access, Value buffer);
  LogicalResult lowerLoad(memref::LoadOp load);
  LogicalResult lowerStore(memref::StoreOp store);
  LLVM::LLVMFuncOp wrapperOf(func::FuncOp kernel);
  LLVM::GlobalOp operandTable(ArrayRef<int64_t> codes, Location loc);
  Value constant(int64_t value, Location loc) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                    builder.getI64IntegerAttr(value));
  }

  ModuleOp module;
  func::FuncOp schedule;
  OpBuilder builder;
  Type pointer;
  LLVM::LLVMFuncOp launch, operand;
  Value step;
  DenseMap<StringRef, int64_t> constants; // external buffer numbers
  unsigned tables = 0;
};

FailureOr<Place> ScheduleLowering::placeOf(Value buffer) {
  Value offset;
  while (Operation *def = buffer.getDefiningOp()) {
    if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(def)) {
      buffer = def->getOperand(0);
      continue;
    }
    if (auto part = dyn_cast<SubbufferOp>(def)) {
      Location loc = def->getLoc();
      Type i64 = builder.getI64Type();
      int64_t bytes = llvm::divideCeil(
          part.getType().getElementType().getIntOrFloatBitWidth(), 8);
      Value elements =
          arith::IndexCastOp::create(builder, loc, i64, part.getOffset());
      Value further = builder.createOrFold<arith::MulIOp>(
          loc, elements,
          arith::ConstantIntOp::create(builder, loc, i64, bytes));
      offset =
          offset
              ? arith::AddIOp::create(builder, loc, offset, further).getResult()
              : further;
      buffer = part.getSource();
      continue;
    }
    if (auto view = dyn_cast<memref::ViewOp>(def)) {
      auto shift = view.getByteShift().getDefiningOp<arith::ConstantIndexOp>();
      if (view.getSource() != schedule.getArgument(0) || !shift)
        return def->emitOpError("expected a constant offset into the arena");
      return Place{shift.value(), offset};
    }
    if (auto global = dyn_cast<memref::GetGlobalOp>(def))
      return Place{~constants.lookup(global.getName()), offset};
    return def->emitOpError("expected a view of the arena, an argument or a "
                            "constant as operand of a kernel");
  }
  // The arena is argument 0. A view of all of it, as bytes, folds to it.
  int64_t number = cast<BlockArgument>(buffer).getArgNumber();
  return Place{number == 0 ? 0 : ~(number - 1), offset};
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

LogicalResult ScheduleLowering::lowerCall(func::CallOp call, int64_t number) {
  auto kernel = module.lookupSymbol<func::FuncOp>(call.getCallee());
  auto tasks = kernel->getAttrOfType<IntegerAttr>(kTasksAttr);
  if (!tasks)
    return call.emitOpError("expected a kernel lowered by fp8-lower-kernels");
  Location loc = call.getLoc();
  // The call is in the loop over its tasks, unless there is just one.
  Operation *place = call;
  if (auto task = dyn_cast<BlockArgument>(call.getOperand(0)))
    place = task.getOwner()->getParentOp();
  builder.setInsertionPoint(place);
  SmallVector<int64_t> codes;
  SmallVector<Value> offsets;
  // After the task and its scratch.
  for (Value operand : call.getOperands().drop_front(2)) {
    FailureOr<Place> place = placeOf(operand);
    if (failed(place))
      return failure();
    codes.push_back(place->code);
    offsets.push_back(place->offset);
  }
  Value further = LLVM::ZeroOp::create(builder, loc, pointer);
  if (!llvm::all_of(offsets, [](Value offset) { return !offset; })) {
    Type i64 = builder.getI64Type();
    {
      // Once: a loop would take more stack in every iteration.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&schedule.getBody().front());
      further = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                       constant(offsets.size(), loc));
    }
    for (auto [index, offset] : llvm::enumerate(offsets)) {
      Value slot = LLVM::GEPOp::create(
          builder, loc, pointer, i64, further,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
      LLVM::StoreOp::create(builder, loc, offset ? offset : constant(0, loc),
                            slot);
    }
  }
  Value table =
      LLVM::AddressOfOp::create(builder, loc, operandTable(codes, loc));
  Value function = LLVM::AddressOfOp::create(builder, loc, wrapperOf(kernel));
  LLVM::CallOp::create(builder, loc, launch,
                       ValueRange{step, constant(number, loc), function,
                                  constant(tasks.getInt(), loc), table, further,
                                  constant(codes.size(), loc)});
  place->erase();
  return success();
}

/// The address of `buffer`, of which `access` reads or writes one element.
FailureOr<Value> ScheduleLowering::address(Operation *access, Value buffer) {
  builder.setInsertionPoint(access);
  Location loc = access->getLoc();
  FailureOr<Place> place = placeOf(buffer);
  if (failed(place))
    return failure();
  Value base =
      LLVM::CallOp::create(builder, loc, operand,
                           ValueRange{step, constant(place->code, loc)})
          .getResult();
  if (!place->offset)
    return base;
  return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{place->offset})
      .getResult();
}

LogicalResult ScheduleLowering::lowerLoad(memref::LoadOp load) {
  FailureOr<Value> from = address(load, load.getMemRef());
  if (failed(from))
    return failure();
  load.replaceAllUsesWith(
      LLVM::LoadOp::create(builder, load.getLoc(), load.getType(), *from)
          .getResult());
  load.erase();
  return success();
}

LogicalResult ScheduleLowering::lowerStore(memref::StoreOp store) {
  FailureOr<Value> to = address(store, store.getMemRef());
  if (failed(to))
    return failure();
  LLVM::StoreOp::create(builder, store.getLoc(), store.getValueToStore(), *to);
  store.erase();
  return success();
}

LogicalResult ScheduleLowering::run() {
  int64_t external = schedule.getNumArguments() - 1;
  for (auto global : module.getOps<memref::GlobalOp>())
    constants[global.getSymName()] = external++;

  Location loc = schedule.getLoc();
  builder.setInsertionPointToStart(module.getBody());
  Type i64 = builder.getI64Type();
  Type none = LLVM::LLVMVoidType::get(builder.getContext());
  launch = LLVM::LLVMFuncOp::create(
      builder, loc, "fp8_launch",
      LLVM::LLVMFunctionType::get(
          none, {pointer, i64, pointer, i64, pointer, pointer, i64}));
  operand = LLVM::LLVMFuncOp::create(
      builder, loc, "fp8_operand",
      LLVM::LLVMFunctionType::get(pointer, {pointer, i64}));

  // The schedule itself becomes the entry: its control flow stays.
  Block &body = schedule.getBody().front();
  step = body.addArgument(pointer, loc);
  int64_t number = 0;
  SmallVector<Operation *> work;
  schedule.walk([&](Operation *op) {
    if (isa<func::CallOp, memref::LoadOp, memref::StoreOp>(op))
      work.push_back(op);
  });
  for (Operation *op : work) {
    LogicalResult lowered = success();
    if (auto call = dyn_cast<func::CallOp>(op))
      lowered = lowerCall(call, number++);
    else if (auto load = dyn_cast<memref::LoadOp>(op))
      lowered = lowerLoad(load);
    else
      lowered = lowerStore(cast<memref::StoreOp>(op));
    if (failed(lowered))
      return failure();
  }
  SmallVector<Operation *> views;
  schedule.walk([&](Operation *op) {
    if (isBufferView(op) ||
        isa<memref::AllocOp, memref::ViewOp, memref::GetGlobalOp>(op))
      views.push_back(op);
  });
  // Users before what they use.
  for (Operation *view : llvm::reverse(views))
    view->erase();
  for (NamedAttribute attr : llvm::to_vector(schedule->getDiscardableAttrs()))
    schedule->removeDiscardableAttr(attr.getName());
  schedule.removeArgAttrsAttr();
  body.eraseArguments(0, body.getNumArguments() - 1);
  schedule.setFunctionType(builder.getFunctionType({pointer}, {}));
  schedule.setSymName("fp8_entry");
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
