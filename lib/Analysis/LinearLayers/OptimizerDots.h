//===- OptimizerDots.h - The dots of an optimizer ---------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_OPTIMIZERDOTS_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_OPTIMIZERDOTS_H

#include "Origins.h"

#include "llvm/ADT/DenseSet.h"

namespace mlir::fp8 {

/// Returns the dots that read what follows from the state of an optimizer, such
/// as momenta that are made orthogonal: state that the forward pass does not
/// read. Other dots of an optimizer look like those of a backward pass.
llvm::DenseSet<Operation *>
findOptimizerDots(func::FuncOp function, const Origins &origins,
                  const llvm::DenseSet<Operation *> &forwardSlice);

} // namespace mlir::fp8

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_OPTIMIZERDOTS_H
