//===- DotEmitter.h - The code of a dot for a block of a GPU ----*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTEMITTER_H
#define FP8_LIB_CODEGEN_GPU_DOTEMITTER_H

#include "../Contraction/Places.h"
#include "DotPlan.h"

namespace mlir::fp8::gpu_codegen {

using contraction::Places;
using contraction::Ref;

/// Emits what the plan of a dot says.
class DotEmitter : public contraction::PlaceBuilder {
public:
  DotEmitter(OpBuilder &b, Location loc, const DotPlan &plan, Value thread)
      : PlaceBuilder(b, loc, plan.scaled), plan(plan), thread(thread) {}

  /// The scratch of `tile` is shared memory.
  LogicalResult emit(const ContractionTile &tile);

private:
  using Values = SmallVector<Value>;

  /// The part of an operand's tile that this thread brings to shared memory.
  struct Copy {
    unsigned operand = 0;
    /// Of each of its pieces: the row of the tile, and the first k of a stage.
    Values row, depth;
    int64_t pieces = 0;
    /// The extent of a piece along the rows and along k.
    int64_t pieceRows = 1, pieceDepth = 1;
    /// A piece is the same in shared memory; else it is made of an access for
    /// each element along k.
    bool asItLies = false;
    int64_t accesses() const { return asItLies ? 1 : pieceDepth; }
  };

  /// A part of k whose products are added up: `extent` of them, from `k0` on.
  struct Run {
    std::array<Copy, 2> copies;
    Value k0;
    int64_t extent = 0, stages = 0;
  };

  // Loops.
  void forOuter(ArrayRef<Dim> dims, Places places);
  void tiles(Places places);
  void tile(Places places, Value firstRow, Value firstColumn);
  Values sumOuterK(ArrayRef<Dim> dims, Places places, Values sums);
  Values sumRuns(Places places, Values sums);
  Values sumRun(Places places, Value k0, int64_t extent, Values sums);
  Values forValues(int64_t to, int64_t step, ValueRange carried,
                   function_ref<Values(Value, ValueRange)> body);

  // Global to shared memory.
  Copy planCopy(unsigned operand);
  /// An access of a piece in global memory, and whether it lies in the dot
  /// (null: it does).
  struct Source {
    Ref ref;
    Value exists;
  };
  Source sourceOf(const Copy &copy, size_t piece, int64_t depth, Places places,
                  Value k0, Value kEnd);
  Value patternOf(unsigned operand, Value line);
  Value placeOf(unsigned operand, Value row, Value depth, Value stage);
  void ifOwned(const Copy &copy, int64_t piece, function_ref<void()> body);
  Value loadVector(const Source &source, unsigned operand);
  void store(const Copy &copy, ValueRange values, Value stage);
  Value convert(Value value, unsigned operand);

  Value endOf(const Run &run, Value at);
  Value isStage(const Run &run, Value at);
  Values loadStage(Places places, const Run &run, Value at);
  void storeStage(const Run &run, ValueRange values, Value stage);
  Values ifStage(const Run &run, Value at, Values values,
                 function_ref<Values()> body);
  void startCopies(Places places, const Run &run, Value at, Value stage);
  void startFirstCopies(Places places, const Run &run);
  void startNextCopies(Places places, const Run &run, Value at);
  void waitForCopies();

  // wgmma.
  void showToWgmma();
  Value descriptorOf(unsigned operand, Value stage);
  Value startProducts(Value stage, ValueRange sums);
  Values waitForProducts(Value made, unsigned count);
  Values sumRunByWgmma(Places places, const Run &run, Values sums);

  // Sums.
  Values computeStage(Value stage, Values sums);
  Values multiplyFragments(Value stage, Values sums);
  Values multiplyScalars(Value stage, Values sums);
  int64_t matricesOf(unsigned operand) const;
  Value matrixLine(unsigned operand, Value stage, int64_t tile, int64_t step);
  Values loadFragments(unsigned operand, Value stage, int64_t tile,
                       int64_t step);
  Values mma(ValueRange lhs, ValueRange rhs, Value sum);
  Values zeros();
  void addScaled(Values &sums, ValueRange part, Places places, Value k0);
  void storeSums(ValueRange sums, Places places);

  /// Calls `body` with the number of every sum of this thread, its row and its
  /// column in the tile.
  void forSums(function_ref<void(int64_t, Value, Value)> body);
  Places atIndex(Places places, ArrayRef<Dim> dims, Value index);
  /// The row or column of the dot, by that of the tile; held inside.
  Value clamped(unsigned operand, Value index);
  Value exists(unsigned operand, Value index);
  ArrayRef<Dim> sideOf(unsigned operand) const {
    return operand ? plan.columns : plan.rows;
  }
  Value both(Value x, Value y);
  Value rem(Value x, int64_t c) {
    return b.createOrFold<arith::RemUIOp>(loc, x, cst(c));
  }

  const DotPlan &plan;
  /// Sums are added to what is there.
  bool accumulates = false;
  Value thread, lane, warpRow, warpColumn;
  Value shared;
  std::array<Value, 2> elements; // the tiles as elements of the operands
  Value halves;                  // and all shared memory as i16
  std::array<Value, 2> first;    // row and column of the tile
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTEMITTER_H
