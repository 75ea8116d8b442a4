//===- Init.h - Registration of everything ----------------------*- C++ -*-===//

#ifndef FP8_INIT_H
#define FP8_INIT_H

namespace mlir {
class DialectRegistry;
namespace fp8 {

/// Registers the fp8, stablehlo, chlo and sdy dialects and all upstream ones.
void registerAllDialects(DialectRegistry &registry);

/// Registers all fp8 and upstream passes and the stage pipelines.
void registerAllPasses();

} // namespace fp8
} // namespace mlir

#endif // FP8_INIT_H
