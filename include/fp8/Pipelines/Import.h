//===- Import.h - Stage 1: StableHLO text to a clean step -------*- C++ -*-===//

#ifndef FP8_PIPELINES_IMPORT_H
#define FP8_PIPELINES_IMPORT_H

#include "fp8/Analysis/Signature.h"

#include <string>

namespace mlir {
class OpPassManager;
namespace fp8 {

/// What may be said about the import of one file.
struct ImportConfig {
  /// The function to keep; the only public one if empty.
  std::string entry;
  SignatureOptions signature;
};

/// The stage `fp8-import`: one public function `@main` of StableHLO and CHLO
/// ops without calls or sharding, its arguments and results marked.
void buildImportPipeline(OpPassManager &pm, const ImportConfig &config = {});

/// Makes `fp8-import` known to fp8-opt.
void registerImportPipeline();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_IMPORT_H
