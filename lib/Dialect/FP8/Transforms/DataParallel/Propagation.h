//===- Propagation.h - Layouts through a step -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_PROPAGATION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_PROPAGATION_H

#include "RowDraws.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// Returns which extreme of two values an op computes. For booleans, `or` is
/// the maximum and `and` the minimum.
std::optional<Reduction> extremeOf(Operation *op);

/// Whether an operand is returned as an output of the step: neither state nor a
/// metric. Each rank returns what it has computed from its own rows.
bool isOutput(OpOperand &operand);

/// Computes the layouts of all values of a function from those of its
/// arguments. Collects the partial values that an op needs whole, because it is
/// not linear in them. An op that cannot be computed row by row is an error.
class Propagation {
public:
  /// `whole` are the partial values that are reduced over the ranks where they
  /// are computed; a run adds those that it finds. `parts` are reshapes that
  /// read such a value before it is reduced, and `gathers` those that gather
  /// the rows of all ranks. `trained` are the values that the loss and the
  /// state depend on.
  Propagation(func::FuncOp func, BatchOf batch, llvm::SetVector<Value> &whole,
              const llvm::DenseSet<Operation *> &parts,
              const llvm::SetVector<Operation *> &gathers,
              llvm::DenseSet<Value> trained)
      : func(func), batch(batch), whole(whole), parts(parts), gathers(gathers),
        trained(std::move(trained)), draws(batch) {}

  /// Sets the layout of an argument.
  void set(BlockArgument arg, const Layout &layout);
  /// If `isQuiet`, emits no errors and skips ops that have one.
  LogicalResult run(bool isQuiet = false);

  /// Returns the layout of a value as its readers see it.
  Layout layoutOf(Value value) const;
  /// Returns the layout of a value before it is reduced over the ranks.
  Layout partOf(Value value) const { return layouts.lookup(value); }
  /// Whether a value that is the same on all ranks follows from completed sums
  /// and arguments without constants, one of which could count rows.
  bool isFreeOfCounts(Value value) const;
  /// Whether a value is a parameter that the step has just updated by what
  /// follows from the rows of all ranks.
  bool isUpdate(Value value) const;
  /// Returns the ops that divide a completed sum by the number of its elements
  /// on one rank.
  ArrayRef<Operation *> getDivided() const { return divided; }
  /// Returns the operands that are the same for all rows and have the
  /// dimensions of rows, with these: all rows read them alike. Not those of
  /// loops and branches.
  const llvm::MapVector<OpOperand *, RowDims> &getSharedOperands() const {
    return shared;
  }
  /// Returns the op at which a run has failed, if it can be computed from the
  /// rows of all ranks.
  Operation *getUngathered() const { return ungathered; }
  /// Whether a run has failed at an op that cuts the rows of a batch that ranks
  /// share into parts: those of a rank would be of one part, or of a few.
  bool isCut() const { return cut; }
  /// Whether this run has found a value that must be whole and was not.
  bool hasFound() const { return found; }
  /// Makes each rank draw, for its own rows, the random numbers that the run
  /// has found to be the same on all ranks. Returns false if there are none.
  /// Each call makes fewer ops read what counts the rows of one device alike on
  /// all ranks; an error if it does not.
  FailureOr<bool> drawForRows();

private:
  LogicalResult visitBlock(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitByKind(Operation *op);
  LogicalResult visitElementwise(Operation *op);
  LogicalResult visitShape(Operation *op);
  LogicalResult visitDot(stablehlo::DotGeneralOp op);
  LogicalResult visitDotWithoutRows(stablehlo::DotGeneralOp op);
  LogicalResult visitConvolution(stablehlo::ConvolutionOp op);
  LogicalResult visitReduce(stablehlo::ReduceOp op);
  LogicalResult visitSlices(Operation *op);
  LogicalResult emitBesideRows(Operation *op);
  LogicalResult visitUpdate(stablehlo::DynamicUpdateSliceOp op);
  LogicalResult visitConcatenate(stablehlo::ConcatenateOp op);
  LogicalResult visitWindows(WindowsOp op);
  LogicalResult visitPad(stablehlo::PadOp op);
  LogicalResult visitGenerator(stablehlo::RngBitGeneratorOp op);
  LogicalResult visitGather(stablehlo::GatherOp op);
  LogicalResult visitScatter(stablehlo::ScatterOp op);
  LogicalResult visitScatterOfRows(stablehlo::ScatterOp op,
                                   const RowDims &indexRows);
  LogicalResult visitScatterIntoRows(stablehlo::ScatterOp op,
                                     const RowDims &rows);
  LogicalResult visitScatterOfWindows(stablehlo::ScatterOp op,
                                      const RowDims &rows);
  bool goToSamePlaces(stablehlo::ScatterOp op, const RowDims &rows);
  LogicalResult visitOneRow(Operation *op, const LayerSlot &turn);
  LogicalResult visitUpdateOfRow(stablehlo::DynamicUpdateSliceOp op,
                                 const LayerSlot &turn);
  LogicalResult visitAlongRows(Operation *op,
                               llvm::function_ref<bool(int64_t)> keeps,
                               llvm::StringRef why);
  LogicalResult visitSort(Operation *op, int64_t along);
  LogicalResult visitWindows(Operation *op, ArrayRef<int64_t> window);
  LogicalResult visitTurn(stablehlo::WhileOp loop, ArrayRef<Layout> carries);
  LogicalResult joinYielded(stablehlo::WhileOp loop, unsigned index,
                            Layout &carry, bool &changed);
  LogicalResult requireYieldedRows(stablehlo::WhileOp loop,
                                   ArrayRef<Layout> carries);
  void setResults(stablehlo::WhileOp loop, ArrayRef<Layout> carries);
  LogicalResult visitWhile(stablehlo::WhileOp loop);
  LogicalResult visitBranches(Operation *op);
  LogicalResult visitReturn(func::ReturnOp op);

  /// Returns the layout of a linear op on values with these layouts, some of
  /// them partial; none if the op is not linear.
  std::optional<Layout>
  linear(Operation *op, llvm::function_ref<Layout(Value)> layoutOf) const;
  std::optional<Layout>
  scaled(Operation *op, llvm::function_ref<Layout(Value)> layoutOf) const;
  /// Returns a layout as that of the part of a sum that the value follows from,
  /// if it was completed before; else as it is.
  Layout asPart(Value value) const;
  /// Makes all results replicated.
  LogicalResult replicate(Operation *op);
  LogicalResult assign(Operation *op, Layout layout);
  /// Assigns rows whose dimensions are mapped to the result's; emits an error
  /// if a row's dimension is gone.
  LogicalResult
  assignRows(Operation *op, ArrayRef<RowDim> rows,
             llvm::function_ref<std::optional<int64_t>(int64_t)> map,
             StringRef why);
  LogicalResult requireWhole(Operation *op, Value value);
  /// Notes that `op` reads a value that is the same for these rows.
  void shareOperand(Operation *op, Value value, ArrayRef<RowDim> rows);
  /// Emits an error unless `value` has these rows, or is the same for all rows.
  LogicalResult requireRows(Operation *op, Value value, ArrayRef<RowDim> rows);
  /// Emits an error unless `value` is of the row of this turn, or the same for
  /// all rows.
  LogicalResult requireRow(Operation *op, Value value, const LayerSlot &turn);
  LogicalResult requireLike(Operation *op, Value value, const Layout &layout) {
    return layout.turn ? requireRow(op, value, *layout.turn)
                       : requireRows(op, value, layout.rows);
  }
  /// Returns how the rows of a dimension that a loop takes one by one are
  /// counted, if `op` takes one of them.
  std::optional<LayerSlot> matchOneRow(Operation *op, ArrayRef<RowDim> rows);
  bool isSameInTurns(Value value, const LayerSlot &turn);
  LogicalResult emitRowError(Operation *op, const llvm::Twine &why);
  LogicalResult emitCut(Operation *op);
  bool areInOrder(ArrayRef<RowDim> rows) const;
  bool canGather(Operation *op) const;
  /// Whether a row may not read a value, because it is mixed, and the gradients
  /// of rows of other ranks would follow. Metrics have no gradients.
  bool isTooMixed(Operation *op, Value value) const;
  bool isMixed(Operation *op) const;
  bool followsParameter(Value value) const;
  bool learnedOf(Operation *op) const;
  bool anyOf(Operation *op, Layout::Kind kind) const;

  func::FuncOp func;
  BatchOf batch;
  llvm::SetVector<Value> &whole;
  const llvm::DenseSet<Operation *> &parts;
  const llvm::SetVector<Operation *> &gathers;
  llvm::DenseSet<Value> trained;
  llvm::DenseMap<Value, Layout> layouts;
  RowDraws draws;
  SmallVector<std::pair<Value, RowDims>> drawn;
  SmallVector<Operation *> divided;
  llvm::MapVector<OpOperand *, RowDims> shared;
  bool found = false;
  bool cut = false;
  Operation *ungathered = nullptr;
  /// The number of rows of all batch arguments; 0 if these differ, or have
  /// micro-batches.
  std::optional<int64_t> allRows;
  /// Nonzero while iterations of a loop before the last are visited: these emit
  /// no errors.
  unsigned suppressErrors = 0;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_PROPAGATION_H
