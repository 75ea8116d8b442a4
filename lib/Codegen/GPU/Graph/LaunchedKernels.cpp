//===- LaunchedKernels.cpp - The kernels of launches ----------------------===//

#include "LaunchedKernels.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::fp8;

GPULaunchAttr gpu_codegen::gpuLaunchOf(LaunchOp launch,
                                       const SymbolTable &symbols) {
  Operation *kernel = symbols.lookup(launch.getKernel());
  return kernel ? kernel->getAttrOfType<GPULaunchAttr>(
                      FP8Dialect::kGPULaunchAttrName)
                : GPULaunchAttr();
}

FailureOr<LLVM::LLVMFuncOp>
gpu_codegen::loweredKernelOf(LaunchOp launch, const SymbolTable &symbols) {
  auto kernel = symbols.lookup<gpu::GPUModuleOp>(launch.getKernel());
  auto func = kernel ? kernel.lookupSymbol<LLVM::LLVMFuncOp>(launch.getKernel())
                     : LLVM::LLVMFuncOp();
  if (!func)
    return launch.emitOpError("expected a kernel lowered by fp8-to-nvvm");
  return func;
}

LLVM::LLVMFuncOp gpu_codegen::copyKernel(LLVM::LLVMFuncOp kernel,
                                         StringAttr name, StringRef attribute,
                                         int64_t value, SymbolTable &symbols) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  auto copy = module.clone();
  copy.setName(name);
  copy->setAttr(attribute, Builder(name.getContext()).getI64IntegerAttr(value));
  symbols.insert(copy, module->getIterator());
  auto func = copy.lookupSymbol<LLVM::LLVMFuncOp>(kernel.getSymName());
  func.setName(name);
  return func;
}
