//===- Rows.h - Arguments of which a rank has a part ------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_ROWS_H
#define FP8_DIALECT_STABLEHLO_IR_ROWS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::stablehlo {

/// On an argument of a step that was in shard_map, of which rank r reads the
/// r-th part of the rows alone.
inline constexpr llvm::StringLiteral kRowsAttrName = "stablehlo.rows";

/// On a slice that cuts a rank's part off what all ranks have, and on an
/// argument of which each rank has its part: a dictionary of `whole`, the sizes
/// of what it is a part of (DenseI64ArrayAttr), and `offsets`, where the part
/// of each device begins (a row of i64 for each).
inline constexpr llvm::StringLiteral kPartAttrName = "stablehlo.part";
inline constexpr llvm::StringLiteral kPartWholeName = "whole";
inline constexpr llvm::StringLiteral kPartOffsetsName = "offsets";

/// On a step that was in shard_map: for how many devices it was written.
inline constexpr llvm::StringLiteral kDevicesAttrName = "stablehlo.devices";

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_ROWS_H
