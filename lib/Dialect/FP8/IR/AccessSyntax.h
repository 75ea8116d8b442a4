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

/// Parses the operands of a launch, set by set:
/// `(read %x, write %y)(read %z, write %w)`.
inline ParseResult
parseAccessedOperands(OpAsmParser &parser,
                      SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                      ArrayAttr &accesses) {
  auto parseSet = [&](OpAsmParser::Delimiter delimiter,
                      SmallVectorImpl<Attribute> &found) {
    return parser.parseCommaSeparatedList(delimiter, [&] {
      return failure(parseAccess(parser, found) ||
                     parser.parseOperand(operands.emplace_back()));
    });
  };
  SmallVector<Attribute> first;
  if (parseSet(OpAsmParser::Delimiter::Paren, first))
    return failure();
  accesses = parser.getBuilder().getArrayAttr(first);
  while (true) {
    llvm::SMLoc loc = parser.getCurrentLocation();
    SmallVector<Attribute> further;
    if (parseSet(OpAsmParser::Delimiter::OptionalParen, further))
      return failure();
    if (further.empty())
      return success();
    if (further != first)
      return parser.emitError(loc)
             << "expected the accesses of the first set of operands, "
             << accesses << ", but got "
             << parser.getBuilder().getArrayAttr(further);
  }
}

inline void printAccessedOperands(OpAsmPrinter &printer, Operation *,
                                  OperandRange operands, ArrayAttr accesses) {
  size_t arguments = accesses.size(), first = 0;
  do {
    printer << '(';
    llvm::interleaveComma(llvm::zip_first(accesses.getAsRange<AccessAttr>(),
                                          operands.drop_front(first)),
                          printer, [&](auto pair) {
                            auto [access, operand] = pair;
                            printer << stringifyAccess(access.getValue()) << ' '
                                    << operand;
                          });
    printer << ')';
    first += arguments;
  } while (arguments > 0 && first + arguments <= operands.size());
}

/// Parses the types of one set of operands and of the results:
/// `(memref<8xf32>, memref<8xf32>) -> ()`.
inline ParseResult parseTypesOfSet(OpAsmParser &parser,
                                   SmallVectorImpl<Type> &operands,
                                   SmallVectorImpl<Type> &results,
                                   ArrayRef<OpAsmParser::UnresolvedOperand> all,
                                   ArrayAttr) {
  FunctionType type;
  if (parser.parseType(type))
    return failure();
  results.assign(type.getResults().begin(), type.getResults().end());
  ArrayRef<Type> ofSet = type.getInputs();
  // (With another number of types, the parser reports the mismatch.)
  do
    operands.append(ofSet.begin(), ofSet.end());
  while (!ofSet.empty() && operands.size() + ofSet.size() <= all.size());
  return success();
}

inline void printTypesOfSet(OpAsmPrinter &printer, Operation *,
                            TypeRange operands, TypeRange results, OperandRange,
                            ArrayAttr accesses) {
  printer.printFunctionalType(operands.take_front(accesses.size()), results);
}

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_IR_ACCESSSYNTAX_H
