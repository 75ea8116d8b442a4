//===- FP8AttentionOps.cpp - Attention ops --------------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

/// Checks that the body takes the inputs and yields the results.
template <typename OpT> static LogicalResult verifyBody(OpT op) {
  Block &body = op.getBody().front();
  if (body.getArgumentTypes() != op.getInputs().getTypes())
    return op.emitOpError("expected a body with arguments (")
           << op.getInputs().getTypes() << ") but got ("
           << body.getArgumentTypes() << ")";
  auto end = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!end || end.getOperandTypes() != op.getOutputs().getTypes())
    return op.emitOpError("expected the body to end with fp8.yield of (")
           << op.getOutputs().getTypes() << ")";
  return success();
}

LogicalResult AttentionOp::verifyRegions() { return verifyBody(*this); }

LogicalResult AttentionBackwardOp::verifyRegions() { return verifyBody(*this); }
