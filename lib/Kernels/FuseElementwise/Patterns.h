//===- Patterns.h - Patterns of the fusion of elementwise ops ---*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FUSEELEMENTWISE_PATTERNS_H
#define FP8_LIB_KERNELS_FUSEELEMENTWISE_PATTERNS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {

/// Splits long reductions into partial ones, so that tasks share them.
void populateSplitReductionPatterns(RewritePatternSet &patterns);

/// Turns splat constants that ops and loops write into later into fills.
void populateInitialValuePatterns(RewritePatternSet &patterns);
/// Drops the initial values of stacks that loops fill slot by slot.
void populateOverwrittenInitPatterns(RewritePatternSet &patterns);
/// Turns splat constants that a function returns into fills, too: an
/// optimizer's zeros are then filled in, not stored as a constant.
void fillReturnedSplats(func::ReturnOp op);

/// Computes producers inside of their consumers where that pays.
void populateFuseProducerPatterns(RewritePatternSet &patterns);
/// Returns whether a reshape may move across the owner of `fused`: reshapes
/// only move across elementwise ops.
bool shouldMoveReshape(OpOperand *fused);

/// Turns inputs with one value everywhere into scalars of the payload.
void populateFoldUniformInputPatterns(RewritePatternSet &patterns);

/// Reads expanded tensors as they were before, and drops roundings that change
/// nothing.
void populateFoldExpandedPatterns(RewritePatternSet &patterns);
/// Writes results in their collapsed form.
void populateFoldCollapsedPatterns(RewritePatternSet &patterns);
/// Returns true if an op whose loops run over `ranges` may read `operand`
/// through `map`. A result of `map` that is a plain loop must run over the
/// whole dimension, because the dimension determines the loop's extent.
/// (Reading one row of a former single dimension at a constant index leaves a
/// loop that does not.)
bool canReadThrough(AffineMap map, Value operand, ArrayRef<int64_t> ranges);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSEELEMENTWISE_PATTERNS_H
