//===- KeptSums.cpp - Sums that stay in registers -------------------------===//
//
// A block that runs the last loop of its domain in order adds to the same sums
// in each of its steps: the result of an attention, or a gradient of one. They
// stay in registers until the last step. So do reductions of the columns of a
// dot, such as the largest score of a row: each thread reduces its own columns,
// and behind the last step threads combine their results.
//
//===----------------------------------------------------------------------===//

#include "../Dots/DotEmitter.h"
#include "BlockLowering.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The registers of a thread that sums may take from one step to the next.
static constexpr int64_t kMostKept = 128;

/// The threads that share a row of the sums of `wgmma`.
static constexpr int64_t kRowThreads = 4;

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

/// Returns the fill of a result into which steps are summed, null if there is
/// none.
linalg::FillOp BlockLowering::fillBefore(Value buffer) const {
  for (linalg::FillOp fill : firstFills)
    if (fill.getOutputs()[0] == buffer)
      return fill;
  return nullptr;
}

/// Returns whether a nest behind a dot reduces to what `fill` initializes.
bool BlockLowering::isOfRows(linalg::FillOp fill) const {
  return llvm::any_of(epilogues, [&](const auto &epilogue) {
    return llvm::any_of(epilogue.second->ops, [&](linalg::GenericOp op) {
      return !allParallel(op) &&
             llvm::is_contained(op.getDpsInits(), fill.getOutputs()[0]);
    });
  });
}

/// Begins with neutral values for all rows of a dot that the nest behind it
/// reduces.
void BlockLowering::beginRows(linalg::GenericOp dot,
                              ArrayRef<int64_t> largest) {
  SmallVector<int64_t> extents = extentsOf(dot, largest);
  DotPlan plan = *planDot(dot, extents, denseResult(dot, extents),
                          localInputTypes(dot, largest));
  RowValues &own = rowValues[dot];
  own.accumulators = accumulatorsOf(*epilogues.lookup(dot));
  own.sumsOfRows = plan.sumsPerThread() / plan.mmaRows();
  for (auto [op, number] : own.accumulators.outputs)
    constantInit[{op, number}] =
        fillBefore(op.getDpsInits()[number]).getInputs()[0];
  for (int64_t row = 0; row < 2 * plan.mmaRows(); ++row)
    for (Operation *combiner : own.accumulators.combiners) {
      auto type = VectorType::get({2}, combiner->getResult(0).getType());
      own.variables.push_back(variableOf(type));
      memref::StoreOp::create(builder, loc, neutralValue(combiner, type),
                              own.variables.back());
    }
}

/// Combines the values of the threads that share a row, and stores them.
LogicalResult BlockLowering::storeRows(linalg::GenericOp dot,
                                       const RowValues &rows) {
  const Nest &nest = *epilogues.lookup(dot);
  auto tile = tileOfDot(dot);
  if (failed(tile))
    return failure();
  unsigned rowLoop = *rowLoopOf(dot, nest);
  groupThreads = kRowThreads;
  Value leads = isBelow(
      arith::RemUIOp::create(builder, loc, thread, constantIndex(kRowThreads)),
      1);
  DotEmitter emitter(builder, loc, tile->second, thread);
  emitter.forRows(tile->first, [&](int64_t number, Value row) {
    Loops loops = loopsOf(nest.ops.front());
    loops.index[rowLoop] =
        arith::AddIOp::create(builder, loc, loops.lower[rowLoop], row);
    SmallVector<Value> totals;
    for (auto [i, combiner] : llvm::enumerate(rows.accumulators.combiners)) {
      Value part = memref::LoadOp::create(
          builder, loc,
          rows.variables[number * rows.accumulators.outputs.size() + i]);
      totals.push_back(reduceGroup(part, 2 * kRowThreads, combiner));
    }
    ifThen(leads, [&] { storeTotals(nest, loops, rows.accumulators, totals); });
  });
  return success();
}

/// Returns a variable in the entry block, which LLVM keeps in registers.
Value BlockLowering::variableOf(Type type, ArrayRef<int64_t> shape) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&body());
  return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, type));
}

/// Begins with the sums of every dot that nothing else reads until the last
/// block, as long as there are registers. The others are filled in memory.
LogicalResult BlockLowering::beginBlocks(ArrayRef<int64_t> largest) {
  if (ring && ring->fills) {
    beginWithTiles();
    return success();
  }
  int64_t registers = kMostKept;
  kept.clear();
  rowValues.clear();
  for (linalg::FillOp fill : firstFills) {
    if (isOfRows(fill))
      continue;
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
    Value memory = variableOf(builder.getF32Type(), {*sums});
    for (int64_t i = 0; i < *sums; ++i)
      memref::StoreOp::create(builder, loc, fill.getInputs()[0], memory,
                              constantIndex(i));
    kept[dot] = memory;
  }
  for (auto [dot, nest] : epilogues)
    if (nest->reduction.any())
      beginRows(cast<linalg::GenericOp>(dot), largest);
  if (dots.inPlace)
    beginWithTiles();
  return success();
}

/// Stores the sums and the values of rows that were kept.
LogicalResult BlockLowering::endBlocks(ArrayRef<int64_t> largest) {
  if ((ring && ring->fills) || (kept.empty() && rowValues.empty()))
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
  for (auto &[dot, rows] : rowValues)
    if (failed(storeRows(cast<linalg::GenericOp>(dot), rows)))
      return failure();
  kept.clear();
  rowValues.clear();
  return success();
}
