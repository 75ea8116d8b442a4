//===- State.cpp - Categories of state ------------------------------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

llvm::StringSet<> MemoryAnalyzer::pathsOfArguments() {
  llvm::StringSet<> paths;
  for (unsigned i = 0; i < schedule.getNumArguments(); ++i)
    if (auto path =
            schedule.getArgAttrOfType<StringAttr>(i, FP8Dialect::kPathAttrName))
      paths.insert(path.getValue());
  return paths;
}

/// Returns true if the compiler added the argument beside a payload. No path of
/// an exported tree is a prefix of another, so the suffix is unambiguous.
static bool isScale(StringRef path, const llvm::StringSet<> &paths) {
  for (StringRef suffix : {".scale", ".center", ".exponent"})
    if (path.ends_with(suffix) && paths.contains(path.drop_back(suffix.size())))
      return true;
  return false;
}

StateCategory MemoryAnalyzer::categoryOf(BlockArgument arg, StringRef path,
                                         const llvm::StringSet<> &paths) {
  if (isScale(path, paths))
    return StateCategory::Scale;
  std::optional<StateKind> kind = stateKindOf(arg);
  if (kind == StateKind::Parameter)
    return StateCategory::Master;
  if (kind == StateKind::Moment1)
    return StateCategory::Moment1;
  if (kind == StateKind::Moment2)
    return StateCategory::Moment2;
  if (!schedule.getArgAttr(arg.getArgNumber(), FP8Dialect::kZeroInitAttrName))
    return StateCategory::Other;
  auto type = cast<MemRefType>(arg.getType());
  return isFP8Buffer(type) && type.getRank() > 0 ? StateCategory::FP8Weight
                                                 : StateCategory::Scale;
}

PlannedState MemoryAnalyzer::describe(BlockArgument arg,
                                      const llvm::StringSet<> &paths) {
  unsigned index = arg.getArgNumber();
  auto type = cast<MemRefType>(arg.getType());
  PlannedState state;
  if (auto path = schedule.getArgAttrOfType<StringAttr>(
          index, FP8Dialect::kPathAttrName))
    state.path = path.str();
  state.type = printShape(type);
  state.bytes = byteSize(type);
  state.elements = type.getNumElements();
  state.category = categoryOf(arg, state.path, paths);
  auto number = [&](StringRef name, int64_t missing) {
    auto attr = schedule.getArgAttrOfType<IntegerAttr>(index, name);
    return attr ? attr.getInt() : missing;
  };
  state.shard = number(FP8Dialect::kShardAttrName, 0);
  state.slices = number(FP8Dialect::kSlicesAttrName, 1);
  if (auto reason = schedule.getArgAttrOfType<StringAttr>(
          index, FP8Dialect::kWholeReasonAttrName))
    state.wholeReason = reason.str();
  state.layerShare = layerParameters.empty() ? 0 : layerParameters.test(index);
  return state;
}

/// Returns the share of the parameters of this size that belong to layers.
double MemoryAnalyzer::shareOfParameters(int64_t elements) const {
  auto it = parameterShares.find(elements);
  return it == parameterShares.end() || it->second.second == 0
             ? 0
             : it->second.first / it->second.second;
}

/// Finds the layer share of parameters that no dot reads, from how many there
/// are of each type.
void MemoryAnalyzer::findUnreadParameters() {
  int64_t layers = *report.layers.value;
  std::map<std::string, SmallVector<PlannedState *>> groups;
  for (PlannedState &state : report.state)
    if (state.category == StateCategory::Master && state.layerShare == 0)
      groups[state.type].push_back(&state);
  for (auto &[type, group] : groups) {
    int64_t size = group.size();
    bool isStack =
        layerLoop && StringRef(type).starts_with(std::to_string(layers) + "x");
    for (PlannedState *state : group)
      state->layerShare =
          isStack ? 1 : static_cast<double>(size / layers * layers) / size;
  }
}

/// The state besides the parameters grows like the parameters of the same size.
void MemoryAnalyzer::shareParameters() {
  for (const PlannedState &state : report.state)
    if (state.category == StateCategory::Master) {
      auto &[ofLayers, all] = parameterShares[state.elements];
      ofLayers += state.layerShare;
      all += 1;
    }
  for (PlannedState &state : report.state)
    if (state.category != StateCategory::Master)
      state.layerShare = shareOfParameters(state.elements);
}

/// Lists the state with its categories, and adds up the bytes of all other
/// buffers outside of the arena.
void MemoryAnalyzer::fillState() {
  llvm::StringSet<> paths = pathsOfArguments();
  for (BlockArgument arg : schedule.getArguments()) {
    int64_t bytes = byteSize(cast<MemRefType>(arg.getType()));
    std::optional<ArgRole> role = argRoleOf(arg);
    if (schedule.getArgAttr(arg.getArgNumber(), FP8Dialect::kOutputAttrName))
      report.resultBytes += bytes;
    else if (role == ArgRole::State || role == ArgRole::Frozen)
      report.state.push_back(describe(arg, paths));
    else
      report.inputBytes += bytes;
  }
  if (report.layers.value.value_or(0) > 0) {
    findUnreadParameters();
    shareParameters();
  }
  for (auto global :
       schedule->getParentOfType<ModuleOp>().getOps<memref::GlobalOp>())
    report.constantBytes += byteSize(global.getType());
}
