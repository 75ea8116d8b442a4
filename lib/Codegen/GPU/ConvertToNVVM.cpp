//===- ConvertToNVVM.cpp - GPU kernels to the NVVM dialect ----------------===//

#include "Dots/DotPlan.h"

#include "fp8/Codegen/GPU/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTTONVVM
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

class ConvertToNVVM : public fp8::impl::ConvertToNVVMBase<ConvertToNVVM> {
public:
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    configureGpuToNVVMTypeConverter(converter);
    RewritePatternSet patterns(context);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    vector::populateVectorStepLoweringPatterns(patterns);
    vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addIllegalDialect<arith::ArithDialect, cf::ControlFlowDialect,
                             gpu::GPUDialect, memref::MemRefDialect,
                             nvgpu::NVGPUDialect, vector::VectorDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();
    // A block has exactly the number of threads that the kernel was made for.
    for (auto func : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (Attribute threads =
              func->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName()))
        func->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), threads);
    markTensorMaps();
    declareDynamicMemory();
  }

private:
  /// The launch sets the size of dynamic shared memory. To LLVM a definition of
  /// no bytes, as upstream makes it, is smaller than any access, so that no two
  /// accesses are to the same bytes. Upstream's alignment of 16 bytes is too
  /// small for the swizzles of wgmma.
  void declareDynamicMemory() {
    for (auto global : getOperation().getOps<LLVM::GlobalOp>()) {
      auto array = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
      if (!array || array.getNumElements() != 0)
        continue;
      global.setLinkage(LLVM::Linkage::External);
      global.setAlignment(gpu_codegen::kWgmmaAlignment);
    }
  }

  /// Tensor maps, the last parameters of a kernel, are passed by value, in the
  /// memory of parameters, where TMA reads them. (The conversion of gpu.func
  /// drops these attributes.)
  void markTensorMaps() {
    auto launch = getOperation()->getAttrOfType<GPULaunchAttr>(
        FP8Dialect::kGPULaunchAttrName);
    if (!launch || launch.getMaps().empty())
      return;
    Builder builder(&getContext());
    auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(),
                                          gpu_codegen::kTensorMapBytes);
    for (auto func : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      unsigned end = func.getNumArguments();
      for (unsigned i = end - launch.getMaps().size(); i < end; ++i) {
        func.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(bytes));
        func.setArgAttr(
            i, LLVM::LLVMDialect::getAlignAttrName(),
            builder.getI64IntegerAttr(gpu_codegen::kTensorMapAlignment));
        func.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
      }
    }
  }
};

} // namespace
