//===- Rows.h - Attributes of arguments that ranks share --------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_ROWS_H
#define FP8_DIALECT_STABLEHLO_IR_ROWS_H

#include "mlir/IR/Builders.h"

namespace mlir::stablehlo {

/// On an argument of a step that was in shard_map, or of a jit that splits it
/// over devices: rank r reads only the r-th part of its rows.
inline constexpr llvm::StringLiteral kRowsAttrName = "stablehlo.rows";

/// On a slice that cuts a rank's part off a value that all ranks have, and on
/// an argument of which each rank has a part. A dictionary of `whole`, the
/// shape of the whole value (DenseI64ArrayAttr), and `offsets`, where each
/// device's part begins (a row of i64 for each device). With `blocks`, the
/// whole consists of as many equal blocks along the dimension that is divided,
/// and a part has as much of each, from the same place in it on.
inline constexpr llvm::StringLiteral kPartAttrName = "stablehlo.part";
inline constexpr llvm::StringLiteral kPartWholeName = "whole";
inline constexpr llvm::StringLiteral kPartOffsetsName = "offsets";
inline constexpr llvm::StringLiteral kPartBlocksName = "blocks";

/// Makes that dictionary.
inline DictionaryAttr makePart(ArrayRef<int64_t> whole,
                               DenseIntElementsAttr offsets,
                               int64_t blocks = 1) {
  Builder builder(offsets.getContext());
  NamedAttrList attrs;
  attrs.set(kPartWholeName, builder.getDenseI64ArrayAttr(whole));
  attrs.set(kPartOffsetsName, offsets);
  if (blocks > 1)
    attrs.set(kPartBlocksName, builder.getI64IntegerAttr(blocks));
  return attrs.getDictionary(builder.getContext());
}

/// On a step that was in shard_map: the number of devices that it was written
/// for.
inline constexpr llvm::StringLiteral kDevicesAttrName = "stablehlo.devices";

/// On a step that a jit splits over devices: how many share the rows of its
/// batch.
inline constexpr llvm::StringLiteral kSharingAttrName = "stablehlo.sharing";

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_ROWS_H
