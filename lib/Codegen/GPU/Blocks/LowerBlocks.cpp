//===- LowerBlocks.cpp - Lowering of kernels to GPU blocks ----------------===//

#include "../../Lowering/LowerKernels/Booleans.h"
#include "../Attention/FastSoftmax.h"
#include "../Attention/KeyCounts.h"
#include "../Attention/Reciprocals.h"
#include "Alignment.h"
#include "BlockLowering.h"

#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERBLOCKS
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The most shared memory that a kernel can allocate statically.
static constexpr int64_t kStaticShared = 48 << 10;

/// Returns whether shared memory is part of the kernel; a launch gives it more.
static bool isStaticShared(BlockArgument shared) {
  return shared &&
         cast<MemRefType>(shared.getType()).getNumElements() <= kStaticShared;
}

/// Creates a kernel without a body that has the arguments of `func`, except for
/// its shared memory.
static gpu::GPUFuncOp declareKernel(OpBuilder &builder, func::FuncOp func,
                                    BlockArgument shared, int64_t threads,
                                    int64_t alignment) {
  SmallVector<Type> types(func.getArgumentTypes()), attributions;
  if (shared)
    types.pop_back();
  if (isStaticShared(shared))
    attributions.push_back(shared.getType());
  auto kernel =
      gpu::GPUFuncOp::create(builder, func.getLoc(), func.getSymName(),
                             builder.getFunctionType(types, {}), attributions);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  builder.getUnitAttr());
  kernel.setKnownBlockSizeAttr(
      builder.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  if (isStaticShared(shared))
    kernel.setWorkgroupAttributionAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                                       builder.getI64IntegerAttr(alignment));
  // The size of each buffer; the emulator checks accesses against it.
  for (auto [index, type] : llvm::enumerate(types)) {
    auto buffer = dyn_cast<MemRefType>(type);
    if (!buffer) // a tensor map
      continue;
    if (int64_t bytes = byteSize(buffer))
      kernel.setArgAttr(index, LLVM::LLVMDialect::getDereferenceableAttrName(),
                        builder.getI64IntegerAttr(bytes));
  }
  return kernel;
}

/// Returns the shared memory of a kernel, of which `shared` is the placeholder.
static Value getSharedMemory(OpBuilder &builder, gpu::GPUFuncOp kernel,
                             BlockArgument shared) {
  if (isStaticShared(shared))
    return kernel.getWorkgroupAttributions()[0];
  auto type = cast<MemRefType>(shared.getType());
  auto dynamic =
      MemRefType::get({ShapedType::kDynamic}, type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  return gpu::DynamicSharedMemoryOp::create(builder, kernel.getLoc(), dynamic);
}

/// Moves the function into a kernel of a GPU module of its own. The argument
/// `shared`, if given, becomes shared memory.
static gpu::GPUFuncOp toGPU(func::FuncOp func, BlockArgument shared,
                            int64_t threads, int64_t alignment) {
  OpBuilder builder(func);
  Location loc = func.getLoc();
  auto module = gpu::GPUModuleOp::create(builder, loc, func.getSymName());
  builder.setInsertionPointToStart(module.getBody());
  gpu::GPUFuncOp kernel =
      declareKernel(builder, func, shared, threads, alignment);
  Block &body = func.getBody().front(), &entry = kernel.getBody().front();
  builder.setInsertionPointToStart(&entry);
  for (BlockArgument argument : body.getArguments())
    argument.replaceAllUsesWith(
        argument == shared ? getSharedMemory(builder, kernel, shared)
                           : entry.getArgument(argument.getArgNumber()));
  entry.getOperations().splice(entry.end(), body.getOperations());
  Operation *end = entry.getTerminator();
  builder.setInsertionPoint(end);
  gpu::ReturnOp::create(builder, loc);
  end->erase();
  func.erase();
  return kernel;
}

namespace {

class LowerBlocks : public fp8::impl::LowerBlocksBase<LowerBlocks> {
public:
  using LowerBlocksBase::LowerBlocksBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<GPUTargetAttr> target = gpuTargetOf(module);
    if (failed(target))
      return signalPassFailure();
    alignments.emplace(module);
    for (auto schedule : module.getOps<ScheduleOp>())
      lowering::storeBooleansAsBytes(schedule);
    lowering::storeBooleansAsBytes(module);
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(&getContext()));
    for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
      // A kernel that the library computes has no code here.
      if (isa_and_nonnull<CublasLtPlanAttr>(kernel.getPlanAttr()))
        kernel.getBody().getBlocks().clear();
      else if (failed(lower(kernel, GPUInfo::of(*target))))
        return signalPassFailure();
    }
  }

private:
  LogicalResult lower(KernelOp kernel, const GPUInfo &info) {
    auto plan = dyn_cast_or_null<GPUPlanAttr>(kernel.getPlanAttr());
    if (kernel.isExternal() || !plan)
      return kernel.emitOpError(
          "expected a body and a plan: run --fp8-plan-blocks first");
    if (failed(verifyBody(kernel)))
      return failure();
    OpBuilder builder(kernel);
    SmallVector<int64_t> domain(kernel.getDomain());
    SmallVector<int64_t> aligned = alignments->of(kernel);
    std::string name = kernel.getSymName().str();
    bool inOrder = kernel.getBlock().has_value();
    KeyCounts keys = KeyCounts::of(kernel);
    allowFastSoftmax(kernel);
    func::FuncOp func = moveToFunction(builder, kernel, name);
    kernel.erase();
    BlockLowering lowering(func, domain, plan, inOrder, info, aligned);
    if (!keys.counts.empty())
      lowering.setKeyCounts(*keys.band, keys.counts);
    if (processors > 0)
      lowering.setProcessors(processors);
    if (failed(lowering.run()))
      return failure();
    expandFastSoftmax(func);
    expandReciprocals(func);
    int64_t shared = lowering.getSharedBytes();
    bool isStatic = shared <= kStaticShared;
    gpu::GPUFuncOp gpuFunc =
        toGPU(func, lowering.getSharedArgument(), lowering.getThreads(),
              lowering.getSharedAlignment());
    auto launch = GPULaunchAttr::get(
        &getContext(), lowering.getBlocks(), lowering.getThreads(),
        isStatic ? shared : 0, isStatic ? 0 : shared,
        lowering.getScratchBytes(), lowering.getTensorMaps());
    // The module needs the attribute, too, because launches refer to it.
    for (Operation *op : {gpuFunc.getOperation(), gpuFunc->getParentOp()})
      op->setAttr(FP8Dialect::kGPULaunchAttrName, launch);
    return success();
  }

  std::optional<LaunchAlignments> alignments;
};

} // namespace
