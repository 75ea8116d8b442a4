//===- Integers.h - Syntax of lists of integers -----------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_IR_INTEGERS_H
#define FP8_LIB_DIALECT_FP8_IR_INTEGERS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::fp8 {

/// `[1, 2]`
inline ParseResult parseIntegers(AsmParser &parser,
                                 SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

/// The same as an attribute. (DenseI64ArrayAttr::parse adds a second error to
/// that of an element.)
inline ParseResult parseIntegers(AsmParser &parser, DenseI64ArrayAttr &list) {
  SmallVector<int64_t> values;
  if (parseIntegers(parser, values))
    return failure();
  list = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_IR_INTEGERS_H
