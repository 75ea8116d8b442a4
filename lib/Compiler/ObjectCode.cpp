//===- ObjectCode.cpp - LLVM dialect to machine code ----------------------===//

#include "ObjectCode.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Support/StructuralHash.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include <atomic>
#include <thread>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// One object to be: the module and the name of the function that it defines.
struct Unit {
  OwningOpRef<ModuleOp> module;
  std::string symbol;
};

/// Each function with a body is a unit of its own, so that units compile in
/// parallel; the entry keeps the operand tables and is the last one.
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
    func.walk([&](LLVM::CallOp call) {
      auto kernel =
          symbols.lookup<LLVM::LLVMFuncOp>(call.getCalleeAttr().getAttr());
      auto copy = cast<LLVM::LLVMFuncOp>(builder.clone(*kernel));
      copy.setLinkage(LLVM::Linkage::Internal);
    });
    builder.clone(*func);
    units.push_back({std::move(unit), func.getName().str()});
  }
  OwningOpRef<ModuleOp> unit(ModuleOp::create(module.getLoc()));
  builder.setInsertionPointToEnd(unit->getBody());
  auto entry = symbols.lookup<LLVM::LLVMFuncOp>("fp8_entry");
  // Constants are no part of it: the runtime has their bytes.
  SetVector<Operation *> addressed;
  auto collect = [&](Operation *op) {
    op->walk([&](LLVM::AddressOfOp address) {
      addressed.insert(symbols.lookup(address.getGlobalName()));
    });
  };
  collect(entry);
  // What describes a collective names its label.
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
  for (const char *name : {"fp8_launch", "fp8_operand", "fp8_read", "fp8_write",
                           "fp8_all_reduce_start", "fp8_wait", "fp8_rank",
                           "fp8_num_ranks", "fp8_owns", "fp8_exchange_start"})
    declare(symbols.lookup(name));
  units.push_back({std::move(unit), entry.getName().str()});
  return units;
}

/// The object of a module as it is.
llvm::Expected<std::string> emitModule(llvm::Module &module,
                                       llvm::TargetMachine &machine) {
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream os(object);
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, os, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("the target cannot emit object files");
  codegen.run(module);
  return object.str().str();
}

/// Optimizes and compiles one unit in a context of its own.
llvm::Expected<std::string>
compileUnit(ModuleOp unit, llvm::TargetMachine &machine, bool optimize) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(unit, context);
  if (!llvmModule)
    return llvm::createStringError("translation to LLVM IR failed");
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setTargetTriple(machine.getTargetTriple());
  for (llvm::Function &function : *llvmModule) {
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // The vectors are already as wide as they are meant to be.
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  if (optimize) {
    llvm::PipelineTuningOptions tuning;
    tuning.SLPVectorization = false;
    tuning.LoopUnrolling = false;
    llvm::PassBuilder passes(&machine, tuning);
    llvm::LoopAnalysisManager lam;
    llvm::FunctionAnalysisManager fam;
    llvm::CGSCCAnalysisManager cgam;
    llvm::ModuleAnalysisManager mam;
    passes.registerModuleAnalyses(mam);
    passes.registerCGSCCAnalyses(cgam);
    passes.registerFunctionAnalyses(fam);
    passes.registerLoopAnalyses(lam);
    passes.crossRegisterProxies(lam, fam, cgam, mam);
    passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
        .run(*llvmModule, mam);
  }
  return emitModule(*llvmModule, machine);
}

/// Gives the functions of a kernel names that don't tell which one it is.
void dropNames(Unit &unit) {
  for (auto func : unit.module->getOps<LLVM::LLVMFuncOp>())
    func.setName(func.getName() == unit.symbol ? "task" : "kernel");
  unit.module->walk([](LLVM::CallOp call) {
    if (call.getCallee())
      call.setCallee("kernel");
  });
}

/// Names what the units define by hashes of their contents, and drops kernels
/// that are there already.
void nameByContents(SmallVectorImpl<Unit> &units) {
  llvm::StringMap<std::string> names;
  llvm::StringSet<> known;
  SmallVector<Unit> kept;
  for (Unit &unit : MutableArrayRef<Unit>(units).drop_back()) {
    std::string before = unit.symbol;
    dropNames(unit);
    unit.symbol = "fp8_kernel_" + structuralHash(*unit.module);
    unit.module->lookupSymbol<LLVM::LLVMFuncOp>("task").setName(unit.symbol);
    names[before] = unit.symbol;
    if (known.insert(unit.symbol).second)
      kept.push_back(std::move(unit));
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

/// LLVM's target machine for `target`.
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

/// Kernels on disk. What a kernel computes is in its symbol; what else its
/// code depends on is the rest of the key.
class KernelCache {
public:
  KernelCache(const Cache *cache,
              const llvm::orc::JITTargetMachineBuilder &builder, bool optimize)
      : cache(cache) {
    CacheKey key;
    key.add(getCompilerBuildId()).add(builder.getTargetTriple().str());
    key.add(builder.getCPU()).add(builder.getFeatures().getString());
    key.add(static_cast<int64_t>(optimize));
    suffix = "-" + key.digest().substr(0, 16) + ".o";
  }

  std::optional<std::string> read(const std::string &symbol) {
    std::unique_ptr<llvm::MemoryBuffer> bytes =
        cache ? cache->read(symbol + suffix) : nullptr;
    if (!bytes)
      return std::nullopt;
    auto members = readSealedArchive(bytes->getBuffer());
    if (members && members->size() == 1 && members->front().first == symbol) {
      ++found;
      return members->front().second.str();
    }
    // Damaged: it is compiled anew.
    if (!members)
      llvm::consumeError(members.takeError());
    cache->remove(symbol + suffix);
    return std::nullopt;
  }

  void write(const std::string &symbol, StringRef bytes) {
    if (!cache)
      return;
    auto sealed = writeSealedArchive({{symbol, bytes}});
    if (sealed)
      cache->write(symbol + suffix, *sealed);
    else
      llvm::consumeError(sealed.takeError());
  }

  std::atomic<int64_t> found{0};

private:
  const Cache *cache;
  std::string suffix;
};

} // namespace

llvm::Expected<std::string> fp8::emitObject(llvm::Module &module,
                                            const CodeTarget &target) {
  auto machine =
      makeTargetMachineBuilder(target, /*optimize=*/true).createTargetMachine();
  if (!machine)
    return machine.takeError();
  module.setDataLayout((*machine)->createDataLayout());
  module.setTargetTriple((*machine)->getTargetTriple());
  return emitModule(module, **machine);
}

FailureOr<CompiledObjects> fp8::compileObjects(ModuleOp module,
                                               unsigned threads, bool optimize,
                                               const Cache *cache) {
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
  SmallVector<Unit> units = splitUnits(module);
  nameByContents(units);
  KernelCache kernels(cache, builder, optimize);
  std::vector<ObjectCode> objects(units.size());
  std::vector<std::string> errors(units.size());
  std::atomic<size_t> next(0);
  auto work = [&] {
    auto machine = builder.createTargetMachine();
    for (size_t index; (index = next++) < units.size();) {
      const std::string &symbol = units[index].symbol;
      bool isKernel = index + 1 < units.size();
      if (auto bytes = isKernel ? kernels.read(symbol) : std::nullopt) {
        objects[index] = {symbol, std::move(*bytes)};
        continue;
      }
      if (!machine) {
        errors[index] = "no target machine for this processor";
        continue;
      }
      auto object =
          compileUnit(*units[index].module, **machine, optimize && isKernel);
      if (!object) {
        errors[index] = llvm::toString(object.takeError());
        continue;
      }
      if (isKernel)
        kernels.write(symbol, *object);
      objects[index] = {symbol, std::move(*object)};
    }
    if (!machine)
      llvm::consumeError(machine.takeError());
  };
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
  for (const std::string &error : errors)
    if (!error.empty())
      return fail(llvm::createStringError(error));
  return CompiledObjects{std::move(objects), kernels.found};
}
