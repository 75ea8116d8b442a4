//===- StableHLOAttrs.cpp - Attributes of the StableHLO subset ------------===//

#include "AssemblyFormat.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "fp8/Dialect/StableHLO/IR/StableHLOEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/StableHLO/IR/StableHLOAttrs.cpp.inc"

namespace {

/// Writes the `<key = value, ...>` form that most attributes share. `dims`
/// leaves out empty lists.
class FieldWriter {
public:
  explicit FieldWriter(AsmPrinter &printer) : printer(printer) {
    printer << '<';
  }
  ~FieldWriter() { printer << '>'; }

  raw_ostream &begin(StringRef name) {
    printer << separator << name << " = ";
    separator = ", ";
    return printer.getStream();
  }
  void dims(StringRef name, ArrayRef<int64_t> values) {
    if (values.empty())
      return;
    begin(name);
    printDims(printer, values);
  }
  void list(StringRef name, ArrayRef<int64_t> values) {
    begin(name);
    printDims(printer, values);
  }
  void integer(StringRef name, int64_t value) { begin(name) << value; }

private:
  AsmPrinter &printer;
  StringRef separator = "";
};

} // namespace

//===----------------------------------------------------------------------===//
// ResultAccuracyAttr
//===----------------------------------------------------------------------===//

Attribute ResultAccuracyAttr::parse(AsmParser &parser, Type) {
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  auto mode = ResultAccuracyModeAttr::get(parser.getContext(),
                                          ResultAccuracyMode::DEFAULT);
  auto parseAtol = [&]() { return parser.parseFloat(atol); };
  auto parseRtol = [&]() { return parser.parseFloat(rtol); };
  auto parseUlps = [&]() { return parser.parseInteger(ulps); };
  auto parseMode = [&]() { return parser.parseAttribute(mode); };
  if (parser.parseLess() ||
      parseFields(parser, {{"atol", parseAtol},
                           {"rtol", parseRtol},
                           {"ulps", parseUlps},
                           {"mode", parseMode}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), APFloat(atol), APFloat(rtol), ulps, mode);
}

void ResultAccuracyAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  auto writeFloat = [&](StringRef name, const APFloat &value) {
    if (value.isZero())
      return;
    writer.begin(name);
    printer.printFloat(value);
  };
  writeFloat("atol", getAtol());
  writeFloat("rtol", getRtol());
  if (getUlps())
    writer.integer("ulps", getUlps());
  writer.begin("mode");
  printer.printAttribute(getMode());
}

//===----------------------------------------------------------------------===//
// DotDimensionNumbersAttr
//===----------------------------------------------------------------------===//

Attribute DotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  auto parseLhsBatching = [&]() { return parseDims(parser, lhsBatching); };
  auto parseRhsBatching = [&]() { return parseDims(parser, rhsBatching); };
  auto parseLhsContracting = [&]() {
    return parseDims(parser, lhsContracting);
  };
  auto parseRhsContracting = [&]() {
    return parseDims(parser, rhsContracting);
  };
  if (parser.parseLess() ||
      parseFields(parser,
                  {{"lhs_batching_dimensions", parseLhsBatching},
                   {"rhs_batching_dimensions", parseRhsBatching},
                   {"lhs_contracting_dimensions", parseLhsContracting},
                   {"rhs_contracting_dimensions", parseRhsContracting}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), lhsBatching, rhsBatching, lhsContracting,
             rhsContracting);
}

void DotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  writer.dims("lhs_batching_dimensions", getLhsBatchingDimensions());
  writer.dims("rhs_batching_dimensions", getRhsBatchingDimensions());
  writer.dims("lhs_contracting_dimensions", getLhsContractingDimensions());
  writer.dims("rhs_contracting_dimensions", getRhsContractingDimensions());
}

//===----------------------------------------------------------------------===//
// DotAlgorithmAttr
//===----------------------------------------------------------------------===//

Attribute DotAlgorithmAttr::parse(AsmParser &parser, Type) {
  Type lhs, rhs, accumulation;
  int64_t lhsCount = 1, rhsCount = 1, operations = 1;
  bool imprecise = false;
  SMLoc loc = parser.getCurrentLocation();
  auto parseLhs = [&]() { return parser.parseType(lhs); };
  auto parseRhs = [&]() { return parser.parseType(rhs); };
  auto parseAccumulation = [&]() { return parser.parseType(accumulation); };
  auto parseLhsCount = [&]() { return parser.parseInteger(lhsCount); };
  auto parseRhsCount = [&]() { return parser.parseInteger(rhsCount); };
  auto parseOperations = [&]() { return parser.parseInteger(operations); };
  auto parseImprecise = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("true"))) {
      imprecise = true;
      return success();
    }
    imprecise = false;
    return parser.parseKeyword("false");
  };
  if (parser.parseLess() ||
      parseFields(parser, {{"lhs_precision_type", parseLhs},
                           {"rhs_precision_type", parseRhs},
                           {"accumulation_type", parseAccumulation},
                           {"lhs_component_count", parseLhsCount},
                           {"rhs_component_count", parseRhsCount},
                           {"num_primitive_operations", parseOperations},
                           {"allow_imprecise_accumulation", parseImprecise}}) ||
      parser.parseGreater())
    return {};
  if (!lhs || !rhs || !accumulation) {
    parser.emitError(loc, "expected lhs_precision_type, rhs_precision_type and "
                          "accumulation_type");
    return {};
  }
  return get(parser.getContext(), lhs, rhs, accumulation, lhsCount, rhsCount,
             operations, imprecise);
}

void DotAlgorithmAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  writer.begin("lhs_precision_type");
  printer << getLhsPrecisionType();
  writer.begin("rhs_precision_type");
  printer << getRhsPrecisionType();
  writer.begin("accumulation_type");
  printer << getAccumulationType();
  writer.integer("lhs_component_count", getLhsComponentCount());
  writer.integer("rhs_component_count", getRhsComponentCount());
  writer.integer("num_primitive_operations", getNumPrimitiveOperations());
  writer.begin("allow_imprecise_accumulation")
      << (getAllowImpreciseAccumulation() ? "true" : "false");
}

//===----------------------------------------------------------------------===//
// GatherDimensionNumbersAttr
//===----------------------------------------------------------------------===//

Attribute GatherDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> offset, collapsed, operandBatching, indicesBatching, map;
  int64_t vectorDim = 0;
  auto parseOffset = [&]() { return parseDims(parser, offset); };
  auto parseCollapsed = [&]() { return parseDims(parser, collapsed); };
  auto parseOperand = [&]() { return parseDims(parser, operandBatching); };
  auto parseIndices = [&]() { return parseDims(parser, indicesBatching); };
  auto parseMap = [&]() { return parseDims(parser, map); };
  auto parseVectorDim = [&]() { return parser.parseInteger(vectorDim); };
  if (parser.parseLess() ||
      parseFields(parser, {{"offset_dims", parseOffset},
                           {"collapsed_slice_dims", parseCollapsed},
                           {"operand_batching_dims", parseOperand},
                           {"start_indices_batching_dims", parseIndices},
                           {"start_index_map", parseMap},
                           {"index_vector_dim", parseVectorDim}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), offset, collapsed, operandBatching,
             indicesBatching, map, vectorDim);
}

void GatherDimensionNumbersAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  writer.dims("offset_dims", getOffsetDims());
  writer.dims("collapsed_slice_dims", getCollapsedSliceDims());
  writer.dims("operand_batching_dims", getOperandBatchingDims());
  writer.dims("start_indices_batching_dims", getStartIndicesBatchingDims());
  writer.dims("start_index_map", getStartIndexMap());
  if (getIndexVectorDim())
    writer.integer("index_vector_dim", getIndexVectorDim());
}

//===----------------------------------------------------------------------===//
// ScatterDimensionNumbersAttr
//===----------------------------------------------------------------------===//

Attribute ScatterDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> window, inserted, inputBatching, indicesBatching, map;
  int64_t vectorDim = 0;
  auto parseWindow = [&]() { return parseDims(parser, window); };
  auto parseInserted = [&]() { return parseDims(parser, inserted); };
  auto parseInput = [&]() { return parseDims(parser, inputBatching); };
  auto parseIndices = [&]() { return parseDims(parser, indicesBatching); };
  auto parseMap = [&]() { return parseDims(parser, map); };
  auto parseVectorDim = [&]() { return parser.parseInteger(vectorDim); };
  if (parser.parseLess() ||
      parseFields(parser, {{"update_window_dims", parseWindow},
                           {"inserted_window_dims", parseInserted},
                           {"input_batching_dims", parseInput},
                           {"scatter_indices_batching_dims", parseIndices},
                           {"scatter_dims_to_operand_dims", parseMap},
                           {"index_vector_dim", parseVectorDim}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), window, inserted, inputBatching,
             indicesBatching, map, vectorDim);
}

void ScatterDimensionNumbersAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  writer.dims("update_window_dims", getUpdateWindowDims());
  writer.dims("inserted_window_dims", getInsertedWindowDims());
  writer.dims("input_batching_dims", getInputBatchingDims());
  writer.dims("scatter_indices_batching_dims", getScatterIndicesBatchingDims());
  writer.dims("scatter_dims_to_operand_dims", getScatterDimsToOperandDims());
  if (getIndexVectorDim())
    writer.integer("index_vector_dim", getIndexVectorDim());
}

//===----------------------------------------------------------------------===//
// ConvDimensionNumbersAttr
//===----------------------------------------------------------------------===//

Attribute ConvDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  ConvDimensionNumbersAttr dims;
  if (parser.parseLess() || parseConvDimensions(parser, dims) ||
      parser.parseGreater())
    return {};
  return dims;
}

void ConvDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printConvDimensions(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// OutputOperandAliasAttr
//===----------------------------------------------------------------------===//

Attribute OutputOperandAliasAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> outputIndices, operandIndices;
  int64_t operandIndex = 0;
  auto parseOutput = [&]() { return parseDims(parser, outputIndices); };
  auto parseIndex = [&]() { return parser.parseInteger(operandIndex); };
  auto parseOperand = [&]() { return parseDims(parser, operandIndices); };
  if (parser.parseLess() ||
      parseFields(parser, {{"output_tuple_indices", parseOutput},
                           {"operand_index", parseIndex},
                           {"operand_tuple_indices", parseOperand}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), outputIndices, operandIndex, operandIndices);
}

void OutputOperandAliasAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  writer.list("output_tuple_indices", getOutputTupleIndices());
  writer.integer("operand_index", getOperandIndex());
  writer.list("operand_tuple_indices", getOperandTupleIndices());
}

//===----------------------------------------------------------------------===//
// ChannelHandleAttr
//===----------------------------------------------------------------------===//

Attribute ChannelHandleAttr::parse(AsmParser &parser, Type) {
  int64_t handle = 0, type = 0;
  auto parseHandle = [&]() { return parser.parseInteger(handle); };
  auto parseType = [&]() { return parser.parseInteger(type); };
  if (parser.parseLess() ||
      parseFields(parser, {{"handle", parseHandle}, {"type", parseType}}) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), handle, type);
}

void ChannelHandleAttr::print(AsmPrinter &printer) const {
  FieldWriter writer(printer);
  writer.integer("handle", getHandle());
  writer.integer("type", getType());
}

//===----------------------------------------------------------------------===//
// Dialect hooks
//===----------------------------------------------------------------------===//

void StablehloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/Dialect/StableHLO/IR/StableHLOAttrs.cpp.inc"
      >();
}

Attribute StablehloDialect::parseAttribute(DialectAsmParser &parser,
                                           Type type) const {
  StringRef mnemonic;
  Attribute attr;
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult result =
      generatedAttributeParser(parser, &mnemonic, type, attr);
  if (result.has_value())
    return attr;
  parser.emitError(loc) << getUnsupportedMessage(
      ("attribute #stablehlo." + mnemonic).str());
  return {};
}

void StablehloDialect::printAttribute(Attribute attr,
                                      DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attr, printer);
}

Type StablehloDialect::parseType(DialectAsmParser &parser) const {
  SMLoc loc = parser.getCurrentLocation();
  parser.emitError(loc) << getUnsupportedMessage(
      ("type !stablehlo." + parser.getFullSymbolSpec()).str());
  return {};
}

void StablehloDialect::printType(Type, DialectAsmPrinter &) const {}
