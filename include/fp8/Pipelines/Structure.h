//===- Structure.h - Stage 3: structured tensors ----------------*- C++ -*-===//

#ifndef FP8_PIPELINES_STRUCTURE_H
#define FP8_PIPELINES_STRUCTURE_H

namespace mlir {
class OpPassManager;

namespace fp8 {

/// Lowers fp8, stablehlo and chlo ops to linalg on tensors, and ends with the
/// contract check.
void buildStructurePipeline(OpPassManager &pm);

/// Registers the pipeline as `fp8-structure`.
void registerStructurePipeline();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_STRUCTURE_H
