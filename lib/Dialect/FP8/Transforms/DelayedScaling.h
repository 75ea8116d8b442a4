//===- DelayedScaling.h - Scales from earlier steps -------------*- C++ -*-===//
//
// Delayed scaling is state of the step: for every quantized tensor a history of
// amaxes and the quantizer (the reciprocal of the scale) that it gave, as
// arguments and results with tree paths of their own. A step quantizes by the
// quantizer it finds, and leaves the next one:
//
//   history[0] = max(history[0], amax)   (of all micro-batches)
//   quantizer  = rule(max(history)), or rule(history[0])
//   history    = roll(history, -1), history[0] = 0
//
// which is Transformer Engine's order of things. An amax of 0 or one that is
// not finite keeps the old quantizer, and a step with a non-finite amax
// anywhere changes no history: its update is not taken either. A call that is a
// micro-batch of a later update does the first line alone, and one whose update
// is skipped does nothing (TakenUpdate.h). A quantizer of 0
// is one that was never set: then the tensor's own amax scales it (or 1, where
// the recipe says so), so that all of this state begins as zeros.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DELAYEDSCALING_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DELAYEDSCALING_H

#include "Accumulators.h"
#include "TakenUpdate.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <string>
#include <vector>

namespace mlir {
namespace fp8 {

/// The scale states of one function.
class DelayedScaling {
public:
  explicit DelayedScaling(func::FuncOp function)
      : function(function), builder(function.getContext()), amaxes(function) {}

  struct Scale {
    Value scale, quantizer;
  };

  /// How scales follow from amaxes, one for each tile of the tensor.
  struct Rule {
    RankedTensorType type;
    ScaleRuleAttr rule;
    TypeAttr format;
  };

  /// An amax, and the slots of its state where it is found.
  struct Amax {
    Value value;
    SmallVector<LayerSlot> slots;
  };

  /// Scale and quantizer of the tensor called `name`, made where `at` stands,
  /// and records its amax. Tensors of the same name share a state: those that
  /// another pass over the layer computes again. `current` is the scale that
  /// the amax would give. The amax that is recorded is `found`, if it is known
  /// elsewhere. The first scale is the one of the amax, or 1, or what
  /// `makeFirst` makes.
  Scale get(OpBuilder &at, StringRef name, ArrayRef<LayerSlot> slots,
            const OperandRecipe &recipe, ComputeScaleOp current,
            const std::optional<Amax> &found = std::nullopt,
            function_ref<Scale(Value unset)> makeFirst = nullptr);

  /// Records the amax of the tensor called `name` alone; `current` is erased if
  /// nothing reads it.
  void record(StringRef name, ArrayRef<LayerSlot> slots,
              const OperandRecipe &recipe, ComputeScaleOp current);

  /// Scale and quantizer of a state that is known by now; without slots those
  /// of all layers. None if there is no such state, or if its first step needs
  /// the tensor's amax.
  std::optional<Scale> read(OpBuilder &at, Location loc, StringRef name,
                            ArrayRef<LayerSlot> slots);

  /// The number of the state called `name`, or of a new one, of tensors with
  /// these slots.
  unsigned getState(StringRef name, ArrayRef<LayerSlot> slots,
                    const OperandRecipe &recipe, const Rule &rule);

  /// The name of a state. A second format, tile or shape under one name gets a
  /// number behind it.
  StringRef getName(unsigned state) const { return states[state].name; }

  /// Adds this step's amax of a state, known at the end of the function, to
  /// those that are recorded.
  void addAmax(unsigned state, Value amax) { given.push_back({state, amax}); }

  /// The quantizer of the next step, after `addResults`.
  Value getNextQuantizer(unsigned state) const {
    return states[state].nextQuantizer;
  }

  /// Scale and quantizer of a state that holds the quantizer `kept`, or the
  /// first ones if it was never set: `first`, or what `makeFirst` makes.
  static Scale orFirst(OpBuilder &at, Location loc, Value kept, Scale first,
                       function_ref<Scale(Value unset)> makeFirst = nullptr);

  /// Adds the new states to the function's results.
  void addResults() { addResults(findTakenUpdate(function)); }
  /// The same where it is known when the step takes its update.
  void addResults(TakenUpdate when);

  bool empty() const { return states.empty(); }

private:
  struct State {
    std::string name;
    OperandRecipe recipe;
    ScaleRuleAttr rule;
    TypeAttr format;
    RankedTensorType type; ///< One quantizer for each slot and tile.
    BlockArgument history, quantizer;
    Value nextQuantizer = {};
  };
  void reduceOverRanks(MutableArrayRef<Value> amaxes);
  void update(State &state, Value amax, const TakenUpdate &when);
  void addResult(const State &state, StringRef part, Value value);

  func::FuncOp function;
  OpBuilder builder;
  std::vector<State> states;
  llvm::DenseSet<std::pair<Value, unsigned>> recorded;
  SmallVector<std::pair<unsigned, Value>> given; ///< Amaxes of states.
  Accumulators amaxes;                           ///< This step's, by state.
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DELAYEDSCALING_H
