//===- Import.h - Stage 1: StableHLO text to a clean step -------*- C++ -*-===//

#ifndef FP8_PIPELINES_IMPORT_H
#define FP8_PIPELINES_IMPORT_H

#include "fp8/Analysis/Signature.h"

#include <string>

namespace mlir {
class OpPassManager;
namespace fp8 {

/// Options of the import of one file.
struct ImportConfig {
  /// The function to keep; the only public one if empty.
  std::string entry;
  SignatureOptions signature;
};

/// Builds the stage `fp8-import`. Its result is one public function `@main` of
/// StableHLO and CHLO ops without calls or sharding, with attributes on its
/// arguments and results.
void buildImportPipeline(OpPassManager &pm, const ImportConfig &config = {});

/// Registers the pipeline as `fp8-import`.
void registerImportPipeline();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_IMPORT_H
