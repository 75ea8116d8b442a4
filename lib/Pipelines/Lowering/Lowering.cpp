//===- Lowering.cpp - Stages kernels and codegen --------------------------===//

#include "fp8/Pipelines/Lowering.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Conversion/ExpandMath/ExpandMath.h"
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h"
#include "fp8/Kernels/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns a canonicalizer that does not simplify regions. Until the last steps
/// of codegen regions are single blocks, and looking for control flow takes as
/// long as the rest. Nor does it make selections of whole tensors, which are no
/// work of any kernel.
static std::unique_ptr<Pass> createBlockCanonicalizer() {
  const std::string selections =
      "(anonymous namespace)::ConvertTrivialIfToSelect";
  return createCanonicalizerPass(
      GreedyRewriteConfig().setRegionSimplificationLevel(
          GreedySimplifyRegionLevel::Disabled),
      /*disabledPatterns=*/{selections});
}

void fp8::buildKernelsPipeline(OpPassManager &pm, PayloadLayouts layouts,
                               MemoryReport *sink) {
  buildKernelsPipeline(pm, layouts, PlanMemoryOptions(), sink);
}

void fp8::buildKernelsPipeline(OpPassManager &pm, PayloadLayouts layouts,
                               const PlanMemoryOptions &plan,
                               MemoryReport *sink) {
  if (layouts == PayloadLayouts::AlongK)
    pm.addNestedPass<func::FuncOp>(createSplitAttention());
  else
    pm.addNestedPass<func::FuncOp>(createReadWindows());
  pm.addNestedPass<func::FuncOp>(createRecomputeElementwise());
  pm.addNestedPass<func::FuncOp>(createFuseElementwise());
  pm.addPass(createBlockCanonicalizer());
  pm.addPass(createCSEPass());
  pm.addPass(createDealState());
  if (layouts == PayloadLayouts::AlongK)
    pm.addNestedPass<func::FuncOp>(createAssignLayouts());
  FormKernelsOptions form;
  form.forBlocks = layouts == PayloadLayouts::AlongK;
  pm.addPass(createFormKernels(form));
  pm.addPass(createDeduplicateKernels());
  pm.addPass(createBufferizeKernels());
  pm.addPass(createElideCopies());
  pm.addPass(createSliceCollectives());
  pm.addPass(createOverlapCollectives());
  pm.addPass(createBatchLaunches());
  pm.addPass(createPlanMemoryPass(plan, sink));
  pm.addPass(createVerifyScheduled());
}

void fp8::buildPlanPipeline(OpPassManager &pm, StringRef cpu,
                            unsigned threads) {
  SetTargetOptions target;
  target.cpu = cpu.str();
  pm.addPass(createSetTarget(target));
  pm.addNestedPass<KernelOp>(createDivideScatters());
  pm.addNestedPass<KernelOp>(createTurnScores());
  PlanTilesOptions tiles;
  tiles.threads = threads;
  pm.addPass(createPlanTiles(tiles));
}

void fp8::buildCodegenPipeline(OpPassManager &pm, StringRef cpu,
                               unsigned threads) {
  buildPlanPipeline(pm, cpu, threads);
  pm.addNestedPass<KernelOp>(createRelaxMaxima());
  pm.addPass(createLowerKernels());
  OpPassManager &kernel = pm.nest<func::FuncOp>();
  kernel.addPass(createBlockCanonicalizer());
  kernel.addPass(createCSEPass());
  kernel.addPass(createIntegerMaxima());
  kernel.addPass(createExpandMath());
  kernel.addPass(createFP8ExpandCasts());
  kernel.addPass(createCSEPass());
}

/// Lowers kernels and lowered schedules to the LLVM dialect.
static void lowerToLLVM(OpPassManager &pm) {
  OpPassManager &kernel = pm.nest<func::FuncOp>();
  kernel.addPass(memref::createExpandStridedMetadataPass());
  kernel.addPass(createLowerAffinePass());
  kernel.addPass(createLoopInvariantCodeMotionPass());
  kernel.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.x86Vector = true;
  vectorOptions.vectorTransposeLowering =
      vector::VectorTransposeLowering::Shuffle16x16;
  kernel.addPass(createConvertVectorToLLVMPass(vectorOptions));
  kernel.addPass(createConvertMathToLLVMPass());
  kernel.addPass(createArithToLLVMConversionPass());
  kernel.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions funcOptions;
  funcOptions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(funcOptions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createIntegerMemory());
  pm.addPass(createVerifyLowered());
}

void fp8::buildLLVMPipeline(OpPassManager &pm) {
  pm.addPass(createLowerSchedule());
  lowerToLLVM(pm);
}

void fp8::buildHostPipeline(OpPassManager &pm, StringRef cpu) {
  SetTargetOptions target;
  target.cpu = cpu.str();
  pm.addPass(createSetTarget(target));
  lowerToLLVM(pm);
}

namespace {
struct KernelsOptions : PassPipelineOptions<KernelsOptions> {
  Option<PayloadLayouts> layouts{
      *this, "layouts",
      llvm::cl::desc("How FP8 operands of dots lie in memory"),
      llvm::cl::init(PayloadLayouts::AsTensors),
      llvm::cl::values(
          clEnumValN(PayloadLayouts::AsTensors, "as-tensors",
                     "in the order of their tensors, as a CPU reads them"),
          clEnumValN(PayloadLayouts::AlongK, "along-k",
                     "contiguous along k, as a GPU reads them; kernels are "
                     "those of a GPU's blocks, too"))};
};

struct CodegenOptions : PassPipelineOptions<CodegenOptions> {
  Option<unsigned> threads{
      *this, "threads",
      llvm::cl::desc("The number of threads that will run the tasks"),
      llvm::cl::init(1)};
};

struct HostOptions : PassPipelineOptions<HostOptions> {
  Option<std::string> cpu{*this, "cpu",
                          llvm::cl::desc("The CPU that runs the schedule"),
                          llvm::cl::init("native")};
};
} // namespace

void fp8::registerLoweringPipelines() {
  PassPipelineRegistration<KernelsOptions>(
      "fp8-kernels",
      "Stage 4: structured tensors to a planned schedule of kernels",
      [](OpPassManager &pm, const KernelsOptions &options) {
        buildKernelsPipeline(pm, options.layouts);
      });
  PassPipelineRegistration<CodegenOptions>(
      "fp8-codegen", "Stage 5a: kernels to vector loops of one task",
      [](OpPassManager &pm, const CodegenOptions &options) {
        buildCodegenPipeline(pm, /*cpu=*/"", options.threads);
      });
  PassPipelineRegistration<>(
      "fp8-to-llvm", "Stage 5b: kernels and schedule to the LLVM dialect",
      buildLLVMPipeline);
  PassPipelineRegistration<HostOptions>(
      "fp8-host-to-llvm",
      "Stage 5d for GPUs: the lowered schedule to the host's LLVM dialect",
      [](OpPassManager &pm, const HostOptions &options) {
        buildHostPipeline(pm, options.cpu);
      });
}
