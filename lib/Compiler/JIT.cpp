//===- JIT.cpp - LLVM dialect to code in this process ---------------------===//

#include "JIT.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <atomic>
#include <thread>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Each function with a body is a unit of its own, so that units compile in
/// parallel; the entry keeps the operand tables.
SmallVector<OwningOpRef<ModuleOp>> splitUnits(ModuleOp module) {
  OpBuilder builder(module.getContext());
  SmallVector<OwningOpRef<ModuleOp>> units;
  auto declare = [&](ModuleOp unit, StringRef name) {
    if (unit.lookupSymbol(name))
      return;
    auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    builder.setInsertionPointToEnd(unit.getBody());
    LLVM::LLVMFuncOp::create(builder, callee.getLoc(), name,
                             callee.getFunctionType());
  };
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (func.isExternal() || !func.getName().ends_with("_task"))
      continue;
    OwningOpRef<ModuleOp> unit(ModuleOp::create(func.getLoc()));
    builder.setInsertionPointToEnd(unit->getBody());
    // The wrapper and the kernel that it calls.
    func.walk([&](LLVM::CallOp call) {
      auto kernel =
          module.lookupSymbol<LLVM::LLVMFuncOp>(call.getCalleeAttr().getAttr());
      auto copy = cast<LLVM::LLVMFuncOp>(builder.clone(*kernel));
      copy.setLinkage(LLVM::Linkage::Internal);
    });
    builder.clone(*func);
    units.push_back(std::move(unit));
  }
  OwningOpRef<ModuleOp> unit(ModuleOp::create(module.getLoc()));
  builder.setInsertionPointToEnd(unit->getBody());
  for (auto global : module.getOps<LLVM::GlobalOp>())
    builder.clone(*global);
  auto entry = module.lookupSymbol<LLVM::LLVMFuncOp>("fp8_entry");
  builder.clone(*entry);
  entry.walk([&](LLVM::AddressOfOp address) {
    if (module.lookupSymbol<LLVM::LLVMFuncOp>(address.getGlobalName()))
      declare(*unit, address.getGlobalName());
  });
  declare(*unit, "fp8_launch");
  declare(*unit, "fp8_operand");
  units.push_back(std::move(unit));
  return units;
}

/// Optimizes and compiles one unit in a context of its own.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
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
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream os(object);
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, os, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("the target cannot emit object files");
  codegen.run(*llvmModule);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(object), /*RequiresNullTerminator=*/false);
}

} // namespace

JITCode::JITCode() = default;
JITCode::~JITCode() = default;

FailureOr<std::unique_ptr<JITCode>> JITCode::create(ModuleOp module,
                                                    unsigned threads) {
  auto fail = [&](llvm::Error error) -> FailureOr<std::unique_ptr<JITCode>> {
    emitError(module.getLoc())
        << "code generation failed: " << llvm::toString(std::move(error));
    return failure();
  };
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  DialectRegistry registry;
  registerAllToLLVMIRTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();

  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return fail(builder.takeError());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  builder->setRelocationModel(llvm::Reloc::PIC_);

  SmallVector<OwningOpRef<ModuleOp>> units = splitUnits(module);
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects(units.size());
  std::vector<std::string> errors(units.size());
  std::atomic<size_t> next(0);
  auto work = [&] {
    auto machine = builder->createTargetMachine();
    for (size_t index; (index = next++) < units.size();) {
      if (!machine) {
        errors[index] = "no target machine for this processor";
        continue;
      }
      auto object = compileUnit(*units[index], **machine,
                                /*optimize=*/index + 1 < units.size());
      if (object)
        objects[index] = std::move(*object);
      else
        errors[index] = llvm::toString(object.takeError());
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

  auto jit =
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(*builder).create();
  if (!jit)
    return fail(jit.takeError());
  std::unique_ptr<JITCode> code(new JITCode());
  code->jit = std::move(*jit);
  llvm::orc::SymbolMap symbols;
  auto provide = [&](llvm::StringRef name, auto *function) {
    symbols[code->jit->mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  provide("fp8_launch", &fp8_launch);
  provide("fp8_operand", &fp8_operand);
  llvm::orc::JITDylib &dylib = code->jit->getMainJITDylib();
  if (llvm::Error error =
          dylib.define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return fail(std::move(error));
  // memcpy and the like.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      code->jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return fail(process.takeError());
  dylib.addGenerator(std::move(*process));
  for (auto &object : objects)
    if (llvm::Error error = code->jit->addObjectFile(std::move(object)))
      return fail(std::move(error));
  auto address = code->jit->lookup("fp8_entry");
  if (!address)
    return fail(address.takeError());
  code->entryPoint = address->toPtr<fp8_entry_fn>();
  return code;
}
