//===- Rows.h - Arguments of which a rank has rows --------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_ROWS_H
#define FP8_DIALECT_STABLEHLO_IR_ROWS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::stablehlo {

/// On an argument of a step that was in shard_map, of which rank r reads the
/// r-th part of the rows alone.
inline constexpr llvm::StringLiteral kRowsAttrName = "stablehlo.rows";

/// On a step that was in shard_map: for how many devices it was written.
inline constexpr llvm::StringLiteral kDevicesAttrName = "stablehlo.devices";

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_ROWS_H
