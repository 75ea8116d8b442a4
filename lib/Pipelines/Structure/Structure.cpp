//===- Structure.cpp - Stage 3: structured tensors ------------------------===//

#include "fp8/Pipelines/Structure.h"

#include "fp8/Conversion/FP8ToLinalg/FP8ToLinalg.h"
#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

void fp8::buildStructurePipeline(OpPassManager &pm) {
  // Dots must still be dots when transposes fold into them.
  pm.addPass(createFoldTransposes());
  pm.addPass(createSplitPrefixSums());
  pm.addPass(createSplitWindows());
  // Counters must still be StableHLO when slices at them become views.
  pm.addPass(createConvertStableHLOToSCF());
  pm.addPass(createConvertFP8ToLinalg());
  pm.addPass(createConvertStableHLOToLinalg());
  pm.addPass(createCanonicalizeStructured());
  pm.addPass(createCSEPass());
  pm.addPass(createDropBarriers());
  pm.addPass(createWidenElements());
  pm.addPass(createVerifyStructured());
}

void fp8::registerStructurePipeline() {
  PassPipelineRegistration<>(
      "fp8-structure", "Stage 3: everything is linalg on tensors",
      [](OpPassManager &pm) { buildStructurePipeline(pm); });
}
