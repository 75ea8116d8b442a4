//===- ScheduleLowering.h - Lowering of a schedule to calls -----*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERSCHEDULE_SCHEDULELOWERING_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERSCHEDULE_SCHEDULELOWERING_H

#include "../DeviceLoops.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <variant>

namespace mlir::fp8::lowering {

/// The address of a buffer: an operand code (see fp8_launch) and, for a part
/// whose position is only known at run time, an offset in bytes.
struct OperandAddress {
  int64_t code;
  Value offset; // i64 or null
};

/// The operand tables that fp8_launch and similar functions take.
struct OperandTables {
  Value codes, offsets, count;
};

/// The callee of fp8_launch: the symbol of the kernel's code or of its
/// description, and the number of tasks.
struct Callee {
  Operation *symbol;
  int64_t tasks;
};

/// The arguments of fp8_launch for the launches of a run, and those of
/// fp8_order if they are nodes of a graph.
struct LaunchTable {
  /// For each launch: its number, the index of its kernel in the table of
  /// kernels, its tasks, the index of its first operand in `codes` and
  /// `offsets`, and the number of operands of a set; then the number of its
  /// node, the index of the first node before it in `after`, and how many there
  /// are.
  SmallVector<int64_t> rows;
  int32_t columns = 5;
  SmallVector<int64_t> codes, offsets;
  SmallVector<int64_t> after;
  /// The number of sets of operands of each launch.
  SmallVector<int64_t> sets;
};

class ScheduleLowering {
public:
  ScheduleLowering(ModuleOp module, ScheduleOp schedule)
      : module(module), schedule(schedule), symbols(module),
        builder(module.getContext()), converter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        isForGPU(isa_and_nonnull<GPUTargetAttr>(
            module->getAttr(FP8Dialect::kTargetAttrName))) {}

  LogicalResult run();

private:
  void numberConstants();
  void declareRuntime();
  LogicalResult lowerRuns();
  LogicalResult lower(Operation *op);
  LogicalResult lowerSingleOps();
  void eraseViews();
  FailureOr<OperandAddress> operandAddressOf(Value buffer);
  FailureOr<int64_t> codeOf(Value buffer);
  Operation *ifOwner(int64_t shard, Location loc);
  bool isSliced(int64_t shard);
  LogicalResult lowerLaunch(LaunchOp op);
  bool takesSets(LaunchOp op);
  LLVM::LLVMFuncOp launchSetsFunction();
  void lowerSets(LaunchOp op, const Callee &callee,
                 const OperandTables &tables);
  void lowerMoving(LaunchOp op, const Callee &callee,
                   const OperandTables &tables);
  // Runs of launches.
  bool isFixed(LaunchOp op);
  LogicalResult lowerRun(ArrayRef<LaunchOp> launches);
  void launchAll(const LaunchTable &table, Location loc);
  void defineKernels();
  LLVM::GlobalOp defineConstant(Type type, size_t size, StringRef name,
                                Location loc,
                                function_ref<Value(size_t)> makeElement);
  int64_t numberOfKernel(Operation *symbol);
  LogicalResult lowerStart(StartAllReduceOp op);
  LogicalResult lowerStart(StartExchangeOp op);
  LogicalResult callStart(Operation *op, ValueRange buffers, StringRef function,
                          SmallVector<Value> arguments);
  void lowerWait(WaitOp op);
  FailureOr<OperandTables> tablesOf(Operation *op, ValueRange buffers);
  LLVM::GlobalOp descriptionOf(StartAllReduceOp op);
  LLVM::GlobalOp descriptionOf(StartExchangeOp op);
  /// A field of a constant structure: an address or an i64.
  using Field = std::variant<LLVM::GlobalOp, int64_t>;
  LLVM::GlobalOp defineStructure(StringRef name, Location loc,
                                 ArrayRef<Field> fields);
  LLVM::GlobalOp labelOf(Location loc, StringRef name,
                         std::optional<StringRef> label);
  FailureOr<Value> address(Operation *access, Value buffer);
  LogicalResult lowerAccessOnGPU(Operation *access, Value buffer);
  FailureOr<Callee> calleeOf(LaunchOp op);
  LLVM::GlobalOp descriptionOf(StringRef kernel, Location loc);
  Value addressOf(Operation *symbol, Location loc);
  // Control flow on the GPU.
  void decideOnGPU();
  void loopOnGPU(scf::ForOp loop);
  LogicalResult lowerKeep(memref::LoadOp load);
  bool lowerMovingStore(memref::StoreOp store, const OperandAddress &place);
  Value callConditionFunction(const Condition &condition, StringRef function,
                              ArrayRef<Value> what, Location loc);
  void branchOnGPU(const Condition &condition, Region &region, Operation *op);
  void order(Operation *op);
  void order(Attribute number, Attribute after, Location loc);
  void fetchResults();
  void callOrder(Value node, Value after, Value count, Location loc);
  Value strideTable(ArrayRef<int64_t> strides, Location loc);
  Value strideTable(Value buffer, Operation *access);
  void lowerRank(RankOp op);
  LogicalResult lowerLoad(memref::LoadOp load);
  LogicalResult lowerStore(memref::StoreOp store);
  Value bufferAt(Value base, MemRefType type);
  LLVM::LLVMFuncOp wrapperOf(func::FuncOp kernel);
  Value bytesOf(SubbufferOp part);
  Value offsetTable(ArrayRef<Value> offsets, Location loc);
  LLVM::GlobalOp constantTable(ArrayRef<int64_t> values, StringRef what,
                               Location loc);
  void becomeFunction();
  std::string entryName();
  std::string kernelsName() { return entryName() + "_kernels"; }
  LLVM::LLVMFuncOp runtimeFunction(StringRef name, Type result,
                                   ArrayRef<Type> arguments);
  Value constant(int64_t value, Location loc) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                    builder.getI64IntegerAttr(value));
  }

  ModuleOp module;
  ScheduleOp schedule;
  /// The symbols of the module, except operand tables, which nothing looks up.
  /// (Without it, a lookup would walk the whole module.)
  SymbolTable symbols;
  OpBuilder builder;
  LLVMTypeConverter converter;
  Type pointer;
  /// Whether kernels and buffers are on a GPU.
  bool isForGPU;
  LLVM::LLVMFuncOp launch, operand, read, write;
  Value step;
  bool isDecidedOnGPU = false;
  DenseMap<Operation *, int64_t> conditions; // numbers of loads
  DenseMap<StringRef, int64_t> constants;    // external buffer numbers
  /// The kernels that runs launch, and their indices in the table of kernels.
  SmallVector<Operation *> kernels;
  DenseMap<Operation *, int64_t> kernelNumbers;
  unsigned tables = 0;
};

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERSCHEDULE_SCHEDULELOWERING_H
