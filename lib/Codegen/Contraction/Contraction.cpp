//===- Contraction.cpp - Packed vector loops for contractions -------------===//

#include "fp8/Codegen/Contraction.h"

#include "Emitter.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

int64_t fp8::contractionScratchBytes(linalg::GenericOp op,
                                     ArrayRef<int64_t> sizes,
                                     const TargetInfo &target,
                                     std::array<Type, 2> localInputs,
                                     const std::optional<OpenLoop> &open) {
  // The result may lie in the operation's own buffer, in a local one, or in a
  // buffer whose strides are not known here.
  Type outType = op.getDpsInits()[0].getType();
  SmallVector<int64_t> own, tileShape;
  for (AffineExpr expr : op.getIndexingMapsArray().back().getResults())
    tileShape.push_back(sizes[cast<AffineDimExpr>(expr).getPosition()]);
  SmallVector<int64_t> local = computeStrides(tileShape);
  SmallVector<int64_t> reversed(llvm::reverse(local));
  SmallVector<int64_t> spread = local;
  for (int64_t &stride : spread)
    stride = 2 * stride + 1;
  SmallVector<SmallVector<int64_t>> all = {local, reversed, spread};
  if (succeeded(stridesOf(outType, own)))
    all.push_back(own);
  int64_t bytes = 0;
  for (ArrayRef<int64_t> strides : all) {
    FailureOr<Plan> plan =
        makePlan(op, sizes, open, localInputs, strides, target);
    if (succeeded(plan))
      bytes = std::max(bytes, plan->getScratchBytes());
  }
  return llvm::alignTo(std::max<int64_t>(bytes, 64), 64);
}

LogicalResult fp8::emitContraction(OpBuilder &builder, Location loc,
                                   const ContractionTile &tile,
                                   const TargetInfo &target) {
  linalg::GenericOp op = tile.op;
  SmallVector<int64_t> strides;
  if (failed(stridesOf(tile.out.getType(), strides)))
    return op.emitError("expected a result of static shape and strides");
  std::array<Type, 2> localInputs;
  for (unsigned i = 0; i < 2; ++i)
    if (tile.localInputs[i])
      localInputs[i] = tile.localInputs[i].getType();
  FailureOr<Plan> plan =
      makePlan(op, tile.sizes, tile.open, localInputs, strides, target);
  if (failed(plan))
    return op.emitError(
        "expected a contraction of memrefs of static shape and strides, and "
        "blocks along an open loop that are a multiple of its steps");
  return Emitter(builder, loc, target, *plan).emit(tile);
}
