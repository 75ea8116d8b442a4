//===- Emitter.cpp - The loops of one tile of a contraction ---------------===//
//
// The code has this shape, after the dimensions of each group are merged where
// the strides nest (dimensions that do not nest become outer loops):
//
//   for k0 in K by kc:                      sums over blocks go through memory
//     pack A[m, k0:k0+kc]                   decoded; or read where it lies
//     for j in N by NR:                     or by two such panels
//       pack B[k0:k0+kc, j:j+NR] as [k][NR] decoded, columns padded with zeros
//       for i in M by MR:
//         for k in kc: MR x NR accumulators in registers
//
// Scales of an operand multiply the sums of each block of k. They are constant
// over it, because blocks are as long as the tiles that share a scale.
//
// On AVX512-BF16, two f8 values adjacent in k form one 32-bit lane of two bf16
// values; the panels have the same geometry with half the k.
//
// With AMX, the sums of a register tile are in tile registers, and one step
// multiplies 16 lanes along k (MatrixTiles.cpp).
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

void Emitter::forEach(const Dim &dim, function_ref<void(Value)> body) {
  forParts(dim, 1, [&](Value i, int64_t) { body(i); });
}

void Emitter::forParts(const Dim &dim, int64_t step,
                       function_ref<void(Value, int64_t)> body) {
  auto whole = [&](Value i) { body(i, step); };
  int64_t rest = dim.stepOfRest(step);
  if (!dim.isOpen) {
    int64_t full = llvm::alignDown(dim.size, step);
    forLoop(0, full, step, whole);
    if (rest != 0)
      body(cst(full), rest);
    return;
  }
  if (rest == step)
    return forLoop(cst(0), openEnd, step, whole);
  Value full = alignDown(openEnd, step);
  forLoop(cst(0), full, step, whole);
  forLoop(full, openEnd, rest, [&](Value i) { body(i, rest); });
}

void Emitter::forDims(ArrayRef<Dim> dims, Places places,
                      function_ref<void(Places)> body) {
  if (dims.empty())
    return body(places);
  forEach(dims[0], [&](Value i) {
    forDims(dims.drop_front(), placing.moved(places, dims[0], i), body);
  });
}

Value Emitter::alsoZero(Value condition, Value i) {
  Value zero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, i, cst(0));
  if (!condition)
    return zero;
  return arith::AndIOp::create(b, loc, condition, zero);
}

void Emitter::forOuterK(ArrayRef<Dim> dims, Places places,
                        function_ref<void(Places)> body) {
  if (dims.empty())
    return body(places);
  Value outerFirst = first;
  forEach(dims[0], [&](Value i) {
    first = alsoZero(outerFirst, i);
    forOuterK(dims.drop_front(), placing.moved(places, dims[0], i), body);
  });
  first = outerFirst;
}

void Emitter::ifFirst(function_ref<void()> then,
                      function_ref<void()> otherwise) {
  if (!first)
    return then();
  auto branch = scf::IfOp::create(b, loc, first, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void Emitter::carveScratch(Value scratch) {
  int64_t used = 0;
  auto carve = [&](int64_t size) -> Ref {
    if (size == 0)
      return Ref();
    Value view =
        memref::ViewOp::create(b, loc, MemRefType::get({size}, b.getF32Type()),
                               scratch, cst(4 * used), ValueRange());
    used += size;
    return {view, cst(0)};
  };
  rhsPanel = carve(plan.rhsSize);
  lhsPanel = carve(plan.lhsSize);
  tileBuffer = carve(plan.tileSize);
  for (int i = 0; i < 2; ++i)
    scaleLines[i] = carve(plan.scaleSizes[i]);
  tileSums = carve(plan.sumsSize);
  tileConfiguration = carve(plan.configurationSize);
  tileRegisters = carve(plan.registersSize);
}

LogicalResult Emitter::emit(const ContractionTile &tile) {
  auto scratchType = cast<MemRefType>(tile.scratch.getType());
  if (scratchType.hasStaticShape() &&
      scratchType.getNumElements() < plan.getScratchBytes()) {
    linalg::GenericOp op = tile.op;
    return op.emitError("expected at least ")
           << plan.getScratchBytes() << " bytes of scratch but got "
           << scratchType.getNumElements();
  }
  FailureOr<Places> places = placing.place(tile);
  if (failed(places))
    return failure();
  carveScratch(tile.scratch);
  if (tile.open)
    openEnd = tile.open->end;
  if (tile.accumulate)
    first = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  if (plan.inTiles)
    configureTiles();
  forDims(plan.outer, *places, [&](Places places) {
    forOuterK(plan.outerK, places, [&](Places places) { blocks(places); });
  });
  if (plan.inTiles)
    callTile("tilerelease");
  return success();
}

void Emitter::blocks(Places places) {
  // An open end may leave vectors over from chunks of several, but no part of
  // a vector. So does any large odd multiple of its steps.
  int64_t extent = plan.k.isOpen ? 33 * OpenLoop::kMultiple : plan.k.size;
  Value size = sizeOf(plan.k);
  if (plan.kc == plan.k.size)
    return block(places, cst(0), size, extent);
  Value outerFirst = first;
  if (plan.fixedBlocks && !plan.k.isOpen) {
    // Whole blocks, then the remainder: both have static extents.
    forParts(plan.k, plan.kc, [&](Value k0, int64_t count) {
      first = alsoZero(outerFirst, k0);
      block(places, k0, cst(count), count);
    });
  } else {
    forLoop(cst(0), size, plan.kc, [&](Value k0) {
      first = alsoZero(outerFirst, k0);
      Value kEnd = cst(plan.kc);
      if (plan.k.isOpen || plan.k.size % plan.kc) {
        Value left = arith::SubIOp::create(b, loc, size, k0);
        kEnd = arith::MinUIOp::create(b, loc, kEnd, left);
      }
      block(places, k0, kEnd, extent);
    });
  }
  first = outerFirst;
}

void Emitter::block(Places places, Value k0, Value kEnd, int64_t extent) {
  kExtent = extent;
  unsigned lhs = plan.operand[0], rhs = plan.operand[1];
  KBlock block{placing.moved(places, plan.k, k0), kEnd, kEnd};
  if (plan.scaled[lhs])
    gatherScales(block.places.scales[lhs], lhs, plan.m, scaleLines[0]);
  if (plan.scaled[rhs])
    gatherScales(block.places.scales[rhs], rhs, plan.n, scaleLines[1]);
  packLhs(block.places.data[lhs], kEnd);
  int64_t step = plan.pack * plan.stepLanes();
  block.steps = div(add(kEnd, step - 1), step);

  forParts(plan.n, plan.groupColumns(),
           [&](Value j, int64_t columns) { group(block, j, columns); });
}

void Emitter::group(const KBlock &block, Value j, int64_t columns) {
  unsigned rhs = plan.operand[1];
  if (plan.packRhs)
    packRhs(block, at(block.places.data[rhs], j, plan.n.strides[rhs]), columns);
  Ref next;
  if (plan.packRhs && plan.n.size > plan.groupColumns())
    next = at(block.places.data[rhs], add(j, columns), plan.n.strides[rhs]);
  int64_t wide = plan.panelColumns(), whole = llvm::alignDown(columns, wide);
  auto emit = [&](Value inGroup, int64_t width) {
    panel(block, add(j, inGroup), inGroup, width, next, columns);
  };
  forLoop(0, whole, wide, [&](Value inGroup) { emit(inGroup, wide); });
  if (whole < columns)
    emit(cst(whole), columns - whole);
}

void Emitter::placeLhs(const KBlock &block, Value i, RegisterTile &tile) {
  unsigned lhs = plan.operand[0];
  switch (plan.lhs) {
  case LhsForm::Direct:
    tile.lhsM = plan.m.strides[lhs];
    tile.lhsK = plan.k.strides[lhs];
    tile.lhs = at(block.places.data[lhs], i, tile.lhsM);
    return;
  case LhsForm::RowMajor:
    tile.lhsM = plan.lhsRowStride();
    tile.lhsK = 1;
    tile.lhs = at(lhsPanel, i, tile.lhsM);
    return;
  case LhsForm::Panels:
    tile.lhsM = 1;
    tile.lhsK = tile.rows;
    tile.lhs = at(lhsPanel, i, plan.packedK());
    return;
  case LhsForm::Tiles:
    // Register tiles begin with a tile register.
    tile.lhs = at(lhsPanel, i, plan.lhsTilesStride() / kTileRows);
    return;
  }
}

void Emitter::panel(const KBlock &block, Value j, Value inGroup,
                    int64_t columns, Ref next, int64_t nextColumns) {
  unsigned lhs = plan.operand[0], rhs = plan.operand[1];
  RegisterTile tile;
  tile.rhs = at(block.places.data[rhs], j, plan.n.strides[rhs]);
  tile.rhsK = plan.k.strides[rhs];
  if (plan.packRhs) {
    tile.rhs = at(rhsPanel, inGroup, plan.rhsLanes());
    tile.rhsK = llvm::alignTo(columns, plan.lanes);
  }
  tile.columns = columns;
  tile.steps = block.steps;
  int64_t tiles = llvm::divideCeil(plan.m.size, plan.rows);
  Value before = mul(div(inGroup, plan.panelColumns()), tiles);
  Ref outColumn = at(block.places.data[2], j, plan.n.strides[2]);
  forParts(plan.m, plan.rows, [&](Value i, int64_t count) {
    tile.rows = count;
    tile.out = at(outColumn, i, plan.m.strides[2]);
    if (plan.scaled[lhs])
      tile.scales[0] = at(scaleLines[0], i, 1);
    if (plan.scaled[rhs])
      tile.scales[1] = at(scaleLines[1], j, 1);
    placeLhs(block, i, tile);
    if (next.memref)
      prefetchRhsPart(next, add(div(i, plan.rows), before), tiles * plan.panels,
                      block.kEnd, nextColumns);
    registerTile(tile);
  });
}
