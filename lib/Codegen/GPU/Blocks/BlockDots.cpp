//===- BlockDots.cpp - Dots of a block ------------------------------------===//

#include "../Dots/DotEmitter.h"
#include "BlockLowering.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Returns the alignment of both operands of a dot in bytes.
std::array<int64_t, 2> BlockLowering::alignmentsOf(linalg::GenericOp op) const {
  std::array<int64_t, 2> result = {1, 1};
  for (unsigned i = 0; i < 2; ++i) {
    Value input = op.getDpsInputs()[i];
    if (auto argument = dyn_cast<BlockArgument>(input))
      result[i] = alignments[argument.getArgNumber()];
    else if (locals.contains(input))
      result[i] = kLocalAlignment;
  }
  return result;
}

SmallVector<int64_t> gpu_codegen::denseResult(linalg::GenericOp dot,
                                              ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape;
  for (AffineExpr expr : dot.getIndexingMapsArray().back().getResults())
    shape.push_back(sizes[cast<AffineDimExpr>(expr).getPosition()]);
  return computeStrides(shape);
}

FailureOr<DotPlan> BlockLowering::planDot(linalg::GenericOp op,
                                          ArrayRef<int64_t> sizes,
                                          ArrayRef<int64_t> outStrides,
                                          std::array<Type, 2> localInputs) {
  return makeDotPlan(op, sizes, lowering::extentsIn(tile, op), outStrides,
                     alignmentsOf(op), localInputs, dots);
}

FailureOr<DotPlan> BlockLowering::planWithTma(KernelOp kernel,
                                              linalg::GenericOp dot,
                                              GPUPlanAttr plan,
                                              ArrayRef<int64_t> alignments) {
  SmallVector<int64_t> sizes = lowering::extentsIn(plan.getTile(), dot);
  std::array<Type, 2> localInputs;
  std::array<int64_t, 2> aligned = {1, 1};
  for (unsigned i = 0; i < 2; ++i) {
    Value input = dot.getDpsInputs()[i];
    if (auto argument = dyn_cast<BlockArgument>(input))
      aligned[i] = alignments[argument.getArgNumber()];
    else
      localInputs[i] = input.getType();
  }
  DotOptions options = {plan.getThreads(), plan.getStages(), plan.getWgmma(),
                        /*tma=*/true};
  return makeDotPlan(dot, sizes, sizes, denseResult(dot, sizes), aligned,
                     localInputs, options);
}

int64_t BlockLowering::dotScratchBytes(linalg::GenericOp op,
                                       ArrayRef<int64_t> tile) {
  SmallVector<int64_t> sizes = extentsOf(op, tile);
  std::array<Type, 2> localInputs = localInputTypes(op, tile);
  FailureOr<DotPlan> plan =
      planDot(op, sizes, denseResult(op, sizes), localInputs);
  if (failed(plan) || plan->inPlace)
    return 0;
  if (plan->tma) {
    maps = {plan->boxes[0].map, plan->boxes[1].map};
    ringStages = plan->stages;
    sumRegisters = plan->sumsPerThread() * (plan->hasParts() ? 2 : 1);
  }
  if (plan->usesWgmma())
    dotAlignment = kWgmmaAlignment;
  return plan->getSharedBytes();
}

/// Returns the current tile of a dot, without scratch, and its plan.
FailureOr<std::pair<ContractionTile, DotPlan>>
BlockLowering::tileOfDot(linalg::GenericOp op) {
  ContractionTile contraction = contractionOf(op);
  contraction.accumulate = sumsBlocks(op);
  std::array<Type, 2> localInputs;
  for (unsigned i = 0; i < 2; ++i) {
    auto input = locals.find(op.getDpsInputs()[i]);
    if (input == locals.end())
      continue;
    if (!readsOwnTile(op, i))
      return op.emitOpError("expected to read what its block computes");
    contraction.localInputs[i] = input->second.memref;
    localInputs[i] = input->second.memref.getType();
  }
  SmallVector<int64_t> strides;
  FailureOr<DotPlan> plan = failure();
  if (succeeded(contraction::stridesOf(contraction.out.getType(), strides)))
    plan = planDot(op, contraction.sizes, strides, localInputs);
  if (failed(plan))
    return op.emitError(
        "expected a contraction of memrefs of static shape and strides");
  if (!plan->usesWgmma() && threads != kDotThreads)
    return op.emitOpError("expected a plan with ")
           << kDotThreads << " threads for a dot but got " << threads;
  if ((dots.tma && !plan->tma) || (dots.inPlace && !plan->inPlace))
    return op.emitOpError("expected operands that TMA can bring, but ")
           << plan->whyNotTma;
  auto memory = cast<MemRefType>(sharedArgument.getType());
  contraction.scratch = memref::ViewOp::create(
      builder, loc,
      MemRefType::get({plan->getSharedBytes()}, memory.getElementType(),
                      MemRefLayoutAttrInterface(), memory.getMemorySpace()),
      sharedArgument, constantIndex(dotOffset), ValueRange{});
  return std::pair(contraction, *plan);
}

LogicalResult BlockLowering::emitDot(linalg::GenericOp op) {
  auto tile = tileOfDot(op);
  if (failed(tile))
    return failure();
  // Sums that are kept leave no registers for what all blocks have in common.
  Value own = kept.empty() ? thread : knownFromHere(builder, loc, thread);
  DotEmitter emitter(builder, loc, tile->second, own,
                     dots.tma ? ring.get() : nullptr);
  if (dots.inPlace)
    emitter.setPlaces(placesOf(op));
  if (heldDots.contains(op)) {
    heldSums[op].clear();
    emitter.setHeld(heldSums[op]);
  } else if (const Nest *nest = epilogues.lookup(op)) {
    emitter.setEpilogue(
        [&](int64_t number, Value row, Value column, ArrayRef<Value> sums) {
          emitEpilogue(op, number, row, column, sums);
        },
        /*exchanges=*/dots.tma && countAccesses(*nest, op) > 1);
  }
  auto rows = rowValues.find(op);
  if (rows == rowValues.end())
    return emitter.emit(tile->first, kept.lookup(op));
  RowValues &values = rows->second;
  values.values.clear();
  for (Value variable : values.variables)
    values.values.push_back(memref::LoadOp::create(builder, loc, variable));
  LogicalResult result = emitter.emit(tile->first, kept.lookup(op));
  for (auto [value, variable] : llvm::zip(values.values, values.variables))
    memref::StoreOp::create(builder, loc, value, variable);
  return result;
}
