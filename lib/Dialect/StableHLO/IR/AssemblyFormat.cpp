//===- AssemblyFormat.cpp - Custom syntax of StableHLO ops ----------------===//

#include "AssemblyFormat.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::stablehlo;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

ParseResult stablehlo::parseFields(AsmParser &parser, ArrayRef<Field> fields) {
  llvm::StringSet<> seen;
  // An empty list is legal: every field of every attribute has a default.
  SMLoc loc = parser.getCurrentLocation();
  StringRef key;
  if (failed(parser.parseOptionalKeyword(&key)))
    return success();
  while (true) {
    const Field *field =
        llvm::find_if(fields, [&](const Field &f) { return f.name == key; });
    if (field == fields.end())
      return parser.emitError(loc, "expected one of ")
             << llvm::join(llvm::map_range(
                               fields, [](const Field &f) { return f.name; }),
                           ", ")
             << " but got " << key;
    if (!seen.insert(key).second)
      return parser.emitError(loc, "expected ")
             << key << " once but got it twice";
    if (parser.parseEqual() || field->parse())
      return failure();
    if (failed(parser.parseOptionalComma()))
      return success();
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key))
      return failure();
  }
}

ParseResult stablehlo::parseDims(AsmParser &parser,
                                 SmallVectorImpl<int64_t> &dims) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() {
    return parser.parseInteger(dims.emplace_back());
  });
}

void stablehlo::printDims(AsmPrinter &printer, ArrayRef<int64_t> dims) {
  printer << '[';
  llvm::interleaveComma(dims, printer);
  printer << ']';
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Assigns a parsed function type to the operand types and the result type.
static ParseResult assignFunctionType(OpAsmParser &parser, SMLoc loc,
                                      FunctionType type,
                                      ArrayRef<Type *> operands, Type &result) {
  if (type.getNumInputs() != operands.size() || type.getNumResults() != 1)
    return parser.emitError(loc, "expected a type with ")
           << operands.size() << " operands and 1 result but got " << type;
  for (auto [operand, input] : llvm::zip(operands, type.getInputs()))
    *operand = input;
  result = type.getResult(0);
  return success();
}

ParseResult stablehlo::parseSameTypesImpl(OpAsmParser &parser,
                                          ArrayRef<Type *> operands,
                                          Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  if (auto function = dyn_cast<FunctionType>(type))
    return assignFunctionType(parser, loc, function, operands, result);
  for (Type *operand : operands)
    *operand = type;
  result = type;
  return success();
}

void stablehlo::printSameTypesImpl(OpAsmPrinter &printer,
                                   ArrayRef<Type> operands, Type result) {
  if (llvm::all_of(operands, [&](Type type) { return type == result; }))
    printer << result;
  else
    printer.printFunctionalType(TypeRange(operands), TypeRange(result));
}

ParseResult stablehlo::parseSelectTypes(OpAsmParser &parser, Type &pred,
                                        Type &onTrue, Type &onFalse,
                                        Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(pred))
    return failure();
  if (auto function = dyn_cast<FunctionType>(pred))
    return assignFunctionType(parser, loc, function, {&pred, &onTrue, &onFalse},
                              result);
  if (parser.parseComma() || parser.parseType(result))
    return failure();
  onTrue = onFalse = result;
  return success();
}

void stablehlo::printSelectTypes(OpAsmPrinter &printer, Operation *, Type pred,
                                 Type onTrue, Type onFalse, Type result) {
  if (onTrue == result && onFalse == result)
    printer << pred << ", " << result;
  else
    printer.printFunctionalType(TypeRange({pred, onTrue, onFalse}),
                                TypeRange(result));
}

ParseResult stablehlo::parsePairwiseTypes(OpAsmParser &parser,
                                          SmallVectorImpl<Type> &operands,
                                          SmallVectorImpl<Type> &results) {
  if (parser.parseTypeList(operands))
    return failure();
  results.assign(operands.begin(), operands.end());
  return success();
}

void stablehlo::printPairwiseTypes(OpAsmPrinter &printer, Operation *,
                                   TypeRange operands, TypeRange) {
  llvm::interleaveComma(operands, printer);
}

//===----------------------------------------------------------------------===//
// Operands and attributes
//===----------------------------------------------------------------------===//

ParseResult stablehlo::parseLeadingOperands(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  while (true) {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult result = parser.parseOptionalOperand(operand);
    if (!result.has_value())
      return success();
    if (failed(*result) || parser.parseComma())
      return failure();
    operands.push_back(operand);
  }
}

void stablehlo::printLeadingOperands(OpAsmPrinter &printer, Operation *,
                                     OperandRange operands) {
  llvm::interleave(
      operands, printer.getStream(),
      [&](Value operand) {
        printer << operand;
        printer << ',';
      },
      " ");
}

ParseResult stablehlo::parseExponentMantissa(OpAsmParser &parser,
                                             IntegerAttr &exponent,
                                             IntegerAttr &mantissa) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef text;
  if (parser.parseKeyword(&text))
    return failure();
  StringRef rest = text;
  int32_t exponentBits, mantissaBits;
  if (!rest.consume_front("e") || rest.consumeInteger(10, exponentBits) ||
      !rest.consume_front("m") || rest.consumeInteger(10, mantissaBits) ||
      !rest.empty())
    return parser.emitError(loc, "expected a format such as e8m7 but got ")
           << text;
  exponent = parser.getBuilder().getI32IntegerAttr(exponentBits);
  mantissa = parser.getBuilder().getI32IntegerAttr(mantissaBits);
  return success();
}

void stablehlo::printExponentMantissa(OpAsmPrinter &printer, Operation *,
                                      IntegerAttr exponent,
                                      IntegerAttr mantissa) {
  printer << 'e' << exponent.getInt() << 'm' << mantissa.getInt();
}

/// Parses one of the names of an enum.
template <typename AttrT, typename Fn>
static ParseResult parseEnum(OpAsmParser &parser, AttrT &attr, Fn &&symbolize,
                             StringRef names) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  auto value = symbolize(name);
  if (!value)
    return parser.emitError(loc, "expected ") << names << " but got " << name;
  attr = AttrT::get(parser.getContext(), *value);
  return success();
}

ParseResult stablehlo::parseDirection(OpAsmParser &parser,
                                      ComparisonDirectionAttr &direction) {
  return parseEnum(
      parser, direction,
      [](StringRef name) { return symbolizeComparisonDirection(name); },
      "EQ, NE, GE, GT, LE or LT");
}

void stablehlo::printDirection(OpAsmPrinter &printer, Operation *,
                               ComparisonDirectionAttr direction) {
  printer << ' ' << stringifyComparisonDirection(direction.getValue());
}

ParseResult stablehlo::parseCompareType(OpAsmParser &parser,
                                        ComparisonTypeAttr &type) {
  if (failed(parser.parseOptionalComma()))
    return success();
  return parseEnum(
      parser, type,
      [](StringRef name) { return symbolizeComparisonType(name); },
      "NOTYPE, FLOAT, TOTALORDER, SIGNED or UNSIGNED");
}

void stablehlo::printCompareType(OpAsmPrinter &printer, Operation *,
                                 ComparisonTypeAttr type) {
  if (type)
    printer << ", " << stringifyComparisonType(type.getValue());
}

ParseResult stablehlo::parseGenerator(OpAsmParser &parser,
                                      RngAlgorithmAttr &algorithm) {
  return parseEnum(
      parser, algorithm,
      [](StringRef name) { return symbolizeRngAlgorithm(name); },
      "DEFAULT, THREE_FRY or PHILOX");
}

void stablehlo::printGenerator(OpAsmPrinter &printer, Operation *,
                               RngAlgorithmAttr algorithm) {
  printer << stringifyRngAlgorithm(algorithm.getValue());
}

ParseResult stablehlo::parseSliceRanges(OpAsmParser &parser,
                                        DenseI64ArrayAttr &start,
                                        DenseI64ArrayAttr &limit,
                                        DenseI64ArrayAttr &strides) {
  SmallVector<int64_t> starts, limits, steps;
  auto parseRange = [&]() -> ParseResult {
    steps.push_back(1);
    if (parser.parseInteger(starts.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(limits.emplace_back()))
      return failure();
    if (succeeded(parser.parseOptionalColon()))
      return parser.parseInteger(steps.back());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRange))
    return failure();
  Builder &b = parser.getBuilder();
  start = b.getDenseI64ArrayAttr(starts);
  limit = b.getDenseI64ArrayAttr(limits);
  strides = b.getDenseI64ArrayAttr(steps);
  return success();
}

void stablehlo::printSliceRanges(OpAsmPrinter &printer, Operation *,
                                 DenseI64ArrayAttr start,
                                 DenseI64ArrayAttr limit,
                                 DenseI64ArrayAttr strides) {
  printer << '[';
  // Lists of different lengths are invalid but must not crash the printer.
  size_t rank = std::min({start.size(), limit.size(), strides.size()});
  for (size_t i = 0; i < rank; ++i) {
    if (i)
      printer << ", ";
    printer << start[i] << ':' << limit[i];
    if (strides[i] != 1)
      printer << ':' << strides[i];
  }
  printer << ']';
}

ParseResult stablehlo::parseDotDimensionNumbers(OpAsmParser &parser,
                                                DotDimensionNumbersAttr &dims) {
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  auto parsePair = [&](SmallVector<int64_t> &lhs,
                       SmallVector<int64_t> &rhs) -> ParseResult {
    return failure(parser.parseEqual() || parseDims(parser, lhs) ||
                   parser.parseKeyword("x") || parseDims(parser, rhs));
  };
  if (succeeded(parser.parseOptionalKeyword("batching_dims")) &&
      (parsePair(lhsBatching, rhsBatching) || parser.parseComma()))
    return failure();
  if (parser.parseKeyword("contracting_dims") ||
      parsePair(lhsContracting, rhsContracting))
    return failure();
  dims =
      DotDimensionNumbersAttr::get(parser.getContext(), lhsBatching,
                                   rhsBatching, lhsContracting, rhsContracting);
  return success();
}

void stablehlo::printDotDimensionNumbers(OpAsmPrinter &printer, Operation *,
                                         DotDimensionNumbersAttr dims) {
  auto printPair = [&](StringRef name, ArrayRef<int64_t> lhs,
                       ArrayRef<int64_t> rhs) {
    printer << name << " = ";
    printDims(printer, lhs);
    printer << " x ";
    printDims(printer, rhs);
  };
  if (!dims.getLhsBatchingDimensions().empty() ||
      !dims.getRhsBatchingDimensions().empty()) {
    printPair("batching_dims", dims.getLhsBatchingDimensions(),
              dims.getRhsBatchingDimensions());
    printer << ", ";
  }
  printPair("contracting_dims", dims.getLhsContractingDimensions(),
            dims.getRhsContractingDimensions());
}

ParseResult stablehlo::parsePrecisionAndAlgorithm(OpAsmParser &parser,
                                                  ArrayAttr &precision,
                                                  DotAlgorithmAttr &algorithm) {
  if (failed(parser.parseOptionalComma()))
    return success();
  if (succeeded(parser.parseOptionalKeyword("precision"))) {
    SmallVector<Attribute> values;
    auto parseOne = [&]() -> ParseResult {
      PrecisionAttr value;
      if (parseEnum(
              parser, value,
              [](StringRef name) { return symbolizePrecision(name); },
              "DEFAULT, HIGH or HIGHEST"))
        return failure();
      values.push_back(value);
      return success();
    };
    if (parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
      return failure();
    precision = parser.getBuilder().getArrayAttr(values);
    if (failed(parser.parseOptionalComma()))
      return success();
  }
  if (parser.parseKeyword("algorithm") || parser.parseEqual())
    return failure();
  return parser.parseCustomAttributeWithFallback(algorithm);
}

void stablehlo::printPrecisionAndAlgorithm(OpAsmPrinter &printer, Operation *,
                                           ArrayAttr precision,
                                           DotAlgorithmAttr algorithm) {
  if (precision) {
    printer << ", precision = [";
    llvm::interleaveComma(
        precision.getAsRange<PrecisionAttr>(), printer,
        [&](PrecisionAttr p) { printer << stringifyPrecision(p.getValue()); });
    printer << ']';
  }
  if (algorithm) {
    printer << ", algorithm = ";
    printer.printStrippedAttrOrType(algorithm);
  }
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Parses `[b, 0, 1, f]`: the positions of two letters and of the spatial
/// dimensions.
static ParseResult parseConvDims(AsmParser &parser, StringRef letters,
                                 int64_t &first, int64_t &second,
                                 SmallVector<int64_t> &spatial) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<std::pair<int64_t, int64_t>> found; // (spatial number, position)
  int64_t position = 0;
  first = second = -1;
  auto parseOne = [&]() -> ParseResult {
    StringRef letter;
    int64_t number;
    OptionalParseResult result = parser.parseOptionalInteger(number);
    if (result.has_value()) {
      if (failed(*result))
        return failure();
      found.push_back({number, position++});
      return success();
    }
    SMLoc letterLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&letter))
      return failure();
    if (letter == letters.take_front(1) && first < 0)
      first = position++;
    else if (letter == letters.take_back(1) && second < 0)
      second = position++;
    else
      return parser.emitError(letterLoc, "expected ")
             << letters[0] << ", " << letters[1]
             << " (each once) or a number but got " << letter;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  if (first < 0 || second < 0)
    return parser.emitError(loc, "expected both ")
           << letters[0] << " and " << letters[1] << " among the dimensions";
  llvm::sort(found);
  for (auto [i, entry] : llvm::enumerate(found)) {
    if (entry.first != static_cast<int64_t>(i))
      return parser.emitError(loc, "expected spatial dimension ")
             << i << " but got " << entry.first;
    spatial.push_back(entry.second);
  }
  return success();
}

static void printConvDims(AsmPrinter &printer, StringRef letters, int64_t first,
                          int64_t second, ArrayRef<int64_t> spatial) {
  SmallVector<std::string> names(spatial.size() + 2, "?");
  auto set = [&](int64_t position, std::string name) {
    if (position >= 0 && position < static_cast<int64_t>(names.size()))
      names[position] = std::move(name);
  };
  set(first, letters.take_front(1).str());
  set(second, letters.take_back(1).str());
  for (auto [i, position] : llvm::enumerate(spatial))
    set(position, std::to_string(i));
  printer << '[';
  llvm::interleaveComma(names, printer);
  printer << ']';
}

ParseResult stablehlo::parseConvDimensions(AsmParser &parser,
                                           ConvDimensionNumbersAttr &dims) {
  int64_t inputBatch, inputFeature, kernelInput, kernelOutput, outputBatch,
      outputFeature;
  SmallVector<int64_t> inputSpatial, kernelSpatial, outputSpatial;
  if (parseConvDims(parser, "bf", inputBatch, inputFeature, inputSpatial) ||
      parser.parseKeyword("x") ||
      parseConvDims(parser, "io", kernelInput, kernelOutput, kernelSpatial) ||
      parser.parseArrow() ||
      parseConvDims(parser, "bf", outputBatch, outputFeature, outputSpatial))
    return failure();
  dims = ConvDimensionNumbersAttr::get(
      parser.getContext(), inputBatch, inputFeature, inputSpatial, kernelInput,
      kernelOutput, kernelSpatial, outputBatch, outputFeature, outputSpatial);
  return success();
}

void stablehlo::printConvDimensions(AsmPrinter &printer,
                                    ConvDimensionNumbersAttr dims) {
  printConvDims(printer, "bf", dims.getInputBatchDimension(),
                dims.getInputFeatureDimension(),
                dims.getInputSpatialDimensions());
  printer << 'x';
  printConvDims(printer, "io", dims.getKernelInputFeatureDimension(),
                dims.getKernelOutputFeatureDimension(),
                dims.getKernelSpatialDimensions());
  printer << "->";
  printConvDims(printer, "bf", dims.getOutputBatchDimension(),
                dims.getOutputFeatureDimension(),
                dims.getOutputSpatialDimensions());
}

ParseResult stablehlo::parseConvWindow(OpAsmParser &parser,
                                       DenseI64ArrayAttr &strides,
                                       DenseIntElementsAttr &padding,
                                       DenseI64ArrayAttr &lhsDilation,
                                       DenseI64ArrayAttr &rhsDilation,
                                       DenseBoolArrayAttr &reversal) {
  Builder &b = parser.getBuilder();
  auto parseInts = [&](DenseI64ArrayAttr &attr) -> ParseResult {
    SmallVector<int64_t> values;
    if (parseDims(parser, values))
      return failure();
    attr = b.getDenseI64ArrayAttr(values);
    return success();
  };
  auto parseStride = [&]() { return parseInts(strides); };
  auto parseLhs = [&]() { return parseInts(lhsDilation); };
  auto parseRhs = [&]() { return parseInts(rhsDilation); };
  auto parsePad = [&]() -> ParseResult {
    SmallVector<int64_t> values;
    auto parsePair = [&]() -> ParseResult {
      SMLoc loc = parser.getCurrentLocation();
      size_t before = values.size();
      if (parseDims(parser, values))
        return failure();
      if (values.size() - before != 2)
        return parser.emitError(loc, "expected a pair of paddings but got ")
               << values.size() - before << " numbers";
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePair))
      return failure();
    auto type = RankedTensorType::get(
        {static_cast<int64_t>(values.size() / 2), 2}, b.getI64Type());
    padding = DenseIntElementsAttr::get(type, values);
    return success();
  };
  auto parseReverse = [&]() -> ParseResult {
    SmallVector<bool> values;
    auto parseOne = [&]() -> ParseResult {
      if (succeeded(parser.parseOptionalKeyword("true"))) {
        values.push_back(true);
        return success();
      }
      if (succeeded(parser.parseOptionalKeyword("false"))) {
        values.push_back(false);
        return success();
      }
      int64_t value;
      if (parser.parseInteger(value))
        return failure();
      values.push_back(value != 0);
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
      return failure();
    reversal = b.getDenseBoolArrayAttr(values);
    return success();
  };
  return parseFields(parser, {{"stride", parseStride},
                              {"pad", parsePad},
                              {"lhs_dilate", parseLhs},
                              {"rhs_dilate", parseRhs},
                              {"reverse", parseReverse}});
}

void stablehlo::printConvWindow(OpAsmPrinter &printer, Operation *,
                                DenseI64ArrayAttr strides,
                                DenseIntElementsAttr padding,
                                DenseI64ArrayAttr lhsDilation,
                                DenseI64ArrayAttr rhsDilation,
                                DenseBoolArrayAttr reversal) {
  StringRef separator = "";
  auto begin = [&](StringRef name) {
    printer << separator << name << " = ";
    separator = ", ";
  };
  if (strides) {
    begin("stride");
    printDims(printer, strides);
  }
  if (padding) {
    begin("pad");
    SmallVector<int64_t> values(padding.getValues<int64_t>());
    printer << '[';
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      printer << (i ? ", [" : "[") << values[i] << ", " << values[i + 1] << ']';
    printer << ']';
  }
  if (lhsDilation) {
    begin("lhs_dilate");
    printDims(printer, lhsDilation);
  }
  if (rhsDilation) {
    begin("rhs_dilate");
    printDims(printer, rhsDilation);
  }
  if (reversal) {
    begin("reverse");
    printer << '[';
    llvm::interleaveComma(reversal.asArrayRef(), printer, [&](bool value) {
      printer << (value ? "true" : "false");
    });
    printer << ']';
  }
}

//===----------------------------------------------------------------------===//
// Custom calls
//===----------------------------------------------------------------------===//

ParseResult stablehlo::parseCustomCallTarget(OpAsmParser &parser,
                                             StringAttr &target) {
  return parser.parseSymbolName(target);
}

void stablehlo::printCustomCallTarget(OpAsmPrinter &printer, Operation *,
                                      StringAttr target) {
  printer.printSymbolName(target.getValue());
}

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

/// Returns the op of a body that `applies` can express: one op on the two
/// arguments in order, whose only result is returned.
static Operation *getAppliedOp(ReduceOp op) {
  if (op.getInputs().size() != 1 || !op.getBody().hasOneBlock())
    return nullptr;
  Block &block = op.getBody().front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block, 2))
    return nullptr;
  Operation &inner = block.front();
  auto ret = dyn_cast<ReturnOp>(block.back());
  if (!ret || ret->getNumOperands() != 1 || !ret->getAttrs().empty() ||
      inner.getNumOperands() != 2 || inner.getNumResults() != 1 ||
      inner.getNumRegions() != 0 || !inner.getAttrs().empty() ||
      !inner.hasTrait<::mlir::OpTrait::SameOperandsAndResultType>() ||
      inner.getOperand(0) != block.getArgument(0) ||
      inner.getOperand(1) != block.getArgument(1) ||
      ret->getOperand(0) != inner.getResult(0))
    return nullptr;
  auto init = dyn_cast<RankedTensorType>(op.getInitValues()[0].getType());
  if (!init || init != block.getArgument(0).getType() ||
      init != block.getArgument(1).getType() ||
      init != inner.getResult(0).getType())
    return nullptr;
  return &inner;
}

/// Parses the rest of a reduction that applies the op called `inner`, and
/// builds its body for elements of the type `element`.
static ParseResult parseAppliedOp(OpAsmParser &parser, OperationName inner,
                                  SMLoc innerLoc, Type element, Region &body,
                                  OperationState &result) {
  bool isOfOneType =
      inner.hasTrait<::mlir::OpTrait::SameOperandsAndResultType>();
  if (inner.hasTrait<::mlir::OpTrait::Elementwise>() && !isOfOneType)
    return parser.emitError(innerLoc, "expected an op whose operands and "
                                      "result are of one type but got ")
           << inner.getStringRef();
  if (!isOfOneType)
    return mlir::emitError(parser.getEncodedSourceLoc(innerLoc),
                           getUnsupportedMessage(inner.getStringRef()));
  // The location after the reduction is also that of its body.
  std::optional<Location> trailing;
  if (parser.parseOptionalLocationSpecifier(trailing))
    return failure();
  if (trailing)
    result.location = *trailing;
  Block &block = body.emplaceBlock();
  block.addArguments({element, element}, {result.location, result.location});
  // The region has no op yet that could give the context.
  OpBuilder builder(parser.getContext());
  builder.setInsertionPointToEnd(&block);
  OperationState state(result.location, inner);
  state.addOperands(block.getArguments());
  state.addTypes(element);
  Operation *op = builder.create(state);
  ReturnOp::create(builder, result.location, op->getResults());
  return success();
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands, inits;
  auto parsePair = [&]() -> ParseResult {
    return failure(
        parser.parseLParen() || parser.parseOperand(operands.emplace_back()) ||
        parser.parseKeyword("init") || parser.parseColon() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseRParen());
  };
  if (parser.parseCommaSeparatedList(parsePair))
    return failure();
  operands.append(inits);

  std::optional<OperationName> inner;
  SMLoc innerLoc;
  if (succeeded(parser.parseOptionalKeyword("applies"))) {
    innerLoc = parser.getCurrentLocation();
    FailureOr<OperationName> name = parser.parseCustomOperationName();
    if (failed(name))
      return failure();
    inner = *name;
  }

  SmallVector<int64_t> dims;
  FunctionType type;
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") ||
      parser.parseEqual() || parseDims(parser, dims) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  result.getOrAddProperties<Properties>().dimensions =
      parser.getBuilder().getDenseI64ArrayAttr(dims);
  result.addTypes(type.getResults());
  Region *body = result.addRegion();

  if (inner) {
    if (operands.size() != 2)
      return parser.emitError(loc, "expected one input to apply an op to but "
                                   "got ")
             << inits.size();
    return parseAppliedOp(parser, *inner, innerLoc, type.getInput(1), *body,
                          result);
  }

  // Arguments come in pairs (accumulator, element), one pair an input.
  SmallVector<OpAsmParser::Argument> accumulators, elements;
  if (parser.parseKeyword("reducer"))
    return failure();
  for (size_t i = 0; i < inits.size(); ++i)
    if (parser.parseLParen() ||
        parser.parseArgument(accumulators.emplace_back(), /*allowType=*/true) ||
        parser.parseComma() ||
        parser.parseArgument(elements.emplace_back(), /*allowType=*/true) ||
        parser.parseRParen())
      return failure();
  accumulators.append(elements);
  return parser.parseRegion(*body, accumulators);
}

void ReduceOp::print(OpAsmPrinter &printer) {
  llvm::interleaveComma(llvm::zip(getInputs(), getInitValues()), printer,
                        [&](auto pair) {
                          printer << '(' << std::get<0>(pair)
                                  << " init: " << std::get<1>(pair) << ')';
                        });
  Operation *inner = getAppliedOp(*this);
  if (inner)
    printer << " applies " << inner->getName();
  printer << " across dimensions = ";
  printDims(printer, getDimensions());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"dimensions"});
  printer << " : ";
  printer.printFunctionalType(*this);
  if (inner)
    return;
  printer.printNewline();
  printer << " reducer";
  Block &block = getBody().front();
  size_t count = block.getNumArguments() / 2;
  for (size_t i = 0; i < count; ++i) {
    printer << '(';
    printer.printRegionArgument(block.getArgument(i));
    printer << ", ";
    printer.printRegionArgument(block.getArgument(count + i));
    printer << ") ";
  }
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// While
//===----------------------------------------------------------------------===//

ParseResult WhileOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<OpAsmParser::Argument> arguments;
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  SmallVector<Type> types;
  if (!operands.empty() && (parser.parseColon() || parser.parseTypeList(types)))
    return failure();
  if (parser.resolveOperands(operands, types, loc, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  for (auto [argument, type] : llvm::zip(arguments, types))
    argument.type = type;
  result.addTypes(types);
  Region *cond = result.addRegion();
  Region *body = result.addRegion();
  return failure(
      parser.parseKeyword("cond") || parser.parseRegion(*cond, arguments) ||
      parser.parseKeyword("do") || parser.parseRegion(*body, arguments));
}

void WhileOp::print(OpAsmPrinter &printer) {
  printer << '(';
  llvm::interleaveComma(llvm::zip(getCond().getArguments(), getOperand()),
                        printer, [&](auto pair) {
                          printer.printOperand(std::get<0>(pair));
                          printer << " = " << std::get<1>(pair);
                        });
  printer << ')';
  if (getNumOperands()) {
    printer << " : ";
    llvm::interleaveComma(getOperandTypes(), printer);
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer.printNewline();
  printer << "cond ";
  printer.printRegion(getCond(), /*printEntryBlockArgs=*/false);
  printer << " do ";
  // One list of names gives the arguments of both regions.
  printer.shadowRegionArgs(getBody(), getCond().getArguments());
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Constant
//===----------------------------------------------------------------------===//

/// Whether the text at `loc` is a constant whose elements are hexadecimal
/// digits, as those of many elements are printed.
static bool isHexadecimal(SMLoc loc) {
  constexpr llvm::StringLiteral kBegin = "dense<\"0x";
  return std::strncmp(loc.getPointer(), kBegin.data(), kBegin.size()) == 0;
}

/// Parses `dense<"0x...">` and its type. MLIR packs booleans into bits in this
/// form; newer versions, one of which JAX has, print a byte for each.
static ParseResult parseHexadecimal(OpAsmParser &parser, ElementsAttr &value) {
  SMLoc loc = parser.getCurrentLocation();
  std::string digits, bytes;
  ShapedType type;
  if (parser.parseKeyword("dense") || parser.parseLess() ||
      parser.parseString(&digits) || parser.parseGreater() ||
      parser.parseColonType(type))
    return failure();
  if (!type.hasStaticShape() ||
      !llvm::tryGetFromHex(StringRef(digits).drop_front(2), bytes))
    return parser.emitError(loc, "expected hexadecimal digits and a static "
                                 "shape but got ")
           << type;
  size_t count = type.getNumElements();
  if (type.getElementType().isInteger(1) && bytes.size() == count) {
    SmallVector<bool> booleans(bytes.begin(), bytes.end());
    value = DenseElementsAttr::get(type, booleans);
    return success();
  }
  ArrayRef<char> raw(bytes.data(), bytes.size());
  bool isSplat;
  if (!DenseElementsAttr::isValidRawBuffer(type, raw, isSplat))
    return parser.emitError(loc, "expected the bytes of ")
           << count << " elements of " << type.getElementType() << " but got "
           << bytes.size() << " bytes";
  value = DenseElementsAttr::getFromRawBuffer(type, raw);
  return success();
}

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &result) {
  ElementsAttr value;
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  Attribute attr;
  if (isHexadecimal(loc)) {
    if (parseHexadecimal(parser, value))
      return failure();
  } else if (parser.parseAttribute(attr)) {
    return failure();
  } else if (!(value = dyn_cast<ElementsAttr>(attr))) {
    return parser.emitError(loc, "expected a dense<...> value but got ")
           << attr;
  }
  result.getOrAddProperties<Properties>().value = value;
  result.addTypes(value.getType());
  return success();
}

void ConstantOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
  printer << ' ' << getValueAttr();
}

//===----------------------------------------------------------------------===//
// Ops outside of the subset
//===----------------------------------------------------------------------===//

std::string stablehlo::getUnsupportedMessage(StringRef what) {
  return (what + " is not supported by the fp8 importer; see "
                 "docs/StableHLOSubset.md for the supported ops")
      .str();
}
