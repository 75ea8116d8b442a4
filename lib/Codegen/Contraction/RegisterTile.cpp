//===- RegisterTile.cpp - Sums of a contraction in registers --------------===//

#include "Emitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

void Emitter::gatherScales(Ref from, unsigned operand, const Dim &dim, Ref to) {
  forEach(dim, [&](Value i) {
    Ref source = placing.scaleAt(from, dim, operand, i);
    Value scale = memref::LoadOp::create(b, loc, source.memref, source.index);
    if (!scale.getType().isF32())
      scale = arith::ExtFOp::create(b, loc, b.getF32Type(), scale);
    Ref target = at(to, i, 1);
    memref::StoreOp::create(b, loc, scale, target.memref, target.index);
  });
}

/// Multiplies each sum by the product of its scales.
void Emitter::scaleSums(MutableArrayRef<Value> sums, std::array<Ref, 2> scales,
                        int64_t rows, int64_t vectors) {
  SmallVector<Value> columnScales;
  if (scales[1].memref)
    for (int64_t j = 0; j < vectors; ++j)
      columnScales.push_back(
          loadLanes(at(scales[1], j * plan.lanes), plan.lanes, plan.lanes));
  for (int64_t i = 0; i < rows; ++i) {
    Value rowScale;
    if (scales[0].memref) {
      Ref row = at(scales[0], i);
      rowScale = vector::BroadcastOp::create(
          b, loc, f32Vector(plan.lanes),
          memref::LoadOp::create(b, loc, row.memref, row.index));
    }
    for (int64_t j = 0; j < vectors; ++j) {
      Value scale = rowScale;
      if (!columnScales.empty())
        scale =
            scale ? Value(arith::MulFOp::create(b, loc, scale, columnScales[j]))
                  : columnScales[j];
      Value &sum = sums[i * vectors + j];
      if (scale)
        sum = arith::MulFOp::create(b, loc, sum, scale);
    }
  }
}

/// Returns the first or the second elements of pairs of bf16 as f32.
Value Emitter::halfOfPairs(Value pairs, bool second) {
  Type ints = VectorType::get({plan.lanes}, b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, ints, pairs);
  if (second)
    bits = arith::AndIOp::create(b, loc, bits, intConstant(ints, -65536));
  else
    bits = arith::ShLIOp::create(b, loc, bits, intConstant(ints, 16));
  return arith::BitcastOp::create(b, loc, f32Vector(plan.lanes), bits);
}

/// Emulates the dot of pairs of bf16 with two FMAs.
Value Emitter::emulateBF16Dot(Value x, Value y, Value sum) {
  for (bool second : {false, true})
    sum = vector::FMAOp::create(b, loc, halfOfPairs(x, second),
                                halfOfPairs(y, second), sum);
  return sum;
}

Value Emitter::multiply(Value x, Value y, Value sum) {
  if (plan.pack == 1)
    return vector::FMAOp::create(b, loc, x, y, sum);
  if (target.emulateBF16Dots)
    return emulateBF16Dot(x, y, sum);
  auto type = VectorType::get({2 * plan.lanes}, b.getBF16Type());
  return x86vector::DotBF16Op::create(
      b, loc, sum.getType(), sum, vector::BitCastOp::create(b, loc, type, x),
      vector::BitCastOp::create(b, loc, type, y));
}

/// Returns the sums over the block. They start at zero in every block of k:
/// reading the result here would wait for the stores of the previous tile.
SmallVector<Value> Emitter::sumProducts(const RegisterTile &tile) {
  int64_t lanes = plan.lanes, vectors = vectorsOf(tile);
  SmallVector<Value> sums(tile.rows * vectors, zeroVector(lanes));
  auto loop = scf::ForOp::create(b, loc, cst(0), tile.steps, cst(1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar();
  Ref b0 = at(tile.rhs, k, tile.rhsK), a0 = at(tile.lhs, k, tile.lhsK);
  SmallVector<Value> bs, next;
  for (int64_t j = 0; j < vectors; ++j)
    bs.push_back(loadLanes(at(b0, j * lanes), lanes, lanes));
  for (int64_t i = 0; i < tile.rows; ++i) {
    Ref ai = at(a0, i * tile.lhsM);
    Value a = memref::LoadOp::create(b, loc, ai.memref, ai.index);
    a = vector::BroadcastOp::create(b, loc, f32Vector(lanes), a);
    for (int64_t j = 0; j < vectors; ++j) {
      Value sum = loop.getRegionIterArgs()[i * vectors + j];
      next.push_back(multiply(a, bs[j], sum));
    }
  }
  scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void Emitter::store(const RegisterTile &tile, ArrayRef<Value> sums,
                    bool accumulate) {
  int64_t lanes = plan.lanes, vectors = vectorsOf(tile);
  for (int64_t i = 0; i < tile.rows; ++i)
    for (int64_t j = 0; j < vectors; ++j) {
      int64_t count = std::min(lanes, tile.columns - j * lanes);
      Ref to = at(tile.out, i * plan.m.strides[2] + j * lanes);
      Value sum = sums[i * vectors + j];
      if (accumulate)
        sum = arith::AddFOp::create(b, loc, loadLanes(to, count, lanes), sum);
      store(sum, to, count);
    }
}

/// Stores element by element, for a result without unit stride.
void Emitter::storeThroughScratch(const RegisterTile &tile,
                                  ArrayRef<Value> sums) {
  int64_t vectors = vectorsOf(tile), width = vectors * plan.lanes;
  for (int64_t i = 0; i < tile.rows; ++i)
    for (int64_t j = 0; j < vectors; ++j)
      store(sums[i * vectors + j], at(tileBuffer, i * width + j * plan.lanes),
            plan.lanes);
  forLoop(0, tile.rows, 1, [&](Value i) {
    forLoop(0, tile.columns, 1, [&](Value j) {
      Ref from = at(at(tileBuffer, i, width), j, 1);
      Ref to = at(at(tile.out, i, plan.m.strides[2]), j, plan.n.strides[2]);
      Value x = memref::LoadOp::create(b, loc, from.memref, from.index);
      if (first) {
        Value y = memref::LoadOp::create(b, loc, to.memref, to.index);
        y = arith::AddFOp::create(b, loc, y, x);
        x = arith::SelectOp::create(b, loc, first, x, y);
      }
      memref::StoreOp::create(b, loc, x, to.memref, to.index);
    });
  });
}

void Emitter::prefetchOut(Ref out, int64_t rows, int64_t columns,
                          bool forWriting) {
  if (plan.storeThroughScratch)
    return;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += kLineBytes / sizeof(float))
      prefetch(at(out, i * plan.m.strides[2] + j), Cache::L1, forWriting);
}

void Emitter::registerTile(const RegisterTile &tile) {
  if (plan.inTiles)
    return sumInTiles(tile);
  prefetchOut(tile.out, tile.rows, tile.columns, /*forWriting=*/false);
  scaleAndStore(tile, sumProducts(tile));
}

void Emitter::scaleAndStore(const RegisterTile &tile, SmallVector<Value> sums) {
  scaleSums(sums, tile.scales, tile.rows, vectorsOf(tile));
  if (plan.storeThroughScratch)
    return storeThroughScratch(tile, sums);
  ifFirst([&] { store(tile, sums, /*accumulate=*/false); },
          [&] { store(tile, sums, /*accumulate=*/true); });
}
