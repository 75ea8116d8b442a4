//===- IrregularLoops.h - The loops of a nest without maps ------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_IRREGULARLOOPS_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_IRREGULARLOOPS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8::lowering {

/// Returns the number of iterations of a loop from 0 by 1; nullopt for others.
std::optional<int64_t> tripCountOf(scf::ForOp loop);

/// Returns the dimension of a buffer along which a loop runs, if one of an
/// access's indices is the loop's counter, perhaps clamped to where it is
/// anyway.
std::optional<unsigned> dimensionOf(scf::ForOp loop, ValueRange indices,
                                    MemRefType buffer);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_IRREGULARLOOPS_H
