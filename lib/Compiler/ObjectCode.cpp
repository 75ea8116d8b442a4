//===- ObjectCode.cpp - LLVM dialect to machine code ----------------------===//

#include "ObjectCode.h"
#include "KernelCache.h"
#include "Threads.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Support/StructuralHash.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include <atomic>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The content of one object: its module, the name of the function that it
/// defines, and the kernels that have this code (none for the schedule).
struct Unit {
  OwningOpRef<ModuleOp> module;
  std::string symbol;
  SmallVector<std::string, 1> kernels;
};

/// Makes each function with a body a unit of its own, so that units compile in
/// parallel. The entry, with the operand tables, is the last one.
SmallVector<Unit> splitUnits(ModuleOp module) {
  OpBuilder builder(module.getContext());
  SymbolTable symbols(module);
  SmallVector<Unit> units;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (func.isExternal() || !func->hasAttr(FP8Dialect::kTaskAttrName))
      continue;
    OwningOpRef<ModuleOp> unit(ModuleOp::create(func.getLoc()));
    builder.setInsertionPointToEnd(unit->getBody());
    // The wrapper and the kernel that it calls.
    SmallVector<std::string, 1> kernels;
    func.walk([&](LLVM::CallOp call) {
      auto kernel =
          symbols.lookup<LLVM::LLVMFuncOp>(call.getCalleeAttr().getAttr());
      auto copy = cast<LLVM::LLVMFuncOp>(builder.clone(*kernel));
      copy.setLinkage(LLVM::Linkage::Internal);
      kernels.push_back(kernel.getName().str());
    });
    builder.clone(*func);
    units.push_back(
        {std::move(unit), func.getName().str(), std::move(kernels)});
  }
  OwningOpRef<ModuleOp> unit(ModuleOp::create(module.getLoc()));
  builder.setInsertionPointToEnd(unit->getBody());
  auto entry = symbols.lookup<LLVM::LLVMFuncOp>("fp8_entry");
  // Constants are not part of it: the runtime has their bytes.
  SetVector<Operation *> addressed;
  auto collect = [&](Operation *op) {
    op->walk([&](LLVM::AddressOfOp address) {
      addressed.insert(symbols.lookup(address.getGlobalName()));
    });
  };
  collect(entry);
  // The description of a collective refers to its label.
  for (unsigned i = 0; i < addressed.size(); ++i)
    if (isa<LLVM::GlobalOp>(addressed[i]))
      collect(addressed[i]);
  for (Operation *global : addressed)
    if (isa<LLVM::GlobalOp>(global))
      builder.clone(*global);
  builder.clone(*entry);
  auto declare = [&](Operation *op) {
    if (auto callee = dyn_cast_or_null<LLVM::LLVMFuncOp>(op))
      LLVM::LLVMFuncOp::create(builder, callee.getLoc(), callee.getName(),
                               callee.getFunctionType());
  };
  llvm::for_each(addressed, declare);
  for (const char *name : {"fp8_launch",
                           "fp8_operand",
                           "fp8_read",
                           "fp8_write",
                           "fp8_all_reduce_start",
                           "fp8_wait",
                           "fp8_rank",
                           "fp8_num_ranks",
                           "fp8_owns",
                           "fp8_exchange_start",
                           "fp8_loop",
                           "fp8_keep",
                           "fp8_branch",
                           "fp8_while",
                           "fp8_end",
                           "fp8_launch_moving",
                           "fp8_write_moving",
                           "fp8_launch_owned",
                           "fp8_launch_sets",
                           "fp8_order",
                           "fp8_fetch"})
    declare(symbols.lookup(name));
  units.push_back({std::move(unit), entry.getName().str(), {}});
  return units;
}

/// The passes that the code still needs: most kernels come as loops over
/// vectors, whose addresses and invariants have to be simplified; sums by index
/// come as loops over elements. The default O2 pipeline takes more than twice
/// as long, for code that is no faster. It lacks `indvars` and full unrolling
/// on purpose: register tiles come unrolled, and these passes cost compile time
/// without making a step faster.
constexpr llvm::StringLiteral kPasses =
    "function(early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),gvn,loop-vectorize,loop-mssa(licm),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

/// Compiles modules one after another. Creates its passes once, because that
/// takes longer than running them on a small kernel.
class UnitCompiler {
public:
  static llvm::Expected<std::unique_ptr<UnitCompiler>>
  create(llvm::orc::JITTargetMachineBuilder builder, bool optimize) {
    auto machine = builder.createTargetMachine();
    if (!machine)
      return machine.takeError();
    std::unique_ptr<UnitCompiler> compiler(
        new UnitCompiler(std::move(*machine)));
    if (optimize)
      if (llvm::Error error = compiler->makePipeline())
        return std::move(error);
    if (!compiler->makeCodegen())
      return llvm::createStringError("the target cannot emit object files");
    return compiler;
  }

  /// Returns the object of a module in the LLVM dialect.
  llvm::Expected<std::string> compile(ModuleOp unit) {
    std::unique_ptr<llvm::Module> module =
        translateModuleToLLVMIR(unit, context);
    if (!module)
      return llvm::createStringError("translation to LLVM IR failed");
    setTarget(*module);
    for (llvm::Function &function : *module) {
      function.addFnAttr("target-cpu", machine->getTargetCPU());
      function.addFnAttr("target-features", machine->getTargetFeatureString());
      // The vectors already have the intended width.
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }
    if (!pipeline.isEmpty()) {
      pipeline.run(*module, mam);
      mam.clear();
      cgam.clear();
      fam.clear();
      lam.clear();
    }
    return emit(*module);
  }

  /// Returns the object of a module, without optimization passes.
  std::string emit(llvm::Module &module) {
    setTarget(module);
    object.clear();
    codegen.run(module);
    return object.str().str();
  }

private:
  explicit UnitCompiler(std::unique_ptr<llvm::TargetMachine> machine)
      : machine(std::move(machine)), stream(object) {}

  void setTarget(llvm::Module &module) {
    module.setDataLayout(machine->createDataLayout());
    module.setTargetTriple(machine->getTargetTriple());
  }

  /// Adds the passes of `TargetMachine::addPassesToEmitFile` without those that
  /// schedule machine instructions: they take a twelfth of the compile time of
  /// a step and make no kernel faster, since CPUs execute out of order.
  bool makeCodegen() {
    auto &target = static_cast<llvm::CodeGenTargetMachineImpl &>(*machine);
    llvm::TargetPassConfig *config = target.createPassConfig(codegen);
    config->disablePass(&llvm::MachineSchedulerID);
    config->disablePass(&llvm::PostRASchedulerID);
    auto *info = new llvm::MachineModuleInfoWrapperPass(&target);
    codegen.add(config);
    codegen.add(info);
    if (config->addISelPasses())
      return false;
    config->addMachinePasses();
    config->setInitialized();
    if (target.addAsmPrinter(codegen, stream, nullptr,
                             llvm::CodeGenFileType::ObjectFile,
                             info->getMMI().getContext()))
      return false;
    codegen.add(llvm::createFreeMachineFunctionPass());
    return true;
  }

  llvm::Error makePipeline() {
    llvm::PassBuilder passes(machine.get());
    passes.registerModuleAnalyses(mam);
    passes.registerCGSCCAnalyses(cgam);
    passes.registerFunctionAnalyses(fam);
    passes.registerLoopAnalyses(lam);
    passes.crossRegisterProxies(lam, fam, cgam, mam);
    return passes.parsePassPipeline(pipeline, kPasses);
  }

  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::LLVMContext context;
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::ModulePassManager pipeline;
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream;
  llvm::legacy::PassManager codegen;
};

/// Compiles a schedule without optimization.
llvm::Expected<std::string>
compileSchedule(ModuleOp unit,
                const llvm::orc::JITTargetMachineBuilder &builder) {
  auto compiler = UnitCompiler::create(builder, /*optimize=*/false);
  if (!compiler)
    return compiler.takeError();
  return (*compiler)->compile(unit);
}

/// Gives the functions of a kernel neutral names, so that equal kernels have
/// equal modules.
void dropNames(Unit &unit) {
  for (auto func : unit.module->getOps<LLVM::LLVMFuncOp>())
    func.setName(func.getName() == unit.symbol ? "task" : "kernel");
  unit.module->walk([](LLVM::CallOp call) {
    if (call.getCallee())
      call.setCallee("kernel");
  });
}

/// Names the functions of the units by hashes of their contents, and merges
/// equal kernels. `names` maps declared kernels to their new names on entry,
/// and gets those of the units.
void nameByContents(SmallVectorImpl<Unit> &units,
                    llvm::StringMap<std::string> &names) {
  llvm::StringMap<size_t> places;
  SmallVector<Unit> kept;
  for (Unit &unit : MutableArrayRef<Unit>(units).drop_back()) {
    std::string before = unit.symbol;
    dropNames(unit);
    unit.symbol = "fp8_kernel_" + structuralHash(*unit.module);
    unit.module->lookupSymbol<LLVM::LLVMFuncOp>("task").setName(unit.symbol);
    names[before] = unit.symbol;
    auto [place, isNew] = places.try_emplace(unit.symbol, kept.size());
    if (isNew)
      kept.push_back(std::move(unit));
    else
      llvm::append_range(kept[place->second].kernels, unit.kernels);
  }
  Unit &schedule = units.back();
  ModuleOp module = *schedule.module;
  llvm::StringSet<> declared;
  for (auto func :
       llvm::make_early_inc_range(module.getOps<LLVM::LLVMFuncOp>())) {
    auto it = names.find(func.getName());
    if (it == names.end())
      continue;
    if (declared.insert(it->second).second)
      func.setName(it->second);
    else
      func.erase();
  }
  module.walk([&](LLVM::AddressOfOp address) {
    auto it = names.find(address.getGlobalName());
    if (it != names.end())
      address.setGlobalName(it->second);
  });
  auto entry = module.lookupSymbol<LLVM::LLVMFuncOp>(schedule.symbol);
  schedule.symbol = "fp8_schedule_" + structuralHash(module);
  entry.setName(schedule.symbol);
  kept.push_back(std::move(schedule));
  units = std::move(kept);
}

/// Returns the indices of units, those with the most ops first: with small
/// units last, threads finish at about the same time.
SmallVector<size_t> largestFirst(ArrayRef<Unit> units) {
  SmallVector<std::pair<size_t, size_t>> sizes;
  for (auto [index, unit] : llvm::enumerate(units)) {
    size_t size = 0;
    unit.module.get().walk([&](Operation *) { ++size; });
    sizes.push_back({size, index});
  }
  llvm::sort(sizes, std::greater<>());
  return llvm::to_vector(llvm::make_second_range(sizes));
}

/// Returns LLVM's target machine builder for `target`.
llvm::orc::JITTargetMachineBuilder
makeTargetMachineBuilder(const CodeTarget &target, bool optimize) {
  initializeTargets();
  llvm::orc::JITTargetMachineBuilder builder((llvm::Triple(target.triple)));
  SmallVector<StringRef> features;
  StringRef(target.features).split(features, ',', -1, /*KeepEmpty=*/false);
  builder.setCPU(target.cpu);
  builder.addFeatures(
      std::vector<std::string>(features.begin(), features.end()));
  builder.setCodeGenOptLevel(optimize ? llvm::CodeGenOptLevel::Default
                                      : llvm::CodeGenOptLevel::None);
  builder.setRelocationModel(llvm::Reloc::PIC_);
  return builder;
}

/// Returns the object of a unit that need not be compiled, because a declared
/// kernel has the same code or the cache has it.
std::optional<ObjectCode> findObject(const Unit &unit,
                                     const llvm::StringMap<ObjectCode> &known,
                                     KernelCache *kernels) {
  if (!kernels || unit.kernels.empty())
    return std::nullopt;
  if (auto it = known.find(unit.symbol); it != known.end()) {
    for (const std::string &kernel : unit.kernels)
      kernels->write(kernel, it->second);
    return it->second;
  }
  return kernels->read(unit.kernels.front(), unit.symbol);
}

/// Returns the objects of a module's kernels in the order of their functions,
/// whether they were declared or compiled, and then that of the schedule.
/// `names` has the symbol of each function's object, `known` the objects.
std::vector<ObjectCode> inModuleOrder(ModuleOp module,
                                      const llvm::StringMap<std::string> &names,
                                      StringRef schedule,
                                      llvm::StringMap<ObjectCode> known) {
  std::vector<ObjectCode> objects;
  auto add = [&](StringRef symbol) {
    if (auto it = known.find(symbol); it != known.end()) {
      objects.push_back(std::move(it->second));
      known.erase(it);
    }
  };
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    if (auto it = names.find(func.getName()); it != names.end())
      add(it->second);
  add(schedule);
  return objects;
}

} // namespace

llvm::Expected<std::string> fp8::emitObject(llvm::Module &module,
                                            const CodeTarget &target) {
  auto compiler = UnitCompiler::create(
      makeTargetMachineBuilder(target, /*optimize=*/true), /*optimize=*/false);
  if (!compiler)
    return compiler.takeError();
  return (*compiler)->emit(module);
}

FailureOr<CompiledObjects> fp8::compileObjects(ModuleOp module,
                                               unsigned threads, bool optimize,
                                               KernelCache *kernels) {
  auto fail = [&](llvm::Error error) -> FailureOr<CompiledObjects> {
    emitError(module.getLoc())
        << "code generation failed: " << llvm::toString(std::move(error));
    return failure();
  };
  DialectRegistry registry;
  registerAllToLLVMIRTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();

  FailureOr<CPUTargetAttr> target = targetOf(module);
  if (failed(target))
    return failure();
  llvm::orc::JITTargetMachineBuilder builder =
      makeTargetMachineBuilder(CodeTarget::of(*target), optimize);
  // A schedule is long and runs once per step; LLVM's scheduling and register
  // allocation take more than linear time on it.
  llvm::orc::JITTargetMachineBuilder scheduleBuilder =
      makeTargetMachineBuilder(CodeTarget::of(*target), /*optimize=*/false);
  SmallVector<Unit> units = splitUnits(module);
  llvm::StringMap<std::string> names;
  llvm::StringMap<ObjectCode> known; // by symbol
  if (kernels)
    for (const auto &kernel : kernels->getKnown()) {
      names[kernel.first()] = kernel.second.symbol;
      known[kernel.second.symbol] = kernel.second;
    }
  nameByContents(units, names);
  std::vector<ObjectCode> objects(units.size());
  std::vector<std::string> errors(units.size());
  SmallVector<size_t> order = largestFirst(units);
  std::atomic<size_t> next(0);
  auto work = [&] {
    auto compiler = UnitCompiler::create(builder, optimize);
    for (size_t i; (i = next++) < order.size();) {
      size_t index = order[i];
      const Unit &unit = units[index];
      if (auto object = findObject(unit, known, kernels)) {
        objects[index] = std::move(*object);
        continue;
      }
      if (!compiler) {
        errors[index] = "no target machine for this processor";
        continue;
      }
      auto object = index + 1 < units.size()
                        ? (*compiler)->compile(*unit.module)
                        : compileSchedule(*unit.module, scheduleBuilder);
      if (!object) {
        errors[index] = llvm::toString(object.takeError());
        continue;
      }
      objects[index] = {unit.symbol, std::move(*object)};
      if (kernels)
        for (const std::string &kernel : unit.kernels)
          kernels->write(kernel, objects[index]);
    }
    if (!compiler)
      llvm::consumeError(compiler.takeError());
  };
  runOnThreads(threads, work);
  for (const std::string &error : errors)
    if (!error.empty())
      return fail(llvm::createStringError(error));
  for (ObjectCode &object : objects)
    known[object.symbol] = std::move(object);
  return CompiledObjects{
      inModuleOrder(module, names, units.back().symbol, std::move(known)),
      kernels ? kernels->numFound() : 0};
}
