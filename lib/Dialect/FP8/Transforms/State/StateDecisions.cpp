//===- StateDecisions.cpp - Which state is stored in another form ---------===//

#include "../EffectiveRecipe.h"
#include "ClipUpdates.h"
#include "StateFunctions.h"
#include "StateStorer.h"

#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether an array is the master copy of a parameter.
static bool isMaster(const SignatureArg &arg) {
  return arg.kind == StateKind::Other && !arg.parameter.empty();
}

/// Returns why an array is not stored in another form; empty if it is.
std::string StateStorer::getReasonUnchanged(const SignatureArg &arg,
                                            const StorageRecipe *storage,
                                            StringRef owner) const {
  auto type = cast<RankedTensorType>(arg.type);
  Type element = type.getElementType();
  if (!storage)
    return "no parameter, moment, gradient or master copy that narrow formats "
           "suit (--explain-signature says why)";
  if (!storage->changes())
    return "the recipe stores it as it is";
  if (!element.isF32() && !element.isBF16() && !element.isF16())
    return "expected elements of f32, bf16 or f16 but got " +
           printType(element);
  if (type.getRank() == 0)
    return "a scalar";
  Type whole = getWholeType(function, arg.index);
  int64_t elements = cast<RankedTensorType>(whole).getNumElements();
  if (elements < recipe.optimizer.minElements)
    return llvm::formatv("{0} elements, fewer than min_elements: {1}", elements,
                         recipe.optimizer.minElements)
        .str();
  for (const std::string &glob : recipe.optimizer.keep)
    if (fp8binding::matchesPath(glob, owner))
      return "kept by '" + glob + "'";
  if (storage->tile == StorageTiling::None &&
      storage->rounding == Rounding::NearestEven &&
      element == getStorageType(storage->format, type.getContext()))
    return "the step has it so";
  if (whole != type &&
      !StoredForm::canStoreParts(*storage, type.getShape(),
                                 cast<RankedTensorType>(whole).getShape()))
    return "each rank has a part of it, which takes current scales, of the "
           "whole or of groups in one part";
  return "";
}

StateVerdictAttr StateDecision::getAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<StringRef> noteTexts(notes.begin(), notes.end());
  return StateVerdictAttr::get(
      context, b.getStringAttr(kind),
      parameter.empty() ? StringAttr() : b.getStringAttr(parameter), elements,
      from, to, tile, bytes, changed, b.getStringAttr(reason),
      notes.empty() ? ArrayAttr() : b.getStrArrayAttr(noteTexts));
}

/// Returns how the recipe stores an array of this kind; null if it does not
/// store this kind.
const StorageRecipe *StateStorer::getStorage(const SignatureArg &arg) const {
  switch (arg.kind) {
  case StateKind::Moment1:
    return &recipe.optimizer.moment1;
  case StateKind::Moment2:
    return &recipe.optimizer.moment2;
  case StateKind::Gradient:
    return &recipe.gradients;
  case StateKind::Parameter:
    return &recipe.optimizer.master;
  default:
    return isMaster(arg) ? &recipe.optimizer.master : nullptr;
  }
}

/// Stores the array as the recipe says.
void StateStorer::change(const SignatureArg &arg, const StorageRecipe &storage,
                         StateDecision &decision) {
  StoredArray array{StoredForm::get(storage, cast<RankedTensorType>(arg.type))};
  array.argument = arg.index;
  array.path = arg.path;
  array.whole = cast<RankedTensorType>(getWholeType(function, arg.index));
  array.kind = function.getArgAttrOfType<StringAttr>(arg.index,
                                                     FP8Dialect::kKindAttrName);
  decision.changed = true;
  decision.to = getElementTypeOrSelf(array.getPartTypes().front());
  if (!array.isCast())
    decision.tile = storage.tile;
  decision.bytes = array.getBytes();
  decision.reason = "as the recipe says";
  if (storage.rounding == Rounding::Stochastic)
    decision.notes.push_back("rounded stochastically");
  if (storage.expand)
    decision.notes.push_back("with range expansion");
  if (storage.scaling == Scaling::Delayed)
    decision.notes.push_back("scaled by earlier steps");
  arrays.push_back(std::move(array));
}

void StateStorer::decide() {
  FailureOr<Signature> signature = Signature::fromAttributes(function);
  assert(succeeded(signature) && "expected the marks to be checked");
  // Parameters of which the optimizer updates a master copy.
  llvm::StringMap<std::string> masters;
  for (const SignatureArg &arg : signature->args)
    if (isMaster(arg))
      masters[arg.parameter] = arg.path;
  for (const SignatureArg &arg : signature->args) {
    auto type = dyn_cast<RankedTensorType>(arg.type);
    if (arg.role != ArgRole::State || !type ||
        !isa<FloatType>(type.getElementType()) || type.getRank() == 0 ||
        arg.zeroInit)
      continue;
    StateDecision decision;
    decision.argument = arg.index;
    decision.path = arg.path;
    decision.kind = isMaster(arg) ? "master" : stringifyEnum(arg.kind).str();
    decision.parameter = arg.parameter;
    decision.elements = type.getNumElements();
    decision.from = decision.to = type.getElementType();
    decision.bytes = decision.elements * type.getElementTypeBitWidth() / 8;
    const StorageRecipe *storage = getStorage(arg);
    decision.reason = getReasonUnchanged(
        arg, storage,
        arg.kind == StateKind::Parameter ? arg.path : arg.parameter);
    auto master = masters.find(arg.path);
    if (master != masters.end() && decision.reason.empty())
      decision.reason =
          "the optimizer updates its master copy, " + master->second;
    if (decision.reason.empty())
      change(arg, *storage, decision);
    decisions.push_back(std::move(decision));
  }
}

/// Clips the updates, and notes for every parameter whether its update is
/// clipped.
void StateStorer::clip() {
  llvm::StringSet<> clipped = clipUpdates(function);
  for (StateDecision &decision : decisions)
    if (decision.kind == "parameter")
      decision.notes.push_back(
          clipped.contains(decision.path)
              ? "its update is divided by max(1, RMS(g / sqrt(v)))"
              : "its update is not clipped: no division by the root of a "
                "second moment was found");
}
