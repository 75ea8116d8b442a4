//===- AnalyzeSignature.cpp - Finds the roles of a step's values ----------===//
//
// Data flow is read in two ways. A *slice* of a value is everything it is
// computed from. The *update chain* of a result is only what reaches it through
// elementwise operations of its own shape: this is how an optimizer reads the
// state that it replaces, and where the chain ends at something else (a dot, a
// reduction, a scatter) there is the gradient.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}
static bool isFloat(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}
static bool isScalar(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || tensor.getRank() == 0;
}
/// The types of the keys of JAX's random number generators.
static bool isKeyType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isUnsignedInteger(32) &&
         (tensor.getShape() == ArrayRef<int64_t>{2} ||
          tensor.getShape() == ArrayRef<int64_t>{4});
}
static ArrayRef<int64_t> shapeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Calls `visit` with every value that `value` is directly computed from. A
/// carried value of a loop depends on its own carry, not on the others.
static void forEachSource(Value value, function_ref<void(Value)> visit) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (isa<func::FuncOp>(parent))
      return;
    unsigned i = arg.getArgNumber();
    if (isa<stablehlo::WhileOp>(parent)) {
      visit(parent->getOperand(i));
      visit(parent->getRegion(1).front().getTerminator()->getOperand(i));
      return;
    }
    llvm::for_each(parent->getOperands(), visit);
    return;
  }
  Operation *op = value.getDefiningOp();
  unsigned i = cast<OpResult>(value).getResultNumber();
  if (isa<stablehlo::WhileOp>(op)) {
    visit(op->getOperand(i));
    visit(op->getRegion(1).front().getTerminator()->getOperand(i));
    visit(op->getRegion(0).front().getTerminator()->getOperand(0));
    return;
  }
  if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op)) {
    visit(op->getOperand(0));
    for (Region &region : op->getRegions())
      visit(region.front().getTerminator()->getOperand(i));
    return;
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    visit(op->getOperand(i));
    return;
  }
  llvm::for_each(op->getOperands(), visit);
  for (Region &region : op->getRegions())
    if (!region.empty())
      llvm::for_each(region.front().getTerminator()->getOperands(), visit);
}

using ValueSet = llvm::DenseSet<Value>;

static ValueSet sliceOf(ArrayRef<Value> roots) {
  ValueSet seen(roots.begin(), roots.end());
  SmallVector<Value> stack(roots);
  while (!stack.empty())
    forEachSource(stack.pop_back_val(), [&](Value source) {
      if (seen.insert(source).second)
        stack.push_back(source);
    });
  return seen;
}

/// True if no gradient passes from a result of `op` to its operands.
static bool stopsGradient(Operation *op) {
  return isa<stablehlo::FloorOp, stablehlo::CeilOp, stablehlo::SignOp,
             stablehlo::RoundOp, stablehlo::RoundNearestEvenOp>(op);
}

/// What gradients of `root` can flow to: the slice along floating-point values
/// only, without `barred`.
static ValueSet differentiableSliceOf(Value root, Value barred = {}) {
  ValueSet seen;
  if (!isFloat(root.getType()))
    return seen;
  seen.insert(root);
  SmallVector<Value> stack{root};
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    if (Operation *op = value.getDefiningOp(); op && stopsGradient(op))
      continue;
    forEachSource(value, [&](Value source) {
      if (source != barred && isFloat(source.getType()) &&
          seen.insert(source).second)
        stack.push_back(source);
    });
  }
  return seen;
}

//===----------------------------------------------------------------------===//
// Update chains
//===----------------------------------------------------------------------===//

namespace {
/// How a source reaches the end of an update chain.
struct Reach {
  /// 3: added as it is; 2: times something that isn't in the chain; 1: else.
  uint8_t strength = 3;
  /// Degree of the polynomial, at most 3: 2 for the square of a gradient.
  uint8_t degree = 1;
};
using Chain = llvm::MapVector<Value, Reach>;

/// Finds and remembers update chains.
class UpdateChains {
public:
  /// Sources of `value`: function arguments, and the values that are not
  /// elementwise (the *leaves*).
  const Chain &of(Value value) {
    auto it = chains.find(value);
    if (it != chains.end())
      return *it->second;
    auto chain = std::make_unique<Chain>(compute(value));
    return *(chains[value] = std::move(chain));
  }

private:
  Chain compute(Value value);
  DenseMap<Value, std::unique_ptr<Chain>> chains;
};
} // namespace

static void weaken(Chain &chain, uint8_t strength) {
  for (auto &[value, reach] : chain)
    reach.strength = std::min(reach.strength, strength);
}

static void merge(Chain &into, const Chain &from) {
  for (auto &[value, reach] : from) {
    auto [it, isNew] = into.insert({value, reach});
    if (isNew)
      continue;
    it->second.strength = std::max(it->second.strength, reach.strength);
    it->second.degree = std::max(it->second.degree, reach.degree);
  }
}

static Chain product(const Chain &lhs, const Chain &rhs) {
  Chain out;
  for (auto &[value, reach] : lhs)
    out[value] = {uint8_t(rhs.empty() ? std::min<int>(reach.strength, 2) : 1),
                  reach.degree};
  for (auto &[value, reach] : rhs) {
    Reach mine{uint8_t(lhs.empty() ? std::min<int>(reach.strength, 2) : 1),
               reach.degree};
    auto [it, isNew] = out.insert({value, mine});
    if (!isNew)
      it->second.degree = std::min<int>(3, it->second.degree + reach.degree);
  }
  return out;
}

static bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<stablehlo::ConstantOp, stablehlo::IotaOp>(op);
}

Chain UpdateChains::compute(Value value) {
  Chain leaf;
  leaf[value] = Reach();
  if (isa<BlockArgument>(value))
    return leaf;
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isConstant(value))
    return {};

  // A scalar spread over the tensor is a coefficient, not a gradient.
  if (isa<stablehlo::BroadcastInDimOp>(op)) {
    Value operand = op->getOperand(0);
    if (!isScalar(value.getType()) &&
        (isScalar(operand.getType()) || isConstant(operand)))
      return {};
    return leaf;
  }

  // Only operands of the same shape and sort of element are followed: the
  // counter in a bias correction is no part of the chain of a float tensor.
  auto follows = [&](Value operand) {
    return shapeOf(operand.getType()) == shapeOf(value.getType()) &&
           isFloat(operand.getType()) == isFloat(value.getType()) &&
           elementOf(operand).isInteger(1) == elementOf(value).isInteger(1);
  };
  auto operand = [&](unsigned i) -> Chain {
    Value source = op->getOperand(i);
    return follows(source) ? of(source) : Chain();
  };

  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return operand(index);
  if (isa<stablehlo::IfOp, stablehlo::CaseOp>(op)) {
    Chain out;
    for (Region &region : op->getRegions())
      merge(out, of(region.front().getTerminator()->getOperand(index)));
    return out;
  }
  if (isa<stablehlo::AddOp>(op)) {
    Chain out = operand(0);
    merge(out, operand(1));
    return out;
  }
  if (isa<stablehlo::SubtractOp>(op)) {
    Chain out = operand(0), other = operand(1);
    weaken(other, 2);
    merge(out, other);
    return out;
  }
  if (isa<stablehlo::ConvertOp, stablehlo::ReducePrecisionOp>(op))
    return operand(0);
  if (isa<stablehlo::SelectOp>(op)) {
    Chain out = operand(1);
    merge(out, operand(2));
    return out;
  }
  if (isa<stablehlo::ClampOp>(op))
    return operand(1);
  if (isa<stablehlo::MaxOp, stablehlo::MinOp>(op)) {
    Chain out = operand(0);
    merge(out, operand(1));
    return out;
  }
  if (isa<stablehlo::NegOp>(op)) {
    Chain out = operand(0);
    weaken(out, 2);
    return out;
  }
  if (isa<stablehlo::MulOp>(op))
    return product(operand(0), operand(1));
  if (isa<chlo::SquareOp>(op)) {
    Chain only = operand(0);
    return product(only, only);
  }
  if (isa<stablehlo::DivOp, stablehlo::RemOp>(op)) {
    Chain out = operand(0), other = operand(1);
    weaken(out, other.empty() ? 2 : 1);
    weaken(other, 1);
    merge(out, other);
    return out;
  }
  if (isa<stablehlo::PowOp>(op)) {
    Chain out = operand(0);
    DenseFPElementsAttr exponent;
    Value power = op->getOperand(1);
    if (auto broadcast = power.getDefiningOp<stablehlo::BroadcastInDimOp>())
      power = broadcast->getOperand(0);
    if (matchPattern(power, m_Constant(&exponent)) && exponent.isSplat() &&
        exponent.getSplatValue<APFloat>().isExactlyValue(2.0))
      out = product(out, out);
    Chain other = operand(1);
    merge(out, other);
    weaken(out, 1);
    return out;
  }
  if (isa<stablehlo::SqrtOp, stablehlo::RsqrtOp, stablehlo::CbrtOp,
          stablehlo::AbsOp, stablehlo::SignOp, stablehlo::ExpOp,
          stablehlo::Expm1Op, stablehlo::LogOp, stablehlo::Log1pOp,
          stablehlo::LogisticOp, stablehlo::TanhOp, stablehlo::FloorOp,
          stablehlo::CeilOp, stablehlo::RoundOp, stablehlo::RoundNearestEvenOp,
          stablehlo::Atan2Op>(op)) {
    Chain out;
    for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
      merge(out, operand(i));
    weaken(out, 1);
    return out;
  }
  return leaf;
}

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

static void findPaths(func::FuncOp func, Signature &signature) {
  llvm::StringSet<> takenArgs, takenResults;
  for (BlockArgument arg : func.getArguments()) {
    SignatureArg entry;
    entry.index = arg.getArgNumber();
    entry.type = arg.getType();
    if (auto path = func.getArgAttrOfType<StringAttr>(entry.index, kPathAttr))
      entry.path = path.str();
    else
      entry.path = nameOf(arg.getLoc()).str();
    if (entry.path.empty())
      entry.path = "arg" + std::to_string(entry.index);
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
    if (entry.path.empty())
      entry.path = "result" + std::to_string(index);
    entry.path = unique(entry.path, takenResults);
    signature.results.push_back(std::move(entry));
  }
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

namespace {
class Analyzer {
public:
  Analyzer(func::FuncOp func, const SignatureOptions &options)
      : func(func), options(options),
        returned(func.getBody().front().getTerminator()->getOperands()) {}

  FailureOr<Signature> run();

private:
  LogicalResult readOptions();
  LogicalResult pairState();
  void pairCopies();
  bool trains();
  LogicalResult findLoss();
  void findStateKinds();
  void findOtherArgs();
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
  /// For each argument the result that replaces it, and the other way around.
  SmallVector<std::optional<unsigned>> to, from;
  SmallVector<std::string> pairedBy;
  SmallVector<std::string> ambiguities;
  DenseMap<unsigned, ArgRole> forcedRoles;
  std::optional<unsigned> loss;
  std::string lossWhy;
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
    pairedBy[arg->index] = "set by the user";
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
    lossWhy = "set by the user";
  }
  return success();
}

LogicalResult Analyzer::pairState() {
  SmallVector<TreeLeaf> argLeaves, resultLeaves;
  SmallVector<unsigned> argIndex, resultIndex;
  for (const SignatureArg &arg : signature.args) {
    auto forced = forcedRoles.find(arg.index);
    if (to[arg.index] ||
        (forced != forcedRoles.end() && forced->second != ArgRole::State))
      continue;
    argLeaves.push_back({arg.path, arg.type});
    argIndex.push_back(arg.index);
  }
  for (const SignatureResult &result : signature.results) {
    if (from[result.index] || (loss && *loss == result.index))
      continue;
    resultLeaves.push_back({result.path, result.type});
    resultIndex.push_back(result.index);
  }

  auto score = [&](unsigned a, unsigned r) -> double {
    unsigned arg = argIndex[a], result = resultIndex[r];
    if (signature.args[arg].type != signature.results[result].type)
      return 0;
    // A key is replaced by bits drawn from it.
    if (isKeyType(signature.args[arg].type))
      return sliceOf({returned[result]}).contains(argument(arg)) ? 1 : 0;
    const Chain &chain = chains.of(returned[result]);
    auto it = chain.find(argument(arg));
    if (it == chain.end())
      return 0;
    // A loss times its scale is no update of the scale.
    if (isScalar(signature.args[arg].type) && it->second.strength == 1)
      return 0;
    double points = it->second.strength;
    // JAX donates by shape: never more than a tie-break.
    if (auto hint =
            func.getArgAttrOfType<IntegerAttr>(arg, "tf.aliasing_output");
        hint && hint.getInt() == int64_t(result))
      points += 0.01;
    return points;
  };
  SmallVector<std::optional<unsigned>> partners =
      matchTrees(argLeaves, resultLeaves, score, &ambiguities);
  for (auto [a, partner] : llvm::enumerate(partners)) {
    if (!partner)
      continue;
    unsigned arg = argIndex[a], result = resultIndex[*partner];
    to[arg] = result;
    from[result] = arg;
    const Chain &chain = chains.of(returned[result]);
    bool named = !StringRef(signature.args[arg].path)
                      .starts_with("arg" + std::to_string(arg)) &&
                 splitTreePath(signature.args[arg].path).size() > 1;
    bool flows = chain.count(argument(arg));
    pairedBy[arg] = "replaced by " + signature.results[result].path +
                    (named && flows ? " (same tree path, type and update chain)"
                     : named        ? " (same tree path and type)"
                                    : " (update chain and type)");
  }
  pairCopies();
  for (auto &[arg, role] : forcedRoles)
    if (role == ArgRole::State && !to[arg])
      return emitError(func.getLoc())
             << "role: no result replaces '" << signature.args[arg].path
             << "'; name it with a state option";
  return success();
}

/// Weights in a narrow type are replaced by a conversion of the master copy's
/// update: no chain leads from one to the next. Without names the type decides.
void Analyzer::pairCopies() {
  llvm::MapVector<Type, SmallVector<unsigned>> copies;
  for (const SignatureResult &result : signature.results) {
    if (from[result.index] || !isFloat(result.type) || isScalar(result.type) ||
        elementOf(returned[result.index]).getIntOrFloatBitWidth() > 16)
      continue;
    for (auto &[source, reach] : chains.of(returned[result.index]))
      if (auto arg = dyn_cast<BlockArgument>(source);
          arg && arg.getOwner() == &func.getBody().front() &&
          to[arg.getArgNumber()] && reach.strength == 3 &&
          arg.getType() != result.type) {
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
      to[args.front()] = results.front();
      from[results.front()] = args.front();
      pairedBy[args.front()] = "replaced by " +
                               signature.results[results.front()].path +
                               " (copy of other state, only one of its type)";
    } else if (!args.empty()) {
      std::string message = signature.args[args.front()].path + ": ";
      for (auto [i, result] : llvm::enumerate(results))
        message += (i ? ", " : "") + signature.results[result].path;
      ambiguities.push_back(message);
    }
  }
}

bool Analyzer::trains() {
  if (options.functionKind != FunctionKind::Auto)
    return options.functionKind == FunctionKind::Step;
  // A result must carry an update and another one the loss.
  return returned.size() > 1 &&
         llvm::any_of(signature.args, [&](const SignatureArg &arg) {
           return to[arg.index] && isFloat(arg.type) &&
                  hasLeaf(updateOf(arg.index));
         });
}

LogicalResult Analyzer::findLoss() {
  if (loss)
    return success();
  struct Candidate {
    unsigned index;
    Value value;
    ValueSet gradient;
    SmallVector<unsigned> params;
  };
  auto listScalars = [&](InFlightDiagnostic &diag) {
    SmallVector<StringRef> names;
    for (const SignatureResult &result : signature.results)
      if (isScalar(result.type) && !from[result.index])
        names.push_back(result.path);
    if (names.empty())
      diag << "none";
    llvm::interleaveComma(names, diag);
  };

  // Scalars that gradients could flow from to state.
  std::vector<Candidate> candidates;
  for (const SignatureResult &result : signature.results) {
    if (from[result.index] || !isScalar(result.type) || !isFloat(result.type))
      continue;
    Candidate candidate{result.index, returned[result.index], {}, {}};
    candidate.gradient = differentiableSliceOf(candidate.value);
    for (const SignatureArg &arg : signature.args)
      if (to[arg.index] && isFloat(arg.type) &&
          candidate.gradient.contains(argument(arg.index)))
        candidate.params.push_back(arg.index);
    if (!candidate.params.empty())
      candidates.push_back(std::move(candidate));
  }

  // Not what is computed from gradients itself (their norm). State that is no
  // update of itself (a hidden state) ends at no gradient; copies of weights in
  // another type only count if there is nothing else.
  auto updatesItself = [&](unsigned param) {
    return updateOf(param).count(argument(param)) > 0;
  };
  bool anyUpdates = llvm::any_of(candidates, [&](const Candidate &candidate) {
    return llvm::any_of(candidate.params, updatesItself);
  });
  llvm::erase_if(candidates, [&](const Candidate &candidate) {
    ValueSet slice = sliceOf({candidate.value});
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

  // Not what is computed without the batch (the norm of the weights).
  auto readsBatch = [&](const Candidate &candidate) {
    ValueSet slice = sliceOf({candidate.value});
    return llvm::any_of(signature.args, [&](const SignatureArg &arg) {
      return !to[arg.index] && slice.contains(argument(arg.index));
    });
  };
  if (llvm::any_of(candidates, readsBatch))
    llvm::erase_if(candidates,
                   [&](const Candidate &c) { return !readsBatch(c); });

  if (candidates.empty()) {
    InFlightDiagnostic diag =
        emitError(func.getLoc())
        << (llvm::all_of(to, [](auto &result) { return !result; })
                ? "no loss found: no argument is replaced by a result, so that "
                  "this is no training step; scalar results are: "
                : "no loss found: expected a scalar floating-point result "
                  "that is not state and that parameters are updated from; "
                  "scalar results are: ");
    listScalars(diag);
    return diag;
  }

  lossWhy = "gradients flow from it to the parameters";
  // Of two where one is computed from the other: a function of the loss alone
  // (perplexity) is a metric, and so is a term of a sum.
  auto dominated = [&](const Candidate &candidate) {
    return llvm::any_of(candidates, [&](const Candidate &other) {
      if (other.index == candidate.index || other.value == candidate.value)
        return false;
      auto bypasses = [&](const Candidate &outer, const Candidate &inner) {
        ValueSet rest = differentiableSliceOf(outer.value, inner.value);
        return llvm::any_of(outer.params, [&](unsigned param) {
          return rest.contains(argument(param));
        });
      };
      if (candidate.gradient.contains(other.value))
        return !bypasses(candidate, other);
      if (other.gradient.contains(candidate.value))
        return bypasses(other, candidate);
      return false;
    });
  };
  if (candidates.size() > 1) {
    SmallVector<unsigned> drop;
    for (const Candidate &candidate : candidates)
      if (dominated(candidate))
        drop.push_back(candidate.index);
    llvm::erase_if(candidates, [&](const Candidate &c) {
      return llvm::is_contained(drop, c.index);
    });
  }

  // A gradient through a nonlinear function needs one of its operands or its
  // result: where the updates use neither, no gradient flowed.
  if (candidates.size() > 1) {
    SmallVector<Value> updates;
    for (const SignatureArg &arg : signature.args)
      if (to[arg.index])
        updates.push_back(returned[*to[arg.index]]);
    ValueSet used = sliceOf(updates);
    SmallVector<unsigned> drop;
    for (const Candidate &candidate : candidates) {
      bool refuted = false;
      ValueSet seen{candidate.value};
      SmallVector<Value> stack{candidate.value};
      while (!stack.empty() && !refuted) {
        Value value = stack.pop_back_val();
        if (used.contains(value) && value != candidate.value)
          continue;
        Operation *op = value.getDefiningOp();
        if (!op)
          continue;
        if (isa<stablehlo::ExpOp, stablehlo::LogOp, stablehlo::SqrtOp,
                stablehlo::RsqrtOp, stablehlo::TanhOp, stablehlo::PowOp,
                chlo::SquareOp>(op) &&
            !used.contains(op->getOperand(0)) && !used.contains(value))
          refuted = true;
        forEachSource(value, [&](Value source) {
          if (isFloat(source.getType()) && seen.insert(source).second)
            stack.push_back(source);
        });
      }
      if (refuted)
        drop.push_back(candidate.index);
    }
    if (drop.size() < candidates.size())
      llvm::erase_if(candidates, [&](const Candidate &c) {
        return llvm::is_contained(drop, c.index);
      });
  }

  // The most parameters; then the name.
  if (candidates.size() > 1) {
    size_t most = 0;
    for (const Candidate &candidate : candidates)
      most = std::max(most, candidate.params.size());
    llvm::erase_if(candidates,
                   [&](const Candidate &c) { return c.params.size() < most; });
  }
  if (candidates.size() > 1) {
    for (StringRef name : {"loss", "total_loss"}) {
      auto isNamed = [&](const Candidate &c) {
        SmallVector<std::string> parts =
            splitTreePath(signature.results[c.index].path);
        return StringRef(parts.back()).trim("[]'\".") == name;
      };
      if (llvm::count_if(candidates, isNamed) == 1) {
        llvm::erase_if(candidates,
                       [&](const Candidate &c) { return !isNamed(c); });
        lossWhy = "gradients could flow from several scalars; this one has the "
                  "name of a loss";
        break;
      }
    }
  }
  // One value returned under two names is no ambiguity.
  if (llvm::all_of(candidates, [&](const Candidate &c) {
        return c.value == candidates.front().value;
      }))
    candidates.resize(1);
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

void Analyzer::findStateKinds() {
  ValueSet gradient = differentiableSliceOf(returned[*loss]);
  ValueSet forward = sliceOf({returned[*loss]});
  // What is replaced by a value of the forward pass is a hidden state.
  auto isForward = [&](const Chain &chain) {
    return hasLeaf(chain) && llvm::all_of(chain, [&](auto &entry) {
             return isa<BlockArgument>(entry.first) ||
                    forward.contains(entry.first);
           });
  };
  auto setKind = [&](SignatureArg &arg, StateKind kind, const Twine &why) {
    arg.kind = kind;
    arg.why = (why + "; " + pairedBy[arg.index]).str();
  };
  SmallVector<unsigned> params;
  for (SignatureArg &arg : signature.args) {
    if (!to[arg.index])
      continue;
    arg.role = ArgRole::State;
    setKind(arg, StateKind::Other, "none of the known kinds of state");
    const Chain &chain = updateOf(arg.index);
    if (isFloat(arg.type)) {
      if (gradient.contains(argument(arg.index)) &&
          (!isScalar(arg.type) || hasLeaf(chain)) && !isForward(chain)) {
        setKind(arg, StateKind::Parameter, "the loss depends on it");
        params.push_back(arg.index);
      }
      continue;
    }
    auto self = chain.find(argument(arg.index));
    if (isScalar(arg.type) && !elementOf(argument(arg.index)).isInteger(1) &&
        self != chain.end() && self->second.strength == 3 &&
        returned[*to[arg.index]] != argument(arg.index))
      setKind(arg, StateKind::Step, "a counter");
  }

  // What the optimizer updates: parameters, or the master copies that their new
  // values are converted from.
  struct Trained {
    unsigned param, updated;
  };
  SmallVector<Trained> trained;
  for (unsigned param : params) {
    const Chain &chain = updateOf(param);
    if (chain.count(argument(param))) {
      trained.push_back({param, param});
      continue;
    }
    for (auto &[source, reach] : chain) {
      auto master = dyn_cast<BlockArgument>(source);
      if (!master || master.getOwner() != &func.getBody().front() ||
          reach.strength < 3 || !to[master.getArgNumber()])
        continue;
      unsigned index = master.getArgNumber();
      trained.push_back({param, index});
      setKind(signature.args[index], StateKind::Other,
              "the master copy of " + signature.args[param].path);
      break;
    }
  }

  // A moment has its parameter's shape, is fed by the same gradient, and the
  // parameter's update reads it. What reads other state as well is an average
  // of weights, or reads gradients out of an accumulator.
  struct Fed {
    unsigned arg, param;
    uint8_t degree;
    SmallVector<unsigned> others;
  };
  SmallVector<Fed> fed;
  for (SignatureArg &arg : signature.args) {
    if (!to[arg.index] || !isFloat(arg.type) ||
        arg.kind == StateKind::Parameter)
      continue;
    const Chain &chain = updateOf(arg.index);
    if (!chain.count(argument(arg.index)))
      continue;
    for (auto [param, updated] : trained) {
      const Chain &update = updateOf(updated);
      if (updated == arg.index ||
          shapeOf(arg.type) != shapeOf(signature.args[param].type) ||
          !update.count(argument(arg.index)))
        continue;
      Fed entry{arg.index, param, 0, {}};
      for (auto &[source, reach] : chain) {
        auto other = dyn_cast<BlockArgument>(source);
        if (other && other.getOwner() == &func.getBody().front()) {
          if (other.getArgNumber() != arg.index &&
              other.getArgNumber() != updated)
            entry.others.push_back(other.getArgNumber());
        } else if (update.count(source)) {
          entry.degree = std::max(entry.degree, reach.degree);
        }
      }
      if (entry.degree > 0)
        fed.push_back(entry);
      break;
    }
  }
  auto isLinear = [&](unsigned arg) {
    return llvm::any_of(fed, [&](const Fed &entry) {
      return entry.arg == arg && entry.degree == 1 && entry.others.empty();
    });
  };
  // A linear state whose square another one reads holds sums of gradients.
  DenseSet<unsigned> accumulators;
  for (const Fed &entry : fed)
    if (entry.degree > 1 && llvm::all_of(entry.others, isLinear))
      accumulators.insert(entry.others.begin(), entry.others.end());
  for (const Fed &entry : fed) {
    const std::string &param = signature.args[entry.param].path;
    SignatureArg &arg = signature.args[entry.arg];
    if (accumulators.contains(entry.arg))
      setKind(arg, StateKind::Other, "accumulates the gradient of " + param);
    else if (!llvm::all_of(entry.others, [&](unsigned other) {
               return accumulators.contains(other);
             }))
      continue;
    else if (entry.degree == 1)
      setKind(arg, StateKind::Moment1, "linear in the gradient of " + param);
    else
      setKind(arg, StateKind::Moment2, "square of the gradient of " + param);
  }
}

void Analyzer::findOtherArgs() {
  auto rootOf = [](StringRef path) { return splitTreePath(path).front(); };
  llvm::StringSet<> stateRoots, integerRoots;
  std::optional<int64_t> batchSize;
  bool hasIntegerBatch = false;
  for (const SignatureArg &arg : signature.args) {
    if (to[arg.index]) {
      stateRoots.insert(rootOf(arg.path));
    } else if (!isFloat(arg.type) && !isScalar(arg.type) &&
               !isKeyType(arg.type)) {
      integerRoots.insert(rootOf(arg.path));
      if (!hasIntegerBatch)
        batchSize = shapeOf(arg.type).front();
      hasIntegerBatch = true;
    }
  }
  bool hasOther = hasIntegerBatch;
  for (SignatureArg &arg : signature.args) {
    if (to[arg.index])
      continue;
    auto set = [&](ArgRole role, StringRef why) {
      arg.role = role;
      arg.why = why.str();
    };
    std::string root = rootOf(arg.path);
    if (isKeyType(arg.type))
      set(ArgRole::Key, "the type of a random number generator's key");
    else if (isScalar(arg.type))
      set(ArgRole::Constant, "a scalar that no result replaces");
    else if (!isFloat(arg.type))
      set(ArgRole::Batch, "an integer array that no result replaces");
    else if (integerRoots.contains(root))
      set(ArgRole::Batch, "in one tree with integer data");
    else if (stateRoots.contains(root))
      set(ArgRole::Frozen, "in one tree with state, and no result replaces it");
    else if (!hasOther)
      set(ArgRole::Batch, "no result replaces it, and there is no other data");
    else if (batchSize && shapeOf(arg.type).front() == *batchSize &&
             splitTreePath(arg.path).size() == 1)
      set(ArgRole::Batch, "has the leading dimension of the integer data");
    else
      set(ArgRole::Frozen, "a float tensor that no result replaces");
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
      result.why = "a scalar that is not state";
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
    bool isKey = isKeyType(arg.type);
    if (isFloat(arg.type)) {
      arg.role = ArgRole::Frozen;
      arg.why = "a float tensor";
    } else if (isKey || (isScalar(arg.type) && !hasFloat)) {
      arg.role = ArgRole::Key;
      arg.why = isKey ? "the type of a random number generator's key"
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
  findPaths(func, signature);
  if (failed(readOptions()) || failed(pairState()))
    return failure();
  if (trains()) {
    if (!ambiguities.empty())
      return emitError(func.getLoc())
             << "ambiguous state: several results could replace "
             << ambiguities.front() << "; choose with a state option";
    if (failed(findLoss()))
      return failure();
    findStateKinds();
    findOtherArgs();
    findOtherResults();
  } else {
    describeFunction();
  }
  for (auto &[index, role] : forcedRoles) {
    if (signature.args[index].role == role)
      continue;
    signature.args[index].role = role;
    signature.args[index].why = "set by the user";
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

LogicalResult fp8::printSignature(func::FuncOp func, raw_ostream &os) {
  FailureOr<Signature> signature = Signature::fromAttributes(func);
  if (failed(signature))
    return failure();
  // What the attributes say goes in as the user's word, so that the guess
  // cannot fail; the reasons come back out where both agree.
  SignatureOptions options;
  options.functionKind =
      signature->isStep() ? FunctionKind::Step : FunctionKind::Function;
  ScopedDiagnosticHandler quiet(func.getContext(),
                                [](Diagnostic &) { return success(); });
  FailureOr<Signature> guess = analyzeSignature(func, options);
  for (SignatureArg &arg : signature->args) {
    bool agrees =
        succeeded(guess) && guess->args[arg.index].role == arg.role &&
        (arg.role != ArgRole::State || guess->args[arg.index].kind == arg.kind);
    arg.why = agrees ? guess->args[arg.index].why : "set by the user";
  }
  for (SignatureResult &result : signature->results) {
    bool agrees =
        succeeded(guess) && guess->results[result.index].kind == result.kind;
    result.why = agrees ? guess->results[result.index].why : "set by the user";
  }
  printSignature(*signature, os);
  return success();
}

//===----------------------------------------------------------------------===//
// Vocabulary
//===----------------------------------------------------------------------===//

std::optional<int64_t> fp8::findVocabulary(func::FuncOp func,
                                           unsigned argIndex) {
  std::optional<int64_t> gathered, compared;
  auto keepSmallest = [](std::optional<int64_t> &into, int64_t size) {
    into = into ? std::min(*into, size) : size;
  };
  ValueSet seen;
  SmallVector<Value> stack;
  auto push = [&](Value value) {
    if (seen.insert(value).second)
      stack.push_back(value);
  };
  push(func.getArgument(argIndex));
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      unsigned i = use.getOperandNumber();
      if (auto gather = dyn_cast<stablehlo::GatherOp>(op)) {
        ArrayRef<int64_t> map = gather.getDimensionNumbers().getStartIndexMap();
        if (i == 1 && map.size() == 1 &&
            gather.getSliceSizes()[map.front()] == 1)
          keepSmallest(gathered,
                       shapeOf(gather.getOperand().getType())[map.front()]);
        continue;
      }
      if (isa<stablehlo::CompareOp>(op)) {
        // one_hot compares with an iota.
        Value other = op->getOperand(1 - i);
        SmallVector<int64_t> dims;
        while (auto spread = other.getDefiningOp<stablehlo::BroadcastInDimOp>())
          other = spread.getOperand();
        if (auto iota = other.getDefiningOp<stablehlo::IotaOp>())
          keepSmallest(compared,
                       shapeOf(iota.getType())[iota.getIotaDimension()]);
        continue;
      }
      if (isa<stablehlo::WhileOp>(op)) {
        push(op->getResult(i));
        for (Region &region : op->getRegions())
          push(region.getArgument(i));
        continue;
      }
      if (isa<stablehlo::OptimizationBarrierOp>(op)) {
        push(op->getResult(i));
        continue;
      }
      if (isa<stablehlo::SelectOp>(op)) {
        if (i > 0)
          push(op->getResult(0));
        continue;
      }
      if (isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp,
              stablehlo::ReshapeOp, stablehlo::TransposeOp,
              stablehlo::ConvertOp, stablehlo::BroadcastInDimOp,
              stablehlo::AddOp, stablehlo::ClampOp, stablehlo::MaxOp,
              stablehlo::MinOp, stablehlo::PadOp, stablehlo::ConcatenateOp>(
              op) &&
          !isFloat(op->getResult(0).getType()))
        push(op->getResult(0));
    }
  }
  return gathered ? gathered : compared;
}
