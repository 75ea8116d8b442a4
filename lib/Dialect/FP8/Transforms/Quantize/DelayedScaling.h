//===- DelayedScaling.h - Scales from earlier steps -------------*- C++ -*-===//
//
// Delayed scaling has state in the step: for every quantized tensor a history
// of amaxes and the quantizer (the reciprocal of the scale) that follows from
// it, as arguments and results with tree paths of their own. A step quantizes
// with the quantizer that it receives, and computes the next one:
//
//   history[0] = max(history[0], amax)   (of all micro-batches)
//   quantizer  = rule(max(history)), or rule(history[0])
//   history    = roll(history, -1), history[0] = 0
//
// which is Transformer Engine's order. An amax that is 0 or not finite keeps
// the old quantizer. A step with a non-finite amax anywhere changes no history,
// because its update is not taken either. A call that is a micro-batch of a
// later update runs the first line alone, and a call whose update is skipped
// runs nothing (TakenUpdate.h). A quantizer of 0 has never been set: the
// tensor's own amax then gives the scale (or it is 1, if the recipe says so),
// so that all of this state can begin as zeros.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_DELAYEDSCALING_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_DELAYEDSCALING_H

#include "../Accumulators.h"
#include "../SignatureExtension.h"
#include "../TakenUpdate.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace mlir {
namespace fp8 {

/// The scale states of one function.
class DelayedScaling {
public:
  explicit DelayedScaling(func::FuncOp function)
      : function(function), builder(function.getContext()), signature(function),
        amaxes(function) {}

  struct Scale {
    Value scale, quantizer;
  };

  /// How scales follow from amaxes, one for each tile of the tensor.
  struct Rule {
    RankedTensorType type;
    ScaleRuleAttr rule;
    TypeAttr format;
  };

  /// An amax, and its slots at the place where it is computed.
  struct Amax {
    Value value;
    SmallVector<LayerSlot> slots;
  };

  /// Returns scale and quantizer of the tensor called `name`, made at `at`, and
  /// records its amax. Tensors of the same name share a state: another pass
  /// over the layer recomputes the tensor. `current` is the scale that the
  /// tensor's own amax gives. If `found` is set, its amax is recorded instead.
  /// The first scale is the one of the amax, or 1, or the result of
  /// `makeFirst`.
  Scale get(OpBuilder &at, StringRef name, ArrayRef<LayerSlot> slots,
            const OperandRecipe &recipe, ComputeScaleOp current,
            const std::optional<Amax> &found = std::nullopt,
            function_ref<Scale(Value unset)> makeFirst = nullptr);

  /// Only records the amax of the tensor called `name`; erases `current` if
  /// nothing reads it.
  void record(StringRef name, ArrayRef<LayerSlot> slots,
              const OperandRecipe &recipe, ComputeScaleOp current);

  /// Returns scale and quantizer, of this shape, of an existing state called
  /// `name`; without slots those of all layers. None if there is no such state,
  /// or if its first step needs the tensor's amax.
  std::optional<Scale> read(OpBuilder &at, Location loc, StringRef name,
                            ArrayRef<LayerSlot> slots, ArrayRef<int64_t> shape);

  /// Returns the number of the state called `name` for tensors with these
  /// slots; adds the state if there is none.
  unsigned getState(StringRef name, ArrayRef<LayerSlot> slots,
                    const OperandRecipe &recipe, const Rule &rule);

  /// Returns the name of a state. A second format, tile or shape under one name
  /// gets a numeric suffix.
  StringRef getName(unsigned state) const { return states[state].name; }

  /// Adds an amax of a state that this step knows at the end of the function to
  /// the recorded ones.
  void addAmax(unsigned state, Value amax) { given.push_back({state, amax}); }

  /// Returns the quantizer of the next step; valid after `addResults`.
  Value getNextQuantizer(unsigned state) const {
    return states[state].nextQuantizer;
  }

  /// Returns scale and quantizer of a state that holds the quantizer `kept`. If
  /// it was never set, these are `first`, or the result of `makeFirst`.
  static Scale orFirst(OpBuilder &at, Location loc, Value kept, Scale first,
                       function_ref<Scale(Value unset)> makeFirst = nullptr);

  /// Adds the new states to the function's results.
  void addResults() {
    signature.apply();
    addResults(findTakenUpdate(function));
  }
  /// The same, given when the step takes its update.
  void addResults(TakenUpdate when);

  bool empty() const { return states.empty(); }

  /// The arguments of the states, which the function's type lacks until
  /// `addResults` or a call of `apply`. Other new arguments go there, too.
  SignatureExtension &getSignature() { return signature; }

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
  std::optional<unsigned>
  findState(StringRef name, function_ref<bool(const State &)> matches) const;
  void reduceOverRanks(MutableArrayRef<Value> amaxes);
  Value makeNextQuantizer(const State &state, Value amax);
  Value makeNextHistory(const State &state, Value row, const TakenUpdate &when);
  void update(State &state, Value amax, const TakenUpdate &when);

  func::FuncOp function;
  OpBuilder builder;
  SignatureExtension signature;
  std::vector<State> states;
  llvm::StringMap<unsigned> numbers; ///< Of the states, by name.
  llvm::DenseSet<std::pair<Value, unsigned>> recorded;
  SmallVector<std::pair<unsigned, Value>> given; ///< Amaxes of states.
  Accumulators amaxes;                           ///< This step's, by state.
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_DELAYEDSCALING_H
