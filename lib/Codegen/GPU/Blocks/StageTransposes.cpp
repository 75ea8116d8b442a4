//===- StageTransposes.cpp - Transposed payloads through shared memory ----===//

#include "StageTransposes.h"

#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns a new buffer of the kernel in front of `op`.
static Value allocate(linalg::GenericOp op, Value like) {
  OpBuilder builder(op);
  return memref::AllocOp::create(builder, op.getLoc(),
                                 cast<MemRefType>(like.getType()));
}

/// Returns the op that computes all of `buffer` in front of `reader`, and the
/// number of its result; null if there is none.
static std::pair<linalg::GenericOp, unsigned>
writerOf(Value buffer, linalg::GenericOp reader) {
  for (OpOperand &use : buffer.getUses()) {
    auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (op && op.isDpsInit(&use) && allParallel(op) &&
        op->isBeforeInBlock(reader) &&
        op.payloadUsesValueFromOperand(&use) == 0)
      return {op, use.getOperandNumber() - op.getNumDpsInputs()};
  }
  return {};
}

/// Lets `op` write its result `number` to `copy`, too.
static void writeAlso(linalg::GenericOp op, unsigned number, Value copy) {
  OpBuilder builder(op);
  SmallVector<Value> outputs(op.getOutputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  outputs.push_back(copy);
  maps.push_back(maps[op.getNumDpsInputs() + number]);
  auto wider = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(),
                                         op.getInputs(), outputs, maps,
                                         op.getIteratorTypesArray());
  wider->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  wider.getRegion().takeBody(op.getRegion());
  Block *body = wider.getBody();
  body->addArgument(cast<MemRefType>(copy.getType()).getElementType(),
                    op.getLoc());
  Operation *yield = body->getTerminator();
  yield->insertOperands(yield->getNumOperands(), yield->getOperand(number));
  op.erase();
}

/// Copies the input of `op`, which another kernel has computed.
static void copyFirst(linalg::GenericOp op, Value copy) {
  OpBuilder builder(op);
  AffineMap map = op.getIndexingMapsArray()[0];
  auto generic = linalg::GenericOp::create(
      builder, op.getLoc(), TypeRange(), op.getInputs()[0], copy,
      ArrayRef<AffineMap>{map, map}, op.getIteratorTypesArray(),
      [](OpBuilder &b, Location loc, ValueRange elements) {
        linalg::YieldOp::create(b, loc, elements[0]);
      });
  generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
}

/// Returns the loop along which an op reads all operands that have its shape;
/// nullopt if there is none.
static std::optional<unsigned> readLoop(linalg::GenericOp op) {
  std::optional<unsigned> loop;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() == 0 || !map.isPermutation())
      continue;
    unsigned own = cast<AffineDimExpr>(map.getResults().back()).getPosition();
    if (loop && loop != own)
      return std::nullopt;
    loop = own;
  }
  return loop;
}

/// Returns true if `op` computes an FP8 payload that is not contiguous along
/// the loop along which it reads, and that no other op of the kernel writes.
static bool writesAcross(linalg::GenericOp op) {
  std::optional<unsigned> loop = readLoop(op);
  if (!loop || op.getNumDpsInits() != 1 || isTranspose(op))
    return false;
  OpOperand &output = *op.getDpsInitOperand(0);
  AffineMap map = op.getMatchingIndexingMap(&output);
  bool isOnlyRead = llvm::all_of(output.get().getUses(), [&](OpOperand &use) {
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    return reader && (reader == op || reader.isDpsInput(&use));
  });
  return isOnlyRead && isa<BlockArgument>(output.get()) &&
         isFormat(getElementTypeOrSelf(output.get().getType())) &&
         map.isPermutation() &&
         map.getResults().back() != getAffineDimExpr(*loop, map.getContext()) &&
         !op.payloadUsesValueFromOperand(&output);
}

/// Lets such an op write a buffer that is contiguous along the loop along which
/// it reads, and adds the transpose. Copies of the payload follow all other
/// ops.
static void splitTranspose(linalg::GenericOp op) {
  Value output = op.getOutputs()[0];
  AffineMap map = op.getIndexingMapsArray().back();
  Operation *end = op->getBlock()->getTerminator();
  OpBuilder builder(op);
  SmallVector<unsigned> order;
  for (unsigned loop : llvm::seq(op.getNumLoops()))
    if (loop != readLoop(op))
      order.push_back(loop);
  order.push_back(*readLoop(op));
  AffineMap along = AffineMap::getPermutationMap(order, op.getContext());
  auto type = MemRefType::get(along.compose(op.getStaticLoopRanges()),
                              getElementTypeOrSelf(output.getType()));
  Value buffer = memref::AllocOp::create(builder, op.getLoc(), type);
  auto access = [&](OpOperand &use, AffineMap how) {
    use.set(buffer);
    setIndexingMap(use, how);
  };
  AffineMap fromOutput = along.compose(inversePermutation(map));
  for (OpOperand &use : llvm::make_early_inc_range(output.getUses())) {
    auto reader = cast<linalg::GenericOp>(use.getOwner());
    if (reader == op)
      continue;
    if (isTranspose(reader))
      reader->moveBefore(end);
    access(use, fromOutput.compose(reader.getMatchingIndexingMap(&use)));
  }
  access(*op.getDpsInitOperand(0), along);
  builder.setInsertionPoint(end);
  auto transpose = linalg::GenericOp::create(
      builder, op.getLoc(), TypeRange(), buffer, output,
      ArrayRef<AffineMap>{along, map}, op.getIteratorTypesArray(),
      [](OpBuilder &b, Location loc, ValueRange elements) {
        linalg::YieldOp::create(b, loc, elements[0]);
      });
  transpose->setDiscardableAttrs(op->getDiscardableAttrDictionary());
}

/// Splits the ops of an elementwise kernel that write across. (In a kernel with
/// sums, other nests could change the order of sums.)
static void splitTransposes(KernelOp kernel) {
  SmallVector<linalg::GenericOp> across;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic ? !allParallel(generic)
                : !isa<arith::ConstantOp, memref::AllocOp>(op))
      return;
    if (generic && writesAcross(generic))
      across.push_back(generic);
  }
  llvm::for_each(across, splitTranspose);
}

void gpu_codegen::stageTransposes(KernelOp kernel) {
  splitTransposes(kernel);
  SmallVector<linalg::GenericOp> transposes;
  for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>())
    if (isTranspose(op) && isa<BlockArgument>(op.getInputs()[0]))
      transposes.push_back(op);
  for (linalg::GenericOp op : transposes) {
    Value input = op.getInputs()[0];
    auto [writer, number] = writerOf(input, op);
    Value copy = allocate(writer ? writer : op, input);
    if (writer)
      writeAlso(writer, number, copy);
    else
      copyFirst(op, copy);
    op.getInputsMutable()[0].set(copy);
  }
}
