//===- Losses.cpp - Scalars that gradients flow from ----------------------===//

#include "SignatureAnalyzer.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/StableHLO/IR/Barriers.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the result that trains a state argument: the one that replaces it,
/// unless another array takes its place (addSwaps).
unsigned SignatureAnalyzer::trainedIn(unsigned arg) {
  unsigned next = *resultOfArg[arg];
  if (isa<BlockArgument>(returned[next]) && swaps.contains({arg, next}))
    for (auto [result, args] : llvm::enumerate(learnedBy))
      if (argOfResult[result] && llvm::is_contained(args, arg))
        return result;
  return next;
}

/// Returns what look like gradients of an argument in the update of it.
SmallVector<Value> SignatureAnalyzer::findGradientsOf(unsigned arg) {
  SmallVector<Value> found;
  Gradients::Factors partners = gradients.partnersOf(argument(arg));
  if (!partners.empty())
    for (auto &[source, reach] : chains.of(returned[trainedIn(arg)]))
      if (!isa<BlockArgument>(source) && !inForwardPass.contains(source) &&
          gradients.evidence(argument(arg), partners, source) > 0)
        found.push_back(source);
  return found;
}

/// Returns the values between which selects and branches choose `value`.
static SmallVector<Value> findChoices(Value value) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  SmallVector<Value> choices;
  for (unsigned i = 0; i < seen.size(); ++i) {
    Value choice = stablehlo::skipBarriers(seen[i]);
    SmallVector<Value> parts = choicesOf(choice);
    seen.insert_range(parts);
    if (parts.empty())
      choices.push_back(choice);
  }
  return choices;
}

/// Whether an update adds what may be gradients to the value of state: the next
/// value follows from them, and from the value itself without going through
/// them. A power iteration is none: all of the next vector comes out of the
/// product that may be its gradient.
bool SignatureAnalyzer::isUpdatedBy(unsigned arg,
                                    ArrayRef<Value> mayBeGradients) {
  ValueSet barred(mayBeGradients.begin(), mayBeGradients.end());
  return llvm::any_of(findChoices(returned[trainedIn(arg)]), [&](Value choice) {
    const Chain &chain = chains.of(choice);
    bool isUpdate = llvm::any_of(mayBeGradients, [&](Value gradient) {
      return chain.count(gradient) > 0;
    });
    return isUpdate && !barred.contains(choice) &&
           (chain.count(argument(arg)) > 0 ||
            sliceOf({choice}, {}, barred).contains(argument(arg)));
  });
}

/// Finds the state that gradients update, and these gradients.
void SignatureAnalyzer::collectLearning() {
  ValueSet seen;
  for (const SignatureArg &arg : signature.args) {
    if (!resultOfArg[arg.index] || !isFloat(arg.type))
      continue;
    Value next = returned[trainedIn(arg.index)];
    // The gradient of a single bias is a scalar, which has no factors.
    if (!isScalar(arg.type) &&
        cast<ShapedType>(arg.type).getNumElements() == 1 &&
        gradientUpdates.contains(next))
      updated.insert(next);
    SmallVector<Value> mayBeGradients = findGradientsOf(arg.index);
    if (!isUpdatedBy(arg.index, mayBeGradients))
      continue;
    learning.insert(arg.index);
    if (!isa<BlockArgument>(next))
      updated.insert(next);
    for (Value gradient : mayBeGradients)
      if (seen.insert(gradient).second)
        gradientValues.push_back(gradient);
  }
}

/// Whether an update adds something to an argument, unscaled.
bool SignatureAnalyzer::isAddedTo(unsigned arg) {
  const Chain &chain = updateOf(arg);
  auto self = chain.find(argument(arg));
  return self != chain.end() && self->second.strength == 3 &&
         !self->second.scaled && chain.size() > 1;
}

/// Whether an update scales the old value of an argument, as an average does.
bool SignatureAnalyzer::isAveraged(unsigned arg) {
  const Chain &chain = updateOf(arg);
  auto self = chain.find(argument(arg));
  return self != chain.end() && self->second.scaled;
}

/// Whether a loop runs over whole steps: it carries learned state. If no
/// gradient was recognized, state that something is added to counts as learned.
/// `starts` has the argument, if any, that each of its values starts as.
bool SignatureAnalyzer::runsOverWholeSteps(
    stablehlo::WhileOp loop, ArrayRef<std::optional<unsigned>> starts) {
  auto isLearned = [&](unsigned arg, Type type) {
    if (!learning.empty())
      return learning.contains(arg);
    return resultOfArg[arg] && isFloat(type) && !isScalar(type) &&
           isAddedTo(arg);
  };
  return llvm::any_of(llvm::zip_equal(starts, loop->getOperandTypes()),
                      [&](auto carry) {
                        auto [arg, type] = carry;
                        return arg && isLearned(*arg, type);
                      });
}

/// Finds the state that loops over whole steps carry: all of their values that
/// start as arguments. Of other loops these are averages, and what is no float.
void SignatureAnalyzer::markCarriedState() {
  // The arguments that values start as which outer loops carry.
  DenseMap<Value, unsigned> argOfCarried;
  auto startOf = [&](Value initial) -> std::optional<unsigned> {
    if (auto it = argOfCarried.find(initial); it != argOfCarried.end())
      return it->second;
    return argumentIndex(initial);
  };
  func.walk<WalkOrder::PreOrder>([&](stablehlo::WhileOp loop) {
    auto starts = llvm::map_to_vector(loop->getOperands(), startOf);
    bool trains = runsOverWholeSteps(loop, starts);
    for (auto [i, arg] : llvm::enumerate(starts)) {
      if (!arg || (!trains && !resultOfArg[*arg]))
        continue;
      bool averages = resultOfArg[*arg] && isAveraged(*arg);
      if (!trains && !averages && isFloat(loop->getOperand(i).getType()))
        continue;
      for (Region &region : loop->getRegions()) {
        carried.insert(region.getArgument(i));
        argOfCarried[region.getArgument(i)] = *arg;
      }
    }
  });
}

/// Finds the gradients in updates, and the values at which the forward pass
/// begins and ends because of them.
void SignatureAnalyzer::findGradients() {
  collectLearning();
  markCarriedState();
  barGradientFlags();
}

/// Makes flags that follow from gradients leaves of the forward pass: a loss
/// that is masked by whether all gradients are finite is still a loss.
void SignatureAnalyzer::barGradientFlags() {
  Dependence onGradients(func, gradientValues, carried, /*together=*/true,
                         updated);
  func.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isScalar(result.getType()) && elementOf(result).isInteger(1) &&
          onGradients.dependsOnAny(result))
        updated.insert(result);
  });
}

bool SignatureAnalyzer::trains() {
  if (options.functionKind != FunctionKind::Auto)
    return options.functionKind == FunctionKind::Step;
  // State that the user names is updated.
  if (!options.states.empty())
    return true;
  // A gradient must flow into a result, and another result must hold the loss.
  if (returned.size() < 2)
    return false;
  if (!learning.empty())
    return true;
  // An optimizer may do more with a gradient than sums and products.
  llvm::SmallDenseSet<unsigned> replaced;
  for (const SignatureArg &arg : signature.args)
    if (resultOfArg[arg.index] && isFloat(arg.type) && !isScalar(arg.type) &&
        returned[*resultOfArg[arg.index]] != argument(arg.index))
      replaced.insert(arg.index);
  return !findGradientDots(replaced).empty();
}

/// Finds everything that looks like the gradient of one of `params`: the
/// parameter is multiplied with both of its factors.
SmallVector<Value> SignatureAnalyzer::findGradientDots(
    const llvm::SmallDenseSet<unsigned> &params) {
  DenseMap<unsigned, SmallVector<unsigned>> withPartner;
  DenseMap<unsigned, Gradients::Factors> partners;
  for (unsigned arg : params) {
    partners[arg] = gradients.partnersOf(argument(arg));
    for (auto &[number, weight] : partners[arg])
      withPartner[number].push_back(arg);
  }
  SmallVector<Value> out;
  func.walk([&](stablehlo::DotGeneralOp dot) {
    int64_t elements = cast<ShapedType>(dot.getType()).getNumElements();
    Gradients::Factors factors = gradients.factorsOf(dot.getResult());
    for (auto &[number, weight] : factors)
      for (unsigned arg : withPartner.lookup(number))
        if (gradients.sizeOf(argument(arg)) == elements &&
            gradients.evidence(argument(arg), partners[arg], dot.getResult()) >=
                2) {
          out.push_back(dot.getResult());
          return;
        }
  });
  return out;
}

/// Whether a result has the type of a loss and is no state, but for a scalar
/// that nothing reads if that may be the loss: of the step before, kept in the
/// state.
bool SignatureAnalyzer::couldBeLoss(const SignatureResult &result) {
  std::optional<unsigned> arg = argOfResult[result.index];
  return isScalar(result.type) && isFloat(result.type) &&
         (!arg || (unreadMayBeLoss && argument(*arg).use_empty()));
}

/// Finds scalars that gradients could flow from to state that `learns`, and
/// that are not computed from gradients themselves (such as their norm). A loss
/// may read weights that the step has just updated for another loss.
std::vector<SignatureAnalyzer::Candidate>
SignatureAnalyzer::findLossCandidates(const Dependence &onGradients,
                                      function_ref<bool(unsigned)> learns) {
  std::vector<Candidate> candidates;
  for (const SignatureResult &result : signature.results) {
    if (!couldBeLoss(result) ||
        onGradients.dependsOnAny(returned[result.index]))
      continue;
    Candidate candidate{result.index, returned[result.index], {}, {}};
    candidate.gradient =
        differentiableSliceOf(candidate.value, carried, updated);
    for (const SignatureArg &arg : signature.args)
      if (resultOfArg[arg.index] && isFloat(arg.type) && learns(arg.index) &&
          candidate.gradient.contains(argument(arg.index)))
        candidate.params.push_back(arg.index);
    if (!candidate.params.empty())
      candidates.push_back(std::move(candidate));
  }
  return candidates;
}

/// Finds candidates for the state that gradients were found for. If there are
/// none, uses state whose next value depends on gradients: the loss may read
/// rounded copies of learned state, and the gradients may be those of another
/// loss.
std::vector<SignatureAnalyzer::Candidate>
SignatureAnalyzer::findLossCandidates() {
  Dependence onGradients(func, gradientValues, carried, /*together=*/true,
                         updated);
  std::vector<Candidate> candidates =
      findLossCandidates(onGradients, [&](unsigned arg) {
        return learning.empty() || learning.contains(arg);
      });
  if (!candidates.empty() || learning.empty())
    return candidates;
  Dependence onAll(func, gradientValues, carried, /*together=*/true);
  return findLossCandidates(onGradients, [&](unsigned arg) {
    return onAll.dependsOnAny(returned[*resultOfArg[arg]]);
  });
}

/// Returns the only scalar that depends on state, if there is one, though no
/// gradient that was recognized belongs to it. Forgets those gradients: they
/// are an optimizer's own products, such as the factors that Dion keeps.
std::vector<SignatureAnalyzer::Candidate>
SignatureAnalyzer::findOnlyCandidate() {
  std::vector<Candidate> candidates =
      findLossCandidates(Dependence(func, {}), [](unsigned) { return true; });
  if (candidates.size() != 1)
    return {};
  learning.clear();
  gradientValues.clear();
  return candidates;
}

/// If no gradient was recognized, drops candidates that read state which is no
/// parameter but a by-product of the forward pass, such as the hidden state of
/// a recurrent network: all values from which it is updated are also values
/// that the candidate is computed from, where a parameter's update has
/// gradients. If some state is updated from its old value, only such state is
/// looked at, and no copies of weights in another type.
void SignatureAnalyzer::dropHiddenStates(std::vector<Candidate> &candidates) {
  if (!learning.empty())
    return;
  auto updatesItself = [&](unsigned param) {
    return updateOf(param).count(argument(param)) > 0;
  };
  bool anyUpdates = llvm::any_of(candidates, [&](const Candidate &candidate) {
    return llvm::any_of(candidate.params, updatesItself);
  });
  llvm::erase_if(candidates, [&](const Candidate &candidate) {
    ValueSet slice = sliceOf({candidate.value}, carried);
    return llvm::any_of(candidate.params, [&](unsigned param) {
      if (anyUpdates && !updatesItself(param))
        return false;
      unsigned leaves = 0;
      for (auto &[source, reach] : updateOf(param)) {
        if (isa<BlockArgument>(source))
          continue;
        if (!slice.contains(source))
          return false;
        ++leaves;
      }
      return leaves > 0;
    });
  });
}

/// Drops scalars that do not depend on the batch, such as a norm of the
/// weights.
void SignatureAnalyzer::dropWithoutBatch(std::vector<Candidate> &candidates) {
  auto readsBatch = [&](const Candidate &candidate) {
    return onArguments.dependsOnAny(
        candidate.value, [&](unsigned arg) { return !resultOfArg[arg]; });
  };
  if (llvm::any_of(candidates, readsBatch))
    llvm::erase_if(candidates,
                   [&](const Candidate &c) { return !readsBatch(c); });
}

/// Returns everything from which the next state follows.
ValueSet SignatureAnalyzer::findUsedByUpdates() {
  SmallVector<Value> updates;
  for (const SignatureArg &arg : signature.args)
    if (resultOfArg[arg.index])
      updates.push_back(returned[*resultOfArg[arg.index]]);
  return sliceOf(updates, {});
}

/// Whether a scalar is another one times what parameters affect, too, and no
/// update reads either factor, as it would if a gradient passed through the
/// product.
bool SignatureAnalyzer::isUnusedProduct(const Candidate &outer,
                                        const Candidate &inner,
                                        const ValueSet &used) {
  auto isParam = [&](unsigned arg) {
    return llvm::is_contained(outer.params, arg);
  };
  return llvm::any_of(outer.gradient, [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<stablehlo::MulOp, stablehlo::DivOp>(op) ||
        !llvm::all_of(op->getOperands(), [&](Value factor) {
          return !used.contains(factor) && outer.gradient.contains(factor) &&
                 onArguments.dependsOnAny(factor, isParam);
        }))
      return false;
    return llvm::any_of(op->getOperands(), [&](Value factor) {
      return differentiableSliceOf(factor, carried, updated)
          .contains(inner.value);
    });
  });
}

/// Drops scalars that are related to others: a function of the loss alone
/// (perplexity) is a metric, and so are a term of the loss and a product with
/// it that no gradient passes through.
void SignatureAnalyzer::dropFunctionsOfOthers(
    std::vector<Candidate> &candidates) {
  auto bypasses = [&](const Candidate &outer, const Candidate &inner) {
    ValueSet barred(updated);
    barred.insert(inner.value);
    ValueSet rest = differentiableSliceOf(outer.value, carried, barred);
    return llvm::any_of(outer.params, [&](unsigned param) {
      return rest.contains(argument(param));
    });
  };
  ValueSet used = findUsedByUpdates();
  auto isDominated = [&](const Candidate &candidate) {
    return llvm::any_of(candidates, [&](const Candidate &other) {
      if (other.index == candidate.index || other.value == candidate.value)
        return false;
      if (candidate.gradient.contains(other.value))
        return !bypasses(candidate, other) ||
               isUnusedProduct(candidate, other, used);
      if (other.gradient.contains(candidate.value))
        return bypasses(other, candidate) &&
               !isUnusedProduct(other, candidate, used);
      return false;
    });
  };
  llvm::SmallDenseSet<unsigned> drop;
  for (const Candidate &candidate : candidates)
    if (isDominated(candidate))
      drop.insert(candidate.index);
  llvm::erase_if(candidates,
                 [&](const Candidate &c) { return drop.contains(c.index); });
}

/// Drops scalars that no gradient flowed from: a gradient through a nonlinear
/// function needs one of its operands or its result, but the updates use
/// neither.
void SignatureAnalyzer::dropUnused(std::vector<Candidate> &candidates) {
  ValueSet used = findUsedByUpdates();
  auto isRefuted = [&](const Candidate &candidate) {
    ValueSet seen{candidate.value};
    SmallVector<Value> stack{candidate.value};
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || (used.contains(value) && value != candidate.value))
        continue;
      if (isa<stablehlo::ExpOp, stablehlo::LogOp, stablehlo::SqrtOp,
              stablehlo::RsqrtOp, stablehlo::TanhOp, stablehlo::PowOp,
              chlo::SquareOp>(op) &&
          !used.contains(op->getOperand(0)) && !used.contains(value))
        return true;
      forEachSource(value, [&](Value source) {
        if (isFloat(source.getType()) && seen.insert(source).second)
          stack.push_back(source);
      });
    }
    return false;
  };
  if (!llvm::all_of(candidates, isRefuted))
    llvm::erase_if(candidates, isRefuted);
}

/// Drops scalars that are computed from gradients at which no update ends, such
/// as the norm of a first gradient that only moves the weights for a second
/// one.
void SignatureAnalyzer::dropAfterOthers(std::vector<Candidate> &candidates) {
  Dependence onOthers(func, findGradientDots(learning), carried,
                      /*together=*/true, updated);
  auto isAfter = [&](const Candidate &candidate) {
    return onOthers.dependsOnAny(candidate.value);
  };
  if (!llvm::all_of(candidates, isAfter))
    llvm::erase_if(candidates, isAfter);
}

void SignatureAnalyzer::keepMostParameters(std::vector<Candidate> &candidates) {
  size_t most = 0;
  for (const Candidate &candidate : candidates)
    most = std::max(most, candidate.params.size());
  llvm::erase_if(candidates,
                 [&](const Candidate &c) { return c.params.size() < most; });
}

/// Keeps the one with the name of a loss, if there is exactly one.
void SignatureAnalyzer::chooseByName(std::vector<Candidate> &candidates) {
  for (StringRef name : {"loss", "total_loss"}) {
    auto isNamed = [&](const Candidate &c) {
      return fp8binding::nameOf(signature.results[c.index].path) == name;
    };
    if (llvm::count_if(candidates, isNamed) != 1)
      continue;
    llvm::erase_if(candidates, [&](const Candidate &c) { return !isNamed(c); });
    lossWhy = "gradients could flow from several scalars; this one has the "
              "name of a loss";
    return;
  }
}

/// If each of several scalars is the only one that gradients of some state
/// could flow from, all are losses, for instance those of two players. The one
/// with the name of a loss, or else the first one, represents them.
void SignatureAnalyzer::chooseFirstOfSeveral(
    std::vector<Candidate> &candidates) {
  auto isNeeded = [&](const Candidate &candidate) {
    return llvm::any_of(candidate.params, [&](unsigned param) {
      return llvm::none_of(candidates, [&](const Candidate &other) {
        return other.index != candidate.index &&
               llvm::is_contained(other.params, param);
      });
    });
  };
  if (!llvm::all_of(candidates, isNeeded))
    return;
  chooseByName(candidates);
  if (candidates.size() == 1)
    return;
  // Prefer one that does not read weights which another one has updated.
  Dependence onGradients(func, gradientValues, carried, /*together=*/true);
  auto first = llvm::find_if(candidates, [&](const Candidate &candidate) {
    return !onGradients.dependsOnAny(candidate.value);
  });
  if (first != candidates.end())
    std::swap(*first, candidates.front());
  candidates.erase(candidates.begin() + 1, candidates.end());
  lossWhy =
      "the first of several scalars that gradients flow from to different "
      "parameters";
}

InFlightDiagnostic SignatureAnalyzer::emitNoLoss() {
  InFlightDiagnostic diag =
      emitError(func.getLoc())
      << (llvm::all_of(resultOfArg, [](auto &result) { return !result; })
              ? "no loss found: no argument is replaced by a result, so that "
                "this is no training step; scalar results are: "
              : "no loss found: expected a scalar floating-point result "
                "that is not state and that parameters are updated from; "
                "scalar results are: ");
  SmallVector<StringRef> names;
  for (const SignatureResult &result : signature.results)
    if (isScalar(result.type) && !argOfResult[result.index])
      names.push_back(result.path);
  llvm::interleaveComma(names, diag);
  diag << (names.empty()
               ? "none"
               : "; if the loss is one of them, name it with a loss option");
  addRetyped(diag);
  return diag;
}

/// Forgets gradients from which all scalars follow: they are part of the
/// forward pass. One step of a power iteration, by which a spectral norm
/// updates a vector, multiplies it with a weight and with the weight again, as
/// a gradient would. Returns false if there are none.
bool SignatureAnalyzer::forgetGradientsOfAllScalars() {
  SmallVector<Value> scalars;
  for (const SignatureResult &result : signature.results)
    if (couldBeLoss(result))
      scalars.push_back(returned[result.index]);
  for (Value gradient : gradientValues) {
    Dependence onIt(func, {gradient}, carried, /*together=*/true);
    if (llvm::all_of(scalars,
                     [&](Value value) { return onIt.dependsOnAny(value); }))
      inForwardPass.insert(gradient);
  }
  if (scalars.empty() || inForwardPass.empty() ||
      inForwardPass.size() == gradientValues.size())
    return false;
  learning.clear();
  gradientValues.clear();
  updated.clear();
  findGradients();
  return true;
}

LogicalResult SignatureAnalyzer::findLoss() {
  std::vector<Candidate> candidates = findLossCandidates();
  if (candidates.empty() && !loss) {
    unreadMayBeLoss = true;
    candidates = findLossCandidates();
  }
  if (candidates.empty() && !loss && forgetGradientsOfAllScalars())
    candidates = findLossCandidates();
  if (candidates.empty() && !loss)
    candidates = findOnlyCandidate();
  dropHiddenStates(candidates);
  dropWithoutBatch(candidates);
  if (!loss && failed(chooseLoss(candidates)))
    return failure();
  findOtherLosses(candidates);
  // The loss of the step before, which nothing reads, is no state.
  if (std::optional<unsigned> arg = argOfResult[*loss];
      arg && argument(*arg).use_empty())
    unpair(*arg);
  return success();
}

/// Filters the candidates, by the most reliable reason first, until one is
/// left.
LogicalResult SignatureAnalyzer::chooseLoss(std::vector<Candidate> candidates) {
  if (candidates.empty())
    return emitNoLoss();
  lossWhy = "gradients flow from it to the parameters";
  using Filter = void (SignatureAnalyzer::*)(std::vector<Candidate> &);
  constexpr Filter filters[] = {
      // Perplexity is a function of the loss, a regularizer a term of it.
      &SignatureAnalyzer::dropFunctionsOfOthers,
      // A differentiable accuracy has no gradient in any update.
      &SignatureAnalyzer::dropUnused,
      // The norm of a gradient that only moves weights for a second one.
      &SignatureAnalyzer::dropAfterOthers,
      // All are losses of different parameters: one represents them.
      &SignatureAnalyzer::chooseFirstOfSeveral,
      // The loss reaches all parameters that its parts reach, and more.
      &SignatureAnalyzer::keepMostParameters,
      // Only the name tells them apart.
      &SignatureAnalyzer::chooseByName,
  };
  for (Filter filter : filters)
    if (candidates.size() > 1)
      (this->*filter)(candidates);
  // One value that is returned under two names is not ambiguous.
  if (llvm::all_of(candidates, [&](const Candidate &c) {
        return c.value == candidates.front().value;
      }))
    candidates.erase(candidates.begin() + 1, candidates.end());
  if (candidates.size() > 1) {
    InFlightDiagnostic diag =
        emitError(func.getLoc())
        << "ambiguous loss: gradients could flow from any of: ";
    llvm::interleaveComma(candidates, diag, [&](const Candidate &c) {
      diag << signature.results[c.index].path;
    });
    diag << "; name it with a loss option";
    return diag;
  }
  loss = candidates.front().index;
  return success();
}

/// Returns the scalars that are computed from gradients of weights without
/// another product of arrays in between, such as the angle of two gradients.
llvm::SmallDenseSet<unsigned>
SignatureAnalyzer::findMetricsOfGradients(ArrayRef<Candidate> candidates) {
  llvm::SmallDenseSet<unsigned> params, metrics;
  for (const Candidate &candidate : candidates)
    params.insert_range(candidate.params);
  SmallVector<Value> weightGradients = findGradientDots(params);
  ValueSet barred(updated);
  func.walk([&](Operation *op) {
    if (isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp>(op) &&
        !isScalar(op->getResult(0).getType()))
      barred.insert(op->getResult(0));
  });
  for (Value gradient : weightGradients)
    barred.erase(gradient);
  for (const Candidate &candidate : candidates) {
    ValueSet slice = sliceOf({candidate.value}, carried, barred);
    if (llvm::any_of(weightGradients,
                     [&](Value value) { return slice.contains(value); }))
      metrics.insert(candidate.index);
  }
  return metrics;
}

/// Adds to the forward pass every scalar that an update could depend on and
/// that has dots which the loss does not have.
void SignatureAnalyzer::findOtherLosses(ArrayRef<Candidate> candidates) {
  ValueSet known = sliceOf({returned[*loss]}, carried, updated);
  llvm::SmallDenseSet<unsigned> metrics = findMetricsOfGradients(candidates);
  for (const Candidate &candidate : candidates) {
    ValueSet slice = sliceOf({candidate.value}, carried, updated);
    if (candidate.index != *loss && !metrics.contains(candidate.index) &&
        llvm::any_of(slice, [&](Value value) {
          return !known.contains(value) &&
                 isa_and_nonnull<stablehlo::DotGeneralOp,
                                 stablehlo::ConvolutionOp>(
                     value.getDefiningOp());
        }))
      otherLosses.insert(candidate.index);
  }
}

SmallVector<Value> SignatureAnalyzer::getLosses() {
  SmallVector<Value> losses{returned[*loss]};
  for (unsigned index : otherLosses)
    losses.push_back(returned[index]);
  return losses;
}
