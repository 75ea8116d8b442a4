//===- GPUKernels.cpp - Objects that describe kernels of a GPU ------------===//

#include "GPUKernels.h"
#include "ObjectCode.h"
#include "Threads.h"

#include "fp8/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SHA256.h"
#include <atomic>

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A kernel as the runtime is told of it.
struct Kernel {
  std::string name; // in the image
  std::string image;
  int64_t threads = 0, sharedBytes = 0, operands = 0, scratchBytes = 0;

  /// A hash of all this.
  std::string symbol() const {
    llvm::SHA256 hash;
    hash.update(name);
    for (int64_t number : {threads, sharedBytes, operands, scratchBytes})
      hash.update(llvm::utostr(number) + ",");
    hash.update(image);
    return "fp8_gpu_kernel_" +
           llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 32);
  }
};

/// An object that defines `kernel` as an fp8_gpu_kernel.
llvm::Expected<std::string> describe(const Kernel &kernel,
                                     const std::string &symbol,
                                     const CodeTarget &host) {
  llvm::LLVMContext context;
  llvm::Module module(symbol, context);
  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  llvm::Type *i32 = llvm::Type::getInt32Ty(context);
  auto bytes = [&](StringRef text, bool isText) -> llvm::Constant * {
    auto *data = llvm::ConstantDataArray::getString(context, text, isText);
    auto *global = new llvm::GlobalVariable(
        module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
    global->setAlignment(llvm::Align(64));
    return global;
  };
  // PTX is a text, which ends with a zero for the driver.
  std::vector<llvm::Constant *> fields = {
      bytes(kernel.name, true),
      bytes(kernel.image, true),
      llvm::ConstantInt::get(i64, kernel.image.size()),
      llvm::ConstantInt::get(i32, kernel.threads),
      llvm::ConstantInt::get(i32, kernel.sharedBytes),
      llvm::ConstantInt::get(i32, kernel.operands),
      llvm::ConstantInt::get(i64, kernel.scratchBytes)};
  auto *type = llvm::StructType::get(
      context, {pointer, pointer, i64, i32, i32, i32, i64});
  new llvm::GlobalVariable(module, type, true,
                           llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantStruct::get(type, fields), symbol);
  return emitObject(module, host);
}

} // namespace

FailureOr<std::vector<ObjectCode>>
fp8::compileGPUKernels(ModuleOp module, const CodeTarget &host, GPUImage image,
                       unsigned threads) {
  FailureOr<GPUTargetAttr> target = gpuTargetOf(module);
  if (failed(target))
    return failure();
  registerGPUTranslations(*module.getContext());
  module.getContext()->loadAllAvailableDialects();
  SmallVector<gpu::GPUModuleOp> modules(module.getOps<gpu::GPUModuleOp>());
  std::vector<Kernel> kernels(modules.size());
  std::vector<std::string> errors(modules.size());
  std::atomic<size_t> next(0);
  auto work = [&] {
    for (size_t i; (i = next++) < modules.size();) {
      auto code = compileGPUModule(modules[i], *target, image);
      if (code)
        kernels[i].image = std::move(code->bytes);
      else
        errors[i] = llvm::toString(code.takeError());
    }
  };
  runOnThreads(threads, work);

  std::vector<ObjectCode> objects;
  llvm::StringSet<> known;
  for (size_t i = 0; i < modules.size(); ++i) {
    gpu::GPUModuleOp gpu = modules[i];
    Kernel &kernel = kernels[i];
    if (!errors[i].empty())
      return gpu.emitError("code generation failed: ") << errors[i];
    kernel.name = gpu.getName().str();
    auto launch =
        gpu->getAttrOfType<GPULaunchAttr>(FP8Dialect::kGPULaunchAttrName);
    auto function = gpu.lookupSymbol<LLVM::LLVMFuncOp>(kernel.name);
    if (!launch || !function)
      return gpu.emitError("expected a kernel of this name with '")
             << FP8Dialect::kGPULaunchAttrName << "'";
    kernel.threads = launch.getThreads();
    kernel.sharedBytes = launch.getDynamicShared();
    kernel.scratchBytes = launch.getScratch();
    // With scratch memory its address is one more parameter.
    kernel.operands =
        function.getNumArguments() - (kernel.scratchBytes > 0 ? 1 : 0);
    std::string symbol = kernel.symbol();
    std::string before = kernel.name + kGPUKernelSuffix.str();
    if (auto global = module.lookupSymbol<LLVM::GlobalOp>(before)) {
      if (failed(SymbolTable::replaceAllSymbolUses(
              global, StringAttr::get(module.getContext(), symbol), module)))
        return gpu.emitError("cannot rename the kernel");
      if (module.lookupSymbol(symbol))
        global.erase();
      else
        global.setName(symbol);
    }
    if (!known.insert(symbol).second)
      continue;
    auto object = describe(kernel, symbol, host);
    if (!object)
      return gpu.emitError("code generation failed: ")
             << llvm::toString(object.takeError());
    objects.push_back({symbol, std::move(*object)});
  }
  for (gpu::GPUModuleOp gpu : modules)
    gpu.erase();
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  return objects;
}
