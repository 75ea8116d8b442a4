//===- ChangedParameters.cpp - Parameters plus what depends on data -------===//

#include "Analyzer.h"

#include "fp8/Analysis/DataFlow.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns a value that is accepted among those from which `value` was computed
/// by adding others, perhaps within limits; null if there is none. A value that
/// is broadcast before it is added is a bias.
Value Analyzer::findTerm(Value value, Operation *user,
                         function_ref<bool(Value)> accepts) const {
  Value whole = views.getViewRoot(value, user);
  auto getSize = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  };
  SmallVector<Value> stack{whole};
  DenseSet<Value> seen;
  while (!stack.empty()) {
    Value source = views.getSameElementsRoot(stack.pop_back_val(), user);
    if (getSize(views.getViewRoot(source, user)) != getSize(whole) ||
        !seen.insert(source).second)
      continue;
    if (accepts(source))
      return source;
    llvm::append_range(stack, getFlowSources(source));
    if (Operation *op = source.getDefiningOp();
        isa_and_nonnull<stablehlo::AddOp, stablehlo::SubtractOp,
                        stablehlo::MaxOp, stablehlo::MinOp, stablehlo::ClampOp>(
            op))
      llvm::append_range(stack, op->getOperands());
  }
  return nullptr;
}

/// Returns the parameter that `value` was computed from by adding values that
/// depend on data, as SAM and line searches do; null if there is none.
BlockArgument Analyzer::getChangedParameter(Value value,
                                            Operation *user) const {
  Value weight = findTerm(value, user, [&](Value term) {
    return origins.get(term) == Origin::Weight;
  });
  return weight ? origins.getParameter(weight) : nullptr;
}

/// Returns those of the changed operands that gradients of known layers have
/// changed: a loss that is not returned reads them.
ChangedParameters Analyzer::findChangedByGradients() const {
  if (changedOperands.empty())
    return {};
  SmallVector<Value> gradients;
  for (const DotInfo &info : dots)
    if (info.role == DotRole::Dgrad || info.role == DotRole::Wgrad)
      gradients.push_back(info.dot->getResult(0));
  Dependence onGradients(function, gradients, ValueSet(), /*together=*/true);
  ChangedParameters found;
  llvm::copy_if(changedOperands, std::back_inserter(found), [&](auto changed) {
    return onGradients.dependsOnAny(changed.first) &&
           !origins.isUpdatedParameter(changed.first);
  });
  return found;
}
