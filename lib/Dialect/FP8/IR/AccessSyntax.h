//===- AccessSyntax.h - Accesses in front of arguments ----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_IR_ACCESSSYNTAX_H
#define FP8_LIB_DIALECT_FP8_IR_ACCESSSYNTAX_H

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::fp8 {

/// Parses `read`, `write` or `update` and appends it to `accesses`.
inline ParseResult parseAccess(OpAsmParser &parser,
                               SmallVectorImpl<Attribute> &accesses) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Access> access = symbolizeAccess(keyword);
  if (!access)
    return parser.emitError(loc)
           << "expected 'read', 'write' or 'update' but got '" << keyword
           << "'";
  accesses.push_back(AccessAttr::get(parser.getContext(), *access));
  return success();
}

/// Parses the operands of a launch: `(read %x, write %y)`.
inline ParseResult
parseAccessedOperands(OpAsmParser &parser,
                      SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                      ArrayAttr &accesses) {
  SmallVector<Attribute> found;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] {
        return failure(parseAccess(parser, found) ||
                       parser.parseOperand(operands.emplace_back()));
      }))
    return failure();
  accesses = parser.getBuilder().getArrayAttr(found);
  return success();
}

inline void printAccessedOperands(OpAsmPrinter &printer, Operation *,
                                  OperandRange operands, ArrayAttr accesses) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip_equal(accesses.getAsRange<AccessAttr>(), operands), printer,
      [&](auto pair) {
        auto [access, operand] = pair;
        printer << stringifyAccess(access.getValue()) << ' ' << operand;
      });
  printer << ')';
}

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_IR_ACCESSSYNTAX_H
