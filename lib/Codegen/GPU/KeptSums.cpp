//===- KeptSums.cpp - Sums that stay in registers -------------------------===//
//
// A block that runs the last loop of its domain in order adds to the same sums
// in each of its steps: the result of an attention, or a gradient of one. They
// stay in registers until the last step.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"
#include "DotEmitter.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The registers of a thread that sums may take from one step to the next.
static constexpr int64_t kMostKept = 128;

/// Returns how many sums a thread has of a dot that adds the blocks of the last
/// loop to one tile, which all blocks divide among the threads in the same way;
/// nullopt for other dots.
std::optional<int64_t> BlockLowering::keptSums(linalg::GenericOp op,
                                               ArrayRef<int64_t> largest) {
  std::optional<DotPlan> first;
  SmallVector<int64_t> sizes(largest.begin(), largest.end());
  int64_t rest = domain.back() % largest.back();
  for (int64_t last : {largest.back(), rest ? rest : largest.back()}) {
    sizes.back() = last;
    SmallVector<int64_t> extents = extentsOf(op, sizes);
    FailureOr<DotPlan> plan = planDot(op, extents, denseResult(op, extents),
                                      localInputTypes(op, sizes));
    if (failed(plan) || volumeOf(plan->outer) != 1 ||
        volumeOf(plan->rows) > plan->tileRows ||
        volumeOf(plan->columns) > plan->tileColumns)
      return std::nullopt;
    if (first && (first->multiplier != plan->multiplier ||
                  first->tileRows != plan->tileRows ||
                  first->tileColumns != plan->tileColumns))
      return std::nullopt;
    first = *plan;
  }
  return first->sumsPerThread();
}

/// Begins with the sums of every dot that nothing else reads until the last
/// block, as long as there are registers. The others are filled in memory.
LogicalResult BlockLowering::beginBlocks(ArrayRef<int64_t> largest) {
  int64_t registers = kMostKept;
  kept.clear();
  for (linalg::FillOp fill : firstFills) {
    Value buffer = fill.getOutputs()[0];
    linalg::GenericOp dot;
    for (Operation *user : buffer.getUsers())
      if (user != fill)
        dot = dyn_cast<linalg::GenericOp>(user);
    std::optional<int64_t> sums;
    auto type = cast<MemRefType>(buffer.getType());
    if (llvm::range_size(buffer.getUsers()) == 2 && dot && isDot(dot) &&
        type.getElementType().isF32() && !locals.contains(buffer))
      sums = keptSums(dot, largest);
    if (!sums || *sums > registers) {
      emitFill(fill);
      emitPartEnd();
      continue;
    }
    registers -= *sums;
    Value memory;
    {
      // LLVM keeps what lies in the entry block in registers.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&body());
      memory = memref::AllocaOp::create(
          builder, loc, MemRefType::get({*sums}, builder.getF32Type()));
    }
    for (int64_t i = 0; i < *sums; ++i)
      memref::StoreOp::create(builder, loc, fill.getInputs()[0], memory,
                              constantIndex(i));
    kept[dot] = memory;
  }
  return success();
}

/// Stores the sums that were kept.
LogicalResult BlockLowering::endBlocks(ArrayRef<int64_t> largest) {
  if (kept.empty())
    return success();
  tileOffsets.push_back(constantIndex(0));
  tileSizes.assign(largest.begin(), largest.end());
  placeLocals();
  for (auto [dot, memory] : kept) {
    auto tile = tileOfDot(cast<linalg::GenericOp>(dot));
    if (failed(tile) || failed(DotEmitter(builder, loc, tile->second, thread)
                                   .storeKept(tile->first, memory)))
      return failure();
  }
  kept.clear();
  return success();
}
