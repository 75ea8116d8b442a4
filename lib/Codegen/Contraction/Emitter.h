//===- Emitter.h - The loops of one tile of a contraction -------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_EMITTER_H
#define FP8_LIB_CODEGEN_CONTRACTION_EMITTER_H

#include "LaneBuilder.h"
#include "Places.h"
#include "Plan.h"

#include "fp8/Codegen/Contraction.h"

namespace mlir::fp8::contraction {

/// The block of k that is being computed.
struct KBlock {
  /// The references at its beginning.
  Places places;
  /// Its extent, and the number of steps of a register tile over it. A step is
  /// one lane of a panel, or a whole tile of lanes.
  Value kEnd, steps;
};

/// Rows and columns whose sums are in registers.
struct RegisterTile {
  /// The lhs, with the strides of rows and of k.
  Ref lhs;
  int64_t lhsM = 0, lhsK = 0;
  /// The rhs, whose columns are adjacent.
  Ref rhs;
  int64_t rhsK = 0;
  Value steps;
  Ref out;
  /// The scales of the rows and of the columns; null where there are none.
  std::array<Ref, 2> scales;
  int64_t rows = 0, columns = 0;
};

/// Emits the code of a tile's plan.
class Emitter : public LaneBuilder {
public:
  Emitter(OpBuilder &b, Location loc, const TargetInfo &target,
          const Plan &plan)
      : LaneBuilder(b, loc, target), plan(plan), placing(b, loc, plan.scaled) {}

  LogicalResult emit(const ContractionTile &tile);

private:
  void carveScratch(Value scratch);

  // Loops over one dimension.
  Value sizeOf(const Dim &dim) { return dim.isOpen ? openEnd : cst(dim.size); }
  void forEach(const Dim &dim, function_ref<void(Value)> body);
  /// Calls `body` for each step and, with its static extent, for the remainder.
  /// An open dimension has none.
  void forParts(const Dim &dim, int64_t step,
                function_ref<void(Value, int64_t)> body);

  // Loops around blocks.
  /// Emits loops over the whole extents of `dims` around `body`, with the
  /// references advanced.
  void forDims(ArrayRef<Dim> dims, Places places,
               function_ref<void(Places)> body);
  /// Does the same for dimensions of k, and keeps track of the first pass.
  void forOuterK(ArrayRef<Dim> dims, Places places,
                 function_ref<void(Places)> body);
  Value alsoZero(Value condition, Value i);
  void ifFirst(function_ref<void()> then, function_ref<void()> otherwise);

  // Blocks.
  /// Runs over all of k, in blocks.
  void blocks(Places places);
  /// Emits the block of k from k0 to k0 + kEnd. `extent` is a static number
  /// with the same remainders as kEnd.
  void block(Places places, Value k0, Value kEnd, int64_t extent);
  /// Emits all rows of the columns of a block whose panels are packed together,
  /// from `j` on.
  void group(const KBlock &block, Value j, int64_t columns);
  /// Emits all rows of one of these panels, whose columns begin at `j`, and
  /// `inGroup` columns behind those of the group. `next` is the next group in
  /// the rhs if there may be one to pack.
  void panel(const KBlock &block, Value j, Value inGroup, int64_t columns,
             Ref next, int64_t nextColumns);
  /// Points a register tile at its rows of the lhs.
  void placeLhs(const KBlock &block, Value i, RegisterTile &tile);

  // Packing.
  /// Calls `body` for every lane along k, with its first k and whether the
  /// second half of a pair exists.
  void forSteps(Value kEnd, function_ref<void(Value, bool)> body);
  void packLhs(Ref source, Value kEnd);
  /// Returns the place of an element in a packed operand, by its row or column
  /// and its lane along k.
  Ref placeInLhs(Value i, Value lane);
  Ref placeInRhs(Value j, Value lane, int64_t width);
  void packRows(Ref source, Value kEnd);
  void packLhsPanels(Ref source, Value kEnd);
  /// Packs the panels of a group, which begins at `source`.
  void packRhs(const KBlock &block, Ref source, int64_t columns);
  void packRhsPanel(Ref source, Value kEnd, int64_t columns);
  /// Packs panels whose columns are adjacent in memory.
  void packRhsLines(Ref source, Value kEnd, int64_t columns);
  /// Prefetches a part of the group at `source`, so that packing it will not
  /// wait for memory: each register tile has one of `parts`.
  void prefetchRhsPart(Ref source, Value part, int64_t parts, Value kEnd,
                       int64_t columns);
  /// Packs lines of adjacent elements: for each k, `count` elements from source
  /// + k * stride, in whole vectors, `most` elements at a time. `place` returns
  /// where those from an element and a lane on go.
  void packLines(Ref source, int64_t stride, Value kEnd, int64_t count,
                 int64_t most, function_ref<Ref(int64_t, Value)> place);
  void packScalars(Ref source, Dim line, unsigned operand, Value kEnd,
                   function_ref<Ref(Value, Value)> place);
  Value loadScalar(Ref ref);
  Value packPair(Value x, Ref place, int64_t stride, bool hasSecond);
  /// Packs columns from `j` on that are contiguous along k: transposes square
  /// blocks in registers.
  void packSquares(Ref source, Value j, int64_t columns, int64_t width,
                   Value kEnd);
  SmallVector<Value> loadSquare(Ref source, int64_t columns, int64_t lanes);
  /// Calls `body` for every whole square along k, and for the remainder.
  void forSquares(Value kEnd, function_ref<void(Value, int64_t)> body);
  /// Packs adjacent rows as tile registers, by transposed squares.
  void packTurnedRows(Ref source, Value kEnd);
  void packTurnedSquare(Ref source, int64_t rows, int64_t depth, Ref to);
  /// Zeroes the lanes that the last step of a block reads but no packing
  /// writes.
  void clearLhsEnd(Value kEnd);
  void clearRhsEnd(const KBlock &block, int64_t width);

  // The register tile.
  /// Gathers the scales of an operand, one for every row or column.
  void gatherScales(Ref from, unsigned operand, const Dim &dim, Ref to);
  void scaleSums(MutableArrayRef<Value> sums, std::array<Ref, 2> scales,
                 int64_t rows, int64_t vectors);
  Value multiply(Value x, Value y, Value sum);
  Value halfOfPairs(Value pairs, bool second);
  Value emulateBF16Dot(Value x, Value y, Value sum);
  SmallVector<Value> sumProducts(const RegisterTile &tile);
  void store(const RegisterTile &tile, ArrayRef<Value> sums, bool accumulate);
  void storeThroughScratch(const RegisterTile &tile, ArrayRef<Value> sums);
  void scaleAndStore(const RegisterTile &tile, SmallVector<Value> sums);
  void registerTile(const RegisterTile &tile);
  /// Prefetches rows of the result, the first of which is at `out`. They are
  /// written once all products are added, and lie in different pages, where the
  /// CPU foresees nothing.
  void prefetchOut(Ref out, int64_t rows, int64_t columns, bool forWriting);

  // The same in tile registers.
  void configureTiles();
  void callTile(StringRef name, ValueRange operands = {});
  Value tileNumber(int64_t number);
  Value pointerTo(Ref ref);
  Ref standIn(int64_t number) { return at(tileRegisters, number * kTileLanes); }
  void zeroTile(int64_t number);
  /// Loads rows that are `stride` lanes apart; those of a stream are not kept
  /// in the first-level cache.
  void loadTile(int64_t number, Ref from, int64_t stride, bool isStream);
  void storeTile(int64_t number, Ref to, int64_t stride);
  void copyRows(Ref from, int64_t fromStride, Ref to, int64_t toStride);
  void multiplyTiles(int64_t sum, int64_t lhs, int64_t rhs);
  void emulateTiles(int64_t sum, int64_t lhs, int64_t rhs);
  /// Returns whether sums need no more than a store of their tile registers.
  bool storesTilesAlone(const RegisterTile &tile) const;
  /// Prefetches the rows of the result that fall to this step along k.
  void prefetchOutPart(const RegisterTile &tile, Value step);
  void sumInTiles(const RegisterTile &tile);
  using LaneBuilder::store;

  int64_t vectorsOf(const RegisterTile &tile) const {
    return llvm::divideCeil(tile.columns, plan.lanes);
  }

  const Plan &plan;
  PlaceBuilder placing;
  Ref lhsPanel, rhsPanel, tileBuffer;
  /// Buffers for the stored tile registers, their configuration, and the memory
  /// that emulates them.
  Ref tileSums, tileConfiguration, tileRegisters;
  /// The scales of rows and columns in the current block of k.
  std::array<Ref, 2> scaleLines;
  /// A static number with the same remainders as the current block of k.
  int64_t kExtent = 0;
  /// The end of the open loop, if there is one.
  Value openEnd;
  /// Whether this is the first block of k; null if there is only one.
  Value first;
};

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_EMITTER_H
