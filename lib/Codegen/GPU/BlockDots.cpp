//===- BlockDots.cpp - Dots of a block ------------------------------------===//

#include "BlockLowering.h"
#include "DotEmitter.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The alignment of both operands of a dot in bytes.
static std::array<int64_t, 2> alignmentsOf(linalg::GenericOp op,
                                           ArrayRef<int64_t> known) {
  std::array<int64_t, 2> result = {1, 1};
  for (unsigned i = 0; i < 2; ++i)
    if (auto argument = dyn_cast<BlockArgument>(op.getDpsInputs()[i]))
      result[i] = known[argument.getArgNumber()];
  return result;
}

int64_t BlockLowering::dotScratchBytes(linalg::GenericOp op,
                                       ArrayRef<int64_t> tile) {
  SmallVector<int64_t> sizes = lowering::extentsIn(tile, op);
  // Strides of the result change no size.
  SmallVector<int64_t> shape;
  for (AffineExpr expr : op.getIndexingMapsArray().back().getResults())
    shape.push_back(sizes[cast<AffineDimExpr>(expr).getPosition()]);
  FailureOr<DotPlan> plan =
      makeDotPlan(op, sizes, contraction::denseStrides(shape),
                  alignmentsOf(op, alignments));
  return succeeded(plan) ? plan->getSharedBytes() : 0;
}

LogicalResult BlockLowering::emitDot(linalg::GenericOp op) {
  if (threads != kDotThreads)
    return op.emitOpError("expected a plan with ")
           << kDotThreads << " threads for a dot but got " << threads;
  ContractionTile contraction = contractionOf(op);
  SmallVector<int64_t> strides;
  FailureOr<DotPlan> plan = failure();
  if (succeeded(contraction::stridesOf(contraction.out.getType(), strides)))
    plan = makeDotPlan(op, contraction.sizes, strides,
                       alignmentsOf(op, alignments));
  if (failed(plan))
    return op.emitError(
        "expected a contraction of memrefs of static shape and strides");
  auto memory = cast<MemRefType>(sharedArgument.getType());
  contraction.scratch = memref::ViewOp::create(
      builder, loc,
      MemRefType::get({plan->getSharedBytes()}, memory.getElementType(),
                      MemRefLayoutAttrInterface(), memory.getMemorySpace()),
      sharedArgument, constantIndex(dotOffset), ValueRange{});
  return DotEmitter(builder, loc, *plan, thread).emit(contraction);
}
