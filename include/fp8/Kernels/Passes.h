//===- Passes.h - From structured tensors to a planned schedule -*- C++ -*-===//

#ifndef FP8_KERNELS_PASSES_H
#define FP8_KERNELS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace mlir::fp8 {
struct MemoryReport;

#define GEN_PASS_DECL
#include "fp8/Kernels/Passes.h.inc"

/// Creates the pass that plans memory. It also stores its report in `sink`,
/// which must outlive the run of the pass.
std::unique_ptr<Pass> createPlanMemoryPass(PlanMemoryOptions options,
                                           MemoryReport *sink);

} // namespace mlir::fp8

#endif // FP8_KERNELS_PASSES_H
