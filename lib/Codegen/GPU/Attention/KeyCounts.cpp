//===- KeyCounts.cpp - Numbers of keys with code of their own -------------===//

#include "KeyCounts.h"

#include "../Blocks/BlockLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// With n numbers of keys, (n + 1) / 2n of the products of a causal mask are
/// computed.
static constexpr int64_t kMostCounts = 4;
/// Numbers of keys are multiples of this.
static constexpr int64_t kCountStep = 256;

KeyCounts KeyCounts::of(KernelOp kernel) {
  KeyCounts keys;
  // A block of threads cannot begin again with all keys.
  keys.band =
      KeyBand::find(kernel.getBody().front(), KeyBand::Checks::DividedRows);
  if (!keys.band)
    return keys;
  int64_t all = keys.band->numKeys;
  if (keys.band->keyLoop) {
    keys.counts = {all};
    return keys;
  }
  int64_t step = llvm::alignTo(llvm::divideCeil(all, kMostCounts), kCountStep);
  if (all <= step)
    return keys;
  for (int64_t count = step; count < all; count += step)
    keys.counts.push_back(count);
  keys.counts.push_back(all);
  return keys;
}

/// Emits the parts for the first of `counts` that covers the keys up to `seen`.
/// Each branch has half of the counts, so that branches are not nested deeply.
LogicalResult BlockLowering::emitFewKeys(Value seen, ArrayRef<int64_t> counts) {
  if (counts.size() == 1) {
    numKeys = counts[0];
    LogicalResult result = emitParts();
    numKeys.reset();
    return result;
  }
  ArrayRef<int64_t> fewer = counts.take_front(counts.size() / 2);
  Value isEnough =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, seen,
                            constantIndex(fewer.back()));
  auto ifOp =
      scf::IfOp::create(builder, loc, isEnough, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  if (failed(emitFewKeys(seen, fewer)))
    return failure();
  builder.setInsertionPoint(ifOp.elseBlock()->getTerminator());
  return emitFewKeys(seen, counts.drop_front(fewer.size()));
}

LogicalResult BlockLowering::emitPartsByKeys() {
  return emitFewKeys(seenKeys(), keyCounts);
}
