//===- AnalyzeSignature.cpp - Finds the roles of a step's values ----------===//

#include "Assignment.h"
#include "Gradients.h"
#include "Resets.h"
#include "UpdateChains.h"
#include "Usage.h"
#include "fp8-c/Runtime.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

/// The name in a location, through the locations that may wrap it.
static StringRef nameOf(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nameOf(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      if (StringRef name = nameOf(inner); !name.empty())
        return name;
  return {};
}

static std::string unique(std::string path, llvm::StringSet<> &taken) {
  std::string candidate = path;
  for (unsigned i = 2; !taken.insert(candidate).second; ++i)
    candidate = path + "#" + std::to_string(i);
  return candidate;
}

/// Finds the paths; true for arguments and results if any has a name.
static std::pair<bool, bool> findPaths(func::FuncOp func,
                                       Signature &signature) {
  bool argsAreNamed = false, resultsAreNamed = false;
  llvm::StringSet<> takenArgs, takenResults;
  for (BlockArgument arg : func.getArguments()) {
    SignatureArg entry;
    entry.index = arg.getArgNumber();
    entry.type = arg.getType();
    if (auto path = func.getArgAttrOfType<StringAttr>(entry.index, kPathAttr))
      entry.path = path.str();
    else
      entry.path = nameOf(arg.getLoc()).str();
    std::string unnamed = "arg" + std::to_string(entry.index);
    if (entry.path.empty())
      entry.path = unnamed;
    argsAreNamed |= entry.path != unnamed;
    entry.path = unique(entry.path, takenArgs);
    signature.args.push_back(std::move(entry));
  }
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    SignatureResult entry;
    entry.index = index;
    entry.type = type;
    for (StringRef name : {StringRef(kPathAttr), StringRef("jax.result_info")})
      if (auto path = func.getResultAttrOfType<StringAttr>(index, name);
          path && entry.path.empty())
        entry.path = path.str();
    std::string unnamed = "result" + std::to_string(index);
    if (entry.path.empty())
      entry.path = unnamed;
    resultsAreNamed |= entry.path != unnamed;
    entry.path = unique(entry.path, takenResults);
    signature.results.push_back(std::move(entry));
  }
  return {argsAreNamed, resultsAreNamed};
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

constexpr llvm::StringLiteral kSetByUser = "set by the user";

/// Whether two paths end alike.
static bool isSameLeaf(StringRef a, StringRef b) {
  return splitTreePath(a).back() == splitTreePath(b).back();
}

/// Whether the last two keys of two paths are the same.
static bool haveSamePlace(StringRef a, StringRef b) {
  SmallVector<std::string> first = splitTreePath(a), second = splitTreePath(b);
  return first.size() > 2 && second.size() > 2 &&
         ArrayRef(first).take_back(2) == ArrayRef(second).take_back(2);
}

namespace {
class Analyzer {
public:
  Analyzer(func::FuncOp func, const SignatureOptions &options)
      : func(func), options(options),
        returned(func.getBody().front().getTerminator()->getOperands()),
        onArguments(func, llvm::to_vector_of<Value>(func.getArguments())),
        gradients(func) {}

  FailureOr<Signature> run();

private:
  LogicalResult readOptions();
  LogicalResult pairState();
  double likeness(unsigned arg, unsigned result);
  double flowLikeness(unsigned arg, unsigned result);
  bool looksLikeOutput(unsigned arg, unsigned result, Reach self);
  void findFeeding();
  void findLearning();
  ValueSet findStepped(unsigned update);
  void findHomeless();
  void addHomes(unsigned arg, unsigned update);
  void addOldValues(unsigned arg, unsigned update);
  double hint(unsigned arg, unsigned result);
  void pairByTrees(ArrayRef<unsigned> args, ArrayRef<unsigned> results);
  void pairByFlow(ArrayRef<unsigned> args, ArrayRef<unsigned> results);
  void addByPlace(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
                  std::vector<WeightedPair> &pairs);
  void pairCopies();
  void pairRest();
  void pairLastValues();
  void pairByPlace();
  LogicalResult checkFrozen();
  bool meets(Value scalar, Value other);
  void pair(unsigned arg, unsigned result, const Twine &why);
  void unpair(unsigned arg);
  void reportAmbiguities(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
                         ArrayRef<Ambiguity> found);
  void findGradients();
  SmallVector<Value>
  findGradientDots(const llvm::SmallDenseSet<unsigned> &params);
  bool trains();
  /// What gradients of one scalar could flow to.
  struct Candidate {
    unsigned index;
    Value value;
    ValueSet gradient;
    SmallVector<unsigned> params;
  };
  std::vector<Candidate> findLossCandidates();
  void dropHiddenStates(std::vector<Candidate> &candidates);
  void dropWithoutBatch(std::vector<Candidate> &candidates);
  void dropFunctionsOfOthers(std::vector<Candidate> &candidates);
  void dropUnused(std::vector<Candidate> &candidates);
  void dropAfterOthers(std::vector<Candidate> &candidates);
  void keepMostParameters(std::vector<Candidate> &candidates);
  void chooseByName(std::vector<Candidate> &candidates);
  void chooseFirstOfSeveral(std::vector<Candidate> &candidates);
  InFlightDiagnostic emitNoLoss();
  LogicalResult findLoss();
  void findOtherLosses(ArrayRef<Candidate> candidates);
  SmallVector<Value> getLosses();
  void dropOutputs();
  void findStateKinds();
  void setKind(unsigned index, StateKind kind, const Twine &why);
  std::optional<unsigned> findFollowed(unsigned index);
  SmallVector<unsigned> findParameters();
  /// A parameter, and the argument that the optimizer updates for it.
  struct Trained {
    unsigned param, updated;
  };
  SmallVector<Trained> findTrained(ArrayRef<unsigned> params);
  /// State that a gradient feeds.
  struct Fed {
    unsigned arg, param;
    uint8_t degree;
    bool decays;
    /// By what it is multiplied each step; NaN if that is no constant.
    double decay;
    SmallVector<unsigned> others;

    bool isLinear() const { return degree % 2 == 1; }
  };
  SmallVector<Fed> findFed(ArrayRef<Trained> trained);
  DenseSet<unsigned> findAccumulators(ArrayRef<Fed> fed);
  void findMoments(ArrayRef<Fed> fed);
  std::optional<unsigned> findShown(unsigned arg);
  LogicalResult checkThatStateChanges();
  std::vector<ArgumentUse> findUses();
  void findOtherArgs();
  void readInitialValues();
  void findOtherResults();
  void describeFunction();

  /// The nearest of `names` to a path that does not exist, as a hint.
  template <typename Range>
  static std::string nearest(StringRef path, const Range &entries) {
    std::string best;
    unsigned distance = ~0u;
    for (const auto &entry : entries)
      if (unsigned d = StringRef(entry.path).edit_distance(path);
          d < distance) {
        distance = d;
        best = entry.path;
      }
    return best;
  }

  const Chain &updateOf(unsigned arg) { return chains.of(returned[*to[arg]]); }
  /// The index of a function's argument.
  std::optional<unsigned> argumentIndex(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &func.getBody().front())
      return std::nullopt;
    return argument.getArgNumber();
  }
  static StringRef rootOf(StringRef path) {
    return path.take_front(splitTreePath(path).front().size());
  }
  bool hasLeaf(const Chain &chain) {
    return llvm::any_of(
        chain, [&](auto &entry) { return !isa<BlockArgument>(entry.first); });
  }
  Value argument(unsigned index) { return func.getArgument(index); }

  func::FuncOp func;
  const SignatureOptions &options;
  OperandRange returned;
  Signature signature;
  UpdateChains chains;
  Dependence onArguments;
  Gradients gradients;
  bool argsAreNamed = false, resultsAreNamed = false;
  /// Arguments that some gradient depends on.
  std::vector<bool> feeding;
  /// By result: the arguments whose gradients its update chain ends at.
  SmallVector<SmallVector<unsigned, 2>> learnedBy;
  /// Arguments with a gradient in some result, and those that some result adds
  /// anything to.
  llvm::SmallDenseSet<unsigned> learned, stepping;
  /// By argument that only updates of others read: results that may replace it.
  DenseMap<unsigned, SmallVector<unsigned>> homes;
  /// Arguments with a gradient of their own in the value that replaces them,
  /// and these gradients.
  llvm::SmallDenseSet<unsigned> learning;
  SmallVector<Value> gradientValues;
  /// The next values of what learns.
  ValueSet updated;
  /// What loops over whole steps carry of the state.
  ValueSet carried;
  /// What the loss is computed from.
  ValueSet forward;
  /// For each argument the result that replaces it, and the other way around.
  SmallVector<std::optional<unsigned>> to, from;
  SmallVector<std::string> pairedBy;
  SmallVector<std::string> ambiguities;
  DenseMap<unsigned, ArgRole> forcedRoles;
  /// Arguments that are frozen for want of any evidence.
  llvm::SmallDenseSet<unsigned> undecided;
  std::optional<unsigned> loss;
  std::string lossWhy;
  /// Scalar results that gradients could flow from, too.
  std::set<unsigned> otherLosses;
};
} // namespace

LogicalResult Analyzer::readOptions() {
  for (auto &[path, roleText] : options.roles) {
    const SignatureArg *arg = signature.findArg(path);
    if (!arg)
      return emitError(func.getLoc())
             << "role: no argument has the path '" << path
             << "'; the nearest is '" << nearest(path, signature.args) << "'";
    std::optional<ArgRole> role = symbolizeArgRole(roleText);
    if (!role)
      return emitError(func.getLoc())
             << "role of '" << path
             << "': expected state, frozen, batch, key or "
                "constant but got '"
             << roleText << "'";
    forcedRoles[arg->index] = *role;
  }
  to.resize(signature.args.size());
  from.resize(signature.results.size());
  pairedBy.resize(signature.args.size());
  for (auto &[argPath, resultPath] : options.states) {
    const SignatureArg *arg = signature.findArg(argPath);
    if (!arg)
      return emitError(func.getLoc())
             << "state: no argument has the path '" << argPath
             << "'; the nearest is '" << nearest(argPath, signature.args)
             << "'";
    const SignatureResult *result = signature.findResult(resultPath);
    if (!result)
      return emitError(func.getLoc())
             << "state: no result has the path '" << resultPath
             << "'; the nearest is '" << nearest(resultPath, signature.results)
             << "'";
    if (arg->type != result->type)
      return emitError(func.getLoc())
             << "state: expected '" << resultPath << "' to have the type of '"
             << argPath << "', " << arg->type << ", but got " << result->type;
    to[arg->index] = result->index;
    from[result->index] = arg->index;
    pairedBy[arg->index] = kSetByUser.str();
  }
  if (!options.loss.empty()) {
    const SignatureResult *result = signature.findResult(options.loss);
    if (!result)
      return emitError(func.getLoc())
             << "loss: no result has the path '" << options.loss
             << "'; the nearest is '"
             << nearest(options.loss, signature.results) << "'";
    if (!isScalar(result->type) || !isFloat(result->type))
      return emitError(func.getLoc())
             << "loss: expected '" << options.loss
             << "' to be a scalar floating-point result but got "
             << result->type;
    loss = result->index;
    lossWhy = kSetByUser.str();
  }
  return success();
}

void Analyzer::pair(unsigned arg, unsigned result, const Twine &why) {
  to[arg] = result;
  from[result] = arg;
  pairedBy[arg] =
      ("replaced by " + signature.results[result].path + " (" + why + ")")
          .str();
}

void Analyzer::unpair(unsigned arg) {
  from[*to[arg]].reset();
  to[arg].reset();
  pairedBy[arg].clear();
}

LogicalResult Analyzer::pairState() {
  SmallVector<unsigned> args, results;
  for (const SignatureArg &arg : signature.args) {
    auto forced = forcedRoles.find(arg.index);
    if (!to[arg.index] &&
        (forced == forcedRoles.end() || forced->second == ArgRole::State))
      args.push_back(arg.index);
  }
  for (const SignatureResult &result : signature.results)
    if (!from[result.index] && (!loss || *loss != result.index))
      results.push_back(result.index);
  findFeeding();
  findLearning();
  findHomeless();
  if (argsAreNamed && resultsAreNamed)
    pairByTrees(args, results);
  else
    pairByFlow(args, results);
  pairCopies();
  pairRest();
  for (auto &[arg, role] : forcedRoles)
    if (role == ArgRole::State && !to[arg])
      return emitError(func.getLoc())
             << "role: no result replaces '" << signature.args[arg].path
             << "'; name it with a state option";
  return success();
}

void Analyzer::findFeeding() {
  feeding.assign(signature.args.size(), false);
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
        onArguments.dependsOnAny(source, [&](unsigned arg) {
          feeding[arg] = true;
          return false;
        });
  }
}

/// What the step returns beside state may add data and activations of one
/// shape: the difference of outputs and targets. An update of the targets would
/// depend on them through the gradient. Decaying averages of activations,
/// though, are state.
bool Analyzer::looksLikeOutput(unsigned arg, unsigned result, Reach self) {
  Value value = returned[result];
  if (isScalar(value.getType()) || !isFloat(value.getType()) ||
      value == argument(arg) || !feeding[arg])
    return false;
  const Chain &chain = chains.of(value);
  if (!hasLeaf(chain))
    return chain.size() == 1 && self.strength < 3;
  if (self.scaled)
    return false;
  return llvm::none_of(chain, [&](auto &entry) {
    return !isa<BlockArgument>(entry.first) &&
           onArguments.depends(entry.first, arg);
  });
}

/// Weights of pairs, beside the strength of an update chain. What is returned
/// as it came may be a metric: the step that this was.
constexpr double kReturnedAsItCame = 0.5;
/// The same where another result adds something to it.
constexpr double kOldValue = 0.1;
/// What an update reads and no chain leads on from: the last value of another
/// argument, say.
constexpr double kHome = 0.2;
/// The same place in trees of state, and nothing else.
constexpr double kSamePlace = 0.02;
/// What is subtracted: no state is replaced by its negative.
constexpr double kSubtracted = 0.05;
/// The strength of what an update reads through more than sums and factors.
constexpr double kNonlinear = 1;

/// How much a result looks like an update of an argument by its chain; 0 is not
/// at all.
double Analyzer::flowLikeness(unsigned arg, unsigned result) {
  const Chain &chain = chains.of(returned[result]);
  auto it = chain.find(argument(arg));
  if (it == chain.end())
    return 0;
  // What has a gradient and would never change is the old value of another
  // state: its last one, or what it returns to.
  if (returned[result] == argument(arg))
    return learned.contains(arg)    ? 0
           : stepping.contains(arg) ? kOldValue
                                    : kReturnedAsItCame;
  // A loss times its scale is no update of the scale; a float that follows from
  // other scalars alone is.
  auto isArray = [&](unsigned source) {
    return !isScalar(signature.args[source].type);
  };
  if (isScalar(signature.args[arg].type) && it->second.strength <= kNonlinear &&
      (!isFloat(signature.args[arg].type) ||
       onArguments.dependsOnAny(returned[result], isArray)))
    return 0;
  bool sameName =
      argsAreNamed && resultsAreNamed &&
      isSameLeaf(signature.args[arg].path, signature.results[result].path);
  if (!sameName && looksLikeOutput(arg, result, it->second))
    return 0;
  return it->second.sign < 0 ? kSubtracted : it->second.strength;
}

/// How much a result looks like the next value of an argument.
double Analyzer::likeness(unsigned arg, unsigned result) {
  if (signature.args[arg].type != signature.results[result].type)
    return 0;
  // A key is replaced by bits drawn from it.
  if (isKeyType(signature.args[arg].type) &&
      onArguments.depends(returned[result], arg) && drawsBits(argument(arg)))
    return 1;
  if (double flow = flowLikeness(arg, result))
    return flow;
  if (llvm::is_contained(homes.lookup(arg), result))
    return kHome;
  // What no gradient depends on is no data: a place of the same name may hold
  // its next value, however that is found.
  return !feeding[arg] && argsAreNamed && resultsAreNamed &&
                 haveSamePlace(signature.args[arg].path,
                               signature.results[result].path)
             ? kSamePlace
             : 0;
}

/// JAX donates by shape: never more than a tie-break.
double Analyzer::hint(unsigned arg, unsigned result) {
  auto hint = func.getArgAttrOfType<IntegerAttr>(arg, "tf.aliasing_output");
  return hint && hint.getInt() == int64_t(result) ? 1 : 0;
}

/// Finds the gradients of arguments in the update chains of results.
void Analyzer::findLearning() {
  learnedBy.resize(signature.results.size());
  DenseMap<unsigned, Gradients::Factors> partners;
  for (auto [r, value] : llvm::enumerate(returned)) {
    if (!isFloat(value.getType()))
      continue;
    const Chain &chain = chains.of(value);
    for (auto &entry : chain) {
      Value source = entry.first;
      auto arg = argumentIndex(source);
      if (!arg || source.getType() != value.getType())
        continue;
      auto [known, isNew] = partners.try_emplace(*arg);
      Gradients::Factors &own = known->second;
      if (isNew)
        own = gradients.partnersOf(source);
      if (llvm::none_of(chain, [&](auto &entry) {
            return !isa<BlockArgument>(entry.first) &&
                   gradients.evidence(source, own, entry.first) > 0;
          }))
        continue;
      learnedBy[r].push_back(*arg);
      learned.insert(*arg);
    }
    if (hasLeaf(chain) && !isScalar(value.getType()))
      for (auto &[source, reach] : chain)
        if (auto arg = argumentIndex(source);
            arg && reach.strength == 3 && !reach.scaled)
          stepping.insert(*arg);
  }
}

/// What an update steps by its gradients: those, or, where none reaches it,
/// what it is added to.
ValueSet Analyzer::findStepped(unsigned update) {
  ValueSet stepped;
  for (unsigned param : learnedBy[update])
    stepped.insert(argument(param));
  if (stepped.empty())
    for (auto &[source, reach] : chains.of(returned[update]))
      if (reach.strength == 3 && !reach.scaled && argumentIndex(source) &&
          source.getType() == returned[update].getType())
        stepped.insert(source);
  return stepped;
}

/// Finds where state may go that the update of a parameter reads: heavy ball's
/// last weights are replaced by weights as they came, Nesterov's by a step from
/// the other ones, the last gradient by the new one.
void Analyzer::findHomeless() {
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
                 flowLikeness(arg.index, result) > kNonlinear;
        }))
      continue;
    for (unsigned update : results)
      addHomes(arg.index, update);
    // What only decides how far to step, as the last point and gradient of a
    // Barzilai-Borwein rate do, is in no chain. Data has a part in gradients.
    if (results.empty() && !feeding[arg.index])
      for (unsigned update = 0; update < learnedBy.size(); ++update)
        if (!learnedBy[update].empty() &&
            returned[update].getType() == arg.type &&
            onArguments.depends(returned[update], arg.index))
          addHomes(arg.index, update);
  }
}

/// Adds the old values of what `update` reads beside `arg` as its homes: what a
/// step may go back to is where it was before.
void Analyzer::addOldValues(unsigned arg, unsigned update) {
  for (auto &[source, reach] : chains.of(returned[update])) {
    if (!argumentIndex(source) || source == argument(arg) ||
        source.getType() != argument(arg).getType())
      continue;
    for (unsigned result = 0; result < signature.results.size(); ++result)
      if (returned[result] == source && !llvm::is_contained(homes[arg], result))
        homes[arg].push_back(result);
  }
}

/// Adds the results that follow what `update` steps, or the gradients that it
/// steps by, as homes of `arg`.
void Analyzer::addHomes(unsigned arg, unsigned update) {
  const Chain &reader = chains.of(returned[update]);
  ValueSet stepped = findStepped(update);
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
        !chain.count(argument(arg)) && !llvm::is_contained(homes[arg], result))
      homes[arg].push_back(result);
  }
}

void Analyzer::pairByTrees(ArrayRef<unsigned> args,
                           ArrayRef<unsigned> results) {
  SmallVector<TreeLeaf> argLeaves, resultLeaves;
  for (unsigned arg : args)
    argLeaves.push_back({signature.args[arg].path, signature.args[arg].type});
  for (unsigned result : results)
    resultLeaves.push_back(
        {signature.results[result].path, signature.results[result].type});
  auto score = [&](unsigned arg, unsigned result) {
    return likeness(args[arg], results[result]);
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

void Analyzer::reportAmbiguities(ArrayRef<unsigned> args,
                                 ArrayRef<unsigned> results,
                                 ArrayRef<Ambiguity> found) {
  for (const Ambiguity &ambiguity : found) {
    std::string message = signature.args[args[ambiguity.from]].path + ": ";
    for (auto [i, result] : llvm::enumerate(ambiguity.to))
      message += (i ? ", " : "") + signature.results[results[result]].path;
    ambiguities.push_back(message);
  }
}

/// Without names: what updates share most, all together.
void Analyzer::pairByFlow(ArrayRef<unsigned> args, ArrayRef<unsigned> results) {
  DenseMap<unsigned, unsigned> position;
  SmallVector<unsigned> keys;
  for (auto [i, arg] : llvm::enumerate(args)) {
    position[arg] = i;
    if (isKeyType(signature.args[arg].type))
      keys.push_back(arg);
  }
  std::vector<WeightedPair> pairs;
  auto add = [&](unsigned arg, unsigned r) {
    if (double weight = likeness(arg, results[r]); weight > 0)
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
  for (auto &[arg, found] : homes)
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
  // Trees come out in the order that they went in, unless data flow says no.
  constexpr double kNearly = 0.97;
  std::vector<WeightedPair> possible(pairs);
  addByPlace(args, results, possible);
  auto inOrder = assignInOrder(args.size(), results.size(), possible);
  if (sumOf(pairs, inOrder) >= kNearly * sumOf(pairs, partners)) {
    partners = inOrder;
    found.clear();
  }
  for (auto [i, partner] : llvm::enumerate(partners))
    if (partner)
      pair(args[i], results[*partner], "update chain and type");
  reportAmbiguities(args, results, found);
}

/// Adds pairs of which nothing but the type is known, of what no gradient
/// depends on.
void Analyzer::addByPlace(ArrayRef<unsigned> args, ArrayRef<unsigned> results,
                          std::vector<WeightedPair> &pairs) {
  DenseSet<std::pair<unsigned, unsigned>> known;
  for (const WeightedPair &pair : pairs)
    known.insert({pair.from, pair.to});
  for (auto [i, arg] : llvm::enumerate(args))
    for (auto [r, result] : llvm::enumerate(results))
      if (!feeding[arg] &&
          signature.args[arg].type == signature.results[result].type &&
          onArguments.dependsOnAny(returned[result]) &&
          learnedBy[result].empty() && !known.contains({i, r}) &&
          !isKeyType(signature.args[arg].type))
        pairs.push_back({unsigned(i), unsigned(r), kSamePlace});
}

/// Weights in a narrow type are replaced by a conversion of the master copy's
/// update: no chain leads from one to the next. Which of them the gradient in
/// that update belongs to decides.
void Analyzer::pairCopies() {
  llvm::MapVector<Type, SmallVector<unsigned>> copies;
  for (const SignatureResult &result : signature.results) {
    if (from[result.index] || !isFloat(result.type) || isScalar(result.type) ||
        elementOf(returned[result.index]).getIntOrFloatBitWidth() > 16)
      continue;
    for (auto &[source, reach] : chains.of(returned[result.index]))
      if (auto arg = argumentIndex(source); arg && to[*arg] &&
                                            reach.strength == 3 &&
                                            source.getType() != result.type) {
        copies[result.type].push_back(result.index);
        break;
      }
  }
  for (auto &[type, results] : copies) {
    SmallVector<unsigned> args;
    for (const SignatureArg &arg : signature.args)
      if (!to[arg.index] && arg.type == type)
        args.push_back(arg.index);
    if (args.size() == 1 && results.size() == 1) {
      pair(args.front(), results.front(),
           "copy of other state, only one of its type");
      continue;
    }
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
    std::vector<Ambiguity> found;
    auto chosen = assignPairs(
        args.size(), pairs,
        [&, &results = results](unsigned a, unsigned b) {
          return returned[results[a]] == returned[results[b]];
        },
        found);
    for (auto [i, result] : llvm::enumerate(chosen))
      if (result)
        pair(args[i], results[*result],
             "copy of other state, which its gradient updates");
    reportAmbiguities(args, results, found);
    auto isFree = [&](unsigned arg) { return !to[arg]; };
    auto isUnclaimed = [&](unsigned result) { return !from[result]; };
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

/// State that is shifted or written to in places (a history, a queue) has no
/// update chain, but it is read for nothing else.
void Analyzer::pairRest() {
  SmallVector<SmallVector<unsigned>> readers(signature.args.size());
  for (const SignatureResult &result : signature.results)
    onArguments.dependsOnAny(returned[result.index], [&](unsigned arg) {
      if (readers[arg].size() < 2)
        readers[arg].push_back(result.index);
      return false;
    });
  SmallVector<unsigned> count(signature.results.size());
  auto fits = [&](const SignatureArg &arg) {
    return !to[arg.index] && !isScalar(arg.type) &&
           !forcedRoles.count(arg.index) && readers[arg.index].size() == 1 &&
           !from[readers[arg.index].front()] &&
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
  if (!argsAreNamed || !resultsAreNamed)
    pairByPlace();
}

/// Without names, what no gradient depends on and no result replaces is neither
/// data nor a frozen weight. Results of its type that replace nothing else
/// replace it: the only one, or by place if that agrees with all other pairs.
void Analyzer::pairByPlace() {
  bool inOrder = true;
  std::optional<unsigned> last;
  llvm::MapVector<Type, SmallVector<unsigned>> open;
  for (const SignatureArg &arg : signature.args) {
    if (std::optional<unsigned> result = to[arg.index]) {
      inOrder &= !last || *last < *result;
      last = result;
    } else if (isFloat(arg.type) && !isScalar(arg.type) &&
               !feeding[arg.index] && !forcedRoles.count(arg.index)) {
      open[arg.type].push_back(arg.index);
    }
  }
  for (auto &[type, args] : open) {
    SmallVector<unsigned> results;
    for (const SignatureResult &result : signature.results)
      if (!from[result.index] && result.type == type)
        results.push_back(result.index);
    if (args.size() != results.size() || (args.size() > 1 && !inOrder))
      continue;
    for (auto [arg, result] : llvm::zip(args, results))
      pair(arg, result,
           args.size() == 1 ? "no other of its type is left"
                            : "by place: no gradient depends on it");
  }
}

/// Without names, an array that is taken for frozen while the step returns
/// another one of its type may be state: that is no guess to make in silence.
LogicalResult Analyzer::checkFrozen() {
  for (const SignatureArg &arg : signature.args) {
    if (arg.role != ArgRole::Frozen || isScalar(arg.type) ||
        forcedRoles.count(arg.index))
      continue;
    SmallVector<StringRef> results;
    for (const SignatureResult &result : signature.results)
      if (!from[result.index] && result.type == arg.type &&
          onArguments.depends(returned[result.index], arg.index))
        results.push_back(result.path);
    if (results.empty())
      continue;
    InFlightDiagnostic diag = emitError(func.getLoc())
                              << "ambiguous state: '" << arg.path
                              << "' is frozen, or replaced by one of ";
    llvm::interleaveComma(ArrayRef(results).take_front(4), diag);
    return diag << "; choose with a state or role option, or export with "
                   "debug_info=True, which has names";
  }
  return success();
}

/// A scalar that a number is compared with, where the step returns that number
/// twice: one is the next call's scalar, the last loss.
void Analyzer::pairLastValues() {
  for (const SignatureArg &arg : signature.args) {
    if (to[arg.index] || !isScalar(arg.type) || !isFloat(arg.type) ||
        forcedRoles.count(arg.index))
      continue;
    SmallVector<unsigned> same;
    for (const SignatureResult &result : signature.results)
      if (result.type == arg.type && !from[result.index] &&
          (!loss || *loss != result.index) &&
          meets(argument(arg.index), returned[result.index]))
        same.push_back(result.index);
    if (same.size() != 2 || returned[same[0]] != returned[same[1]])
      continue;
    // The one that stands beside the other state.
    bool firstIsBeside =
        (arg.index > 0 && same[0] > 0 && to[arg.index - 1] == same[0] - 1) ||
        (arg.index + 1 < to.size() && to[arg.index + 1] == same[0] + 1);
    pair(arg.index, same[firstIsBeside ? 0 : 1],
         "it is compared with this number, which is returned twice");
  }
}

/// Whether an op compares a scalar with another one, perhaps times constants.
bool Analyzer::meets(Value scalar, Value other) {
  SmallVector<Value> stack{scalar};
  ValueSet seen{scalar};
  while (!stack.empty())
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (llvm::is_contained(user->getOperands(), other))
        return true;
      if (isa<stablehlo::MulOp, stablehlo::AddOp, stablehlo::SubtractOp,
              stablehlo::DivOp, stablehlo::ConvertOp>(user) &&
          seen.insert(user->getResult(0)).second)
        stack.push_back(user->getResult(0));
    }
  return false;
}

/// Finds the gradients in updates, and the state that loops over whole steps
/// carry.
void Analyzer::findGradients() {
  ValueSet seen;
  for (const SignatureArg &arg : signature.args) {
    if (!to[arg.index] || !isFloat(arg.type))
      continue;
    Gradients::Factors partners = gradients.partnersOf(argument(arg.index));
    if (partners.empty())
      continue;
    for (auto &[source, reach] : updateOf(arg.index))
      if (!isa<BlockArgument>(source) &&
          gradients.evidence(argument(arg.index), partners, source) > 0) {
        learning.insert(arg.index);
        if (Value next = returned[*to[arg.index]]; !isa<BlockArgument>(next))
          updated.insert(next);
        if (seen.insert(source).second)
          gradientValues.push_back(source);
      }
  }
  func.walk([&](stablehlo::WhileOp loop) {
    auto stateOf = [&](Value initial) -> std::optional<unsigned> {
      auto arg = argumentIndex(initial);
      return arg && to[*arg] ? arg : std::nullopt;
    };
    // A loop that carries what learns runs over whole steps.
    bool trains = llvm::any_of(loop->getOperands(), [&](Value initial) {
      auto arg = stateOf(initial);
      return arg && learning.contains(*arg);
    });
    for (auto [i, initial] : llvm::enumerate(loop->getOperands())) {
      auto arg = stateOf(initial);
      if (!arg)
        continue;
      const Chain &chain = updateOf(*arg);
      auto self = chain.find(initial);
      bool averages = self != chain.end() && self->second.scaled;
      if (trains || averages || !isFloat(initial.getType()))
        for (Region &region : loop->getRegions())
          carried.insert(region.getArgument(i));
    }
  });
}

bool Analyzer::trains() {
  if (options.functionKind != FunctionKind::Auto)
    return options.functionKind == FunctionKind::Step;
  // What the user says is state is updated.
  if (!options.states.empty())
    return true;
  // A gradient must flow into a result, and another result carry the loss.
  if (returned.size() < 2)
    return false;
  if (!learning.empty())
    return true;
  // An optimizer may do more with a gradient than sums and factors.
  llvm::SmallDenseSet<unsigned> replaced;
  for (const SignatureArg &arg : signature.args)
    if (to[arg.index] && isFloat(arg.type) && !isScalar(arg.type) &&
        returned[*to[arg.index]] != argument(arg.index))
      replaced.insert(arg.index);
  return !findGradientDots(replaced).empty();
}

/// Everything that looks like the gradient of one of `params`: both its factors
/// are what the parameter is multiplied with.
SmallVector<Value>
Analyzer::findGradientDots(const llvm::SmallDenseSet<unsigned> &params) {
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
        if (cast<ShapedType>(signature.args[arg].type).getNumElements() ==
                elements &&
            gradients.evidence(argument(arg), partners[arg], dot.getResult()) >=
                2) {
          out.push_back(dot.getResult());
          return;
        }
  });
  return out;
}

/// Scalars that gradients could flow from to state, and that are not computed
/// from gradients themselves (their norm). A loss may read weights that the
/// step has just updated for another one.
std::vector<Analyzer::Candidate> Analyzer::findLossCandidates() {
  Dependence onGradients(func, gradientValues, carried, /*together=*/true,
                         updated);
  std::vector<Candidate> candidates;
  for (const SignatureResult &result : signature.results) {
    if (from[result.index] || !isScalar(result.type) || !isFloat(result.type) ||
        onGradients.dependsOnAny(returned[result.index]))
      continue;
    Candidate candidate{result.index, returned[result.index], {}, {}};
    candidate.gradient =
        differentiableSliceOf(candidate.value, carried, updated);
    for (const SignatureArg &arg : signature.args)
      if (to[arg.index] && isFloat(arg.type) &&
          (learning.empty() || learning.contains(arg.index)) &&
          candidate.gradient.contains(argument(arg.index)))
        candidate.params.push_back(arg.index);
    if (!candidate.params.empty())
      candidates.push_back(std::move(candidate));
  }
  return candidates;
}

/// Where no gradient was recognized, they are where update chains end. State
/// that is no update of itself (a hidden state) ends at no gradient; copies of
/// weights in another type only count if there is nothing else.
void Analyzer::dropHiddenStates(std::vector<Candidate> &candidates) {
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

/// Not what is computed without the batch: the norm of the weights.
void Analyzer::dropWithoutBatch(std::vector<Candidate> &candidates) {
  auto readsBatch = [&](const Candidate &candidate) {
    return onArguments.dependsOnAny(candidate.value,
                                    [&](unsigned arg) { return !to[arg]; });
  };
  if (llvm::any_of(candidates, readsBatch))
    llvm::erase_if(candidates,
                   [&](const Candidate &c) { return !readsBatch(c); });
}

/// Of two where one is computed from the other: a function of the loss alone
/// (perplexity) is a metric, and so is a term of a sum.
void Analyzer::dropFunctionsOfOthers(std::vector<Candidate> &candidates) {
  auto bypasses = [&](const Candidate &outer, const Candidate &inner) {
    ValueSet barred(updated);
    barred.insert(inner.value);
    ValueSet rest = differentiableSliceOf(outer.value, carried, barred);
    return llvm::any_of(outer.params, [&](unsigned param) {
      return rest.contains(argument(param));
    });
  };
  auto isDominated = [&](const Candidate &candidate) {
    return llvm::any_of(candidates, [&](const Candidate &other) {
      if (other.index == candidate.index || other.value == candidate.value)
        return false;
      if (candidate.gradient.contains(other.value))
        return !bypasses(candidate, other);
      if (other.gradient.contains(candidate.value))
        return bypasses(other, candidate);
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

/// A gradient through a nonlinear function needs one of its operands or its
/// result: where the updates use neither, no gradient flowed.
void Analyzer::dropUnused(std::vector<Candidate> &candidates) {
  SmallVector<Value> updates;
  for (const SignatureArg &arg : signature.args)
    if (to[arg.index])
      updates.push_back(returned[*to[arg.index]]);
  ValueSet used = sliceOf(updates, {});
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

/// Not what is computed from gradients that no update ends at: the norm of a
/// first gradient that only moves the weights for a second one.
void Analyzer::dropAfterOthers(std::vector<Candidate> &candidates) {
  Dependence onOthers(func, findGradientDots(learning), carried,
                      /*together=*/true, updated);
  auto isAfter = [&](const Candidate &candidate) {
    return onOthers.dependsOnAny(candidate.value);
  };
  if (!llvm::all_of(candidates, isAfter))
    llvm::erase_if(candidates, isAfter);
}

void Analyzer::keepMostParameters(std::vector<Candidate> &candidates) {
  size_t most = 0;
  for (const Candidate &candidate : candidates)
    most = std::max(most, candidate.params.size());
  llvm::erase_if(candidates,
                 [&](const Candidate &c) { return c.params.size() < most; });
}

/// The one that has the name of a loss, if only one has.
void Analyzer::chooseByName(std::vector<Candidate> &candidates) {
  for (StringRef name : {"loss", "total_loss"}) {
    auto isNamed = [&](const Candidate &c) {
      SmallVector<std::string> parts =
          splitTreePath(signature.results[c.index].path);
      return StringRef(parts.back()).trim("[]'\".") == name;
    };
    if (llvm::count_if(candidates, isNamed) != 1)
      continue;
    llvm::erase_if(candidates, [&](const Candidate &c) { return !isNamed(c); });
    lossWhy = "gradients could flow from several scalars; this one has the "
              "name of a loss";
    return;
  }
}

/// Where each of several scalars is the only one that gradients of some state
/// could flow from, all are losses: those of two players, say. The one with the
/// name of a loss, or else the first one, stands for them.
void Analyzer::chooseFirstOfSeveral(std::vector<Candidate> &candidates) {
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
  // Rather one that reads no weights which another one has updated.
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

InFlightDiagnostic Analyzer::emitNoLoss() {
  InFlightDiagnostic diag =
      emitError(func.getLoc())
      << (llvm::all_of(to, [](auto &result) { return !result; })
              ? "no loss found: no argument is replaced by a result, so that "
                "this is no training step; scalar results are: "
              : "no loss found: expected a scalar floating-point result "
                "that is not state and that parameters are updated from; "
                "scalar results are: ");
  SmallVector<StringRef> names;
  for (const SignatureResult &result : signature.results)
    if (isScalar(result.type) && !from[result.index])
      names.push_back(result.path);
  if (names.empty())
    diag << "none";
  llvm::interleaveComma(names, diag);
  return diag;
}

LogicalResult Analyzer::findLoss() {
  std::vector<Candidate> all = findLossCandidates();
  dropHiddenStates(all);
  dropWithoutBatch(all);
  if (!loss) {
    if (all.empty())
      return emitNoLoss();
    lossWhy = "gradients flow from it to the parameters";
    std::vector<Candidate> candidates(all);
    using Filter = void (Analyzer::*)(std::vector<Candidate> &);
    for (Filter filter :
         {&Analyzer::dropFunctionsOfOthers, &Analyzer::dropUnused,
          &Analyzer::dropAfterOthers, &Analyzer::chooseFirstOfSeveral,
          &Analyzer::keepMostParameters, &Analyzer::chooseByName})
      if (candidates.size() > 1)
        (this->*filter)(candidates);
    // One value returned under two names is no ambiguity.
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
  }
  findOtherLosses(all);
  return success();
}

/// Every scalar that an update could follow from belongs to the forward pass:
/// those of dots that the loss does not have.
void Analyzer::findOtherLosses(ArrayRef<Candidate> candidates) {
  ValueSet known = sliceOf({returned[*loss]}, carried, updated);
  for (const Candidate &candidate : candidates) {
    ValueSet slice = sliceOf({candidate.value}, carried, updated);
    if (candidate.index != *loss && llvm::any_of(slice, [&](Value value) {
          return !known.contains(value) &&
                 isa_and_nonnull<stablehlo::DotGeneralOp,
                                 stablehlo::ConvolutionOp>(
                     value.getDefiningOp());
        }))
      otherLosses.insert(candidate.index);
  }
}

SmallVector<Value> Analyzer::getLosses() {
  SmallVector<Value> losses{returned[*loss]};
  for (unsigned index : otherLosses)
    losses.push_back(returned[index]);
  return losses;
}

/// Takes back what only looked like state as long as the loss was unknown: data
/// that is returned as it came, and sums of data and activations.
void Analyzer::dropOutputs() {
  forward = sliceOf(getLosses(), carried, updated);
  // The subtrees with state that changes: what came with a name belongs there.
  llvm::StringSet<> changing;
  auto forEachSubtree = [](StringRef path, auto visit) {
    SmallVector<std::string> parts = splitTreePath(path);
    size_t length = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      length += parts[i].size();
      // The root may be the tuple of all arguments.
      if (i > 0 || parts.size() == 2)
        visit(path.take_front(length));
    }
  };
  if (argsAreNamed && resultsAreNamed)
    for (const SignatureArg &arg : signature.args)
      if (to[arg.index] && returned[*to[arg.index]] != argument(arg.index))
        forEachSubtree(arg.path,
                       [&](StringRef subtree) { changing.insert(subtree); });
  std::vector<ArgumentUse> uses = findUses();
  for (const SignatureArg &arg : signature.args) {
    unsigned index = arg.index;
    if (!to[index] || isScalar(arg.type) || isKeyType(arg.type) ||
        pairedBy[index] == kSetByUser || learning.contains(index) ||
        !forward.contains(argument(index)))
      continue;
    bool named = false;
    forEachSubtree(arg.path, [&](StringRef subtree) {
      named |= changing.contains(subtree);
    });
    if (returned[*to[index]] == argument(index)) {
      if (!named && (!isFloat(arg.type) || uses[index] == ArgumentUse::Data))
        unpair(index);
      continue;
    }
    const Chain &chain = updateOf(index);
    auto self = chain.find(argument(index));
    if (self == chain.end() || !isFloat(arg.type) || self->second.scaled ||
        !hasLeaf(chain) ||
        isSameLeaf(arg.path, signature.results[*to[index]].path))
      continue;
    if (llvm::all_of(chain, [&](auto &entry) {
          return isa<BlockArgument>(entry.first) ||
                 forward.contains(entry.first);
        }))
      unpair(index);
  }
}

void Analyzer::setKind(unsigned index, StateKind kind, const Twine &why) {
  SignatureArg &arg = signature.args[index];
  arg.kind = kind;
  arg.why = (why + "; " + pairedBy[index]).str();
}

/// The parameter whose weights state follows: its average or, from time to
/// time, its copy. The gradient in it is that of the parameter's update.
std::optional<unsigned> Analyzer::findFollowed(unsigned index) {
  const Chain &own = updateOf(index);
  auto self = own.find(argument(index));
  if (self == own.end())
    return std::nullopt;
  for (auto &[source, reach] : own) {
    auto other = argumentIndex(source);
    if (!other || *other == index || !learning.contains(*other) ||
        source.getType() != argument(index).getType())
      continue;
    const Chain &update = updateOf(*other);
    bool isItsGradient = llvm::all_of(own, [&](auto &entry) {
      return isa<BlockArgument>(entry.first) || update.count(entry.first);
    });
    // What the update reads may as well be a moment that weights decay into;
    // the parts of an average add up to one.
    bool isAverage = std::abs(self->second.factor + reach.factor - 1) < 1e-3;
    if (isItsGradient && update.count(source) &&
        (isAverage || !update.count(argument(index))))
      return other;
  }
  return std::nullopt;
}

/// Parameters are what gradients flow to, and what is computed from these.
SmallVector<unsigned> Analyzer::findParameters() {
  ValueSet gradient;
  for (Value value : getLosses())
    gradient.insert_range(differentiableSliceOf(value, carried, updated));
  // What is replaced by a value of the forward pass is a hidden state.
  auto isForward = [&](const Chain &chain) {
    return hasLeaf(chain) && llvm::all_of(chain, [&](auto &entry) {
             return isa<BlockArgument>(entry.first) ||
                    forward.contains(entry.first);
           });
  };
  SmallVector<unsigned> params;
  for (SignatureArg &arg : signature.args) {
    if (!to[arg.index])
      continue;
    arg.role = ArgRole::State;
    setKind(arg.index, StateKind::Other, "none of the known kinds of state");
    const Chain &chain = updateOf(arg.index);
    if (isFloat(arg.type)) {
      if (auto followed = findFollowed(arg.index)) {
        setKind(arg.index, StateKind::Average,
                "follows the weights of " + signature.args[*followed].path);
        continue;
      }
      bool isRead = gradient.contains(argument(arg.index));
      if ((isRead || learning.contains(arg.index)) &&
          (!isScalar(arg.type) || hasLeaf(chain)) && !isForward(chain)) {
        setKind(arg.index, StateKind::Parameter,
                isRead ? "the loss depends on it"
                       : "its gradient updates it, of a loss that is not "
                         "returned");
        params.push_back(arg.index);
      }
      continue;
    }
    auto self = chain.find(argument(arg.index));
    if (isScalar(arg.type) && !elementOf(argument(arg.index)).isInteger(1) &&
        self != chain.end() && self->second.strength >= 2 && !hasLeaf(chain) &&
        returned[*to[arg.index]] != argument(arg.index))
      setKind(arg.index, StateKind::Step, "a counter");
  }
  return params;
}

/// What the optimizer updates: parameters, or the master copies that their new
/// values are converted from.
SmallVector<Analyzer::Trained>
Analyzer::findTrained(ArrayRef<unsigned> params) {
  SmallVector<Trained> trained;
  for (unsigned param : params) {
    const Chain &chain = updateOf(param);
    if (chain.count(argument(param))) {
      trained.push_back({param, param});
      continue;
    }
    for (auto &[source, reach] : chain) {
      auto master = argumentIndex(source);
      if (!master || reach.strength < 3 || !to[*master])
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

/// State of a parameter's shape that is fed by the same gradient, and that the
/// parameter's update reads, times a rate. What reads other state as well is an
/// average of weights, or reads gradients out of an accumulator, or divided by
/// another moment.
SmallVector<Analyzer::Fed> Analyzer::findFed(ArrayRef<Trained> trained) {
  SmallVector<Fed> fed;
  DenseMap<unsigned, SmallVector<Trained>> readBy;
  for (const Trained &entry : trained)
    for (auto &[source, reach] : updateOf(entry.updated))
      if (auto arg = argumentIndex(source);
          arg && *arg != entry.updated && reach.strength < 3)
        readBy[*arg].push_back(entry);
  for (SignatureArg &arg : signature.args) {
    if (!to[arg.index] || !isFloat(arg.type) ||
        arg.kind == StateKind::Parameter || arg.kind == StateKind::Average)
      continue;
    const Chain &chain = updateOf(arg.index);
    auto self = chain.find(argument(arg.index));
    if (self == chain.end())
      continue;
    for (auto [param, updated] : readBy[arg.index]) {
      // Weights that follow others do not decay, as a moment that weights decay
      // into does.
      bool follows = chain.count(argument(updated)) && !self->second.scaled;
      if (follows || shapeOf(arg.type) != shapeOf(signature.args[param].type))
        continue;
      const Chain &update = updateOf(updated);
      Fed entry{arg.index,           param, 0, self->second.decays,
                self->second.factor, {}};
      for (auto &[source, reach] : chain) {
        if (auto other = argumentIndex(source)) {
          if (*other != arg.index && *other != updated)
            entry.others.push_back(*other);
        } else if (update.count(source)) {
          entry.degree = std::max(entry.degree, reach.degree);
        }
      }
      if (entry.degree > 0)
        fed.push_back(entry);
      break;
    }
  }
  return fed;
}

/// Sums of gradients over several calls.
DenseSet<unsigned> Analyzer::findAccumulators(ArrayRef<Fed> fed) {
  DenseSet<unsigned> linear, sums, readByLinear, accumulators;
  for (const Fed &entry : fed)
    if (entry.degree == 1 && entry.others.empty())
      (entry.decays ? linear : sums).insert(entry.arg);
  // What the square and another linear one read, or what never decays, is a sum
  // of gradients. Reading the first moment instead, its distance to the
  // gradient, is no matter.
  for (const Fed &entry : fed)
    if (entry.degree == 1)
      readByLinear.insert(entry.others.begin(), entry.others.end());
  for (const Fed &entry : fed)
    if (entry.degree > 1)
      for (unsigned other : entry.others)
        if (sums.contains(other) ||
            (linear.contains(other) && readByLinear.contains(other)))
          accumulators.insert(other);
  // So is what starts from zero again, and does not decay before.
  for (const Fed &entry : fed)
    if (entry.degree == 1 && entry.others.empty())
      if (Value before = getBeforeReset(returned[*to[entry.arg]])) {
        const Chain &chain = chains.of(before);
        auto self = chain.find(argument(entry.arg));
        if (self != chain.end() && !self->second.decays)
          accumulators.insert(entry.arg);
      }
  return accumulators;
}

/// An average over more steps than a narrow format can follow: what is added is
/// less than half of the distance of its numbers.
static bool isSlow(double decay) { return decay > 0.995; }

void Analyzer::findMoments(ArrayRef<Fed> fed) {
  DenseSet<unsigned> accumulators = findAccumulators(fed), linear, squares;
  for (const Fed &entry : fed)
    if (entry.degree == 1 && entry.decays && entry.others.empty())
      linear.insert(entry.arg);
  for (const Fed &entry : fed)
    if (!entry.isLinear() && llvm::all_of(entry.others, [&](unsigned other) {
          return accumulators.contains(other) || linear.contains(other);
        }))
      squares.insert(entry.arg);
  // A moment decays, and gradients alone feed it. What steps by the gradient
  // and stays is weights, or a sum over the whole training.
  auto isFirstMoment = [&](const Fed &entry) {
    return entry.isLinear() && entry.decays &&
           !accumulators.contains(entry.arg) && !isSlow(entry.decay) &&
           llvm::all_of(entry.others, [&](unsigned other) {
             return accumulators.contains(other) || squares.contains(other);
           });
  };
  auto setOwned = [&](const Fed &entry, StateKind kind, StringRef why) {
    const std::string &param = signature.args[entry.param].path;
    setKind(entry.arg, kind, why + param);
    signature.args[entry.arg].parameter = param;
  };
  for (const Fed &entry : fed) {
    // Of two averages of one gradient the one with a constant decay is the
    // moment; the decay of the other one is scheduled, for it is slow.
    bool isOther = llvm::any_of(fed, [&](const Fed &other) {
      return other.arg != entry.arg && other.param == entry.param &&
             isFirstMoment(other) && std::isnan(entry.decay) &&
             !std::isnan(other.decay);
    });
    if (accumulators.contains(entry.arg))
      setOwned(entry, StateKind::Gradient, "accumulates the gradient of ");
    else if (squares.contains(entry.arg))
      setOwned(entry, StateKind::Moment2, "square of the gradient of ");
    else if (isFirstMoment(entry) && !isOther)
      setOwned(entry, StateKind::Moment1, "linear in the gradient of ");
    else if (entry.isLinear() && entry.decays && entry.others.empty())
      setKind(entry.arg, StateKind::Other,
              "a slow average of the gradient of " +
                  signature.args[entry.param].path);
    else if (entry.isLinear() && !entry.decays && entry.others.empty())
      setKind(entry.arg, StateKind::Other,
              "steps by the gradient of " + signature.args[entry.param].path +
                  " and does not decay");
  }
}

void Analyzer::findStateKinds() {
  SmallVector<unsigned> params = findParameters();
  findMoments(findFed(findTrained(params)));
}

/// The argument that replaces an argument of the next step as it came.
std::optional<unsigned> Analyzer::findShown(unsigned arg) {
  Value value = returned[*to[arg]];
  while (auto barrier = value.getDefiningOp<stablehlo::OptimizationBarrierOp>())
    value = barrier->getOperand(cast<OpResult>(value).getResultNumber());
  return argumentIndex(value);
}

/// Whatever the evidence was: a step that makes no new parameter is paired
/// wrongly. State that never changes is named.
LogicalResult Analyzer::checkThatStateChanges() {
  bool anyParameter = false, anyChanges = false;
  std::string wrong;
  for (SignatureArg &arg : signature.args) {
    if (arg.role != ArgRole::State || !to[arg.index])
      continue;
    std::optional<unsigned> shown = findShown(arg.index);
    if (shown == arg.index)
      arg.why = "never changes; " + arg.why;
    if (arg.kind != StateKind::Parameter)
      continue;
    anyParameter = true;
    anyChanges |= !shown;
    if (shown && wrong.empty())
      wrong = "'" + arg.path + "' would be replaced by '" +
              signature.results[*to[arg.index]].path +
              "', which is the old value of '" + signature.args[*shown].path +
              "'";
  }
  if (!anyParameter || anyChanges)
    return success();
  return emitError(func.getLoc())
         << "no parameter changes in the step: " << wrong
         << "; choose what replaces it with a state option";
}

/// What tells data from weights among arguments that no result replaces.
std::vector<ArgumentUse> Analyzer::findUses() {
  std::vector<ArgumentUse> uses;
  for (const SignatureArg &arg : signature.args) {
    bool returnedAsIs =
        to[arg.index] && returned[*to[arg.index]] == argument(arg.index);
    if (isScalar(arg.type) || isKeyType(arg.type))
      uses.push_back(ArgumentUse::Neither);
    else if (to[arg.index] && !(returnedAsIs && isFloat(arg.type)))
      uses.push_back(ArgumentUse::Weights);
    else if (!isFloat(arg.type))
      uses.push_back(ArgumentUse::Data);
    else
      uses.push_back(ArgumentUse::Unknown);
  }
  findArgumentUses(func, forward, onArguments, uses);
  // The loss that is returned may be another than the one that gradients flow
  // from: without the weights of its terms, say.
  std::vector<ArgumentUse> hidden(uses);
  for (const SignatureArg &arg : signature.args)
    if (forward.contains(argument(arg.index)) &&
        hidden[arg.index] == ArgumentUse::Unknown)
      hidden[arg.index] = ArgumentUse::Neither;
  findArgumentUses(func, sliceOf(gradientValues, carried), onArguments, hidden);
  for (auto [use, found] : llvm::zip(uses, hidden))
    if (use == ArgumentUse::Unknown && found != ArgumentUse::Neither)
      use = found;
  return uses;
}

void Analyzer::findOtherArgs() {
  llvm::StringSet<> stateRoots, integerRoots;
  std::optional<int64_t> batchSize;
  for (const SignatureArg &arg : signature.args) {
    if (to[arg.index]) {
      stateRoots.insert(rootOf(arg.path));
    } else if (!isFloat(arg.type) && !isScalar(arg.type) &&
               !drawsBits(argument(arg.index))) {
      integerRoots.insert(rootOf(arg.path));
      if (!batchSize)
        batchSize = shapeOf(arg.type).front();
    }
  }
  std::vector<ArgumentUse> uses = findUses();
  std::vector<bool> updates(signature.args.size());
  for (const SignatureArg &arg : signature.args)
    if (to[arg.index])
      onArguments.dependsOnAny(returned[*to[arg.index]], [&](unsigned source) {
        updates[source] = true;
        return false;
      });
  for (SignatureArg &arg : signature.args) {
    if (to[arg.index])
      continue;
    auto set = [&](ArgRole role, StringRef why) {
      arg.role = role;
      arg.why = why.str();
    };
    StringRef root = rootOf(arg.path);
    Value value = argument(arg.index);
    if (drawsBits(value) || (isKeyType(arg.type) && value.use_empty()))
      set(ArgRole::Key, "random bits are drawn from it; no result replaces it, "
                        "so that each step folds its number into it");
    else if (isScalar(arg.type))
      set(ArgRole::Constant, "a scalar that no result replaces");
    else if (!isFloat(arg.type))
      set(ArgRole::Batch, "an integer array that no result replaces");
    else if (uses[arg.index] == ArgumentUse::Data)
      set(ArgRole::Batch, "weights are applied to it, or it meets results of "
                          "the model one by one");
    else if (uses[arg.index] == ArgumentUse::Weights)
      set(ArgRole::Frozen, "it is applied to data, and no result replaces it");
    else if (integerRoots.contains(root))
      set(ArgRole::Batch, "in one tree with integer data");
    else if (stateRoots.contains(root))
      set(ArgRole::Frozen, "in one tree with state, and no result replaces it");
    else if (!forward.contains(value) && updates[arg.index])
      set(ArgRole::Frozen, "only updates of state read it");
    else if (!batchSize)
      set(ArgRole::Batch, "no result replaces it, and there is no other data");
    else if (shapeOf(arg.type).front() == *batchSize &&
             splitTreePath(arg.path).size() == 1)
      set(ArgRole::Batch, "has the leading dimension of the integer data");
    else {
      set(ArgRole::Frozen, "a float tensor that no result replaces");
      undecided.insert(arg.index);
    }
  }
}

/// The sources that targets take their initial values from, as the runtime
/// binds them.
static SmallVector<std::optional<unsigned>> bind(ArrayRef<TreeLeaf> targets,
                                                 ArrayRef<TreeLeaf> sources) {
  struct Paths {
    std::vector<std::string> types;
    std::vector<const char *> names, typeNames;
    fp8_paths paths;

    Paths(ArrayRef<TreeLeaf> leaves) {
      for (const TreeLeaf &leaf : leaves) {
        names.push_back(leaf.path.c_str());
        llvm::raw_string_ostream(types.emplace_back()) << leaf.type;
      }
      for (const std::string &type : types)
        typeNames.push_back(type.c_str());
      paths = {names.data(), typeNames.data(), int64_t(names.size())};
    }
  };
  Paths from(targets), to(sources);
  SmallVector<int64_t> bound(targets.size(), -1);
  fp8_status status = fp8_bind_by_path(&from.paths, &to.paths, bound.data());
  assert(status == FP8_OK && "expected paths that can be bound");
  (void)status;
  SmallVector<std::optional<unsigned>> out;
  for (int64_t source : bound)
    out.push_back(source < 0 ? std::nullopt : std::optional<unsigned>(source));
  return out;
}

/// The last key of a path; empty where it only counts.
static StringRef lastName(StringRef path) {
  path = path.rtrim("]'\"");
  StringRef key = path.substr(path.find_last_of("[.'\"/") + 1);
  StringRef digits = key;
  if (!digits.consume_front("result"))
    digits.consume_front("arg");
  bool counts = llvm::all_of(digits, llvm::isDigit);
  return counts ? StringRef() : key;
}

/// What no result replaces and the initial values have a value for is set once,
/// and floats that they lack are data unless data flow knows better.
void Analyzer::readInitialValues() {
  ArrayRef<TreeLeaf> sources = options.initialValues;
  auto set = [&](unsigned index, ArgRole role, StringRef why) {
    signature.args[index].role = role;
    signature.args[index].why = why.str();
  };
  auto setOnce = [&](unsigned index) {
    set(index,
        isFloat(signature.args[index].type) ? ArgRole::Frozen
                                            : ArgRole::Constant,
        "no result replaces it, and the initial values have it");
  };
  // First what needs a value in any case, and what has one of its own name.
  SmallVector<TreeLeaf> wanted, open, left;
  SmallVector<unsigned> wantedArgs, openArgs;
  for (const SignatureArg &arg : signature.args) {
    auto forced = forcedRoles.find(arg.index);
    bool isForced = forced != forcedRoles.end();
    ArgRole role = isForced ? forced->second : arg.role;
    if (role == ArgRole::Key || (isForced && role == ArgRole::Batch))
      continue;
    bool isNamed = llvm::any_of(sources, [&](const TreeLeaf &leaf) {
      return leaf.path == arg.path && leaf.type == arg.type;
    });
    if (role == ArgRole::Batch && isNamed)
      setOnce(arg.index);
    bool isOpen = role == ArgRole::Batch && !isNamed;
    (isOpen ? open : wanted).push_back({arg.path, arg.type});
    (isOpen ? openArgs : wantedArgs).push_back(arg.index);
  }
  SmallVector<bool> used(sources.size());
  for (auto [index, source] : llvm::zip(wantedArgs, bind(wanted, sources))) {
    if (source)
      used[*source] = true;
    if (undecided.contains(index) && source)
      setOnce(index);
    else if (undecided.contains(index))
      set(index, ArgRole::Batch,
          "no result replaces it, and the initial values lack it");
  }
  for (auto [leaf, isUsed] : llvm::zip(sources, used))
    if (!isUsed)
      left.push_back(leaf);
  for (auto [index, source] : llvm::zip(openArgs, bind(open, left))) {
    if (!source)
      continue;
    // By type alone only what has no name of its own is found.
    StringRef name = lastName(signature.args[index].path);
    StringRef other = lastName(left[*source].path);
    if (name.empty() || other.empty() || name == other)
      setOnce(index);
  }
}

void Analyzer::findOtherResults() {
  for (SignatureResult &result : signature.results) {
    if (from[result.index]) {
      result.kind = ResultKind::State;
      result.statePath = signature.args[*from[result.index]].path;
    } else if (loss && *loss == result.index) {
      result.kind = ResultKind::Loss;
      result.why = lossWhy;
    } else if (loss && isScalar(result.type)) {
      result.kind = ResultKind::Metric;
      result.trains = otherLosses.count(result.index);
      result.why = result.trains ? "gradients could flow from it, too"
                                 : "a scalar that is not state";
    } else {
      result.kind = ResultKind::Output;
    }
  }
}

/// An initializer, an evaluation or any other function: nothing is replaced.
void Analyzer::describeFunction() {
  to.assign(signature.args.size(), std::nullopt);
  from.assign(signature.results.size(), std::nullopt);
  bool hasFloat = llvm::any_of(signature.args, [](const SignatureArg &arg) {
    return isFloat(arg.type);
  });
  for (SignatureArg &arg : signature.args) {
    bool isKey = drawsBits(argument(arg.index));
    if (isFloat(arg.type)) {
      arg.role = ArgRole::Frozen;
      arg.why = "a float tensor";
    } else if (isKey || (isScalar(arg.type) && !hasFloat)) {
      arg.role = ArgRole::Key;
      arg.why = isKey ? "random bits are drawn from it"
                      : "an integer that a function without floats starts from";
    } else if (isScalar(arg.type)) {
      arg.role = ArgRole::Constant;
      arg.why = "a scalar";
    } else {
      arg.role = ArgRole::Batch;
      arg.why = "an integer array";
    }
  }
  if (!loss && hasFloat)
    for (const SignatureResult &result : signature.results)
      if (isScalar(result.type) && isFloat(result.type)) {
        loss = result.index;
        lossWhy = "the first scalar";
        break;
      }
  findOtherResults();
}

FailureOr<Signature> Analyzer::run() {
  std::tie(argsAreNamed, resultsAreNamed) = findPaths(func, signature);
  if (failed(readOptions()) || failed(pairState()))
    return failure();
  findGradients();
  if (trains()) {
    if (!ambiguities.empty())
      return emitError(func.getLoc())
             << "ambiguous state: several results could replace "
             << ambiguities.front() << "; choose with a state option";
    if (failed(findLoss()))
      return failure();
    dropOutputs();
    findStateKinds();
    if (failed(checkThatStateChanges()))
      return failure();
    findOtherArgs();
    if ((!argsAreNamed || !resultsAreNamed) && failed(checkFrozen()))
      return failure();
    if (!options.initialValues.empty())
      readInitialValues();
    findOtherResults();
  } else {
    describeFunction();
  }
  for (auto &[index, role] : forcedRoles) {
    if (signature.args[index].role == role)
      continue;
    signature.args[index].role = role;
    signature.args[index].why = kSetByUser.str();
  }
  for (SignatureArg &arg : signature.args)
    if (arg.role == ArgRole::Batch && !isFloat(arg.type))
      arg.vocabulary = findVocabulary(func, arg.index);
  return std::move(signature);
}

FailureOr<Signature> fp8::analyzeSignature(func::FuncOp func,
                                           const SignatureOptions &options) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return emitError(func.getLoc(), "expected a function with one block");
  return Analyzer(func, options).run();
}

LogicalResult fp8::printSignature(func::FuncOp func, raw_ostream &os,
                                  ArrayRef<TreeLeaf> initialValues) {
  FailureOr<Signature> signature = Signature::fromAttributes(func);
  if (failed(signature))
    return failure();
  // What the attributes say goes in as the user's word, so that the guess
  // cannot fail; the reasons come back out where both agree.
  SignatureOptions options;
  options.functionKind =
      signature->isStep() ? FunctionKind::Step : FunctionKind::Function;
  options.initialValues.assign(initialValues.begin(), initialValues.end());
  ScopedDiagnosticHandler quiet(func.getContext(),
                                [](Diagnostic &) { return success(); });
  FailureOr<Signature> guess = analyzeSignature(func, options);
  for (SignatureArg &arg : signature->args) {
    bool agrees =
        succeeded(guess) && guess->args[arg.index].role == arg.role &&
        (arg.role != ArgRole::State || guess->args[arg.index].kind == arg.kind);
    arg.why = agrees ? guess->args[arg.index].why : kSetByUser.str();
  }
  for (SignatureResult &result : signature->results) {
    bool agrees =
        succeeded(guess) && guess->results[result.index].kind == result.kind;
    result.why = agrees ? guess->results[result.index].why : kSetByUser.str();
  }
  printSignature(*signature, os);
  return success();
}
