//===- StoredState.cpp - State as the user has it, and as it is stored ----===//

#include "StoredState.h"
#include "../Support/Json.h"
#include "Checkpoint.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace fp8::rt {

namespace {
/// Finds tensors by name.
class Index {
public:
  explicit Index(const std::vector<TensorInfo> &infos) : infos(infos) {
    for (size_t i = 0; i < infos.size(); ++i)
      positions.emplace(infos[i].name, static_cast<int64_t>(i));
  }
  /// Returns the position of the tensor called `name`, or -1.
  int64_t find(const std::string &name) const {
    auto found = positions.find(name);
    return found == positions.end() ? -1 : found->second;
  }
  bool has(const std::string &name) const { return find(name) >= 0; }
  /// Returns the position of the tensor with the name and type of `info`, or
  /// throws; `what` and `where` describe the tensor and the list in the error.
  size_t require(const TensorInfo &info, const char *what,
                 const char *where) const {
    int64_t at = find(info.name);
    if (at >= 0 && infos[at].wholeType() == info.type)
      return at;
    throw Error(FP8_ERROR_INVALID,
                str(what, " '", info.name, "' ", info.type.text(),
                    ": expected ", where, " of this name and type but got ",
                    at < 0 ? "none" : infos[at].wholeType().text()));
  }

private:
  const std::vector<TensorInfo> &infos;
  std::unordered_map<std::string, int64_t> positions;
};
} // namespace

StoredState::StoredState(const fp8_executable &step,
                         const fp8_executable *store,
                         const fp8_executable *load, int threads)
    : step(step), store(store), load(load), threads(threads) {
  if (!store != !load)
    throw Error(FP8_ERROR_INVALID,
                str("expected both functions of stored state but got ",
                    store ? "'store'" : "'load'", " alone"));
  if (store) {
    findArguments();
    for (const TensorInfo &result : store->results)
      stored.push_back({result.name, result.type});
  }
  findLeaves();
}

/// Binds the arguments and results of the three functions to each other.
void StoredState::findArguments() {
  Index ofStep(step.arguments), taken(store->arguments), made(store->results),
      returned(load->results);
  for (const TensorInfo &result : store->results)
    storedArguments.push_back(
        ofStep.require(result, "result of 'store'", "an argument of the step"));
  for (const TensorInfo &argument : load->arguments)
    loadedArguments.push_back(ofStep.require(argument, "argument of 'load'",
                                             "an argument of the step"));
  for (const TensorInfo &result : load->results)
    taken.require(result, "result of 'load'", "an argument of 'store'");
  for (const TensorInfo &argument : store->arguments)
    if (!returned.has(argument.name))
      // A tensor that `store` only reads must exist in the user's form.
      (made.has(argument.name) ? returned : ofStep)
          .require(argument, "argument of 'store'",
                   made.has(argument.name) ? "a result of 'load'"
                                           : "an argument of the step");
}

void StoredState::findLeaves() {
  auto addLeaf = [&](const TensorInfo &info, int64_t argument) -> Leaf & {
    Leaf &leaf = leaves.emplace_back();
    leaf.named = {info.name, info.wholeType()};
    leaf.zeroInit = info.zeroInit;
    leaf.argument = argument;
    return leaf;
  };
  if (!store) {
    for (size_t i : stateArguments(step))
      addLeaf(step.arguments[i], static_cast<int64_t>(i));
    return;
  }
  Index ofStep(step.arguments), taken(store->arguments), made(store->results),
      returned(load->results);
  auto bind = [&](Leaf &leaf) {
    leaf.storeArgument = taken.find(leaf.named.name);
    leaf.loadResult = returned.find(leaf.named.name);
    if (leaf.storeArgument >= 0)
      leaf.named.type = store->arguments[leaf.storeArgument].type;
  };
  for (size_t i : stateArguments(step)) {
    const TensorInfo &argument = step.arguments[i];
    bool isMade = made.has(argument.name);
    // The user has no such tensor; it is a scale, for example.
    if (isMade && !taken.has(argument.name))
      continue;
    bind(addLeaf(argument, isMade ? -1 : static_cast<int64_t>(i)));
  }
  // Tensors that the step has only under other names.
  for (const TensorInfo &argument : store->arguments)
    if (!ofStep.has(argument.name))
      bind(addLeaf(argument, -1));
}

std::vector<std::string> StoredState::compilersNames() const {
  static const std::vector<TensorInfo> none;
  Index taken(store ? store->arguments : none),
      made(store ? store->results : none);
  std::vector<std::string> names;
  for (const TensorInfo &argument : step.arguments)
    if (argument.zeroInit ||
        (made.has(argument.name) && !taken.has(argument.name)))
      names.push_back(argument.name);
  return names;
}

std::string StoredState::treeJson() const {
  nlohmann::json json = nlohmann::json::object();
  if (load)
    for (const TensorInfo &result : load->results)
      json[result.name] = {{"dtype", fp8_dtype_name(result.type.dtype)},
                           {"shape", result.type.dims}};
  return dumpJson(json);
}

std::string StoredState::storedJson() const {
  nlohmann::json json = nlohmann::json::array();
  for (const NamedTensor &named : stored)
    json.push_back(named.name);
  return dumpJson(json);
}

void StoredState::write(const std::vector<Value> &values, fp8_step &into) {
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].argument >= 0)
      into.setWhole(leaves[i].argument, values[i]);
  if (!store)
    return;
  fp8_step function(*store, threads);
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].storeArgument >= 0)
      function.set(leaves[i].storeArgument, values[i]);
  function.run();
  for (size_t i = 0; i < stored.size(); ++i)
    into.setWhole(storedArguments[i], Value::result(function, i));
  function.memory(storeTook.emplace());
}

StoredState::Loaded StoredState::read(fp8_step &from,
                                      const std::vector<size_t> &wanted) {
  Loaded loaded;
  if (std::any_of(wanted.begin(), wanted.end(),
                  [&](size_t i) { return leaves[i].loadResult >= 0; })) {
    loaded.memory = std::make_unique<fp8_step>(*load, threads);
    fp8_step &function = *loaded.memory;
    for (size_t i = 0; i < loadedArguments.size(); ++i)
      function.set(i, from.wholeValue(loadedArguments[i]));
    function.run();
    function.memory(loadTook.emplace());
  }
  loaded.values.resize(leaves.size());
  for (size_t i : wanted)
    loaded.values[i] = leaves[i].loadResult >= 0
                           ? Value::result(*loaded.memory, leaves[i].loadResult)
                           : from.wholeValue(leaves[i].argument);
  return loaded;
}

} // namespace fp8::rt
