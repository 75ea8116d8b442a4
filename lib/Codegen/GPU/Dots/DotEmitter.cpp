//===- DotEmitter.cpp - The code of a dot for a block of a GPU ------------===//
//
// The shape of the code:
//
//   for each tile of rows and columns of the result:
//     for each run of k:                       as long as one scale
//       for each stage of the run:
//         registers -> shared memory           zeros outside of the dot
//         wait for cp.async of this stage
//         barrier
//         global -> shared memory by cp.async  of the stage that is free now
//         global memory -> registers           of the next stage
//         shared memory -> fragments -> mma.sync, or FMA; or wgmma
//       sums += scales * sums of the run
//     sums -> result
//
// DotStages.cpp copies operands to shared memory; DotMma.cpp and DotWgmma.cpp
// multiply them there. With TMA, another warp runs the same loops and fills the
// stages (DotTma.cpp).
//
//===----------------------------------------------------------------------===//

#include "DotEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The sums of a thread whose epilogues load their operands at once.
static constexpr int64_t kSumsTogether = 8;
/// The most bytes that are loaded ahead of the sums before them: their
/// registers are needed twice, beside all sums. A wide tile has more sums.
static constexpr int64_t kBytesAhead = 64, kBytesAheadOfWide = 16;
/// The threads that have the sums of a row of eight columns, and the adjacent
/// ones of each.
static constexpr int64_t kQuad = 4, kPair = 2;
/// The threads of a block along the rows and the columns of an FMA tile.
static constexpr int64_t kFmaRows = 8, kFmaColumns = kDotThreads / kFmaRows;

Value gpu_codegen::throughAssembly(OpBuilder &b, Location loc, Value value,
                                   StringRef constraints) {
  return LLVM::InlineAsmOp::create(b, loc, value.getType(), value,
                                   /*asm_string=*/"", constraints,
                                   /*has_side_effects=*/true,
                                   /*is_align_stack=*/false,
                                   LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

Value gpu_codegen::knownFromHere(OpBuilder &b, Location loc, Value index) {
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  number = throughAssembly(b, loc, number, "=l,0");
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value DotEmitter::conjunction(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(b, loc, x, y);
}

Places DotEmitter::atIndex(Places places, ArrayRef<Dim> dims, Value index) {
  for (unsigned i = dims.size(); i-- > 0;) {
    bool outermost = i == 0;
    places =
        moved(places, dims[i], outermost ? index : rem(index, dims[i].size));
    if (!outermost)
      index = div(index, dims[i].size);
  }
  return places;
}

Value DotEmitter::clamped(unsigned operand, Value index) {
  int64_t extent = volumeOf(sideOf(operand));
  index = add(first[operand], index);
  if (extent % plan.extentOf(operand) == 0)
    return index;
  int64_t last =
      extent -
      (plan.operands[operand].alongK ? 1 : plan.operands[operand].width);
  return arith::MinUIOp::create(b, loc, index, cst(last));
}

/// Returns the condition that a row or column of the tile lies inside the dot,
/// null if it always does.
Value DotEmitter::exists(unsigned operand, Value index) {
  int64_t extent = volumeOf(sideOf(operand));
  if (extent % plan.extentOf(operand) == 0)
    return Value();
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                               add(first[operand], index), cst(extent));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Returns the row and the column of this thread's first sum, if each of the
/// four threads of a row has this many adjacent columns. ("Matrix Fragments for
/// mma.m16n8k32": c0 and c1 are in one row, c2 and c3 eight rows below.)
std::array<Value, 2> DotEmitter::firstSum(int64_t columns) {
  Value row = add(warpRow, div(lane, kQuad));
  Value column = add(warpColumn, mul(rem(lane, kQuad), columns));
  // The places of sums are the same in all tiles, but the next tile's sums need
  // the registers.
  if (plan.usesWgmma()) {
    row = knownFromHere(b, loc, row);
    column = knownFromHere(b, loc, column);
  }
  return {row, column};
}

void DotEmitter::forSums(function_ref<void(int64_t, Value, Value)> body) {
  int64_t number = 0;
  if (plan.multiplier == Multiplier::FMA) {
    for (int64_t i = 0; i < plan.tileRows; i += kFmaRows)
      for (int64_t j = 0; j < plan.tileColumns; j += kFmaColumns)
        body(number++, add(warpRow, i), add(warpColumn, j));
    return;
  }
  auto [row, column] = firstSum(kPair);
  for (int64_t i = 0; i < plan.mmaRows(); ++i)
    for (int64_t j = 0; j < plan.mmaColumns(); ++j)
      for (int64_t e = 0; e < 4; ++e)
        body(number++, add(row, i * kMmaRows + e / 2 * 8),
             add(column, j * kMmaColumns + e % 2));
}

DotEmitter::Values DotEmitter::zeros() {
  if (fills())
    return {};
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  return Values(plan.sumsPerThread(), zero);
}

/// Adds the products of a stage by FMA, one element of k after the other.
DotEmitter::Values DotEmitter::multiplyScalars(Value stage, Values sums) {
  auto type = VectorType::get({4}, b.getF32Type());
  auto read = [&](unsigned operand, Value row, int64_t k) -> Value {
    Value index = sharedIndexOf(operand, row, cst(k), stage);
    auto op = vector::LoadOp::create(b, loc, type, elements[operand], index);
    op.setAlignment(16);
    return op;
  };
  for (int64_t k = 0; k < plan.stageDepth(); k += 4) {
    Values lhs, rhs;
    for (int64_t i = 0; i < plan.tileRows; i += kFmaRows)
      lhs.push_back(read(0, add(warpRow, i), k));
    for (int64_t j = 0; j < plan.tileColumns; j += kFmaColumns)
      rhs.push_back(read(1, add(warpColumn, j), k));
    for (int64_t e = 0; e < 4; ++e)
      for (auto [i, x] : llvm::enumerate(lhs))
        for (auto [j, y] : llvm::enumerate(rhs)) {
          Value &sum = sums[i * rhs.size() + j];
          sum = math::FmaOp::create(
              b, loc, vector::ExtractOp::create(b, loc, x, e),
              vector::ExtractOp::create(b, loc, y, e), sum);
        }
  }
  return sums;
}

DotEmitter::Values DotEmitter::computeStage(Value stage, Values sums) {
  return plan.multiplier == Multiplier::MmaSync ? multiplyFragments(stage, sums)
                                                : multiplyScalars(stage, sums);
}

/// Adds the sums of a run, multiplied by the scales that its products share.
void DotEmitter::addScaled(Values &sums, ValueRange part, Places places,
                           Value k0) {
  if (fills())
    return;
  Places run = moved(places, plan.k, k0);
  auto scaleOf = [&](unsigned operand, Value index) -> Value {
    Ref ref = atIndex(run, sideOf(operand), index).scales[operand];
    Value scale = memref::LoadOp::create(b, loc, ref.memref, ref.index);
    if (!scale.getType().isF32())
      scale = arith::ExtFOp::create(b, loc, b.getF32Type(), scale);
    return scale;
  };
  auto limit = [&](unsigned operand, Value index) -> Value {
    if (plan.sharesScale[operand])
      return first[operand];
    int64_t extent = volumeOf(sideOf(operand));
    index = add(first[operand], index);
    if (extent % plan.extentOf(operand) == 0)
      return index;
    return arith::MinUIOp::create(b, loc, index, cst(extent - 1));
  };
  // The loads of one row or column are equal; CSE merges them.
  forSums([&](int64_t number, Value row, Value column) {
    Value scale, value = part[number];
    if (plan.scaled[0])
      scale = scaleOf(0, limit(0, row));
    if (plan.scaled[1]) {
      Value other = scaleOf(1, limit(1, column));
      scale =
          scale ? Value(arith::MulFOp::create(b, loc, scale, other)) : other;
    }
    if (scale)
      value = arith::MulFOp::create(b, loc, value, scale);
    sums[number] = arith::AddFOp::create(b, loc, sums[number], value);
  });
}

/// Returns the op before the insertion point, null if there is none.
static Operation *lastOp(OpBuilder &b) {
  auto point = b.getInsertionPoint();
  return point == b.getInsertionBlock()->begin() ? nullptr : &*std::prev(point);
}

/// Returns the op behind `before`; the first one of the block if that is null.
static Operation *opBehind(OpBuilder &b, Operation *before) {
  return before ? before->getNextNode() : &b.getInsertionBlock()->front();
}

/// Returns the ops from behind `before` to the insertion point.
static SmallVector<Operation *> opsBehind(OpBuilder &b, Operation *before) {
  SmallVector<Operation *> ops;
  for (Operation *op = opBehind(b, before);
       op && op->getIterator() != b.getInsertionPoint(); op = op->getNextNode())
    ops.push_back(op);
  return ops;
}

/// Moves the stores behind `before`, which write elements that nothing behind
/// it reads, to the insertion point: loads then begin before earlier stores.
static void moveStoresHere(OpBuilder &b, Operation *before) {
  for (Operation *op : opsBehind(b, before))
    if (isa<memref::StoreOp, vector::StoreOp>(op))
      op->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
}

/// Returns the bytes of the vectors that are loaded behind `before`.
static int64_t bytesLoaded(OpBuilder &b, Operation *before) {
  int64_t bits = 0;
  for (Operation *op : opsBehind(b, before))
    if (auto load = dyn_cast<vector::LoadOp>(op))
      bits += load.getVectorType().getNumElements() *
              load.getVectorType().getElementTypeBitWidth();
  return bits / 8;
}

/// Moves the loads behind `target`, with what their places follow
/// from, to right behind it. They read nothing that is stored in between.
static void moveLoads(OpBuilder &b, Operation *target) {
  SmallVector<Operation *> ops = opsBehind(b, target);
  llvm::SmallPtrSet<Operation *, 16> moved;
  for (Operation *op : llvm::reverse(ops)) {
    if (isa<memref::LoadOp, vector::LoadOp>(op))
      moved.insert(op);
    if (moved.contains(op))
      for (Value operand : op->getOperands())
        if (Operation *from = operand.getDefiningOp())
          moved.insert(from);
  }
  llvm::erase_if(ops, [&](Operation *op) { return !moved.contains(op); });
  for (Operation *op : ops) {
    if (Operation *next = opBehind(b, target); next != op)
      op->moveBefore(next);
    target = op;
  }
}

/// Exchanges values with the thread whose number differs in one bit: of each
/// two values whose numbers differ in this bit, a thread keeps the one whose
/// bit is its own.
void DotEmitter::exchangeBit(MutableArrayRef<Value> values, int64_t bit) {
  Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                      rem(div(lane, bit), 2), cst(0));
  for (size_t i = 0; i < values.size(); ++i) {
    if (i & bit)
      continue;
    Value &low = values[i], &high = values[i | bit];
    Value sent = arith::SelectOp::create(b, loc, isSet, low, high);
    Value received =
        gpu::ShuffleOp::create(b, loc, sent, static_cast<int32_t>(bit), kWarp,
                               gpu::ShuffleMode::XOR)
            .getShuffleResult();
    low = arith::SelectOp::create(b, loc, isSet, received, low);
    high = arith::SelectOp::create(b, loc, isSet, high, received);
  }
}

/// Returns eight adjacent sums of a row, instead of a pair in each of four
/// groups of eight columns: the four threads of a row exchange them.
DotEmitter::Values DotEmitter::exchangeSums(ValueRange sums, int64_t first) {
  Values results(kQuad * kPair);
  for (int64_t e = 0; e < kPair; ++e) {
    Values own;
    for (int64_t j = 0; j < kQuad; ++j)
      own.push_back(sums[first + 4 * j + e]);
    for (int64_t bit = 1; bit < kQuad; bit *= 2)
      exchangeBit(own, bit);
    for (int64_t j = 0; j < kQuad; ++j)
      results[kPair * j + e] = own[j];
  }
  return results;
}

/// Calls `body` with the place and the values of sums that are adjacent in a
/// row: eight if the epilogue gains by an exchange, else two or one.
void DotEmitter::forAdjacentSums(
    ValueRange sums,
    function_ref<void(int64_t, Value, Value, ArrayRef<Value>)> body) {
  int64_t columns = volumeOf(plan.columns);
  constexpr int64_t kWide = kQuad * kPair;
  if (exchangesSums && plan.tma && columns % kWide == 0 &&
      plan.mmaColumns() % kQuad == 0) {
    auto [row, column] = firstSum(kWide);
    for (int64_t i = 0; i < plan.mmaRows(); ++i)
      for (int64_t j = 0; j < plan.mmaColumns(); j += kQuad)
        for (int64_t half = 0; half < 2; ++half) {
          int64_t number = 4 * (i * plan.mmaColumns() + j) + 2 * half;
          body(number, add(row, i * kMmaRows + half * 8),
               add(column, j * kMmaColumns), exchangeSums(sums, number));
        }
    return;
  }
  int64_t each =
      plan.multiplier != Multiplier::FMA && columns % kPair == 0 ? kPair : 1;
  forSums([&](int64_t number, Value row, Value column) {
    if (number % each == 0)
      body(number, row, column, SmallVector<Value>(sums.slice(number, each)));
  });
}

/// Passes the sums to the epilogue, in groups of kSumsTogether. The epilogue
/// accesses only the elements of its sums, so all loads of a group come before
/// its stores. With TMA they even come before the group ahead is computed, if
/// registers are left for what they load (kBytesAhead); without, other blocks
/// run while a block waits for its loads.
void DotEmitter::passSums(ValueRange sums) {
  int64_t passed = 0, most = plan.tileColumns == kWideColumns
                                 ? kBytesAheadOfWide
                                 : kBytesAhead;
  Operation *before = lastOp(b), *target = before;
  auto arrange = [&] {
    bool isAhead = plan.tma && bytesLoaded(b, before) <= most;
    moveLoads(b, isAhead ? target : before);
    moveStoresHere(b, before);
    target = std::exchange(before, lastOp(b));
  };
  forAdjacentSums(sums, [&](int64_t number, Value row, Value column,
                            ArrayRef<Value> values) {
    if (passed && passed % kSumsTogether == 0)
      arrange();
    passed += values.size();
    Value condition = conjunction(exists(0, row), exists(1, column));
    OpBuilder::InsertionGuard guard(b);
    if (condition) {
      auto branch = scf::IfOp::create(b, loc, condition);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
    }
    epilogue(number, add(first[0], row), add(first[1], column), values);
  });
  arrange();
}

void DotEmitter::storeSums(ValueRange sums, Places places) {
  if (fills())
    return;
  if (held)
    return held->append(sums.begin(), sums.end());
  if (epilogue)
    return passSums(sums);
  forSums([&](int64_t number, Value row, Value column) {
    Places place = atIndex(places, plan.rows, add(first[0], row));
    place = atIndex(place, plan.columns, add(first[1], column));
    Value condition = conjunction(exists(0, row), exists(1, column));
    OpBuilder::InsertionGuard guard(b);
    if (condition) {
      auto branch = scf::IfOp::create(b, loc, condition);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
    }
    auto [memref, index] = place.data[2];
    Value sum = sums[number];
    if (accumulates)
      sum = arith::AddFOp::create(
          b, loc, memref::LoadOp::create(b, loc, memref, index), sum);
    memref::StoreOp::create(b, loc, sum, memref, index);
  });
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

DotEmitter::Values
DotEmitter::forValues(int64_t to, int64_t step, ValueRange carried,
                      function_ref<Values(Value, ValueRange)> body) {
  if (to <= step)
    return body(cst(0), carried);
  if (carried.empty()) { // The producer has no sums.
    forLoop(0, to, step, [&](Value i) { body(i, {}); });
    return {};
  }
  auto loop = scf::ForOp::create(b, loc, cst(0), cst(to), cst(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}

/// Adds `extent` products, from k0 on, to `sums`.
DotEmitter::Values DotEmitter::sumRun(Places places, Value k0, int64_t extent,
                                      Values sums) {
  if (plan.inPlace)
    return multiplyInPlace(sums);
  if (plan.tma && !fills())
    return multiplyRun(extent, sums);
  if (plan.tma) {
    fillRun(places, k0, extent);
    return {};
  }
  int64_t depth = plan.stageDepth();
  Run run = {{planCopy(0), planCopy(1)},
             k0,
             extent,
             static_cast<int64_t>(llvm::divideCeil(extent, depth))};
  // No thread may still be reading the stage that is filled first.
  gpu::BarrierOp::create(b, loc);
  if (plan.usesWgmma())
    return sumRunByWgmma(places, run, sums);
  startFirstCopies(places, run);
  Values carried = loadStage(places, run, cst(0));
  unsigned loaded = carried.size();
  llvm::append_range(carried, sums);
  Values results = forValues(
      run.stages * depth, depth, carried, [&](Value at, ValueRange carried) {
        Value stage = rem(div(at, depth), plan.stages);
        storeStage(run, carried.take_front(loaded), stage);
        waitForCopies();
        gpu::BarrierOp::create(b, loc);
        startNextCopies(places, run, at);
        Values next = llvm::to_vector(carried.take_front(loaded));
        if (loaded && run.stages > 1) {
          Value following = add(at, depth);
          next = ifStage(run, following, next,
                         [&] { return loadStage(places, run, following); });
        }
        llvm::append_range(
            next,
            computeStage(stage, llvm::to_vector(carried.drop_front(loaded))));
        return next;
      });
  results.erase(results.begin(), results.begin() + loaded);
  return results;
}

DotEmitter::Values DotEmitter::sumRuns(Places places, Values sums) {
  if (!plan.hasParts())
    return sumRun(places, cst(0), plan.k.size, sums);
  auto part = [&](Value k0, int64_t extent, Values sums) {
    addScaled(sums, sumRun(places, k0, extent, zeros()), places, k0);
    return sums;
  };
  int64_t whole = plan.k.size / plan.run * plan.run;
  if (whole)
    sums = forValues(whole, plan.run, sums, [&](Value k0, ValueRange carried) {
      return part(k0, plan.run, llvm::to_vector(carried));
    });
  if (whole < plan.k.size)
    sums = part(cst(whole), plan.k.size - whole, sums);
  return sums;
}

DotEmitter::Values DotEmitter::sumOuterK(ArrayRef<Dim> dims, Places places,
                                         Values sums) {
  if (dims.empty())
    return sumRuns(places, sums);
  return forValues(dims[0].size, 1, sums, [&](Value i, ValueRange carried) {
    return sumOuterK(dims.drop_front(), moved(places, dims[0], i),
                     llvm::to_vector(carried));
  });
}

DotEmitter::Values DotEmitter::loadKept() {
  Values sums;
  for (int64_t i = 0; i < plan.sumsPerThread(); ++i)
    sums.push_back(memref::LoadOp::create(b, loc, kept, cst(i)));
  return sums;
}

void DotEmitter::tile(Places places, Value firstRow, Value firstColumn) {
  first = {firstRow, firstColumn};
  if (storesKept)
    return storeSums(loadKept(), places);
  Values sums = sumOuterK(plan.outerK, places, kept ? loadKept() : zeros());
  if (!kept)
    return storeSums(sums, places);
  for (auto [i, sum] : llvm::enumerate(sums))
    memref::StoreOp::create(b, loc, sum, kept, cst(i));
}

void DotEmitter::tiles(Places places) {
  forLoop(0, volumeOf(plan.rows), plan.tileRows, [&](Value row) {
    forLoop(0, volumeOf(plan.columns), plan.tileColumns,
            [&](Value column) { tile(places, row, column); });
  });
}

void DotEmitter::forOuter(ArrayRef<Dim> dims, Places places) {
  if (dims.empty())
    return tiles(places);
  forLoop(0, dims[0].size, 1, [&](Value i) {
    forOuter(dims.drop_front(), moved(places, dims[0], i));
  });
}

LogicalResult DotEmitter::storeKept(const ContractionTile &tile, Value kept) {
  storesKept = true;
  return emit(tile, kept);
}

/// Finds this thread's part of a tile.
void DotEmitter::begin(const ContractionTile &tile) {
  auto type = cast<MemRefType>(tile.scratch.getType());
  auto view = [&](Type element) -> Value {
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    return memref::ViewOp::create(
        b, loc,
        MemRefType::get({type.getNumElements() / bytes}, element,
                        MemRefLayoutAttrInterface(), type.getMemorySpace()),
        tile.scratch, cst(0), ValueRange{});
  };
  for (unsigned i = 0; i < 2; ++i)
    elements[i] = view(plan.operands[i].to);
  halves = view(b.getI16Type());
  shared = tile.scratch;
  lane = rem(thread, kWarp);
  if (plan.multiplier != Multiplier::FMA) {
    Value warp = div(thread, kWarp);
    warpRow = mul(div(warp, plan.warpColumns), plan.mmaRows() * kMmaRows);
    warpColumn =
        mul(rem(warp, plan.warpColumns), plan.mmaColumns() * kMmaColumns);
  } else {
    warpRow = div(thread, kFmaColumns);
    warpColumn = rem(thread, kFmaColumns);
  }
}

void DotEmitter::forRows(const ContractionTile &tile,
                         function_ref<void(int64_t, Value)> body) {
  begin(tile);
  Value row = add(warpRow, div(lane, 4));
  for (int64_t i = 0; i < 2 * plan.mmaRows(); ++i)
    body(i, add(row, i * kMmaRows / 2));
}

LogicalResult DotEmitter::emit(const ContractionTile &tile, Value kept) {
  FailureOr<contraction::Places> start = place(tile);
  if (failed(start))
    return failure();
  Places places = {*start, firstCoordinates(tile)};
  this->kept = kept;
  accumulates = tile.accumulate && !kept;
  begin(tile);
  forOuter(plan.outer, places);
  return success();
}
