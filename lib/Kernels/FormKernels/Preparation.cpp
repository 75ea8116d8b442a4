//===- Preparation.cpp - Preparation of ops for grouping ------------------===//

#include "Preparation.h"

#include "Work.h"

#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if an op other than `op` writes a part of its result into
/// `value`.
static bool othersWriteInto(Value value, Operation *op) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    auto other = dyn_cast<linalg::GenericOp>(use.getOwner());
    return other && other != op && other.isDpsInit(&use);
  });
}

/// Gives every op its own fill or empty as destination, right in front of it. A
/// part that two concatenations share is then written once for each.
static void privatizeDestinations(Operation *op) {
  OpBuilder builder(op);
  std::function<Value(Operation *)> cloneChain = [&](Operation *def) -> Value {
    Operation *copy = builder.clone(*def);
    // The buffer gets the location of the op that writes it.
    copy->setLoc(op->getLoc());
    if (auto fill = dyn_cast<linalg::FillOp>(copy))
      if (Operation *empty = fill.getOutputs()[0].getDefiningOp();
          isa_and_nonnull<tensor::EmptyOp>(empty)) {
        Operation *emptyCopy = builder.clone(*empty);
        emptyCopy->setLoc(op->getLoc());
        fill.getOutputsMutable()[0].set(emptyCopy->getResult(0));
        fill->moveAfter(fill.getOutputs()[0].getDefiningOp());
      }
    return copy->getResult(0);
  };
  for (OpOperand &init : destinationsOf(op))
    if (Operation *def = init.get().getDefiningOp(); isDestination(def)) {
      init.set(cloneChain(def));
    } else if (auto part = init.get().getDefiningOp<linalg::GenericOp>();
               part && isa<linalg::GenericOp>(op) &&
               othersWriteInto(init.get(), op)) {
      unsigned number = cast<OpResult>(init.get()).getResultNumber();
      Operation *copy = builder.clone(*part);
      init.set(copy->getResult(number));
      privatizeDestinations(copy);
    }
}

/// Gives a loop a copy of each value that it starts from more than once: one
/// buffer cannot become several results. (A sort that moves the indices of its
/// elements twice, as signed and unsigned numbers.)
static void copyRepeatedInits(scf::ForOp loop) {
  llvm::SmallPtrSet<Value, 4> seen;
  for (OpOperand &init : loop.getInitArgsMutable()) {
    auto type = dyn_cast<RankedTensorType>(init.get().getType());
    if (!type || seen.insert(init.get()).second)
      continue;
    OpBuilder builder(loop);
    init.set(createElementwise(builder, loop.getLoc(), init.get(),
                               type.getElementType())
                 .getResult(0));
  }
}

/// Turns fills that are read as ordinary values into ops of their own, and
/// erases unused ones.
static void materializeFills(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isDestination(&op) && op.use_empty()) {
      op.erase();
      continue;
    }
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (!fill || llvm::all_of(fill->getUses(), [](OpOperand &use) {
          Operation *user = use.getOwner();
          return (isWork(user) || isDestination(user)) && isDestination(use);
        }))
      continue;
    OpBuilder builder(fill);
    auto type = cast<RankedTensorType>(fill.getResult(0).getType());
    Value scalar = fill.getInputs()[0];
    auto generic = linalg::GenericOp::create(
        builder, fill.getLoc(), TypeRange{type}, ValueRange{},
        fill.getOutputs(),
        ArrayRef<AffineMap>{builder.getMultiDimIdentityMap(type.getRank())},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [&](OpBuilder &b, Location l, ValueRange) {
          Value inside = b.clone(*scalar.getDefiningOp())->getResult(0);
          linalg::YieldOp::create(b, l, inside);
        });
    // Other fills may have the same destination.
    privatizeDestinations(generic);
    fill.replaceAllUsesWith(generic.getResults());
    fill.erase();
  }
}

/// Turns scalars that an op captures, such as loop counters, into tensors of
/// one element: a kernel only takes tensors.
static void captureScalarsAsTensors(Operation *op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured) {
    if (isa<TensorType>(value.getType()) ||
        isa_and_nonnull<arith::ConstantOp>(value.getDefiningOp()))
      continue;
    OpBuilder builder(op);
    Type type = value.getType();
    Value stored = value;
    if (type.isIndex())
      stored = arith::IndexCastOp::create(builder, op->getLoc(),
                                          builder.getI64Type(), value);
    Value tensor = tensor::FromElementsOp::create(
        builder, op->getLoc(), RankedTensorType::get({}, stored.getType()),
        stored);
    builder.setInsertionPointToStart(&op->getRegion(0).front());
    Value inside = tensor::ExtractOp::create(builder, op->getLoc(), tensor);
    if (type.isIndex())
      inside = arith::IndexCastOp::create(builder, op->getLoc(), type, inside);
    replaceAllUsesInRegionWith(value, inside, op->getRegion(0));
  }
}

void fp8::prepareForGrouping(ArrayRef<Block *> blocks) {
  for (Block *block : blocks)
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (isWork(&op)) {
        privatizeDestinations(&op);
        if (auto loop = dyn_cast<scf::ForOp>(op))
          copyRepeatedInits(loop);
        captureScalarsAsTensors(&op);
      }
  // Process inner blocks first: they determine the uses of outer fills.
  for (Block *block : blocks)
    materializeFills(*block);
}
