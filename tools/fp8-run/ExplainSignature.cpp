//===- ExplainSignature.cpp - The role of every argument, and why ---------===//

#include "ExplainSignature.h"
#include "fp8/Compiler/InitialValues.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace mlir::fp8;

/// Imports the step as a run does. What cannot be trained is explained as a
/// function.
static OwningOpRef<ModuleOp>
importToExplain(const Options &flags, MLIRContext &context,
                const SignatureOptions &signature) {
  auto import = [&](FunctionKind kind) -> OwningOpRef<ModuleOp> {
    OwningOpRef<ModuleOp> module = parseModule(flags.stepFile, context);
    CompileOptions options;
    options.entry = flags.entry;
    options.signature = signature;
    options.signature.functionKind = kind;
    if (module && failed(importModule(*module, options)))
      module = nullptr;
    return module;
  };
  if (flags.entry.empty()) {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    if (OwningOpRef<ModuleOp> step = import(FunctionKind::Step))
      return step;
  }
  return import(FunctionKind::Auto);
}

int fp8::explainSignature(const Options &flags, MLIRContext &context,
                          SignatureOptions signature) {
  FailureOr<SmallVector<TreeLeaf>> values =
      readInitialValues(flags.run.resume ? flags.run.outDir : std::string(),
                        flags.initFile, context);
  if (failed(values))
    return 1;
  signature.initialValues = std::move(*values);
  if (signature.initialValues.empty() && isInitializer(flags.initFile)) {
    OwningOpRef<ModuleOp> init = parseModule(flags.initFile, context);
    CompileOptions options;
    options.signature.functionKind = FunctionKind::Function;
    if (!init)
      return 1;
    FailureOr<Signature> found = importModule(*init, options);
    if (failed(found))
      return 1;
    signature.initialValues = leavesOf(*found);
  }
  OwningOpRef<ModuleOp> module = importToExplain(flags, context, signature);
  if (!module)
    return 1;
  for (auto func : module->getOps<func::FuncOp>())
    if (func.isPublic() &&
        failed(printSignature(func, llvm::outs(), signature)))
      return 1;
  return 0;
}
