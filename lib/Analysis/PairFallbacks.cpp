//===- PairFallbacks.cpp - Pairs of state without an update chain ---------===//

#include "SignatureAnalyzer.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the argument of which elements remain in a value, if the step writes
/// the others at places that are computed.
std::optional<unsigned> SignatureAnalyzer::findOverwritten(Value value) {
  bool isComputed = false;
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<stablehlo::DynamicUpdateSliceOp, stablehlo::ScatterOp>(
             op) &&
         op->getNumResults() == 1) {
    ValueRange places = op->getOperands().drop_front();
    places = isa<stablehlo::ScatterOp>(op) ? places.drop_back()
                                           : places.drop_front();
    isComputed |= llvm::any_of(
        places, [&](Value place) { return onArguments.dependsOnAny(place); });
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return isComputed ? argumentIndex(value) : std::nullopt;
}

/// Pairs state that is written in parts: a queue, a replay buffer, statistics
/// of the rows of a table. (Integers may be tokens of which some are masked,
/// and what is written at fixed places may be an image that is completed.)
void SignatureAnalyzer::pairWritten() {
  DenseMap<unsigned, SmallVector<unsigned>> writtenTo;
  for (const SignatureResult &result : signature.results) {
    if (!isFloat(result.type) || argOfResult[result.index])
      continue;
    auto arg = findOverwritten(returned[result.index]);
    if (arg && signature.args[*arg].type == result.type)
      writtenTo[*arg].push_back(result.index);
  }
  for (auto &[arg, results] : writtenTo)
    if (results.size() == 1 && !resultOfArg[arg] && !forcedRoles.count(arg))
      pair(arg, results.front(), "written in parts");
}

/// Pairs state that is shifted (a history) or of which parts are written. It
/// has no update chain, but only its next value reads it.
void SignatureAnalyzer::pairRest() {
  pairWritten();
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
