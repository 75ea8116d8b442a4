//===- Parser.h - The keys of recipes ---------------------------*- C++ -*-===//

#ifndef FP8_LIB_SUPPORT_RECIPE_PARSER_H
#define FP8_LIB_SUPPORT_RECIPE_PARSER_H

#include "YAMLReader.h"

#include "fp8/Support/Recipe.h"

namespace mlir {
namespace fp8 {

/// Reads the text of a recipe into `recipe`; locations refer to it as
/// `fileName`. An overlay sets some keys of a complete recipe.
LogicalResult readRecipe(StringRef text, StringRef fileName,
                         MLIRContext *context, Recipe &recipe, bool overlay,
                         EmitRecipeError emitError);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_SUPPORT_RECIPE_PARSER_H
