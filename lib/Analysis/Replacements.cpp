//===- Replacements.cpp - State that data flow replaces indirectly --------===//
//
// Finds results that may replace an argument although no update chain leads
// from one to the other: old weights and gradients, shift registers,
// populations that change places, and what loops over whole steps carry.
//
//===----------------------------------------------------------------------===//

#include "SignatureAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the values that an update moves by its gradients: the parameters of
/// these gradients. If no gradient is known, returns the values that it adds
/// unscaled, else those that it does not subtract, such as the operand of a
/// proximal operator.
ValueSet SignatureAnalyzer::findStepped(unsigned update) {
  ValueSet stepped;
  for (unsigned param : learnedBy[update])
    stepped.insert(argument(param));
  if (stepped.empty())
    for (auto &[source, reach] : chains.of(returned[update]))
      if (reach.strength == 3 && !reach.scaled && argumentIndex(source) &&
          source.getType() == returned[update].getType())
        stepped.insert(source);
  if (stepped.empty())
    for (auto &[source, reach] : chains.of(returned[update]))
      if (reach.sign >= 0 && argumentIndex(source) &&
          source.getType() == returned[update].getType())
        stepped.insert(source);
  return stepped;
}

/// Finds results that may replace state which only the update of a parameter
/// reads: the unchanged weights replace heavy ball's last weights, a step from
/// the other weights replaces Nesterov's, and the new gradient replaces the
/// last one.
void SignatureAnalyzer::findUnreplaced() {
  DenseMap<unsigned, SmallVector<unsigned>> readers;
  for (auto [r, value] : llvm::enumerate(returned))
    for (auto &[source, reach] : chains.of(value))
      if (auto arg = argumentIndex(source))
        readers[*arg].push_back(r);
  for (const SignatureArg &arg : signature.args) {
    if (!isFloat(arg.type) || isScalar(arg.type) || learned.contains(arg.index))
      continue;
    ArrayRef<unsigned> results = readers[arg.index];
    for (unsigned update : results)
      addOldValues(arg.index, update);
    if (llvm::any_of(results, [&](unsigned result) {
          return signature.results[result].type == arg.type &&
                 learnedBy[result].empty() &&
                 flowScore(arg.index, result) > kNonlinear;
        }))
      continue;
    for (unsigned update : results)
      addReplacements(arg.index, update);
    // State that only determines the step size, such as the last point and
    // gradient of a Barzilai-Borwein rate, is in no chain. Data is excluded:
    // gradients depend on it.
    if (results.empty() && !feeding[arg.index])
      for (unsigned update = 0; update < learnedBy.size(); ++update)
        if (!learnedBy[update].empty() &&
            returned[update].getType() == arg.type &&
            onArguments.depends(returned[update], arg.index))
          addReplacements(arg.index, update);
  }
  addShifts();
  addCarries();
  addSwaps();
}

/// Finds the arguments and the results that belong together by an update: the
/// argument is in the chain of the result, as no other argument is more.
SignatureAnalyzer::Updated SignatureAnalyzer::findUpdated() {
  Updated updated;
  for (auto [r, value] : llvm::enumerate(returned)) {
    if (!isFloat(value.getType()) || isa<BlockArgument>(value))
      continue;
    double best = kNonlinear;
    SmallVector<unsigned> found;
    for (auto &[source, reach] : chains.of(value)) {
      auto arg = argumentIndex(source);
      if (!arg || source.getType() != value.getType())
        continue;
      double score = flowScore(*arg, r);
      if (score < best || score <= kNonlinear)
        continue;
      if (score > best)
        found.clear();
      best = score;
      found.push_back(*arg);
    }
    if (found.empty())
      continue;
    updated.results.insert(r);
    updated.args.insert_range(found);
  }
  updated.args.insert_range(learned);
  return updated;
}

/// Finds shift registers: state that holds the values of the last steps, such
/// as the last two gradients of a multistep method. There, a result that
/// returns an argument unchanged replaces the next one of the register, and the
/// argument itself is replaced by a newer value. Arguments that gradients
/// depend on are more probably frozen.
void SignatureAnalyzer::addShifts() {
  std::optional<Updated> updated;
  for (auto [r, value] : llvm::enumerate(returned)) {
    auto arg = argumentIndex(value);
    if (!arg || !isFloat(value.getType()) || feeding[*arg] ||
        learned.contains(*arg))
      continue;
    if (!updated)
      updated = findUpdated();
    if (!updated->args.contains(*arg))
      addShift(*arg, r, *updated);
  }
}

/// Adds that `result`, which returns `arg` unchanged, may replace another
/// argument, the next place of a shift register, and that a newer value may
/// then replace `arg`. One update reads both arguments, or the step computes
/// with the other one alone. If nothing supports one of the two pairings, they
/// weigh the same.
void SignatureAnalyzer::addShift(unsigned arg, unsigned result,
                                 const Updated &updated) {
  bool isRead = llvm::any_of(argument(arg).getUsers(), [](Operation *user) {
    return !user->hasTrait<OpTrait::IsTerminator>();
  });
  SmallVector<unsigned> holders = findHolders(arg, isRead, updated);
  // The gradient of such an update may be unknown.
  for (unsigned holder : holders)
    for (unsigned update : findUpdatesOf(arg, holder))
      for (unsigned source : {arg, holder})
        addReplacements(source, update);
  SmallVector<unsigned> newer = findNewer(arg, result, isRead, updated);
  if (llvm::none_of(newer, [&](unsigned next) {
        return isa<BlockArgument>(returned[next]);
      }))
    llvm::erase_if(holders, [&](unsigned other) { return feeding[other]; });
  if (newer.empty() || holders.empty())
    return;
  auto add = [&](unsigned holder, unsigned next) {
    if (!llvm::is_contained(replacements[holder], next))
      replacements[holder].push_back(next);
  };
  for (unsigned next : newer)
    add(arg, next);
  bool meets = false;
  for (unsigned holder : holders) {
    add(holder, result);
    meets |= isRead && meetInUpdate(arg, holder);
  }
  shifted[arg] = meets;
}

/// Returns the results that may replace `arg`, which `result` returns
/// unchanged, by a newer value. Of scalars, most of which are metrics, only
/// those that are returned twice, as a loss and as state.
SmallVector<unsigned> SignatureAnalyzer::findNewer(unsigned arg,
                                                   unsigned result, bool isRead,
                                                   const Updated &updated) {
  SmallVector<unsigned> newer, others;
  bool ofScalar = isScalar(signature.args[arg].type);
  for (const SignatureResult &other : signature.results) {
    Value value = returned[other.index];
    if (other.type != signature.args[arg].type || other.index == result ||
        value == argument(arg) || updated.results.contains(other.index) ||
        argOfResult[other.index])
      continue;
    if (ofScalar ? !isRead && !isa<BlockArgument>(value) &&
                       !isConstant(value) && llvm::count(returned, value) > 1
                 : !isRead || llvm::is_contained(replacements.lookup(arg),
                                                 other.index))
      newer.push_back(other.index);
    else if (!ofScalar && chains.of(value).empty())
      others.push_back(other.index);
  }
  // No chain ends at a gradient that is zero, or the same for all elements.
  if (newer.empty())
    newer = others;
  return ofScalar ? chooseTwins(newer, result) : newer;
}

/// Returns one of all results with the same value: the first one in the tree of
/// `result`, if any.
SmallVector<unsigned> SignatureAnalyzer::chooseTwins(ArrayRef<unsigned> results,
                                                     unsigned result) {
  auto parentOf = [&](unsigned index) {
    SmallVector<std::string> path =
        splitTreePath(signature.results[index].path);
    path.pop_back();
    return path;
  };
  llvm::MapVector<Value, unsigned> chosen;
  for (unsigned other : results) {
    auto [it, isNew] = chosen.insert({returned[other], other});
    if (parentOf(it->second) != parentOf(result) &&
        parentOf(other) == parentOf(result))
      it->second = other;
  }
  return llvm::map_to_vector(chosen, [](auto &entry) { return entry.second; });
}

/// Returns the arguments that may hold the last value of `arg`: those in one
/// chain with it; any if nothing reads `arg`.
SmallVector<unsigned> SignatureAnalyzer::findHolders(unsigned arg, bool isRead,
                                                     const Updated &updated) {
  SmallVector<unsigned> holders;
  for (const SignatureArg &other : signature.args)
    if (other.index != arg && other.type == signature.args[arg].type &&
        !updated.args.contains(other.index) && !resultOfArg[other.index] &&
        !forcedRoles.count(other.index) && !argument(other.index).use_empty() &&
        (!isRead || !findUpdatesOf(arg, other.index).empty()))
      holders.push_back(other.index);
  return holders;
}

/// Returns the results with both arguments in their chains.
SmallVector<unsigned> SignatureAnalyzer::findUpdatesOf(unsigned arg,
                                                       unsigned other) {
  SmallVector<unsigned> updates;
  for (auto [r, value] : llvm::enumerate(returned)) {
    if (!isFloat(value.getType()) || isa<BlockArgument>(value))
      continue;
    const Chain &chain = chains.of(value);
    if (chain.count(argument(arg)) && chain.count(argument(other)))
      updates.push_back(r);
  }
  return updates;
}

/// Returns true if an update combines two arguments before it adds them to what
/// it steps, as a multistep method does with the gradients of the last steps.
bool SignatureAnalyzer::meetInUpdate(unsigned arg, unsigned other) {
  auto areIn = [&](const Chain &chain) {
    return chain.count(argument(arg)) && chain.count(argument(other));
  };
  for (unsigned update : findUpdatesOf(arg, other)) {
    ValueSet stepped = findStepped(update), seen{returned[update]};
    SmallVector<Value> stack{returned[update]};
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      const Chain &chain = chains.of(value);
      if (llvm::none_of(stepped,
                        [&](Value source) { return chain.count(source); }))
        return true;
      if (Operation *op = value.getDefiningOp())
        for (Value operand : op->getOperands())
          if (areIn(chains.of(operand)) && seen.insert(operand).second)
            stack.push_back(operand);
    }
  }
  return false;
}

/// Finds populations that may change places: the step trains one array, and
/// returns others of its type unchanged which nothing reads. They may be the
/// next values of each other, or stay what they are, so all these pairs score
/// the same: names and order decide. If the old value of the trained array is
/// returned, too, it is the last value of a heavy ball.
void SignatureAnalyzer::addSwaps() {
  struct Member {
    unsigned arg, result;
    bool isIdle;
  };
  llvm::MapVector<Type, SmallVector<Member>> members;
  for (auto [r, value] : llvm::enumerate(returned)) {
    if (!isFloat(value.getType()) || isScalar(value.getType()))
      continue;
    SmallVector<Member> &ofType = members[value.getType()];
    if (auto arg = argumentIndex(value); arg && value.hasOneUse())
      ofType.push_back({*arg, unsigned(r), /*isIdle=*/true});
    for (unsigned arg : learnedBy[r])
      if (argument(arg).getType() == value.getType() &&
          !llvm::is_contained(returned, argument(arg)))
        ofType.push_back({arg, unsigned(r), /*isIdle=*/false});
  }
  for (auto &[type, ofType] : members) {
    auto isIdle = [](const Member &member) { return member.isIdle; };
    if (llvm::none_of(ofType, isIdle) || llvm::all_of(ofType, isIdle))
      continue;
    for (const Member &from : ofType)
      for (const Member &to : ofType)
        if (from.result == to.result || from.isIdle || to.isIdle) {
          swaps.insert({from.arg, to.result});
          replacements[from.arg].push_back(to.result);
        }
  }
}

/// The result of a loop over whole steps is the next value of the argument that
/// enters the loop at the same position, whatever it is computed from.
void SignatureAnalyzer::addCarries() {
  auto carryOf = [&](unsigned result) -> std::optional<unsigned> {
    auto loop = returned[result].getDefiningOp<stablehlo::WhileOp>();
    if (!loop)
      return std::nullopt;
    return argumentIndex(
        loop->getOperand(cast<OpResult>(returned[result]).getResultNumber()));
  };
  llvm::SmallPtrSet<Operation *, 4> training;
  for (unsigned result = 0; result < signature.results.size(); ++result)
    // The gradient of a master copy is that of another argument, the weights.
    if (auto arg = carryOf(result);
        arg && (llvm::is_contained(learnedBy[result], *arg) ||
                gradientUpdates.contains(returned[result])))
      training.insert(returned[result].getDefiningOp());
  for (unsigned result = 0; result < signature.results.size(); ++result)
    if (auto arg = carryOf(result);
        arg && training.contains(returned[result].getDefiningOp())) {
      carries.insert({*arg, result});
      if (!llvm::is_contained(replacements[*arg], result))
        replacements[*arg].push_back(result);
    }
}

/// Adds as replacements of `arg` the results that return the old value of
/// another source that `update` adds unscaled: a step may go back to the
/// previous point. An average, which only contains fractions of its sources,
/// does not count.
void SignatureAnalyzer::addOldValues(unsigned arg, unsigned update) {
  for (auto &[source, reach] : chains.of(returned[update])) {
    if (!argumentIndex(source) || source == argument(arg) || reach.scaled ||
        source.getType() != argument(arg).getType())
      continue;
    for (unsigned result = 0; result < signature.results.size(); ++result)
      if (returned[result] == source &&
          !llvm::is_contained(replacements[arg], result))
        replacements[arg].push_back(result);
  }
}

/// Adds as replacements of `arg` the results that depend on the values that
/// `update` steps, or that are the gradients it steps by.
void SignatureAnalyzer::addReplacements(unsigned arg, unsigned update) {
  const Chain &reader = chains.of(returned[update]);
  ValueSet stepped = findStepped(update);
  // After a threshold nothing is added unscaled, and the gradient of a
  // nonlinearity's operand is unknown: use all sources.
  if (stepped.empty())
    for (auto &[source, reach] : reader)
      if (argumentIndex(source) && source != argument(arg) &&
          source.getType() == argument(arg).getType())
        stepped.insert(source);
  if (stepped.empty())
    return;
  for (unsigned result = 0; result < signature.results.size(); ++result) {
    Value value = returned[result];
    const Chain &chain = chains.of(value);
    bool follows = llvm::any_of(
        chain, [&](auto &entry) { return stepped.contains(entry.first); });
    bool isGradient = !chain.empty() && llvm::all_of(chain, [&](auto &entry) {
      return !isa<BlockArgument>(entry.first) && reader.count(entry.first);
    });
    if (result != update && (follows || isGradient) &&
        value.getType() == signature.args[arg].type &&
        !chain.count(argument(arg)) &&
        !llvm::is_contained(replacements[arg], result))
      replacements[arg].push_back(result);
  }
}
