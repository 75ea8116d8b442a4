//===- EffectiveRecipe.cpp - The recipe and the verdicts in the IR --------===//

#include "EffectiveRecipe.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

FailureOr<Recipe> fp8::getEffectiveRecipe(ModuleOp module) {
  Attribute attribute = module->getAttr(FP8Dialect::kRecipeAttrName);
  auto recipe = dyn_cast_or_null<RecipeAttr>(attribute);
  if (recipe)
    return recipe.getRecipe();
  InFlightDiagnostic diag = module.emitError()
                            << "expected #fp8.recipe in '"
                            << FP8Dialect::kRecipeAttrName << "' but got ";
  attribute ? diag << attribute : diag << "none";
  return diag << "; run fp8-resolve-recipe first";
}

VerdictAttr fp8::getVerdict(Operation *op) {
  return op->getAttrOfType<VerdictAttr>(FP8Dialect::kVerdictAttrName);
}

LogicalResult fp8::verifyDecided(ModuleOp module) {
  WalkResult result = module.walk([](stablehlo::DotGeneralOp dot) {
    if (getVerdict(dot))
      return WalkResult::advance();
    dot.emitOpError() << "expected #fp8.verdict in '"
                      << FP8Dialect::kVerdictAttrName
                      << "' but got none; run fp8-decide first";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult fp8::verifyAnyVerdict(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    return getVerdict(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted() ? success() : verifyDecided(module);
}

LogicalResult fp8::verifyDotsQuantized(ModuleOp module) {
  WalkResult result = module.walk([](stablehlo::DotGeneralOp dot) {
    VerdictAttr verdict = getVerdict(dot);
    if (!verdict || !verdict.isFP8())
      return WalkResult::advance();
    dot.emitOpError() << "expected a dot with the verdict fp8 to be an "
                         "fp8.dot_general; run fp8-quantize-dots first";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

std::string fp8::printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

template <typename DotT>
static const OperandRecipe *
selectOperand(const std::optional<DotT> &dot, OperandKind kind,
              OperandKind firstKind, OperandRecipe DotT::*first,
              OperandRecipe DotT::*second) {
  if (!dot)
    return nullptr;
  return &(*dot.*(kind == firstKind ? first : second));
}

const OperandRecipe *fp8::getOperandRecipe(const Recipe &recipe, DotRole role,
                                           OperandKind kind) {
  switch (role) {
  case DotRole::Forward:
    return selectOperand(recipe.forward, kind, OperandKind::Weight,
                         &ForwardRecipe::weight, &ForwardRecipe::activation);
  case DotRole::Dgrad:
    return selectOperand(recipe.dgrad, kind, OperandKind::Weight,
                         &DgradRecipe::weight, &DgradRecipe::gradient);
  case DotRole::Wgrad:
    return selectOperand(recipe.wgrad, kind, OperandKind::Activation,
                         &WgradRecipe::activation, &WgradRecipe::gradient);
  default:
    return nullptr;
  }
}
