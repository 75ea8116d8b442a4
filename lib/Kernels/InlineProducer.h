//===- InlineProducer.h - Inlining of a producer ----------------*- C++ -*-===//
//
// Upstream's `fuseElementwiseOps` clones both payloads. Fusing a chain of n ops
// one by one clones the first op n times: the cost is quadratic, and takes
// seconds for the rounds of a random number generator.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_INLINEPRODUCER_H
#define FP8_LIB_KERNELS_INLINEPRODUCER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Moves the payload of the elementwise op that computes `operand` into the op
/// that reads it. Fails and changes nothing unless
/// - that op is the only reader,
/// - the producer has one result and does not read its destination,
/// - each loop whose index the producer uses is a loop of the consumer, and
/// - the remaining operands determine the extent of each loop.
/// Expects `areElementwiseOpsFusable(operand)`.
LogicalResult inlineProducer(OpOperand &operand, RewriterBase &rewriter);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_INLINEPRODUCER_H
