//===- MatrixTiles.cpp - Sums of a contraction in AMX tiles ---------------===//
//
// A register tile of up to 32 x 32 sums takes up to four tile registers; four
// more hold two tiles of each operand. All registers have 16 rows of 16 lanes,
// even if fewer are used: surplus rows and columns are read from the padding of
// the panels and never stored. One configuration therefore serves every
// register tile, and this file assigns the registers itself: the IR holds no
// value of them.
//
// The instructions are described in Intel's Architecture Instruction Set
// Extensions, chapter "Intel AMX Instruction Set Reference".
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

/// The numbers of the first tile registers of sums, of lhs and of rhs.
static constexpr int64_t kSums = 0, kLhs = 4, kRhs = 6;

/// The smallest first-level cache of a CPU that has AMX.
static constexpr int64_t kFirstLevelBytes = 48 * 1024;

Value Emitter::pointerTo(Ref ref) {
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, ref.memref);
  Value address = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                             add(base, mul(ref.index, 4)));
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
}

Value Emitter::tileNumber(int64_t number) {
  return arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(number));
}

void Emitter::callTile(StringRef name, ValueRange operands) {
  if (!target.emulateAMX)
    LLVM::CallIntrinsicOp::create(
        b, loc, b.getStringAttr("llvm.x86." + name.str()), operands);
}

/// Stores the 64 bytes of the tile configuration: the palette, and for each
/// register the bytes of a row and the number of rows.
void Emitter::configureTiles() {
  if (target.emulateAMX)
    return;
  SmallVector<int8_t> bytes(64, 0);
  bytes[0] = 1;
  for (int64_t number = 0; number < kTileRegisters; ++number) {
    bytes[16 + 2 * number] = 4 * kTileRows;
    bytes[48 + number] = kTileRows;
  }
  auto type = VectorType::get({64}, b.getI8Type());
  Value content = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  content = vector::BitCastOp::create(b, loc, f32Vector(16), content);
  vector::StoreOp::create(b, loc, content, tileConfiguration.memref,
                          tileConfiguration.index);
  callTile("ldtilecfg", pointerTo(tileConfiguration));
}

void Emitter::copyRows(Ref from, int64_t fromStride, Ref to, int64_t toStride) {
  forLoop(0, kTileRows, 1, [&](Value row) {
    Value line = loadLanes(at(from, row, fromStride), plan.lanes, plan.lanes);
    store(line, at(to, row, toStride), plan.lanes);
  });
}

void Emitter::zeroTile(int64_t number) {
  if (!target.emulateAMX)
    return callTile("tilezero", tileNumber(number));
  forLoop(0, kTileRows, 1, [&](Value row) {
    store(zeroVector(plan.lanes), at(standIn(number), row, plan.lanes),
          plan.lanes);
  });
}

void Emitter::loadTile(int64_t number, Ref from, int64_t stride,
                       bool isStream) {
  if (target.emulateAMX)
    return copyRows(from, stride, standIn(number), plan.lanes);
  Value bytes =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(4 * stride));
  callTile(isStream ? "tileloaddt164" : "tileloadd64",
           {tileNumber(number), pointerTo(from), bytes});
}

void Emitter::storeTile(int64_t number, Ref to, int64_t stride) {
  if (target.emulateAMX)
    return copyRows(standIn(number), plan.lanes, to, stride);
  Value bytes =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(4 * stride));
  callTile("tilestored64", {tileNumber(number), pointerTo(to), bytes});
}

/// Emulates TDPBF16PS: the products of the first halves of a row's lanes and
/// those of the second halves are summed separately, and both sums are added to
/// the tile.
void Emitter::emulateTiles(int64_t sum, int64_t lhs, int64_t rhs) {
  forLoop(0, kTileRows, 1, [&](Value row) {
    SmallVector<Value> zeros(2, zeroVector(plan.lanes));
    auto loop =
        scf::ForOp::create(b, loc, cst(0), cst(kTileRows), cst(1), zeros);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value k = loop.getInductionVar();
      Ref one = at(at(standIn(lhs), row, plan.lanes), k, 1);
      Value x = vector::BroadcastOp::create(b, loc, f32Vector(plan.lanes),
                                            loadScalar(one));
      Value y =
          loadLanes(at(standIn(rhs), k, plan.lanes), plan.lanes, plan.lanes);
      SmallVector<Value> next;
      for (bool second : {false, true})
        next.push_back(vector::FMAOp::create(b, loc, halfOfPairs(x, second),
                                             halfOfPairs(y, second),
                                             loop.getRegionIterArg(second)));
      scf::YieldOp::create(b, loc, next);
    }
    Ref line = at(standIn(sum), row, plan.lanes);
    Value added =
        arith::AddFOp::create(b, loc, loop.getResult(0), loop.getResult(1));
    added = arith::AddFOp::create(
        b, loc, loadLanes(line, plan.lanes, plan.lanes), added);
    store(added, line, plan.lanes);
  });
}

void Emitter::multiplyTiles(int64_t sum, int64_t lhs, int64_t rhs) {
  if (target.emulateAMX)
    return emulateTiles(sum, lhs, rhs);
  callTile("tdpbf16ps", {tileNumber(sum), tileNumber(lhs), tileNumber(rhs)});
}

bool Emitter::storesTilesAlone(const RegisterTile &tile) const {
  return !first && !plan.storeThroughScratch && !tile.scales[0].memref &&
         !tile.scales[1].memref && tile.rows % kTileRows == 0 &&
         tile.columns % plan.lanes == 0;
}

void Emitter::prefetchOutPart(const RegisterTile &tile, Value step) {
  // All at once before the products, they take longer.
  int64_t steps = llvm::divideCeil(plan.packedK(), kTileRows);
  int64_t each = llvm::divideCeil(tile.rows, steps);
  prefetchOut(at(tile.out, step, each * plan.m.strides[2]), each, tile.columns,
              /*forWriting=*/true);
}

void Emitter::sumInTiles(const RegisterTile &tile) {
  // All rows of the lhs pass between two uses of the same ones. If they do not
  // fit into the first-level cache beside the panel of the rhs, they should not
  // drive that one out, either.
  bool lhsIsStream = 4 * (plan.lhsSize + plan.rhsSize) > kFirstLevelBytes;
  int64_t rowTiles = llvm::divideCeil(tile.rows, kTileRows);
  int64_t columnTiles = vectorsOf(tile), width = plan.panelColumns();
  auto forSums = [&](function_ref<void(int64_t, int64_t, int64_t)> body) {
    for (int64_t i = 0; i < rowTiles; ++i)
      for (int64_t j = 0; j < columnTiles; ++j)
        body(kSums + 2 * i + j, i, j);
  };
  auto storeSums = [&](Ref to, int64_t stride) {
    forSums([&](int64_t sum, int64_t i, int64_t j) {
      storeTile(sum, at(to, i * kTileRows * stride + j * plan.lanes), stride);
    });
  };
  forSums([&](int64_t sum, int64_t, int64_t) { zeroTile(sum); });
  forLoop(cst(0), tile.steps, 1, [&](Value step) {
    prefetchOutPart(tile, step);
    Ref lhs = at(tile.lhs, step, kTileLanes);
    Ref rhs = at(tile.rhs, step, columnTiles * kTileLanes);
    for (int64_t i = 0; i < rowTiles; ++i)
      loadTile(kLhs + i, at(lhs, i * plan.lhsTilesStride()), plan.lanes,
               lhsIsStream);
    for (int64_t j = 0; j < columnTiles; ++j)
      loadTile(kRhs + j, at(rhs, j * kTileLanes), plan.lanes,
               /*isStream=*/false);
    forSums([&](int64_t sum, int64_t i, int64_t j) {
      multiplyTiles(sum, kLhs + i, kRhs + j);
    });
  });
  if (storesTilesAlone(tile))
    return storeSums(tile.out, plan.m.strides[2]);
  storeSums(tileSums, width);
  forLoop(0, tile.rows, 1, [&](Value i) {
    RegisterTile row = tile;
    row.rows = 1;
    row.out = at(tile.out, i, plan.m.strides[2]);
    if (row.scales[0].memref)
      row.scales[0] = at(row.scales[0], i, 1);
    SmallVector<Value> sums;
    for (int64_t j = 0; j < columnTiles; ++j)
      sums.push_back(loadLanes(at(at(tileSums, i, width), j * plan.lanes),
                               plan.lanes, plan.lanes));
    scaleAndStore(row, sums);
  });
}
