//===- Places.h - Positions in operands and scales --------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_CONTRACTION_PLACES_H
#define FP8_LIB_CODEGEN_CONTRACTION_PLACES_H

#include "IndexBuilder.h"
#include "Loops.h"

#include "fp8/Codegen/Contraction.h"

namespace mlir::fp8::contraction {

/// The current positions in the operands, and in their scales.
struct Places {
  std::array<Ref, 3> data;
  std::array<Ref, 2> scales;
};

/// Emits the positions of elements and scales.
class PlaceBuilder : public IndexBuilder {
public:
  /// `scaled`: which operands have scales.
  PlaceBuilder(OpBuilder &b, Location loc, std::array<bool, 2> scaled)
      : IndexBuilder(b, loc), scaled(scaled) {}

  /// Returns the positions at which operands, result and scales of a tile
  /// begin.
  FailureOr<Places> place(const ContractionTile &tile);
  /// Returns the positions at index `i` of a dimension.
  Places moved(Places places, const Dim &dim, Value i);
  /// Returns the position of an operand's scale at index `i` of a dimension.
  Ref scaleAt(Ref ref, const Dim &dim, unsigned operand, Value i);

private:
  Ref flatten(Value buffer, SmallVector<int64_t> &strides);
  LogicalResult placeData(const ContractionTile &tile, Places &places);
  LogicalResult placeScales(const ContractionTile &tile, Places &places);

  std::array<bool, 2> scaled;
  /// The first index of the tile, per loop.
  SmallVector<Value> offsets;
};

} // namespace mlir::fp8::contraction

#endif // FP8_LIB_CODEGEN_CONTRACTION_PLACES_H
