//===- StatePairs.cpp - Pairs of state arguments and results --------------===//

#include "SignatureAnalyzer.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if two paths have the same last two keys.
static bool haveSamePlace(StringRef a, StringRef b) {
  SmallVector<std::string> first = splitTreePath(a), second = splitTreePath(b);
  return first.size() > 2 && second.size() > 2 &&
         ArrayRef(first).take_back(2) == ArrayRef(second).take_back(2);
}

void SignatureAnalyzer::pair(unsigned arg, unsigned result, const Twine &why) {
  resultOfArg[arg] = result;
  argOfResult[result] = arg;
  pairedBy[arg] =
      ("replaced by " + signature.results[result].path + " (" + why + ")")
          .str();
}

void SignatureAnalyzer::unpair(unsigned arg) {
  argOfResult[*resultOfArg[arg]].reset();
  resultOfArg[arg].reset();
  pairedBy[arg].clear();
}

LogicalResult SignatureAnalyzer::pairState() {
  SmallVector<unsigned> args, results;
  for (const SignatureArg &arg : signature.args) {
    auto forced = forcedRoles.find(arg.index);
    if (!resultOfArg[arg.index] &&
        (forced == forcedRoles.end() || forced->second == ArgRole::State))
      args.push_back(arg.index);
  }
  for (const SignatureResult &result : signature.results)
    if (!argOfResult[result.index] && (!loss || *loss != result.index))
      results.push_back(result.index);
  findFeeding();
  findLearning();
  findUnreplaced();
  checkHints();
  if (argsAreNamed && resultsAreNamed)
    pairByTrees(args, results);
  else
    pairByFlow(args, results);
  pairCopies();
  pairRest();
  for (auto &[arg, role] : forcedRoles)
    if (role == ArgRole::State && !resultOfArg[arg])
      return emitError(func.getLoc())
             << "role: no result replaces '" << signature.args[arg].path
             << "'; name it with " << kStatesOption;
  return success();
}

/// Returns the results that gradients are added to. A gradient depends on the
/// argument that it belongs to and has its shape.
ValueSet SignatureAnalyzer::findUpdates() {
  std::vector<Gradients::Factors> partners(signature.args.size());
  DenseMap<unsigned, SmallVector<unsigned>> withPartner;
  for (const SignatureArg &arg : signature.args) {
    if (!isFloat(arg.type))
      continue;
    partners[arg.index] = gradients.partnersOf(argument(arg.index));
    for (auto &[number, weight] : partners[arg.index])
      withPartner[number].push_back(arg.index);
  }
  DenseMap<Value, bool> known;
  auto isGradient = [&](Value leaf) {
    for (auto &[number, weight] : gradients.factorsOf(leaf))
      if (auto it = withPartner.find(number); it != withPartner.end())
        for (unsigned arg : it->second)
          if (shapeOf(signature.args[arg].type) == shapeOf(leaf.getType()) &&
              onArguments.depends(leaf, arg) &&
              gradients.evidence(argument(arg), partners[arg], leaf) > 0)
            return true;
    return false;
  };
  ValueSet updates;
  for (Value value : returned) {
    if (!isFloat(value.getType()) || isScalar(value.getType()))
      continue;
    // The gradient of a single element may be a scalar, at which no chain ends.
    bool isOne = cast<ShapedType>(value.getType()).getNumElements() == 1 &&
                 !isa<BlockArgument>(value);
    // A gradient that is returned as it is (the last one) is not added to
    // anything.
    if (llvm::none_of(chains.of(value), [](auto &entry) {
          return isa<BlockArgument>(entry.first);
        }))
      continue;
    for (auto &[source, reach] : chains.of(value)) {
      if (isa<BlockArgument>(source)) {
        if (isOne && reach.strength == 3 && !reach.scaled)
          updates.insert(value);
        continue;
      }
      auto [it, isNew] = known.try_emplace(source, false);
      if (isNew)
        it->second = isGradient(source);
      if (it->second)
        updates.insert(value);
    }
  }
  return updates;
}

/// Finds the arguments that gradients depend on. It does not count if the
/// gradient of another loss reads the new value of some state.
void SignatureAnalyzer::findFeeding() {
  feeding.assign(signature.args.size(), false);
  gradientUpdates = findUpdates();
  Dependence direct(func, llvm::to_vector_of<Value>(func.getArguments()), {},
                    /*together=*/false, gradientUpdates);
  ValueSet leaves;
  for (Value value : returned) {
    const Chain &chain = chains.of(value);
    if (!isFloat(value.getType()) || isScalar(value.getType()) ||
        llvm::none_of(chain, [&](auto &entry) {
          return argumentIndex(entry.first) &&
                 entry.first.getType() == value.getType();
        }))
      continue;
    for (auto &[source, reach] : chain)
      if (!isa<BlockArgument>(source) && leaves.insert(source).second)
        direct.dependsOnAny(source, [&](unsigned arg) {
          feeding[arg] = true;
          return false;
        });
  }
}

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
    return false;
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
/// Both have the same position in trees of state, and there is no other
/// evidence.
constexpr double kSamePlace = 0.02;
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

/// Returns true if a chain contains the gradient of an argument.
bool SignatureAnalyzer::containsGradientOf(Value argument,
                                           const Gradients::Factors &partners,
                                           const Chain &chain) {
  return llvm::any_of(chain, [&](auto &entry) {
    return !isa<BlockArgument>(entry.first) &&
           gradients.evidence(argument, partners, entry.first) > 0;
  });
}

/// Finds the gradients of arguments in the update chains of results.
void SignatureAnalyzer::findLearning() {
  learnedBy.resize(signature.results.size());
  DenseMap<unsigned, Gradients::Factors> partners;
  for (auto [r, value] : llvm::enumerate(returned)) {
    if (!isFloat(value.getType()))
      continue;
    const Chain &chain = chains.of(value);
    for (auto &entry : chain) {
      Value source = entry.first;
      auto arg = argumentIndex(source);
      // A source that is subtracted is no parameter of this update, even if the
      // gradient looks like its own because both are combined with the same
      // data.
      if (!arg || source.getType() != value.getType() || entry.second.sign < 0)
        continue;
      auto [known, isNew] = partners.try_emplace(*arg);
      Gradients::Factors &own = known->second;
      if (isNew)
        own = gradients.partnersOf(source);
      if (!containsGradientOf(source, own, chain))
        continue;
      learnedBy[r].push_back(*arg);
      learned.insert(*arg);
      if (entry.second.strength == 3 && !entry.second.scaled)
        steppedBy[*arg].push_back(r);
    }
  }
  // If the step returns old values of learned state (heavy ball's last
  // weights), it does so for weights without a gradient, too.
  bool returnsOld = llvm::any_of(learned, [&](unsigned arg) {
    return llvm::is_contained(returned, argument(arg));
  });
  for (auto [r, value] : llvm::enumerate(returned)) {
    if (!isFloat(value.getType()) || isScalar(value.getType()) ||
        isa<BlockArgument>(value))
      continue;
    const Chain &chain = chains.of(value);
    if (hasLeaf(chain) || returnsOld)
      for (auto &[source, reach] : chain)
        if (auto arg = argumentIndex(source);
            arg && reach.strength == 3 && !reach.scaled)
          stepping[*arg].push_back(r);
  }
}

void SignatureAnalyzer::pairByTrees(ArrayRef<unsigned> args,
                                    ArrayRef<unsigned> results) {
  SmallVector<TreeLeaf> argLeaves, resultLeaves;
  for (unsigned arg : args)
    argLeaves.push_back({signature.args[arg].path, signature.args[arg].type});
  for (unsigned result : results)
    resultLeaves.push_back(
        {signature.results[result].path, signature.results[result].type});
  auto score = [&](unsigned arg, unsigned result) {
    return pairScore(args[arg], results[result]);
  };
  SmallVector<std::optional<unsigned>> partners = matchTrees(
      argLeaves, resultLeaves, score,
      [&](unsigned arg, unsigned result) {
        return hint(args[arg], results[result]);
      },
      &ambiguities);
  for (auto [i, partner] : llvm::enumerate(partners)) {
    if (!partner)
      continue;
    unsigned arg = args[i], result = results[*partner];
    bool named = splitTreePath(signature.args[arg].path).size() > 1;
    bool flows = chains.of(returned[result]).count(argument(arg));
    pair(arg, result,
         named && flows ? "same tree path, type and update chain"
         : named        ? "same tree path and type"
                        : "update chain and type");
  }
}

void SignatureAnalyzer::reportAmbiguities(ArrayRef<unsigned> args,
                                          ArrayRef<unsigned> results,
                                          ArrayRef<Ambiguity> found) {
  for (const Ambiguity &ambiguity : found) {
    std::string message = signature.args[args[ambiguity.from]].path + ": ";
    for (auto [i, result] : llvm::enumerate(ambiguity.to))
      message += (i ? ", " : "") + signature.results[results[result]].path;
    ambiguities.push_back(message);
  }
}

/// Pairs arguments and results without names by the highest total score.
void SignatureAnalyzer::pairByFlow(ArrayRef<unsigned> args,
                                   ArrayRef<unsigned> results) {
  DenseMap<unsigned, unsigned> position;
  SmallVector<unsigned> keys;
  for (auto [i, arg] : llvm::enumerate(args)) {
    position[arg] = i;
    if (isKeyType(signature.args[arg].type))
      keys.push_back(arg);
  }
  std::vector<WeightedPair> pairs;
  auto add = [&](unsigned arg, unsigned r) {
    if (double weight = pairScore(arg, results[r]); weight > 0)
      pairs.push_back({position[arg], r, weight});
  };
  for (auto [r, result] : llvm::enumerate(results)) {
    if (isKeyType(signature.results[result].type)) {
      for (unsigned key : keys)
        add(key, r);
      continue;
    }
    for (auto &[source, reach] : chains.of(returned[result]))
      if (auto arg = argumentIndex(source); arg && position.count(*arg))
        add(*arg, r);
  }
  for (auto &[arg, found] : replacements)
    for (unsigned result : found)
      if (const unsigned *r = llvm::find(results, result);
          r != results.end() && position.count(arg))
        add(arg, r - results.begin());
  std::vector<Ambiguity> found;
  auto partners = assignPairs(
      args.size(), pairs,
      [&](unsigned a, unsigned b) {
        return returned[results[a]] == returned[results[b]];
      },
      found, [&](unsigned i, unsigned r) { return hint(args[i], results[r]); });
  // Trees are returned in the order of the arguments, unless data flow
  // contradicts that or an argument is left over, such as a key that is
  // returned at another position.
  constexpr double kNearly = 0.97;
  std::vector<WeightedPair> possible(pairs);
  addByPlace(args, results, possible);
  auto inOrder = assignInOrder(args.size(), results.size(), possible);
  bool isComplete = llvm::all_of(llvm::zip(partners, inOrder), [](auto pair) {
    return !std::get<0>(pair) || std::get<1>(pair);
  });
  // That order makes state stand still which data flow moves is no slight loss.
  auto standsStill = [&](unsigned i, std::optional<unsigned> r) {
    return r && returned[results[*r]] == argument(args[i]);
  };
  for (auto [i, arg] : llvm::enumerate(args))
    isComplete &= !shifted.contains(arg) || !standsStill(i, inOrder[i]) ||
                  standsStill(i, partners[i]) ||
                  llvm::any_of(found, [&, i = i](const Ambiguity &tie) {
                    return tie.from == i;
                  });
  // Pairs that both agree on would make any loss look slight.
  auto sumOfOthers = [&](ArrayRef<std::optional<unsigned>> chosen,
                         ArrayRef<std::optional<unsigned>> other) {
    SmallVector<std::optional<unsigned>> rest(chosen);
    for (auto [own, theirs] : llvm::zip_equal(rest, other))
      if (own == theirs)
        own.reset();
    return sumOf(pairs, rest);
  };
  if (isComplete && sumOfOthers(inOrder, partners) >=
                        kNearly * sumOfOthers(partners, inOrder)) {
    partners = inOrder;
    found.clear();
  }
  for (auto [i, partner] : llvm::enumerate(partners))
    if (partner)
      pair(args[i], results[*partner], "update chain and type");
  reportAmbiguities(args, results, found);
}

/// Adds pairs for which there is no evidence but the type, for arguments that
/// no gradient depends on. Excludes float scalars: the argument may be a rate,
/// and the result a metric.
void SignatureAnalyzer::addByPlace(ArrayRef<unsigned> args,
                                   ArrayRef<unsigned> results,
                                   std::vector<WeightedPair> &pairs) {
  DenseSet<std::pair<unsigned, unsigned>> known;
  for (const WeightedPair &pair : pairs)
    known.insert({pair.from, pair.to});
  for (auto [i, arg] : llvm::enumerate(args))
    for (auto [r, result] : llvm::enumerate(results))
      if (!feeding[arg] &&
          signature.args[arg].type == signature.results[result].type &&
          !(isScalar(signature.args[arg].type) &&
            isFloat(signature.args[arg].type)) &&
          onArguments.dependsOnAny(returned[result]) &&
          learnedBy[result].empty() && !known.contains({i, r}) &&
          !isKeyType(signature.args[arg].type))
        pairs.push_back({unsigned(i), unsigned(r), kSamePlace});
}

/// Returns the results that may be conversions of the update of a master copy,
/// by their type.
llvm::MapVector<Type, SmallVector<unsigned>> SignatureAnalyzer::findCopies() {
  llvm::MapVector<Type, SmallVector<unsigned>> copies;
  for (const SignatureResult &result : signature.results) {
    if (argOfResult[result.index] || !isFloat(result.type) ||
        isScalar(result.type) ||
        elementOf(returned[result.index]).getIntOrFloatBitWidth() > 16)
      continue;
    for (auto &[source, reach] : chains.of(returned[result.index]))
      if (auto arg = argumentIndex(source); arg && resultOfArg[*arg] &&
                                            reach.strength == 3 &&
                                            source.getType() != result.type) {
        copies[result.type].push_back(result.index);
        break;
      }
  }
  return copies;
}

/// Weighs how much of the gradient of each argument is in the update that each
/// result converts.
std::vector<WeightedPair>
SignatureAnalyzer::weighCopies(ArrayRef<unsigned> args,
                               ArrayRef<unsigned> results) {
  SmallVector<Gradients::Factors> partners;
  DenseMap<unsigned, SmallVector<unsigned>> withPartner;
  for (auto [i, arg] : llvm::enumerate(args)) {
    partners.push_back(gradients.partnersOf(argument(arg)));
    for (auto &[number, weight] : partners.back())
      withPartner[number].push_back(i);
  }
  std::vector<WeightedPair> pairs;
  for (auto [r, result] : llvm::enumerate(results)) {
    llvm::MapVector<unsigned, double> weights;
    for (auto &[source, reach] : chains.of(returned[result])) {
      if (isa<BlockArgument>(source))
        continue;
      Gradients::Factors factors = gradients.factorsOf(source);
      llvm::SmallSetVector<unsigned, 8> candidates;
      for (auto &[number, weight] : factors)
        if (auto it = withPartner.find(number); it != withPartner.end())
          candidates.insert(it->second.begin(), it->second.end());
      for (unsigned i : candidates)
        if (double found =
                gradients.evidence(argument(args[i]), partners[i], source))
          weights[i] += found;
    }
    for (auto &[i, weight] : weights)
      pairs.push_back({i, unsigned(r), weight});
  }
  return pairs;
}

/// Pairs weights in a narrow type, which are replaced by a conversion of the
/// master copy's update: no chain leads from the old to the new value. The
/// gradient in that update decides which weights they are.
void SignatureAnalyzer::pairCopies() {
  for (auto &[type, results] : findCopies()) {
    SmallVector<unsigned> args;
    for (const SignatureArg &arg : signature.args)
      if (!resultOfArg[arg.index] && arg.type == type)
        args.push_back(arg.index);
    if (args.size() == 1 && results.size() == 1) {
      pair(args.front(), results.front(),
           "copy of other state, only one of its type");
      continue;
    }
    std::vector<Ambiguity> found;
    auto chosen = assignPairs(
        args.size(), weighCopies(args, results),
        [&, &results = results](unsigned a, unsigned b) {
          return returned[results[a]] == returned[results[b]];
        },
        found, /*hint=*/nullptr,
        [&, &results = results](ArrayRef<std::optional<unsigned>> partners) {
          SmallVector<std::optional<unsigned>> all(resultOfArg);
          for (auto [i, partner] : llvm::enumerate(partners))
            if (partner)
              all[args[i]] = results[*partner];
          return areInOrder(all);
        });
    for (auto [i, result] : llvm::enumerate(chosen))
      if (result)
        pair(args[i], results[*result],
             "copy of other state, which its gradient updates");
    reportAmbiguities(args, results, found);
    auto isFree = [&](unsigned arg) { return !resultOfArg[arg]; };
    auto isUnclaimed = [&](unsigned result) { return !argOfResult[result]; };
    if (llvm::any_of(args, isFree) && llvm::any_of(results, isUnclaimed)) {
      std::string message;
      for (unsigned result : llvm::make_filter_range(results, isUnclaimed))
        message +=
            (message.empty() ? "" : ", ") + signature.results[result].path;
      ambiguities.push_back(signature.args[*llvm::find_if(args, isFree)].path +
                            ": " + message);
    }
  }
}

/// Pairs state that is shifted or written in parts (a history, a queue). It has
/// no update chain, but only its next value reads it.
void SignatureAnalyzer::pairRest() {
  SmallVector<SmallVector<unsigned>> readers(signature.args.size());
  for (const SignatureResult &result : signature.results)
    onArguments.dependsOnAny(returned[result.index], [&](unsigned arg) {
      if (readers[arg].size() < 2)
        readers[arg].push_back(result.index);
      return false;
    });
  SmallVector<unsigned> count(signature.results.size());
  auto fits = [&](const SignatureArg &arg) {
    return !resultOfArg[arg.index] && !isScalar(arg.type) &&
           !forcedRoles.count(arg.index) && readers[arg.index].size() == 1 &&
           !argOfResult[readers[arg.index].front()] &&
           signature.results[readers[arg.index].front()].type == arg.type;
  };
  SmallVector<unsigned> found;
  for (const SignatureArg &arg : signature.args)
    if (fits(arg)) {
      found.push_back(arg.index);
      ++count[readers[arg.index].front()];
    }
  for (unsigned arg : found)
    if (count[readers[arg].front()] == 1)
      pair(arg, readers[arg].front(), "nothing else reads it");
  pairLastValues();
  if (argsAreNamed && resultsAreNamed)
    pairNamesakes();
  else
    pairByPlace();
  pairDonated();
}

/// Pairs arrays that no data flow pairs, such as a codebook that is computed
/// from averages: JAX reuses the buffer of an argument that the caller gives
/// up, so the argument is no data and not frozen, and as many results of its
/// type are left. JAX tells by shape which result gets the buffer, so of
/// several arguments this only decides if all pairs so far are in order.
void SignatureAnalyzer::pairDonated() {
  DenseMap<Type, unsigned> numArgs, numResults;
  auto isOpen = [&](const SignatureArg &arg) {
    return !resultOfArg[arg.index] && !isScalar(arg.type) &&
           !forcedRoles.count(arg.index);
  };
  for (const SignatureArg &arg : signature.args)
    numArgs[arg.type] += isOpen(arg);
  for (const SignatureResult &result : signature.results)
    numResults[result.type] += !argOfResult[result.index];
  bool inOrder = pairsAreInOrder();
  for (const SignatureArg &arg : signature.args) {
    unsigned number = numArgs[arg.type];
    if (!isOpen(arg) || numResults[arg.type] != number ||
        (number > 1 && !inOrder))
      continue;
    for (const SignatureResult &result : signature.results)
      if (!argOfResult[result.index] && hint(arg.index, result.index) > 0)
        pair(arg.index, result.index,
             number > 1 ? "donated, in order with all pairs"
                        : "donated, no other of its type is left");
  }
}

/// Returns true if the results of all pairs so far are in the order of the
/// arguments.
bool SignatureAnalyzer::pairsAreInOrder() { return areInOrder(resultOfArg); }

/// Returns true if all results are the same value, or constants of equal value,
/// so that it does not matter which of them replaces which argument.
bool SignatureAnalyzer::areAlike(ArrayRef<unsigned> results) {
  Value first = returned[results.front()];
  Attribute constant;
  matchPattern(first, m_Constant(&constant));
  return llvm::all_of(results, [&](unsigned result) {
    Attribute other;
    return returned[result] == first ||
           (constant && matchPattern(returned[result], m_Constant(&other)) &&
            other == constant);
  });
}

/// Pairs what is left without names. An array that no gradient depends on is
/// neither data nor a frozen weight; a counter or flag is replaced by a value
/// that depends on scalars alone. They are replaced by results of their type
/// that replace nothing else: by the only one (or the only constant), by any of
/// several equal constants, or by position if that agrees with all other pairs.
void SignatureAnalyzer::pairByPlace() {
  bool inOrder = pairsAreInOrder();
  llvm::MapVector<Type, SmallVector<unsigned>> open;
  for (const SignatureArg &arg : signature.args) {
    if (resultOfArg[arg.index])
      continue;
    bool isOpen = isScalar(arg.type) ? !isFloat(arg.type)
                                     : isFloat(arg.type) && !feeding[arg.index];
    if (isOpen && !forcedRoles.count(arg.index))
      open[arg.type].push_back(arg.index);
  }
  auto isArray = [&](unsigned source) {
    return !isScalar(signature.args[source].type);
  };
  // A computed result that depends on no array describes something frozen
  // (whether its gradient is finite). The next value of a flag is a constant.
  auto isComputed = [&](unsigned result) {
    return !matchPattern(returned[result], m_Constant());
  };
  for (auto &[type, args] : open) {
    SmallVector<unsigned> results;
    for (const SignatureResult &result : signature.results)
      if (!argOfResult[result.index] && result.type == type &&
          !(isScalar(type) &&
            onArguments.dependsOnAny(returned[result.index], isArray)))
        results.push_back(result.index);
    if (results.size() > args.size())
      llvm::erase_if(results, isComputed);
    if (args.size() != results.size() ||
        !(args.size() == 1 || inOrder || areAlike(results)))
      continue;
    for (auto [arg, result] : llvm::zip(args, results))
      pair(arg, result,
           args.size() == 1    ? "no other of its type is left"
           : areAlike(results) ? "one constant replaces all of its type"
                               : "by place: no gradient depends on it");
  }
}

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

/// Returns true if a result contains the gradient of an argument that another
/// result replaces, as returned gradients and updates do.
bool SignatureAnalyzer::containsGradient(unsigned result) {
  const Chain &chain = chains.of(returned[result]);
  return llvm::any_of(signature.args, [&](const SignatureArg &arg) {
    Value source = argument(arg.index);
    return resultOfArg[arg.index] && isFloat(arg.type) &&
           arg.type == signature.results[result].type &&
           containsGradientOf(source, gradients.partnersOf(source), chain);
  });
}

/// Returns keys as text in which those of a front are a prefix.
static std::string joined(ArrayRef<std::string> keys) {
  std::string text;
  for (const std::string &key : keys)
    text += key + "\n";
  return text;
}

/// Returns whether the results whose paths begin with `prefix` may replace a
/// tree of initial values: they have paths and types of its arrays, and replace
/// the arguments among these or nothing so far.
bool SignatureAnalyzer::mayReplaceTree(const InitialTree &tree,
                                       const Leaves &results,
                                       StringRef prefix) {
  size_t count = 0;
  for (auto it = results.lower_bound(prefix.str());
       it != results.end() && StringRef(it->first).starts_with(prefix); ++it) {
    std::string path = it->first.substr(prefix.size());
    auto type = tree.types.find(path);
    unsigned result = it->second;
    if (type == tree.types.end() ||
        signature.results[result].type != type->second)
      return false;
    auto arg = tree.arguments.find(path);
    bool isRead = arg != tree.arguments.end();
    bool isPaired = isRead && argOfResult[result] == arg->second;
    if (!isPaired &&
        (argOfResult[result] || loss == result ||
         (isRead && resultOfArg[arg->second]) || containsGradient(result)))
      return false;
    count += isRead;
  }
  return count == tree.arguments.size();
}

/// Pairs an argument that is a tree with the only tree of results that has the
/// same paths and types, and no gradients of others. The initial values contain
/// it, so it is no data: activations replace a memory, for example. (JAX leaves
/// out arguments that a step does not read.)
void SignatureAnalyzer::pairInitialTrees() {
  std::map<std::string, InitialTree> trees;
  for (const TreeLeaf &leaf : options.initialValues) {
    SmallVector<std::string> keys = splitTreePath(leaf.path);
    trees[keys.front()].types[joined(ArrayRef(keys).drop_front())] = leaf.type;
  }
  for (const SignatureArg &arg : signature.args) {
    SmallVector<std::string> keys = splitTreePath(arg.path);
    InitialTree &tree = trees[keys.front()];
    std::string path = joined(ArrayRef(keys).drop_front());
    auto type = tree.types.find(path);
    tree.isWhole &= !path.empty() && !forcedRoles.count(arg.index) &&
                    type != tree.types.end() && type->second == arg.type;
    tree.arguments[path] = arg.index;
  }
  Leaves results;
  for (const SignatureResult &result : signature.results)
    results[joined(splitTreePath(result.path))] = result.index;
  for (auto &[root, tree] : trees) {
    if (!tree.isWhole || tree.arguments.empty())
      continue;
    std::string first = tree.arguments.begin()->first;
    SmallVector<StringRef> prefixes;
    for (auto &[path, result] : results)
      if (StringRef prefix = path;
          prefix.consume_back(first) && mayReplaceTree(tree, results, prefix))
        prefixes.push_back(prefix);
    if (prefixes.size() != 1)
      continue;
    for (auto &[path, arg] : tree.arguments)
      if (!resultOfArg[arg])
        pair(arg, results[prefixes.front().str() + path],
             "the only tree of results with the paths and types of initial "
             "values");
  }
}

/// Returns true if names show that `result` is not the next value of `arg`. A
/// result of a tuple has a position, but no name; then only the path of an
/// array that is part of a tree is another one.
bool SignatureAnalyzer::areToldApart(unsigned arg, unsigned result) const {
  std::string last = splitTreePath(signature.results[result].path).back();
  StringRef key = last;
  bool isNumbered = key.consume_front("[") && key.consume_back("]") &&
                    !key.empty() && llvm::all_of(key, llvm::isDigit);
  bool isWhole = isScalar(signature.args[arg].type) ||
                 splitTreePath(signature.args[arg].path).size() == 1;
  return argsAreNamed && resultsAreNamed && !(isWhole && isNumbered);
}

/// Reports arguments that are taken for frozen or constant although the step
/// returns another value of their type and no names tell them apart: they may
/// be state, and such a guess must not be silent. The next value of an array
/// that the loss reads would depend on the old value, or be the old value of
/// other state; the next value of a last gradient need not, nor that of data of
/// the step before (a memory) that initial values contain.
LogicalResult SignatureAnalyzer::checkFrozen() {
  for (const SignatureArg &arg : signature.args) {
    bool isConstant = arg.role == ArgRole::Constant;
    if ((arg.role != ArgRole::Frozen && !isConstant) ||
        argument(arg.index).use_empty() || forcedRoles.count(arg.index))
      continue;
    auto isOldState = [&](unsigned result) {
      auto source = argumentIndex(returned[result]);
      return source && *source != arg.index && resultOfArg[*source];
    };
    SmallVector<StringRef> results;
    for (const SignatureResult &result : signature.results)
      if (!argOfResult[result.index] && result.type == arg.type &&
          (!loss || *loss != result.index) &&
          !areToldApart(arg.index, result.index) &&
          (isScalar(arg.type)
               ? mayReplaceScalar(arg.index, result.index)
               : !forward.contains(argument(arg.index)) ||
                     dataSetOnce.contains(arg.index) ||
                     isOldState(result.index) ||
                     onArguments.depends(returned[result.index], arg.index)))
        results.push_back(result.path);
    if (results.empty())
      continue;
    InFlightDiagnostic diag = emitError(func.getLoc())
                              << "ambiguous state: '" << arg.path << "' is "
                              << (isConstant ? "constant" : "frozen")
                              << ", or replaced by "
                              << (results.size() > 1 ? "one of " : "");
    llvm::interleaveComma(ArrayRef(results).take_front(4), diag);
    diag << "; choose with the option 'states' or 'roles' (fp8-run: --state "
         << arg.path << "=" << results.front() << " or --role " << arg.path
         << "=" << (isConstant ? "constant" : "frozen") << ")";
    if (!argsAreNamed || !resultsAreNamed)
      diag << ", or export with debug_info=True, which has names";
    return diag;
  }
  return success();
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
