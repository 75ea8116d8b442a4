//===- RowChecks.cpp - Rows that may have no visible key ------------------===//
//
// A block whose domain divides the keys skips those that a causal mask hides.
// If padding or a bias may hide all others of a row, too, its weights are those
// of all keys. Values of the rows, which another kernel has computed, tell
// whether that is so. The threads of a block look at all of its rows before the
// first key, since the producer has to know how many tiles to bring.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BlockLowering.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Returns the part of a loop over which a task runs: the domain's tile, or all
/// of a loop that runs in order or that the domain does not divide.
BlockLowering::TaskRange BlockLowering::rangeOfTask(linalg::GenericOp op,
                                                    unsigned loop,
                                                    ArrayRef<Value> tileIndex) {
  TaskRange range = {nullptr, op.getStaticLoopRanges()[loop]};
  SmallVector<int64_t> dims = lowering::taskDims(op);
  unsigned number = llvm::find(dims, loop) - dims.begin();
  if (number == dims.size() || (inOrder && number + 1 == domain.size()))
    return range;
  range.first = arith::MulIOp::create(builder, loc, tileIndex[number],
                                      constantIndex(tile[number]));
  range.count = std::min(tile[number], range.count);
  return range;
}

/// Returns whether the rows at which this thread looks have visible keys, as
/// far as this operand tells.
Value BlockLowering::threadSeesKeys(OpOperand &operand,
                                    ArrayRef<Value> tileIndex) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<unsigned> loops;
  SmallVector<TaskRange> ranges;
  SmallVector<int64_t> counts;
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop) {
    if (!map.isFunctionOfDim(loop))
      continue;
    loops.push_back(loop);
    ranges.push_back(rangeOfTask(op, loop, tileIndex));
    counts.push_back(ranges.back().count);
  }
  Value all = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto points = scf::ForOp::create(
      builder, loc, thread, constantIndex(llvm::product_of(counts)),
      constantIndex(getThreads()), ValueRange{all});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(points.getBody());
  SmallVector<Value> indices(map.getNumDims(), constantIndex(0));
  SmallVector<Value> point = splitPoint(points.getInductionVar(), counts);
  for (auto [loop, range, index] : llvm::zip(loops, ranges, point)) {
    indices[loop] = index;
    if (!range.first)
      continue;
    // The last tile may have fewer rows.
    Value last = constantIndex(op.getStaticLoopRanges()[loop] - 1);
    indices[loop] = arith::MinUIOp::create(
        builder, loc, arith::AddIOp::create(builder, loc, index, range.first),
        last);
  }
  Value row = memref::LoadOp::create(
      builder, loc, operand.get(),
      *affine::expandAffineMap(builder, loc, map, indices));
  if (row.getType().getIntOrFloatBitWidth() < 32)
    row = arith::ExtFOp::create(builder, loc, builder.getF32Type(), row);
  Value least = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(row.getType(), KeyBand::kLeastOfRow));
  Value sees = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                                     row, least);
  sees = arith::AndIOp::create(builder, loc, points.getRegionIterArg(0), sees);
  scf::YieldOp::create(builder, loc, sees);
  return points.getResult(0);
}

/// Emits code for all threads of a block that finds out whether each row of the
/// task has a visible key, if that has to be checked.
void BlockLowering::checkRows(Value task) {
  if (!band || band->rowsToCheck.empty())
    return;
  SmallVector<Value> tileIndex = tileIndexOf(task);
  Value sees = arith::ConstantIntOp::create(builder, loc, 1, 1);
  llvm::SmallDenseSet<Value> checked;
  for (OpOperand *row : band->rowsToCheck)
    if (checked.insert(row->get()).second)
      sees = arith::AndIOp::create(builder, loc, sees,
                                   threadSeesKeys(*row, tileIndex));
  Type i32 = builder.getI32Type();
  Value all = NVVM::BarrierOp::create(
                  builder, loc, TypeRange(i32), /*barrierId=*/Value(),
                  /*numberOfThreads=*/Value(),
                  NVVM::BarrierReductionAttr::get(builder.getContext(),
                                                  NVVM::BarrierReduction::AND),
                  arith::ExtUIOp::create(builder, loc, i32, sees))
                  .getResult(0);
  everyRowSees =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, all,
                            arith::ConstantIntOp::create(builder, loc, 0, 32));
}
