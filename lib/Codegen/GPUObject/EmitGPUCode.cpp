//===- EmitGPUCode.cpp - Writes the code of GPU kernels to files ----------===//

#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Codegen/GPUObject/Object.h"
#include "fp8/Support/OutputFile.h"

#include "mlir/IR/Threading.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

#include <mutex>

namespace mlir::fp8 {
#define GEN_PASS_DEF_EMITGPUCODE
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

class EmitGPUCode : public fp8::impl::EmitGPUCodeBase<EmitGPUCode> {
public:
  using EmitGPUCodeBase::EmitGPUCodeBase;

  void runOnOperation() override {
    FailureOr<GPUTargetAttr> target = gpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    llvm::Expected<GPUImage> kind = parseGPUImage(image);
    if (!kind)
      return fail(llvm::toString(kind.takeError()));
    if (directory.empty())
      return fail("expected a directory to write to: directory=DIR");
    if (std::error_code error = llvm::sys::fs::create_directories(directory))
      return fail("cannot make '" + directory + "': " + error.message());
    registerGPUTranslations(getContext());
    SmallVector<gpu::GPUModuleOp> modules(
        getOperation().getOps<gpu::GPUModuleOp>());
    SmallVector<GPUResources> resources(modules.size());
    LogicalResult result = failableParallelForEachN(
        &getContext(), 0, modules.size(), [&](size_t i) {
          return emit(modules[i], *target, *kind, resources[i]);
        });
    if (failed(result) ||
        (*kind == GPUImage::Cubin &&
         failed(writeTable(modules, resources, GPUInfo::of(*target)))))
      signalPassFailure();
  }

private:
  void fail(const Twine &message) {
    getOperation().emitError() << message;
    signalPassFailure();
  }

  LogicalResult write(StringRef name, StringRef bytes) {
    llvm::SmallString<128> path(directory);
    llvm::sys::path::append(path, name);
    if (llvm::Error error = writeFile(path, bytes))
      return getOperation().emitError() << llvm::toString(std::move(error));
    return success();
  }

  LogicalResult emit(gpu::GPUModuleOp module, GPUTargetAttr target,
                     GPUImage kind, GPUResources &resources) {
    llvm::Expected<GPUCode> code = compileGPUModule(module, target, kind);
    if (!code)
      return module.emitError("code generation failed: ")
             << llvm::toString(code.takeError());
    resources = code->resources;
    if (!resources.serialized.empty())
      return module.emitError("expected wgmma that overlap but got from CUDA's "
                              "assembler: ")
             << resources.serialized;
    StringRef suffix = kind == GPUImage::Bitcode ? "bc" : nameOf(kind);
    return write((module.getName() + "." + suffix).str(), code->bytes);
  }

  /// Writes one line per kernel, in the order of the modules.
  LogicalResult writeTable(ArrayRef<gpu::GPUModuleOp> modules,
                           ArrayRef<GPUResources> resources,
                           const GPUInfo &info) {
    std::string text = "kernel,blocks,threads,registers,spilled,stack,shared,"
                       "scratch,occupancy\n";
    llvm::raw_string_ostream os(text);
    for (auto [i, own] : llvm::enumerate(resources)) {
      gpu::GPUModuleOp module = modules[i];
      auto launch =
          module->getAttrOfType<GPULaunchAttr>(FP8Dialect::kGPULaunchAttrName);
      if (!launch)
        continue;
      int64_t shared = launch.getShared() + launch.getDynamicShared();
      os << module.getName() << ',' << launch.getBlocks() << ','
         << launch.getThreads() << ',' << own.registers << ','
         << own.spilledBytes << ',' << own.stackBytes << ',' << shared << ','
         << launch.getScratch() << ','
         << llvm::format("%.2f", occupancyOf(info, launch.getThreads(),
                                             own.registers, shared))
         << '\n';
    }
    return write("resources.csv", text);
  }
};

} // namespace
