//===- InlineProducer.cpp - Inlining of producers -------------------------===//

#include "InlineProducer.h"

#include "fp8/Kernels/Structure.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns each loop of the producer as an expression of the consumer's loops;
/// null if the producer is not elementwise or does not fit.
static AffineMap producerLoops(linalg::GenericOp producer, OpResult result,
                               AffineMap map) {
  AffineMap written = producer.getIndexingMapMatchingResult(result);
  if (!producer.hasPureTensorSemantics() || !allParallel(producer) ||
      !written.isPermutation() || map.getNumResults() != written.getNumDims())
    return {};
  return inversePermutation(written).compose(map);
}

/// Returns true if each loop whose index the producer uses is a loop of the
/// consumer.
static bool canMoveIndices(linalg::GenericOp producer, AffineMap loops) {
  auto canMove = [&](linalg::IndexOp op) {
    return isa<AffineDimExpr>(loops.getResult(op.getDim()))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  };
  return !producer.getBody()->walk(canMove).wasInterrupted();
}

ProducerInliner::ProducerInliner(linalg::GenericOp consumer, unsigned first,
                                 RewriterBase &rewriter)
    : consumer(consumer), rewriter(rewriter),
      ranges(consumer.getStaticLoopRanges()), volume(llvm::product_of(ranges)),
      determiners(ranges.size()) {
  SmallVector<AffineMap> maps = consumer.getIndexingMapsArray();
  for (AffineMap map : maps)
    countLoops(map, 1);
  Block *body = consumer.getBody();
  unsigned count = consumer.getNumDpsInputs();
  for (auto [i, value] : llvm::enumerate(consumer.getInputs()))
    inputs.push_back({value, maps[i], body->getArgument(i), i < first});
  llvm::append_range(visited, llvm::seq(std::min(first, count)));
  for (unsigned i = count; i > first; --i)
    pending.push_back(i - 1);
}

void ProducerInliner::next() {
  inputs[pending.back()].visited = true;
  visited.push_back(pending.pop_back_val());
  dropPending();
}

bool ProducerInliner::isOnlyUse(Operation *producer) const {
  if (inlined.empty())
    return producer->hasOneUse();
  unsigned count = 0;
  for (Value result : producer->getResults())
    count += uses.lookup(result);
  return count == 1 && llvm::all_of(producer->getUsers(), [&](Operation *user) {
           return user == consumer || inlinedOps.contains(user);
         });
}

LogicalResult ProducerInliner::inlineProducer() {
  auto producer = getValue().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getNumResults() != 1 || !isOnlyUse(producer) ||
      !producer.getRegionOutputArgs()[0].use_empty())
    return failure();
  AffineMap loops =
      producerLoops(producer, cast<OpResult>(getValue()), getMap());
  if (!loops || !canMoveIndices(producer, loops) ||
      !determinesLoops(producer, loops))
    return failure();

  if (inlined.empty()) {
    rewriter.startOpModification(consumer);
    mergeEqualInputs();
  }
  inlined.push_back(producer);
  inlinedOps.insert(producer);
  movePayload(producer, inputs[pending.back()].payload, loops);
  replaceCurrent(producer, loops);
  return success();
}

bool ProducerInliner::applyInputs() {
  if (inlined.empty())
    return false;
  setInputs();
  rewriter.finalizeOpModification(consumer);
  for (linalg::GenericOp producer : inlined)
    rewriter.eraseOp(producer);
  return true;
}

void ProducerInliner::countLoops(AffineMap map, int change) {
  for (AffineExpr expr : map.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      determiners[loop.getPosition()] += change;
}

/// Lets the inputs of `producer` determine loops in place of the current input.
/// Changes nothing and returns false if no operand determined some loop then.
bool ProducerInliner::determinesLoops(linalg::GenericOp producer,
                                      AffineMap loops) {
  auto replace = [&](int change) {
    countLoops(getMap(), -change);
    for (OpOperand *own : producer.getDpsInputOperands())
      countLoops(producer.getMatchingIndexingMap(own).compose(loops), change);
  };
  replace(1);
  if (!llvm::is_contained(determiners, 0))
    return true;
  replace(-1);
  return false;
}

/// Lets a value that is read through the same map twice be one input.
void ProducerInliner::mergeEqualInputs() {
  for (Value output : consumer.getOutputs())
    ++uses[output];
  for (auto [i, input] : llvm::enumerate(inputs)) {
    ++uses[input.value];
    auto [entry, isNew] = places.try_emplace({input.value, input.map}, i);
    if (!isNew)
      merge(input, inputs[entry->second]);
  }
  llvm::erase_if(visited, [&](unsigned i) { return inputs[i].dropped; });
}

void ProducerInliner::merge(Input &dropped, Input &kept) {
  dropped.payload.replaceAllUsesWith(kept.payload);
  dropped.dropped = true;
  countLoops(dropped.map, -1);
  --uses[dropped.value];
}

/// Puts the inputs of `producer` in place of the current one. Of equal inputs
/// the first one stays.
void ProducerInliner::replaceCurrent(linalg::GenericOp producer,
                                     AffineMap loops) {
  Input &current = inputs[pending.pop_back_val()];
  current.dropped = true;
  places.erase({current.value, current.map});
  --uses[current.value];
  unsigned first = inputs.size();
  for (OpOperand *own : producer.getDpsInputOperands()) {
    Input input{own->get(), producer.getMatchingIndexingMap(own).compose(loops),
                producer.getMatchingBlockArgument(own)};
    ++uses[input.value];
    auto [entry, isNew] =
        places.try_emplace({input.value, input.map}, inputs.size());
    unsigned equal = entry->second;
    if (!isNew && (inputs[equal].visited || equal >= first)) {
      merge(input, inputs[equal]);
      continue;
    }
    if (!isNew)
      merge(inputs[equal], input);
    entry->second = inputs.size();
    inputs.push_back(input);
  }
  for (unsigned i = inputs.size(); i > first; --i)
    pending.push_back(i - 1);
  dropPending();
}

/// Moves the producer's payload to the front of the consumer's.
void ProducerInliner::movePayload(linalg::GenericOp producer,
                                  BlockArgument fused, AffineMap loops) {
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

/// Skips inputs that have been dropped.
void ProducerInliner::dropPending() {
  while (!pending.empty() && inputs[pending.back()].dropped)
    pending.pop_back();
}

/// Gives the consumer the inputs that are left.
void ProducerInliner::setInputs() {
  Block *body = consumer.getBody();
  unsigned oldCount = consumer.getNumDpsInputs();
  SmallVector<AffineMap> oldMaps = consumer.getIndexingMapsArray(), maps;
  SmallVector<Value> values;
  auto add = [&](Input &input) {
    if (input.dropped)
      return;
    BlockArgument argument =
        body->insertArgument(oldCount + values.size(), input.payload.getType(),
                             input.payload.getLoc());
    input.payload.replaceAllUsesWith(argument);
    values.push_back(input.value);
    maps.push_back(input.map);
  };
  for (unsigned i : visited)
    add(inputs[i]);
  for (unsigned i : llvm::reverse(pending))
    add(inputs[i]);
  body->eraseArguments(0, oldCount);
  llvm::append_range(maps, ArrayRef(oldMaps).drop_front(oldCount));
  consumer.getInputsMutable().assign(values);
  consumer.setIndexingMapsAttr(
      Builder(consumer.getContext()).getAffineMapArrayAttr(maps));
}
