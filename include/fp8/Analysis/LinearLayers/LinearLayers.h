//===- LinearLayers.h - Linear layers, found by data flow -------*- C++ -*-===//
//
// Finds the linear layers of a step and the role of every dot in them: forward,
// gradient of the input (dgrad), gradient of the weight (wgrad). The analysis
// looks at which dots read a parameter, which of its dimensions they contract,
// and whether the loss depends on them. Names only label the result.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_LINEARLAYERS_LINEARLAYERS_H
#define FP8_ANALYSIS_LINEARLAYERS_LINEARLAYERS_H

#include "fp8/Dialect/FP8/IR/FP8Enums.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace mlir {
namespace fp8 {

struct DotInfo {
  /// The `stablehlo.dot_general`.
  Operation *dot = nullptr;
  DotRole role = DotRole::Other;
  /// Whether no other layer of the forward pass reads the output of its layer.
  bool head = false;
  OperandKind lhs = OperandKind::Other, rhs = OperandKind::Other;
  /// The tree path of the layer's parameter; empty without one.
  std::string layer;
  /// If the dot reads a parameter itself, in any arrangement: the dimensions of
  /// the parameter that it contracts.
  SmallVector<int64_t, 2> contractedOfParameter;
  /// Whether it reads all of that parameter, not a slice of a stack.
  bool readsWholeParameter = false;
  /// Why the dot belongs to no linear layer.
  std::string why;
  /// The `stablehlo.while` ops around the dot, the innermost first.
  SmallVector<Operation *, 2> loops;
  /// Whether the dot is in a branch of a `stablehlo.if` or `stablehlo.case`.
  bool inBranch = false;
  /// Whether the dot repeats a forward dot for the backward pass.
  bool recomputed = false;
  /// Whether the dot is one of an attention with an exponential between its
  /// dots: a softmax. (Other batched products of two activations have the role
  /// too.)
  bool ofSoftmax = false;
  /// The numbers of the layers that the dot may belong to; several if a weight
  /// has more than one forward dot. Equal for the dots of one layer.
  SmallVector<unsigned, 2> layers;

  bool isLinearLayer() const {
    return role == DotRole::Forward || role == DotRole::Dgrad ||
           role == DotRole::Wgrad;
  }
};

/// Returns the operand of a reshape, a transpose, a barrier or of windows. It
/// has the elements of `value` in another arrangement; windows repeat them.
/// Returns null for other values.
Value getLayoutSource(Value value);

/// Returns the tree path of a parameter of a function; `arg<N>` if it has none.
std::string getParameterPath(func::FuncOp function, BlockArgument parameter);

/// All dots of a function in program order, with their roles. The attributes
/// `fp8.role` and `fp8.kind` of the import stage tell arguments apart; the
/// result of kind `loss` defines the forward pass.
class LinearLayers {
public:
  explicit LinearLayers(func::FuncOp function);

  ArrayRef<DotInfo> getDots() const { return dots; }

  /// Returns the uses by the backward pass of float values that the forward
  /// pass has computed from data: the saved activations.
  ArrayRef<OpOperand *> getSavedUses() const { return savedUses; }

  /// Returns true if the loss depends on the results of `op`.
  bool isForward(Operation *op) const { return forward.contains(op); }

  /// Returns true if any argument is marked as a parameter or as frozen.
  bool hasParameters() const { return parameters; }

private:
  SmallVector<DotInfo> dots;
  SmallVector<OpOperand *> savedUses;
  DenseSet<Operation *> forward;
  bool parameters = false;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_LINEARLAYERS_LINEARLAYERS_H
