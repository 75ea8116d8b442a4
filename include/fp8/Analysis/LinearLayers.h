//===- LinearLayers.h - Linear layers, found by data flow -------*- C++ -*-===//
//
// Finds the linear layers of a step and the role of every dot in them: forward,
// gradient of the input (dgrad), gradient of the weight (wgrad). Names play no
// part in it: what counts is which dots read a parameter, over which of its
// dimensions they contract, and whether the loss depends on them. Names only
// label the result.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_LINEARLAYERS_H
#define FP8_ANALYSIS_LINEARLAYERS_H

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
  /// Of a layer whose output no other layer of the forward pass reads.
  bool head = false;
  OperandKind lhs = OperandKind::Other, rhs = OperandKind::Other;
  /// The tree path of the layer's parameter; empty without one.
  std::string layer;
  /// Of a dot that reads a parameter itself, in whatever arrangement: those of
  /// the parameter's dimensions that it contracts.
  SmallVector<int64_t, 2> contractedOfParameter;
  /// Why the dot belongs to no linear layer.
  std::string why;
  /// The `stablehlo.while` ops that the dot is in, from the inside out.
  SmallVector<Operation *, 2> loops;
  /// Whether the dot is in a branch of a `stablehlo.if` or `stablehlo.case`.
  bool inBranch = false;
  /// Repeats a forward dot for the backward pass.
  bool recomputed = false;
  /// The numbers of the layers that the dot may belong to: several where a
  /// weight has more than one forward dot. Equal for the dots of one layer.
  SmallVector<unsigned, 2> layers;

  bool isLinearLayer() const {
    return role == DotRole::Forward || role == DotRole::Dgrad ||
           role == DotRole::Wgrad;
  }
};

/// The value whose elements `value` shows in another arrangement: the operand
/// of a reshape, a transpose or a barrier. Null if `value` is none of these.
Value getLayoutSource(Value value);

/// The value whose elements `value` shows in the same order: the operand of a
/// reshape, or of a broadcast that only adds dimensions of one element. Null if
/// `value` is none of these.
Value getReshapeSource(Value value);

/// The tree path of a parameter of a function: `arg<N>` if it has none.
std::string getParameterPath(func::FuncOp function, BlockArgument parameter);

/// All dots of a function in program order, with their roles. Arguments are
/// told apart by the marks `fp8.role` and `fp8.kind` of the import stage, the
/// forward pass by the result of kind `loss`.
class LinearLayers {
public:
  explicit LinearLayers(func::FuncOp function);

  ArrayRef<DotInfo> getDots() const { return dots; }

  /// Where the backward pass reads what the forward pass has computed of floats
  /// from data: what is saved for it.
  ArrayRef<OpOperand *> getSavedUses() const { return savedUses; }

  /// Whether the loss depends on what an op computes.
  bool isForward(Operation *op) const { return forward.contains(op); }

  /// Whether any argument is marked as a parameter or as frozen.
  bool hasParameters() const { return parameters; }

private:
  SmallVector<DotInfo> dots;
  SmallVector<OpOperand *> savedUses;
  DenseSet<Operation *> forward;
  bool parameters = false;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_LINEARLAYERS_H
