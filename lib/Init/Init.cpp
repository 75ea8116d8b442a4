//===- Init.cpp - Registration of everything ------------------------------===//
//
// The one translation unit that includes all of upstream's registration.
//
//===----------------------------------------------------------------------===//

#include "fp8/Init.h"

#include "fp8/Conversion/ExpandMath/ExpandMath.h"
#include "fp8/Conversion/FP8ToLinalg/FP8ToLinalg.h"
#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Sdy.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/GPU.h"
#include "fp8/Pipelines/Import.h"
#include "fp8/Pipelines/Lowering.h"
#include "fp8/Pipelines/ReportCost.h"
#include "fp8/Pipelines/ReportMemory.h"
#include "fp8/Pipelines/Structure.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Pipelines/Quantize.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

// Nothing but this file registers passes, so that no other one has to compile
// the code that does. The code that TableGen makes registers them as ours.
namespace mlir {
using fp8::registerOwnPass;
} // namespace mlir
#define registerPass registerOwnPass

namespace mlir::stablehlo {
#define GEN_PASS_REGISTRATION
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace mlir::stablehlo

namespace mlir::fp8 {
#define GEN_PASS_REGISTRATION
#include "fp8/Conversion/ExpandMath/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Conversion/FP8ToLinalg/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Codegen/GPU/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

#undef registerPass

using namespace mlir;

void fp8::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  // <dialects>
  registry.insert<stablehlo::StablehloDialect, chlo::ChloDialect,
                  sdy::SdyDialect>();
  registry.insert<fp8::FP8Dialect>();
}

void fp8::registerAllPasses() {
  mlir::registerAllPasses();
  // <passes>
  registerFP8TransformsPasses();
  registerQuantizePipeline();
  stablehlo::registerStableHLOPasses();
  registerImportPipeline();
  registerFP8KernelsPasses();
  registerFP8CodegenPasses();
  registerLoweringPipelines();
  registerFP8GPUPasses();
  registerGPUPipelines();
  registerFP8ToLinalgPasses();
  registerFP8ExpandCastsPasses();
  registerExpandMathPasses();
  registerStableHLOToLinalgPasses();
  registerStructurePipeline();
  registerReportCostPipeline();
  registerReportMemoryPipeline();
}
