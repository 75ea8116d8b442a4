//===- InitialValues.cpp - The initial values of a run --------------------===//

#include "InitialValues.h"
#include "../Data/Keys.h"
#include "../Support/Elements.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace fp8::rt {

std::vector<NamedTensor> namesOf(const std::vector<TensorInfo> &infos) {
  std::vector<NamedTensor> names;
  for (const TensorInfo &info : infos)
    names.push_back({info.name, info.type});
  return names;
}

std::vector<NamedTensor> namesOf(const TensorFile &file) {
  std::vector<NamedTensor> names;
  for (const TensorFile::Tensor &tensor : file.tensors)
    names.push_back({tensor.name, tensor.type});
  return names;
}

InitialValues::InitialValues(const char *filePath,
                             const fp8_executable *function, uint64_t seed,
                             int threads) {
  if (filePath) {
    path = filePath;
    file = readSafeTensors(path);
  }
  if (!function)
    return;
  init = std::make_unique<fp8_step>(*function, threads);
  for (size_t i = 0; i < function->arguments.size(); ++i) {
    const TensorInfo &argument = function->arguments[i];
    void *buffer = init->argument(i);
    if (argument.type.dims.empty() && isInteger(argument.type.dtype)) {
      storeInteger(buffer, argument.type.dtype, 0, static_cast<int64_t>(seed));
    } else if (isKeyType(argument.type) && argument.type.dims.size() == 1) {
      Key key = keyFromSeed(seed, argument.type.dims[0]);
      std::memcpy(buffer, key.data(), key.size() * sizeof(uint32_t));
    } else {
      throw Error(FP8_ERROR_MISMATCH,
                  str("initializer argument '", argument.name,
                      "': expected a seed (an integer, or a key u32[2]) but "
                      "got ",
                      argument.type.text()));
    }
  }
  init->run();
}

bool InitialValues::fileHas(const std::vector<NamedTensor> &names) const {
  std::unordered_map<std::string, const TensorType *> types;
  for (const TensorFile::Tensor &tensor : file.tensors)
    types.emplace(tensor.name, &tensor.type);
  return std::all_of(names.begin(), names.end(), [&](const NamedTensor &named) {
    auto found = types.find(named.name);
    return found != types.end() && *found->second == named.type;
  });
}

/// Binds `optional` to the sources that `binding` left unused.
static Binding bindLeft(const Binding &binding,
                        const std::vector<NamedTensor> &optional,
                        const std::vector<NamedTensor> &sources) {
  std::vector<NamedTensor> left;
  for (int64_t source : binding.extra)
    left.push_back(sources[source]);
  Binding result = bindByPath(optional, left);
  for (int64_t &source : result.sources)
    if (source >= 0)
      source = binding.extra[source];
  for (int64_t &source : result.extra)
    source = binding.extra[source];
  return result;
}

InitialValues::Values
InitialValues::find(const std::vector<NamedTensor> &targets,
                    const std::vector<NamedTensor> &optional) const {
  Values found;
  found.targets.resize(targets.size());
  found.optional.resize(optional.size());
  auto take = [&](const std::vector<NamedTensor> &sources, auto &&dataOf) {
    Binding binding = bindByPath(targets, sources);
    Binding left = bindLeft(binding, optional, sources);
    for (size_t i = 0; i < targets.size(); ++i)
      if (binding.sources[i] >= 0 && !found.targets[i])
        found.targets[i] = dataOf(binding.sources[i]);
    for (size_t i = 0; i < optional.size(); ++i)
      if (left.sources[i] >= 0 && !found.optional[i])
        found.optional[i] = dataOf(left.sources[i]);
    binding.extra = left.extra;
    return binding;
  };
  if (!path.empty()) {
    std::vector<NamedTensor> sources = namesOf(file);
    Binding binding =
        take(sources, [&](int64_t i) { return Value(file.tensors[i].data); });
    if (!binding.misshaped.empty() || (!binding.missing.empty() && !init))
      throw Error(FP8_ERROR_MISMATCH, describe(binding,
                                               str("the tensors in '", path,
                                                   "' do not fit the step:"),
                                               targets, sources));
    for (int64_t i : binding.extra)
      found.unused.push_back(sources[i]);
  }
  if (init) {
    std::vector<NamedTensor> sources = namesOf(init->executable.results);
    Binding binding =
        take(sources, [&](int64_t i) { return Value::result(*init, i); });
    // A value from the file is not missing.
    auto isGiven = [&](int64_t target) { return bool(found.targets[target]); };
    binding.missing.erase(
        std::remove_if(binding.missing.begin(), binding.missing.end(), isGiven),
        binding.missing.end());
    binding.misshaped.erase(
        std::remove_if(binding.misshaped.begin(), binding.misshaped.end(),
                       [&](auto &pair) { return isGiven(pair.first); }),
        binding.misshaped.end());
    if (!binding.complete())
      throw Error(FP8_ERROR_MISMATCH,
                  describe(binding, "the initial values do not fit the step:",
                           targets, sources));
  }
  return found;
}

} // namespace fp8::rt
