//===- DotEmitter.h - The code of a dot for a block of a GPU ----*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_DOTS_DOTEMITTER_H
#define FP8_LIB_CODEGEN_GPU_DOTS_DOTEMITTER_H

#include "../../Contraction/Places.h"
#include "DotPlan.h"
#include "TmaRing.h"

namespace mlir::fp8::gpu_codegen {

using contraction::Ref;

/// The current positions in the operands and their scales, and the coordinates
/// in the tensor maps of TMA.
struct Places : contraction::Places {
  std::array<SmallVector<Value>, 2> coordinates;
};

/// Returns `value` as assembly without instructions gives it, of which
/// compilers know nothing. `constraints` name the register: "=f,0", "=l,0".
Value throughAssembly(OpBuilder &b, Location loc, Value value,
                      StringRef constraints);

/// Returns an index whose value the compilers only know from here on, so that
/// nothing that follows from it occupies registers before.
Value knownFromHere(OpBuilder &b, Location loc, Value index);

/// Makes this thread's writes to shared memory visible to `wgmma`, which reads
/// through the async proxy.
void showToWgmma(OpBuilder &b, Location loc);

/// Emits the code of a dot according to its plan. If TMA brings the operands,
/// it emits either the producer's part or that of the other warps, as the ring
/// says.
class DotEmitter : public contraction::PlaceBuilder {
public:
  DotEmitter(OpBuilder &b, Location loc, const DotPlan &plan, Value thread,
             TmaRing *ring = nullptr)
      : PlaceBuilder(b, loc, plan.scaled), plan(plan), ring(ring),
        thread(thread) {}

  /// Emits the dot of `tile`, whose scratch is shared memory. If `kept` is not
  /// null, it has a sum for each one of this thread, to which the dot adds.
  LogicalResult emit(const ContractionTile &tile, Value kept = Value());

  /// Calls `body` with the number of the first, the row, the column and the
  /// values of sums that are adjacent in a row, instead of storing them: one,
  /// two, or eight if threads exchange theirs, which have no numbers then.
  using Epilogue = std::function<void(int64_t, Value, Value, ArrayRef<Value>)>;
  void setEpilogue(Epilogue body, bool exchanges) {
    epilogue = std::move(body);
    exchangesSums = exchanges;
  }

  /// Multiplies operands in place, which begin at these addresses in shared
  /// memory (indices).
  void setPlaces(std::array<Value, 2> addresses) { starts = addresses; }

  /// Appends the sums of this thread to `values` instead of storing them.
  void setHeld(SmallVectorImpl<Value> &values) { held = &values; }

  /// Calls `body` with the number and the row of each row of which this thread
  /// has sums, if `wgmma` computes the tile.
  void forRows(const ContractionTile &tile,
               function_ref<void(int64_t, Value)> body);

  /// Stores kept sums as the result of `tile`.
  LogicalResult storeKept(const ContractionTile &tile, Value kept);

private:
  using Values = SmallVector<Value>;

  /// The part of an operand's tile that this thread copies to shared memory.
  struct Copy {
    unsigned operand = 0;
    /// The first row in the tile and the first k in the stage of each piece.
    Values row, depth;
    int64_t pieces = 0;
    /// The extent of a piece along the rows and along k.
    int64_t pieceRows = 1, pieceDepth = 1;
    /// If true, one access loads a piece, which is stored unchanged. Otherwise
    /// a piece needs an access for each element along k.
    bool isUnchanged = false;
    int64_t accesses() const { return isUnchanged ? 1 : pieceDepth; }
  };

  /// A part of k whose products are summed: `extent` elements from `k0` on.
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
  /// An access to a piece in global memory, and the condition that it lies
  /// inside the dot (null if it always does).
  struct Source {
    Ref ref;
    Value exists;
  };
  Source sourceOf(const Copy &copy, size_t piece, int64_t depth, Places places,
                  Value k0, Value kEnd);
  Value swizzleOf(unsigned operand, Value line);
  Value sharedIndexOf(unsigned operand, Value row, Value depth, Value stage);
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
  Value descriptorOf(unsigned operand, Value stage);
  Value startProducts(Value stage, ValueRange sums, bool fromZero = false);
  Values valuesOf(Value made, unsigned count);
  Values waitForProducts(Value made, unsigned count);
  Values sumRunByWgmma(Places places, const Run &run, Values sums);
  Values multiplyInPlace(Values sums);

  // TMA.
  bool fills() const { return ring && ring->fills; }
  std::array<SmallVector<Value>, 2>
  firstCoordinates(const ContractionTile &tile);
  Places moved(Places places, const Dim &dim, Value i);
  void fillStage(Places places, Value k);
  void fillRun(Places places, Value k0, int64_t extent);
  void releaseStage(Value condition);
  Values inRegisters(ValueRange sums);
  Values multiplyStage(ValueRange sums, bool fromZero, Value releases);
  Values multiplyRun(int64_t extent, Values sums);

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
  Values loadKept();
  void addScaled(Values &sums, ValueRange part, Places places, Value k0);
  void storeSums(ValueRange sums, Places places);
  void passSums(ValueRange sums);
  std::array<Value, 2> firstSum(int64_t columns);
  void exchangeBit(MutableArrayRef<Value> values, int64_t bit);
  Values exchangeSums(ValueRange sums, int64_t first);
  void forAdjacentSums(
      ValueRange sums,
      function_ref<void(int64_t, Value, Value, ArrayRef<Value>)> body);

  void begin(const ContractionTile &tile);
  /// Calls `body` for each sum of this thread with the number of the sum and
  /// its row and column in the tile.
  void forSums(function_ref<void(int64_t, Value, Value)> body);
  Places atIndex(Places places, ArrayRef<Dim> dims, Value index);
  /// Returns the row or column of the dot for one of the tile, clamped so that
  /// an access at it stays inside the dot.
  Value clamped(unsigned operand, Value index);
  Value exists(unsigned operand, Value index);
  ArrayRef<Dim> sideOf(unsigned operand) const {
    return operand ? plan.columns : plan.rows;
  }
  Value conjunction(Value x, Value y);
  Value rem(Value x, int64_t c) {
    return b.createOrFold<arith::RemUIOp>(loc, x, cst(c));
  }

  const DotPlan &plan;
  TmaRing *ring;
  /// If true, the sums are added to the values in the result.
  bool accumulates = false;
  /// The sums of this thread that stay in registers from one tile to the next.
  Value kept;
  bool storesKept = false;
  Epilogue epilogue;
  bool exchangesSums = false;
  SmallVectorImpl<Value> *held = nullptr;
  std::array<Value, 2> starts;
  Value thread, lane, warpRow, warpColumn;
  Value shared;
  std::array<Value, 2> elements; // shared memory as operand elements
  Value halves;                  // shared memory as i16
  std::array<Value, 2> first;    // first row and column of the tile
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_DOTS_DOTEMITTER_H
