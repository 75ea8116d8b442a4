//===- InlineProducer.h - Inlining of producers -----------------*- C++ -*-===//
//
// Upstream's `fuseElementwiseOps` clones both payloads and makes a new op for
// every producer. Fusing n producers one by one, such as a chain of ops or the
// squares of all gradients, takes a time that grows with the square of n.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSEELEMENTWISE_INLINEPRODUCER_H
#define FP8_LIB_KERNELS_FUSEELEMENTWISE_INLINEPRODUCER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Moves the payloads of elementwise ops into an op that reads their results.
/// It goes through the inputs of the op in order; the inputs of an inlined
/// producer take the place of the one that it computed. The op gets its new
/// inputs once, in `finish`; until then only this object knows them.
class ProducerInliner {
public:
  /// Begins at input `first` of `consumer`, which reads and writes tensors.
  ProducerInliner(linalg::GenericOp consumer, unsigned first,
                  RewriterBase &rewriter);

  linalg::GenericOp getConsumer() const { return consumer; }
  /// The extents of the consumer's loops, and their product.
  ArrayRef<int64_t> getLoopRanges() const { return ranges; }
  int64_t getVolume() const { return volume; }

  /// Returns true after the last input.
  bool atEnd() const { return pending.empty(); }
  /// Goes to the next input.
  void next();
  /// The current input: its number once `finish` has been called, its value,
  /// and the map that the value is read through.
  unsigned getIndex() const { return visited.size(); }
  Value getValue() const { return inputs[pending.back()].value; }
  AffineMap getMap() const { return inputs[pending.back()].map; }
  /// Returns true if only the current input reads results of `producer`, which
  /// computes it.
  bool isOnlyUse(Operation *producer) const;

  /// Inlines the producer of the current input. Fails and changes nothing
  /// unless
  /// - the producer is elementwise and computes a permutation of its loops,
  /// - the producer has one result and does not read its destination,
  /// - nothing else reads this result,
  /// - each loop whose index the producer uses is a loop of the consumer, and
  /// - the remaining operands determine the extent of each loop.
  LogicalResult inlineProducer();

  /// Gives the consumer its inputs and erases the inlined producers. Returns
  /// true if there are any.
  bool applyInputs();

private:
  /// An input of the merged op, and its argument in the payload.
  struct Input {
    Value value;
    AffineMap map;
    BlockArgument payload;
    bool visited = false;
    bool dropped = false; ///< It was inlined, or equals an input before it.
  };

  /// Changes how many operands determine each of the loops in `map`.
  void countLoops(AffineMap map, int change);
  bool determinesLoops(linalg::GenericOp producer, AffineMap loops);
  void mergeEqualInputs();
  void merge(Input &dropped, Input &kept);
  void replaceCurrent(linalg::GenericOp producer, AffineMap loops);
  void movePayload(linalg::GenericOp producer, BlockArgument fused,
                   AffineMap loops);
  void dropPending();
  void setInputs();

  linalg::GenericOp consumer;
  RewriterBase &rewriter;
  SmallVector<int64_t> ranges;
  int64_t volume;
  SmallVector<Input> inputs;     ///< In the order in which they were added.
  SmallVector<unsigned> visited; ///< Inputs before the current one.
  SmallVector<unsigned> pending; ///< The others; the current one is the last.
  SmallVector<unsigned> determiners; ///< Operands that determine each loop.
  SmallVector<linalg::GenericOp> inlined;

  // From the first inlined producer on, all inputs differ.
  DenseMap<std::pair<Value, AffineMap>, unsigned> places; ///< Of all inputs.
  DenseMap<Value, unsigned> uses; ///< By inputs and outputs.
  llvm::SmallPtrSet<Operation *, 8> inlinedOps;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSEELEMENTWISE_INLINEPRODUCER_H
