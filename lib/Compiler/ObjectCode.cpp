//===- ObjectCode.cpp - LLVM dialect to machine code ----------------------===//

#include "ObjectCode.h"
#include "KernelCache.h"
#include "Threads.h"
#include "UnitCompiler.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Support/StructuralHash.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
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

/// Makes a unit of the wrapper of a kernel and the kernel that it calls.
Unit makeKernelUnit(LLVM::LLVMFuncOp wrapper, const SymbolTable &symbols) {
  Unit unit{ModuleOp::create(wrapper.getLoc()), wrapper.getName().str(), {}};
  auto builder = OpBuilder::atBlockEnd(unit.module->getBody());
  wrapper.walk([&](LLVM::CallOp call) {
    auto kernel =
        symbols.lookup<LLVM::LLVMFuncOp>(call.getCalleeAttr().getAttr());
    auto copy = cast<LLVM::LLVMFuncOp>(builder.clone(*kernel));
    copy.setLinkage(LLVM::Linkage::Internal);
    unit.kernels.push_back(kernel.getName().str());
  });
  builder.clone(*wrapper);
  return unit;
}

/// Returns what the entry and its tables refer to: globals and functions.
/// Constants are not among them: the runtime has their bytes.
SetVector<Operation *> symbolsOf(LLVM::LLVMFuncOp entry,
                                 const SymbolTable &symbols) {
  SetVector<Operation *> found;
  auto collect = [&](Operation *op) {
    op->walk([&](LLVM::AddressOfOp address) {
      found.insert(symbols.lookup(address.getGlobalName()));
    });
  };
  collect(entry);
  // The description of a collective refers to its label.
  for (unsigned i = 0; i < found.size(); ++i)
    if (isa<LLVM::GlobalOp>(found[i]))
      collect(found[i]);
  entry.walk([&](LLVM::CallOp call) {
    if (auto callee = call.getCallee())
      found.insert(symbols.lookup(*callee));
  });
  return found;
}

/// Makes a unit of the entry, with its tables and declarations of what it calls
/// and launches.
Unit makeScheduleUnit(ModuleOp module, const SymbolTable &symbols) {
  auto entry = symbols.lookup<LLVM::LLVMFuncOp>(kEntryName);
  Unit unit{ModuleOp::create(module.getLoc()), entry.getName().str(), {}};
  auto builder = OpBuilder::atBlockEnd(unit.module->getBody());
  SetVector<Operation *> used = symbolsOf(entry, symbols);
  for (Operation *op : used)
    if (isa<LLVM::GlobalOp>(op))
      builder.clone(*op);
  builder.clone(*entry);
  for (Operation *op : used)
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
      LLVM::LLVMFuncOp::create(builder, function.getLoc(), function.getName(),
                               function.getFunctionType());
  return unit;
}

/// Makes each function with a body a unit of its own, so that units compile in
/// parallel. The entry, with the operand tables, is the last one.
SmallVector<Unit> splitUnits(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<Unit> units;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    if (!func.isExternal() && func->hasAttr(FP8Dialect::kTaskAttrName))
      units.push_back(makeKernelUnit(func, symbols));
  units.push_back(makeScheduleUnit(module, symbols));
  return units;
}

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

/// Returns the objects of declared kernels by symbol, and adds their symbols to
/// `names`.
llvm::StringMap<ObjectCode> knownObjects(KernelCache *kernels,
                                         llvm::StringMap<std::string> &names) {
  llvm::StringMap<ObjectCode> known;
  if (!kernels)
    return known;
  for (const auto &kernel : kernels->getKnown()) {
    names[kernel.first()] = kernel.second.symbol;
    known[kernel.second.symbol] = kernel.second;
  }
  return known;
}

/// Lets the module's dialects be translated to LLVM IR.
void registerTranslations(ModuleOp module) {
  DialectRegistry registry;
  registerAllToLLVMIRTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
}

/// Compiles the units of one function on several threads.
class ObjectMaker {
public:
  ObjectMaker(ArrayRef<Unit> units, CPUTargetAttr target, bool optimize,
              KernelCache *kernels, const llvm::StringMap<ObjectCode> &known)
      : units(units), optimize(optimize), kernels(kernels), known(known),
        builder(makeTargetMachineBuilder(CodeTarget::of(target), optimize)),
        scheduleBuilder(makeTargetMachineBuilder(CodeTarget::of(target),
                                                 /*optimize=*/false)),
        order(largestFirst(units)), objects(units.size()),
        errors(units.size()) {}

  llvm::Expected<std::vector<ObjectCode>> run(unsigned threads) {
    runOnThreads(threads, [&] { work(); });
    for (const std::string &error : errors)
      if (!error.empty())
        return llvm::createStringError(error);
    return std::move(objects);
  }

private:
  /// Compiles units until none is left.
  void work() {
    auto compiler = UnitCompiler::create(builder, optimize);
    for (size_t i; (i = next++) < order.size();) {
      size_t index = order[i];
      auto object = makeObject(index, compiler ? compiler->get() : nullptr);
      if (object)
        objects[index] = std::move(*object);
      else
        errors[index] = llvm::toString(object.takeError());
    }
    if (!compiler)
      llvm::consumeError(compiler.takeError());
  }

  llvm::Expected<ObjectCode> makeObject(size_t index, UnitCompiler *compiler) {
    const Unit &unit = units[index];
    if (auto object = findObject(unit, known, kernels))
      return std::move(*object);
    if (!compiler)
      return llvm::createStringError("no target machine for this processor");
    auto bytes = index + 1 < units.size()
                     ? compiler->compile(*unit.module)
                     : compileSchedule(*unit.module, scheduleBuilder);
    if (!bytes)
      return bytes.takeError();
    ObjectCode object{unit.symbol, std::move(*bytes)};
    if (kernels)
      for (const std::string &kernel : unit.kernels)
        kernels->write(kernel, object);
    return object;
  }

  ArrayRef<Unit> units;
  bool optimize;
  KernelCache *kernels;
  const llvm::StringMap<ObjectCode> &known;
  llvm::orc::JITTargetMachineBuilder builder;
  /// A schedule is long and runs once per step; LLVM's scheduling and register
  /// allocation take more than linear time on it.
  llvm::orc::JITTargetMachineBuilder scheduleBuilder;
  SmallVector<size_t> order;
  std::vector<ObjectCode> objects;
  std::vector<std::string> errors;
  std::atomic<size_t> next{0};
};

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
  registerTranslations(module);
  FailureOr<CPUTargetAttr> target = targetOf(module);
  if (failed(target))
    return failure();
  SmallVector<Unit> units = splitUnits(module);
  llvm::StringMap<std::string> names; // of the objects of functions
  llvm::StringMap<ObjectCode> known = knownObjects(kernels, names);
  nameByContents(units, names);
  auto objects =
      ObjectMaker(units, *target, optimize, kernels, known).run(threads);
  if (!objects)
    return emitError(module.getLoc())
           << "code generation failed: " << llvm::toString(objects.takeError());
  for (ObjectCode &object : *objects)
    known[object.symbol] = std::move(object);
  return CompiledObjects{
      inModuleOrder(module, names, units.back().symbol, std::move(known)),
      kernels ? kernels->numFound() : 0};
}
