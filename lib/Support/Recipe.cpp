//===- Recipe.cpp - Which dots become FP8, and how ------------------------===//
//
// Walks the nodes of LLVM's YAML parser instead of using its mapping traits:
// those know a key only by name, while a useful error needs the key's place and
// the keys that would have been valid there.
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/Recipe.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// The recipes of recipes/, embedded by CMake
//===----------------------------------------------------------------------===//

namespace {
struct EmbeddedRecipe {
  StringLiteral name;
  StringLiteral text;
};
} // namespace

static constexpr EmbeddedRecipe embeddedRecipes[] = {
#include "Recipes.inc"
};

SmallVector<StringRef> fp8::getRecipeNames() {
  SmallVector<StringRef> names;
  for (const EmbeddedRecipe &recipe : embeddedRecipes)
    names.push_back(recipe.name);
  llvm::sort(names);
  return names;
}

//===----------------------------------------------------------------------===//
// Values and their spellings
//===----------------------------------------------------------------------===//

namespace {
template <typename T> struct Spelling {
  T value;
  StringLiteral text;
};
} // namespace

static constexpr Spelling<RecipeFormat> formats[] = {
    {RecipeFormat::F8E4M3FN, "f8E4M3FN"}, {RecipeFormat::F8E5M2, "f8E5M2"}};
static constexpr Spelling<RecipeTile> tiles[] = {
    {RecipeTile::Tensor, "tensor"}};
static constexpr Spelling<RecipeScale> scales[] = {
    {RecipeScale::Exact, "exact"},
    {RecipeScale::Pow2, "pow2"},
    {RecipeScale::OcpFloor, "ocp_floor"}};
static constexpr Spelling<RecipeRounding> roundings[] = {
    {RecipeRounding::NearestEven, "nearest_even"}};
static constexpr Spelling<RecipeOverflow> overflows[] = {
    {RecipeOverflow::Saturate, "saturate"}, {RecipeOverflow::NaN, "nan"}};
static constexpr Spelling<RecipeScaling> scalings[] = {
    {RecipeScaling::Current, "current"}};

/// Values that the dialect has words for but that do not compute yet: told
/// apart from misspelt ones.
static constexpr StringLiteral plannedFormats[] = {"f8E4M3", "f8E4M3FNUZ",
                                                   "f8E5M2FNUZ"};
static constexpr StringLiteral plannedTiles[] = {"row", "column", "1x32",
                                                 "1x128", "128x128"};
static constexpr StringLiteral plannedRoundings[] = {"stochastic"};
static constexpr StringLiteral plannedScalings[] = {"delayed"};

template <typename T, size_t N>
static StringRef spell(const Spelling<T> (&spellings)[N], T value) {
  for (const Spelling<T> &spelling : spellings)
    if (spelling.value == value)
      return spelling.text;
  return "?";
}

StringRef fp8::stringifyFormat(RecipeFormat format) {
  return spell(formats, format);
}

bool OperandRecipe::operator==(const OperandRecipe &other) const {
  return format == other.format && tile == other.tile && scale == other.scale &&
         margin == other.margin && rounding == other.rounding &&
         overflow == other.overflow && scaling == other.scaling;
}

static void printOperand(llvm::raw_ostream &os, StringRef key,
                         const OperandRecipe &operand) {
  os << "  " << key << ": {format: " << spell(formats, operand.format)
     << ", tile: " << spell(tiles, operand.tile)
     << ", scale: " << spell(scales, operand.scale)
     << ", margin: " << operand.margin
     << ", rounding: " << spell(roundings, operand.rounding)
     << ", overflow: " << spell(overflows, operand.overflow)
     << ", scaling: " << spell(scalings, operand.scaling) << "}\n";
}

void Recipe::print(llvm::raw_ostream &os) const {
  os << "name: " << name << "\n";
  if (forward) {
    os << "forward:\n";
    printOperand(os, "activation", forward->activation);
    printOperand(os, "weight", forward->weight);
  }
  if (dgrad) {
    os << "dgrad:\n";
    printOperand(os, "gradient", dgrad->gradient);
    printOperand(os, "weight", dgrad->weight);
  }
  if (wgrad) {
    os << "wgrad:\n";
    printOperand(os, "activation", wgrad->activation);
    printOperand(os, "gradient", wgrad->gradient);
  }
  auto boolean = [](bool b) { return b ? "true" : "false"; };
  os << "keep: {head: " << boolean(keep.head)
     << ", embedding: " << boolean(keep.embedding)
     << ", attention: " << boolean(keep.attention) << "}\n";
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// The candidate with the smallest edit distance (the first of equals), letters
/// compared without case.
static StringRef nearest(StringRef text, ArrayRef<StringRef> candidates) {
  StringRef best;
  unsigned bestDistance = ~0u;
  std::string lower = text.lower();
  for (StringRef candidate : candidates) {
    unsigned distance = StringRef(lower).edit_distance(candidate.lower());
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

static void addChoices(InFlightDiagnostic &diag, StringRef text, StringRef what,
                       ArrayRef<StringRef> candidates) {
  diag << "; did you mean '" << nearest(text, candidates) << "'? valid " << what
       << ": " << llvm::join(candidates, ", ");
}

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace {
class RecipeParser {
public:
  RecipeParser(StringRef text, StringRef fileName, MLIRContext *context)
      : text(text), fileName(fileName), context(context) {}

  FailureOr<Recipe> parse();

private:
  /// What handles the value of one key of a mapping.
  using KeyHandler = std::function<LogicalResult(llvm::yaml::Node *value)>;
  struct Key {
    StringLiteral name;
    bool required;
    KeyHandler handle;
  };

  InFlightDiagnostic error(llvm::SMRange range);
  InFlightDiagnostic error(llvm::yaml::Node *node) {
    return error(node->getSourceRange());
  }
  /// Reads a mapping whose keys must all be in `keys`. `what` names the mapping
  /// in errors.
  LogicalResult parseMapping(llvm::yaml::Node *node, const Twine &what,
                             ArrayRef<Key> keys);
  FailureOr<StringRef> parseScalar(llvm::yaml::Node *node, StringRef key,
                                   SmallVectorImpl<char> &storage);
  template <typename T, size_t N>
  LogicalResult parseEnum(llvm::yaml::Node *node, StringRef key,
                          const Spelling<T> (&spellings)[N],
                          ArrayRef<StringLiteral> planned, T &result);
  LogicalResult parseInteger(llvm::yaml::Node *node, StringRef key, int64_t min,
                             int64_t max, int64_t &result);
  LogicalResult parseKept(llvm::yaml::Node *node, StringRef key,
                          bool canQuantize, bool &result);
  LogicalResult parseOperand(llvm::yaml::Node *node, StringRef what,
                             OperandRecipe &operand);
  LogicalResult parseDot(llvm::yaml::Node *node, StringLiteral dot,
                         StringLiteral first, OperandRecipe &firstOperand,
                         StringLiteral second, OperandRecipe &secondOperand);

  StringRef text, fileName;
  MLIRContext *context;
  llvm::SourceMgr sourceMgr;
  bool syntaxError = false;
};
} // namespace

InFlightDiagnostic RecipeParser::error(llvm::SMRange range) {
  // What a syntax error left of the tree is not worth a second message.
  if (syntaxError)
    return {};
  unsigned line = 1, column = 1;
  if (range.Start.isValid())
    std::tie(line, column) = sourceMgr.getLineAndColumn(range.Start);
  return emitError(FileLineColLoc::get(context, fileName, line, column));
}

LogicalResult RecipeParser::parseMapping(llvm::yaml::Node *node,
                                         const Twine &what,
                                         ArrayRef<Key> keys) {
  SmallVector<StringRef> names;
  for (const Key &key : keys)
    names.push_back(key.name);

  auto *mapping = dyn_cast_or_null<llvm::yaml::MappingNode>(node);
  if (!mapping)
    return error(node) << "expected " << what
                       << " to be a mapping with the keys "
                       << llvm::join(names, ", ");

  llvm::SMRange range = mapping->getSourceRange();
  llvm::StringSet<> seen;
  for (llvm::yaml::KeyValueNode &entry : *mapping) {
    auto *keyNode = dyn_cast_or_null<llvm::yaml::ScalarNode>(entry.getKey());
    if (!keyNode)
      return error(range) << "expected the keys of " << what
                          << " to be plain words";
    SmallString<16> storage;
    std::string name = keyNode->getValue(storage).str();
    llvm::SMRange keyRange = keyNode->getSourceRange();

    const Key *key = llvm::find_if(
        keys, [&](const Key &candidate) { return candidate.name == name; });
    if (key == keys.end()) {
      InFlightDiagnostic diag = error(keyRange);
      diag << "unknown key '" << name << "' in " << what;
      addChoices(diag, name, "keys", names);
      return diag;
    }
    if (!seen.insert(name).second)
      return error(keyRange) << "duplicate key '" << name << "' in " << what;
    // The node of a missing value has no place of its own.
    llvm::yaml::Node *value = entry.getValue();
    if (!value || isa<llvm::yaml::NullNode>(value))
      return error(keyRange)
             << "expected a value of key '" << name << "' in " << what;
    if (failed(key->handle(value)))
      return failure();
  }
  for (const Key &key : keys)
    if (key.required && !seen.contains(key.name))
      return error(range) << "missing key '" << key.name << "' in " << what;
  return success();
}

FailureOr<StringRef> RecipeParser::parseScalar(llvm::yaml::Node *node,
                                               StringRef key,
                                               SmallVectorImpl<char> &storage) {
  auto *scalar = dyn_cast<llvm::yaml::ScalarNode>(node);
  if (!scalar)
    return error(node) << "expected key '" << key << "' to have a plain value";
  return scalar->getValue(storage);
}

template <typename T, size_t N>
LogicalResult RecipeParser::parseEnum(llvm::yaml::Node *node, StringRef key,
                                      const Spelling<T> (&spellings)[N],
                                      ArrayRef<StringLiteral> planned,
                                      T &result) {
  SmallString<16> storage;
  FailureOr<StringRef> value = parseScalar(node, key, storage);
  if (failed(value))
    return failure();
  SmallVector<StringRef> valid;
  for (const Spelling<T> &spelling : spellings) {
    if (*value == spelling.text) {
      result = spelling.value;
      return success();
    }
    valid.push_back(spelling.text);
  }
  InFlightDiagnostic diag = error(node);
  if (llvm::is_contained(planned, *value))
    return diag << "value '" << *value << "' of key '" << key
                << "' is not supported yet; supported: "
                << llvm::join(valid, ", ");
  diag << "unknown value '" << *value << "' of key '" << key << "'";
  addChoices(diag, *value, "values", valid);
  return diag;
}

LogicalResult RecipeParser::parseInteger(llvm::yaml::Node *node, StringRef key,
                                         int64_t min, int64_t max,
                                         int64_t &result) {
  SmallString<16> storage;
  FailureOr<StringRef> value = parseScalar(node, key, storage);
  if (failed(value))
    return failure();
  if (value->getAsInteger(10, result) || result < min || result > max)
    return error(node) << "expected the value of key '" << key
                       << "' to be an integer from " << min << " to " << max
                       << " but got '" << *value << "'";
  return success();
}

LogicalResult RecipeParser::parseKept(llvm::yaml::Node *node, StringRef key,
                                      bool canQuantize, bool &result) {
  static constexpr Spelling<bool> booleans[] = {{true, "true"},
                                                {false, "false"}};
  if (failed(parseEnum(node, key, booleans, {}, result)))
    return failure();
  if (!result && !canQuantize)
    return error(node) << "value 'false' of key '" << key
                       << "' is not supported yet; supported: true";
  return success();
}

LogicalResult RecipeParser::parseOperand(llvm::yaml::Node *node, StringRef what,
                                         OperandRecipe &operand) {
  using Node = llvm::yaml::Node;
  return parseMapping(
      node, "'" + what + "'",
      {{"format", true,
        [&](Node *n) {
          return parseEnum(n, "format", formats, plannedFormats,
                           operand.format);
        }},
       {"tile", false,
        [&](Node *n) {
          return parseEnum(n, "tile", tiles, plannedTiles, operand.tile);
        }},
       {"scale", false,
        [&](Node *n) {
          return parseEnum(n, "scale", scales, {}, operand.scale);
        }},
       {"margin", false,
        [&](Node *n) {
          // 2^16 spans more than the range of any 8-bit format.
          return parseInteger(n, "margin", 0, 16, operand.margin);
        }},
       {"rounding", false,
        [&](Node *n) {
          return parseEnum(n, "rounding", roundings, plannedRoundings,
                           operand.rounding);
        }},
       {"overflow", false,
        [&](Node *n) {
          return parseEnum(n, "overflow", overflows, {}, operand.overflow);
        }},
       {"scaling", false, [&](Node *n) {
          return parseEnum(n, "scaling", scalings, plannedScalings,
                           operand.scaling);
        }}});
}

LogicalResult RecipeParser::parseDot(llvm::yaml::Node *node, StringLiteral dot,
                                     StringLiteral first,
                                     OperandRecipe &firstOperand,
                                     StringLiteral second,
                                     OperandRecipe &secondOperand) {
  auto operand = [&](StringLiteral name, OperandRecipe &result) {
    return Key{name, true, [&, name](llvm::yaml::Node *n) {
                 return parseOperand(n, (dot + "." + name).str(), result);
               }};
  };
  return parseMapping(
      node, "'" + dot + "'",
      {operand(first, firstOperand), operand(second, secondOperand)});
}

FailureOr<Recipe> RecipeParser::parse() {
  // Syntax errors of the YAML scanner become MLIR diagnostics too; one is
  // enough.
  sourceMgr.setDiagHandler(
      [](const llvm::SMDiagnostic &diag, void *data) {
        auto *parser = static_cast<RecipeParser *>(data);
        if (std::exchange(parser->syntaxError, true))
          return;
        unsigned line = diag.getLineNo() > 0 ? diag.getLineNo() : 1;
        unsigned column = diag.getColumnNo() >= 0 ? diag.getColumnNo() + 1 : 1;
        emitError(FileLineColLoc::get(parser->context, parser->fileName, line,
                                      column))
            << "invalid YAML: " << diag.getMessage();
      },
      this);

  llvm::yaml::Stream stream(text, sourceMgr, /*ShowColors=*/false);
  llvm::yaml::document_iterator document = stream.begin();
  if (document == stream.end())
    return failure();
  llvm::yaml::Node *root = document->getRoot();
  if (!root || stream.failed())
    return failure();

  using Node = llvm::yaml::Node;
  Recipe recipe;
  LogicalResult result = parseMapping(
      root, "a recipe",
      {{"name", true,
        [&](Node *n) -> LogicalResult {
          SmallString<16> storage;
          FailureOr<StringRef> value = parseScalar(n, "name", storage);
          if (failed(value))
            return failure();
          recipe.name = value->str();
          return success();
        }},
       {"forward", false,
        [&](Node *n) {
          ForwardRecipe &dot = recipe.forward.emplace();
          return parseDot(n, "forward", "activation", dot.activation, "weight",
                          dot.weight);
        }},
       {"dgrad", false,
        [&](Node *n) {
          DgradRecipe &dot = recipe.dgrad.emplace();
          return parseDot(n, "dgrad", "gradient", dot.gradient, "weight",
                          dot.weight);
        }},
       {"wgrad", false,
        [&](Node *n) {
          WgradRecipe &dot = recipe.wgrad.emplace();
          return parseDot(n, "wgrad", "activation", dot.activation, "gradient",
                          dot.gradient);
        }},
       {"keep", false, [&](Node *n) {
          return parseMapping(n, "'keep'",
                              {{"head", false,
                                [&](Node *n) {
                                  return parseKept(n, "head", true,
                                                   recipe.keep.head);
                                }},
                               {"embedding", false,
                                [&](Node *n) {
                                  return parseKept(n, "embedding", false,
                                                   recipe.keep.embedding);
                                }},
                               {"attention", false, [&](Node *n) {
                                  return parseKept(n, "attention", false,
                                                   recipe.keep.attention);
                                }}});
        }}});
  // The scanner is lazy: a syntax error may come up only while walking.
  if (failed(result) || stream.failed())
    return failure();
  if (++document != stream.end()) {
    if (stream.failed())
      return failure();
    return error(document->getRoot())
           << "expected one recipe in a file but got a second document";
  }
  return recipe;
}

FailureOr<Recipe> fp8::parseRecipe(StringRef text, StringRef fileName,
                                   MLIRContext *context) {
  return RecipeParser(text, fileName, context).parse();
}

FailureOr<Recipe> fp8::loadRecipe(StringRef nameOrFile, MLIRContext *context) {
  if (nameOrFile.ends_with(".yaml")) {
    auto buffer = llvm::MemoryBuffer::getFile(nameOrFile, /*IsText=*/true);
    if (!buffer) {
      emitError(UnknownLoc::get(context))
          << "cannot read recipe file '" << nameOrFile
          << "': " << buffer.getError().message();
      return failure();
    }
    return parseRecipe((*buffer)->getBuffer(), nameOrFile, context);
  }
  for (const EmbeddedRecipe &recipe : embeddedRecipes)
    if (recipe.name == nameOrFile)
      return parseRecipe(recipe.text, ("recipes/" + nameOrFile + ".yaml").str(),
                         context);
  InFlightDiagnostic diag = emitError(UnknownLoc::get(context));
  diag << "unknown recipe '" << nameOrFile << "'";
  addChoices(diag, nameOrFile, "recipes", getRecipeNames());
  return diag << ", or the path of a file that ends in .yaml";
}
