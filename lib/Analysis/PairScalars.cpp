//===- PairScalars.cpp - Pairs of scalars without an update chain ---------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the only operand of `scalar` that is not a constant, if a product,
/// sum, difference, quotient or conversion computes it; null otherwise.
static Value withoutConstant(Value scalar) {
  Operation *op = scalar.getDefiningOp();
  if (!isa_and_nonnull<stablehlo::MulOp, stablehlo::AddOp,
                       stablehlo::SubtractOp, stablehlo::DivOp,
                       stablehlo::ConvertOp>(op))
    return {};
  auto variables = llvm::make_filter_range(
      op->getOperands(), [](Value operand) { return !isConstant(operand); });
  return llvm::hasSingleElement(variables) ? *variables.begin() : Value();
}

/// Returns true if an op compares `scalar`, perhaps after arithmetic with other
/// values, with `other`, or computes their difference. (A factor does not
/// count: it may be any number.)
bool SignatureAnalyzer::isComparedWith(Value scalar, Value other) {
  SmallVector<Value> stack{scalar};
  ValueSet seen{scalar};
  while (!stack.empty())
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (!isa<stablehlo::MulOp, stablehlo::DivOp>(user) &&
          llvm::is_contained(user->getOperands(), other))
        return true;
      if (isa<stablehlo::MulOp, stablehlo::AddOp, stablehlo::SubtractOp,
              stablehlo::DivOp, stablehlo::ConvertOp>(user) &&
          seen.insert(user->getResult(0)).second)
        stack.push_back(user->getResult(0));
    }
  return false;
}

/// Returns true if a scalar result that replaces nothing could be the next
/// value of `arg`: it depends on `arg`, or it is compared with it, as a loss
/// with the last loss, perhaps with some tolerance. Excludes products with
/// `arg`, and results next to the loss in a tree of results without state.
bool SignatureAnalyzer::mayReplaceScalar(unsigned arg, unsigned result) {
  bool isProduct = chains.of(returned[result]).count(argument(arg)) &&
                   !flowScore(arg, result);
  bool follows = onArguments.depends(returned[result], arg);
  for (Value number = returned[result]; number && !follows;
       number = withoutConstant(number))
    follows = isComparedWith(argument(arg), number);
  if (isProduct || !follows)
    return false;
  SmallVector<std::string> path = splitTreePath(signature.results[result].path);
  auto isBeside = [&](unsigned other) {
    SmallVector<std::string> otherPath =
        splitTreePath(signature.results[other].path);
    return path.size() > 2 && otherPath.size() > 2 &&
           ArrayRef(path).take_front(2) == ArrayRef(otherPath).take_front(2);
  };
  return !resultsAreNamed || !loss || !isBeside(*loss) ||
         llvm::any_of(signature.results, [&](const SignatureResult &other) {
           return argOfResult[other.index] && isBeside(other.index);
         });
}

/// Pairs a scalar with the only result at its position in a tree that may be
/// its next value, even if gradients depend on it: a search begins with the
/// last step size, and computes gradients at its trial points.
void SignatureAnalyzer::pairNamesakes() {
  for (const SignatureArg &arg : signature.args) {
    if (resultOfArg[arg.index] || !isScalar(arg.type) ||
        forcedRoles.count(arg.index))
      continue;
    auto fits = [&](const SignatureResult &result) {
      return !argOfResult[result.index] && result.type == arg.type &&
             (!loss || *loss != result.index) &&
             haveSamePlace(arg.path, result.path) &&
             mayReplaceScalar(arg.index, result.index);
    };
    auto found = llvm::find_if(signature.results, fits);
    if (found != signature.results.end() &&
        std::none_of(std::next(found), signature.results.end(), fits))
      pair(arg.index, found->index, "same position in a tree");
  }
}

/// Pairs a scalar that is compared with a number which the step returns twice:
/// one of the two is the next value of the scalar, the last loss.
void SignatureAnalyzer::pairLastValues() {
  for (const SignatureArg &arg : signature.args) {
    if (resultOfArg[arg.index] || !isScalar(arg.type) || !isFloat(arg.type) ||
        forcedRoles.count(arg.index))
      continue;
    SmallVector<unsigned> same;
    for (const SignatureResult &result : signature.results)
      if (result.type == arg.type && !argOfResult[result.index] &&
          (!loss || *loss != result.index) &&
          isComparedWith(argument(arg.index), returned[result.index]))
        same.push_back(result.index);
    if (same.size() != 2 || returned[same[0]] != returned[same[1]])
      continue;
    // Choose the one next to other state.
    bool firstIsBeside = (arg.index > 0 && same[0] > 0 &&
                          resultOfArg[arg.index - 1] == same[0] - 1) ||
                         (arg.index + 1 < resultOfArg.size() &&
                          resultOfArg[arg.index + 1] == same[0] + 1);
    pair(arg.index, same[firstIsBeside ? 0 : 1],
         "it is compared with this number, which is returned twice");
  }
}
