//===- Learning.cpp - What gradients say about arguments and results ------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

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
