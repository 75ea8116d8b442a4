//===- Tile.h - Syntax and check of tiles -----------------------*- C++ -*-===//
//
// Shared by the type and the ops that name a tile; `*` is a whole dimension.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_IR_TILE_H
#define FP8_LIB_DIALECT_FP8_IR_TILE_H

#include "mlir/IR/OpImplementation.h"

namespace mlir {
namespace fp8 {

ParseResult parseTileList(AsmParser &parser, SmallVectorImpl<int64_t> &tile);
void printTileList(AsmPrinter &printer, ArrayRef<int64_t> tile);
LogicalResult verifyTile(function_ref<InFlightDiagnostic()> emitError,
                         ArrayRef<int64_t> shape, ArrayRef<int64_t> tile);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_IR_TILE_H
