//===- Places.cpp - Positions in operands and scales ----------------------===//

#include "Places.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

Ref PlaceBuilder::scaleAt(Ref ref, const Dim &dim, unsigned operand, Value i) {
  ScaleStep step = dim.scales[operand];
  if (!scaled[operand] || step.stride == 0)
    return ref;
  for (auto [loop, stride] : dim.loops)
    i = add(i, mul(offsets[loop], stride));
  return at(ref, div(i, step.tile), step.stride);
}

Places PlaceBuilder::moved(Places places, const Dim &dim, Value i) {
  for (int j = 0; j < 3; ++j)
    if (dim.strides[j])
      places.data[j] = at(places.data[j], i, dim.strides[j]);
  for (int j = 0; j < 2; ++j)
    places.scales[j] = scaleAt(places.scales[j], dim, j, i);
  return places;
}

/// Returns a flat view of a buffer from its first element on, so that every
/// access is an index into one dimension.
Ref PlaceBuilder::flatten(Value buffer, SmallVector<int64_t> &strides) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t offset, span = 1;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return Ref();
  for (auto [size, stride] : llvm::zip(type.getShape(), strides))
    span += (size - 1) * stride;
  Value base = buffer;
  OpFoldResult offsetValue = b.getIndexAttr(offset);
  if (ShapedType::isDynamic(offset)) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, base);
    base = metadata.getBaseBuffer();
    offsetValue = metadata.getOffset();
  }
  bool plain = offset == 0;
  MemRefLayoutAttrInterface layout;
  if (!plain)
    layout = StridedLayoutAttr::get(b.getContext(), offset, {1});
  auto flat = MemRefType::get({span}, type.getElementType(), layout,
                              type.getMemorySpace());
  Value view = memref::ReinterpretCastOp::create(
      b, loc, flat, base, offsetValue,
      ArrayRef<OpFoldResult>{b.getIndexAttr(span)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  return {view, cst(0)};
}

LogicalResult PlaceBuilder::placeData(const ContractionTile &tile,
                                      Places &places) {
  linalg::GenericOp op = tile.op;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Value buffers[3] = {op.getDpsInputs()[0], op.getDpsInputs()[1], tile.out};
  for (int i = 0; i < 2; ++i)
    if (tile.localInputs[i])
      buffers[i] = tile.localInputs[i];
  AffineMap operandMaps[3] = {maps[0], maps[1], maps.back()};
  for (int i = 0; i < 3; ++i) {
    SmallVector<int64_t> strides;
    Ref &ref = places.data[i];
    ref = flatten(buffers[i], strides);
    if (!ref.memref)
      return failure();
    if (int64_t offset = offsetOf(operandMaps[i], strides))
      ref = at(ref, offset);
    if (i == 2 ? tile.outIsLocal : bool(tile.localInputs[i]))
      continue;
    SmallVector<int64_t> loops = stridesOfLoops(operandMaps[i], strides);
    for (auto [d, stride] : llvm::enumerate(loops))
      if (stride)
        ref = at(ref, tile.offsets[d], stride);
  }
  return success();
}

LogicalResult PlaceBuilder::placeScales(const ContractionTile &tile,
                                        Places &places) {
  linalg::GenericOp op = tile.op;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ContractionDims dims = *inferContractionDims(op);
  for (int i = 0; i < 2; ++i) {
    if (!scaled[i])
      continue;
    unsigned input = *dims.scales[i];
    SmallVector<int64_t> strides;
    Ref &ref = places.scales[i];
    ref = flatten(op.getDpsInputs()[input], strides);
    if (!ref.memref)
      return failure();
    // Loops of one iteration are not in any dimension of the plan.
    SmallVector<ScaleStep> steps = stepsOfLoops(maps[input], strides);
    for (auto [d, step] : llvm::enumerate(steps))
      if (tile.sizes[d] == 1) {
        Dim dim;
        dim.scales[i] = step;
        ref = scaleAt(ref, dim, i, tile.offsets[d]);
      }
  }
  return success();
}

FailureOr<Places> PlaceBuilder::place(const ContractionTile &tile) {
  offsets.assign(tile.offsets.begin(), tile.offsets.end());
  Places places;
  if (failed(placeData(tile, places)) || failed(placeScales(tile, places)))
    return failure();
  return places;
}
