//===- DelayedScaling.h - Scales from earlier steps -------------*- C++ -*-===//
//
// Delayed scaling is state of the step: for every quantized tensor a history of
// amaxes and the quantizer (the reciprocal of the scale) that it gave, as
// arguments and results with tree paths of their own. A step quantizes by the
// quantizer it finds, and leaves the next one:
//
//   history[0] = amax of this step       (the largest of all micro-batches)
//   quantizer  = rule(max(history)), or rule(history[0])
//   history    = roll(history, -1), history[0] = 0
//
// which is Transformer Engine's order of things. An amax of 0 or one that is
// not finite keeps the old quantizer, and a step with a non-finite amax
// anywhere changes no history: its update is not taken either. A quantizer of 0
// is one that was never set: then the tensor's own amax scales it (or 1, where
// the recipe says so), so that all of this state begins as zeros.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DELAYEDSCALING_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DELAYEDSCALING_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <string>
#include <vector>

namespace mlir {
namespace fp8 {

/// The scale states of one function.
class DelayedScaling {
public:
  explicit DelayedScaling(func::FuncOp function)
      : function(function), builder(function.getContext()) {}

  /// One layer of a loop over layers: the loop's counter gives it as
  /// `scale * counter + offset`.
  struct Slot {
    BlockArgument counter;
    int64_t scale, offset;
    int64_t count; ///< How many there are.
    bool operator==(const Slot &other) const {
      return counter == other.counter && scale == other.scale &&
             offset == other.offset && count == other.count;
    }
  };

  struct Scale {
    Value scale, quantizer;
  };

  /// Scale and quantizer of the tensor called `name`, made where `at` stands,
  /// and records `amax`. Tensors of the same name share a state: those that
  /// another pass over the layer computes again. `current` is the scale that
  /// the amax would give.
  Scale get(OpBuilder &at, StringRef name, ArrayRef<Slot> slots,
            const OperandRecipe &recipe, ComputeScaleOp current);

  /// Adds the new states to the function's results.
  void finish();

  bool empty() const { return states.empty(); }

private:
  struct State {
    std::string name;
    OperandRecipe recipe;
    ScaleRuleAttr rule;
    TypeAttr format;
    RankedTensorType type; ///< Of one quantizer for each slot and tile.
    BlockArgument history, quantizer;
  };
  /// An amax to be recorded, after `op`.
  struct Record {
    unsigned state;
    Value amax;
    SmallVector<Slot> slots;
  };

  unsigned getState(StringRef name, ArrayRef<Slot> slots,
                    const OperandRecipe &recipe, ComputeScaleOp current);
  SmallVector<Value> startIndices(OpBuilder &at, Location loc,
                                  ArrayRef<Slot> slots, int64_t rank);
  Value slice(OpBuilder &at, Location loc, Value stack, ArrayRef<Slot> slots,
              RankedTensorType type);
  void record(const Record &record, MutableArrayRef<Value> amaxes);
  void thread(Block &block, MutableArrayRef<Value> amaxes);
  void threadLoop(Operation *loop, ArrayRef<unsigned> touched,
                  MutableArrayRef<Value> amaxes);
  void threadBranches(Operation *op, ArrayRef<unsigned> touched,
                      MutableArrayRef<Value> amaxes);
  Operation *rebuild(Operation *op, ArrayRef<Value> operands,
                     ArrayRef<Type> results);
  void update(const State &state, Value amax, Value allFinite);
  void addResult(const State &state, StringRef part, Value value);

  func::FuncOp function;
  OpBuilder builder;
  std::vector<State> states;
  llvm::MapVector<Operation *, SmallVector<Record>> records; // by amax op
  /// The states that are recorded below an op with regions.
  DenseMap<Operation *, llvm::SetVector<unsigned>> nested;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DELAYEDSCALING_H
