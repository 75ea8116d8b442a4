//===- Recipe.h - What becomes FP8, and how ---------------------*- C++ -*-===//
//
// A recipe is a small YAML file, checked strictly: an unknown key or value is
// an error that names its line, the nearest valid spelling and all valid ones.
// The files of recipes/ are part of the binary and known by name.
// docs/Recipes.md explains every key.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_RECIPE_H
#define FP8_SUPPORT_RECIPE_H

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

/// The floating-point format of a payload.
enum class RecipeFormat { F8E4M3FN, F8E5M2, F8E4M3, F8E4M3FNUZ, F8E5M2FNUZ };
/// The block of elements that shares one scale, of an operand seen as a matrix
/// whose rows lie along the contraction.
enum class RecipeTile {
  Tensor,   ///< One scale.
  Row,      ///< One scale a row: constant along the contraction.
  Row128,   ///< 128 elements of a row.
  Block128, ///< 128 rows by 128 elements.
  MX        ///< 32 elements of a row, the scale an f8E8M0FNU.
};
/// How a scale follows from an amax.
enum class RecipeScale { Exact, Pow2, OcpFloor };
/// How a value between two codes is rounded.
enum class RecipeRounding { NearestEven, Stochastic };
/// What becomes of a finite value beyond the largest code.
enum class RecipeOverflow { Saturate, NaN };
/// Where the amax comes from: the tensor itself, or earlier steps.
enum class RecipeScaling { Current, Delayed };
/// What delayed scaling takes of its history.
enum class RecipeAlgorithm { Max, MostRecent };
/// The scale of delayed scaling before there is a history.
enum class RecipeInitial { Current, One };

/// How one kind of operand is quantized.
struct OperandRecipe {
  RecipeFormat format = RecipeFormat::F8E4M3FN;
  RecipeTile tile = RecipeTile::Tensor;
  RecipeScale scale = RecipeScale::Exact;
  int64_t margin = 0;
  RecipeRounding rounding = RecipeRounding::NearestEven;
  RecipeOverflow overflow = RecipeOverflow::Saturate;
  RecipeScaling scaling = RecipeScaling::Current;
  /// Of delayed scaling alone.
  int64_t history = 1024;
  RecipeAlgorithm algorithm = RecipeAlgorithm::Max;
  RecipeInitial initial = RecipeInitial::Current;

  /// Where the recipe says so; plays no part in comparisons.
  std::optional<Location> loc;

  bool operator==(const OperandRecipe &other) const;
  bool operator!=(const OperandRecipe &other) const {
    return !(*this == other);
  }
};

/// What a dot sums its products in.
struct AccumulatorRecipe {
  /// 32, or fewer significand bits kept as an emulation: 14.
  int64_t bits = 32;
  /// Partial sums of this many products are added up in f32; 0: never.
  int64_t promote = 0;

  std::optional<Location> loc;
};

/// What becomes of the activation that forward and wgrad need in two tilings.
enum class RecipeCopy {
  Saved,      ///< Both payloads are made in the forward pass.
  Recomputed, ///< The second is made from the tensor in the backward pass.
  Requantized ///< The second is made from the first payload.
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
  RecipeCopy copy = RecipeCopy::Saved;
};

/// The dot of a layer that a rule may name.
enum class RecipeRole { Forward, Dgrad, Wgrad };
/// The part of the model that a rule may name.
enum class RecipePart { Head, Linear };

/// A condition of a rule on a number.
struct RecipeRange {
  std::optional<int64_t> min, max;
  bool empty() const { return !min && !max; }
  bool contains(int64_t value) const {
    return (!min || value >= *min) && (!max || value <= *max);
  }
};

/// Decides about the dots that it matches: those that fulfill all of its
/// conditions.
struct RecipeRule {
  bool keep = true;
  std::optional<RecipePart> part;
  std::optional<RecipeRole> role;
  /// A glob of the tree path of the layer's parameter.
  std::string path;
  /// Numbers of layers; the first and the last ones.
  SmallVector<int64_t> layers;
  std::optional<int64_t> first, last;
  RecipeRange m, n, k;

  /// Number and line, for reports.
  unsigned number = 0, line = 0;
  std::optional<Location> loc;

  /// The conditions as the recipe writes them.
  void print(llvm::raw_ostream &os) const;
  /// Whether it names a layer by its number.
  bool hasLayerNumber() const { return !layers.empty() || first || last; }
};

enum class RecipeFloat { F32, BF16 };

/// What is kept for the backward pass of some activations.
enum class RecipeSaved {
  Same, ///< As `compute.saved` says.
  F8E4M3FN,
  F8E5M2
};

/// What everything else computes in and keeps for the backward pass.
struct ComputeRecipe {
  RecipeFloat unquantizedDots = RecipeFloat::F32;
  RecipeFloat saved = RecipeFloat::F32;
  /// The inputs of norms and of gated units, in groups of 1x16 (COAT).
  RecipeSaved savedNorms = RecipeSaved::Same;
  RecipeSaved savedGated = RecipeSaved::Same;
};

/// What an array of the state is stored in.
enum class RecipeStorage { F32, BF16, F16, F8E4M3FN, F8E5M2 };
/// The elements of a stored array that share a scale.
enum class RecipeStorageTile {
  None,    ///< No scale: a cast.
  Tensor,  ///< One scale.
  Group128 ///< 128 elements along the last dimension.
};

/// How an array of the state is stored between steps.
struct StorageRecipe {
  RecipeStorage format = RecipeStorage::F32;
  RecipeStorageTile tile = RecipeStorageTile::None;
  RecipeScale scale = RecipeScale::Exact;
  int64_t margin = 0;
  RecipeRounding rounding = RecipeRounding::NearestEven;
  RecipeScaling scaling = RecipeScaling::Current;
  /// Of delayed scaling alone.
  int64_t history = 1;
  RecipeAlgorithm algorithm = RecipeAlgorithm::Max;
  /// COAT's range expansion, of groups.
  bool expand = false;

  std::optional<Location> loc;

  /// Whether it is stored otherwise than as f32.
  bool changes() const { return format != RecipeStorage::F32; }
  bool isFP8() const {
    return format == RecipeStorage::F8E4M3FN || format == RecipeStorage::F8E5M2;
  }
};

/// What the optimizer's state is stored in.
struct OptimizerRecipe {
  StorageRecipe moment1, moment2, master;
  /// Smaller parameters and their moments stay as they are.
  int64_t minElements = 4096;
  /// Globs of tree paths of parameters that stay as they are.
  std::vector<std::string> keep;
  /// StableAdamW: the update is divided by max(1, RMS(g / sqrt(v))).
  bool clipUpdate = false;

  /// Whether it leaves every step as it is.
  bool changesNothing() const {
    return !moment1.changes() && !moment2.changes() && !master.changes() &&
           !clipUpdate;
  }
};

/// What shares a scale of Smooth-SwiGLU.
enum class RecipeGranularity { None, Channel, Token };

/// How the product of a gated unit is scaled before it is quantized.
struct SmoothRecipe {
  RecipeGranularity granularity = RecipeGranularity::None;
  RecipeScale scale = RecipeScale::Pow2;
  int64_t margin = 0;
  RecipeScaling scaling = RecipeScaling::Current;
  /// Of delayed scaling alone.
  int64_t history = 1;
  RecipeAlgorithm algorithm = RecipeAlgorithm::Max;
  RecipeInitial initial = RecipeInitial::Current;

  std::optional<Location> loc;
};

/// When the weights' FP8 copies are made.
enum class RecipeWeightCopies {
  Step, ///< In every step, before the first dot.
  State ///< Where the optimizer updates the weights; they are state.
};

struct Recipe {
  std::string name;
  std::optional<ForwardRecipe> forward;
  std::optional<DgradRecipe> dgrad;
  std::optional<WgradRecipe> wgrad;
  /// The first rule that matches a dot decides about it; a dot that none
  /// matches is quantized.
  std::vector<RecipeRule> rules;
  ComputeRecipe compute;
  SmoothRecipe smooth;
  OptimizerRecipe optimizer;
  /// What the gradients of the weights are stored and accumulated in.
  StorageRecipe gradients;
  RecipeWeightCopies weightCopies = RecipeWeightCopies::Step;
  /// Of stochastic rounding.
  int64_t seed = 0;

  /// Writes the recipe with every default filled in, as YAML that
  /// `loadRecipe` reads back.
  void print(llvm::raw_ostream &os) const;
};

/// The spelling of a format in recipes and reports, e.g. `f8E4M3FN`.
StringRef stringifyFormat(RecipeFormat format);
/// The spelling of a tile in recipes and reports, e.g. `1x128`.
StringRef stringifyTile(RecipeTile tile);
/// The spelling of a stored array's format, e.g. `bf16`.
StringRef stringifyStorage(RecipeStorage format);
/// The element type of a stored array.
FloatType getStorageType(RecipeStorage format, MLIRContext *context);
/// The spelling of a stored array's tile, e.g. `1x128`.
StringRef stringifyStorageTile(RecipeStorageTile tile);

/// Whether the glob `pattern` matches a tree path: `*` is any text, `?` any
/// letter, brackets are those of the path.
bool matchesPath(StringRef pattern, StringRef path);

/// The names of the recipes that are part of the binary, sorted.
SmallVector<StringRef> getRecipeNames();

/// Loads a recipe: a name of `getRecipeNames`, or the path of a file that ends
/// in `.yaml`; then sets what `overrides` say, `key.key=value` each. Emits an
/// error at the file's line and column, and fails, when the recipe is unknown
/// or invalid.
FailureOr<Recipe> loadRecipe(StringRef nameOrFile, MLIRContext *context,
                             ArrayRef<std::string> overrides = {});

/// Parses the text of a recipe; `fileName` is what errors call it.
FailureOr<Recipe> parseRecipe(StringRef text, StringRef fileName,
                              MLIRContext *context);

/// Sets one key of a recipe, e.g. `forward.activation.format=f8E5M2`.
LogicalResult overrideRecipe(Recipe &recipe, StringRef assignment,
                             MLIRContext *context);

} // namespace fp8
} // namespace mlir

#endif // FP8_SUPPORT_RECIPE_H
