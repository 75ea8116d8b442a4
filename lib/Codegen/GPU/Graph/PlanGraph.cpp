//===- PlanGraph.cpp - Control flow that the GPU runs ---------------------===//

#include "../../Lowering/DeviceLoops.h"
#include "LaunchedKernels.h"

#include "fp8-c/Runtime.h"
#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Parser/Parser.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_PLANGRAPH
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

//===----------------------------------------------------------------------===//
// Control kernels
//===----------------------------------------------------------------------===//

/// Computes how many bytes an address has moved, %a2, from the counters %c0 to
/// %c3 and the strides %s0 to %s3.
static constexpr const char *kMove = R"mlir(
    %p1 = llvm.getelementptr %counters[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %p2 = llvm.getelementptr %counters[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %p3 = llvm.getelementptr %counters[3] : (!llvm.ptr) -> !llvm.ptr, i64
    %c0 = llvm.load %counters : !llvm.ptr -> i64
    %c1 = llvm.load %p1 : !llvm.ptr -> i64
    %c2 = llvm.load %p2 : !llvm.ptr -> i64
    %c3 = llvm.load %p3 : !llvm.ptr -> i64
    %m0 = llvm.mul %c0, %s0 : i64
    %m1 = llvm.mul %c1, %s1 : i64
    %m2 = llvm.mul %c2, %s2 : i64
    %m3 = llvm.mul %c3, %s3 : i64
    %a0 = llvm.add %m0, %m1 : i64
    %a1 = llvm.add %a0, %m2 : i64
    %a2 = llvm.add %a1, %m3 : i64
)mlir";

/// Each kernel runs in one thread; fp8-c/Runtime/GPUControl.h describes them.
/// They need no switch over the sizes, which are powers of two, and access
/// memory byte by byte, so that any address works.
static std::string controlKernels() {
  return std::string(R"mlir(
gpu.module @fp8_gpu_count {
  llvm.func @cudaGraphSetConditional(i64, i32)
  llvm.func @fp8_gpu_count(%counter: !llvm.ptr, %next: i64, %trips: i64, %handle: i64)
      attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 1, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %starts = llvm.icmp "eq" %next, %zero : i64
    llvm.cond_br %starts, ^store(%zero : i64), ^count
  ^count:
    %old = llvm.load %counter : !llvm.ptr -> i64
    %new = llvm.add %old, %next : i64
    llvm.br ^store(%new : i64)
  ^store(%value: i64):
    llvm.store %value, %counter : i64, !llvm.ptr
    %more = llvm.icmp "slt" %value, %trips : i64
    %go = llvm.zext %more : i1 to i32
    llvm.call @cudaGraphSetConditional(%handle, %go) : (i64, i32) -> ()
    llvm.return
  }
}
gpu.module @fp8_gpu_test {
  llvm.func @cudaGraphSetConditional(i64, i32)
  llvm.func @fp8_gpu_test(%condition: !llvm.ptr, %low: i64, %high: i64, %inverted: i64, %handle: i64)
      attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 1, 1, 1>} {
    %value = llvm.load %condition : !llvm.ptr -> i64
    %above = llvm.icmp "sle" %low, %value : i64
    %below = llvm.icmp "sle" %value, %high : i64
    %inside = llvm.and %above, %below : i1
    %flip = llvm.trunc %inverted : i64 to i1
    %holds = llvm.xor %inside, %flip : i1
    %go = llvm.zext %holds : i1 to i32
    llvm.call @cudaGraphSetConditional(%handle, %go) : (i64, i32) -> ()
    llvm.return
  }
}
gpu.module @fp8_gpu_keep {
  llvm.func @fp8_gpu_keep(%condition: !llvm.ptr, %from: !llvm.ptr, %bytes: i64, %counters: !llvm.ptr,
                          %s0: i64, %s1: i64, %s2: i64, %s3: i64)
      attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 1, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %eight = llvm.mlir.constant(8 : i64) : i64
    %width = llvm.mlir.constant(64 : i64) : i64
)mlir") + kMove +
         R"mlir(
    %place = llvm.getelementptr %from[%a2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    llvm.br ^next(%zero, %zero : i64, i64)
  ^next(%i: i64, %sum: i64):
    %at = llvm.getelementptr %place[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %byte = llvm.load %at : !llvm.ptr -> i8
    %wide = llvm.zext %byte : i8 to i64
    %shift = llvm.mul %i, %eight : i64
    %placed = llvm.shl %wide, %shift : i64
    %value = llvm.or %sum, %placed : i64
    %following = llvm.add %i, %one : i64
    %more = llvm.icmp "slt" %following, %bytes : i64
    llvm.cond_br %more, ^next(%following, %value : i64, i64), ^done
  ^done:
    %bits = llvm.mul %bytes, %eight : i64
    %unused = llvm.sub %width, %bits : i64
    %left = llvm.shl %value, %unused : i64
    %extended = llvm.ashr %left, %unused : i64
    llvm.store %extended, %condition : i64, !llvm.ptr
    llvm.return
  }
}
gpu.module @fp8_gpu_put {
  llvm.func @fp8_gpu_put(%to: !llvm.ptr, %bytes: i64, %counters: !llvm.ptr, %s0: i64, %s1: i64, %s2: i64, %s3: i64,
                         %first: i64, %v0: i64, %v1: i64, %v2: i64, %v3: i64)
      attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 1, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %eight = llvm.mlir.constant(8 : i64) : i64
)mlir" + kMove +
         R"mlir(
    %n0 = llvm.mul %c0, %v0 : i64
    %n1 = llvm.mul %c1, %v1 : i64
    %n2 = llvm.mul %c2, %v2 : i64
    %n3 = llvm.mul %c3, %v3 : i64
    %b0 = llvm.add %n0, %n1 : i64
    %b1 = llvm.add %b0, %n2 : i64
    %b2 = llvm.add %b1, %n3 : i64
    %value = llvm.add %first, %b2 : i64
    %place = llvm.getelementptr %to[%a2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    llvm.br ^next(%zero : i64)
  ^next(%i: i64):
    %shift = llvm.mul %i, %eight : i64
    %moved = llvm.lshr %value, %shift : i64
    %byte = llvm.trunc %moved : i64 to i8
    %at = llvm.getelementptr %place[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    llvm.store %byte, %at : i8, !llvm.ptr
    %following = llvm.add %i, %one : i64
    %more = llvm.icmp "slt" %following, %bytes : i64
    llvm.cond_br %more, ^next(%following : i64), ^done
  ^done:
    llvm.return
  }
}
)mlir";
}
static_assert(FP8_GPU_LOOPS == 4, "the kernels have a stride for each");

namespace {

class GraphPlanner {
public:
  GraphPlanner(ModuleOp module, ScheduleOp schedule, SymbolTable &symbols,
               int64_t maxNodes)
      : module(module), schedule(schedule), symbols(symbols),
        maxNodes(maxNodes) {}

  /// Returns true if the GPU can read the conditions of all loops and branches.
  /// Reports the first one that it cannot read.
  bool areConditionsKnown();
  void markLoops() { nodesOf(schedule.getBody().front()); }
  LogicalResult moveOperands();

private:
  int64_t nodesOf(Block &block);
  int64_t nodesOf(scf::ForOp loop);
  bool canCount(scf::ForOp loop);
  bool hasTensorMap(LaunchOp launch, int64_t operand);
  FailureOr<StringAttr> movingKernel(LaunchOp launch, int64_t loops);

  ModuleOp module;
  ScheduleOp schedule;
  SymbolTable &symbols;
  int64_t maxNodes;
};

} // namespace

//===----------------------------------------------------------------------===//
// Conditions that the GPU can read
//===----------------------------------------------------------------------===//

/// Returns true if a loaded value is only used as a condition.
static bool isCondition(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<scf::IfOp, scf::ConditionOp, scf::IndexSwitchOp>(user) ||
           (isa<arith::IndexCastOp, arith::TruncIOp>(user) &&
            isCondition(user->getResult(0)));
  });
}

static bool isKnown(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return conditionOf(branch.getCondition()).has_value();
  if (auto condition = dyn_cast<scf::ConditionOp>(op))
    return conditionOf(condition.getCondition()).has_value();
  if (auto choice = dyn_cast<scf::IndexSwitchOp>(op))
    return conditionOf(choice, 0).has_value();
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return isCondition(load) && stridesOfBuffer(load.getMemRef(), {});
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getStaticTripCount() && getConstantIntValue(loop.getStep());
  return true;
}

/// Returns true for collectives: ranks exchange data between graphs, and the
/// host starts that.
static bool isCollective(Operation *op) {
  return isa<StartAllReduceOp, StartExchangeOp, WaitOp>(op);
}

static bool hasCollective(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isCollective(inner) ? WalkResult::interrupt()
                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool GraphPlanner::areConditionsKnown() {
  WalkResult result = schedule.walk([](Operation *op) {
    StringRef mistake;
    if (!isKnown(op))
      mistake = "expected an integer that a kernel computes, as it is";
    else if (isa<scf::IfOp, scf::IndexSwitchOp, scf::WhileOp>(op) &&
             hasCollective(op))
      mistake = "ranks reduce or exchange where they hold";
    else
      return WalkResult::advance();
    op->emitRemark("the host reads conditions of this step, and waits for "
                   "them: ")
        << mistake;
    return WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Loops that the GPU counts
//===----------------------------------------------------------------------===//

/// Counts the nodes of a block in the graph, in which counted loops without the
/// mark are expanded.
int64_t GraphPlanner::nodesOf(Block &block) {
  int64_t nodes = 0;
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      nodes += nodesOf(loop);
      continue;
    }
    nodes += isa<LaunchOp, memref::LoadOp, memref::StoreOp>(op);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        nodes += nodesOf(inner);
  }
  return nodes;
}

int64_t GraphPlanner::nodesOf(scf::ForOp loop) {
  int64_t body = nodesOf(*loop.getBody());
  int64_t trips = loop.getStaticTripCount()->getSExtValue();
  if (body == 0 || trips <= maxNodes / body || !canCount(loop))
    return trips * body;
  loop->setAttr(FP8Dialect::kDeviceLoopAttrName,
                UnitAttr::get(module.getContext()));
  return body + 3; // The counter is set, tested, and set again.
}

/// Returns true if the launch's kernel has a tensor map of an operand. The map
/// has the operand's address, which only the host can change.
bool GraphPlanner::hasTensorMap(LaunchOp launch, int64_t operand) {
  GPULaunchAttr asked = gpuLaunchOf(launch, symbols);
  return asked && llvm::any_of(asked.getMaps(), [&](TensorMapAttr map) {
           return map.getOperand() == operand;
         });
}

/// Returns true if the GPU can count `loop`, as it does the marked loops
/// inside.
bool GraphPlanner::canCount(scf::ForOp loop) {
  WalkResult result = loop.walk([&](Operation *op) -> WalkResult {
    if (op == loop)
      return success();
    SmallVector<scf::ForOp> loops{loop};
    llvm::append_range(loops, deviceLoopsAround(op));
    if (loops.size() > FP8_GPU_LOOPS || isCollective(op))
      return failure();
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      // Only kernels of our own compute addresses, those of one set.
      bool isFixed =
          launch.getNumSets() > 1 ||
          isa_and_nonnull<KernelOp>(symbols.lookup(launch.getKernel()));
      for (auto [number, operand] : llvm::enumerate(launch.getOperands())) {
        auto strides = stridesOfBuffer(operand, loops);
        bool mustStay = isFixed || hasTensorMap(launch, number);
        if (!strides || (mustStay && llvm::any_of(*strides, [](int64_t by) {
                           return by != 0;
                         })))
          return failure();
      }
      return success();
    }
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return success(stridesOfBuffer(load.getMemRef(), loops).has_value());
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      auto value = stridesOf(store.getValueToStore(), loops);
      return success(value && stridesOfBuffer(store.getMemRef(), loops));
    }
    return success();
  });
  return !result.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Operands with moving addresses
//===----------------------------------------------------------------------===//

/// Appends arguments to a kernel: a pointer to the counters of the loops, and
/// `numStrides` strides.
static void addLoopArguments(LLVM::LLVMFuncOp func, int64_t numStrides) {
  OpBuilder builder(func.getContext());
  unsigned first = func.getNumArguments();
  SmallVector<Type> types(func.getArgumentTypes());
  types.push_back(LLVM::LLVMPointerType::get(func.getContext()));
  types.append(numStrides, builder.getI64Type());
  SmallVector<Attribute> attributes;
  for (unsigned i = 0; i < types.size(); ++i) {
    NamedAttrList own;
    if (i < first)
      own.append(func.getArgAttrDict(i) ? func.getArgAttrDict(i)
                                        : builder.getDictionaryAttr({}));
    // The argument is no longer the address that the kernel accesses.
    own.erase(LLVM::LLVMDialect::getDereferenceableAttrName());
    attributes.push_back(own.getDictionary(func.getContext()));
  }
  func.setFunctionType(LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(func.getContext()), types));
  func.setArgAttrsAttr(builder.getArrayAttr(attributes));
  for (Type type : ArrayRef(types).drop_front(first))
    func.getBody().front().addArgument(type, func.getLoc());
}

/// Returns the symbol of a copy of a launch's kernel whose operands move in
/// `loops` loops.
FailureOr<StringAttr> GraphPlanner::movingKernel(LaunchOp launch,
                                                 int64_t loops) {
  auto name = StringAttr::get(module.getContext(),
                              launch.getKernel() + "_in_" + Twine(loops) +
                                  (loops == 1 ? "_loop" : "_loops"));
  if (symbols.lookup(name))
    return name;
  FailureOr<LLVM::LLVMFuncOp> kernel = loweredKernelOf(launch, symbols);
  if (failed(kernel))
    return failure();
  LLVM::LLVMFuncOp func =
      copyKernel(*kernel, name, FP8Dialect::kLoopsAttrName, loops, symbols);

  unsigned operands = launch.getNumOperands(), first = func.getNumArguments();
  addLoopArguments(func, operands * loops);
  OpBuilder builder(func.getContext());
  Location loc = func.getLoc();
  Type i64 = builder.getI64Type(), byte = builder.getI8Type();
  Block &entry = func.getBody().front();
  builder.setInsertionPointToStart(&entry);
  SmallVector<Value> counters;
  for (int64_t loop = 0; loop < loops; ++loop) {
    Value at =
        LLVM::GEPOp::create(builder, loc, entry.getArgument(first).getType(),
                            i64, entry.getArgument(first),
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(loop)});
    counters.push_back(LLVM::LoadOp::create(builder, loc, i64, at));
  }
  for (unsigned i = 0; i < operands; ++i) {
    Value base = entry.getArgument(i), bytes;
    for (int64_t loop = 0; loop < loops; ++loop) {
      Value further =
          LLVM::MulOp::create(builder, loc, counters[loop],
                              entry.getArgument(first + 1 + i * loops + loop));
      bytes =
          bytes ? LLVM::AddOp::create(builder, loc, bytes, further) : further;
    }
    auto moved = LLVM::GEPOp::create(builder, loc, base.getType(), byte, base,
                                     ArrayRef<LLVM::GEPArg>{bytes});
    base.replaceAllUsesExcept(moved, moved);
  }
  return name;
}

LogicalResult GraphPlanner::moveOperands() {
  WalkResult result = schedule.walk([&](LaunchOp launch) -> WalkResult {
    SmallVector<scf::ForOp> loops = deviceLoopsAround(launch);
    if (loops.empty())
      return success();
    bool moves = llvm::any_of(launch.getOperands(), [&](Value operand) {
      auto strides = stridesOfBuffer(operand, loops);
      return llvm::any_of(*strides, [](int64_t by) { return by != 0; });
    });
    if (!moves)
      return success();
    FailureOr<StringAttr> name = movingKernel(launch, loops.size());
    if (failed(name))
      return failure();
    launch.setKernelAttr(FlatSymbolRefAttr::get(*name));
    return success();
  });
  return failure(result.wasInterrupted());
}

namespace {

class PlanGraph : public fp8::impl::PlanGraphBase<PlanGraph> {
public:
  using PlanGraphBase::PlanGraphBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    bool asks = false, counts = false, puts = false;
    for (auto schedule : module.getOps<ScheduleOp>()) {
      GraphPlanner planner(module, schedule, symbols, nodes);
      bool hasConditions = false;
      schedule.walk([&](memref::LoadOp) { hasConditions = true; });
      if (!planner.areConditionsKnown())
        continue;
      schedule->setAttr(FP8Dialect::kDeviceControlAttrName,
                        UnitAttr::get(&getContext()));
      planner.markLoops();
      if (failed(planner.moveOperands()))
        return signalPassFailure();
      asks |= hasConditions;
      schedule.walk([&](scf::ForOp loop) {
        counts |= loop->hasAttr(FP8Dialect::kDeviceLoopAttrName);
      });
      schedule.walk([&](memref::StoreOp store) {
        puts |= !deviceLoopsAround(store).empty();
      });
    }
    eraseUnused();
    SmallVector<StringRef> names;
    if (asks)
      names.append({kKeepKernel, kTestKernel});
    if (counts)
      names.push_back(kCountKernel);
    if (puts)
      names.push_back(kPutKernel);
    addKernels(names);
  }

private:
  void eraseUnused() {
    llvm::StringSet<> launched;
    getOperation().walk(
        [&](LaunchOp launch) { launched.insert(launch.getKernel()); });
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (!launched.contains(kernel.getName()))
        kernel.erase();
  }

  void addKernels(ArrayRef<StringRef> names) {
    if (names.empty())
      return;
    OwningOpRef<ModuleOp> known =
        parseSourceString<ModuleOp>(controlKernels(), &getContext());
    assert(known && "the text above is a module");
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto launch = GPULaunchAttr::get(&getContext(), /*blocks=*/1,
                                     /*threads=*/1, 0, 0, 0, /*maps=*/{});
    for (StringRef name : names) {
      Operation *copy = builder.clone(*known->lookupSymbol(name));
      copy->setAttr(FP8Dialect::kGPULaunchAttrName, launch);
    }
  }
};

} // namespace
