//===- InlineProducer.cpp - Inlining of a producer ------------------------===//

#include "InlineProducer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// An input of the merged op, and its argument in the payload.
struct Input {
  Value value;
  AffineMap map;
  BlockArgument payload;
};

/// Returns each loop of the producer as an expression of the consumer's loops;
/// null if the result's map has no inverse.
AffineMap producerLoops(linalg::GenericOp producer, linalg::GenericOp consumer,
                        OpOperand &operand) {
  AffineMap inverse = inversePermutation(
      producer.getIndexingMapMatchingResult(cast<OpResult>(operand.get())));
  return inverse ? inverse.compose(consumer.getMatchingIndexingMap(&operand))
                 : AffineMap();
}

/// Returns true if each loop whose index the producer uses is a loop of the
/// consumer.
bool canMoveIndices(linalg::GenericOp producer, AffineMap loops) {
  auto canMove = [&](linalg::IndexOp op) {
    return isa<AffineDimExpr>(loops.getResult(op.getDim()))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  };
  return !producer.getBody()->walk(canMove).wasInterrupted();
}

/// Returns the consumer's inputs with those of the producer in place of
/// `operand`.
SmallVector<Input> mergedInputs(linalg::GenericOp producer,
                                linalg::GenericOp consumer, OpOperand &operand,
                                AffineMap loops) {
  SmallVector<Input> inputs;
  for (OpOperand *input : consumer.getDpsInputOperands()) {
    if (input != &operand) {
      inputs.push_back({input->get(), consumer.getMatchingIndexingMap(input),
                        consumer.getMatchingBlockArgument(input)});
      continue;
    }
    for (OpOperand *own : producer.getDpsInputOperands())
      inputs.push_back({own->get(),
                        producer.getMatchingIndexingMap(own).compose(loops),
                        producer.getMatchingBlockArgument(own)});
  }
  return inputs;
}

/// Moves the producer's payload to the front of the consumer's.
void movePayload(linalg::GenericOp producer, linalg::GenericOp consumer,
                 BlockArgument fused, AffineMap loops, RewriterBase &rewriter) {
  Block *from = producer.getBody(), *to = consumer.getBody();
  auto yield = cast<linalg::YieldOp>(from->getTerminator());
  from->walk([&](linalg::IndexOp index) {
    index.setDim(
        cast<AffineDimExpr>(loops.getResult(index.getDim())).getPosition());
  });
  Value result = yield.getValues()[0];
  rewriter.eraseOp(yield);
  // A rewriter that is notified of each moved op would visit all of them again.
  to->getOperations().splice(to->begin(), from->getOperations());
  fused.replaceAllUsesWith(result);
}

/// Returns true if the operands of the merged op still determine the extent of
/// each loop.
bool knowsLoopRanges(linalg::GenericOp consumer, ArrayRef<Input> inputs) {
  SmallVector<AffineMap> maps = llvm::to_vector(
      llvm::map_range(inputs, [](const Input &input) { return input.map; }));
  llvm::append_range(maps, ArrayRef(consumer.getIndexingMapsArray())
                               .drop_front(consumer.getNumDpsInputs()));
  return bool(
      inversePermutation(concatAffineMaps(maps, consumer.getContext())));
}

/// Gives the consumer `inputs`; a value that is read through the same map twice
/// becomes one input.
void setInputs(linalg::GenericOp consumer, ArrayRef<Input> inputs) {
  Block *body = consumer.getBody();
  unsigned oldCount = consumer.getNumDpsInputs();
  SmallVector<AffineMap> outputMaps = llvm::to_vector(
      ArrayRef(consumer.getIndexingMapsArray()).drop_front(oldCount));
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> arguments;
  DenseMap<std::pair<Value, AffineMap>, size_t> places;
  for (const Input &input : inputs) {
    auto [entry, isNew] =
        places.try_emplace({input.value, input.map}, values.size());
    size_t place = entry->second;
    if (isNew) {
      values.push_back(input.value);
      maps.push_back(input.map);
      arguments.push_back(body->insertArgument(
          oldCount + place, input.payload.getType(), input.payload.getLoc()));
    }
    BlockArgument payload = input.payload;
    payload.replaceAllUsesWith(arguments[place]);
  }
  body->eraseArguments(0, oldCount);
  llvm::append_range(maps, outputMaps);
  consumer.getInputsMutable().assign(values);
  consumer.setIndexingMapsAttr(
      Builder(consumer.getContext()).getAffineMapArrayAttr(maps));
}

} // namespace

LogicalResult fp8::inlineProducer(OpOperand &operand, RewriterBase &rewriter) {
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  if (!producer || producer->getNumResults() != 1 || !producer->hasOneUse() ||
      !producer.getRegionOutputArgs()[0].use_empty())
    return failure();
  AffineMap loops = producerLoops(producer, consumer, operand);
  if (!loops || !canMoveIndices(producer, loops))
    return failure();

  SmallVector<Input> inputs = mergedInputs(producer, consumer, operand, loops);
  if (!knowsLoopRanges(consumer, inputs))
    return failure();
  rewriter.modifyOpInPlace(consumer, [&] {
    movePayload(producer, consumer, consumer.getMatchingBlockArgument(&operand),
                loops, rewriter);
    setInputs(consumer, inputs);
  });
  rewriter.eraseOp(producer);
  return success();
}
