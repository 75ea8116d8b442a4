//===- Recipe.h - Settings for quantization ---------------------*- C++ -*-===//
//
// A recipe is a small YAML file, checked strictly: an unknown key or value is
// an error that names its line, the nearest valid spelling and all valid ones.
// The files of recipes/ are part of the binary and known by name.
// docs/Recipes.md explains every key.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_RECIPE_H
#define FP8_SUPPORT_RECIPE_H

#include "fp8/Dialect/FP8/IR/FP8Enums.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir {
class FloatType;
class MLIRContext;

namespace fp8 {

/// How one kind of operand is quantized.
struct OperandRecipe {
  Format format = Format::F8E4M3FN;
  Tiling tile = Tiling::Tensor;
  ScaleRule scale = ScaleRule::Exact;
  int64_t margin = 0;
  Rounding rounding = Rounding::NearestEven;
  Overflow overflow = Overflow::Saturate;
  Scaling scaling = Scaling::Current;
  /// For delayed scaling only.
  int64_t history = 1024;
  AmaxAlgorithm algorithm = AmaxAlgorithm::Max;
  InitialScale initial = InitialScale::Current;

  bool operator==(const OperandRecipe &other) const;
  bool operator!=(const OperandRecipe &other) const {
    return !(*this == other);
  }
};

/// Returns how many elements along the contraction of a dot with these tilings
/// have the same scales; 0 if all of them have.
int64_t commonRun(Tiling lhs, Tiling rhs);

/// The precision in which a dot accumulates its products.
struct AccumulatorRecipe {
  /// 32, or fewer significand bits kept as an emulation: 14.
  int64_t bits = 32;
  /// Partial sums of this many products are added up in f32; 0: never, or with
  /// fewer bits where a scale changes.
  int64_t promote = 0;
};

/// The operands of the three dots of a linear layer. A dot that is absent from
/// the recipe stays in high precision.
struct ForwardRecipe {
  OperandRecipe activation, weight;
  AccumulatorRecipe accumulator;
};
struct DgradRecipe {
  OperandRecipe gradient, weight;
  AccumulatorRecipe accumulator;
};
struct WgradRecipe {
  OperandRecipe activation, gradient;
  AccumulatorRecipe accumulator;
  SecondPayload copy = SecondPayload::Saved;
};

/// A rule's condition on a size of a dot.
struct RecipeRange {
  std::optional<int64_t> min, max;
  bool empty() const { return !min && !max; }
  bool contains(int64_t value) const {
    return (!min || value >= *min) && (!max || value <= *max);
  }
};

/// A rule decides about the dots that fulfill all of its conditions.
struct RecipeRule {
  bool keep = true;
  std::optional<ModelPart> part;
  std::optional<DotRole> role;
  /// A glob of the tree path of the layer's parameter.
  std::string path;
  /// Layers by number; the first and the last layers.
  SmallVector<int64_t> layers;
  std::optional<int64_t> first, last;
  RecipeRange m, n, k;

  /// The rule's position in the list, counted from 1, and in the file.
  unsigned number = 0;
  FileLineColLoc loc;

  /// The conditions as the recipe writes them.
  void print(llvm::raw_ostream &os) const;
  std::string getConditions() const;
  /// Whether it identifies layers by number.
  bool hasLayerNumber() const { return !layers.empty() || first || last; }
};

/// The precision of all other computation, and of what is saved for the
/// backward pass.
struct ComputeRecipe {
  ComputeFormat unquantizedDots = ComputeFormat::F32;
  AttentionFormat attention = AttentionFormat::Same;
  ComputeFormat saved = ComputeFormat::F32;
  /// The inputs of norms and of gated units, in groups of 1x16 (COAT).
  SavedFormat savedNorms = SavedFormat::Same;
  SavedFormat savedGated = SavedFormat::Same;
  /// Logits larger than this in f32 are computed in slices of rows that are not
  /// larger, if such slices have enough rows; 0: never.
  int64_t logitsBytes = 16 << 20;

  /// Returns the format that the dots of attention read.
  AttentionFormat getAttention() const {
    if (attention != AttentionFormat::Same)
      return attention;
    return unquantizedDots == ComputeFormat::BF16 ? AttentionFormat::BF16
                                                  : AttentionFormat::F32;
  }
};

/// How an array of the state is stored between steps.
struct StorageRecipe {
  StorageFormat format = StorageFormat::F32;
  StorageTiling tile = StorageTiling::None;
  ScaleRule scale = ScaleRule::Exact;
  int64_t margin = 0;
  Rounding rounding = Rounding::NearestEven;
  Scaling scaling = Scaling::Current;
  /// For delayed scaling only.
  int64_t history = 1;
  AmaxAlgorithm algorithm = AmaxAlgorithm::Max;
  /// COAT's dynamic range expansion of groups.
  bool expand = false;

  /// Whether the array is stored in another format than f32.
  bool changes() const { return format != StorageFormat::F32; }
  bool isFP8() const {
    return format == StorageFormat::F8E4M3FN || format == StorageFormat::F8E5M2;
  }
};

/// The formats in which the optimizer's state is stored.
struct OptimizerRecipe {
  StorageRecipe moment1, moment2, master;
  /// Smaller parameters and their moments stay as they are.
  int64_t minElements = 4096;
  /// Globs of tree paths of parameters that stay as they are.
  std::vector<std::string> keep;
  /// StableAdamW: the update is divided by max(1, RMS(g / sqrt(v))).
  bool clipUpdate = false;

  /// Whether it leaves every step unchanged.
  bool changesNothing() const {
    return !moment1.changes() && !moment2.changes() && !master.changes() &&
           !clipUpdate;
  }
};

/// How the product of a gated unit is scaled before it is quantized.
struct SmoothRecipe {
  Granularity granularity = Granularity::None;
  ScaleRule scale = ScaleRule::Pow2;
  int64_t margin = 0;
  Scaling scaling = Scaling::Current;
  /// For delayed scaling only.
  int64_t history = 1;
  AmaxAlgorithm algorithm = AmaxAlgorithm::Max;
  InitialScale initial = InitialScale::Current;
};

/// The format in which gradients travel between ranks.
struct AllReduceRecipe {
  Wire format = Wire::None;
  /// Tensor or Group128: the elements that share a scale, for f8 formats.
  StorageTiling tile = StorageTiling::None;

  bool isFP8() const {
    return format == Wire::F8E4M3FN || format == Wire::F8E5M2;
  }
};

struct Recipe {
  std::string name;
  std::optional<ForwardRecipe> forward;
  std::optional<DgradRecipe> dgrad;
  std::optional<WgradRecipe> wgrad;
  /// The first rule that matches a dot decides about it; a dot that no rule
  /// matches is quantized.
  std::vector<RecipeRule> rules;
  ComputeRecipe compute;
  SmoothRecipe smooth;
  OptimizerRecipe optimizer;
  /// The format in which the gradients of the weights are stored and
  /// accumulated.
  StorageRecipe gradients;
  AllReduceRecipe allReduce;
  WeightCopyTime weightCopies = WeightCopyTime::Step;
  /// The seed of stochastic rounding.
  int64_t seed = 0;

  /// Writes the recipe with every default filled in, as YAML that
  /// `loadRecipe` reads back.
  void print(llvm::raw_ostream &os) const;
};

/// Returns the element type of a stored array.
FloatType getStorageType(StorageFormat format, MLIRContext *context);

/// Returns the names of the built-in recipes, sorted.
SmallVector<StringRef> getRecipeNames();

/// Loads a recipe by its name (see `getRecipeNames`) or from a file whose path
/// ends in `.yaml`, then applies `overrides`, each `key.key=value`. If the
/// recipe is unknown or invalid, emits an error at the file's line and column,
/// and fails.
FailureOr<Recipe> loadRecipe(StringRef nameOrFile, MLIRContext *context,
                             ArrayRef<std::string> overrides = {});

/// Parses the text of a recipe; errors refer to it as `fileName`.
FailureOr<Recipe> parseRecipe(StringRef text, StringRef fileName,
                              MLIRContext *context);

/// Sets one key of a recipe, e.g. `forward.activation.format=f8E5M2`.
LogicalResult overrideRecipe(Recipe &recipe, StringRef assignment,
                             MLIRContext *context);

/// Returns what `print` writes, as a tree of dictionaries, arrays and strings.
DictionaryAttr getSettings(const Recipe &recipe, MLIRContext *context);

/// Returns the recipe with these settings, checked as strictly as a file;
/// missing keys get their defaults. Its rules have the locations
/// `ruleLocations`, if any.
FailureOr<Recipe> parseSettings(DictionaryAttr settings,
                                ArrayRef<FileLineColLoc> ruleLocations,
                                function_ref<InFlightDiagnostic()> emitError);

} // namespace fp8
} // namespace mlir

#endif // FP8_SUPPORT_RECIPE_H
