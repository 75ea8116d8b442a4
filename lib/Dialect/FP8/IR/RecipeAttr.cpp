//===- RecipeAttr.cpp - The recipe as an attribute ------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

RecipeAttr RecipeAttr::get(MLIRContext *context, const Recipe &recipe) {
  return get(context, fp8::getSettings(recipe, context),
             llvm::map_to_vector(recipe.rules, [](const RecipeRule &rule) {
               return rule.loc;
             }));
}

LogicalResult RecipeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 DictionaryAttr settings,
                                 ArrayRef<FileLineColLoc> ruleLocations) {
  return parseSettings(settings, ruleLocations, emitError);
}

FailureOr<Recipe> RecipeAttr::getRecipe() const {
  return parseSettings(getSettings(), getRuleLocations(), [&]() {
    return emitError(UnknownLoc::get(getContext()));
  });
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// Whether a text is printed as a number, without quotes: it must parse back to
/// the same text.
static bool isNumber(StringRef text) {
  int64_t number;
  return !text.getAsInteger(10, number) && std::to_string(number) == text;
}

static void printSetting(AsmPrinter &printer, Attribute setting) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(setting)) {
    printer << "{";
    llvm::interleaveComma(dictionary, printer, [&](NamedAttribute entry) {
      printer.printKeywordOrString(entry.getName());
      printer << " = ";
      printSetting(printer, entry.getValue());
    });
    printer << "}";
  } else if (auto array = dyn_cast<ArrayAttr>(setting)) {
    printer << "[";
    llvm::interleaveComma(
        array, printer, [&](Attribute entry) { printSetting(printer, entry); });
    printer << "]";
  } else if (auto text = dyn_cast<StringAttr>(setting)) {
    isNumber(text) ? (void)(printer << text.getValue())
                   : printer.printKeywordOrString(text);
  }
}

void RecipeAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printSetting(printer, getSettings());
  if (!getRuleLocations().empty()) {
    printer << ", rules at [";
    llvm::interleaveComma(getRuleLocations(), printer, [&](FileLineColLoc loc) {
      printer.printString(loc.getFilename());
      printer << ":" << loc.getLine() << ":" << loc.getColumn();
    });
    printer << "]";
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static FailureOr<Attribute> parseSetting(AsmParser &parser);

static FailureOr<DictionaryAttr> parseSettingsDictionary(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  SmallVector<NamedAttribute> entries;
  auto parseEntry = [&]() -> ParseResult {
    std::string key;
    if (parser.parseKeywordOrString(&key) || parser.parseEqual())
      return failure();
    FailureOr<Attribute> value = parseSetting(parser);
    if (failed(value))
      return failure();
    entries.push_back(parser.getBuilder().getNamedAttr(key, *value));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseEntry))
    return failure();
  if (auto twice = DictionaryAttr::findDuplicate(entries, /*isSorted=*/false))
    return parser.emitError(loc)
           << "duplicate key '" << twice->getName().getValue() << "'";
  return parser.getBuilder().getDictionaryAttr(entries);
}

static FailureOr<Attribute> parseSetting(AsmParser &parser) {
  Builder &builder = parser.getBuilder();
  if (succeeded(parser.parseOptionalLSquare())) {
    SmallVector<Attribute> entries;
    auto parseEntry = [&]() -> ParseResult {
      FailureOr<Attribute> entry = parseSetting(parser);
      if (succeeded(entry))
        entries.push_back(*entry);
      return LogicalResult(entry);
    };
    if (succeeded(parser.parseOptionalRSquare()))
      return Attribute(builder.getArrayAttr({}));
    if (parser.parseCommaSeparatedList(parseEntry) || parser.parseRSquare())
      return failure();
    return Attribute(builder.getArrayAttr(entries));
  }
  // Try keywords first, because the parser of integers accepts `true`.
  std::string text;
  if (succeeded(parser.parseOptionalKeywordOrString(&text)))
    return Attribute(builder.getStringAttr(text));
  int64_t number;
  OptionalParseResult isNumber = parser.parseOptionalInteger(number);
  if (isNumber.has_value() && failed(*isNumber))
    return failure();
  if (isNumber.has_value())
    return Attribute(builder.getStringAttr(std::to_string(number)));
  FailureOr<DictionaryAttr> dictionary = parseSettingsDictionary(parser);
  if (failed(dictionary))
    return failure();
  return Attribute(*dictionary);
}

static ParseResult parseRuleLocation(AsmParser &parser,
                                     SmallVectorImpl<FileLineColLoc> &result) {
  std::string file;
  unsigned line, column;
  if (parser.parseString(&file) || parser.parseColon() ||
      parser.parseInteger(line) || parser.parseColon() ||
      parser.parseInteger(column))
    return failure();
  result.push_back(
      FileLineColLoc::get(parser.getContext(), file, line, column));
  return success();
}

Attribute RecipeAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  FailureOr<DictionaryAttr> settings = parseSettingsDictionary(parser);
  if (failed(settings))
    return {};
  SmallVector<FileLineColLoc> ruleLocations;
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("rules") || parser.parseKeyword("at") ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() {
         return parseRuleLocation(parser, ruleLocations);
       })))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&]() { return parser.emitError(loc); },
                    parser.getContext(), *settings,
                    ArrayRef<FileLineColLoc>(ruleLocations));
}
