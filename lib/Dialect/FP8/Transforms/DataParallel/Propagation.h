//===- Propagation.h - Layouts through a step -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_PROPAGATION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_PROPAGATION_H

#include "RowDraws.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// The layouts of all values of a function, from those of its arguments. What
/// an op needs whole, since it is not linear in it, is collected; an op that
/// cannot be computed row by row is an error.
class Propagation {
public:
  /// `whole`: parts that are reduced over the ranks where they are computed;
  /// grows by one run's findings.
  Propagation(func::FuncOp func, llvm::SetVector<Value> &whole)
      : func(func), whole(whole) {}

  /// Sets the layout of an argument.
  void set(BlockArgument arg, const Layout &layout) { layouts[arg] = layout; }
  /// `isQuiet`: no errors are told, and an op that has one is passed by.
  LogicalResult run(bool isQuiet = false);

  /// What a value is, to those who read it.
  Layout layoutOf(Value value) const;
  /// What it is before it is reduced over the ranks.
  Layout partOf(Value value) const { return layouts.lookup(value); }
  /// Has this run found a value that must be whole and was not?
  bool hasFound() const { return found; }
  /// Has each rank draw for its own rows the random numbers that the run has
  /// found to be the same on all ranks. False: there are none.
  bool drawForRows();

private:
  LogicalResult visitBlock(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitByKind(Operation *op);
  LogicalResult visitElementwise(Operation *op);
  LogicalResult visitShape(Operation *op);
  LogicalResult visitDot(stablehlo::DotGeneralOp op);
  LogicalResult visitConvolution(stablehlo::ConvolutionOp op);
  LogicalResult visitReduce(stablehlo::ReduceOp op);
  LogicalResult visitSlices(Operation *op);
  LogicalResult visitUpdate(stablehlo::DynamicUpdateSliceOp op);
  LogicalResult visitConcatenate(stablehlo::ConcatenateOp op);
  LogicalResult visitPad(stablehlo::PadOp op);
  LogicalResult visitGenerator(stablehlo::RngBitGeneratorOp op);
  LogicalResult visitGather(stablehlo::GatherOp op);
  LogicalResult visitScatter(stablehlo::ScatterOp op);
  LogicalResult visitScatterOfRows(stablehlo::ScatterOp op,
                                   const RowDims &indexRows);
  LogicalResult visitScatterOfWindows(stablehlo::ScatterOp op,
                                      const RowDims &rows);
  LogicalResult visitAlongRows(Operation *op,
                               llvm::function_ref<bool(int64_t)> keeps,
                               llvm::StringRef why);
  LogicalResult visitSort(Operation *op, int64_t dim);
  LogicalResult visitWindows(Operation *op, ArrayRef<int64_t> window);
  LogicalResult visitWhile(stablehlo::WhileOp loop);
  LogicalResult visitBranches(Operation *op);
  LogicalResult visitReturn(func::ReturnOp op);

  /// The layout of a linear elementwise op of parts; none if it is not linear.
  std::optional<Layout> linear(Operation *op);
  /// All results are replicated.
  LogicalResult replicate(Operation *op);
  LogicalResult assign(Operation *op, Layout layout);
  /// Rows whose dimensions are mapped to the result's; an error if a row's
  /// dimension is gone.
  LogicalResult
  assignRows(Operation *op, ArrayRef<RowDim> rows,
             llvm::function_ref<std::optional<int64_t>(int64_t)> map,
             StringRef why);
  LogicalResult requireWhole(Operation *op, Value value);
  /// An error unless `value` is rows of this kind, or the same for all of them.
  LogicalResult requireRows(Operation *op, Value value, ArrayRef<RowDim> rows);
  LogicalResult mixes(Operation *op, const llvm::Twine &why);
  bool learnedOf(Operation *op) const;
  bool anyOf(Operation *op, Layout::Kind kind) const;

  func::FuncOp func;
  llvm::SetVector<Value> &whole;
  llvm::DenseMap<Value, Layout> layouts;
  RowDraws draws;
  SmallVector<std::pair<Value, RowDims>> drawn;
  bool found = false;
  /// Inside the turns of a loop before the last: errors are not yet told.
  unsigned quiet = 0;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_PROPAGATION_H
