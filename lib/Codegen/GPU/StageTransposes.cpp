//===- StageTransposes.cpp - Transposed payloads through shared memory ----===//

#include "StageTransposes.h"

#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

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

void gpu_codegen::stageTransposes(KernelOp kernel) {
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
