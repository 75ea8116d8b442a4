//===- Reports.h - Texts about a compiled step ------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_REPORTS_H
#define FP8_LIB_COMPILER_REPORTS_H

#include "fp8/Compiler/Compiler.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"
#include "fp8/Kernels/CostReport.h"
#include "fp8/Kernels/MemoryReport.h"

namespace mlir::fp8 {

/// What the stages report about a function.
struct Reports {
  VerdictReport verdicts;
  MemoryReport memory;
  CostReport cost;
};

/// Adds the texts about the imported step: its signature.
void addSignature(Executable &executable, func::FuncOp step,
                  const Signature &signature);

/// Adds the texts about the compiled step.
void addReports(Executable &executable, const Reports &reports,
                const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_REPORTS_H
