//===- AssemblyFormat.h - Custom syntax of StableHLO ops --------*- C++ -*-===//
//
// The `custom<...>` directives of StableHLOOps.td and helpers that attributes
// share.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_IR_ASSEMBLYFORMAT_H
#define FP8_LIB_DIALECT_STABLEHLO_IR_ASSEMBLYFORMAT_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace stablehlo {

/// A key of a `<key = value, ...>` list and the function that parses its value.
struct Field {
  StringRef name;
  llvm::function_ref<ParseResult()> parse;
};

/// Parses `key = value` pairs in any order up to (not including) `>`.
ParseResult parseFields(AsmParser &parser, ArrayRef<Field> fields);

/// `[1, 2]`
ParseResult parseDims(AsmParser &parser, SmallVectorImpl<int64_t> &dims);
void printDims(AsmPrinter &printer, ArrayRef<int64_t> dims);

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`
ParseResult parseConvDimensions(AsmParser &parser,
                                ConvDimensionNumbersAttr &dims);
void printConvDimensions(AsmPrinter &printer, ConvDimensionNumbersAttr dims);

//===----------------------------------------------------------------------===//
// Types: one type when all are equal, else a function type
//===----------------------------------------------------------------------===//

ParseResult parseSameTypesImpl(OpAsmParser &parser, ArrayRef<Type *> operands,
                               Type &result);
void printSameTypesImpl(OpAsmPrinter &printer, ArrayRef<Type> operands,
                        Type result);

inline ParseResult parseSameTypes(OpAsmParser &parser, Type &a, Type &result) {
  return parseSameTypesImpl(parser, {&a}, result);
}
inline ParseResult parseSameTypes(OpAsmParser &parser, Type &a, Type &b,
                                  Type &result) {
  return parseSameTypesImpl(parser, {&a, &b}, result);
}
inline ParseResult parseSameTypes(OpAsmParser &parser, Type &a, Type &b,
                                  Type &c, Type &result) {
  return parseSameTypesImpl(parser, {&a, &b, &c}, result);
}
inline void printSameTypes(OpAsmPrinter &printer, Operation *, Type a,
                           Type result) {
  printSameTypesImpl(printer, {a}, result);
}
inline void printSameTypes(OpAsmPrinter &printer, Operation *, Type a, Type b,
                           Type result) {
  printSameTypesImpl(printer, {a, b}, result);
}
inline void printSameTypes(OpAsmPrinter &printer, Operation *, Type a, Type b,
                           Type c, Type result) {
  printSameTypesImpl(printer, {a, b, c}, result);
}

/// `pred type, value type`, or a function type.
ParseResult parseSelectTypes(OpAsmParser &parser, Type &pred, Type &onTrue,
                             Type &onFalse, Type &result);
void printSelectTypes(OpAsmPrinter &printer, Operation *op, Type pred,
                      Type onTrue, Type onFalse, Type result);

/// Types of operands that equal those of the results.
ParseResult parsePairwiseTypes(OpAsmParser &parser,
                               SmallVectorImpl<Type> &operands,
                               SmallVectorImpl<Type> &results);
void printPairwiseTypes(OpAsmPrinter &printer, Operation *op,
                        TypeRange operands, TypeRange results);

//===----------------------------------------------------------------------===//
// Operands and attributes
//===----------------------------------------------------------------------===//

/// Any number of operands, each followed by a comma.
ParseResult
parseLeadingOperands(OpAsmParser &parser,
                     SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands);
void printLeadingOperands(OpAsmPrinter &printer, Operation *op,
                          OperandRange operands);

/// `e8m7`
ParseResult parseExponentMantissa(OpAsmParser &parser, IntegerAttr &exponent,
                                  IntegerAttr &mantissa);
void printExponentMantissa(OpAsmPrinter &printer, Operation *op,
                           IntegerAttr exponent, IntegerAttr mantissa);

/// `LT`
ParseResult parseDirection(OpAsmParser &parser,
                           ComparisonDirectionAttr &direction);
void printDirection(OpAsmPrinter &printer, Operation *op,
                    ComparisonDirectionAttr direction);

/// `[, SIGNED]`
ParseResult parseCompareType(OpAsmParser &parser, ComparisonTypeAttr &type);
void printCompareType(OpAsmPrinter &printer, Operation *op,
                      ComparisonTypeAttr type);

/// `THREE_FRY`
ParseResult parseGenerator(OpAsmParser &parser, RngAlgorithmAttr &algorithm);
void printGenerator(OpAsmPrinter &printer, Operation *op,
                    RngAlgorithmAttr algorithm);

/// `[start:limit:stride, ...]`, strides of one left out.
ParseResult parseSliceRanges(OpAsmParser &parser, DenseI64ArrayAttr &start,
                             DenseI64ArrayAttr &limit,
                             DenseI64ArrayAttr &strides);
void printSliceRanges(OpAsmPrinter &printer, Operation *op,
                      DenseI64ArrayAttr start, DenseI64ArrayAttr limit,
                      DenseI64ArrayAttr strides);

/// `[batching_dims = [0] x [0], ]contracting_dims = [2] x [1]`
ParseResult parseDotDimensionNumbers(OpAsmParser &parser,
                                     DotDimensionNumbersAttr &dims);
void printDotDimensionNumbers(OpAsmPrinter &printer, Operation *op,
                              DotDimensionNumbersAttr dims);

/// `[, precision = [DEFAULT, DEFAULT]][, algorithm = <...>]`
ParseResult parsePrecisionAndAlgorithm(OpAsmParser &parser,
                                       ArrayAttr &precision,
                                       DotAlgorithmAttr &algorithm);
void printPrecisionAndAlgorithm(OpAsmPrinter &printer, Operation *op,
                                ArrayAttr precision,
                                DotAlgorithmAttr algorithm);

inline ParseResult parseConvDimensions(OpAsmParser &parser,
                                       ConvDimensionNumbersAttr &dims) {
  return parseConvDimensions(static_cast<AsmParser &>(parser), dims);
}
inline void printConvDimensions(OpAsmPrinter &printer, Operation *,
                                ConvDimensionNumbersAttr dims) {
  printConvDimensions(printer, dims);
}

/// `stride = [2], pad = [[0, 1]], lhs_dilate = [1], rhs_dilate = [1],
/// reverse = [false]`, each optional.
ParseResult parseConvWindow(OpAsmParser &parser, DenseI64ArrayAttr &strides,
                            DenseIntElementsAttr &padding,
                            DenseI64ArrayAttr &lhsDilation,
                            DenseI64ArrayAttr &rhsDilation,
                            DenseBoolArrayAttr &reversal);
void printConvWindow(OpAsmPrinter &printer, Operation *op,
                     DenseI64ArrayAttr strides, DenseIntElementsAttr padding,
                     DenseI64ArrayAttr lhsDilation,
                     DenseI64ArrayAttr rhsDilation,
                     DenseBoolArrayAttr reversal);

/// `@name` or `@"any name"`
ParseResult parseCustomCallTarget(OpAsmParser &parser, StringAttr &target);
void printCustomCallTarget(OpAsmPrinter &printer, Operation *op,
                           StringAttr target);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_IR_ASSEMBLYFORMAT_H
