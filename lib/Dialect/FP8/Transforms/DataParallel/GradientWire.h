//===- GradientWire.h - How gradients travel between ranks ------*- C++ -*-===//
//
// FP8-LM (arXiv 2310.18313), section 3.1, scales gradients on the wire by mu,
// which is state of the step.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_GRADIENTWIRE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_GRADIENTWIRE_H

#include "../LayerSlots.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fp8 {

/// The wire formats of the reductions of a function.
class GradientWire {
public:
  GradientWire(func::FuncOp func, const AllReduceRecipe &recipe)
      : func(func), recipe(recipe) {}

  const AllReduceRecipe &getRecipe() const { return recipe; }
  /// Lets a reduction travel as the recipe says, if it is one of a gradient,
  /// and notes on it why it does or does not.
  void choose(AllReduceOp reduce, bool isGradient);
  /// Gives the reductions that need it their mu, through the loops and branches
  /// around them.
  void addMus();

private:
  StringRef getReasonNotNarrowed(Value value, bool isGradient) const;
  AllReduceOp narrow(OpBuilder &builder, AllReduceOp reduce, Value mu) const;
  BlockArgument addMu(AllReduceOp reduce, ArrayRef<LayerSlot> slots);

  func::FuncOp func;
  AllReduceRecipe recipe;
  llvm::StringSet<> muNames;
  SmallVector<AllReduceOp> withoutMu;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_GRADIENTWIRE_H
