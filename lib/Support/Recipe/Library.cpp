//===- Library.cpp - Recipes by name, from files and with changes ---------===//

#include "Parser.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

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
// Loading
//===----------------------------------------------------------------------===//

static InFlightDiagnostic emitErrorAt(FileLineColLoc loc) {
  return emitError(loc);
}

FailureOr<Recipe> fp8::parseRecipe(StringRef text, StringRef fileName,
                                   MLIRContext *context) {
  Recipe recipe;
  if (failed(readRecipe(text, fileName, context, recipe, /*overlay=*/false,
                        emitErrorAt)))
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
  // Build the text that a file would have, so that errors are the same.
  SmallVector<StringRef> keys;
  path.split(keys, '.');
  std::string text;
  for (auto [i, key] : llvm::enumerate(keys))
    text += (i ? "{" : "") + key.trim().str() + ": ";
  text += value.trim().str() + std::string(keys.size() - 1, '}') + "\n";
  return readRecipe(text, name, context, recipe, /*overlay=*/true, emitErrorAt);
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
