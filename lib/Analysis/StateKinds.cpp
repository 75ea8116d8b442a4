//===- StateKinds.cpp - Kinds of state ------------------------------------===//

#include "Resets.h"
#include "SignatureAnalyzer.h"

#include "fp8/Dialect/StableHLO/IR/Barriers.h"

#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

/// Visits the subtrees that contain a leaf. Skips a root that may be the tuple
/// of all arguments, because it is no evidence.
static void forEachSubtree(StringRef path,
                           llvm::function_ref<void(StringRef)> visit) {
  SmallVector<std::string> parts = splitTreePath(path);
  size_t length = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    length += parts[i].size();
    if (i > 0 || parts.size() == 2)
      visit(path.take_front(length));
  }
}

/// Returns the subtrees with state that changes: other named arguments in them
/// are state, too.
llvm::StringSet<> SignatureAnalyzer::findChangingSubtrees() {
  llvm::StringSet<> changing;
  if (!argsAreNamed || !resultsAreNamed)
    return changing;
  for (const SignatureArg &arg : signature.args)
    if (resultOfArg[arg.index] &&
        returned[*resultOfArg[arg.index]] != argument(arg.index))
      forEachSubtree(arg.path,
                     [&](StringRef subtree) { changing.insert(subtree); });
  return changing;
}

/// Returns true if everything that an update adds belongs to the forward pass.
/// The terms of a loss do, too, but parameters that weight them move by them.
bool SignatureAnalyzer::addsForwardOnly(unsigned arg, const Chain &chain) {
  bool moves = chain.count(argument(arg));
  return hasLeaf(chain) && llvm::all_of(chain, [&](auto &entry) {
           return isa<BlockArgument>(entry.first) ||
                  (forward.contains(entry.first) &&
                   !(moves && isWeightedBy(entry.first, arg)));
         });
}

/// Returns true for a sum of data or activations: it adds values of the forward
/// pass to itself.
bool SignatureAnalyzer::isSumOfForward(const SignatureArg &arg) {
  const Chain &chain = updateOf(arg.index);
  auto self = chain.find(argument(arg.index));
  return self != chain.end() && isFloat(arg.type) && !self->second.scaled &&
         !isSameLeaf(arg.path,
                     signature.results[*resultOfArg[arg.index]].path) &&
         addsForwardOnly(arg.index, chain);
}

/// Unpairs arguments that only looked like state while the loss was unknown:
/// data that is returned unchanged, and sums of data and activations.
void SignatureAnalyzer::dropOutputs() {
  forward = sliceOf(getLosses(), carried, updated);
  llvm::StringSet<> changing = findChangingSubtrees();
  std::vector<ArgumentUse> uses = findUses();
  for (const SignatureArg &arg : signature.args) {
    unsigned index = arg.index;
    if (!resultOfArg[index] || isScalar(arg.type) || isKeyType(arg.type) ||
        pairedBy[index] == kSetByUser || learning.contains(index) ||
        !forward.contains(argument(index)))
      continue;
    bool named = false;
    forEachSubtree(arg.path, [&](StringRef subtree) {
      named |= changing.contains(subtree);
    });
    bool isReturnedAsIs = returned[*resultOfArg[index]] == argument(index);
    bool isData = !isFloat(arg.type) || uses[index] == ArgumentUse::Data;
    if (isReturnedAsIs ? !named && isData : isSumOfForward(arg))
      unpair(index);
  }
}

void SignatureAnalyzer::setKind(unsigned index, StateKind kind,
                                const Twine &why) {
  SignatureArg &arg = signature.args[index];
  arg.kind = kind;
  arg.why = (why + "; " + pairedBy[index]).str();
}

/// Returns the parameter whose weights the state follows, as an average or an
/// occasional copy. The gradient in its chain is that of the parameter's
/// update. A parameter whose gradient is not recognized, of the `read` values
/// that the loss depends on, does not read what follows it, and what follows it
/// contains all that its new value does, unlike a gradient that reads it.
std::optional<unsigned> SignatureAnalyzer::findFollowed(unsigned index,
                                                        const ValueSet &read) {
  const Chain &own = updateOf(index);
  auto self = own.find(argument(index));
  if (self == own.end())
    return std::nullopt;
  for (auto &[source, reach] : own) {
    auto other = argumentIndex(source);
    if (!other || *other == index || !resultOfArg[*other] ||
        source.getType() != argument(index).getType())
      continue;
    const Chain &update = updateOf(*other);
    bool readsBack = update.count(argument(index));
    // A source of the update may also be a moment that weights decay into; the
    // coefficients of an average add up to one.
    bool isAverage = std::abs(self->second.factor + reach.factor - 1) < 1e-3;
    bool hasNewValue = llvm::all_of(
        update, [&](auto &entry) { return own.count(entry.first) > 0; });
    bool isFollowed =
        learning.contains(*other)
            ? isAverage || !readsBack
            : !readsBack && (isAverage || hasNewValue) &&
                  read.contains(source) &&
                  isParameter(signature.args[*other], /*isRead=*/true);
    bool isItsGradient = llvm::all_of(own, [&](auto &entry) {
      return isa<BlockArgument>(entry.first) || update.count(entry.first);
    });
    if (isFollowed && isItsGradient && update.count(source))
      return other;
  }
  return std::nullopt;
}

/// Returns true for a scalar, not a flag, whose next value is computed from
/// itself without other computed values.
bool SignatureAnalyzer::isCounter(const SignatureArg &arg) {
  const Chain &chain = updateOf(arg.index);
  auto self = chain.find(argument(arg.index));
  return isScalar(arg.type) && !elementOf(argument(arg.index)).isInteger(1) &&
         self != chain.end() && self->second.strength >= 2 && !hasLeaf(chain) &&
         returned[*resultOfArg[arg.index]] != argument(arg.index);
}

/// Returns true if gradients flow to the argument; `isRead` tells whether the
/// loss depends on it. State that a value of the forward pass replaces is a
/// hidden state.
bool SignatureAnalyzer::isParameter(const SignatureArg &arg, bool isRead) {
  const Chain &chain = updateOf(arg.index);
  return (isRead || learning.contains(arg.index)) &&
         (!isScalar(arg.type) || hasLeaf(chain)) &&
         !addsForwardOnly(arg.index, chain);
}

/// Finds the parameters: state that gradients flow to, and state computed from
/// it.
SmallVector<unsigned> SignatureAnalyzer::findParameters() {
  ValueSet gradient;
  for (Value value : getLosses())
    gradient.insert_range(differentiableSliceOf(value, carried, updated));
  SmallVector<unsigned> params;
  for (SignatureArg &arg : signature.args) {
    if (!resultOfArg[arg.index])
      continue;
    arg.role = ArgRole::State;
    setKind(arg.index, StateKind::Other, "none of the known kinds of state");
    if (!isFloat(arg.type)) {
      if (isCounter(arg))
        setKind(arg.index, StateKind::Step, "a counter");
      continue;
    }
    if (auto followed = findFollowed(arg.index, gradient)) {
      setKind(arg.index, StateKind::Average,
              "follows the weights of " + signature.args[*followed].path);
      continue;
    }
    bool isRead = gradient.contains(argument(arg.index));
    if (!isParameter(arg, isRead))
      continue;
    setKind(arg.index, StateKind::Parameter,
            isRead ? "the loss depends on it"
                   : "its gradient updates it, of a loss that is not "
                     "returned");
    params.push_back(arg.index);
  }
  return params;
}

/// Finds the state that the optimizer updates: parameters, or the master copies
/// from which their new values are converted.
SmallVector<SignatureAnalyzer::Trained>
SignatureAnalyzer::findTrained(ArrayRef<unsigned> params) {
  SmallVector<Trained> trained;
  for (unsigned param : params) {
    const Chain &chain = updateOf(param);
    if (chain.count(argument(param))) {
      trained.push_back({param, param});
      continue;
    }
    for (auto &[source, reach] : chain) {
      auto master = argumentIndex(source);
      if (!master || reach.strength < 3 || !resultOfArg[*master])
        continue;
      trained.push_back({param, *master});
      setKind(*master, StateKind::Other,
              "the master copy of " + signature.args[param].path);
      signature.args[*master].parameter = signature.args[param].path;
      break;
    }
  }
  return trained;
}

/// Maps each argument to the parameters whose update reads it multiplied by a
/// rate.
DenseMap<unsigned, SmallVector<SignatureAnalyzer::Trained>>
SignatureAnalyzer::findReaders(ArrayRef<Trained> trained) {
  DenseMap<unsigned, SmallVector<Trained>> readers;
  for (const Trained &entry : trained)
    for (auto &[source, reach] : updateOf(entry.updated))
      if (auto arg = argumentIndex(source);
          arg && *arg != entry.updated && reach.strength < 3)
        readers[*arg].push_back(entry);
  return readers;
}

/// Returns true for state that may be a moment or a sum of gradients, and false
/// for what a gradient may be computed from: other weights (those that weights
/// are multiplied with or pulled to), masks, data.
bool SignatureAnalyzer::mayHoldGradients(unsigned arg) {
  return resultOfArg[arg] && unchangedArgument(arg) != arg &&
         signature.args[arg].kind != StateKind::Parameter &&
         signature.args[arg].kind != StateKind::Average;
}

/// Returns true for state that is replaced by values that a parameter's update
/// adds up, such as its gradient. It has the gradient of the step before, and
/// what reads it reads gradients of two steps.
bool SignatureAnalyzer::isLastGradient(unsigned arg, const Chain &update) {
  const Chain &chain = updateOf(arg);
  return hasLeaf(chain) && llvm::all_of(chain, [&](auto &entry) {
           return !isa<BlockArgument>(entry.first) && update.count(entry.first);
         });
}

/// Describes how a parameter's gradient feeds an argument; degree 0 if it does
/// not.
SignatureAnalyzer::GradientState
SignatureAnalyzer::describeGradientState(unsigned arg, const Trained &trained) {
  const Chain &chain = updateOf(arg);
  const Reach &self = chain.find(argument(arg))->second;
  const Chain &update = updateOf(trained.updated);
  const Reach &read = update.find(argument(arg))->second;
  GradientState state{arg,         trained.param, 0,
                      self.decays, self.factor,   read.divides};
  for (auto &[source, reach] : chain) {
    if (auto other = argumentIndex(source)) {
      if (*other != arg && *other != trained.updated &&
          mayHoldGradients(*other) && !isLastGradient(*other, update))
        state.others.push_back(*other);
    } else if (update.count(source)) {
      state.degree = std::max(state.degree, reach.degree);
    }
  }
  return state;
}

/// Finds state that has a parameter's shape, that the same gradient feeds, and
/// that the parameter's update reads multiplied by a rate. State that also
/// reads other state is an average of weights, or reads gradients from an
/// accumulator, or divides them by another moment.
SmallVector<SignatureAnalyzer::GradientState>
SignatureAnalyzer::findGradientState(ArrayRef<Trained> trained) {
  SmallVector<GradientState> states;
  DenseMap<unsigned, SmallVector<Trained>> readers = findReaders(trained);
  for (SignatureArg &arg : signature.args) {
    if (!resultOfArg[arg.index] || !isFloat(arg.type) ||
        arg.kind == StateKind::Parameter || arg.kind == StateKind::Average)
      continue;
    const Chain &chain = updateOf(arg.index);
    auto self = chain.find(argument(arg.index));
    if (self == chain.end())
      continue;
    // Weights that follow others do not decay, unlike a moment that weights
    // decay into.
    auto isOwner = [&](const Trained &reader) {
      bool follows =
          chain.count(argument(reader.updated)) && !self->second.decays;
      return !follows &&
             shapeOf(arg.type) == shapeOf(signature.args[reader.param].type);
    };
    ArrayRef<Trained> own = readers[arg.index];
    auto owner = llvm::find_if(own, isOwner);
    if (owner == own.end())
      continue;
    GradientState entry = describeGradientState(arg.index, *owner);
    if (entry.degree > 0)
      states.push_back(entry);
  }
  return states;
}

/// Returns true if the sum restarts from zero and does not decay before.
bool SignatureAnalyzer::isResetSum(unsigned arg) {
  Value before = getBeforeReset(returned[*resultOfArg[arg]]);
  if (!before)
    return false;
  const Chain &chain = chains.of(before);
  auto self = chain.find(argument(arg));
  return self != chain.end() && !self->second.decays;
}

/// Finds sums of gradients over several calls.
DenseSet<unsigned>
SignatureAnalyzer::findAccumulators(ArrayRef<GradientState> states) {
  DenseSet<unsigned> linear, sums, readByLinear, accumulators;
  for (const GradientState &entry : states)
    if (entry.degree == 1 && entry.others.empty())
      (entry.decays ? linear : sums).insert(entry.arg);
  // Linear state that a square reads is a sum over calls if it never decays, or
  // if another linear state reads it, too. A square that reads the first moment
  // (for its distance to the gradient) does not make that one a sum.
  for (const GradientState &entry : states)
    if (entry.degree == 1)
      readByLinear.insert(entry.others.begin(), entry.others.end());
  for (const GradientState &entry : states)
    if (entry.degree > 1)
      for (unsigned other : entry.others)
        if (sums.contains(other) ||
            (linear.contains(other) && readByLinear.contains(other)))
          accumulators.insert(other);
  for (const GradientState &entry : states)
    if (entry.degree == 1 && entry.others.empty() && isResetSum(entry.arg))
      accumulators.insert(entry.arg);
  return accumulators;
}

/// Returns true for an average over more steps than a narrow format can follow:
/// the added term is less than half the spacing of its numbers.
static bool isSlow(double decay) { return decay > 0.995; }

/// Finds squares of gradients, which are read from accumulators, from first
/// moments or directly.
DenseSet<unsigned>
SignatureAnalyzer::findSquares(ArrayRef<GradientState> states,
                               const DenseSet<unsigned> &accumulators) {
  DenseSet<unsigned> linear, squares;
  for (const GradientState &entry : states)
    if (entry.degree == 1 && entry.decays && entry.others.empty())
      linear.insert(entry.arg);
  for (const GradientState &entry : states)
    if (!entry.isLinear() && llvm::all_of(entry.others, [&](unsigned other) {
          return accumulators.contains(other) || linear.contains(other);
        }))
      squares.insert(entry.arg);
  return squares;
}

void SignatureAnalyzer::setOwned(const GradientState &entry, StateKind kind,
                                 StringRef why) {
  const std::string &param = signature.args[entry.param].path;
  setKind(entry.arg, kind, why + param);
  signature.args[entry.arg].parameter = param;
}

void SignatureAnalyzer::findMoments(ArrayRef<GradientState> states) {
  DenseSet<unsigned> accumulators = findAccumulators(states);
  DenseSet<unsigned> squares = findSquares(states, accumulators);
  // A moment decays, and only gradients feed it. State that adds gradients
  // without decay is weights, or a sum over the whole training. An average that
  // the update divides by has to be as precise as a second moment.
  auto isFirstMoment = [&](const GradientState &entry) {
    return entry.isLinear() && entry.decays && !entry.divides &&
           !accumulators.contains(entry.arg) && !isSlow(entry.decay) &&
           llvm::all_of(entry.others, [&](unsigned other) {
             return accumulators.contains(other) || squares.contains(other);
           });
  };
  // Of two averages of one gradient, the one with a constant decay is the
  // moment. The decay of the other one is scheduled because it is slow.
  auto hasConstantSibling = [&](const GradientState &entry) {
    return std::isnan(entry.decay) &&
           llvm::any_of(states, [&](const GradientState &other) {
             return other.arg != entry.arg && other.param == entry.param &&
                    isFirstMoment(other) && !std::isnan(other.decay);
           });
  };
  for (const GradientState &entry : states) {
    const std::string &param = signature.args[entry.param].path;
    if (accumulators.contains(entry.arg))
      setOwned(entry, StateKind::Gradient, "accumulates the gradient of ");
    // A sum that does not decay outgrows what a narrow format can add to it.
    else if (squares.contains(entry.arg) && !entry.decays)
      setKind(entry.arg, StateKind::Other,
              "a sum of squares of the gradient of " + param +
                  " that does not decay");
    else if (squares.contains(entry.arg))
      setOwned(entry, StateKind::Moment2, "square of the gradient of ");
    else if (isFirstMoment(entry) && !hasConstantSibling(entry))
      setOwned(entry, StateKind::Moment1, "linear in the gradient of ");
    else if (entry.isLinear() && entry.divides)
      setKind(entry.arg, StateKind::Other,
              "the update of " + param + " divides by it");
    else if (entry.isLinear() && entry.others.empty())
      setKind(entry.arg, StateKind::Other,
              entry.decays ? "a slow average of the gradient of " + param
                           : "steps by the gradient of " + param +
                                 " and does not decay");
  }
}

void SignatureAnalyzer::findStateKinds() {
  SmallVector<unsigned> params = findParameters();
  findMoments(findGradientState(findTrained(params)));
}

/// Returns the argument that the step returns unchanged as the next value of
/// `arg`, if any.
std::optional<unsigned> SignatureAnalyzer::unchangedArgument(unsigned arg) {
  return argumentIndex(stablehlo::skipBarriers(returned[*resultOfArg[arg]]));
}

/// Returns true if a new value reaches an argument in some later step: through
/// others, whose old values replace each other.
bool SignatureAnalyzer::everChanges(unsigned arg) {
  llvm::SmallDenseSet<unsigned> seen{arg};
  std::optional<unsigned> source = unchangedArgument(arg);
  for (; source && resultOfArg[*source]; source = unchangedArgument(*source))
    if (!seen.insert(*source).second)
      return false;
  return !source;
}

/// Checks that the step computes a new value for some parameter; otherwise the
/// pairs are wrong, whatever the evidence was. Marks state that never changes.
LogicalResult SignatureAnalyzer::checkThatStateChanges() {
  bool anyParameter = false, anyChanges = false;
  std::string wrong;
  for (SignatureArg &arg : signature.args) {
    if (arg.role != ArgRole::State || !resultOfArg[arg.index])
      continue;
    std::optional<unsigned> unchanged = unchangedArgument(arg.index);
    if (unchanged == arg.index)
      arg.why = "never changes; " + arg.why;
    if (arg.kind != StateKind::Parameter)
      continue;
    anyParameter = true;
    anyChanges |= everChanges(arg.index);
    if (unchanged && wrong.empty())
      wrong = "'" + arg.path + "' would be replaced by '" +
              signature.results[*resultOfArg[arg.index]].path +
              "', which is the old value of '" +
              signature.args[*unchanged].path + "'";
  }
  if (!anyParameter || anyChanges)
    return success();
  return emitError(func.getLoc())
         << "no parameter changes in the step: " << wrong
         << "; choose what replaces it with " << kStatesOption;
}
