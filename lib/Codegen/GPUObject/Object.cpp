//===- Object.cpp - Compilation of GPU kernels ----------------------------===//

#include "fp8/Codegen/GPUObject/Object.h"

#include "fp8/Support/OutputFile.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<GPUImage> fp8::parseGPUImage(StringRef name) {
  for (GPUImage image : {GPUImage::Bitcode, GPUImage::PTX, GPUImage::Cubin})
    if (nameOf(image) == name)
      return image;
  return llvm::createStringError(
      "expected an image of bitcode, ptx and cubin but got '" + name + "'");
}

StringRef fp8::nameOf(GPUImage image) {
  switch (image) {
  case GPUImage::Bitcode:
    return "bitcode";
  case GPUImage::PTX:
    return "ptx";
  case GPUImage::Cubin:
    return "cubin";
  }
  llvm_unreachable("an image of no kind");
}

std::string fp8::findPtxas() {
  if (auto path = llvm::sys::Process::GetEnv("FP8_PTXAS"))
    return *path;
  SmallVector<std::string> folders;
  if (auto home = llvm::sys::Process::GetEnv("CUDA_HOME"))
    folders.push_back(*home + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  SmallVector<StringRef> places(folders.begin(), folders.end());
  if (auto path = llvm::sys::findProgramByName("ptxas", places))
    return *path;
  auto path = llvm::sys::findProgramByName("ptxas");
  return path ? *path : std::string();
}

void fp8::registerGPUTranslations(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeMachine(GPUTargetAttr target) {
  initializeTargets();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return llvm::createStringError("LLVM has no target for NVIDIA GPUs: " +
                                   error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.getChip(), target.getFeatures(), options, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder passes(&machine);
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  passes.registerModuleAnalyses(mam);
  passes.registerCGSCCAnalyses(cgam);
  passes.registerFunctionAnalyses(fam);
  passes.registerLoopAnalyses(lam);
  passes.crossRegisterProxies(lam, fam, cgam, mam);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, mam);
}

/// Returns the number that the first group of `pattern` matches in `text`; 0 if
/// there is none.
static int64_t numberIn(StringRef text, StringRef pattern) {
  SmallVector<StringRef> matches;
  int64_t number = 0;
  if (llvm::Regex(pattern).match(text, &matches))
    (void)matches[1].getAsInteger(10, number);
  return number;
}

/// Returns the message in which the assembler says that it serializes wgmma
/// instructions, because other code uses their registers in between: the kernel
/// would be right but much slower. Empty if there is no such message.
static StringRef findSerialized(StringRef messages) {
  size_t at = messages.find("wgmma.mma_async instructions are serialized");
  if (at == StringRef::npos)
    return "";
  size_t begin = messages.rfind('\n', at);
  begin = begin == StringRef::npos ? 0 : begin + 1;
  return messages.slice(begin, messages.find('\n', at)).trim();
}

/// Runs the assembler once.
static llvm::Expected<GPUCode> assembleOnce(StringRef ptx,
                                            GPUTargetAttr target) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return llvm::createStringError(
        "found no ptxas: set CUDA_HOME to CUDA's toolkit, or FP8_PTXAS to the "
        "assembler, or ask for ptx, which the driver compiles");
  auto directory = createTemporaryDirectory("fp8-kernel-");
  if (!directory)
    return directory.takeError();
  auto cleanUp = llvm::scope_exit(
      [&] { (void)llvm::sys::fs::remove_directories(*directory); });
  std::string input = *directory + "/kernel.ptx";
  std::string output = *directory + "/kernel.cubin";
  std::string log = *directory + "/kernel.txt";
  if (llvm::Error error = writeFile(input, ptx))
    return error;
  std::string arch = ("-arch=" + target.getChip()).str();
  SmallVector<StringRef> arguments = {ptxas, arch, "--fmad=false", "-v",
                                      input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log),
                                          StringRef(log)};
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                         redirects, 0, 0, &problem);
  auto messages = llvm::MemoryBuffer::getFile(log);
  StringRef text = messages ? (*messages)->getBuffer() : StringRef();
  if (status != 0)
    return llvm::createStringError(ptxas + " failed: " + problem + text);
  StringRef serialized = findSerialized(text);
  if (!serialized.empty() &&
      !serialized.contains("insufficient register resources"))
    return llvm::createStringError("expected wgmma that overlap but got from " +
                                   ptxas + ": " + serialized);
  auto bytes = llvm::MemoryBuffer::getFile(output);
  if (!bytes)
    return llvm::createStringError("cannot read what " + ptxas + " wrote");
  GPUCode code;
  code.bytes = (*bytes)->getBuffer().str();
  code.resources.registers = numberIn(text, "Used ([0-9]+) registers");
  code.resources.spilledBytes = numberIn(text, "([0-9]+) bytes spill stores");
  code.resources.stackBytes = numberIn(text, "([0-9]+) bytes stack frame");
  code.resources.sharedBytes = numberIn(text, "([0-9]+) bytes smem");
  code.resources.serialized = serialized.str();
  return code;
}

/// How bad it is for a kernel's time what the assembler made of it: wgmma that
/// do not overlap are worse than any spill.
static std::pair<bool, int64_t> costOf(const GPUResources &resources) {
  return {!resources.serialized.empty(), resources.spilledBytes};
}

/// Runs the assembler up to three times. It may spill a few registers to fit
/// another block on a multiprocessor, or because it unrolls loops; the further
/// runs tell it to plan for one block, or not to unroll. Returns the first
/// result without spills whose wgmma overlap, or the best one.
static llvm::Expected<GPUCode> assemble(StringRef ptx, GPUTargetAttr target) {
  llvm::Expected<GPUCode> best = assembleOnce(ptx, target);
  auto [before, after] = ptx.split(".reqntid");
  auto [threads, rest] = after.split('\n');
  if (rest.empty())
    return best;
  for (StringRef directive : {".minnctapersm 1", ".pragma \"nounroll\";"}) {
    if (!best || costOf(best->resources) == costOf(GPUResources()))
      break;
    llvm::Expected<GPUCode> other = assembleOnce(
        (before + ".reqntid" + threads + "\n" + directive + "\n" + rest).str(),
        target);
    if (!other)
      return other;
    if (costOf(other->resources) < costOf(best->resources))
      best = std::move(other);
  }
  return best;
}

llvm::Expected<GPUCode> fp8::compileGPUModule(gpu::GPUModuleOp module,
                                              GPUTargetAttr target,
                                              GPUImage image) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return llvm::createStringError("translation to LLVM IR failed");
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  llvmModule->setDataLayout((*machine)->createDataLayout());
  llvmModule->setTargetTriple((*machine)->getTargetTriple());
  for (llvm::Function &function : *llvmModule)
    function.addFnAttr(llvm::Attribute::NoUnwind);
  optimize(*llvmModule, **machine);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  if (image == GPUImage::Bitcode) {
    llvm::WriteBitcodeToFile(*llvmModule, os);
    return GPUCode{text.str().str(), {}};
  }
  llvm::legacy::PassManager codegen;
  if ((*machine)->addPassesToEmitFile(codegen, os, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("the target cannot emit assembly");
  codegen.run(*llvmModule);
  if (image == GPUImage::PTX)
    return GPUCode{text.str().str(), {}};
  return assemble(text, target);
}

double fp8::occupancyOf(const GPUInfo &info, int64_t threads, int64_t registers,
                        int64_t sharedBytes) {
  int64_t warps = llvm::divideCeil(threads, 32);
  // Registers are allocated to warps in units of 256, shared memory to blocks
  // in units of 128 bytes, plus 1 KiB for the system.
  int64_t registersOfWarp =
      llvm::alignTo(std::max<int64_t>(registers, 1) * 32, 256);
  int64_t blocks = std::min(
      {info.blocks, info.warps / warps,
       info.registers / registersOfWarp / warps,
       info.sharedPerProcessor /
           static_cast<int64_t>(llvm::alignTo(sharedBytes, 128) + 1024)});
  return static_cast<double>(blocks * warps) / info.warps;
}
