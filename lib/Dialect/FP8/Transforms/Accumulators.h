//===- Accumulators.h - What ops of a step add up ---------------*- C++ -*-===//
//
// An accumulator is a small tensor that ops of a step add to wherever they
// stand: in a loop over micro-batches every iteration adds to it, in a branch
// only the one that is taken does, and in a loop over layers every layer adds
// to its own slot. What is recorded is brought from op to op, in program order,
// through the loops and branches around them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ACCUMULATORS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ACCUMULATORS_H

#include "LayerSlots.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <vector>

namespace mlir {
namespace fp8 {

/// The accumulators of one function.
class Accumulators {
public:
  explicit Accumulators(func::FuncOp function)
      : function(function), builder(function.getContext()) {}

  /// Makes the new value of a slot that holds `before`, when `value` is
  /// recorded.
  using Combine = std::function<Value(OpBuilder &builder, Location loc,
                                      Value before, Value value)>;

  /// Returns the number of a new accumulator: slots and the shape of what is
  /// recorded, all `initial` before anything is.
  unsigned add(DenseElementsAttr initial, Combine combine);

  /// Adds `value`, the result of an op, whenever that op is executed.
  void record(unsigned accumulator, Value value, ArrayRef<LayerSlot> slots);

  /// Rewrites the function so that it records, and returns the values that the
  /// accumulators hold at its end.
  SmallVector<Value> materialize();

private:
  struct Accumulator {
    DenseElementsAttr initial;
    Combine combine;
  };
  struct Record {
    unsigned accumulator;
    Value value;
    SmallVector<LayerSlot> slots;
  };

  void thread(Block &block, MutableArrayRef<Value> values);
  void combine(const Record &record, MutableArrayRef<Value> values);
  void threadLoop(Operation *loop, ArrayRef<unsigned> touched,
                  MutableArrayRef<Value> values);
  void threadBranches(Operation *op, ArrayRef<unsigned> touched,
                      MutableArrayRef<Value> values);

  func::FuncOp function;
  OpBuilder builder;
  std::vector<Accumulator> accumulators;
  /// By the op that makes the value.
  llvm::MapVector<Operation *, SmallVector<Record>> records;
  /// The accumulators that are recorded to below an op with regions.
  DenseMap<Operation *, llvm::SetVector<unsigned>> nested;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ACCUMULATORS_H
