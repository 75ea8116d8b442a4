//===- ResolveRecipe.cpp - Attach the effective recipe to the module ------===//

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "llvm/Support/raw_ostream.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8RESOLVERECIPE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct ResolveRecipe : fp8::impl::FP8ResolveRecipeBase<ResolveRecipe> {
  using FP8ResolveRecipeBase::FP8ResolveRecipeBase;

  LogicalResult initialize(MLIRContext *context) override {
    FailureOr<Recipe> loaded = loadRecipe(this->recipe, context, *set);
    if (failed(loaded))
      return failure();
    effective = std::move(*loaded);
    if (printRecipe)
      effective.print(llvm::outs());
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module->hasAttr(FP8Dialect::kRecipeAttrName)) {
      module.emitError() << "expected no '" << FP8Dialect::kRecipeAttrName
                         << "' but got one: the module's ops may follow it "
                            "already";
      return signalPassFailure();
    }
    module->setAttr(FP8Dialect::kRecipeAttrName,
                    RecipeAttr::get(&getContext(), effective));
  }

  Recipe effective;
};
} // namespace
