//===- TaskKeys.cpp - The keys that a task of an attention runs over ------===//
//
// If a mask hides the keys behind a query, a tile runs over the keys up to the
// last one that its queries see; if the mask is a window, from about the first
// one on. Their number is only known at run time. It is rounded up to a
// multiple of `kKeyStep`, so that no loop over keys has a remainder. There is
// code for all keys besides if these are no such multiple, or if a tile of a
// window may need them, since its rows are checked.
//
//===----------------------------------------------------------------------===//

#include "TaskLowering.h"

#include "fp8/Codegen/Tiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Returns up to how many keys their number is open.
int64_t TaskLowering::openLimit() const {
  return llvm::alignDown(keyCounts.back(), kKeyStep);
}

void TaskLowering::forEachKeySetting(function_ref<void()> visit) {
  if (keyCounts.empty())
    return;
  numKeys = openLimit();
  openKeys = OpenLoop();
  visit();
  numKeys.reset();
  openKeys.reset();
}

/// Returns the first key that the queries of the tile see, or one shortly
/// before it; null if that may always be the first of all.
Value TaskLowering::firstSeenKey() {
  int64_t most = keyCounts.back();
  if (most == band->numKeys)
    return nullptr;
  Value first = arith::AddIOp::create(
      builder, loc, tileOffsets[band->queryLoop], constantIndex(*band->first));
  first = arith::MaxSIOp::create(builder, loc, first, constantIndex(0));
  Value step = constantIndex(kFirstKeyStep);
  first = arith::MulIOp::create(
      builder, loc, arith::DivUIOp::create(builder, loc, first, step), step);
  return arith::MinSIOp::create(builder, loc, first,
                                constantIndex(band->numKeys - most));
}

/// Returns the number of keys from `first` on, or from the first one if that is
/// null, up to the last one that the queries see.
Value TaskLowering::openEnd(Value seen, Value first) {
  if (first)
    seen = arith::SubIOp::create(builder, loc, seen, first);
  Value step = constantIndex(kKeyStep);
  Value end =
      arith::AddIOp::create(builder, loc, seen, constantIndex(kKeyStep - 1));
  end = arith::MulIOp::create(
      builder, loc, arith::DivUIOp::create(builder, loc, end, step), step);
  return arith::MinUIOp::create(builder, loc, end, constantIndex(openLimit()));
}

/// Returns whether this value of each row of the tile shows that the row has a
/// visible key.
Value TaskLowering::rowsSeeKeys(OpOperand &operand) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Loops loops = loopsOf(op);
  Nest nest;
  std::function<Value(unsigned, Value)> check = [&](unsigned loop, Value all) {
    while (loop < loops.extent.size() && !map.isFunctionOfDim(loop))
      ++loop;
    if (loop == loops.extent.size()) {
      Value row = load(operand.get(), map, nest, loops, 1);
      Value least = arith::ConstantOp::create(
          builder, loc,
          builder.getFloatAttr(row.getType(), KeyBand::kLeastOfRow));
      Value sees = arith::CmpFOp::create(builder, loc,
                                         arith::CmpFPredicate::OGT, row, least);
      return arith::AndIOp::create(builder, loc, all, sees).getResult();
    }
    auto forOp = scf::ForOp::create(
        builder, loc, constantIndex(0), constantIndex(loops.extent[loop]),
        constantIndex(1), ValueRange{all},
        [&](OpBuilder &, Location, Value index, ValueRange carried) {
          loops.index[loop] =
              arith::AddIOp::create(builder, loc, index, loops.lower[loop]);
          scf::YieldOp::create(builder, loc, check(loop + 1, carried[0]));
        });
    return forOp.getResult(0);
  };
  return check(0, arith::ConstantIntOp::create(builder, loc, 1, 1));
}

/// Returns how many parts compute values of rows that are checked.
unsigned TaskLowering::partsBeforeCheck() const {
  unsigned count = 0;
  for (OpOperand *row : band->rowsToCheck)
    for (Operation *user : row->get().getUsers())
      if (auto writer = dyn_cast<linalg::GenericOp>(user);
          writer && llvm::is_contained(writer.getDpsInits(), row->get()))
        count = std::max(count, partOf(writer, parts).value_or(0) + 1);
  return count;
}

/// Emits the parts for `end` keys from `first` on; returns whether that is all
/// that the tile needs.
FailureOr<Value> TaskLowering::emitKeys(Value first, Value end) {
  numKeys = openLimit();
  firstKey = first;
  openKeys = OpenLoop{0, end};
  FailureOr<Value> isDone = emitCheckedParts();
  numKeys.reset();
  firstKey = nullptr;
  openKeys.reset();
  return isDone;
}

/// Emits the parts for the current keys. Those behind the values of rows that
/// are checked run only if these show that every row has a visible key, or if
/// these are all keys; returns whether they do.
FailureOr<Value> TaskLowering::emitCheckedParts() {
  Value all = arith::ConstantIntOp::create(builder, loc, 1, 1);
  if (band->rowsToCheck.empty())
    return failed(emitParts()) ? FailureOr<Value>() : all;
  unsigned known = partsBeforeCheck();
  if (failed(emitParts(0, known)))
    return failure();
  llvm::SmallDenseSet<Value> checked;
  for (OpOperand *row : band->rowsToCheck)
    if (checked.insert(row->get()).second)
      all = arith::AndIOp::create(builder, loc, all, rowsSeeKeys(*row));
  if (openLimit() == band->numKeys) {
    Value isWhole =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              openKeys->end, constantIndex(openLimit()));
    all = arith::OrIOp::create(builder, loc, all, isWhole);
  }
  auto ifOp = scf::IfOp::create(builder, loc, all);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  if (failed(emitParts(known, parts.size())))
    return failure();
  return all;
}

/// Emits a loop that begins again with all keys if those up to `end` are not
/// enough.
LogicalResult TaskLowering::emitUntilDone(Value end) {
  Type index = builder.getIndexType();
  auto loop = scf::WhileOp::create(builder, loc, index, end);
  OpBuilder::InsertionGuard guard(builder);
  Block *before = builder.createBlock(&loop.getBefore(), {}, index, loc);
  FailureOr<Value> isDone = emitKeys(nullptr, before->getArgument(0));
  if (failed(isDone))
    return failure();
  Value isNotDone = arith::XOrIOp::create(
      builder, loc, *isDone, arith::ConstantIntOp::create(builder, loc, 1, 1));
  scf::ConditionOp::create(builder, loc, isNotDone,
                           ValueRange{constantIndex(openLimit())});
  Block *after = builder.createBlock(&loop.getAfter(), {}, index, loc);
  scf::YieldOp::create(builder, loc, after->getArguments());
  return success();
}

/// Emits the parts for the keys up to `seen` if they are no more than the limit
/// of open numbers; returns whether that is all that the tile needs.
FailureOr<Value> TaskLowering::emitIfOpen(Value seen) {
  Value isOpen = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle,
                                       seen, constantIndex(openLimit()));
  auto ifOp = scf::IfOp::create(builder, loc, builder.getI1Type(), isOpen,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(ifOp.thenBlock());
  FailureOr<Value> isDone = emitKeys(nullptr, openEnd(seen, nullptr));
  if (failed(isDone))
    return failure();
  scf::YieldOp::create(builder, loc, *isDone);
  builder.setInsertionPointToEnd(ifOp.elseBlock());
  Value isNot = arith::ConstantIntOp::create(builder, loc, 0, 1);
  scf::YieldOp::create(builder, loc, isNot);
  return ifOp.getResult(0);
}

LogicalResult TaskLowering::emitPartsByKeys() {
  Value seen = seenKeys(), first = firstSeenKey();
  bool isOpen = openLimit() == keyCounts.back();
  if (isOpen && band->rowsToCheck.empty())
    return success(succeeded(emitKeys(first, openEnd(seen, first))));
  if (isOpen && !first)
    return emitUntilDone(openEnd(seen, nullptr));
  FailureOr<Value> isDone =
      first ? emitKeys(first, openEnd(seen, first)) : emitIfOpen(seen);
  if (failed(isDone))
    return failure();
  auto ifOp = scf::IfOp::create(builder, loc, *isDone, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(ifOp.elseBlock()->getTerminator());
  return emitParts();
}
