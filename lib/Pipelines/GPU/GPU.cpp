//===- GPU.cpp - Codegen for NVIDIA GPUs ----------------------------------===//

#include "fp8/Pipelines/GPU.h"
#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Conversion/ExpandMath/ExpandMath.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fp8::buildGPUCodegenPipeline(OpPassManager &pm, StringRef chip) {
  if (!chip.empty()) {
    SetTargetOptions target;
    target.nvptx = chip.str();
    pm.addPass(createSetTarget(target));
  }
  pm.addPass(createUseCublasLt());
  // Scatters then compute the row of an update outside of the loop over its
  // columns.
  pm.addNestedPass<KernelOp>(createLoopInvariantCodeMotionPass());
  pm.addPass(createPlanBlocks());
  pm.addPass(createLowerBlocks());
  OpPassManager &kernel = pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  kernel.addPass(createLoopInvariantCodeMotionPass());
  kernel.addPass(createExpandMath());
  kernel.addPass(createGPUCasts());
  kernel.addPass(createFP8ExpandCasts());
  kernel.addPass(createCSEPass());
}

void fp8::buildNVVMPipeline(OpPassManager &pm) {
  OpPassManager &module = pm.nest<gpu::GPUModuleOp>();
  module.addPass(memref::createExpandStridedMetadataPass());
  module.addPass(createLowerAffinePass());
  module.addPass(createLoopInvariantCodeMotionPass());
  module.addPass(createSCFToControlFlowPass());
  // Run this before the conversion to NVVM, whose patterns would call
  // libdevice.
  module.addPass(createConvertMathToLLVMPass());
  module.addPass(createConvertToNVVM());
  // Writes wgmma as inline assembly.
  module.addPass(createConvertNVVMToLLVMPass());
  module.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createVerifyGPU());
}

void fp8::buildGPUSchedulePipeline(OpPassManager &pm, int64_t nodes) {
  pm.addPass(createTabulateOperands());
  PlanGraphOptions graph;
  graph.nodes = nodes;
  pm.addPass(createPlanGraph(graph));
  pm.addPass(createOrderGraph());
  pm.addPass(createVerifyGraph());
  pm.addPass(createLowerSchedule());
}

namespace {
struct GPUScheduleOptions : PassPipelineOptions<GPUScheduleOptions> {
  Option<int64_t> nodes{
      *this, "nodes",
      llvm::cl::desc("The most launches to which a counted loop is expanded"),
      llvm::cl::init(fp8::PlanGraphOptions().nodes)};
};
} // namespace

void fp8::registerGPUPipelines() {
  PassPipelineRegistration<>(
      "fp8-gpu-codegen", "Stage 5a for GPUs: kernels to the code of one block",
      [](OpPassManager &pm) { buildGPUCodegenPipeline(pm); });
  PassPipelineRegistration<>("fp8-to-nvvm",
                             "Stage 5b for GPUs: kernels to the NVVM dialect",
                             buildNVVMPipeline);
  PassPipelineRegistration<GPUScheduleOptions>(
      "fp8-gpu-schedule",
      "Stage 5c for GPUs: the schedule to calls that make a graph",
      [](OpPassManager &pm, const GPUScheduleOptions &options) {
        buildGPUSchedulePipeline(pm, options.nodes);
      });
}
