//===- Recipe.h - Which dots become FP8, and how ----------------*- C++ -*-===//
//
// A recipe is a small YAML file, checked strictly: an unknown key or value is
// an error that names its line, the nearest valid spelling and all valid ones.
// The files of recipes/ are part of the binary and known by name.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_RECIPE_H
#define FP8_SUPPORT_RECIPE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir {
class MLIRContext;

namespace fp8 {

/// The floating-point format of a payload.
enum class RecipeFormat { F8E4M3FN, F8E5M2 };
/// The block of elements that shares one scale.
enum class RecipeTile { Tensor };
/// How a scale follows from an amax.
enum class RecipeScale { Exact, Pow2, OcpFloor };
/// How a value between two codes is rounded.
enum class RecipeRounding { NearestEven };
/// What becomes of a finite value beyond the largest code.
enum class RecipeOverflow { Saturate, NaN };
/// Where the amax comes from: the tensor itself, or earlier steps.
enum class RecipeScaling { Current };

/// How one kind of operand is quantized.
struct OperandRecipe {
  RecipeFormat format = RecipeFormat::F8E4M3FN;
  RecipeTile tile = RecipeTile::Tensor;
  RecipeScale scale = RecipeScale::Exact;
  int64_t margin = 0;
  RecipeRounding rounding = RecipeRounding::NearestEven;
  RecipeOverflow overflow = RecipeOverflow::Saturate;
  RecipeScaling scaling = RecipeScaling::Current;

  bool operator==(const OperandRecipe &other) const;
  bool operator!=(const OperandRecipe &other) const {
    return !(*this == other);
  }
};

/// The operands of the three dots of a linear layer. A dot that is absent from
/// the recipe stays in high precision.
struct ForwardRecipe {
  OperandRecipe activation, weight;
};
struct DgradRecipe {
  OperandRecipe gradient, weight;
};
struct WgradRecipe {
  OperandRecipe activation, gradient;
};

/// What stays in high precision whatever the dots above say.
struct KeepRecipe {
  bool head = true;
  bool embedding = true;
  bool attention = true;
};

struct Recipe {
  std::string name;
  std::optional<ForwardRecipe> forward;
  std::optional<DgradRecipe> dgrad;
  std::optional<WgradRecipe> wgrad;
  KeepRecipe keep;

  bool quantizesNothing() const { return !forward && !dgrad && !wgrad; }

  /// Writes the recipe with every default filled in, as YAML that
  /// `loadRecipe` reads back.
  void print(llvm::raw_ostream &os) const;
};

/// The spelling of a format in recipes and reports, e.g. `f8E4M3FN`.
StringRef stringifyFormat(RecipeFormat format);

/// The names of the recipes that are part of the binary, sorted.
SmallVector<StringRef> getRecipeNames();

/// Loads a recipe: a name of `getRecipeNames`, or the path of a file that ends
/// in `.yaml`. Emits an error at the file's line and column, and fails, when
/// the recipe is unknown or invalid.
FailureOr<Recipe> loadRecipe(StringRef nameOrFile, MLIRContext *context);

/// Parses the text of a recipe; `fileName` is what errors call it.
FailureOr<Recipe> parseRecipe(StringRef text, StringRef fileName,
                              MLIRContext *context);

} // namespace fp8
} // namespace mlir

#endif // FP8_SUPPORT_RECIPE_H
