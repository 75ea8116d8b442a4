//===- DotEmitter.cpp - The code of a dot for a block of a GPU ------------===//
//
// The shape of the code:
//
//   for each tile of rows and columns of the result:
//     for each run of k:                       as long as one scale
//       for each stage of the run:
//         registers -> shared memory           zeros outside of the dot
//         barrier
//         global memory -> registers           of the next stage
//         shared memory -> fragments -> mma.sync, or FMA; or wgmma
//       sums += scales * sums of the run
//     sums -> result
//
// Both tiles are kept along k in shared memory, so that fragments of all types
// are the same bytes (PTX ISA, "Matrix Fragments for mma.m16n8k32"): the four
// threads of a row have four bytes each, and four more 16 bytes on. For wgmma
// the tiles have its swizzle (DotWgmma.cpp).
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

/// Threads of a block along the rows and the columns of an FMA tile.
static constexpr int64_t kFmaRows = 8, kFmaColumns = kDotThreads / kFmaRows;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value DotEmitter::both(Value x, Value y) {
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
  if (extent % (operand ? plan.tileColumns : plan.tileRows) == 0)
    return index;
  int64_t last =
      extent -
      (plan.operands[operand].alongK ? 1 : plan.operands[operand].width);
  return arith::MinUIOp::create(b, loc, index, cst(last));
}

/// Null where it always does.
Value DotEmitter::exists(unsigned operand, Value index) {
  int64_t extent = volumeOf(sideOf(operand));
  if (extent % (operand ? plan.tileColumns : plan.tileRows) == 0)
    return Value();
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                               add(first[operand], index), cst(extent));
}

//===----------------------------------------------------------------------===//
// Global to shared memory
//===----------------------------------------------------------------------===//

/// Deals the pieces of a stage out to threads: neighbouring ones have pieces
/// that lie beside each other in global memory.
DotEmitter::Copy DotEmitter::planCopy(unsigned operand) {
  const OperandPlan &own = plan.operands[operand];
  int64_t rows = operand ? plan.tileColumns : plan.tileRows;
  int64_t depth = plan.stageDepth();
  Copy copy;
  copy.operand = operand;
  if (own.alongK && own.width > 1) {
    copy.pieceDepth = own.width;
  } else {
    // One word of shared memory for each row.
    copy.pieceRows = own.alongK ? 1 : own.width;
    copy.pieceDepth = std::max<int64_t>(4 / plan.elementBytes(), 1);
  }
  int64_t alongRows = rows / copy.pieceRows, alongK = depth / copy.pieceDepth;
  copy.pieces = alongRows * alongK;
  for (int64_t i = 0; i < copy.pieces; i += plan.threads) {
    Value piece = add(thread, i);
    if (i + plan.threads > copy.pieces) // The others bring the last one too.
      piece = arith::MinUIOp::create(b, loc, piece, cst(copy.pieces - 1));
    Value row = own.alongK ? div(piece, alongK) : rem(piece, alongRows);
    Value k = own.alongK ? rem(piece, alongK) : div(piece, alongRows);
    copy.row.push_back(mul(row, copy.pieceRows));
    copy.depth.push_back(mul(k, copy.pieceDepth));
  }
  return copy;
}

/// The elements as they are in shared memory.
Value DotEmitter::convert(Value value, unsigned operand) {
  const OperandPlan &own = plan.operands[operand];
  auto type = cast<VectorType>(value.getType());
  if (own.from == own.to)
    return value;
  if (!own.from.isF32())
    value = arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), value);
  if (!own.to.isF32())
    value = arith::TruncFOp::create(b, loc, type.clone(own.to), value);
  return value;
}

/// One access, converted; zeros where `exists` (if given) does not hold.
Value DotEmitter::loadVector(Ref ref, unsigned operand, Value exists) {
  const OperandPlan &own = plan.operands[operand];
  auto type = VectorType::get({own.width}, own.from);
  auto read = vector::LoadOp::create(b, loc, type, ref.memref, ref.index);
  if (own.width > 1)
    read.setAlignment(own.width * own.from.getIntOrFloatBitWidth() / 8);
  Value value = convert(read, operand);
  if (!exists)
    return value;
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::SelectOp::create(b, loc, exists, value, zero);
}

/// This thread's pieces of the stage that begins at k0; what lies behind kEnd,
/// counted from k0, is zero (null: there is nothing).
DotEmitter::Values DotEmitter::load(const Copy &copy, Places places, Value k0,
                                    Value kEnd) {
  const OperandPlan &own = plan.operands[copy.operand];
  unsigned operand = copy.operand;
  Values values;
  for (auto [index, row, depth] : llvm::enumerate(copy.row, copy.depth)) {
    // Some threads may have no piece; they read what is not stored.
    bool isForAll =
        copy.pieces >= static_cast<int64_t>(index + 1) * plan.threads;
    Places place = atIndex(places, sideOf(operand), clamped(operand, row));
    Value rowExists = exists(operand, row);
    // A piece along k is one access, a piece along rows one for each k.
    int64_t step = own.alongK ? own.width : 1;
    for (int64_t i = 0; i < copy.pieceDepth; i += step) {
      Value k = add(depth, i), condition = rowExists;
      Value from = add(k0, k);
      if (kEnd) {
        condition = both(
            condition,
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, k, kEnd));
      }
      if (kEnd || !isForAll)
        from = arith::MinUIOp::create(b, loc, from, cst(plan.k.size - step));
      Ref ref = moved(place, plan.k, from).data[operand];
      values.push_back(loadVector(ref, operand, condition));
    }
  }
  return values;
}

void DotEmitter::store(const Copy &copy, ValueRange values, Value stage) {
  const OperandPlan &own = plan.operands[copy.operand];
  int64_t rowElements = plan.rowBytes() / plan.elementBytes();
  int64_t stageElements =
      (plan.stageSize(0) + plan.stageSize(1)) / plan.elementBytes();
  int64_t base = copy.operand ? plan.stageSize(0) / plan.elementBytes() : 0;
  int64_t each = own.alongK ? copy.pieceDepth / own.width : copy.pieceDepth;
  auto write = [&](Value vector, Value row, Value depth) {
    Value place = plan.usesWgmma() ? swizzled(row, depth) : depth;
    Value index = add(add(mul(row, rowElements), place),
                      add(mul(stage, stageElements), base));
    auto type = cast<VectorType>(vector.getType());
    auto op =
        vector::StoreOp::create(b, loc, vector, elements[copy.operand], index);
    op.setAlignment(
        std::min<int64_t>(16, type.getNumElements() * plan.elementBytes()));
  };
  auto writePiece = [&](int64_t i) {
    ValueRange own = values.slice(i * each, each);
    if (each == 1 && copy.pieceRows == 1)
      return write(own[0], copy.row[i], copy.depth[i]);
    // Transposed: the words of all rows.
    for (int64_t r = 0; r < copy.pieceRows; ++r) {
      Values word;
      for (Value line : own)
        word.push_back(vector::ExtractOp::create(b, loc, line, r));
      Value vector = vector::FromElementsOp::create(
          b, loc,
          VectorType::get({static_cast<int64_t>(word.size())},
                          word[0].getType()),
          word);
      write(vector, add(copy.row[i], r), copy.depth[i]);
    }
  };
  for (int64_t i = 0, e = copy.row.size(); i < e; ++i) {
    int64_t left = copy.pieces - i * plan.threads;
    if (left >= plan.threads) {
      writePiece(i);
      continue;
    }
    Value active = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         thread, cst(left));
    auto branch = scf::IfOp::create(b, loc, active);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    writePiece(i);
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void DotEmitter::forSums(function_ref<void(int64_t, Value, Value)> body) {
  int64_t number = 0;
  if (plan.multiplier == Multiplier::FMA) {
    for (int64_t i = 0; i < plan.tileRows; i += kFmaRows)
      for (int64_t j = 0; j < plan.tileColumns; j += kFmaColumns)
        body(number++, add(warpRow, i), add(warpColumn, j));
    return;
  }
  // "Matrix Fragments for mma.m16n8k32": c0 and c1 in one row, c2 and c3 eight
  // rows on.
  Value row = add(warpRow, div(lane, 4));
  Value column = add(warpColumn, mul(rem(lane, 4), 2));
  for (int64_t i = 0; i < plan.mmaRows(); ++i)
    for (int64_t j = 0; j < plan.mmaColumns(); ++j)
      for (int64_t e = 0; e < 4; ++e)
        body(number++, add(row, i * kMmaRows + e / 2 * 8),
             add(column, j * kMmaColumns + e % 2));
}

DotEmitter::Values DotEmitter::zeros() {
  int64_t count = plan.tileRows * plan.tileColumns / plan.threads;
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  return Values(count, zero);
}

/// A word of a fragment: that of a row of an operand's tile.
Value DotEmitter::fragmentWord(unsigned operand, Value stage, Value row,
                               int64_t word) {
  int64_t stageWords = (plan.stageSize(0) + plan.stageSize(1)) / 4;
  int64_t base = operand ? plan.stageSize(0) / 4 : 0;
  Value index = add(mul(row, plan.rowBytes() / 4), rem(lane, 4));
  index = add(add(index, mul(stage, stageWords)), base + word);
  return memref::LoadOp::create(b, loc, words, index);
}

/// PTX's words for an element type.
static StringRef nameOf(Type type) {
  return isa<Float8E5M2Type>(type) ? "e5m2" : "e4m3";
}

DotEmitter::Values DotEmitter::mma(ValueRange lhs, ValueRange rhs, Value sum) {
  Type f32 = b.getF32Type(), to = plan.operands[0].to;
  std::string name = "llvm.nvvm.mma.";
  if (to.isBF16())
    name += "m16n8k16.row.col.bf16";
  else if (to.isF16())
    name += "m16n8k16.row.col.f32.f32";
  else
    name += ("m16n8k32.row.col.f32." + nameOf(to) + "." +
             nameOf(plan.operands[1].to) + ".f32")
                .str();
  Values operands;
  for (Value word : lhs)
    operands.push_back(word);
  for (Value word : rhs)
    operands.push_back(word);
  if (to.isF16())
    for (Value &word : operands)
      word = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, to), word);
  for (int64_t i = 0; i < 4; ++i)
    operands.push_back(vector::ExtractOp::create(b, loc, sum, i));
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                               SmallVector<Type>(4, f32));
  Value result = LLVM::CallIntrinsicOp::create(b, loc, type,
                                               b.getStringAttr(name), operands)
                     .getResult(0);
  Values sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, loc, result, i));
  return sums;
}

/// Adds the products of a stage to the sums of this thread's warp.
DotEmitter::Values DotEmitter::multiplyFragments(Value stage, Values sums) {
  Value row = add(warpRow, div(lane, 4)),
        column = add(warpColumn, div(lane, 4));
  for (int64_t word = 0; word < plan.stageBytes / 4; word += kMmaBytes / 4) {
    SmallVector<Values> lhs, rhs;
    for (int64_t i = 0; i < plan.mmaRows(); ++i) {
      Values &fragment = lhs.emplace_back();
      for (int64_t part : {0, 1, 2, 3}) // eight rows on, 16 bytes on, both
        fragment.push_back(fragmentWord(0, stage,
                                        add(row, i * kMmaRows + part % 2 * 8),
                                        word + part / 2 * 4));
    }
    for (int64_t j = 0; j < plan.mmaColumns(); ++j) {
      Values &fragment = rhs.emplace_back();
      for (int64_t part : {0, 1})
        fragment.push_back(fragmentWord(1, stage, add(column, j * kMmaColumns),
                                        word + part * 4));
    }
    for (int64_t i = 0; i < plan.mmaRows(); ++i)
      for (int64_t j = 0; j < plan.mmaColumns(); ++j) {
        auto own = MutableArrayRef<Value>(sums).slice(
            (i * plan.mmaColumns() + j) * 4, 4);
        Value sum = vector::FromElementsOp::create(
            b, loc, VectorType::get({4}, b.getF32Type()), ValueRange(own));
        llvm::copy(mma(lhs[i], rhs[j], sum), own.begin());
      }
  }
  return sums;
}

/// The same with FMA, one product after the other along k.
DotEmitter::Values DotEmitter::multiplyScalars(Value stage, Values sums) {
  int64_t rowElements = plan.rowBytes() / 4;
  int64_t stageElements = (plan.stageSize(0) + plan.stageSize(1)) / 4;
  auto type = VectorType::get({4}, b.getF32Type());
  auto read = [&](unsigned operand, Value row, int64_t k) -> Value {
    Value index = add(mul(row, rowElements), mul(stage, stageElements));
    index = add(index, (operand ? plan.stageSize(0) / 4 : 0) + k);
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
  Places run = moved(places, plan.k, k0);
  auto scaleOf = [&](unsigned operand, Value index) -> Value {
    Ref ref = atIndex(run, sideOf(operand), index).scales[operand];
    Value scale = memref::LoadOp::create(b, loc, ref.memref, ref.index);
    if (!scale.getType().isF32())
      scale = arith::ExtFOp::create(b, loc, b.getF32Type(), scale);
    return scale;
  };
  auto limit = [&](unsigned operand, Value index) -> Value {
    int64_t extent = volumeOf(sideOf(operand));
    index = add(first[operand], index);
    if (extent % (operand ? plan.tileColumns : plan.tileRows) == 0)
      return index;
    return arith::MinUIOp::create(b, loc, index, cst(extent - 1));
  };
  // Loads of one row or one column are equal, and merged.
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

void DotEmitter::storeSums(ValueRange sums, Places places) {
  forSums([&](int64_t number, Value row, Value column) {
    Places place = atIndex(places, plan.rows, add(first[0], row));
    place = atIndex(place, plan.columns, add(first[1], column));
    Value condition = both(exists(0, row), exists(1, column));
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
  auto loop = scf::ForOp::create(b, loc, cst(0), cst(to), cst(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}

/// What this thread brings of the stage that begins at k0 + at.
DotEmitter::Values DotEmitter::loadStage(Places places, const Run &run,
                                         Value at) {
  Value kEnd = run.extent % plan.stageDepth()
                   ? Value(arith::SubIOp::create(b, loc, cst(run.extent), at))
                   : Value();
  Values values;
  for (const Copy &copy : run.copies)
    llvm::append_range(values, load(copy, places, add(run.k0, at), kEnd));
  return values;
}

void DotEmitter::storeStage(const Run &run, ValueRange values, Value stage) {
  for (const Copy &copy : run.copies) {
    const OperandPlan &operand = plan.operands[copy.operand];
    int64_t own =
        copy.row.size() *
        (operand.alongK ? copy.pieceDepth / operand.width : copy.pieceDepth);
    store(copy, values.take_front(own), stage);
    values = values.drop_front(own);
  }
}

/// The values of `body` where the stage at `at` exists, else `values`.
DotEmitter::Values DotEmitter::ifStage(const Run &run, Value at, Values values,
                                       function_ref<Values()> body) {
  Value isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at,
                                        cst(run.stages * plan.stageDepth()));
  auto branch =
      scf::IfOp::create(b, loc, ValueRange(values).getTypes(), isThere,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, values);
  return Values(branch.getResults());
}

/// The products from k0 on, `extent` of them, are added to `sums`.
DotEmitter::Values DotEmitter::sumRun(Places places, Value k0, int64_t extent,
                                      Values sums) {
  int64_t depth = plan.stageDepth();
  Run run = {{planCopy(0), planCopy(1)},
             k0,
             extent,
             static_cast<int64_t>(llvm::divideCeil(extent, depth))};
  // Nobody reads the stage any more that is filled first.
  gpu::BarrierOp::create(b, loc);
  if (plan.usesWgmma())
    return sumRunByWgmma(places, run, sums);
  Values carried = loadStage(places, run, cst(0));
  unsigned loaded = carried.size();
  llvm::append_range(carried, sums);
  Values results = forValues(
      run.stages * depth, depth, carried, [&](Value at, ValueRange carried) {
        Value stage = rem(div(at, depth), kStages);
        storeStage(run, carried.take_front(loaded), stage);
        gpu::BarrierOp::create(b, loc);
        Values next = llvm::to_vector(carried.take_front(loaded));
        if (run.stages > 1) {
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

void DotEmitter::tile(Places places, Value firstRow, Value firstColumn) {
  first = {firstRow, firstColumn};
  storeSums(sumOuterK(plan.outerK, places, zeros()), places);
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

LogicalResult DotEmitter::emit(const ContractionTile &tile) {
  FailureOr<Places> places = place(tile);
  if (failed(places))
    return failure();
  accumulates = tile.accumulate;
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
  words = view(b.getI32Type());
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
  forOuter(plan.outer, *places);
  return success();
}
