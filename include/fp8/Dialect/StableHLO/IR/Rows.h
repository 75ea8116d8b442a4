//===- Rows.h - Arguments of which a rank has rows --------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_ROWS_H
#define FP8_DIALECT_STABLEHLO_IR_ROWS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::stablehlo {

/// On an argument of a step that was in shard_map: each rank has rows of its
/// own. The others are whole on every rank.
inline constexpr llvm::StringLiteral kRowsAttrName = "stablehlo.rows";

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_ROWS_H
