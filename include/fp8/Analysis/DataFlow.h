//===- DataFlow.h - Dependences between the values of a step ----*- C++ -*-===//
//
// The analysis looks through loops and branches: a loop-carried value depends
// on its initial value and on the value that the body yields, the result of a
// branch on the values of all its regions. Regions read values from outside
// like any operation.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_ANALYSIS_DATAFLOW_H
#define FP8_ANALYSIS_DATAFLOW_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include <vector>

namespace mlir {
namespace fp8 {

inline Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}
inline bool isFloat(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}
inline bool isScalar(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || tensor.getRank() == 0;
}
inline ArrayRef<int64_t> shapeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}
inline bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<stablehlo::ConstantOp, stablehlo::IotaOp>(op);
}

/// Returns true if `value` is a constant of zeros, perhaps broadcast or
/// converted.
bool isZero(Value value);

/// Returns the number that all elements of a constant equal, perhaps broadcast
/// or converted.
std::optional<double> getNumber(Value value);

/// Returns true if `value` repeats one element along a dimension.
bool isSpreadAlong(Value value, int64_t dim);

/// Calls `visit` with every value that `use` passes its value on to unchanged,
/// if it is a carry of a loop or behind a barrier. Otherwise returns false.
bool forEachCarry(OpOperand &use, llvm::function_ref<void(Value)> visit);

/// Calls `visit` with every value that `use` passes its value on to unchanged:
/// into a region, or out of one.
void forEachPassage(OpOperand &use, llvm::function_ref<void(Value)> visit);

using ValueSet = llvm::DenseSet<Value>;

/// Returns the value that a loop's body passes to the next iteration, or that a
/// branch's region returns, for result `index`.
inline Value yielded(Region &region, unsigned index) {
  return region.front().getTerminator()->getOperand(index);
}

/// Returns the values of which a select or a branch chooses `value`; none if it
/// is no choice.
SmallVector<Value> choicesOf(Value value);

/// Calls `visit` with every value that `value` is directly computed from. A
/// loop-carried value depends on its own next value, not on the others.
void forEachSource(Value value, function_ref<void(Value)> visit);

/// Returns everything that `roots` are computed from, except `barred`. Loop
/// arguments in `carried` stop at their initial value, as if the loop ran once.
ValueSet sliceOf(ArrayRef<Value> roots, const ValueSet &carried,
                 const ValueSet &barred = {});

/// Returns what gradients of `root` can flow to: the slice along floating-point
/// values only, except `barred`.
ValueSet differentiableSliceOf(Value root, const ValueSet &carried,
                               const ValueSet &barred = {});

/// Finds which of some sources each value of a function depends on, in one walk
/// in program order. If `together`, all sources count as one. Values in
/// `barred` depend on nothing.
class Dependence {
public:
  Dependence(func::FuncOp func, ArrayRef<Value> sources,
             const ValueSet &carried = {}, bool together = false,
             const ValueSet &barred = {});

  bool depends(Value value, unsigned source) const;
  bool dependsOnAny(Value value) const;
  /// Returns true if `value` depends on a source that `accept` accepts.
  bool dependsOnAny(Value value, function_ref<bool(unsigned)> accept) const;

private:
  using Word = uint64_t;
  void visit(Block &block);
  void visit(Operation &op);
  Word *row(Value value);
  const Word *find(Value value) const;
  /// Adds the dependences of `from` to those of `to`; returns true if any is
  /// new.
  bool add(Value to, Value from);

  unsigned words;
  ValueSet carried, barred;
  DenseMap<Value, size_t> rows;
  std::vector<Word> bits;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_DATAFLOW_H
