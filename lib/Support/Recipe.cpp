//===- Recipe.cpp - What becomes FP8, and how -----------------------------===//
//
// Walks the nodes of LLVM's YAML parser instead of using its mapping traits:
// those know a key only by name, while a useful error needs the key's place and
// the keys that would have been valid there.
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/Recipe.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>
#include <tuple>

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
    {RecipeFormat::F8E4M3FN, "f8E4M3FN"},
    {RecipeFormat::F8E5M2, "f8E5M2"},
    {RecipeFormat::F8E4M3, "f8E4M3"},
    {RecipeFormat::F8E4M3FNUZ, "f8E4M3FNUZ"},
    {RecipeFormat::F8E5M2FNUZ, "f8E5M2FNUZ"}};
static constexpr Spelling<RecipeTile> tiles[] = {
    {RecipeTile::Tensor, "tensor"},
    {RecipeTile::Row, "row"},
    {RecipeTile::Row128, "1x128"},
    {RecipeTile::Block128, "128x128"},
    {RecipeTile::MX, "1x32"}};
static constexpr Spelling<RecipeScale> scales[] = {
    {RecipeScale::Exact, "exact"},
    {RecipeScale::Pow2, "pow2"},
    {RecipeScale::OcpFloor, "ocp_floor"}};
static constexpr Spelling<RecipeRounding> roundings[] = {
    {RecipeRounding::NearestEven, "nearest_even"},
    {RecipeRounding::Stochastic, "stochastic"}};
static constexpr Spelling<RecipeOverflow> overflows[] = {
    {RecipeOverflow::Saturate, "saturate"}, {RecipeOverflow::NaN, "nan"}};
static constexpr Spelling<RecipeScaling> scalings[] = {
    {RecipeScaling::Current, "current"}, {RecipeScaling::Delayed, "delayed"}};
static constexpr Spelling<RecipeAlgorithm> algorithms[] = {
    {RecipeAlgorithm::Max, "max"},
    {RecipeAlgorithm::MostRecent, "most_recent"}};
static constexpr Spelling<RecipeInitial> initials[] = {
    {RecipeInitial::Current, "current"}, {RecipeInitial::One, "one"}};
static constexpr Spelling<RecipeCopy> copies[] = {
    {RecipeCopy::Saved, "saved"},
    {RecipeCopy::Recomputed, "recomputed"},
    {RecipeCopy::Requantized, "requantized"}};
static constexpr Spelling<RecipeRole> roles[] = {
    {RecipeRole::Forward, "forward"},
    {RecipeRole::Dgrad, "dgrad"},
    {RecipeRole::Wgrad, "wgrad"}};
static constexpr Spelling<RecipePart> parts[] = {
    {RecipePart::Head, "head"}, {RecipePart::Linear, "linear"}};
static constexpr Spelling<RecipeFloat> floats[] = {{RecipeFloat::F32, "f32"},
                                                   {RecipeFloat::BF16, "bf16"}};
static constexpr Spelling<RecipeSaved> saves[] = {
    {RecipeSaved::Same, "same"},
    {RecipeSaved::F8E4M3FN, "f8E4M3FN"},
    {RecipeSaved::F8E5M2, "f8E5M2"}};
static constexpr Spelling<RecipeStorage> storages[] = {
    {RecipeStorage::F32, "f32"},
    {RecipeStorage::BF16, "bf16"},
    {RecipeStorage::F16, "f16"},
    {RecipeStorage::F8E4M3FN, "f8E4M3FN"},
    {RecipeStorage::F8E5M2, "f8E5M2"}};
static constexpr Spelling<RecipeStorageTile> storageTiles[] = {
    {RecipeStorageTile::None, "none"},
    {RecipeStorageTile::Tensor, "tensor"},
    {RecipeStorageTile::Group128, "1x128"}};
/// Rules that never saturate: stored values are to come back.
static constexpr Spelling<RecipeScale> storageScales[] = {
    {RecipeScale::Exact, "exact"}, {RecipeScale::Pow2, "pow2"}};
static constexpr Spelling<RecipeGranularity> granularities[] = {
    {RecipeGranularity::None, "none"},
    {RecipeGranularity::Channel, "channel"},
    {RecipeGranularity::Token, "token"}};
static constexpr Spelling<RecipeWeightCopies> copyTimes[] = {
    {RecipeWeightCopies::Step, "step"}, {RecipeWeightCopies::State, "state"}};
static constexpr Spelling<bool> switches[] = {{false, "false"}, {true, "true"}};

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

StringRef fp8::stringifyTile(RecipeTile tile) { return spell(tiles, tile); }

StringRef fp8::stringifyStorage(RecipeStorage format) {
  return spell(storages, format);
}

FloatType fp8::getStorageType(RecipeStorage format, MLIRContext *context) {
  switch (format) {
  case RecipeStorage::F32:
    return Float32Type::get(context);
  case RecipeStorage::BF16:
    return BFloat16Type::get(context);
  case RecipeStorage::F16:
    return Float16Type::get(context);
  case RecipeStorage::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case RecipeStorage::F8E5M2:
    return Float8E5M2Type::get(context);
  }
  return {};
}

StringRef fp8::stringifyStorageTile(RecipeStorageTile tile) {
  return spell(storageTiles, tile);
}

bool fp8::matchesPath(StringRef pattern, StringRef path) {
  std::string escaped;
  for (char c : pattern) {
    if (c != '*' && c != '?' && !llvm::isAlnum(c))
      escaped += '\\';
    escaped += c;
  }
  return cantFail(llvm::GlobPattern::create(escaped)).match(path);
}

bool OperandRecipe::operator==(const OperandRecipe &other) const {
  auto values = [](const OperandRecipe &o) {
    return std::tie(o.format, o.tile, o.scale, o.margin, o.rounding, o.overflow,
                    o.scaling, o.history, o.algorithm, o.initial);
  };
  return values(*this) == values(other);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printOperand(llvm::raw_ostream &os, StringRef key,
                         const OperandRecipe &operand) {
  os << "  " << key << ": {format: " << spell(formats, operand.format)
     << ", tile: " << spell(tiles, operand.tile)
     << ", scale: " << spell(scales, operand.scale)
     << ", margin: " << operand.margin
     << ", rounding: " << spell(roundings, operand.rounding)
     << ", overflow: " << spell(overflows, operand.overflow)
     << ", scaling: " << spell(scalings, operand.scaling);
  if (operand.scaling == RecipeScaling::Delayed)
    os << ", history: " << operand.history
       << ", algorithm: " << spell(algorithms, operand.algorithm)
       << ", initial: " << spell(initials, operand.initial);
  os << "}\n";
}

static void printAccumulator(llvm::raw_ostream &os,
                             const AccumulatorRecipe &accumulator) {
  os << "  accumulator: {bits: " << accumulator.bits
     << ", promote: " << accumulator.promote << "}\n";
}

static void printStorage(llvm::raw_ostream &os, StringRef key,
                         const StorageRecipe &storage) {
  os << key << ": {format: " << spell(storages, storage.format)
     << ", tile: " << spell(storageTiles, storage.tile);
  if (storage.changes())
    os << ", rounding: " << spell(roundings, storage.rounding);
  if (storage.tile != RecipeStorageTile::None)
    os << ", scale: " << spell(scales, storage.scale)
       << ", margin: " << storage.margin
       << ", scaling: " << spell(scalings, storage.scaling);
  if (storage.scaling == RecipeScaling::Delayed)
    os << ", history: " << storage.history
       << ", algorithm: " << spell(algorithms, storage.algorithm);
  if (storage.tile == RecipeStorageTile::Group128)
    os << ", expand: " << spell(switches, storage.expand);
  os << "}\n";
}

static void printOptimizer(llvm::raw_ostream &os,
                           const OptimizerRecipe &optimizer) {
  os << "optimizer:\n";
  printStorage(os, "  moment1", optimizer.moment1);
  printStorage(os, "  moment2", optimizer.moment2);
  printStorage(os, "  master", optimizer.master);
  os << "  min_elements: " << optimizer.minElements << "\n  keep: [";
  llvm::interleaveComma(optimizer.keep, os, [&](const std::string &path) {
    os << '"' << path << '"';
  });
  os << "]\n  clip_update: " << spell(switches, optimizer.clipUpdate) << "\n";
}

static void printSmooth(llvm::raw_ostream &os, const SmoothRecipe &smooth) {
  os << "smooth_swiglu: {granularity: "
     << spell(granularities, smooth.granularity);
  if (smooth.granularity != RecipeGranularity::None) {
    os << ", scale: " << spell(scales, smooth.scale)
       << ", margin: " << smooth.margin
       << ", scaling: " << spell(scalings, smooth.scaling);
    if (smooth.scaling == RecipeScaling::Delayed)
      os << ", history: " << smooth.history
         << ", algorithm: " << spell(algorithms, smooth.algorithm)
         << ", initial: " << spell(initials, smooth.initial);
  }
  os << "}\n";
}

void RecipeRule::print(llvm::raw_ostream &os) const {
  bool first = true;
  auto key = [&](StringRef name) -> llvm::raw_ostream & {
    os << (std::exchange(first, false) ? "" : ", ") << name << ": ";
    return os;
  };
  if (part)
    key("part") << spell(parts, *part);
  if (role)
    key("role") << spell(roles, *role);
  if (!path.empty())
    key("path") << '"' << path << '"';
  if (!layers.empty()) {
    key("layers") << "[";
    llvm::interleaveComma(layers, os);
    os << "]";
  }
  if (this->first)
    key("first") << *this->first;
  if (last)
    key("last") << *last;
  for (auto [name, range] : {std::pair("m", m), {"n", n}, {"k", k}}) {
    if (range.min)
      key((Twine("min_") + name).str()) << *range.min;
    if (range.max)
      key((Twine("max_") + name).str()) << *range.max;
  }
}

void Recipe::print(llvm::raw_ostream &os) const {
  os << "name: " << name << "\n";
  if (forward) {
    os << "forward:\n";
    printOperand(os, "activation", forward->activation);
    printOperand(os, "weight", forward->weight);
    printAccumulator(os, forward->accumulator);
  }
  if (dgrad) {
    os << "dgrad:\n";
    printOperand(os, "gradient", dgrad->gradient);
    printOperand(os, "weight", dgrad->weight);
    printAccumulator(os, dgrad->accumulator);
  }
  if (wgrad) {
    os << "wgrad:\n";
    printOperand(os, "activation", wgrad->activation);
    printOperand(os, "gradient", wgrad->gradient);
    printAccumulator(os, wgrad->accumulator);
    os << "  copy: " << spell(copies, wgrad->copy) << "\n";
  }
  if (!rules.empty())
    os << "rules:\n";
  for (const RecipeRule &rule : rules) {
    os << "  - " << (rule.keep ? "keep" : "quantize") << ": {";
    rule.print(os);
    os << "}\n";
  }
  os << "compute: {unquantized_dots: " << spell(floats, compute.unquantizedDots)
     << ", saved: " << spell(floats, compute.saved)
     << ", saved_norms: " << spell(saves, compute.savedNorms)
     << ", saved_gated: " << spell(saves, compute.savedGated) << "}\n";
  printSmooth(os, smooth);
  printOptimizer(os, optimizer);
  printStorage(os, "gradients", gradients);
  os << "weight_copies: " << spell(copyTimes, weightCopies) << "\n"
     << "seed: " << seed << "\n";
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

/// 2^16 spans more than the range of any 8-bit format.
static constexpr int64_t kMaxMargin = 16;
static constexpr int64_t kMaxHistory = 1 << 20;

namespace {
class RecipeParser {
public:
  /// Reads into `recipe`. An overlay changes some keys of a complete recipe.
  RecipeParser(StringRef text, StringRef fileName, MLIRContext *context,
               Recipe &recipe, bool overlay)
      : text(text), fileName(fileName), context(context), recipe(recipe),
        overlay(overlay) {}

  LogicalResult parse();

private:
  /// What handles the value of one key of a mapping.
  using KeyHandler = std::function<LogicalResult(llvm::yaml::Node *value)>;
  struct Key {
    StringLiteral name;
    bool required;
    KeyHandler handle;
  };

  FileLineColLoc getLocation(llvm::SMRange range);
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
                          const Spelling<T> (&spellings)[N], T &result);
  template <typename T, size_t N>
  Key enumKey(StringLiteral name, bool required,
              const Spelling<T> (&spellings)[N], T &result);
  template <typename T, size_t N>
  Key enumKey(StringLiteral name, const Spelling<T> (&spellings)[N],
              std::optional<T> &result);
  Key integerKey(StringLiteral name, int64_t min, int64_t max, int64_t &result);
  Key integerKey(StringLiteral name, int64_t min, int64_t max,
                 std::optional<int64_t> &result);
  LogicalResult parseInteger(llvm::yaml::Node *node, StringRef key, int64_t min,
                             int64_t max, int64_t &result);
  LogicalResult parseOperand(llvm::yaml::Node *node, StringRef what,
                             OperandRecipe &operand, bool complete);
  LogicalResult checkOperand(llvm::SMRange range, StringRef what,
                             const OperandRecipe &operand, bool historySet);
  LogicalResult parseAccumulator(llvm::yaml::Node *node, StringRef what,
                                 AccumulatorRecipe &accumulator);
  template <typename DotT>
  LogicalResult parseDot(llvm::yaml::Node *node, StringLiteral dot,
                         std::optional<DotT> &result, StringLiteral first,
                         OperandRecipe DotT::*firstOperand,
                         StringLiteral second,
                         OperandRecipe DotT::*secondOperand);
  LogicalResult parseCompute(llvm::yaml::Node *node);
  LogicalResult parseSmooth(llvm::yaml::Node *node);
  LogicalResult parseStorage(llvm::yaml::Node *node, StringRef what,
                             StorageRecipe &storage);
  LogicalResult checkStorage(llvm::SMRange range, StringRef what,
                             const StorageRecipe &storage, bool historySet,
                             bool scaleSet);
  LogicalResult parsePaths(llvm::yaml::Node *node,
                           std::vector<std::string> &paths);
  LogicalResult parseOptimizer(llvm::yaml::Node *node);
  LogicalResult parseGradients(llvm::yaml::Node *node);
  LogicalResult checkWeightCopies(llvm::SMRange range);
  LogicalResult parseRules(llvm::yaml::Node *node);
  LogicalResult parseRule(llvm::yaml::Node *node, RecipeRule &rule);
  LogicalResult parseConditions(llvm::yaml::Node *node, StringRef what,
                                RecipeRule &rule);
  LogicalResult parseLayers(llvm::yaml::Node *node,
                            SmallVectorImpl<int64_t> &layers);

  StringRef text, fileName;
  MLIRContext *context;
  Recipe &recipe;
  bool overlay;
  llvm::SourceMgr sourceMgr;
  bool syntaxError = false;
};
} // namespace

FileLineColLoc RecipeParser::getLocation(llvm::SMRange range) {
  unsigned line = 1, column = 1;
  if (range.Start.isValid())
    std::tie(line, column) = sourceMgr.getLineAndColumn(range.Start);
  return FileLineColLoc::get(context, fileName, line, column);
}

InFlightDiagnostic RecipeParser::error(llvm::SMRange range) {
  // What a syntax error left of the tree is not worth a second message.
  if (syntaxError)
    return {};
  return emitError(getLocation(range));
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
  diag << "unknown value '" << *value << "' of key '" << key << "'";
  addChoices(diag, *value, "values", valid);
  return diag;
}

template <typename T, size_t N>
RecipeParser::Key RecipeParser::enumKey(StringLiteral name, bool required,
                                        const Spelling<T> (&spellings)[N],
                                        T &result) {
  return {name, required,
          [this, name, &spellings, &result](llvm::yaml::Node *node) {
            return parseEnum(node, name, spellings, result);
          }};
}

template <typename T, size_t N>
RecipeParser::Key RecipeParser::enumKey(StringLiteral name,
                                        const Spelling<T> (&spellings)[N],
                                        std::optional<T> &result) {
  return {name, false,
          [this, name, &spellings, &result](llvm::yaml::Node *node) {
            return parseEnum(node, name, spellings, result.emplace());
          }};
}

RecipeParser::Key RecipeParser::integerKey(StringLiteral name, int64_t min,
                                           int64_t max, int64_t &result) {
  return {name, false, [this, name, min, max, &result](llvm::yaml::Node *node) {
            return parseInteger(node, name, min, max, result);
          }};
}

RecipeParser::Key RecipeParser::integerKey(StringLiteral name, int64_t min,
                                           int64_t max,
                                           std::optional<int64_t> &result) {
  return {name, false, [this, name, min, max, &result](llvm::yaml::Node *node) {
            return parseInteger(node, name, min, max, result.emplace());
          }};
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

LogicalResult RecipeParser::parseOperand(llvm::yaml::Node *node, StringRef what,
                                         OperandRecipe &operand,
                                         bool complete) {
  // The range of a mapping changes while it is walked.
  llvm::SMRange range = node->getSourceRange();
  std::optional<int64_t> history;
  std::optional<RecipeAlgorithm> algorithm;
  std::optional<RecipeInitial> initial;
  if (failed(
          parseMapping(node, "'" + what + "'",
                       {enumKey("format", complete, formats, operand.format),
                        enumKey("tile", false, tiles, operand.tile),
                        enumKey("scale", false, scales, operand.scale),
                        integerKey("margin", 0, kMaxMargin, operand.margin),
                        enumKey("rounding", false, roundings, operand.rounding),
                        enumKey("overflow", false, overflows, operand.overflow),
                        enumKey("scaling", false, scalings, operand.scaling),
                        integerKey("history", 1, kMaxHistory, history),
                        enumKey("algorithm", algorithms, algorithm),
                        enumKey("initial", initials, initial)})))
    return failure();
  operand.history = history.value_or(operand.history);
  operand.algorithm = algorithm.value_or(operand.algorithm);
  operand.initial = initial.value_or(operand.initial);
  operand.loc = getLocation(range);
  return checkOperand(range, what, operand, history || algorithm || initial);
}

/// Keys that contradict each other.
LogicalResult RecipeParser::checkOperand(llvm::SMRange range, StringRef what,
                                         const OperandRecipe &operand,
                                         bool historySet) {
  bool delayed = operand.scaling == RecipeScaling::Delayed;
  if (historySet && !delayed)
    return error(range) << "keys 'history', 'algorithm' and 'initial' of '"
                        << what << "' need scaling: delayed";
  if (delayed && operand.tile != RecipeTile::Tensor)
    return error(range) << "expected tile: tensor with scaling: delayed in '"
                        << what << "' but got " << spell(tiles, operand.tile);
  if (operand.tile != RecipeTile::MX)
    return success();
  if (operand.scale == RecipeScale::Exact)
    return error(range) << "expected scale: pow2 or ocp_floor with tile: 1x32 "
                           "in '"
                        << what << "' (its scales are f8E8M0FNU) but got exact";
  if (operand.format != RecipeFormat::F8E4M3FN &&
      operand.format != RecipeFormat::F8E5M2)
    return error(range)
           << "expected format: f8E4M3FN or f8E5M2 with tile: 1x32 "
              "in '"
           << what << "' but got " << spell(formats, operand.format);
  return success();
}

LogicalResult RecipeParser::parseAccumulator(llvm::yaml::Node *node,
                                             StringRef what,
                                             AccumulatorRecipe &accumulator) {
  llvm::SMRange range = node->getSourceRange();
  accumulator.loc = getLocation(range);
  if (failed(parseMapping(
          node, "'" + what + "'",
          {integerKey("bits", 14, 32, accumulator.bits),
           integerKey("promote", 0, 1 << 20, accumulator.promote)})))
    return failure();
  if (accumulator.bits != 14 && accumulator.bits != 32)
    return error(range)
           << "expected the value of key 'bits' to be 14 or 32 but "
              "got "
           << accumulator.bits;
  if (accumulator.promote % 32 != 0)
    return error(range)
           << "expected the value of key 'promote' to be a multiple "
              "of 32 (0: never) but got "
           << accumulator.promote;
  return success();
}

template <typename DotT>
LogicalResult
RecipeParser::parseDot(llvm::yaml::Node *node, StringLiteral dot,
                       std::optional<DotT> &result, StringLiteral first,
                       OperandRecipe DotT::*firstOperand, StringLiteral second,
                       OperandRecipe DotT::*secondOperand) {
  if (auto *scalar = dyn_cast<llvm::yaml::ScalarNode>(node)) {
    SmallString<8> storage;
    if (scalar->getValue(storage) == "none") {
      result.reset();
      return success();
    }
  }
  // A dot that the overlaid recipe lacks must be given whole.
  bool complete = !overlay || !result;
  if (!result)
    result.emplace();
  DotT &recipe = *result;
  auto operand = [&](StringLiteral name, OperandRecipe DotT::*member) {
    return Key{name, complete, [&, name, member](llvm::yaml::Node *n) {
                 return parseOperand(n, (dot + "." + name).str(),
                                     recipe.*member, complete);
               }};
  };
  SmallVector<Key> keys{
      operand(first, firstOperand), operand(second, secondOperand),
      Key{"accumulator", false, [&](llvm::yaml::Node *n) {
            return parseAccumulator(n, (dot + ".accumulator").str(),
                                    recipe.accumulator);
          }}};
  if constexpr (std::is_same_v<DotT, WgradRecipe>)
    keys.push_back(enumKey("copy", false, copies, recipe.copy));
  return parseMapping(node, "'" + dot + "'", keys);
}

LogicalResult RecipeParser::parseCompute(llvm::yaml::Node *node) {
  ComputeRecipe &compute = recipe.compute;
  return parseMapping(
      node, "'compute'",
      {enumKey("unquantized_dots", false, floats, compute.unquantizedDots),
       enumKey("saved", false, floats, compute.saved),
       enumKey("saved_norms", false, saves, compute.savedNorms),
       enumKey("saved_gated", false, saves, compute.savedGated)});
}

LogicalResult RecipeParser::parseSmooth(llvm::yaml::Node *node) {
  llvm::SMRange range = node->getSourceRange();
  SmoothRecipe &smooth = recipe.smooth;
  std::optional<int64_t> history;
  std::optional<RecipeAlgorithm> algorithm;
  std::optional<RecipeInitial> initial;
  if (failed(parseMapping(
          node, "'smooth_swiglu'",
          {enumKey("granularity", !overlay, granularities, smooth.granularity),
           enumKey("scale", false, storageScales, smooth.scale),
           integerKey("margin", 0, kMaxMargin, smooth.margin),
           enumKey("scaling", false, scalings, smooth.scaling),
           integerKey("history", 1, kMaxHistory, history),
           enumKey("algorithm", algorithms, algorithm),
           enumKey("initial", initials, initial)})))
    return failure();
  smooth.history = history.value_or(smooth.history);
  smooth.algorithm = algorithm.value_or(smooth.algorithm);
  smooth.initial = initial.value_or(smooth.initial);
  smooth.loc = getLocation(range);
  if ((history || algorithm || initial) &&
      smooth.scaling != RecipeScaling::Delayed)
    return error(range) << "keys 'history', 'algorithm' and 'initial' of "
                           "'smooth_swiglu' need scaling: delayed";
  return success();
}

LogicalResult RecipeParser::parseStorage(llvm::yaml::Node *node, StringRef what,
                                         StorageRecipe &storage) {
  llvm::SMRange range = node->getSourceRange();
  std::optional<RecipeStorage> format;
  std::optional<RecipeStorageTile> tile;
  std::optional<RecipeScale> scale;
  std::optional<int64_t> margin, history;
  std::optional<RecipeScaling> scaling;
  std::optional<RecipeAlgorithm> algorithm;
  std::optional<RecipeRounding> rounding;
  std::optional<bool> expand;
  if (failed(parseMapping(node, "'" + what + "'",
                          {enumKey("format", storages, format),
                           enumKey("tile", storageTiles, tile),
                           enumKey("scale", storageScales, scale),
                           integerKey("margin", 0, kMaxMargin, margin),
                           enumKey("rounding", roundings, rounding),
                           enumKey("scaling", scalings, scaling),
                           integerKey("history", 1, kMaxHistory, history),
                           enumKey("algorithm", algorithms, algorithm),
                           enumKey("expand", switches, expand)})))
    return failure();
  // What another format was given means nothing for this one.
  if (format && *format != storage.format)
    storage = StorageRecipe();
  storage.format = format.value_or(storage.format);
  if (storage.isFP8() && storage.tile == RecipeStorageTile::None)
    storage.tile = RecipeStorageTile::Tensor;
  storage.tile = tile.value_or(storage.tile);
  storage.scale = scale.value_or(storage.scale);
  storage.margin = margin.value_or(storage.margin);
  storage.rounding = rounding.value_or(storage.rounding);
  storage.scaling = scaling.value_or(storage.scaling);
  storage.history = history.value_or(storage.history);
  storage.algorithm = algorithm.value_or(storage.algorithm);
  storage.expand = expand.value_or(storage.expand);
  storage.loc = getLocation(range);
  return checkStorage(range, what, storage, history || algorithm,
                      scale || margin || scaling);
}

/// Keys that contradict each other.
LogicalResult RecipeParser::checkStorage(llvm::SMRange range, StringRef what,
                                         const StorageRecipe &storage,
                                         bool historySet, bool scaleSet) {
  StringRef format = spell(storages, storage.format);
  StringRef tile = spell(storageTiles, storage.tile);
  bool delayed = storage.scaling == RecipeScaling::Delayed;
  bool isF16 = storage.format == RecipeStorage::F16;
  bool fits = storage.isFP8() ? storage.tile != RecipeStorageTile::None
              : isF16         ? storage.tile != RecipeStorageTile::Group128
                              : storage.tile == RecipeStorageTile::None;
  if (!fits)
    return error(range) << "expected tile: "
                        << (storage.isFP8() ? "tensor or 1x128"
                            : isF16         ? "none or tensor"
                                            : "none")
                        << " with format: " << format << " in '" << what
                        << "' but got " << tile;
  if (storage.tile == RecipeStorageTile::None && (scaleSet || delayed))
    return error(range) << "keys 'scale', 'margin' and 'scaling' of '" << what
                        << "' need a tile";
  if (!storage.changes() && storage.rounding == RecipeRounding::Stochastic)
    return error(range) << "expected rounding: nearest_even with format: f32 "
                           "in '"
                        << what << "' but got stochastic";
  if (historySet && !delayed)
    return error(range) << "keys 'history' and 'algorithm' of '" << what
                        << "' need scaling: delayed";
  if (delayed && storage.tile != RecipeStorageTile::Tensor)
    return error(range) << "expected tile: tensor with scaling: delayed in '"
                        << what << "' but got " << tile;
  if (storage.expand && (storage.tile != RecipeStorageTile::Group128 ||
                         storage.scale != RecipeScale::Exact))
    return error(range) << "expected tile: 1x128 and scale: exact with "
                           "expand: true in '"
                        << what << "'";
  return success();
}

LogicalResult RecipeParser::parsePaths(llvm::yaml::Node *node,
                                       std::vector<std::string> &paths) {
  auto *sequence = dyn_cast<llvm::yaml::SequenceNode>(node);
  if (!sequence)
    return error(node) << "expected key 'keep' to be a list of tree paths";
  paths.clear();
  for (llvm::yaml::Node &entry : *sequence) {
    SmallString<32> storage;
    FailureOr<StringRef> value = parseScalar(&entry, "keep", storage);
    if (failed(value))
      return failure();
    paths.push_back(value->str());
  }
  return success();
}

LogicalResult RecipeParser::parseOptimizer(llvm::yaml::Node *node) {
  OptimizerRecipe &optimizer = recipe.optimizer;
  auto storage = [&](StringLiteral name, StorageRecipe &result) {
    return Key{name, false, [&, name](llvm::yaml::Node *n) {
                 return parseStorage(n, ("optimizer." + name).str(), result);
               }};
  };
  return parseMapping(
      node, "'optimizer'",
      {storage("moment1", optimizer.moment1),
       storage("moment2", optimizer.moment2),
       storage("master", optimizer.master),
       integerKey("min_elements", 0, int64_t(1) << 40, optimizer.minElements),
       Key{"keep", false,
           [&](llvm::yaml::Node *n) { return parsePaths(n, optimizer.keep); }},
       enumKey("clip_update", false, switches, optimizer.clipUpdate)});
}

LogicalResult RecipeParser::parseGradients(llvm::yaml::Node *node) {
  llvm::SMRange range = node->getSourceRange();
  StorageRecipe &gradients = recipe.gradients;
  if (failed(parseStorage(node, "gradients", gradients)))
    return failure();
  if (gradients.tile == RecipeStorageTile::Group128)
    return error(range) << "expected tile: none or tensor in 'gradients' but "
                           "got 1x128";
  if (gradients.scaling == RecipeScaling::Delayed)
    return error(range) << "expected scaling: current in 'gradients' but got "
                           "delayed";
  return success();
}

/// The next step's copy is made before the weight's amax is known, and is an
/// array of the checkpoint.
LogicalResult RecipeParser::checkWeightCopies(llvm::SMRange range) {
  if (recipe.weightCopies == RecipeWeightCopies::Step)
    return success();
  auto fits = [](const OperandRecipe &weight) {
    return weight.scaling == RecipeScaling::Delayed &&
           weight.rounding == RecipeRounding::NearestEven &&
           (weight.format == RecipeFormat::F8E4M3FN ||
            weight.format == RecipeFormat::F8E5M2);
  };
  if ((recipe.forward || recipe.dgrad) &&
      (!recipe.forward || fits(recipe.forward->weight)) &&
      (!recipe.dgrad || fits(recipe.dgrad->weight)))
    return success();
  return error(range)
         << "expected scaling: delayed, rounding: nearest_even and format: "
            "f8E4M3FN or f8E5M2 of 'forward.weight' and 'dgrad.weight' with "
            "weight_copies: state";
}

LogicalResult RecipeParser::parseLayers(llvm::yaml::Node *node,
                                        SmallVectorImpl<int64_t> &layers) {
  auto *sequence = dyn_cast<llvm::yaml::SequenceNode>(node);
  if (!sequence)
    return error(node) << "expected key 'layers' to be a list of numbers";
  for (llvm::yaml::Node &entry : *sequence)
    if (failed(
            parseInteger(&entry, "layers", 0, 1 << 20, layers.emplace_back())))
      return failure();
  return success();
}

LogicalResult RecipeParser::parseConditions(llvm::yaml::Node *node,
                                            StringRef what, RecipeRule &rule) {
  constexpr int64_t kMaxSize = int64_t(1) << 40;
  constexpr int64_t kMaxLayers = 1 << 20;
  return parseMapping(
      node, "'" + what + "'",
      {enumKey("part", parts, rule.part), enumKey("role", roles, rule.role),
       Key{"path", false,
           [&](llvm::yaml::Node *n) -> LogicalResult {
             SmallString<32> storage;
             FailureOr<StringRef> value = parseScalar(n, "path", storage);
             if (failed(value))
               return failure();
             rule.path = value->str();
             return success();
           }},
       Key{"layers", false,
           [&](llvm::yaml::Node *n) { return parseLayers(n, rule.layers); }},
       integerKey("first", 1, kMaxLayers, rule.first),
       integerKey("last", 1, kMaxLayers, rule.last),
       integerKey("min_m", 1, kMaxSize, rule.m.min),
       integerKey("max_m", 1, kMaxSize, rule.m.max),
       integerKey("min_n", 1, kMaxSize, rule.n.min),
       integerKey("max_n", 1, kMaxSize, rule.n.max),
       integerKey("min_k", 1, kMaxSize, rule.k.min),
       integerKey("max_k", 1, kMaxSize, rule.k.max)});
}

LogicalResult RecipeParser::parseRule(llvm::yaml::Node *node,
                                      RecipeRule &rule) {
  llvm::SMRange range = node->getSourceRange();
  rule.loc = getLocation(range);
  rule.line = cast<FileLineColLoc>(*rule.loc).getLine();
  int verbs = 0;
  auto verb = [&](StringLiteral name, bool keep) {
    return Key{name, false, [&, name, keep](llvm::yaml::Node *n) {
                 ++verbs;
                 rule.keep = keep;
                 return parseConditions(n, name, rule);
               }};
  };
  if (failed(parseMapping(node, "a rule",
                          {verb("keep", true), verb("quantize", false)})))
    return failure();
  if (verbs != 1)
    return error(range) << "expected a rule to have one of the keys keep, "
                           "quantize";
  std::string text;
  llvm::raw_string_ostream os(text);
  rule.print(os);
  if (text.empty())
    return error(range) << "expected a rule to have at least one condition";
  return success();
}

LogicalResult RecipeParser::parseRules(llvm::yaml::Node *node) {
  auto *sequence = dyn_cast<llvm::yaml::SequenceNode>(node);
  if (!sequence)
    return error(node) << "expected 'rules' to be a list of rules, each "
                          "`keep: {...}` or `quantize: {...}`";
  recipe.rules.clear();
  for (llvm::yaml::Node &entry : *sequence) {
    RecipeRule &rule = recipe.rules.emplace_back();
    rule.number = recipe.rules.size();
    if (failed(parseRule(&entry, rule)))
      return failure();
  }
  return success();
}

LogicalResult RecipeParser::parse() {
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

  llvm::SMRange range = root->getSourceRange();
  using Node = llvm::yaml::Node;
  LogicalResult result = parseMapping(
      root, "a recipe",
      {{"name", !overlay,
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
          return parseDot(n, "forward", recipe.forward, "activation",
                          &ForwardRecipe::activation, "weight",
                          &ForwardRecipe::weight);
        }},
       {"dgrad", false,
        [&](Node *n) {
          return parseDot(n, "dgrad", recipe.dgrad, "gradient",
                          &DgradRecipe::gradient, "weight",
                          &DgradRecipe::weight);
        }},
       {"wgrad", false,
        [&](Node *n) {
          return parseDot(n, "wgrad", recipe.wgrad, "activation",
                          &WgradRecipe::activation, "gradient",
                          &WgradRecipe::gradient);
        }},
       {"rules", false, [&](Node *n) { return parseRules(n); }},
       {"compute", false, [&](Node *n) { return parseCompute(n); }},
       {"smooth_swiglu", false, [&](Node *n) { return parseSmooth(n); }},
       {"optimizer", false, [&](Node *n) { return parseOptimizer(n); }},
       {"gradients", false, [&](Node *n) { return parseGradients(n); }},
       enumKey("weight_copies", false, copyTimes, recipe.weightCopies),
       integerKey("seed", 0, std::numeric_limits<int64_t>::max(),
                  recipe.seed)});
  // The scanner is lazy: a syntax error may come up only while walking.
  if (failed(result) || stream.failed() || failed(checkWeightCopies(range)))
    return failure();
  if (++document != stream.end()) {
    if (stream.failed())
      return failure();
    return error(document->getRoot())
           << "expected one recipe in a file but got a second document";
  }
  return success();
}

FailureOr<Recipe> fp8::parseRecipe(StringRef text, StringRef fileName,
                                   MLIRContext *context) {
  Recipe recipe;
  if (failed(RecipeParser(text, fileName, context, recipe, /*overlay=*/false)
                 .parse()))
    return failure();
  return recipe;
}

LogicalResult fp8::overrideRecipe(Recipe &recipe, StringRef assignment,
                                  MLIRContext *context) {
  auto [path, value] = assignment.split('=');
  std::string name = ("--set " + assignment).str();
  if (path.trim().empty() || value.trim().empty())
    return emitError(UnknownLoc::get(context))
           << "expected key.key=value but got '" << assignment << "'";
  // As the file would write it, and so with the same errors.
  SmallVector<StringRef> keys;
  path.split(keys, '.');
  std::string text;
  for (auto [i, key] : llvm::enumerate(keys))
    text += (i ? "{" : "") + key.trim().str() + ": ";
  text += value.trim().str() + std::string(keys.size() - 1, '}') + "\n";
  return RecipeParser(text, name, context, recipe, /*overlay=*/true).parse();
}

static FailureOr<Recipe> loadBase(StringRef nameOrFile, MLIRContext *context) {
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

FailureOr<Recipe> fp8::loadRecipe(StringRef nameOrFile, MLIRContext *context,
                                  ArrayRef<std::string> overrides) {
  FailureOr<Recipe> recipe = loadBase(nameOrFile, context);
  if (failed(recipe))
    return failure();
  for (StringRef assignment : overrides)
    if (failed(overrideRecipe(*recipe, assignment, context)))
      return failure();
  return recipe;
}
