//===- InlineProducer.h - A producer moves into its only reader -*- C++ -*-===//
//
// Upstream's `fuseElementwiseOps` clones both payloads. A chain of n ops that
// fuse one by one would so be cloned n times: quadratic, and seconds for the
// rounds of a random generator.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_INLINEPRODUCER_H
#define FP8_LIB_KERNELS_INLINEPRODUCER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Moves the payload of the elementwise op that makes `operand` into the op
/// that reads it. Fails, with nothing changed, unless that reader is the only
/// one, the producer has one result and does not read what its destination
/// holds, its loops are loops of the consumer if it asks for their indices, and
/// the operands that are left tell how far each loop runs.
/// Expects `areElementwiseOpsFusable(operand)`.
LogicalResult inlineProducer(OpOperand &operand, RewriterBase &rewriter);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_INLINEPRODUCER_H
