//===- PairCopies.cpp - Weights that are copies of master weights ---------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

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
