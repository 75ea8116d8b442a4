//===- AnalyzeSignature.cpp - The pass fp8-analyze-signature --------------===//

#include "fp8/Analysis/Signature.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_ANALYZESIGNATURE
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

namespace {
struct AnalyzeSignature
    : public stablehlo::impl::AnalyzeSignatureBase<AnalyzeSignature> {
  using AnalyzeSignatureBase::AnalyzeSignatureBase;

  void runOnOperation() override {
    fp8::SignatureOptions options;
    if (failed(readOptions(options)))
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func.isPublic() || func.isExternal())
        continue;
      FailureOr<fp8::Signature> signature =
          fp8::analyzeSignature(func, options);
      if (failed(signature))
        return signalPassFailure();
      if (explain)
        fp8::printSignature(*signature, llvm::outs());
      signature->toAttributes(func);
    }
  }

private:
  LogicalResult readOptions(fp8::SignatureOptions &options) {
    auto kind =
        llvm::StringSwitch<std::optional<fp8::FunctionKind>>(functionKind)
            .Case("auto", fp8::FunctionKind::Auto)
            .Case("step", fp8::FunctionKind::Step)
            .Case("function", fp8::FunctionKind::Function)
            .Default(std::nullopt);
    if (!kind)
      return emitError(getOperation().getLoc())
             << "expected kind to be auto, step or function but got '"
             << functionKind << "'";
    options.functionKind = *kind;
    options.loss = loss;
    auto split = [&](StringRef option, ArrayRef<std::string> entries,
                     auto &into) -> LogicalResult {
      for (StringRef entry : entries) {
        auto parts = fp8binding::splitAssignment(entry);
        if (!parts)
          return emitError(getOperation().getLoc())
                 << "expected " << option << " to be PATH=VALUE but got '"
                 << entry << "'";
        into.emplace_back(parts->first, parts->second);
      }
      return success();
    };
    SmallVector<std::pair<std::string, std::string>> initial;
    if (failed(split("roles", roles, options.roles)) ||
        failed(split("states", states, options.states)) ||
        failed(split("initial", initialValues, initial)))
      return failure();
    for (auto &[path, text] : initial) {
      Type type = parseType(text, &getContext());
      if (!type)
        return failure();
      options.initialValues.push_back({path, type});
    }
    return success();
  }
};
} // namespace

std::unique_ptr<Pass>
stablehlo::createAnalyzeSignaturePass(const fp8::SignatureOptions &options) {
  AnalyzeSignatureOptions passOptions;
  switch (options.functionKind) {
  case fp8::FunctionKind::Auto:
    passOptions.functionKind = "auto";
    break;
  case fp8::FunctionKind::Step:
    passOptions.functionKind = "step";
    break;
  case fp8::FunctionKind::Function:
    passOptions.functionKind = "function";
    break;
  }
  for (auto &[path, role] : options.roles)
    passOptions.roles.push_back(path + "=" + role);
  for (auto &[arg, result] : options.states)
    passOptions.states.push_back(arg + "=" + result);
  passOptions.loss = options.loss;
  for (const fp8::TreeLeaf &leaf : options.initialValues)
    llvm::raw_string_ostream(passOptions.initialValues.emplace_back())
        << leaf.path << "=" << leaf.type;
  return createAnalyzeSignature(passOptions);
}
