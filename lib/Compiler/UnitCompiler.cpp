//===- UnitCompiler.cpp - LLVM IR to an object ----------------------------===//

#include "UnitCompiler.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"

using namespace mlir;
using namespace mlir::fp8;

/// The passes that the code still needs: most kernels come as loops over
/// vectors, whose addresses and invariants have to be simplified; sums by index
/// come as loops over elements. The default O2 pipeline takes more than twice
/// as long, for code that is no faster. It lacks `indvars` and full unrolling
/// on purpose: register tiles come unrolled, and these passes cost compile time
/// without making a step faster.
static constexpr llvm::StringLiteral kPasses =
    "function(early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),gvn,loop-vectorize,loop-mssa(licm),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

llvm::orc::JITTargetMachineBuilder
fp8::makeTargetMachineBuilder(const CodeTarget &target, bool optimize) {
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

llvm::Expected<std::unique_ptr<UnitCompiler>>
UnitCompiler::create(llvm::orc::JITTargetMachineBuilder builder,
                     bool optimize) {
  auto machine = builder.createTargetMachine();
  if (!machine)
    return machine.takeError();
  std::unique_ptr<UnitCompiler> compiler(new UnitCompiler(std::move(*machine)));
  if (optimize)
    if (llvm::Error error = compiler->makePipeline())
      return std::move(error);
  if (!compiler->makeCodegen())
    return llvm::createStringError("the target cannot emit object files");
  return compiler;
}

llvm::Expected<std::string> UnitCompiler::compile(ModuleOp unit) {
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(unit, context);
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

std::string UnitCompiler::emit(llvm::Module &module) {
  setTarget(module);
  object.clear();
  codegen.run(module);
  return object.str().str();
}

void UnitCompiler::setTarget(llvm::Module &module) {
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
}

/// Adds the passes of `TargetMachine::addPassesToEmitFile` without those that
/// schedule machine instructions: they take a twelfth of the compile time of
/// a step and make no kernel faster, since CPUs execute out of order.
bool UnitCompiler::makeCodegen() {
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

llvm::Error UnitCompiler::makePipeline() {
  llvm::PassBuilder passes(machine.get());
  passes.registerModuleAnalyses(mam);
  passes.registerCGSCCAnalyses(cgam);
  passes.registerFunctionAnalyses(fam);
  passes.registerLoopAnalyses(lam);
  passes.crossRegisterProxies(lam, fam, cgam, mam);
  return passes.parsePassPipeline(pipeline, kPasses);
}
