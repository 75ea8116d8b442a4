//===- VerifyImport.cpp - The contract of the import stage ----------------===//

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"
#include "fp8/Support/Locations.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_VERIFYIMPORT
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

static constexpr llvm::StringLiteral kSubset = "docs/StableHLOSubset.md";

static LogicalResult rejectCall(stablehlo::CustomCallOp call) {
  StringRef target = call.getCallTargetName();
  InFlightDiagnostic error = call.emitOpError() << "has the target '" << target;
  if (target.contains("python") && target.contains("callback"))
    return error << "': a compiled step calls no Python, so expected no "
                    "jax.debug.print, jax.debug.callback, jax.pure_callback "
                    "or jax.experimental.io_callback";
  return error << "', which does not run here: expected only annotations of "
                  "sharding; see "
               << kSubset;
}

static LogicalResult verifyOp(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (isa<func::CallOp, stablehlo::CompositeOp>(op))
    return op->emitOpError() << "is left after the import: expected all calls "
                                "to be inlined";
  if (auto call = dyn_cast<stablehlo::CustomCallOp>(op))
    return rejectCall(call);
  if (isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp, stablehlo::AllToAllOp,
          stablehlo::CollectiveBroadcastOp, stablehlo::CollectivePermuteOp,
          stablehlo::PartitionIdOp, stablehlo::ReduceScatterOp,
          stablehlo::ReplicaIdOp>(op))
    return op->emitOpError()
           << "needs a distributed run, which is not supported yet";
  if (auto constant = dyn_cast<stablehlo::ConstantOp>(op);
      constant && !isa<DenseElementsAttr>(constant.getValue()))
    return op->emitOpError()
           << "has its value in a resource, which is not read here: expected "
              "dense elements, as JAX prints them unless a limit of large "
              "elements is set; see "
           << kSubset;
  StringRef dialect = op->getName().getDialectNamespace();
  // fp8 ops occur if somebody has written them or runs a pass alone.
  if (!op->isRegistered() ||
      (dialect != "stablehlo" && dialect != "chlo" && dialect != "fp8" &&
       !isa<func::FuncOp, func::ReturnOp, ModuleOp>(op)))
    return emitError(fp8::locationForError(op))
           << "'" << name
           << "' is not accepted after the import: expected "
              "stablehlo, chlo and fp8 ops; see "
           << kSubset;
  return success();
}

/// Checks the types of arguments and results, because values may pass through a
/// function without an op that checks them.
static LogicalResult verifyTypes(func::FuncOp func) {
  auto verify =
      [&](Type type, StringRef kind, unsigned index) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        if (tensor && tensor.hasStaticShape() &&
            isa<IntegerType, FloatType>(tensor.getElementType()))
          return success();
        return LogicalResult(
            func.emitOpError()
            << "expected " << kind << " " << index
            << " to be a statically shaped tensor of boolean, integer or "
               "floating-point values but got "
            << type);
      };
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(verify(type, "argument", index)))
      return failure();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(verify(type, "result", index)))
      return failure();
  return success();
}

static LogicalResult verifySignature(func::FuncOp func) {
  FailureOr<fp8::Signature> signature = fp8::Signature::fromAttributes(func);
  if (failed(signature))
    return failure();
  llvm::StringSet<> argPaths, resultPaths;
  llvm::StringMap<unsigned> replaced;
  for (const fp8::SignatureArg &arg : signature->args)
    if (!argPaths.insert(arg.path).second)
      return emitError(func.getLoc()) << "expected unique argument paths but '"
                                      << arg.path << "' is there twice";
  for (const fp8::SignatureResult &result : signature->results) {
    if (!resultPaths.insert(result.path).second)
      return emitError(func.getLoc()) << "expected unique result paths but '"
                                      << result.path << "' is there twice";
    if (result.kind != fp8::ResultKind::State)
      continue;
    const fp8::SignatureArg *arg = signature->findArg(result.statePath);
    if (!arg || arg->role != fp8::ArgRole::State)
      return emitError(func.getLoc())
             << "expected result '" << result.path
             << "' to replace a state argument but got '" << result.statePath
             << "'";
    if (arg->type != result.type)
      return emitError(func.getLoc())
             << "expected result '" << result.path << "' to have the type of '"
             << arg->path << "', " << arg->type << ", but got " << result.type;
    if (++replaced[result.statePath] > 1)
      return emitError(func.getLoc()) << "expected one result to replace '"
                                      << arg->path << "' but got several";
  }
  for (const fp8::SignatureArg &arg : signature->args)
    if (arg.role == fp8::ArgRole::State && !replaced.count(arg.path))
      return emitError(func.getLoc())
             << "expected a result that replaces the state '" << arg.path
             << "'";
  return success();
}

namespace {
struct VerifyImport : public stablehlo::impl::VerifyImportBase<VerifyImport> {
  using VerifyImportBase::VerifyImportBase;

  void runOnOperation() override {
    func::FuncOp main;
    for (Operation &op : *getOperation().getBody()) {
      auto func = dyn_cast<func::FuncOp>(op);
      if (!func || main) {
        emitError(op.getLoc())
            << "'" << op.getName()
            << "' is left beside '@main' after the import: expected "
               "one function";
        return signalPassFailure();
      }
      main = func;
    }
    if (!main || main.getName() != "main" || !main.isPublic() ||
        main.isExternal() || !main.getBody().hasOneBlock()) {
      emitError(getOperation().getLoc(),
                "expected one public function '@main' with a "
                "body of one block after the import");
      return signalPassFailure();
    }
    WalkResult result = main.walk([](Operation *op) {
      return failed(verifyOp(op)) ? WalkResult::interrupt()
                                  : WalkResult::advance();
    });
    if (result.wasInterrupted() || failed(verifyTypes(main)) ||
        (!opsAlone && failed(verifySignature(main))))
      signalPassFailure();
  }
};
} // namespace
