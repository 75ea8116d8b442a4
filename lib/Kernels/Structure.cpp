//===- Structure.cpp - What kernels are made of ---------------------------===//

#include "fp8/Kernels/Structure.h"

#include "fp8/Codegen/Contraction.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

bool fp8::isBufferView(Operation *op) {
  return isa<memref::ExpandShapeOp, memref::CollapseShapeOp, SubbufferOp>(op);
}

Value fp8::rootOf(Value buffer) {
  Operation *def = buffer.getDefiningOp();
  for (; def && isBufferView(def); def = buffer.getDefiningOp())
    buffer = def->getOperand(0);
  return buffer;
}

bool fp8::isTensorView(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool fp8::allParallel(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

bool fp8::isDot(linalg::GenericOp op) {
  // Empty dots have nothing to pack: they are plain reductions.
  if (op.getNumReductionLoops() == 0 ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return false;
  FailureOr<ContractionDims> dims = inferContractionDims(op);
  return succeeded(dims) && !dims->m.empty() && !dims->n.empty();
}

std::optional<unsigned> fp8::plainPosition(AffineMap map, unsigned dim) {
  std::optional<unsigned> position;
  for (auto [index, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(dim))
      continue;
    if (position || !isa<AffineDimExpr>(expr))
      return std::nullopt;
    position = index;
  }
  return position;
}

int64_t fp8::iterationVolume(linalg::LinalgOp op) {
  int64_t volume = 1;
  for (int64_t extent : op.getStaticLoopRanges())
    volume *= extent;
  return volume;
}

Operation *fp8::reductionCombiner(linalg::GenericOp op, unsigned index) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  Operation *combiner = yield.getOperand(index).getDefiningOp();
  BlockArgument running = op.getRegionOutputArgs()[index];
  if (!combiner || combiner->getNumOperands() != 2 ||
      combiner->getNumResults() != 1 || !running.hasOneUse() ||
      *running.user_begin() != combiner)
    return nullptr;
  return arith::getNeutralElement(combiner) ? combiner : nullptr;
}
