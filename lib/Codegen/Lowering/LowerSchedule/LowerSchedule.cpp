//===- LowerSchedule.cpp - Lowering of the schedule to launches -----------===//

#include "../LaunchRuns.h"
#include "ScheduleLowering.h"

#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERSCHEDULE
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Returns the offset of `part` in its source, in bytes.
Value ScheduleLowering::bytesOf(SubbufferOp part) {
  Location loc = part.getLoc();
  Type i64 = builder.getI64Type();
  int64_t bytes = elementBytes(part.getType().getElementType());
  Value elements =
      arith::IndexCastOp::create(builder, loc, i64, part.getOffset());
  return builder.createOrFold<arith::MulIOp>(
      loc, elements, arith::ConstantIntOp::create(builder, loc, i64, bytes));
}

/// Returns whether `op` is a view of the same bytes, or of a part of them.
static bool isPart(Operation *op) {
  return isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp,
                         SubbufferOp>(op);
}

FailureOr<OperandAddress> ScheduleLowering::operandAddressOf(Value buffer) {
  Value offset;
  for (Operation *def = buffer.getDefiningOp(); isPart(def);
       def = buffer.getDefiningOp()) {
    buffer = cast<ViewLikeOpInterface>(def).getViewSource();
    if (auto part = dyn_cast<SubbufferOp>(def)) {
      Value further = bytesOf(part);
      offset = offset ? builder.createOrFold<arith::AddIOp>(def->getLoc(),
                                                            offset, further)
                      : further;
    }
  }
  FailureOr<int64_t> code = codeOf(buffer);
  if (failed(code))
    return failure();
  return OperandAddress{*code, offset};
}

/// Returns the code of a buffer that is no part of another one, except of the
/// arena.
FailureOr<int64_t> ScheduleLowering::codeOf(Value buffer) {
  Operation *def = buffer.getDefiningOp();
  if (!def) {
    // The arena is argument 0. A view of the whole arena as bytes folds to it.
    int64_t number = cast<BlockArgument>(buffer).getArgNumber();
    return number == 0 ? 0 : ~(number - 1);
  }
  if (auto view = dyn_cast<memref::ViewOp>(def)) {
    auto shift = view.getByteShift().getDefiningOp<arith::ConstantIndexOp>();
    if (view.getSource() != schedule.getArgument(0) || !shift)
      return def->emitOpError("expected a constant offset into the arena");
    return shift.value();
  }
  if (auto global = dyn_cast<memref::GetGlobalOp>(def)) {
    auto number = constants.find(global.getName());
    if (number == constants.end())
      return def->emitOpError("expected a constant with '")
             << FP8Dialect::kNumberAttrName << "', as fp8-plan-memory gives it";
    return ~number->second;
  }
  return def->emitOpError("expected a view of the arena, an argument or a "
                          "constant as operand of a kernel");
}

/// Returns the buffer at the address `base` as a kernel's argument. Kernels end
/// up with bare pointers, so the casts disappear.
Value ScheduleLowering::bufferAt(Value base, MemRefType type) {
  Location loc = base.getLoc();
  Value descriptor =
      MemRefDescriptor::fromStaticShape(builder, loc, converter, type, base);
  return UnrealizedConversionCastOp::create(builder, loc, type, descriptor)
      .getResult(0);
}

/// Returns the function with the runtime's signature, void (i64 task, ptr
/// operands, ptr scratch).
LLVM::LLVMFuncOp ScheduleLowering::wrapperOf(func::FuncOp kernel) {
  std::string name = (kernel.getSymName() + "_task").str();
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(kernel);
  Location loc = kernel.getLoc();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  {builder.getI64Type(), pointer, pointer});
  auto wrapper = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  symbols.insert(wrapper);
  wrapper->setAttr(FP8Dialect::kTaskAttrName, builder.getUnitAttr());
  Block *block = wrapper.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  Value task = block->getArgument(0), operands = block->getArgument(1),
        scratch = block->getArgument(2);
  ArrayRef<Type> types = kernel.getArgumentTypes();
  SmallVector<Value> arguments{
      UnrealizedConversionCastOp::create(builder, loc, types[0], task)
          .getResult(0),
      bufferAt(scratch, cast<MemRefType>(types[1]))};
  for (auto [index, type] : llvm::enumerate(types.drop_front(2))) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, pointer, pointer, operands,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    Value base = LLVM::LoadOp::create(builder, loc, pointer, slot);
    arguments.push_back(bufferAt(base, cast<MemRefType>(type)));
  }
  func::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange{});
  return wrapper;
}

LLVM::GlobalOp ScheduleLowering::constantTable(ArrayRef<int64_t> numbers,
                                               StringRef what, Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), numbers.size());
  auto values = DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(numbers.size())},
                            builder.getI64Type()),
      numbers);
  std::string name = (entryName() + "_" + what + "_" + Twine(tables++)).str();
  return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                LLVM::Linkage::Internal, name, values);
}

/// Returns a table of the offsets of operands, in bytes: on the stack, or null
/// if no offset is only known at run time.
Value ScheduleLowering::offsetTable(ArrayRef<Value> offsets, Location loc) {
  if (llvm::all_of(offsets, [](Value offset) { return !offset; }))
    return LLVM::ZeroOp::create(builder, loc, pointer);
  Type i64 = builder.getI64Type();
  Value table;
  {
    // Allocate it once: a loop would use more stack in every iteration.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&schedule.getBody().front());
    table = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                   constant(offsets.size(), loc));
  }
  for (auto [index, offset] : llvm::enumerate(offsets)) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, pointer, i64, table,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, loc, offset ? offset : constant(0, loc),
                          slot);
  }
  return table;
}

FailureOr<Callee> ScheduleLowering::calleeOf(LaunchOp op) {
  Operation *callee = symbols.lookup(op.getKernel());
  Location loc = op.getLoc();
  if (auto kernel = dyn_cast_or_null<func::FuncOp>(callee))
    if (auto tasks =
            kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kTasksAttrName))
      return Callee{wrapperOf(kernel), tasks.getInt()};
  // A kernel that has been compiled already.
  if (auto kernel = dyn_cast_or_null<LLVM::LLVMFuncOp>(callee))
    if (auto tasks =
            kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kTasksAttrName))
      return Callee{kernel, tasks.getInt()};
  auto asked =
      callee
          ? callee->getAttrOfType<GPULaunchAttr>(FP8Dialect::kGPULaunchAttrName)
          : GPULaunchAttr();
  auto kernel = dyn_cast_or_null<KernelOp>(callee);
  bool isOfLibrary =
      kernel && isa_and_nonnull<CublasLtPlanAttr>(kernel.getPlanAttr());
  if (!asked && !isOfLibrary)
    return op.emitOpError("expected a kernel lowered by fp8-lower-kernels or "
                          "fp8-lower-blocks");
  return Callee{descriptionOf(op.getKernel(), loc),
                isOfLibrary ? 1 : asked.getBlocks()};
}

/// Returns the description of a GPU kernel for the runtime, which is defined
/// beside the kernel's code.
LLVM::GlobalOp ScheduleLowering::descriptionOf(StringRef kernel, Location loc) {
  std::string name = (kernel + kGPUKernelSuffix).str();
  auto global = symbols.lookup<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(builder, loc, builder.getI8Type(),
                                    /*isConstant=*/true,
                                    LLVM::Linkage::External, name, Attribute());
    symbols.insert(global);
  }
  return global;
}

Value ScheduleLowering::addressOf(Operation *symbol, Location loc) {
  return LLVM::AddressOfOp::create(builder, loc, pointer,
                                   SymbolTable::getSymbolName(symbol));
}

FailureOr<OperandTables> ScheduleLowering::tablesOf(Operation *op,
                                                    ValueRange buffers) {
  SmallVector<int64_t> codes;
  SmallVector<Value> offsets;
  for (Value operand : buffers) {
    FailureOr<OperandAddress> place = operandAddressOf(operand);
    if (failed(place))
      return failure();
    codes.push_back(place->code);
    offsets.push_back(place->offset);
  }
  Location loc = op->getLoc();
  Value further = offsetTable(offsets, loc);
  return OperandTables{addressOf(constantTable(codes, "operands", loc), loc),
                       further, constant(codes.size(), loc)};
}

/// Emits a branch that only the owner of a shard takes; returns its end.
Operation *ScheduleLowering::ifOwner(int64_t shard, Location loc) {
  Type i64 = builder.getI64Type();
  Value owns =
      LLVM::CallOp::create(builder, loc,
                           runtimeFunction("fp8_owns", i64, {pointer, i64}),
                           ValueRange{step, constant(shard, loc)})
          .getResult();
  Value condition = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne,
                                         owns, constant(0, loc));
  return scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false)
      .thenBlock()
      ->getTerminator();
}

/// Returns whether several ranks may own slices of a shard.
bool ScheduleLowering::isSliced(int64_t shard) {
  for (unsigned i = 0; i < schedule.getNumArguments(); ++i) {
    auto own =
        schedule.getArgAttrOfType<IntegerAttr>(i, FP8Dialect::kShardAttrName);
    if (own && own.getInt() == shard)
      return bool(schedule.getArgAttr(i, FP8Dialect::kSlicesAttrName));
  }
  return false;
}

/// Emits a launch in loops that a GPU counts, in which operands move.
void ScheduleLowering::lowerMoving(LaunchOp op, const Callee &callee,
                                   const OperandTables &tables) {
  Location loc = op.getLoc();
  SmallVector<scf::ForOp> loops = deviceLoopsAround(op);
  SmallVector<int64_t> strides;
  for (Value operand : op.getOperands())
    llvm::append_range(strides, *stridesOfBuffer(operand, loops));
  Type i64 = builder.getI64Type();
  auto moving = runtimeFunction(
      "fp8_launch_moving", LLVM::LLVMVoidType::get(builder.getContext()),
      {pointer, i64, pointer, i64, pointer, pointer, pointer, i64});
  LLVM::CallOp::create(builder, loc, moving,
                       ValueRange{step, constant(*op.getNumber(), loc),
                                  addressOf(callee.symbol, loc),
                                  constant(callee.tasks, loc), tables.codes,
                                  tables.offsets, strideTable(strides, loc),
                                  tables.count});
}

LogicalResult ScheduleLowering::lowerLaunch(LaunchOp op) {
  if (!op.getNumber())
    return op.emitOpError("expected a number, as fp8-plan-memory gives it");
  Location loc = op.getLoc();
  builder.setInsertionPoint(op);
  order(op);
  auto shard = op->getAttrOfType<IntegerAttr>(FP8Dialect::kShardAttrName);
  // The blocks of a GPU are numbered from 0, so a GPU runs all of them.
  bool isForSlices = shard && !isForGPU && isSliced(shard.getInt());
  if (shard && !isForSlices)
    builder.setInsertionPoint(ifOwner(shard.getInt(), loc));
  FailureOr<OperandTables> tables = tablesOf(op, op->getOperands());
  if (failed(tables))
    return failure();
  FailureOr<Callee> callee = calleeOf(op);
  if (failed(callee))
    return failure();
  if (op.getNumSets() > 1) {
    if (isForSlices)
      return op.emitOpError("expected one set of operands of a launch for "
                            "slices of a shard but got ")
             << op.getNumSets();
    lowerSets(op, *callee, *tables);
    op.erase();
    return success();
  }
  if (symbols.lookup(op.getKernel())->hasAttr(FP8Dialect::kLoopsAttrName)) {
    lowerMoving(op, *callee, *tables);
    op.erase();
    return success();
  }
  SmallVector<Value> operands{step,
                              constant(*op.getNumber(), loc),
                              addressOf(callee->symbol, loc),
                              constant(callee->tasks, loc),
                              tables->codes,
                              tables->offsets,
                              tables->count};
  LLVM::LLVMFuncOp function = launch;
  if (isForSlices) {
    SmallVector<Type> types(ValueRange(operands).getTypes());
    types.push_back(builder.getI64Type());
    operands.push_back(constant(shard.getInt(), loc));
    function =
        runtimeFunction("fp8_launch_owned",
                        LLVM::LLVMVoidType::get(builder.getContext()), types);
  }
  LLVM::CallOp::create(builder, loc, function, operands);
  op.erase();
  return success();
}

/// Returns true if the runtime can take all sets of operands of a launch in one
/// call: a GPU has their addresses in a table, which is made once.
bool ScheduleLowering::takesSets(LaunchOp op) {
  Operation *kernel = symbols.lookup(op.getKernel());
  return !isForGPU || op.getNumSets() == 1 ||
         (hasFixedOperands(op) && kernel &&
          kernel->hasAttr(FP8Dialect::kSetsAttrName));
}

LLVM::LLVMFuncOp ScheduleLowering::launchSetsFunction() {
  Type i64 = builder.getI64Type();
  return runtimeFunction(
      "fp8_launch_sets", LLVM::LLVMVoidType::get(builder.getContext()),
      {pointer, i64, pointer, i64, pointer, pointer, i64, i64});
}

/// Emits one call for all sets of operands, or one for each set.
void ScheduleLowering::lowerSets(LaunchOp op, const Callee &callee,
                                 const OperandTables &tables) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op.getLoc();
  int64_t sets = op.getNumSets(), operands = op.getNumOperands() / sets;
  SmallVector<Value> arguments{step,
                               constant(*op.getNumber(), loc),
                               addressOf(callee.symbol, loc),
                               constant(callee.tasks, loc),
                               tables.codes,
                               tables.offsets,
                               constant(operands, loc)};
  if (takesSets(op)) {
    arguments.push_back(constant(sets, loc));
    LLVM::CallOp::create(builder, loc, launchSetsFunction(), arguments);
    return;
  }
  auto loop = scf::ForOp::create(builder, loc, constant(0, loc),
                                 constant(sets * operands, loc),
                                 constant(operands, loc));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  auto advance = [&](Value &table) {
    table =
        LLVM::GEPOp::create(builder, loc, pointer, builder.getI64Type(), table,
                            ArrayRef<LLVM::GEPArg>{loop.getInductionVar()});
  };
  advance(arguments[4]);
  if (!hasFixedOperands(op))
    advance(arguments[5]);
  LLVM::CallOp::create(builder, loc, launch, arguments);
}

//===----------------------------------------------------------------------===//
// Runs of launches
//===----------------------------------------------------------------------===//

namespace {
/// A buffer that is known at compile time: a part of `buffer`.
struct FixedPlace {
  Value buffer;
  int64_t offset; // in bytes
};
} // namespace

/// Returns where `buffer` begins; nullopt if that is only known at run time.
static std::optional<FixedPlace> fixedPlaceOf(Value buffer) {
  FixedPlace place{buffer, 0};
  for (Operation *def = buffer.getDefiningOp(); isPart(def);
       def = place.buffer.getDefiningOp()) {
    place.buffer = cast<ViewLikeOpInterface>(def).getViewSource();
    std::optional<int64_t> begin = beginOf(cast<ViewLikeOpInterface>(def));
    if (!begin)
      return std::nullopt;
    place.offset += *begin;
  }
  return place;
}

/// Returns true if every operand has a static address and all ranks run the
/// launch.
bool ScheduleLowering::isFixed(LaunchOp op) {
  Operation *kernel = symbols.lookup(op.getKernel());
  if (op->hasAttr(FP8Dialect::kShardAttrName) || !takesSets(op) ||
      (kernel && kernel->hasAttr(FP8Dialect::kLoopsAttrName)))
    return false;
  return llvm::all_of(op.getOperands(), [](Value buffer) {
    return fixedPlaceOf(buffer).has_value();
  });
}

/// Returns the index of a kernel in the schedule's table of kernels.
int64_t ScheduleLowering::numberOfKernel(Operation *symbol) {
  auto [it, isNew] = kernelNumbers.try_emplace(symbol, kernels.size());
  if (isNew)
    kernels.push_back(symbol);
  return it->second;
}

/// Lowers a run of launches to a loop over a table. Single calls would be most
/// of the code that LLVM compiles for a step with many layers.
LogicalResult ScheduleLowering::lowerRun(ArrayRef<LaunchOp> launches) {
  LaunchTable table;
  if (launches.front()->hasAttr(FP8Dialect::kNodeAttrName))
    table.columns += 3;
  for (LaunchOp op : launches) {
    if (!op.getNumber())
      return op.emitOpError("expected a number, as fp8-plan-memory gives it");
    FailureOr<Callee> callee = calleeOf(op);
    if (failed(callee))
      return failure();
    int64_t begin = table.codes.size();
    for (Value operand : op.getOperands()) {
      FixedPlace place = *fixedPlaceOf(operand);
      FailureOr<int64_t> code = codeOf(place.buffer);
      if (failed(code))
        return failure();
      table.codes.push_back(*code);
      table.offsets.push_back(place.offset);
    }
    table.rows.append({static_cast<int64_t>(*op.getNumber()),
                       numberOfKernel(callee->symbol), callee->tasks, begin,
                       static_cast<int64_t>(op.getAccesses().size())});
    table.sets.push_back(op.getNumSets());
    if (auto node = op->getAttrOfType<IntegerAttr>(FP8Dialect::kNodeAttrName)) {
      ArrayRef<int64_t> after =
          op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kAfterAttrName)
              .asArrayRef();
      table.rows.append({node.getInt(),
                         static_cast<int64_t>(table.after.size()),
                         static_cast<int64_t>(after.size())});
      llvm::append_range(table.after, after);
    }
  }
  LaunchOp last = launches.back();
  builder.setInsertionPoint(last);
  launchAll(table, last.getLoc());
  for (LaunchOp op : launches)
    op.erase();
  return success();
}

/// Emits the loop over a table.
void ScheduleLowering::launchAll(const LaunchTable &table, Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  Type i64 = builder.getI64Type();
  auto tableOf = [&](ArrayRef<int64_t> values, StringRef what) {
    return addressOf(constantTable(values, what, loc), loc);
  };
  Value rows = tableOf(table.rows, "launches"),
        codes = tableOf(table.codes, "operands"), offsets, after, sets;
  if (llvm::any_of(table.offsets, [](int64_t bytes) { return bytes != 0; }))
    offsets = tableOf(table.offsets, "offsets");
  if (!table.after.empty())
    after = tableOf(table.after, "after");
  if (llvm::any_of(table.sets, [](int64_t number) { return number > 1; }))
    sets = tableOf(table.sets, "sets");
  Value all = LLVM::AddressOfOp::create(builder, loc, pointer, kernelsName());
  auto loop = scf::ForOp::create(
      builder, loc, constant(0, loc),
      constant(table.rows.size() / table.columns, loc), constant(1, loc));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  auto at = [&](Value base, Type type, Value index) -> Value {
    if (!base)
      return LLVM::ZeroOp::create(builder, loc, pointer);
    return LLVM::GEPOp::create(builder, loc, pointer, type, base,
                               ArrayRef<LLVM::GEPArg>{index});
  };
  Value row = at(rows, LLVM::LLVMArrayType::get(i64, table.columns),
                 loop.getInductionVar());
  SmallVector<Value> columns;
  for (int32_t column = 0; column < table.columns; ++column) {
    Value place = LLVM::GEPOp::create(builder, loc, pointer, i64, row,
                                      ArrayRef<LLVM::GEPArg>{column});
    columns.push_back(LLVM::LoadOp::create(builder, loc, i64, place));
  }
  if (columns.size() > 5)
    callOrder(columns[5], at(after, i64, columns[6]), columns[7], loc);
  Value kernel =
      LLVM::LoadOp::create(builder, loc, pointer, at(all, pointer, columns[1]));
  SmallVector<Value> arguments{step,
                               columns[0],
                               kernel,
                               columns[2],
                               at(codes, i64, columns[3]),
                               at(offsets, i64, columns[3]),
                               columns[4]};
  LLVM::LLVMFuncOp function = launch;
  if (sets) {
    arguments.push_back(LLVM::LoadOp::create(
        builder, loc, i64, at(sets, i64, loop.getInductionVar())));
    function = launchSetsFunction();
  }
  LLVM::CallOp::create(builder, loc, function, arguments);
}

/// Defines the table of the kernels that runs launch.
void ScheduleLowering::defineKernels() {
  if (kernels.empty())
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  Location loc = schedule.getLoc();
  auto type = LLVM::LLVMArrayType::get(pointer, kernels.size());
  defineConstant(type, kernels.size(), kernelsName(), loc,
                 [&](size_t index) { return addressOf(kernels[index], loc); });
}

/// Defines a constant structure or array at the insertion point. `makeElement`
/// makes each of its elements in the initializer.
LLVM::GlobalOp
ScheduleLowering::defineConstant(Type type, size_t size, StringRef name,
                                 Location loc,
                                 function_ref<Value(size_t)> makeElement) {
  auto global =
      LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                             LLVM::Linkage::Internal, name, Attribute());
  builder.createBlock(&global.getInitializerRegion());
  Value value = LLVM::UndefOp::create(builder, loc, type);
  for (size_t i = 0; i < size; ++i)
    value = LLVM::InsertValueOp::create(builder, loc, value, makeElement(i), i);
  LLVM::ReturnOp::create(builder, loc, value);
  return global;
}

LLVM::GlobalOp ScheduleLowering::defineStructure(StringRef name, Location loc,
                                                 ArrayRef<Field> fields) {
  SmallVector<Type> types;
  for (const Field &field : fields)
    types.push_back(std::holds_alternative<int64_t>(field)
                        ? Type(builder.getI64Type())
                        : pointer);
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  return defineConstant(
      type, fields.size(), name, loc, [&](size_t index) -> Value {
        if (const int64_t *number = std::get_if<int64_t>(&fields[index]))
          return constant(*number, loc);
        return LLVM::AddressOfOp::create(
            builder, loc, std::get<LLVM::GlobalOp>(fields[index]));
      });
}

//===----------------------------------------------------------------------===//
// Ranks and scalars
//===----------------------------------------------------------------------===//

void ScheduleLowering::lowerRank(RankOp op) {
  builder.setInsertionPoint(op);
  auto callee = runtimeFunction("fp8_rank", builder.getI64Type(), {pointer});
  op.replaceAllUsesWith(
      LLVM::CallOp::create(builder, op.getLoc(), callee, ValueRange{step})
          .getResult());
  op.erase();
}

/// Returns the address of `buffer`, of which `access` reads or writes one
/// element.
FailureOr<Value> ScheduleLowering::address(Operation *access, Value buffer) {
  builder.setInsertionPoint(access);
  Location loc = access->getLoc();
  FailureOr<OperandAddress> place = operandAddressOf(buffer);
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

/// Lowers a scalar access to a copy between GPU and host.
LogicalResult ScheduleLowering::lowerAccessOnGPU(Operation *access,
                                                 Value buffer) {
  builder.setInsertionPoint(access);
  order(access);
  Location loc = access->getLoc();
  FailureOr<OperandAddress> place = operandAddressOf(buffer);
  if (failed(place))
    return failure();
  if (auto store = dyn_cast<memref::StoreOp>(access);
      store && lowerMovingStore(store, *place)) {
    store.erase();
    return success();
  }
  Value offset = place->offset ? place->offset : constant(0, loc);
  int64_t bytes =
      elementBytes(cast<MemRefType>(buffer.getType()).getElementType());
  SmallVector<Value> arguments{step, constant(place->code, loc), offset,
                               constant(bytes, loc)};
  if (auto load = dyn_cast<memref::LoadOp>(access)) {
    Value from =
        LLVM::CallOp::create(builder, loc, read, arguments).getResult();
    load.replaceAllUsesWith(
        LLVM::LoadOp::create(builder, loc, load.getType(), from).getResult());
  } else {
    Value value = cast<memref::StoreOp>(access).getValueToStore(), slot;
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&schedule.getBody().front());
      slot = LLVM::AllocaOp::create(builder, loc, pointer, value.getType(),
                                    constant(1, loc));
    }
    LLVM::StoreOp::create(builder, loc, value, slot);
    arguments.push_back(slot);
    LLVM::CallOp::create(builder, loc, write, arguments);
  }
  access->erase();
  return success();
}

LogicalResult ScheduleLowering::lowerLoad(memref::LoadOp load) {
  if (isDecidedOnGPU)
    return lowerKeep(load);
  if (isForGPU)
    return lowerAccessOnGPU(load, load.getMemRef());
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
  if (isForGPU)
    return lowerAccessOnGPU(store, store.getMemRef());
  FailureOr<Value> to = address(store, store.getMemRef());
  if (failed(to))
    return failure();
  LLVM::StoreOp::create(builder, store.getLoc(), store.getValueToStore(), *to);
  store.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The entry
//===----------------------------------------------------------------------===//

/// Numbers the external buffers that are constants: after the arguments.
void ScheduleLowering::numberConstants() {
  int64_t external = schedule.getNumArguments() - 1;
  for (auto global : module.getOps<memref::GlobalOp>())
    if (auto number =
            global->getAttrOfType<IntegerAttr>(FP8Dialect::kNumberAttrName))
      constants[global.getSymName()] = external + number.getInt();
}

/// Declares the functions of the runtime that most schedules call.
void ScheduleLowering::declareRuntime() {
  Type i64 = builder.getI64Type();
  Type none = LLVM::LLVMVoidType::get(builder.getContext());
  launch = runtimeFunction("fp8_launch", none,
                           {pointer, i64, pointer, i64, pointer, pointer, i64});
  if (isForGPU) {
    read = runtimeFunction("fp8_read", pointer, {pointer, i64, i64, i64});
    write =
        runtimeFunction("fp8_write", none, {pointer, i64, i64, i64, pointer});
  } else {
    operand = runtimeFunction("fp8_operand", pointer, {pointer, i64});
  }
}

/// Lowers the launches that follow one another.
LogicalResult ScheduleLowering::lowerRuns() {
  for (const LaunchRun &launches :
       findLaunchRuns(schedule, [&](LaunchOp op) { return isFixed(op); }))
    if (failed(lowerRun(launches)))
      return failure();
  defineKernels();
  return success();
}

LogicalResult ScheduleLowering::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<LaunchOp>([&](auto launch) { return lowerLaunch(launch); })
      .Case<StartAllReduceOp, StartExchangeOp>(
          [&](auto start) { return lowerStart(start); })
      .Case<WaitOp>([&](auto wait) {
        lowerWait(wait);
        return success();
      })
      .Case<memref::LoadOp>([&](auto load) { return lowerLoad(load); })
      .Case<memref::StoreOp>([&](auto store) { return lowerStore(store); })
      .DefaultUnreachable("an op without a call");
}

/// Lowers everything else that becomes calls, in the order of the schedule.
LogicalResult ScheduleLowering::lowerSingleOps() {
  SmallVector<Operation *> work;
  schedule.walk([&](Operation *op) {
    if (isa<LaunchOp, StartAllReduceOp, StartExchangeOp, WaitOp, memref::LoadOp,
            memref::StoreOp>(op))
      work.push_back(op);
  });
  for (Operation *op : work)
    if (failed(lower(op)))
      return failure();
  return success();
}

/// Erases the ops that said where buffers are.
void ScheduleLowering::eraseViews() {
  SmallVector<Operation *> views;
  schedule.walk([&](Operation *op) {
    // (Pointers into operand tables are views, too.)
    if (isa<ViewLikeOpInterface, memref::GetGlobalOp>(op) &&
        isa<MemRefType>(op->getResult(0).getType()))
      views.push_back(op);
  });
  // Erase users before their operands.
  for (Operation *view : llvm::reverse(views))
    view->erase();
}

LogicalResult ScheduleLowering::run() {
  numberConstants();
  declareRuntime();
  step = schedule.getBody().front().addArgument(pointer, schedule.getLoc());
  isDecidedOnGPU = schedule->hasAttr(FP8Dialect::kDeviceControlAttrName);
  if (isDecidedOnGPU)
    decideOnGPU();
  if (failed(lowerRuns()) || failed(lowerSingleOps()))
    return failure();
  fetchResults();
  // Last, because the strides of operands in loops depend on these ops.
  schedule.walk([&](RankOp op) { lowerRank(op); });
  eraseViews();
  becomeFunction();
  return success();
}

/// Turns the schedule itself into the entry; its control flow stays.
void ScheduleLowering::becomeFunction() {
  Block &body = schedule.getBody().front();
  body.eraseArguments(0, body.getNumArguments() - 1);
  builder.setInsertionPoint(schedule);
  moveToFunction(builder, schedule, entryName());
  schedule.erase();
}

std::string ScheduleLowering::entryName() {
  auto entry = schedule->getAttrOfType<StringAttr>(FP8Dialect::kEntryAttrName);
  return entry ? (kEntryName + "_" + entry.getValue()).str() : kEntryName.str();
}

LLVM::LLVMFuncOp ScheduleLowering::runtimeFunction(StringRef name, Type result,
                                                   ArrayRef<Type> arguments) {
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto function =
      LLVM::LLVMFuncOp::create(builder, schedule.getLoc(), name,
                               LLVM::LLVMFunctionType::get(result, arguments));
  symbols.insert(function);
  return function;
}

namespace {

class LowerSchedule : public fp8::impl::LowerScheduleBase<LowerSchedule> {
public:
  void runOnOperation() override {
    SmallVector<ScheduleOp> schedules =
        llvm::to_vector(getOperation().getOps<ScheduleOp>());
    for (ScheduleOp schedule : schedules)
      if (!schedule.getArena()) {
        schedule.emitOpError("expected a planned schedule: run "
                             "--fp8-plan-memory first");
        return signalPassFailure();
      }
    if (schedules.empty()) {
      getOperation().emitOpError("expected a planned schedule but got none");
      return signalPassFailure();
    }
    // The runtime finds a schedule by its entry.
    DenseSet<Attribute> entries;
    for (ScheduleOp schedule : schedules)
      if (!entries.insert(schedule->getAttr(FP8Dialect::kEntryAttrName))
               .second) {
        schedule.emitOpError("expected one schedule for the step, and one for "
                             "each entry 'store' and 'load', but got another");
        return signalPassFailure();
      }
    for (ScheduleOp schedule : schedules)
      if (failed(ScheduleLowering(getOperation(), schedule).run()))
        return signalPassFailure();
  }
};

} // namespace
