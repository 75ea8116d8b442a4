//===- DataFlow.h - What a value of a step is computed from -----*- C++ -*-===//
//
// Loops and branches are seen through: a carried value depends on its initial
// value and on what the body makes of it, the result of a branch on each of its
// values. Regions read values from outside like any operation.
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

/// Whether `value` is a constant of zeros, perhaps broadcast or converted.
bool isZero(Value value);

using ValueSet = llvm::DenseSet<Value>;

/// The value that iteration passes to the next one for a carry of a loop, or
/// that a branch gives for a result.
inline Value yielded(Region &region, unsigned index) {
  return region.front().getTerminator()->getOperand(index);
}

/// Calls `visit` with every value that `value` is directly computed from. A
/// carried value of a loop depends on its own carry, not on the others.
void forEachSource(Value value, function_ref<void(Value)> visit);

/// Everything that `roots` are computed from, without `barred`. Arguments of
/// loops in `carried` stop at their initial value, as if the loop ran once.
ValueSet sliceOf(ArrayRef<Value> roots, const ValueSet &carried,
                 const ValueSet &barred = {});

/// What gradients of `root` can flow to: the slice along floating-point values
/// only, without `barred`.
ValueSet differentiableSliceOf(Value root, const ValueSet &carried,
                               const ValueSet &barred = {});

/// Which of some sources each value of a function depends on, found in one walk
/// in program order; `together`, they count as one source. What is `barred`
/// depends on nothing.
class Dependence {
public:
  Dependence(func::FuncOp func, ArrayRef<Value> sources,
             const ValueSet &carried = {}, bool together = false,
             const ValueSet &barred = {});

  bool depends(Value value, unsigned source) const;
  bool dependsOnAny(Value value) const;
  /// Whether it depends on a source that `accept` takes.
  bool dependsOnAny(Value value, function_ref<bool(unsigned)> accept) const;

private:
  using Word = uint64_t;
  void visit(Block &block);
  void visit(Operation &op);
  Word *row(Value value);
  const Word *find(Value value) const;
  /// Adds what `from` depends on; true if that is new.
  bool add(Value to, Value from);

  unsigned words;
  ValueSet carried, barred;
  DenseMap<Value, size_t> rows;
  std::vector<Word> bits;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_ANALYSIS_DATAFLOW_H
