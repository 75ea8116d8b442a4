//===- Parser.cpp - The keys of recipes -----------------------------------===//

#include "Parser.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

/// 2^16 spans more than the range of any 8-bit format.
static constexpr int64_t kMaxMargin = 16;
static constexpr int64_t kMaxHistory = 1 << 20;
static constexpr int64_t kMaxLayers = 1 << 20;
static constexpr int64_t kMaxSize = int64_t(1) << 40;

/// Returns the rules that never saturate: stored values must survive a round
/// trip.
static SmallVector<ScaleRule> getStorageRules() {
  return {ScaleRule::Exact, ScaleRule::Pow2};
}

namespace {
/// The keys that only delayed scaling has; unset if the file lacks them.
struct HistoryKeys {
  std::optional<int64_t> history;
  std::optional<AmaxAlgorithm> algorithm;
  std::optional<InitialScale> initial;

  bool any() const { return history || algorithm || initial; }
  template <typename RecipeT> void apply(RecipeT &recipe) const {
    recipe.history = history.value_or(recipe.history);
    recipe.algorithm = algorithm.value_or(recipe.algorithm);
    recipe.initial = initial.value_or(recipe.initial);
  }
};

/// The keys of a stored array; unset if the file lacks them.
struct StorageKeys {
  std::optional<StorageFormat> format;
  std::optional<StorageTiling> tile;
  std::optional<ScaleRule> scale;
  std::optional<int64_t> margin, history;
  std::optional<Scaling> scaling;
  std::optional<AmaxAlgorithm> algorithm;
  std::optional<Rounding> rounding;
  std::optional<bool> expand;

  bool hasHistory() const { return history || algorithm; }
  bool hasScale() const { return scale || margin || scaling; }
  void apply(StorageRecipe &storage) const;
};

class RecipeParser : public YAMLReader {
public:
  RecipeParser(StringRef text, StringRef fileName, MLIRContext *context,
               Recipe &recipe, bool overlay, EmitRecipeError emitError)
      : YAMLReader(text, fileName, context, std::move(emitError)),
        recipe(recipe), overlay(overlay) {}

  LogicalResult parse();

private:
  LogicalResult parseRoot(Node *root);

  SmallVector<Key> getHistoryKeys(HistoryKeys &keys);
  LogicalResult parseOperand(Node *node, StringRef what, OperandRecipe &operand,
                             bool complete);
  LogicalResult checkOperand(llvm::SMRange range, StringRef what,
                             const OperandRecipe &operand, bool historySet);
  LogicalResult parseAccumulator(Node *node, StringRef what,
                                 AccumulatorRecipe &accumulator);
  template <typename DotT>
  Key dotKey(StringLiteral dot, std::optional<DotT> &result,
             StringLiteral first, OperandRecipe DotT::*firstOperand,
             StringLiteral second, OperandRecipe DotT::*secondOperand);
  template <typename DotT>
  LogicalResult
  parseDot(Node *node, StringLiteral dot, std::optional<DotT> &result,
           StringLiteral first, OperandRecipe DotT::*firstOperand,
           StringLiteral second, OperandRecipe DotT::*secondOperand);

  LogicalResult parseRules(Node *node);
  LogicalResult parseRule(Node *node, RecipeRule &rule);
  LogicalResult parseConditions(Node *node, StringRef what, RecipeRule &rule);

  LogicalResult parseCompute(Node *node);
  LogicalResult parseSmooth(Node *node);
  LogicalResult parseAllReduce(Node *node);
  LogicalResult
  parseStorage(Node *node, StringRef what, StorageRecipe &storage,
               function_ref<LogicalResult(llvm::SMRange)> check = nullptr);
  LogicalResult checkStorageTile(llvm::SMRange range, StringRef what,
                                 const StorageRecipe &storage);
  LogicalResult checkStorage(llvm::SMRange range, StringRef what,
                             const StorageRecipe &storage,
                             const StorageKeys &keys);
  LogicalResult parseOptimizer(Node *node);
  LogicalResult parseGradients(Node *node);
  LogicalResult checkWeightCopies(llvm::SMRange range);
  LogicalResult checkAccumulator(llvm::SMRange range, StringRef dot,
                                 const AccumulatorRecipe &sums, Tiling lhs,
                                 Tiling rhs);
  LogicalResult checkAccumulators(llvm::SMRange range);

  /// Remembers where the value of a key is, for checks of several keys.
  Key located(Key key) {
    return {key.name, key.required,
            [this, name = key.name, read = std::move(key.read)](Node *node) {
              ranges[name] = node->getSourceRange();
              return read(node);
            }};
  }
  /// Returns where the value of a key is; `whole` if it is not in this text.
  llvm::SMRange rangeOf(StringRef name, llvm::SMRange whole) const {
    auto found = ranges.find(name);
    return found == ranges.end() ? whole : found->second;
  }

  /// Makes a key whose value a method reads.
  Key key(StringLiteral name, LogicalResult (RecipeParser::*parse)(Node *)) {
    return {name, /*required=*/false,
            [this, parse](Node *node) { return (this->*parse)(node); }};
  }

  Recipe &recipe;
  bool overlay;
  llvm::StringMap<llvm::SMRange> ranges;
};
} // namespace

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

SmallVector<YAMLReader::Key> RecipeParser::getHistoryKeys(HistoryKeys &keys) {
  return {integerKey("history", 1, kMaxHistory, keys.history),
          enumKey("algorithm", keys.algorithm),
          enumKey("initial", keys.initial)};
}

LogicalResult RecipeParser::parseOperand(Node *node, StringRef what,
                                         OperandRecipe &operand,
                                         bool complete) {
  // The range of a mapping changes while it is walked.
  llvm::SMRange range = node->getSourceRange();
  HistoryKeys history;
  SmallVector<Key> keys{enumKey("format", complete, operand.format),
                        enumKey("tile", false, operand.tile),
                        enumKey("scale", false, operand.scale),
                        integerKey("margin", 0, kMaxMargin, operand.margin),
                        enumKey("rounding", false, operand.rounding),
                        enumKey("overflow", false, operand.overflow),
                        enumKey("scaling", false, operand.scaling)};
  keys.append(getHistoryKeys(history));
  if (failed(readMapping(node, "'" + what + "'", keys)))
    return failure();
  history.apply(operand);
  return checkOperand(range, what, operand, history.any());
}

/// Reports keys that contradict each other.
LogicalResult RecipeParser::checkOperand(llvm::SMRange range, StringRef what,
                                         const OperandRecipe &operand,
                                         bool historySet) {
  bool delayed = operand.scaling == Scaling::Delayed;
  if (historySet && !delayed)
    return error(range) << "keys 'history', 'algorithm' and 'initial' of '"
                        << what << "' need scaling: delayed";
  if (delayed && operand.tile != Tiling::Tensor)
    return error(range) << "expected tile: tensor with scaling: delayed in '"
                        << what << "' but got "
                        << stringifyTiling(operand.tile);
  if (operand.tile != Tiling::MX)
    return success();
  if (operand.scale == ScaleRule::Exact)
    return error(range) << "expected scale: pow2 or ocp_floor with tile: 1x32 "
                           "in '"
                        << what << "' (its scales are f8E8M0FNU) but got exact";
  if (operand.format != Format::F8E4M3FN && operand.format != Format::F8E5M2)
    return error(range) << "expected format: f8E4M3FN or f8E5M2 with tile: "
                           "1x32 in '"
                        << what << "' but got "
                        << stringifyFormat(operand.format);
  return success();
}

LogicalResult RecipeParser::parseAccumulator(Node *node, StringRef what,
                                             AccumulatorRecipe &accumulator) {
  llvm::SMRange range = node->getSourceRange();
  if (failed(readMapping(
          node, "'" + what + "'",
          {integerKey("bits", 14, 32, accumulator.bits),
           integerKey("promote", 0, 1 << 20, accumulator.promote)})))
    return failure();
  if (accumulator.bits != 14 && accumulator.bits != 32)
    return error(range) << "expected the value of key 'bits' to be 14 or 32 "
                           "but got "
                        << accumulator.bits;
  if (accumulator.promote % 32 != 0)
    return error(range) << "expected the value of key 'promote' to be a "
                           "multiple of 32 (0: never) but got "
                        << accumulator.promote;
  return success();
}

template <typename DotT>
LogicalResult
RecipeParser::parseDot(Node *node, StringLiteral dot,
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
  // A dot that the overlaid recipe lacks must be complete.
  bool complete = !overlay || !result;
  if (!result)
    result.emplace();
  DotT &recipe = *result;
  auto operand = [&](StringLiteral name, OperandRecipe DotT::*member) {
    return Key{name, complete, [&, name, member](Node *n) {
                 return parseOperand(n, (dot + "." + name).str(),
                                     recipe.*member, complete);
               }};
  };
  SmallVector<Key> keys{
      operand(first, firstOperand), operand(second, secondOperand),
      Key{"accumulator", false, [&](Node *n) {
            return parseAccumulator(n, (dot + ".accumulator").str(),
                                    recipe.accumulator);
          }}};
  if constexpr (std::is_same_v<DotT, WgradRecipe>)
    keys.push_back(enumKey("copy", false, recipe.copy));
  return readMapping(node, "'" + dot + "'", keys);
}

template <typename DotT>
YAMLReader::Key
RecipeParser::dotKey(StringLiteral dot, std::optional<DotT> &result,
                     StringLiteral first, OperandRecipe DotT::*firstOperand,
                     StringLiteral second, OperandRecipe DotT::*secondOperand) {
  return located({dot, /*required=*/false, [=, &result](Node *node) {
                    return parseDot(node, dot, result, first, firstOperand,
                                    second, secondOperand);
                  }});
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

LogicalResult RecipeParser::parseConditions(Node *node, StringRef what,
                                            RecipeRule &rule) {
  auto readLayers = [&](Node *layers) -> LogicalResult {
    llvm::SMRange range = layers->getSourceRange();
    if (failed(readList(layers, "expected key 'layers' to be a list of numbers",
                        [&](Node *entry) {
                          return readInteger(entry, "layers", 0, kMaxLayers,
                                             rule.layers.emplace_back());
                        })))
      return failure();
    if (rule.layers.empty())
      return error(range) << "expected key 'layers' to be a list of numbers "
                             "but got an empty one";
    return success();
  };
  auto readPath = [&](Node *path) -> LogicalResult {
    if (failed(readString(path, "path", rule.path)))
      return failure();
    if (rule.path.empty())
      return error(path) << "expected key 'path' to be the pattern of a tree "
                            "path but got an empty one";
    return success();
  };
  return readMapping(
      node, "'" + what + "'",
      {enumKey("part", rule.part),
       enumKey("role", rule.role,
               {DotRole::Forward, DotRole::Dgrad, DotRole::Wgrad}),
       Key{"path", false, readPath}, Key{"layers", false, readLayers},
       integerKey("first", 1, kMaxLayers, rule.first),
       integerKey("last", 1, kMaxLayers, rule.last),
       integerKey("min_m", 1, kMaxSize, rule.m.min),
       integerKey("max_m", 1, kMaxSize, rule.m.max),
       integerKey("min_n", 1, kMaxSize, rule.n.min),
       integerKey("max_n", 1, kMaxSize, rule.n.max),
       integerKey("min_k", 1, kMaxSize, rule.k.min),
       integerKey("max_k", 1, kMaxSize, rule.k.max)});
}

LogicalResult RecipeParser::parseRule(Node *node, RecipeRule &rule) {
  llvm::SMRange range = node->getSourceRange();
  rule.loc = getLocation(range);
  int verbs = 0;
  auto verb = [&](StringLiteral name, bool keep) {
    return Key{name, false, [&, name, keep](Node *conditions) {
                 ++verbs;
                 rule.keep = keep;
                 return parseConditions(conditions, name, rule);
               }};
  };
  if (failed(readMapping(node, "a rule",
                         {verb("keep", true), verb("quantize", false)})))
    return failure();
  if (verbs != 1)
    return error(range) << "expected a rule to have one of the keys keep, "
                           "quantize";
  if (rule.getConditions().empty())
    return error(range) << "expected a rule to have at least one condition";
  for (auto [name, size] :
       {std::pair("m", rule.m), std::pair("n", rule.n), std::pair("k", rule.k)})
    if (size.min && size.max && *size.min > *size.max)
      return error(range) << "expected max_" << name << " of at least min_"
                          << name << ", " << *size.min << ", but got "
                          << *size.max;
  return success();
}

LogicalResult RecipeParser::parseRules(Node *node) {
  std::vector<RecipeRule> rules;
  if (failed(readList(node,
                      "expected 'rules' to be a list of rules, each "
                      "`keep: {...}` or `quantize: {...}`",
                      [&](Node *entry) {
                        RecipeRule &rule = rules.emplace_back();
                        rule.number = rules.size();
                        return parseRule(entry, rule);
                      })))
    return failure();
  recipe.rules = std::move(rules);
  return success();
}

//===----------------------------------------------------------------------===//
// What is not quantized, and gated units
//===----------------------------------------------------------------------===//

LogicalResult RecipeParser::parseCompute(Node *node) {
  ComputeRecipe &compute = recipe.compute;
  return readMapping(
      node, "'compute'",
      {enumKey("unquantized_dots", false, compute.unquantizedDots),
       enumKey("attention", false, compute.attention),
       enumKey("saved", false, compute.saved),
       enumKey("saved_norms", false, compute.savedNorms),
       enumKey("saved_gated", false, compute.savedGated),
       integerKey("logits_bytes", 0, kMaxSize, compute.logitsBytes)});
}

LogicalResult RecipeParser::parseSmooth(Node *node) {
  llvm::SMRange range = node->getSourceRange();
  SmoothRecipe &smooth = recipe.smooth;
  std::optional<ScaleRule> scale;
  std::optional<int64_t> margin;
  std::optional<Scaling> scaling;
  HistoryKeys history;
  SmallVector<Key> keys{enumKey("granularity", !overlay, smooth.granularity),
                        enumKey("scale", scale, getStorageRules()),
                        integerKey("margin", 0, kMaxMargin, margin),
                        enumKey("scaling", scaling)};
  keys.append(getHistoryKeys(history));
  if (failed(readMapping(node, "'smooth_swiglu'", keys)))
    return failure();
  if (smooth.granularity == Granularity::None &&
      (scale || margin || scaling || history.any()))
    return error(range) << "expected granularity: channel or token with other "
                           "keys of 'smooth_swiglu' but got none";
  smooth.scale = scale.value_or(smooth.scale);
  smooth.margin = margin.value_or(smooth.margin);
  smooth.scaling = scaling.value_or(smooth.scaling);
  history.apply(smooth);
  if (history.any() && smooth.scaling != Scaling::Delayed)
    return error(range) << "keys 'history', 'algorithm' and 'initial' of "
                           "'smooth_swiglu' need scaling: delayed";
  return success();
}

//===----------------------------------------------------------------------===//
// What is stored
//===----------------------------------------------------------------------===//

void StorageKeys::apply(StorageRecipe &storage) const {
  // Settings for another format do not apply to this one.
  if (format && *format != storage.format)
    storage = StorageRecipe();
  storage.format = format.value_or(storage.format);
  if (storage.isFP8() && storage.tile == StorageTiling::None)
    storage.tile = StorageTiling::Tensor;
  storage.tile = tile.value_or(storage.tile);
  storage.scale = scale.value_or(storage.scale);
  storage.margin = margin.value_or(storage.margin);
  storage.rounding = rounding.value_or(storage.rounding);
  storage.scaling = scaling.value_or(storage.scaling);
  storage.history = history.value_or(storage.history);
  storage.algorithm = algorithm.value_or(storage.algorithm);
  storage.expand = expand.value_or(storage.expand);
}

/// Reads how an array is stored. `check` reports what this kind of array does
/// not have, before errors about keys that fit an array of another kind.
LogicalResult
RecipeParser::parseStorage(Node *node, StringRef what, StorageRecipe &storage,
                           function_ref<LogicalResult(llvm::SMRange)> check) {
  llvm::SMRange range = node->getSourceRange();
  StorageKeys keys;
  if (failed(readMapping(
          node, "'" + what + "'",
          {enumKey("format", keys.format), enumKey("tile", keys.tile),
           enumKey("scale", keys.scale, getStorageRules()),
           integerKey("margin", 0, kMaxMargin, keys.margin),
           enumKey("rounding", keys.rounding), enumKey("scaling", keys.scaling),
           integerKey("history", 1, kMaxHistory, keys.history),
           enumKey("algorithm", keys.algorithm),
           boolKey("expand", keys.expand)})))
    return failure();
  keys.apply(storage);
  if (check && failed(check(range)))
    return failure();
  if (failed(checkStorageTile(range, what, storage)))
    return failure();
  return checkStorage(range, what, storage, keys);
}

/// Reports formats and tiles that cannot be combined.
LogicalResult RecipeParser::checkStorageTile(llvm::SMRange range,
                                             StringRef what,
                                             const StorageRecipe &storage) {
  StringRef expected = "none";
  bool fits = storage.tile == StorageTiling::None;
  if (storage.isFP8()) {
    expected = "tensor or 1x128";
    fits = storage.tile != StorageTiling::None;
  } else if (storage.format == StorageFormat::F16) {
    expected = "none or tensor";
    fits = storage.tile != StorageTiling::Group128;
  }
  if (fits)
    return success();
  return error(range) << "expected tile: " << expected << " with format: "
                      << stringifyStorageFormat(storage.format) << " in '"
                      << what << "' but got "
                      << stringifyStorageTiling(storage.tile);
}

/// Reports other keys that contradict each other.
LogicalResult RecipeParser::checkStorage(llvm::SMRange range, StringRef what,
                                         const StorageRecipe &storage,
                                         const StorageKeys &keys) {
  bool delayed = storage.scaling == Scaling::Delayed;
  if (storage.tile == StorageTiling::None && (keys.hasScale() || delayed))
    return error(range) << "keys 'scale', 'margin' and 'scaling' of '" << what
                        << "' need a tile";
  if (!storage.changes() && storage.rounding == Rounding::Stochastic)
    return error(range) << "expected rounding: nearest_even with format: f32 "
                           "in '"
                        << what << "' but got stochastic";
  if (keys.hasHistory() && !delayed)
    return error(range) << "keys 'history' and 'algorithm' of '" << what
                        << "' need scaling: delayed";
  if (delayed && storage.tile != StorageTiling::Tensor)
    return error(range) << "expected tile: tensor with scaling: delayed in '"
                        << what << "' but got "
                        << stringifyStorageTiling(storage.tile);
  if (storage.expand && (storage.tile != StorageTiling::Group128 ||
                         storage.scale != ScaleRule::Exact))
    return error(range) << "expected tile: 1x128 and scale: exact with "
                           "expand: true in '"
                        << what << "'";
  return success();
}

LogicalResult RecipeParser::parseOptimizer(Node *node) {
  OptimizerRecipe &optimizer = recipe.optimizer;
  auto storage = [&](StringLiteral name, StorageRecipe &result) {
    return Key{name, false, [&, name](Node *n) {
                 return parseStorage(n, ("optimizer." + name).str(), result);
               }};
  };
  auto readPaths = [&](Node *paths) {
    optimizer.keep.clear();
    return readList(paths, "expected key 'keep' to be a list of tree paths",
                    [&](Node *entry) {
                      return readString(entry, "keep",
                                        optimizer.keep.emplace_back());
                    });
  };
  return readMapping(
      node, "'optimizer'",
      {storage("moment1", optimizer.moment1),
       storage("moment2", optimizer.moment2),
       storage("master", optimizer.master),
       integerKey("min_elements", 0, kMaxSize, optimizer.minElements),
       Key{"keep", false, readPaths},
       boolKey("clip_update", optimizer.clipUpdate)});
}

LogicalResult RecipeParser::parseGradients(Node *node) {
  StorageRecipe &gradients = recipe.gradients;
  auto check = [&](llvm::SMRange range) -> LogicalResult {
    if (gradients.expand)
      return error(range) << "expected expand: false in 'gradients' but got "
                             "true";
    if (gradients.tile == StorageTiling::Group128)
      return error(range) << "expected tile: none or tensor in 'gradients' but "
                             "got 1x128";
    if (gradients.scaling == Scaling::Delayed)
      return error(range) << "expected scaling: current in 'gradients' but got "
                             "delayed";
    return success();
  };
  return parseStorage(node, "gradients", gradients, check);
}

LogicalResult RecipeParser::parseAllReduce(Node *node) {
  llvm::SMRange range = node->getSourceRange();
  AllReduceRecipe &reduce = recipe.allReduce;
  Wire before = reduce.format;
  std::optional<StorageTiling> tile;
  if (failed(readMapping(
          node, "'all_reduce'",
          {enumKey("format", !overlay, reduce.format), enumKey("tile", tile)})))
    return failure();
  if (before != reduce.format)
    reduce.tile = reduce.isFP8() ? StorageTiling::Tensor : StorageTiling::None;
  reduce.tile = tile.value_or(reduce.tile);
  if (reduce.isFP8() == (reduce.tile == StorageTiling::None))
    return error(range) << "expected tile: "
                        << (reduce.isFP8() ? "tensor or 1x128" : "none")
                        << " with format: " << stringifyWire(reduce.format)
                        << " in 'all_reduce' but got "
                        << stringifyStorageTiling(reduce.tile);
  return success();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Checks `weight_copies`: the copy for the next step is made before the
/// weight's amax is known, and is an array of the checkpoint.
LogicalResult RecipeParser::checkWeightCopies(llvm::SMRange range) {
  if (recipe.weightCopies == WeightCopyTime::Step)
    return success();
  auto fits = [](const OperandRecipe &weight) {
    return weight.scaling == Scaling::Delayed &&
           weight.rounding == Rounding::NearestEven &&
           (weight.format == Format::F8E4M3FN ||
            weight.format == Format::F8E5M2);
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

/// Checks that narrow partial sums end where a scale changes.
LogicalResult RecipeParser::checkAccumulator(llvm::SMRange range, StringRef dot,
                                             const AccumulatorRecipe &sums,
                                             Tiling lhs, Tiling rhs) {
  int64_t run = commonRun(lhs, rhs);
  if (sums.bits == 32 || sums.promote == 0 || run % sums.promote == 0)
    return success();
  return error(range) << "expected '" << dot
                      << ".accumulator' to have a 'promote' that divides the "
                      << run << " elements of a tile (0: the tile) with bits: "
                      << sums.bits << " but got " << sums.promote;
}

LogicalResult RecipeParser::checkAccumulators(llvm::SMRange range) {
  auto check = [&](StringRef name, const auto &dot, auto lhs, auto rhs) {
    return success(!dot || succeeded(checkAccumulator(
                               rangeOf(name, range), name, dot->accumulator,
                               ((*dot).*lhs).tile, ((*dot).*rhs).tile)));
  };
  return success(
      succeeded(check("forward", recipe.forward, &ForwardRecipe::activation,
                      &ForwardRecipe::weight)) &&
      succeeded(check("dgrad", recipe.dgrad, &DgradRecipe::gradient,
                      &DgradRecipe::weight)) &&
      succeeded(check("wgrad", recipe.wgrad, &WgradRecipe::activation,
                      &WgradRecipe::gradient)));
}

LogicalResult RecipeParser::parseRoot(Node *root) {
  llvm::SMRange range = root->getSourceRange();
  if (failed(readMapping(
          root, "a recipe",
          {stringKey("name", !overlay, recipe.name),
           dotKey("forward", recipe.forward, "activation",
                  &ForwardRecipe::activation, "weight", &ForwardRecipe::weight),
           dotKey("dgrad", recipe.dgrad, "gradient", &DgradRecipe::gradient,
                  "weight", &DgradRecipe::weight),
           dotKey("wgrad", recipe.wgrad, "activation", &WgradRecipe::activation,
                  "gradient", &WgradRecipe::gradient),
           key("rules", &RecipeParser::parseRules),
           key("compute", &RecipeParser::parseCompute),
           key("smooth_swiglu", &RecipeParser::parseSmooth),
           key("optimizer", &RecipeParser::parseOptimizer),
           key("gradients", &RecipeParser::parseGradients),
           key("all_reduce", &RecipeParser::parseAllReduce),
           located(enumKey("weight_copies", false, recipe.weightCopies)),
           integerKey("seed", 0, std::numeric_limits<int64_t>::max(),
                      recipe.seed)})))
    return failure();
  if (failed(checkAccumulators(range)))
    return failure();
  return checkWeightCopies(rangeOf("weight_copies", range));
}

LogicalResult RecipeParser::parse() {
  return read([&](Node *root) { return parseRoot(root); });
}

LogicalResult fp8::readRecipe(StringRef text, StringRef fileName,
                              MLIRContext *context, Recipe &recipe,
                              bool overlay, EmitRecipeError emitError) {
  return RecipeParser(text, fileName, context, recipe, overlay,
                      std::move(emitError))
      .parse();
}
