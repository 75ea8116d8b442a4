//===- Collectives.cpp - Collectives become calls of the runtime ----------===//

#include "ScheduleLowering.h"

#include "fp8-c/Runtime.h"
#include "fp8/Support/ElementTypes.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

static_assert(static_cast<int>(Reduction::Min) == FP8_REDUCE_MIN &&
                  static_cast<int>(Reduction::Owner) == FP8_REDUCE_OWNER &&
                  static_cast<int>(Wire::F8E5M2) == FP8_WIRE_F8_E5M2 &&
                  static_cast<int>(ExchangeKind::Permute) ==
                      FP8_EXCHANGE_PERMUTE,
              "the dialect counts as the runtime does");

/// Returns the runtime's number of an element type; nullopt if it cannot be
/// reduced.
static std::optional<fp8_dtype> reducedTypeOf(Type type) {
  switch (fp8_dtype dtype = dtypeOf(type)) {
  case FP8_DTYPE_F16:
  case FP8_DTYPE_BF16:
  case FP8_DTYPE_F32:
  case FP8_DTYPE_F64:
  case FP8_DTYPE_I8:
  case FP8_DTYPE_I16:
  case FP8_DTYPE_I32:
  case FP8_DTYPE_I64:
    return dtype;
  default:
    return std::nullopt;
  }
}

/// Creates a C string with the label of a collective, for profiles and errors.
LLVM::GlobalOp ScheduleLowering::labelOf(Location loc, StringRef name,
                                         std::optional<StringRef> label) {
  std::string text = label.value_or("").str();
  text.push_back('\0');
  return LLVM::GlobalOp::create(
      builder, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, (name + "_label").str(),
      builder.getStringAttr(text));
}

/// Creates a constant fp8_exchange.
LLVM::GlobalOp ScheduleLowering::descriptionOf(StartExchangeOp op) {
  std::string name =
      (entryName() + "_exchange_" + Twine(*op.getNumber())).str();
  // Copies of an op in an unrolled loop have one description.
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  Location loc = op.getLoc();
  LLVM::GlobalOp label = labelOf(loc, name, op.getLabel());
  DenseIntElementsAttr ranks = op.getRanks();
  auto table = LLVM::GlobalOp::create(
      builder, loc,
      LLVM::LLVMArrayType::get(builder.getI64Type(), ranks.getNumElements()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name + "_ranks",
      ranks.reshape(RankedTensorType::get({ranks.getNumElements()},
                                          builder.getI64Type())));
  MemRefType type = op.getInput().getType();
  int64_t bytes = byteSize(type);
  if (op.getKind() == ExchangeKind::AllToAll)
    bytes /= type.getDimSize(0);
  std::optional<int64_t> dtype = reducedTypeOf(type.getElementType());
  return defineStructure(
      name, loc,
      {label, static_cast<int64_t>(op.getKind()), bytes,
       ranks.getType().getDimSize(0), ranks.getType().getDimSize(1), table,
       dtype ? *dtype : -1, static_cast<int64_t>(op.getSummed())});
}

/// Creates a constant fp8_all_reduce.
LLVM::GlobalOp ScheduleLowering::descriptionOf(StartAllReduceOp op) {
  std::string name =
      (entryName() + "_all_reduce_" + Twine(*op.getNumber())).str();
  // Copies of an op in an unrolled loop have one description.
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  Location loc = op.getLoc();
  LLVM::GlobalOp label = labelOf(loc, name, op.getLabel());
  MemRefType type = op.getInput().getType();
  // The values of an owner travel as bytes.
  bool isOwners = op.getReduction() == Reduction::Owner;
  int64_t dtype =
      isOwners ? FP8_DTYPE_I8 : *reducedTypeOf(type.getElementType());
  return defineStructure(name, loc,
                         {label, static_cast<int64_t>(op.getReduction()),
                          static_cast<int64_t>(op.getWire()), dtype,
                          static_cast<int64_t>(op.getBlock().value_or(0)),
                          isOwners ? byteSize(type) : type.getNumElements(),
                          static_cast<int64_t>(op.getShard().value_or(0))});
}

LogicalResult ScheduleLowering::lowerStart(StartAllReduceOp op) {
  if (!op.getNumber())
    return op.emitOpError("expected a number, as fp8-plan-memory gives it");
  Type element = op.getInput().getType().getElementType();
  if (op.getReduction() != Reduction::Owner && !reducedTypeOf(element))
    return op.emitOpError("expected f16, bf16, f32, f64, i8, i16, i32 or i64 "
                          "but got ")
           << element;
  Location loc = op.getLoc();
  builder.setInsertionPoint(op);
  Value slice = op.getSlice() ? arith::IndexCastOp::create(builder, loc,
                                                           builder.getI64Type(),
                                                           op.getSlice())
                                    .getResult()
                              : constant(-1, loc);
  return callStart(op, op.getBuffers(), "fp8_all_reduce_start",
                   {step, constant(*op.getNumber(), loc),
                    addressOf(descriptionOf(op), loc), slice});
}

LogicalResult ScheduleLowering::lowerStart(StartExchangeOp op) {
  if (!op.getNumber())
    return op.emitOpError("expected a number, as fp8-plan-memory gives it");
  builder.setInsertionPoint(op);
  return callStart(op, op->getOperands(), "fp8_exchange_start",
                   {step, constant(*op.getNumber(), op.getLoc()),
                    addressOf(descriptionOf(op), op.getLoc())});
}

/// Calls a function of the runtime with these arguments, followed by those that
/// describe the buffers.
LogicalResult ScheduleLowering::callStart(Operation *op, ValueRange buffers,
                                          StringRef function,
                                          SmallVector<Value> arguments) {
  Location loc = op->getLoc();
  order(op);
  FailureOr<OperandTables> tables = tablesOf(op, buffers);
  if (failed(tables))
    return failure();
  llvm::append_values(arguments, tables->codes, tables->offsets, tables->count);
  auto callee =
      runtimeFunction(function, LLVM::LLVMVoidType::get(builder.getContext()),
                      llvm::to_vector(ValueRange(arguments).getTypes()));
  LLVM::CallOp::create(builder, loc, callee, arguments);
  return success();
}

/// Returns the collectives that a handle stands for: one, or those of a loop,
/// which have one number, and of which there are several if it was unrolled.
static SmallVector<Operation *> startsOf(Value handle) {
  Operation *op = handle.getDefiningOp();
  if (!isa<CollectivesOp>(op))
    return {op};
  return llvm::to_vector(
      llvm::make_filter_range(op->getUsers(), [](Operation *user) {
        return isa<StartAllReduceOp>(user);
      }));
}

void ScheduleLowering::lowerWait(WaitOp op) {
  Location loc = op.getLoc();
  builder.setInsertionPoint(op);
  Operation *handle = op.getHandle().getDefiningOp();
  SmallVector<Operation *> starts = startsOf(op.getHandle());
  auto reduction = dyn_cast<StartAllReduceOp>(starts.front());
  int64_t number = reduction
                       ? *reduction.getNumber()
                       : *cast<StartExchangeOp>(starts.front()).getNumber();
  auto callee =
      runtimeFunction("fp8_wait", LLVM::LLVMVoidType::get(builder.getContext()),
                      {pointer, builder.getI64Type()});
  LLVM::CallOp::create(builder, loc, callee,
                       ValueRange{step, constant(number, loc)});
  op.erase();
  for (Operation *start : starts)
    start->erase();
  if (isa<CollectivesOp>(handle))
    handle->erase();
}
