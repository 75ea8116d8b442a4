//===- Passes.h - Passes of the fp8 dialect ---------------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_H
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_H

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace mlir {
namespace fp8 {

#define GEN_PASS_DECL
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

/// Like `createFP8ReportVerdicts`, but also puts the report into `sink`, which
/// must outlive the run of the pass.
std::unique_ptr<Pass> createReportVerdictsPass(FP8ReportVerdictsOptions options,
                                               VerdictReport *sink);

} // namespace fp8
} // namespace mlir

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_H
