//===- SimplifyAttention.cpp - Attention without masks in memory ----------===//

#include "SimplifyAttention.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// Returns true if the values of `op` follow from its indices alone, and are
/// only read within the kernel.
static bool followsFromIndices(linalg::GenericOp op) {
  if (!allParallel(op) || op.getNumDpsInputs() != 0 || op.getNumDpsInits() != 1)
    return false;
  Value buffer = op.getDpsInits()[0];
  return buffer.getDefiningOp<memref::AllocOp>() &&
         op.getRegionOutputArgs()[0].use_empty() &&
         op.getIndexingMapsArray()[0].isPermutation() &&
         llvm::all_of(op.getBody()->without_terminator(), [](Operation &inner) {
           return isa<linalg::IndexOp>(inner) ||
                  OpTrait::hasElementwiseMappableTraits(&inner);
         });
}

/// Returns the loops of `producer`, as loops of the op that reads its result
/// by `map`; null if these are no loops.
static AffineMap loopsOfProducer(linalg::GenericOp producer, AffineMap map) {
  AffineMap loops =
      inversePermutation(producer.getIndexingMapsArray()[0]).compose(map);
  return llvm::all_of(loops.getResults(), llvm::IsaPred<AffineDimExpr>)
             ? loops
             : AffineMap();
}

/// Computes input `number` of `reader` in its body instead of reading it.
static void inlineInput(linalg::GenericOp producer, linalg::GenericOp reader,
                        unsigned number) {
  SmallVector<AffineMap> maps = reader.getIndexingMapsArray();
  AffineMap loops = loopsOfProducer(producer, maps[number]);
  OpBuilder builder = OpBuilder::atBlockBegin(reader.getBody());
  IRMapping mapping;
  for (Operation &inner : producer.getBody()->without_terminator()) {
    Operation *copy = builder.clone(inner, mapping);
    if (auto index = dyn_cast<linalg::IndexOp>(copy))
      index.setDim(
          cast<AffineDimExpr>(loops.getResult(index.getDim())).getPosition());
  }
  Value result = producer.getBody()->getTerminator()->getOperand(0);
  BlockArgument argument = reader.getBody()->getArgument(number);
  argument.replaceAllUsesWith(mapping.lookupOrDefault(result));
  reader.getBody()->eraseArgument(number);
  reader.getInputsMutable().erase(number);
  maps.erase(maps.begin() + number);
  reader.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
}

/// Returns the reads of what `producer` computes; nullopt if one of them cannot
/// compute it itself.
static std::optional<SmallVector<OpOperand *>>
readsOf(linalg::GenericOp producer) {
  SmallVector<OpOperand *> reads;
  for (OpOperand &use : producer.getDpsInits()[0].getUses()) {
    if (use.getOwner() == producer)
      continue;
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!reader || isDot(reader) || !reader.isDpsInput(&use) ||
        !loopsOfProducer(producer, reader.getMatchingIndexingMap(&use)))
      return std::nullopt;
    reads.push_back(&use);
  }
  return reads;
}

static void inlineValuesOfIndices(Block &body) {
  for (auto op : llvm::make_early_inc_range(body.getOps<linalg::GenericOp>())) {
    if (!followsFromIndices(op))
      continue;
    Value buffer = op.getDpsInits()[0];
    while (auto reads = readsOf(op)) {
      if (reads->empty()) {
        op->erase();
        buffer.getDefiningOp()->erase();
        break;
      }
      OpOperand *read = reads->front();
      inlineInput(op, cast<linalg::GenericOp>(read->getOwner()),
                  read->getOperandNumber());
    }
  }
}

/// Returns true if no op from `first` on writes an input of `op`.
static bool isKnownBefore(Operation *first, linalg::GenericOp op) {
  return llvm::all_of(op.getDpsInputs(), [&](Value input) {
    return llvm::all_of(input.getUsers(), [&](Operation *user) {
      auto writer = dyn_cast<DestinationStyleOpInterface>(user);
      return !writer || !llvm::is_contained(writer.getDpsInits(), input) ||
             user->isBeforeInBlock(first);
    });
  });
}

/// Moves elementwise ops that write locals before the first dot for which
/// `isWanted`, if nothing from there on computes what they read.
static void moveBeforeDot(Block &body,
                          function_ref<bool(linalg::GenericOp)> isWanted) {
  auto generics = body.getOps<linalg::GenericOp>();
  auto found = llvm::find_if(generics, [&](linalg::GenericOp op) {
    return isDot(op) && isWanted(op);
  });
  if (found == generics.end())
    return;
  Operation *first = *found;
  for (auto op : llvm::make_early_inc_range(generics)) {
    if (op->isBeforeInBlock(first) || isDot(op) || !allParallel(op) ||
        !isKnownBefore(first, op))
      continue;
    SmallVector<Operation *> buffers;
    for (Value init : op.getDpsInits())
      buffers.push_back(init.getDefiningOp<memref::AllocOp>());
    if (llvm::is_contained(buffers, nullptr))
      continue;
    for (Operation *moved : buffers)
      if (first->isBeforeInBlock(moved))
        moved->moveBefore(first);
    op->moveBefore(first);
  }
}

/// Returns true for a dot whose operands the kernel does not compute.
static bool isOfArguments(linalg::GenericOp dot) {
  return llvm::all_of(dot.getDpsInputs(), llvm::IsaPred<BlockArgument>);
}

void gpu_codegen::gatherScores(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *last = nullptr;
  for (auto op : llvm::make_early_inc_range(body.getOps<linalg::GenericOp>())) {
    if (!isDot(op) || !isOfArguments(op))
      continue;
    if (Operation *buffer =
            op.getDpsInits()[0].getDefiningOp<memref::AllocOp>();
        last && buffer) {
      // Its buffer and the fill of that move with it.
      SmallVector<Operation *> moved = {buffer};
      for (Operation *user : op.getDpsInits()[0].getUsers())
        if (isa<linalg::FillOp>(user))
          moved.push_back(user);
      moved.push_back(op);
      for (Operation *each : moved)
        if (!each->isBeforeInBlock(last)) {
          each->moveAfter(last);
          last = each;
        }
    }
    last = op;
  }
  moveBeforeDot(body,
                [](linalg::GenericOp dot) { return !isOfArguments(dot); });
}

void gpu_codegen::simplifyAttention(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  inlineValuesOfIndices(body);
  moveBeforeDot(body, [](linalg::GenericOp) { return true; });
}
