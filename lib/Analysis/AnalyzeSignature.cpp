//===- AnalyzeSignature.cpp - Finds the roles of a step's values ----------===//

#include "SignatureAnalyzer.h"
#include "fp8/Binding/PathBinding.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

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

bool fp8::isSameLeaf(StringRef a, StringRef b) {
  return splitTreePath(a).back() == splitTreePath(b).back();
}

LogicalResult SignatureAnalyzer::readOptions() {
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

/// What tells data from weights among arguments that no result replaces.
std::vector<ArgumentUse> SignatureAnalyzer::findUses() {
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

void SignatureAnalyzer::findOtherArgs() {
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

static std::vector<fp8binding::Leaf> toBinding(ArrayRef<TreeLeaf> leaves) {
  std::vector<fp8binding::Leaf> out;
  for (const TreeLeaf &leaf : leaves) {
    out.push_back({leaf.path, {}});
    llvm::raw_string_ostream(out.back().type) << leaf.type;
  }
  return out;
}

/// The sources that targets take their initial values from, as the runtime
/// binds them.
static SmallVector<std::optional<unsigned>> bind(ArrayRef<TreeLeaf> targets,
                                                 ArrayRef<TreeLeaf> sources) {
  SmallVector<std::optional<unsigned>> out;
  for (int64_t source :
       fp8binding::bindByPath(toBinding(targets), toBinding(sources)).sources)
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
void SignatureAnalyzer::readInitialValues() {
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

void SignatureAnalyzer::findOtherResults() {
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
void SignatureAnalyzer::describeFunction() {
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

FailureOr<Signature> SignatureAnalyzer::run() {
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
    if (!options.initialValues.empty())
      readInitialValues();
    if ((!argsAreNamed || !resultsAreNamed) && failed(checkFrozen()))
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
  for (SignatureArg &arg : signature.args)
    if (arg.role == ArgRole::Batch && !isFloat(arg.type))
      arg.vocabulary = findVocabulary(func, arg.index);
  return std::move(signature);
}

FailureOr<Signature> fp8::analyzeSignature(func::FuncOp func,
                                           const SignatureOptions &options) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return emitError(func.getLoc(), "expected a function with one block");
  return SignatureAnalyzer(func, options).run();
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
