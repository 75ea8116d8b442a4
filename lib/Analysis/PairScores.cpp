//===- PairScores.cpp - How well results follow from arguments ------------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if `value` is a term of the elements of a sum that is a scalar.
static bool isSummedUp(Value value) {
  ValueSet seen{value};
  SmallVector<Value> stack{value};
  while (!stack.empty())
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (isa<stablehlo::ReduceOp>(user) &&
          isScalar(user->getResult(0).getType()))
        return true;
      if (isa<stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::NegOp>(
              user) &&
          seen.insert(user->getResult(0)).second)
        stack.push_back(user->getResult(0));
    }
  return false;
}

/// Returns true if a scalar sums up `value` times a function of an argument: a
/// loss that weights its terms by parameters, whose gradients are the terms.
bool SignatureAnalyzer::isWeightedBy(Value value, unsigned arg) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (!isa<stablehlo::MulOp>(user) || !isSummedUp(user->getResult(0)))
      return false;
    bool isFirst = user->getOperand(0) == value;
    return onArguments.depends(user->getOperand(isFirst), arg);
  });
}

/// Finds the arguments in trees of which results could replace all leaves.
/// State is replaced as a whole, while a batch may have one array of a result's
/// type.
void SignatureAnalyzer::findReplaceable() {
  replaceable.assign(signature.args.size(), true);
  if (!argsAreNamed)
    return;
  llvm::StringMap<SmallVector<unsigned>> trees;
  for (const SignatureArg &arg : signature.args)
    trees[splitTreePath(arg.path).front()].push_back(arg.index);
  llvm::DenseMap<Type, int64_t> results;
  for (const SignatureResult &result : signature.results)
    ++results[result.type];
  for (SmallVector<unsigned> &leaves : llvm::make_second_range(trees)) {
    llvm::DenseMap<Type, int64_t> types;
    bool isWhole = llvm::all_of(leaves, [&](unsigned arg) {
      Type type = signature.args[arg].type;
      return ++types[type] <= results.lookup(type);
    });
    for (unsigned arg : leaves)
      replaceable[arg] = isWhole;
  }
}

/// Returns true if the result looks like an output that adds data and
/// activations of one shape, such as the difference of outputs and targets. An
/// update of the targets would depend on them through the gradient. Decaying
/// averages of activations are state, not outputs.
bool SignatureAnalyzer::isProbablyOutput(unsigned arg, unsigned result,
                                         Reach self) {
  Value value = returned[result];
  if (isScalar(value.getType()) || !isFloat(value.getType()) ||
      value == argument(arg) || !feeding[arg])
    return false;
  const Chain &chain = chains.of(value);
  if (!hasLeaf(chain))
    return chain.size() == 1 && self.strength < 3;
  if (self.scaled)
    return !replaceable[arg];
  // A master copy is updated by a gradient of the weights that are converted
  // from it. It may also feed another, second-order gradient.
  if (gradientUpdates.contains(value))
    return false;
  // A zero gradient over the loss scale, or over averages of its rows and
  // columns, contains no activation.
  auto isArray = [&](unsigned other) {
    return !isScalar(signature.args[other].type);
  };
  if (llvm::none_of(chain, [&](auto &entry) {
        Operation *op = entry.first.getDefiningOp();
        return op && !isa<stablehlo::BroadcastInDimOp>(op) &&
               onArguments.dependsOnAny(entry.first, isArray);
      }))
    return false;
  return llvm::none_of(chain, [&](auto &entry) {
    return !isa<BlockArgument>(entry.first) &&
           (onArguments.depends(entry.first, arg) ||
            isWeightedBy(entry.first, arg));
  });
}

/// Scores of pairs that do not come from the strength of an update chain. A
/// result that returns an argument unchanged may be a metric, such as the step
/// number.
constexpr double kReturnedAsItCame = 0.5;
/// The same if another result adds something to the argument, or if the result
/// holds the value of an earlier step (addShifts).
constexpr double kOldValue = 0.1;
/// An update reads the argument, but no chain leads from it to the result: the
/// argument may be the previous value of another one.
constexpr double kReplacement = 0.2;
/// The result contains a fraction of weights that another result updates: a
/// last gradient to which their decay is added, or their average.
constexpr double kDecay = 0.3;
/// The largest factor of a decay of weights whose gradient is not known.
constexpr double kSmallDecay = 0.1;
/// The result subtracts the argument, but no state is replaced by its negative.
constexpr double kSubtracted = 0.05;
/// A loop over whole steps carries the argument to the result, which is
/// stronger evidence than any chain.
constexpr double kCarried = 4;
/// The result adds and subtracts the argument, as in p + (target - p): of its
/// sources, it replaces the one that moves.
constexpr double kMovedToTarget = 3.5;
/// Arrays of which one is trained may change places.
constexpr double kSwapped = 3;
/// The scalar times another scalar is added to a value computed from arrays.
constexpr double kAverage = 2;

bool SignatureAnalyzer::dependsOnArrays(Value value) {
  return onArguments.dependsOnAny(
      value, [&](unsigned arg) { return !isScalar(signature.args[arg].type); });
}

/// Returns true if, in a sum, each term that `scalar` contributes to depends on
/// scalars alone, as in the average of a norm. The decay of that average, which
/// may be an argument, too, also contributes to the other term and fails.
bool SignatureAnalyzer::isAddedAlone(Value sum, Value scalar) {
  SmallVector<Value> stack{sum};
  ValueSet seen{sum};
  bool found = false;
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    if (!chains.of(value).count(scalar))
      continue;
    if (!dependsOnArrays(value)) {
      found = true;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<stablehlo::AddOp, stablehlo::SubtractOp,
                         stablehlo::SelectOp, stablehlo::ConvertOp,
                         stablehlo::IfOp, stablehlo::CaseOp>(op))
      return false;
    auto push = [&](Value part) {
      if (isFloat(part.getType()) && seen.insert(part).second)
        stack.push_back(part);
    };
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (stablehlo::isBranch(op))
      for (Region &region : op->getRegions())
        push(yielded(region, index));
    else
      llvm::for_each(op->getOperands(), push);
  }
  return found;
}

/// Returns true if a result contains a fraction of weights that are updated in
/// another result: there, their gradient is added to them, or what may be their
/// gradient if the fraction is small.
bool SignatureAnalyzer::isDecay(unsigned arg, unsigned result,
                                const Reach &reach) {
  if (!reach.scaled)
    return false;
  if (steppedBy.contains(arg))
    return !llvm::is_contained(steppedBy.lookup(arg), result);
  auto isUpdate = [&](unsigned other) {
    return other != result &&
           signature.results[other].type == signature.args[arg].type;
  };
  return std::abs(reach.factor) <= kSmallDecay &&
         llvm::any_of(stepping.lookup(arg), isUpdate);
}

/// Returns how much a result looks like an update of an argument by its chain;
/// 0 means not at all.
double SignatureAnalyzer::flowScore(unsigned arg, unsigned result) {
  const Chain &chain = chains.of(returned[result]);
  auto it = chain.find(argument(arg));
  if (it == chain.end())
    return 0;
  // A result that returns an argument with a gradient unchanged is not its next
  // value but the old value of another state, such as the last weights.
  if (returned[result] == argument(arg))
    return learned.contains(arg)                           ? 0
           : stepping.contains(arg) || shifted.lookup(arg) ? kOldValue
           : shifted.contains(arg)                         ? kReplacement
                                                           : kReturnedAsItCame;
  // A loss times its scale is no update of the scale; a float that depends on
  // other scalars alone is one.
  if (isScalar(signature.args[arg].type) && it->second.strength <= kNonlinear) {
    if (!isFloat(signature.args[arg].type))
      return 0;
    if (dependsOnArrays(returned[result]))
      return isAddedAlone(returned[result], argument(arg)) ? kAverage : 0;
  }
  bool sameName =
      argsAreNamed && resultsAreNamed &&
      isSameLeaf(signature.args[arg].path, signature.results[result].path);
  if (!sameName && isProbablyOutput(arg, result, it->second))
    return 0;
  if (it->second.cancels)
    return kMovedToTarget;
  if (isDecay(arg, result, it->second))
    return kDecay;
  return it->second.sign < 0 ? kSubtracted : it->second.strength;
}

/// Returns how much a result looks like the next value of an argument.
double SignatureAnalyzer::pairScore(unsigned arg, unsigned result) {
  if (signature.args[arg].type != signature.results[result].type)
    return 0;
  if (carries.contains({arg, result}))
    return kCarried;
  if (swaps.contains({arg, result}))
    return kSwapped;
  // A key is replaced by bits drawn from it.
  if (isKeyType(signature.args[arg].type) &&
      onArguments.depends(returned[result], arg) && drawsBits(argument(arg)))
    return 1;
  if (double flow = flowScore(arg, result))
    return flow;
  if (llvm::is_contained(replacements.lookup(arg), result))
    return kReplacement;
  // An argument that no gradient depends on is no data: a result at the same
  // position may be its next value, however it is computed.
  return !feeding[arg] && argsAreNamed && resultsAreNamed &&
                 haveSamePlace(signature.args[arg].path,
                               signature.results[result].path)
             ? kSamePlace
             : 0;
}

/// Returns the result that gets the buffer of an argument, if the caller
/// donates it.
std::optional<unsigned> SignatureAnalyzer::donatedTo(unsigned arg) {
  auto hint = func.getArgAttrOfType<IntegerAttr>(arg, "tf.aliasing_output");
  if (!hint || hint.getInt() < 0 || hint.getInt() >= int64_t(returned.size()))
    return std::nullopt;
  return hint.getInt();
}

/// JAX donates buffers by shape, so this only breaks ties.
double SignatureAnalyzer::hint(unsigned arg, unsigned result) {
  return useHints && !swaps.contains({arg, result}) && donatedTo(arg) == result;
}

/// Hints are wrong if they make state stand still whose old value data flow
/// moves on to other state.
void SignatureAnalyzer::checkHints() {
  useHints = llvm::none_of(shifted, [&](auto &entry) {
    std::optional<unsigned> result = donatedTo(entry.first);
    return result && returned[*result] == argument(entry.first);
  });
}
