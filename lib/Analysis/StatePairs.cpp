//===- StatePairs.cpp - Pairs of state arguments and results --------------===//
//
// Data flow scores pairs (PairScores.cpp), and names of trees, or the order of
// the arguments, decide between them. What is left is paired as copies of other
// state (PairCopies.cpp), by weaker evidence (PairFallbacks.cpp,
// PairScalars.cpp) or by its initial values (PairInitialTrees.cpp).
//
//===----------------------------------------------------------------------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::haveSamePlace(StringRef a, StringRef b) {
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
  findReplaceable();
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
    bool named =
        splitTreePath(signature.args[arg].path).size() > 1 &&
        isSameLeaf(signature.args[arg].path, signature.results[result].path);
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

/// Weighs the pairs that data flow or replacements suggest.
std::vector<WeightedPair>
SignatureAnalyzer::scorePairs(ArrayRef<unsigned> args,
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
  return pairs;
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

/// Whether a pairing in order leaves over an argument that has a partner, such
/// as a key that is returned at another position.
static bool leavesOver(ArrayRef<std::optional<unsigned>> partners,
                       ArrayRef<std::optional<unsigned>> inOrder) {
  return llvm::any_of(llvm::zip_equal(partners, inOrder), [](auto pair) {
    return std::get<0>(pair) && !std::get<1>(pair);
  });
}

/// Whether a pairing in order loses so little weight to the best one that the
/// order is better evidence.
static bool isNearly(ArrayRef<WeightedPair> pairs,
                     ArrayRef<std::optional<unsigned>> inOrder,
                     ArrayRef<std::optional<unsigned>> partners) {
  constexpr double kNearly = 0.97;
  // Pairs that both agree on would make any loss look slight.
  auto sumOfOthers = [&](ArrayRef<std::optional<unsigned>> chosen,
                         ArrayRef<std::optional<unsigned>> other) {
    SmallVector<std::optional<unsigned>> rest(chosen);
    for (auto [own, theirs] : llvm::zip_equal(rest, other))
      if (own == theirs)
        own.reset();
    return sumOf(pairs, rest);
  };
  return sumOfOthers(inOrder, partners) >=
         kNearly * sumOfOthers(partners, inOrder);
}

/// Whether a pairing in order makes state stand still which data flow moves,
/// and not for want of a decision (`ties`): that is no slight loss.
bool SignatureAnalyzer::stopsShifts(ArrayRef<unsigned> args,
                                    ArrayRef<unsigned> results,
                                    ArrayRef<std::optional<unsigned>> partners,
                                    ArrayRef<std::optional<unsigned>> inOrder,
                                    ArrayRef<Ambiguity> ties) {
  auto standsStill = [&](unsigned i, std::optional<unsigned> r) {
    return r && returned[results[*r]] == argument(args[i]);
  };
  auto isTied = [&](unsigned i) {
    return llvm::any_of(ties,
                        [&](const Ambiguity &tie) { return tie.from == i; });
  };
  return llvm::any_of(llvm::seq<unsigned>(args.size()), [&](unsigned i) {
    return shifted.contains(args[i]) && standsStill(i, inOrder[i]) &&
           !standsStill(i, partners[i]) && !isTied(i);
  });
}

/// Returns the best pairing in order, by data flow and then by type.
SmallVector<std::optional<unsigned>>
SignatureAnalyzer::pairInOrder(ArrayRef<unsigned> args,
                               ArrayRef<unsigned> results,
                               std::vector<WeightedPair> pairs) {
  addByPlace(args, results, pairs);
  return assignInOrder(args.size(), results.size(), pairs);
}

/// Pairs arguments and results without names by the highest total score. Trees
/// are returned in the order of the arguments, unless data flow contradicts
/// that or an argument is left over.
void SignatureAnalyzer::pairByFlow(ArrayRef<unsigned> args,
                                   ArrayRef<unsigned> results) {
  std::vector<WeightedPair> pairs = scorePairs(args, results);
  std::vector<Ambiguity> ties;
  auto partners = assignPairs(
      args.size(), pairs,
      [&](unsigned a, unsigned b) {
        return returned[results[a]] == returned[results[b]];
      },
      ties, [&](unsigned i, unsigned r) { return hint(args[i], results[r]); });
  auto inOrder = pairInOrder(args, results, pairs);
  if (!leavesOver(partners, inOrder) &&
      !stopsShifts(args, results, partners, inOrder, ties) &&
      isNearly(pairs, inOrder, partners)) {
    partners = inOrder;
    ties.clear();
  }
  for (auto [i, partner] : llvm::enumerate(partners))
    if (partner)
      pair(args[i], results[*partner], "update chain and type");
  reportAmbiguities(args, results, ties);
}
