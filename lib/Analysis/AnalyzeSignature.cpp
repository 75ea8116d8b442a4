//===- AnalyzeSignature.cpp - Finds the roles of a step's values ----------===//

#include "SignatureAnalyzer.h"

#include "fp8/Binding/PathBinding.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

/// Returns the name in a location, which other locations may wrap.
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

/// Returns the path of an argument; empty if it has none.
static std::string pathOf(func::FuncOp func, BlockArgument arg) {
  if (auto path = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                    FP8Dialect::kPathAttrName))
    return path.str();
  return nameOf(arg.getLoc()).str();
}

/// Returns the path of a result; empty if it has none.
static std::string pathOf(func::FuncOp func, unsigned result) {
  for (StringRef name :
       {StringRef(FP8Dialect::kPathAttrName), StringRef("jax.result_info")})
    if (auto path = func.getResultAttrOfType<StringAttr>(result, name);
        path && !path.empty())
      return path.str();
  return "";
}

/// Adds an argument or a result; returns true if it has a name. Without one, it
/// is called `kind` with its number.
template <typename Entry>
static bool addEntry(SmallVectorImpl<Entry> &entries, StringRef kind,
                     std::string path, Type type, llvm::StringSet<> &taken) {
  Entry entry;
  entry.index = entries.size();
  entry.type = type;
  std::string unnamed = (kind + Twine(entry.index)).str();
  if (path.empty())
    path = unnamed;
  entry.path = unique(path, taken);
  entries.push_back(std::move(entry));
  return path != unnamed;
}

/// Finds the paths; returns whether any argument and any result has a name.
static std::pair<bool, bool> findPaths(func::FuncOp func,
                                       Signature &signature) {
  bool argsAreNamed = false, resultsAreNamed = false;
  llvm::StringSet<> takenArgs, takenResults;
  for (BlockArgument arg : func.getArguments())
    argsAreNamed |= addEntry(signature.args, "arg", pathOf(func, arg),
                             arg.getType(), takenArgs);
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    resultsAreNamed |= addEntry(signature.results, "result",
                                pathOf(func, index), type, takenResults);
  return {argsAreNamed, resultsAreNamed};
}

/// Files of tensors, logs and the cache write paths as JSON, which is UTF-8.
template <typename Entry>
static LogicalResult checkNames(func::FuncOp func, ArrayRef<Entry> entries,
                                StringRef kind) {
  for (const Entry &entry : entries)
    if (!llvm::json::isUTF8(entry.path))
      return emitError(func.getLoc()) << "expected names in UTF-8 but got '"
                                      << llvm::json::fixUTF8(entry.path)
                                      << "' for " << kind << " " << entry.index;
  return success();
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

bool fp8::isSameLeaf(StringRef a, StringRef b) {
  return splitTreePath(a).back() == splitTreePath(b).back();
}

/// Returns the entry that a user calls `path`, where `p.x` equals `p['x']`;
/// null if there is none.
template <typename Entry>
static const Entry *findEntry(ArrayRef<Entry> entries, StringRef path) {
  const Entry *found =
      llvm::find_if(entries, [&](const Entry &e) { return e.path == path; });
  if (found == entries.end()) {
    std::vector<std::string> keys = fp8binding::splitPath(path.str());
    found = llvm::find_if(entries, [&](const Entry &entry) {
      return fp8binding::splitPath(entry.path) == keys;
    });
  }
  return found == entries.end() ? nullptr : found;
}

LogicalResult SignatureAnalyzer::readRoles() {
  for (auto &[path, roleText] : options.roles) {
    const SignatureArg *arg = findEntry<SignatureArg>(signature.args, path);
    if (!arg)
      return emitError(func.getLoc())
             << "no argument has the path '" << path << "'; the nearest is '"
             << nearest(path, signature.args) << "'";
    std::optional<ArgRole> role = symbolizeArgRole(roleText);
    if (!role)
      return emitError(func.getLoc())
             << "role of '" << path
             << "': expected state, frozen, batch, key or "
                "constant but got '"
             << roleText << "'";
    forcedRoles[arg->index] = *role;
  }
  return success();
}

LogicalResult SignatureAnalyzer::readStates() {
  for (auto &[argPath, resultPath] : options.states) {
    const SignatureArg *arg = findEntry<SignatureArg>(signature.args, argPath);
    if (!arg)
      return emitError(func.getLoc())
             << "state: no argument has the path '" << argPath
             << "'; the nearest is '" << nearest(argPath, signature.args)
             << "'";
    const SignatureResult *result =
        findEntry<SignatureResult>(signature.results, resultPath);
    if (!result)
      return emitError(func.getLoc())
             << "state: no result has the path '" << resultPath
             << "'; the nearest is '" << nearest(resultPath, signature.results)
             << "'";
    if (arg->type != result->type)
      return emitError(func.getLoc())
             << "state: expected '" << resultPath << "' to have the type of '"
             << argPath << "', " << arg->type << ", but got " << result->type;
    resultOfArg[arg->index] = result->index;
    argOfResult[result->index] = arg->index;
    pairedBy[arg->index] = kSetByUser.str();
  }
  return success();
}

LogicalResult SignatureAnalyzer::readLoss() {
  if (options.loss.empty())
    return success();
  const SignatureResult *result =
      findEntry<SignatureResult>(signature.results, options.loss);
  if (!result)
    return emitError(func.getLoc())
           << "loss: no result has the path '" << options.loss
           << "'; the nearest is '" << nearest(options.loss, signature.results)
           << "'";
  if (!isScalar(result->type) || !isFloat(result->type))
    return emitError(func.getLoc())
           << "loss: expected '" << options.loss
           << "' to be a scalar floating-point result but got " << result->type;
  loss = result->index;
  lossWhy = kSetByUser.str();
  return success();
}

LogicalResult SignatureAnalyzer::readOptions() {
  resultOfArg.resize(signature.args.size());
  argOfResult.resize(signature.results.size());
  pairedBy.resize(signature.args.size());
  return failure(failed(readRoles()) || failed(readStates()) ||
                 failed(readLoss()));
}

/// Finds how arguments that no result replaces are used, to tell data from
/// weights.
std::vector<ArgumentUse> SignatureAnalyzer::findUses() {
  std::vector<ArgumentUse> uses;
  for (const SignatureArg &arg : signature.args) {
    bool returnedAsIs =
        resultOfArg[arg.index] &&
        returned[*resultOfArg[arg.index]] == argument(arg.index);
    if (isScalar(arg.type) || isKeyType(arg.type))
      uses.push_back(ArgumentUse::Neither);
    else if (resultOfArg[arg.index] && !(returnedAsIs && isFloat(arg.type)))
      uses.push_back(ArgumentUse::Weights);
    else if (!isFloat(arg.type))
      uses.push_back(masksState(argument(arg.index)) ? ArgumentUse::Weights
                                                     : ArgumentUse::Data);
    else
      uses.push_back(ArgumentUse::Unknown);
  }
  // In a loop over whole steps, the weights of later iterations depend on
  // everything that earlier ones read. The forward pass is therefore related to
  // the values that the loop starts from.
  std::optional<Dependence> inStep;
  if (!carried.empty())
    inStep.emplace(func, llvm::to_vector_of<Value>(func.getArguments()),
                   carried, /*together=*/false);
  const Dependence &origins = inStep ? *inStep : onArguments;
  findArgumentUses(func, forward, origins, uses);
  // The returned loss may differ from the one that gradients flow from, for
  // instance in the weights of its terms.
  std::vector<ArgumentUse> hidden(uses);
  for (const SignatureArg &arg : signature.args)
    if (forward.contains(argument(arg.index)) &&
        hidden[arg.index] == ArgumentUse::Unknown)
      hidden[arg.index] = ArgumentUse::Neither;
  findArgumentUses(func, sliceOf(gradientValues, carried), origins, hidden);
  for (auto [use, found] : llvm::zip(uses, hidden))
    if (use == ArgumentUse::Unknown && found != ArgumentUse::Neither)
      use = found;
  return uses;
}

SignatureAnalyzer::Evidence SignatureAnalyzer::findEvidence() {
  Evidence evidence;
  for (const SignatureArg &arg : signature.args) {
    if (resultOfArg[arg.index]) {
      evidence.stateRoots.insert(rootOf(arg.path));
    } else if (!isFloat(arg.type) && !isScalar(arg.type) &&
               !drawsBits(argument(arg.index))) {
      evidence.integerRoots.insert(rootOf(arg.path));
      if (!evidence.batchSize)
        evidence.batchSize = shapeOf(arg.type).front();
    }
  }
  evidence.uses = findUses();
  evidence.updates.resize(signature.args.size());
  for (const SignatureArg &arg : signature.args)
    if (resultOfArg[arg.index])
      onArguments.dependsOnAny(returned[*resultOfArg[arg.index]],
                               [&](unsigned source) {
                                 evidence.updates[source] = true;
                                 return false;
                               });
  return evidence;
}

/// Returns true if boolean flags mask elements of state, as those of pruned
/// weights do. (Flags of a batch are applied to activations.)
bool SignatureAnalyzer::masksState(Value flags) {
  if (!elementOf(flags).isInteger(1))
    return false;
  auto isState = [&](Value value) {
    std::optional<unsigned> arg = argumentIndex(value);
    return arg && resultOfArg[*arg];
  };
  auto meetsState = [&](Operation *user) {
    return isa<stablehlo::SelectOp, stablehlo::MulOp>(user) &&
           llvm::any_of(user->getOperands(), isState);
  };
  return llvm::any_of(flags.getUsers(), [&](Operation *user) {
    return meetsState(user) || (isa<stablehlo::ConvertOp>(user) &&
                                llvm::any_of(user->getUsers(), meetsState));
  });
}

/// Guesses the role of an argument that no result replaces, from the most
/// reliable evidence first. Returns nullopt if there is none.
std::optional<SignatureAnalyzer::RoleGuess>
SignatureAnalyzer::guessRole(const SignatureArg &arg,
                             const Evidence &evidence) {
  StringRef root = rootOf(arg.path);
  Value value = argument(arg.index);
  ArgumentUse use = evidence.uses[arg.index];
  if (drawsBits(value) || (isKeyType(arg.type) && value.use_empty()))
    return RoleGuess{ArgRole::Key,
                     "random bits are drawn from it; no result replaces it, "
                     "so that each step folds its number into it"};
  if (isScalar(arg.type))
    return RoleGuess{ArgRole::Constant, value.use_empty()
                                            ? "a scalar that nothing reads"
                                            : "a scalar that no result "
                                              "replaces"};
  if (masksState(value))
    return RoleGuess{ArgRole::Frozen,
                     "it masks state, and no result replaces it"};
  if (!isFloat(arg.type))
    return RoleGuess{ArgRole::Batch,
                     "an integer array that no result replaces"};
  if (use == ArgumentUse::Data)
    return RoleGuess{ArgRole::Batch,
                     "weights are applied to it, or it meets results of "
                     "the model one by one"};
  if (use == ArgumentUse::Weights)
    return RoleGuess{ArgRole::Frozen,
                     "it is applied to data, and no result replaces it"};
  if (evidence.integerRoots.contains(root))
    return RoleGuess{ArgRole::Batch, "in one tree with integer data"};
  if (evidence.stateRoots.contains(root))
    return RoleGuess{ArgRole::Frozen,
                     "in one tree with state, and no result replaces it"};
  if (!forward.contains(value) && evidence.updates[arg.index])
    return RoleGuess{ArgRole::Frozen, "only updates of state read it"};
  if (!evidence.batchSize)
    return RoleGuess{ArgRole::Batch,
                     "no result replaces it, and there is no other data"};
  if (shapeOf(arg.type).front() == *evidence.batchSize &&
      splitTreePath(arg.path).size() == 1)
    return RoleGuess{ArgRole::Batch,
                     "has the leading dimension of the integer data"};
  return std::nullopt;
}

void SignatureAnalyzer::setRole(unsigned index, ArgRole role, StringRef why) {
  signature.args[index].role = role;
  signature.args[index].why = why.str();
}

void SignatureAnalyzer::findOtherArgs() {
  Evidence evidence = findEvidence();
  for (const SignatureArg &arg : signature.args) {
    if (resultOfArg[arg.index])
      continue;
    if (std::optional<RoleGuess> guess = guessRole(arg, evidence)) {
      setRole(arg.index, guess->role, guess->why);
    } else {
      setRole(arg.index, ArgRole::Frozen,
              "a float tensor that no result replaces");
      undecided.insert(arg.index);
    }
  }
}

static std::vector<fp8binding::Leaf> toBinding(ArrayRef<TreeLeaf> leaves) {
  std::vector<fp8binding::Leaf> out;
  for (const TreeLeaf &leaf : leaves) {
    out.push_back({leaf.path, {}});
    llvm::raw_string_ostream(out.back().type) << leaf.type;
  }
  return out;
}

/// Returns the sources that provide the initial values of targets, with the
/// binding that the runtime uses.
static SmallVector<std::optional<unsigned>> bind(ArrayRef<TreeLeaf> targets,
                                                 ArrayRef<TreeLeaf> sources) {
  SmallVector<std::optional<unsigned>> out;
  for (int64_t source :
       fp8binding::bindByPath(toBinding(targets), toBinding(sources)).sources)
    out.push_back(source < 0 ? std::nullopt : std::optional<unsigned>(source));
  return out;
}

/// Marks an argument as set once: no result replaces it, and the initial values
/// contain it.
void SignatureAnalyzer::setOnce(unsigned index) {
  setRole(index,
          isFloat(signature.args[index].type) ? ArgRole::Frozen
                                              : ArgRole::Constant,
          "no result replaces it, and the initial values have it");
}

/// Splits the arguments that may have an initial value: `wanted` ones need one
/// in any case or have one of the same name; `data` may have one.
void SignatureAnalyzer::findBindable(Bindable &wanted, Bindable &data) {
  for (const SignatureArg &arg : signature.args) {
    auto forced = forcedRoles.find(arg.index);
    bool isForced = forced != forcedRoles.end();
    ArgRole role = isForced ? forced->second : arg.role;
    if (role == ArgRole::Key || (isForced && role == ArgRole::Batch))
      continue;
    bool isNamed =
        llvm::any_of(options.initialValues, [&](const TreeLeaf &leaf) {
          return leaf.path == arg.path && leaf.type == arg.type;
        });
    Bindable &bindable = role == ArgRole::Batch && !isNamed ? data : wanted;
    bindable.leaves.push_back({arg.path, arg.type});
    bindable.args.push_back(arg.index);
    if (role == ArgRole::Batch && isNamed) {
      setOnce(arg.index);
      dataSetOnce.insert(arg.index);
    }
  }
}

/// Uses the initial values: undecided arguments are set once if they have one,
/// and data otherwise. Data that has one left is set once, too.
void SignatureAnalyzer::readInitialValues() {
  ArrayRef<TreeLeaf> sources = options.initialValues;
  Bindable wanted, data;
  findBindable(wanted, data);
  SmallVector<bool> used(sources.size());
  for (auto [index, source] :
       llvm::zip(wanted.args, bind(wanted.leaves, sources))) {
    if (source)
      used[*source] = true;
    if (undecided.contains(index) && source)
      setOnce(index);
    else if (undecided.contains(index))
      setRole(index, ArgRole::Batch,
              "no result replaces it, and the initial values lack it");
  }
  SmallVector<TreeLeaf> left;
  for (auto [leaf, isUsed] : llvm::zip(sources, used))
    if (!isUsed)
      left.push_back(leaf);
  for (auto [index, source] : llvm::zip(data.args, bind(data.leaves, left))) {
    if (!source)
      continue;
    // A match by type alone only counts if one of the two has no name.
    std::string name = fp8binding::nameOf(signature.args[index].path);
    std::string other = fp8binding::nameOf(left[*source].path);
    if (name.empty() || other.empty() || name == other)
      setOnce(index);
  }
}

void SignatureAnalyzer::findOtherResults() {
  for (SignatureResult &result : signature.results) {
    if (argOfResult[result.index]) {
      result.kind = ResultKind::State;
      result.statePath = signature.args[*argOfResult[result.index]].path;
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

/// Guesses the loss of a function that does not train, where no gradient tells
/// which scalar it is: the result named `loss` with the shortest path (others
/// are parts of it), or else the first scalar.
void SignatureAnalyzer::guessLossOfFunction() {
  size_t shortest = std::numeric_limits<size_t>::max();
  for (const SignatureResult &result : signature.results) {
    auto tensor = dyn_cast<RankedTensorType>(result.type);
    if (!isFloat(result.type) || (tensor && tensor.getNumElements() != 1))
      continue;
    std::vector<std::string> keys = fp8binding::splitPath(result.path);
    if (!keys.empty() && keys.back() == "loss" && keys.size() < shortest) {
      shortest = keys.size();
      loss = result.index;
      lossWhy = "a scalar that has the name of a loss";
    }
  }
  auto first =
      llvm::find_if(signature.results, [](const SignatureResult &result) {
        return isScalar(result.type) && isFloat(result.type);
      });
  if (!loss && first != signature.results.end()) {
    loss = first->index;
    lossWhy = "the first scalar";
  }
}

/// Describes an initializer, an evaluation or any other function, in which
/// nothing is replaced.
void SignatureAnalyzer::describeFunction() {
  resultOfArg.assign(signature.args.size(), std::nullopt);
  argOfResult.assign(signature.results.size(), std::nullopt);
  bool hasFloat = llvm::any_of(signature.args, [](const SignatureArg &arg) {
    return isFloat(arg.type);
  });
  for (const SignatureArg &arg : signature.args) {
    if (isFloat(arg.type))
      setRole(arg.index, ArgRole::Frozen, "a float tensor");
    else if (drawsBits(argument(arg.index)))
      setRole(arg.index, ArgRole::Key, "random bits are drawn from it");
    else if (isScalar(arg.type) && !hasFloat)
      setRole(arg.index, ArgRole::Key,
              "an integer that a function without floats starts from");
    else if (isScalar(arg.type))
      setRole(arg.index, ArgRole::Constant, "a scalar");
    else
      setRole(arg.index, ArgRole::Batch, "an integer array");
  }
  if (!loss && hasFloat)
    guessLossOfFunction();
  findOtherResults();
}

FailureOr<Signature> SignatureAnalyzer::run() {
  std::tie(argsAreNamed, resultsAreNamed) = findPaths(func, signature);
  if (failed(checkNames<SignatureArg>(func, signature.args, "argument")) ||
      failed(checkNames<SignatureResult>(func, signature.results, "result")) ||
      failed(readOptions()) || failed(pairState()))
    return failure();
  findGradients();
  if (trains()) {
    if (!ambiguities.empty())
      return emitError(func.getLoc())
             << "ambiguous state: several results could replace "
             << ambiguities.front() << "; choose with " << kStatesOption;
    if (failed(findLoss()))
      return failure();
    dropOutputs();
    if (argsAreNamed && resultsAreNamed)
      pairInitialTrees();
    findStateKinds();
    if (failed(checkThatStateChanges()))
      return failure();
    findOtherArgs();
    if (!options.initialValues.empty())
      readInitialValues();
    if (failed(checkFrozen()) || failed(checkTypesOfTrees()))
      return failure();
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
  describeTokens();
  return std::move(signature);
}

/// Finds out what the integers of batch arguments index.
void SignatureAnalyzer::describeTokens() {
  SmallVector<Value> data;
  for (const SignatureArg &arg : signature.args)
    if (arg.role == ArgRole::Batch)
      data.push_back(func.getArgument(arg.index));
  Dependence onData(func, data, carried, /*together=*/true);
  for (SignatureArg &arg : signature.args) {
    if (arg.role != ArgRole::Batch || isFloat(arg.type))
      continue;
    arg.vocabulary = findVocabulary(func, arg.index);
    arg.labels = areLabels(func, arg.index, onData);
  }
}

FailureOr<Signature> fp8::analyzeSignature(func::FuncOp func,
                                           const SignatureOptions &options) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return emitError(func.getLoc(), "expected a function with one block");
  return SignatureAnalyzer(func, options).run();
}

/// Analyzes a function that has its attributes without the user's choices.
/// Donated buffers may have paired some state, a queue for instance, but the
/// import has dropped them: they are set anew.
static FailureOr<Signature> analyzeAgain(func::FuncOp func,
                                         const Signature &signature,
                                         const SignatureOptions &options) {
  constexpr StringLiteral hint = "tf.aliasing_output";
  SignatureOptions alone;
  alone.functionKind = options.functionKind;
  alone.initialValues = options.initialValues;
  Builder builder(func.getContext());
  for (const SignatureResult &result : signature.results) {
    const SignatureArg *arg = signature.findArg(result.statePath);
    bool isChosen = llvm::any_of(
        llvm::concat<const std::pair<std::string, std::string>>(options.states,
                                                                options.roles),
        [&](auto &choice) { return choice.first == result.statePath; });
    if (arg && !isChosen)
      func.setArgAttr(arg->index, hint,
                      builder.getI32IntegerAttr(result.index));
  }
  FailureOr<Signature> found = analyzeSignature(func, alone);
  for (const SignatureArg &arg : signature.args)
    func.removeArgAttr(arg.index, hint);
  return found;
}

LogicalResult fp8::printSignature(func::FuncOp func, raw_ostream &os,
                                  SignatureOptions options) {
  FailureOr<Signature> signature = Signature::fromAttributes(func);
  if (failed(signature))
    return failure();
  // Reasons of the analysis are used where it agrees with the attributes.
  options.functionKind =
      signature->isStep() ? FunctionKind::Step : FunctionKind::Function;
  ScopedDiagnosticHandler quiet(func.getContext(),
                                [](Diagnostic &) { return success(); });
  FailureOr<Signature> guess = analyzeAgain(func, *signature, options);
  if (failed(guess))
    guess = analyzeSignature(func, options);
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
