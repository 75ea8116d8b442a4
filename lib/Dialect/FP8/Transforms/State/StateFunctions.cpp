//===- StateFunctions.cpp - Functions that store and load state -----------===//

#include "StateFunctions.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::fp8;

static DictionaryAttr makeAttributes(MLIRContext *context, StringRef path,
                                     StringRef name, StringRef value) {
  Builder builder(context);
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(FP8Dialect::kPathAttrName,
                            builder.getStringAttr(path)),
       builder.getNamedAttr(name, builder.getStringAttr(value))});
}

bool fp8::replacesState(func::FuncOp function) {
  return llvm::any_of(llvm::seq(function.getNumResults()), [&](unsigned i) {
    return bool(function.getResultAttr(i, FP8Dialect::kStateAttrName));
  });
}

Type fp8::getWholeType(func::FuncOp step, unsigned argument) {
  Type type = step.getArgumentTypes()[argument];
  auto part =
      step.getArgAttrOfType<DictionaryAttr>(argument, stablehlo::kPartAttrName);
  if (!part)
    return type;
  ArrayRef<int64_t> whole =
      part.getAs<DenseI64ArrayAttr>(stablehlo::kPartWholeName).asArrayRef();
  if (auto scaled = dyn_cast<ScaledType>(type))
    return ScaledType::get(scaled.getPayloadType().clone(whole),
                           scaled.getTile(),
                           scaled.getScaleTensorType().getElementType());
  return cast<RankedTensorType>(type).clone(whole);
}

func::FuncOp fp8::getStateFunction(func::FuncOp step, StringRef entry) {
  auto name = StringAttr::get(step.getContext(), entry);
  auto module = step->getParentOfType<ModuleOp>();
  for (auto function : module.getOps<func::FuncOp>())
    if (function->getAttr(FP8Dialect::kEntryAttrName) == name)
      return function;
  OpBuilder builder(step.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  auto function =
      func::FuncOp::create(builder, step.getLoc(), ("fp8_" + entry).str(),
                           builder.getFunctionType({}, {}));
  function.setPrivate();
  function->setAttr(FP8Dialect::kEntryAttrName, name);
  builder.setInsertionPointToEnd(function.addEntryBlock());
  func::ReturnOp::create(builder, step.getLoc());
  return function;
}

StateFunction::StateFunction(func::FuncOp step, StringRef entry)
    : function(getStateFunction(step, entry)), signature(function),
      arguments(argumentsByPath(function)) {}

BlockArgument StateFunction::getArgument(StringRef path, Type type,
                                         Location loc) {
  BlockArgument &argument = arguments[path];
  if (!argument)
    argument = signature.addArgument(
        type,
        makeAttributes(function.getContext(), path, FP8Dialect::kRoleAttrName,
                       stringifyEnum(ArgRole::Frozen)),
        loc);
  return argument;
}

void StateFunction::addResult(StringRef path, Value value) {
  signature.addResult(value, makeAttributes(function.getContext(), path,
                                            FP8Dialect::kKindAttrName,
                                            stringifyEnum(ResultKind::Output)));
}

Operation *StateFunction::getTerminator() {
  return function.getBody().front().getTerminator();
}
