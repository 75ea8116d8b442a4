//===- SdyDialect.cpp - Shardy subset dialect -----------------------------===//

#include "fp8/Dialect/StableHLO/IR/Sdy.h"

#include "UnsupportedOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::sdy;

#include "fp8/Dialect/StableHLO/IR/SdyDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/StableHLO/IR/SdyAttrs.cpp.inc"

namespace {

struct SdyInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// Shardy ops outside of the subset.
struct UnsupportedSdyNames {
  static constexpr StringLiteral list[] = {
      "sdy.all_gather",
      "sdy.all_reduce",
      "sdy.all_slice",
      "sdy.all_to_all",
      "sdy.collective_permute",
      "sdy.constant",
      "sdy.data_flow_edge",
      "sdy.named_computation",
      "sdy.propagation_barrier",
      "sdy.reduce_scatter",
      "sdy.reshard",
      "sdy.sharding_group",
  };
};

} // namespace

void SdyDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "fp8/Dialect/StableHLO/IR/SdyOps.cpp.inc"
      >();
  stablehlo::addUnsupportedOps<UnsupportedSdyNames>(
      [&](auto *op) { addOperations<std::remove_pointer_t<decltype(op)>>(); },
      std::make_index_sequence<std::size(UnsupportedSdyNames::list)>());
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/Dialect/StableHLO/IR/SdyAttrs.cpp.inc"
      >();
  addInterfaces<SdyInlinerInterface>();
}

std::optional<Dialect::ParseOpHook>
SdyDialect::getParseOperationHook(StringRef) const {
  return stablehlo::getUnknownOpHook();
}

//===----------------------------------------------------------------------===//
// Attributes: syntax checked, text kept
//===----------------------------------------------------------------------===//

/// Returns source text without its comments and the space at its end.
static std::string withoutComments(StringRef text) {
  std::string result;
  bool inName = false;
  while (!text.empty()) {
    if (!inName && text.starts_with("//")) {
      text = text.drop_until([](char c) { return c == '\n'; });
      continue;
    }
    size_t length = inName && text.front() == '\\' ? 2 : 1;
    inName ^= text.front() == '"';
    result += text.take_front(length);
    text = text.drop_front(std::min(length, text.size()));
  }
  return StringRef(result).rtrim().str();
}

/// Runs `recognize` and returns the source text that it consumed.
static FailureOr<std::string>
parseText(AsmParser &parser, llvm::function_ref<ParseResult()> recognize) {
  const char *begin = parser.getCurrentLocation().getPointer();
  if (recognize())
    return failure();
  // The next token begins behind comments.
  const char *end = parser.getCurrentLocation().getPointer();
  return withoutComments(StringRef(begin, end - begin));
}

/// `"axis"` or `"axis":(pre)size`
static ParseResult parseAxis(AsmParser &parser) {
  std::string name;
  int64_t number;
  if (parser.parseString(&name))
    return failure();
  if (failed(parser.parseOptionalColon()))
    return success();
  return failure(parser.parseLParen() || parser.parseInteger(number) ||
                 parser.parseRParen() || parser.parseInteger(number));
}

/// `{"a", "b"}`
static ParseResult parseAxes(AsmParser &parser) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                        [&]() { return parseAxis(parser); });
}

/// `{"a", ?}p1`
static ParseResult parseDimSharding(AsmParser &parser) {
  auto parseOne = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion()))
      return success();
    return parseAxis(parser);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne))
    return failure();
  StringRef priority;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&priority)))
    return success();
  int64_t number;
  if (!priority.consume_front("p") || priority.getAsInteger(10, number))
    return parser.emitError(loc, "expected a priority such as p1 but got ")
           << priority;
  return success();
}

/// `<["a"=2, "b"=4], device_ids=[0, 1]>`
static ParseResult parseMesh(AsmParser &parser) {
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    return failure(parser.parseString(&name) || parser.parseEqual() ||
                   parser.parseInteger(size));
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  if (succeeded(parser.parseOptionalComma())) {
    auto parseId = [&]() -> ParseResult {
      int64_t id;
      return parser.parseInteger(id);
    };
    if (parser.parseKeyword("device_ids") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseId))
      return failure();
  }
  return parser.parseGreater();
}

/// `<@mesh, [{"a"}, {}], replicated={"b"}>`
static ParseResult parseSharding(AsmParser &parser) {
  if (parser.parseLess())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("mesh"))) {
    if (parseMesh(parser))
      return failure();
  } else {
    StringAttr name;
    if (parser.parseSymbolName(name))
      return failure();
  }
  if (parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() {
        return parseDimSharding(parser);
      }))
    return failure();
  while (succeeded(parser.parseOptionalComma())) {
    StringRef kind;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&kind))
      return failure();
    if (kind != "replicated" && kind != "unreduced")
      return parser.emitError(loc, "expected replicated or unreduced but got ")
             << kind;
    if (parser.parseEqual() || parseAxes(parser))
      return failure();
  }
  return parser.parseGreater();
}

/// `[<@mesh, [{"a"}]>, ...]`
static ParseResult parsePerValueList(AsmParser &parser) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() { return parseSharding(parser); });
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  FailureOr<std::string> text =
      parseText(parser, [&]() { return parseMesh(parser); });
  return failed(text) ? MeshAttr() : get(parser.getContext(), *text);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer.getStream() << getText();
}

int64_t MeshAttr::getNumDevices() const {
  int64_t devices = 1;
  StringRef rest = getText();
  // Outside a name, `=` only precedes a size (and device ids, which are a
  // list). Names may contain anything, including escaped quotes.
  bool inName = false;
  while (!rest.empty()) {
    char c = rest.front();
    rest = rest.drop_front();
    if (c == '"') {
      inName = !inName;
    } else if (inName && c == '\\') {
      rest = rest.drop_front();
    } else if (!inName && c == '=') {
      int64_t size = 1;
      rest = rest.ltrim();
      if (!rest.consumeInteger(10, size))
        devices *= size;
    }
  }
  return devices;
}

Attribute TensorShardingAttr::parse(AsmParser &parser, Type) {
  FailureOr<std::string> text =
      parseText(parser, [&]() { return parseSharding(parser); });
  return failed(text) ? TensorShardingAttr() : get(parser.getContext(), *text);
}

void TensorShardingAttr::print(AsmPrinter &printer) const {
  printer.getStream() << getText();
}

Attribute TensorShardingPerValueAttr::parse(AsmParser &parser, Type) {
  FailureOr<std::string> text;
  if (parser.parseLess() ||
      failed(text = parseText(parser,
                              [&]() { return parsePerValueList(parser); })) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), *text);
}

void TensorShardingPerValueAttr::print(AsmPrinter &printer) const {
  printer.getStream() << '<' << getText() << '>';
}

Attribute ManualAxesAttr::parse(AsmParser &parser, Type) {
  FailureOr<std::string> text =
      parseText(parser, [&]() { return parseAxes(parser); });
  return failed(text) ? ManualAxesAttr() : get(parser.getContext(), *text);
}

void ManualAxesAttr::print(AsmPrinter &printer) const {
  printer.getStream() << getText();
}

Attribute SdyDialect::parseAttribute(DialectAsmParser &parser,
                                     Type type) const {
  StringRef mnemonic;
  Attribute attr;
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult result =
      generatedAttributeParser(parser, &mnemonic, type, attr);
  if (result.has_value())
    return attr;
  // How an op could be partitioned. JAX attaches this to custom calls, for
  // which another error may be more useful than one about this attribute.
  if (mnemonic == "op_sharding_rule")
    return OpaqueAttr::get(StringAttr::get(getContext(), getNamespace()),
                           parser.getFullSymbolSpec(),
                           NoneType::get(getContext()));
  parser.emitError(loc) << stablehlo::getUnsupportedMessage(
      ("attribute #sdy." + mnemonic).str());
  return {};
}

void SdyDialect::printAttribute(Attribute attr,
                                DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attr, printer);
}

//===----------------------------------------------------------------------===//
// ManualComputationOp
//===----------------------------------------------------------------------===//

static ParseResult parsePerValue(OpAsmParser &parser,
                                 TensorShardingPerValueAttr &attr) {
  FailureOr<std::string> text =
      parseText(parser, [&]() { return parsePerValueList(parser); });
  if (failed(text))
    return failure();
  attr = TensorShardingPerValueAttr::get(parser.getContext(), *text);
  return success();
}

static void printPerValue(OpAsmPrinter &printer, Operation *,
                          TensorShardingPerValueAttr attr) {
  printer << attr.getText();
}

static ParseResult parseAxes(OpAsmParser &parser, ManualAxesAttr &attr) {
  return parser.parseCustomAttributeWithFallback(attr);
}

static void printAxes(OpAsmPrinter &printer, Operation *, ManualAxesAttr attr) {
  printer << attr.getText();
}

static ParseResult parseBody(OpAsmParser &parser, Region &body) {
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseArgumentList(arguments,
                                          OpAsmParser::Delimiter::Paren,
                                          /*allowType=*/true) ||
                 parser.parseRegion(body, arguments));
}

static void printBody(OpAsmPrinter &printer, Operation *, Region &body) {
  printer << '(';
  llvm::interleaveComma(body.getArguments(), printer, [&](BlockArgument arg) {
    printer.printRegionArgument(arg);
  });
  printer << ") ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

LogicalResult ManualComputationOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getNumOperands())
    return emitOpError("expected ")
           << getNumOperands() << " body arguments but got "
           << block.getNumArguments();
  auto ret = dyn_cast<ReturnOp>(block.back());
  if (!ret)
    return emitOpError("expected sdy.return at the end of the body but got ")
           << block.back().getName();
  if (ret.getNumOperands() != getNumResults())
    return emitOpError("expected ")
           << getNumResults() << " returned values but got "
           << ret.getNumOperands();
  // A shard has the rank and the element type of the whole, and is not larger.
  auto check = [&](Type whole, Type shard, StringRef what,
                   unsigned index) -> LogicalResult {
    auto wholeType = dyn_cast<RankedTensorType>(whole);
    auto shardType = dyn_cast<RankedTensorType>(shard);
    bool fits = wholeType && shardType &&
                wholeType.getRank() == shardType.getRank() &&
                wholeType.getElementType() == shardType.getElementType();
    for (int64_t i = 0; fits && i < wholeType.getRank(); ++i)
      fits = shardType.getDimSize(i) <= wholeType.getDimSize(i);
    if (!fits)
      return emitOpError("expected ")
             << what << ' ' << index << " to be a shard of " << whole
             << " but got " << shard;
    return success();
  };
  for (auto [i, arg] : llvm::enumerate(block.getArguments()))
    if (failed(
            check(getOperand(i).getType(), arg.getType(), "body argument", i)))
      return failure();
  for (auto [i, value] : llvm::enumerate(ret.getResults()))
    if (failed(check(getResult(i).getType(), value.getType(), "returned value",
                     i)))
      return failure();
  return success();
}

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/SdyOps.cpp.inc"
