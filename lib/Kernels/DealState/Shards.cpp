//===- Shards.cpp - Which state and which gradients owners have -----------===//

#include "../FormKernels/Work.h"
#include "Slices.h"
#include "StateDealer.h"

#include "fp8/Kernels/Structure.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns how often an op runs in one step, as far as trip counts are static.
static int64_t runsOf(Operation *op) {
  int64_t runs = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (std::optional<APInt> trips = loop.getStaticTripCount())
      runs *= std::max<int64_t>(trips->getSExtValue(), 1);
  return runs;
}

static bool isTrainedParameter(Value arg) {
  return stateKindOf(arg) == StateKind::Parameter;
}

/// Finds the shards: each is a parameter and the state that belongs to it, with
/// their scales.
void StateDealer::findShards() {
  llvm::StringMap<int64_t> numbers;
  auto attrOf = [&](BlockArgument arg, StringRef name) {
    return func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), name);
  };
  llvm::StringSet<> parameters;
  for (BlockArgument arg : func.getArguments())
    if (auto path = attrOf(arg, FP8Dialect::kPathAttrName);
        path && isTrainedParameter(arg))
      parameters.insert(path.getValue());
  for (BlockArgument arg : func.getArguments()) {
    auto name = attrOf(arg, FP8Dialect::kParameterAttrName);
    if (!name && isTrainedParameter(arg)) {
      name = attrOf(arg, FP8Dialect::kPathAttrName);
      StringRef base = name ? name.getValue() : "";
      if (base.consume_back(FP8Dialect::kScaleSuffix) &&
          parameters.contains(base))
        name = StringAttr::get(func.getContext(), base);
    }
    if (argRoleOf(arg) != ArgRole::State || !name ||
        hasPart(arg.getArgNumber()))
      continue;
    auto [entry, isNew] =
        numbers.try_emplace(name.getValue(), names.size() + 1);
    if (isNew)
      names.push_back(name);
    shardOf[arg] = entry->second;
  }
}

/// Finds the shards of stacks. They have slices if all of their state has.
void StateDealer::findStacks() {
  slices.assign(names.size() + 1, 1);
  reasons.assign(names.size() + 1, "");
  stored.assign(names.size() + 1, 0);
  for (auto [arg, shard] : shardOf) {
    stored[shard] += bytesOf(arg);
    auto path = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                  FP8Dialect::kPathAttrName);
    if (path && path == names[shard - 1])
      slices[shard] = layersOf(arg);
  }
  // All ranks hold small state without slices, such as a scale that all layers
  // share.
  constexpr int64_t little = 256;
  for (auto [arg, shard] : shardOf)
    if (slices[shard] > 1 && !hasSlices(arg, slices[shard])) {
      if (bytesOf(arg) <= little)
        whole.insert(arg);
      else
        keepTogether(shard, "state of it has no slices");
    }
}

/// Gives all layers of a stack to one owner.
void StateDealer::keepTogether(int64_t shard, const Twine &reason) {
  reasons[shard] = reason.str();
  slices[shard] = 1;
  changed = true;
}

/// Returns the shard of a gradient: the only one whose state is combined
/// element by element with the gradient or with values computed from it.
std::optional<int64_t> StateDealer::shardOfGradient(AllReduceOp reduce) {
  llvm::SmallDenseSet<int64_t> found;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{reduce.getResult()};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      if (isWork(user))
        for (Value read : valuesReadBy(user))
          if (auto arg = dyn_cast<BlockArgument>(rootOf(read)))
            if (auto shard = shardOf.find(arg); shard != shardOf.end())
              found.insert(shard->second);
      if (isWork(user) || isTensorView(user))
        for (Value result : user->getResults())
          if (elementsOf(result) == elementsOf(reduce.getResult()))
            worklist.push_back(result);
    }
  }
  if (found.size() != 1)
    return std::nullopt;
  return *found.begin();
}

void StateDealer::findGradients() {
  gradients.clear();
  func.walk([&](AllReduceOp reduce) {
    bool isSum = reduce.getReduction() == Reduction::Sum ||
                 reduce.getReduction() == Reduction::Mean;
    if (!isSum || elementsOf(reduce.getResult()) < 2 || plain.contains(reduce))
      return;
    if (std::optional<int64_t> shard = shardOfGradient(reduce))
      gradients[reduce] = *shard;
  });
}

/// Lets all ranks hold the parameters that are smaller than the values that
/// would otherwise be sent. Returns whether it finds any.
bool StateDealer::replicateCheapParameters() {
  SmallVector<int64_t> cost(names.size() + 1), parameters(names.size() + 1);
  for (Value value : sent)
    if (Holder holder = holders.lookup(value);
        holder.isOwner() && !isPartOfResult(value, holder)) {
      Operation *def = value.getDefiningOp();
      cost[holder.shard] +=
          bytesOf(value) * runsOf(def ? def : &value.getParentBlock()->front());
    }
  for (auto [arg, shard] : shardOf)
    if (isTrainedParameter(arg))
      parameters[shard] += bytesOf(arg);
  // Small values such as sums of squares are sent in any case.
  constexpr int64_t little = 256;
  bool found = false;
  for (auto [arg, shard] : shardOf)
    if (isTrainedParameter(arg) && cost[shard] > parameters[shard] + little)
      found |= whole.insert(arg).second;
  return found;
}

std::optional<BlockArgument> StateDealer::stateOfResult(unsigned index) {
  auto path =
      func.getResultAttrOfType<StringAttr>(index, FP8Dialect::kStateAttrName);
  BlockArgument arg =
      path ? arguments.lookup(path.getValue()) : BlockArgument();
  return arg ? std::optional(arg) : std::nullopt;
}

/// Adds other state to a shard if only the owner reads it and computes its new
/// value. Returns whether it finds any.
bool StateDealer::dealDerivedState() {
  bool found = false;
  Operation *end = func.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    Holder holder = holders.lookup(operand.get());
    std::optional<BlockArgument> arg =
        stateOfResult(operand.getOperandNumber());
    if (!arg || !holder.isOwner() || shardOf.contains(*arg) ||
        whole.contains(*arg) ||
        (slicesOf(holder) > 1 && !hasSlices(*arg, slicesOf(holder))))
      continue;
    bool isOwners = true;
    SmallVector<Value> views{*arg};
    while (!views.empty())
      for (Operation *user : views.pop_back_val().getUsers()) {
        if (isTensorView(user) || isa<tensor::ExtractSliceOp>(user))
          views.push_back(user->getResult(0));
        else
          isOwners &= user->getNumResults() > 0 && isWork(user) &&
                      holders.lookup(user->getResult(0)) == holder;
      }
    if (!isOwners)
      continue;
    shardOf[*arg] = holder.shard;
    found = true;
  }
  return found;
}
