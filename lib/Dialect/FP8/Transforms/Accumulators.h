//===- Accumulators.h - Sums over the ops of a step -------------*- C++ -*-===//
//
// An accumulator is a small tensor that ops of a step change when they run: in
// a loop over micro-batches every iteration adds to it, in a branch only the
// one that is taken, and in a loop over layers every layer adds to its own
// slot. The accumulators are passed from op to op, in program order, through
// the loops and branches around them.
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

  /// Computes the new value of a slot that holds `before` when `value` is
  /// recorded.
  using Combine = std::function<Value(OpBuilder &builder, Location loc,
                                      Value before, Value value)>;

  /// Adds an accumulator and returns its number. Its shape is that of all slots
  /// followed by that of one slot's value; it starts as `initial`.
  unsigned add(DenseElementsAttr initial, Combine combine);
  /// Does the same for one that starts as an argument of the function.
  unsigned add(BlockArgument initial, Combine combine);

  /// Records `value`, the result of an op, whenever that op runs. The slot's
  /// value has `type`; without it, the type of `value`.
  void record(unsigned accumulator, Value value, ArrayRef<LayerSlot> slots,
              RankedTensorType type = {});

  /// Rewrites the function so that it records, and returns the final values of
  /// the accumulators.
  SmallVector<Value> materialize();

private:
  struct Accumulator {
    PointerUnion<Attribute, Value> initial;
    Combine combine;
  };
  struct Record {
    unsigned accumulator;
    Value value;
    SmallVector<LayerSlot> slots;
    RankedTensorType type;
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
  /// The records by the op that makes the value.
  llvm::MapVector<Operation *, SmallVector<Record>> records;
  /// For each op with regions, the accumulators that are recorded to inside it.
  DenseMap<Operation *, llvm::SetVector<unsigned>> nested;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ACCUMULATORS_H
