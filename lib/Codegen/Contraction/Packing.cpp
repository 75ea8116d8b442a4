//===- Packing.cpp - Packing of operands into panels ----------------------===//

#include "Emitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

void Emitter::forSteps(Value kEnd, function_ref<void(Value, bool)> body) {
  if (plan.pack == 1)
    return forLoop(cst(0), kEnd, 1, [&](Value k) { body(k, true); });
  Value even = alignDown(kEnd, 2);
  forLoop(cst(0), even, 2, [&](Value k) { body(k, true); });
  if (kExtent % 2)
    forLoop(even, kEnd, 2, [&](Value k) { body(k, false); });
}

Value Emitter::loadScalar(Ref ref) {
  return memref::LoadOp::create(b, loc, ref.memref, ref.index);
}

Ref Emitter::placeInLhs(Value i, Value lane) {
  if (plan.lhs == LhsForm::RowMajor)
    return at(at(lhsPanel, i, plan.lhsRowStride()), lane, 1);
  Ref tile = at(at(lhsPanel, div(i, kTileRows), plan.lhsTilesStride()),
                div(lane, kTileRows), kTileLanes);
  return at(at(tile, rem(i, kTileRows), plan.lanes), rem(lane, kTileRows), 1);
}

Ref Emitter::placeInRhs(Value j, Value lane, int64_t width) {
  if (!plan.inTiles)
    return at(at(rhsPanel, lane, width), j, 1);
  // Whole rows of tiles before that of the lane, then its row in the first one.
  Ref row = at(at(rhsPanel, lane, plan.lanes), alignDown(lane, kTileRows),
               width - plan.lanes);
  return at(at(row, div(j, kTileRows), kTileLanes), rem(j, kTileRows), 1);
}

void Emitter::packLines(Ref source, int64_t stride, Value kEnd, int64_t count,
                        int64_t most, function_ref<Ref(int64_t, Value)> place) {
  // Pack whole vectors at once, so that decoding works on wide ones.
  forSteps(kEnd, [&](Value k, bool hasSecond) {
    Ref from = at(source, k, stride);
    Value lane = div(k, plan.pack);
    int64_t full = llvm::alignDown(count, plan.lanes);
    auto piece = [&](int64_t j, int64_t lanes, int64_t width) {
      SmallVector<Ref> lines = {at(from, j)};
      if (hasSecond)
        lines.push_back(at(from, j + stride));
      Value x = plan.pack == 2 ? loadInterleaved(lines, lanes, width)[0]
                               : load(lines[0], lanes, width);
      for (int64_t i = 0; i < width; i += plan.lanes)
        store(slice(x, i, plan.lanes), place(j + i, lane), plan.lanes);
    };
    for (int64_t j = 0; j < full; j += most) {
      int64_t width = std::min(most, full - j);
      piece(j, width, width);
    }
    if (count > full)
      piece(full, count - full, plan.lanes);
  });
}

/// Packs a pair into one lane: `x`, which is at `place`, and the element
/// `stride` after it, if it exists.
Value Emitter::packPair(Value x, Ref place, int64_t stride, bool hasSecond) {
  Type i32 = b.getI32Type();
  x = arith::ExtUIOp::create(b, loc, i32, decodeToWords(x));
  if (hasSecond) {
    Value y = loadScalar(at(place, stride));
    y = arith::ExtUIOp::create(b, loc, i32, decodeToWords(y));
    y = arith::ShLIOp::create(b, loc, y, intConstant(i32, 16));
    x = arith::OrIOp::create(b, loc, x, y);
  }
  return arith::BitcastOp::create(b, loc, b.getF32Type(), x);
}

void Emitter::packScalars(Ref source, Dim line, unsigned operand, Value kEnd,
                          function_ref<Ref(Value, Value)> place) {
  int64_t stride = plan.k.strides[operand];
  forEach(line, [&](Value i) {
    Ref from = at(source, i, line.strides[operand]);
    forSteps(kEnd, [&](Value k, bool hasSecond) {
      Ref first = at(from, k, stride);
      Value x = loadScalar(first);
      x = plan.pack == 2 ? packPair(x, first, stride, hasSecond) : decode(x);
      Ref to = place(i, div(k, plan.pack));
      memref::StoreOp::create(b, loc, x, to.memref, to.index);
    });
  });
}

void Emitter::clearLhsEnd(Value kEnd) {
  if (!plan.inTiles || kExtent % (plan.pack * kTileRows) == 0)
    return;
  Value lane = div(alignDown(kEnd, plan.pack * kTileRows), plan.pack);
  forEach(plan.m, [&](Value i) {
    store(zeroVector(plan.lanes), placeInLhs(i, lane), plan.lanes);
  });
}

void Emitter::clearRhsEnd(const KBlock &block, int64_t width) {
  if (!plan.inTiles || kExtent % (plan.pack * kTileRows) == 0)
    return;
  Value packed = div(add(block.kEnd, plan.pack - 1), plan.pack);
  forLoop(packed, mul(block.steps, kTileRows), 1, [&](Value lane) {
    for (int64_t j = 0; j < width; j += plan.lanes)
      store(zeroVector(plan.lanes), placeInRhs(cst(j), lane, width),
            plan.lanes);
  });
}

void Emitter::packTurnedSquare(Ref source, int64_t rows, int64_t depth,
                               Ref to) {
  int64_t stride = plan.k.strides[plan.operand[0]];
  SmallVector<Ref> places;
  for (int64_t k = 0; k < std::min(depth, 2 * plan.lanes); ++k)
    places.push_back(at(source, k * stride));
  SmallVector<Value> lines = loadInterleaved(places, rows, plan.lanes);
  lines.resize(plan.lanes, zeroVector(plan.lanes));
  transpose(lines);
  for (int64_t i = 0; i < rows; ++i)
    store(lines[i], at(to, i * plan.lanes), plan.lanes);
}

void Emitter::packTurnedRows(Ref source, Value kEnd) {
  int64_t stride = plan.k.strides[plan.operand[0]];
  forParts(plan.m, plan.lanes, [&](Value i, int64_t count) {
    forSquares(kEnd, [&](Value k, int64_t depth) {
      packTurnedSquare(at(at(source, i, 1), k, stride), count, depth,
                       placeInLhs(i, div(k, 2)));
    });
  });
}

void Emitter::packRows(Ref source, Value kEnd) {
  unsigned lhs = plan.operand[0];
  if (plan.k.strides[lhs] != 1 && plan.m.strides[lhs] == 1 && plan.inTiles)
    return packTurnedRows(source, kEnd);
  if (plan.k.strides[lhs] != 1) {
    clearLhsEnd(kEnd);
    return packScalars(source, plan.m, lhs, kEnd, [&](Value i, Value lane) {
      return placeInLhs(i, lane);
    });
  }
  forEach(plan.m, [&](Value i) {
    Ref from = at(source, i, plan.m.strides[lhs]);
    forChunks(kEnd, kExtent, plan.lanes * plan.pack,
              [&](Value k, int64_t lanes) {
                int64_t width = llvm::alignTo(lanes, plan.lanes * plan.pack);
                Ref line = at(from, k, 1);
                Value x = plan.pack == 2 ? loadPairs(line, lanes, width)[0]
                                         : load(line, lanes, width);
                Value lane = div(k, plan.pack);
                // There is room for a vector after the row.
                for (int64_t j = 0; j < width / plan.pack; j += plan.lanes)
                  store(slice(x, j, plan.lanes), placeInLhs(i, add(lane, j)),
                        plan.lanes);
              });
  });
}

void Emitter::packLhsPanels(Ref source, Value kEnd) {
  unsigned lhs = plan.operand[0];
  forParts(plan.m, plan.rows, [&](Value i, int64_t count) {
    // A line's last vector overlaps the next line, which is written later.
    Ref panel = at(lhsPanel, i, plan.packedK());
    packLines(at(source, i, plan.m.strides[lhs]), plan.k.strides[lhs], kEnd,
              count, /*most=*/count, [&](int64_t row, Value lane) {
                return at(at(panel, lane, count), row);
              });
  });
}

void Emitter::packLhs(Ref source, Value kEnd) {
  if (plan.lhs == LhsForm::Panels)
    packLhsPanels(source, kEnd);
  else if (plan.lhs != LhsForm::Direct)
    packRows(source, kEnd);
}

SmallVector<Value> Emitter::loadSquare(Ref source, int64_t columns,
                                       int64_t lanes) {
  int64_t unit = plan.lanes * plan.pack;
  SmallVector<Ref> places;
  for (int64_t i = 0; i < std::min(columns, plan.lanes); ++i)
    places.push_back(at(source, i * plan.n.strides[plan.operand[1]]));
  SmallVector<Value> lines;
  if (plan.pack == 2)
    lines = loadPairs(places, lanes, unit);
  else
    for (Ref place : places)
      lines.push_back(load(place, lanes, unit));
  lines.resize(plan.lanes, zeroVector(plan.lanes));
  transpose(lines);
  return lines;
}

void Emitter::forSquares(Value kEnd, function_ref<void(Value, int64_t)> body) {
  int64_t unit = plan.lanes * plan.pack;
  int64_t rest = kExtent % unit;
  Value done = cst(0);
  if (kExtent >= unit) {
    Value to = rest ? alignDown(kEnd, unit) : kEnd;
    forLoop(done, to, unit, [&](Value k) { body(k, unit); });
    done = to;
  }
  if (rest)
    forLoop(done, kEnd, unit, [&](Value k) { body(k, rest); });
}

void Emitter::packSquares(Ref source, Value j, int64_t columns, int64_t width,
                          Value kEnd) {
  Ref from = at(source, j, plan.n.strides[plan.operand[1]]);
  forSquares(kEnd, [&](Value k, int64_t lanes) {
    SmallVector<Value> lines = loadSquare(at(from, k, 1), columns, lanes);
    Ref to = placeInRhs(j, div(k, plan.pack), width);
    int64_t steps = llvm::divideCeil(lanes, plan.pack);
    for (int64_t i = 0; i < steps; ++i)
      store(lines[i], at(to, i * (plan.inTiles ? plan.lanes : width)),
            plan.lanes);
  });
}

void Emitter::packRhs(const KBlock &block, Ref source, int64_t columns) {
  if (plan.n.strides[plan.operand[1]] == 1 || columns == 1)
    packRhsLines(source, block.kEnd, columns);
  else
    packRhsPanel(source, block.kEnd, columns);
  clearRhsEnd(block, llvm::alignTo(columns, plan.lanes));
}

void Emitter::packRhsLines(Ref source, Value kEnd, int64_t columns) {
  int64_t most = plan.panelColumns();
  packLines(source, plan.k.strides[plan.operand[1]], kEnd, columns, most,
            [&](int64_t j, Value lane) {
              int64_t panel = llvm::alignDown(j, most);
              int64_t width =
                  llvm::alignTo(std::min(columns - panel, most), plan.lanes);
              return at(placeInRhs(cst(j - panel), lane, width),
                        panel * plan.rhsLanes());
            });
}

void Emitter::packRhsPanel(Ref source, Value kEnd, int64_t columns) {
  unsigned rhs = plan.operand[1];
  int64_t width = llvm::alignTo(columns, plan.lanes);
  Dim line = plan.n;
  line.size = columns;
  line.isOpen = false;
  if (plan.k.strides[rhs] != 1) {
    if (width != columns)
      forLoop(0, plan.packedK(), 1, [&](Value lane) {
        store(zeroVector(plan.lanes),
              placeInRhs(cst(width - plan.lanes), lane, width), plan.lanes);
      });
    return packScalars(source, line, rhs, kEnd, [&](Value j, Value lane) {
      return placeInRhs(j, lane, width);
    });
  }
  forParts(line, plan.lanes, [&](Value j, int64_t count) {
    packSquares(source, j, count, width, kEnd);
  });
}

void Emitter::prefetchRhsPart(Ref source, Value part, int64_t parts, Value kEnd,
                              int64_t columns) {
  int64_t n = plan.n.strides[plan.operand[1]];
  int64_t k = plan.k.strides[plan.operand[1]];
  if (n != 1 && k != 1)
    return;
  auto type = cast<MemRefType>(source.memref.getType());
  int64_t perLine = kLineBytes * 8 / type.getElementTypeBitWidth();
  // A part has some of the group's rows, or of its columns if those are
  // contiguous.
  int64_t each = llvm::divideCeil(n == 1 ? plan.kc : columns, parts);
  Value from = mul(part, each);
  Value to = arith::MinUIOp::create(b, loc, add(from, each),
                                    n == 1 ? kEnd : cst(columns));
  forLoop(from, to, 1, [&](Value row) {
    Ref line = at(source, row, n == 1 ? k : n);
    if (n != 1)
      return forLoop(cst(0), kEnd, perLine, [&](Value element) {
        prefetch(at(line, element, 1), Cache::L2);
      });
    // A row need not begin with a line.
    for (int64_t j = 0; j < columns; j += perLine)
      prefetch(at(line, j), Cache::L2);
    prefetch(at(line, columns - 1), Cache::L2);
  });
}
