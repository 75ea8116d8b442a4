//===- Checkpoint.cpp - Saving and resuming a run -------------------------===//

#include "Checkpoint.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace fp8::rt {

static const char *const formatName = "fp8-checkpoint-2";

std::vector<size_t> stateArguments(const fp8_executable &executable) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < executable.arguments.size(); ++i) {
    fp8_role role = executable.arguments[i].role;
    if (role != FP8_ROLE_BATCH && role != FP8_ROLE_KEY)
      indices.push_back(i);
  }
  return indices;
}

std::vector<size_t> keyArguments(const fp8_executable &executable) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    if (executable.arguments[i].role == FP8_ROLE_KEY)
      indices.push_back(i);
  return indices;
}

/// What a checkpoint holds.
static std::vector<size_t> savedArguments(const fp8_executable &executable) {
  std::vector<size_t> indices = stateArguments(executable);
  for (size_t i : keyArguments(executable))
    indices.push_back(i);
  return indices;
}

std::string writeCheckpoint(const std::string &directory, fp8_step &step,
                            const CheckpointInfo &info,
                            const StoredTrees *stored) {
  std::vector<TensorToWrite> tensors;
  for (size_t i : savedArguments(step.executable)) {
    const TensorInfo &argument = step.executable.arguments[i];
    tensors.push_back({argument.name, argument.type, step.argument(i)});
  }
  std::map<std::string, std::string> metadata = {
      {"format", formatName},
      {"step", std::to_string(info.step)},
      {"data_position", std::to_string(info.batches)},
      {"data_epoch", std::to_string(info.rows.epoch)},
      {"data_index", std::to_string(info.rows.index)},
      {"shuffle_seed", info.shuffle ? std::to_string(info.seed) : "none"},
      {"seed", std::to_string(info.seed)},
      {"module", info.fingerprint},
      {"data", info.dataFingerprint}};
  if (stored) {
    metadata["user_state"] = stored->user;
    metadata["stored_state"] = stored->stored;
  }
  std::string path = str(directory, "/checkpoint-", info.step, ".safetensors");
  writeSafeTensors(path, std::move(tensors), metadata);
  return path;
}

std::vector<CheckpointFile> listCheckpoints(const std::string &directory) {
  static const std::string prefix = "checkpoint-", suffix = ".safetensors";
  std::vector<CheckpointFile> found;
  for (const std::string &name : listDirectory(directory)) {
    if (name.size() <= prefix.size() + suffix.size() ||
        name.compare(0, prefix.size(), prefix) != 0 ||
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
      continue;
    std::string digits =
        name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    if (digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    found.push_back({std::stoll(digits), directory + "/" + name});
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointFile &a, const CheckpointFile &b) {
              return a.step > b.step;
            });
  return found;
}

/// The checkpoint's metadata; an error if the file is none.
static CheckpointInfo readInfo(const TensorFile &file,
                               const CheckpointFile &at) {
  auto value = [&](const char *key) -> std::string {
    auto found = file.metadata.find(key);
    if (found == file.metadata.end())
      throw Error(FP8_ERROR_FORMAT,
                  str("'", at.path,
                      "' is no checkpoint: its metadata have no '", key, "'"));
    return found->second;
  };
  if (value("format") != formatName)
    throw Error(FP8_ERROR_FORMAT,
                str("'", at.path, "': expected checkpoint format ", formatName,
                    " but got ", value("format")));
  CheckpointInfo info;
  info.step = std::strtoll(value("step").c_str(), nullptr, 10);
  info.batches = std::strtoll(value("data_position").c_str(), nullptr, 10);
  info.seed = std::strtoull(value("seed").c_str(), nullptr, 10);
  info.rows.epoch = std::strtoll(value("data_epoch").c_str(), nullptr, 10);
  info.rows.index = std::strtoll(value("data_index").c_str(), nullptr, 10);
  if (info.batches < 0 || info.rows.epoch < 0 || info.rows.index < 0)
    throw Error(FP8_ERROR_FORMAT,
                str("'", at.path, "': its position in the data is negative"));
  info.shuffle = value("shuffle_seed") != "none";
  info.fingerprint = value("module");
  info.dataFingerprint = value("data");
  if (info.step != at.step)
    throw Error(FP8_ERROR_FORMAT,
                str("'", at.path, "' says that it is of step ", info.step));
  return info;
}

namespace {
struct Whole {
  CheckpointFile at;
  TensorFile file;
  CheckpointInfo info;
};
} // namespace

using Warn = std::function<void(const std::string &)>;

/// The newest checkpoint that is whole; nothing if there is none.
static std::optional<Whole>
readNewest(const std::vector<CheckpointFile> &checkpoints, const Warn &warn) {
  for (const CheckpointFile &checkpoint : checkpoints) {
    try {
      Whole whole{checkpoint, readSafeTensors(checkpoint.path), {}};
      whole.info = readInfo(whole.file, checkpoint);
      return std::move(whole);
    } catch (const Error &error) {
      if (error.status == FP8_ERROR_MEMORY)
        throw;
      warn(str("warning: passing over a damaged checkpoint: ", error.what()));
    }
  }
  return std::nullopt;
}

TensorFile readNewestCheckpoint(const std::string &directory) {
  std::optional<Whole> newest =
      readNewest(listCheckpoints(directory), [](const std::string &) {});
  return newest ? std::move(newest->file) : TensorFile();
}

/// The parts of a fingerprint; one if it has none.
static std::vector<std::string> partsOf(const std::string &fingerprint) {
  std::vector<std::string> parts;
  size_t begin = 0;
  if (fingerprint.compare(0, 7, "module ") == 0)
    for (size_t end; (end = fingerprint.find(", ", begin)) != std::string::npos;
         begin = end + 2)
      parts.push_back(fingerprint.substr(begin, end - begin));
  parts.push_back(fingerprint.substr(begin));
  return parts;
}

FingerprintDifference compareFingerprints(const std::string &found,
                                          const std::string &expected) {
  std::vector<std::string> a = partsOf(found), b = partsOf(expected);
  FingerprintDifference difference;
  if (a.size() != b.size()) {
    difference.found = found;
    difference.expected = expected;
    difference.isEarlier = a.size() == 1;
    return difference;
  }
  difference.isCompilerAlone = true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i])
      continue;
    difference.found += (difference.found.empty() ? "" : ", ") + a[i];
    difference.expected += (difference.expected.empty() ? "" : ", ") + b[i];
    difference.isCompilerAlone &= a[i].compare(0, 9, "compiler ") == 0;
  }
  return difference;
}

/// Whether it is the compiler's own count of the calls of the step.
static bool countsCalls(const TensorInfo &argument) {
  return argument.zeroInit && argument.kind == FP8_KIND_STEP &&
         argument.type.bytes() == sizeof(CheckpointInfo::step);
}

CheckpointInfo resumeFromNewest(const std::string &directory, fp8_step &step,
                                const std::string &fingerprint,
                                std::string &path, const Warn &warn) {
  std::vector<CheckpointFile> checkpoints = listCheckpoints(directory);
  std::optional<Whole> newest = readNewest(checkpoints, warn);
  if (!newest)
    throw Error(FP8_ERROR_IO,
                str("no ", checkpoints.empty() ? "" : "valid ",
                    "checkpoint to resume from in '", directory, "'"));
  const TensorFile &file = newest->file;
  std::vector<Named> targets;
  std::vector<size_t> indices = savedArguments(step.executable);
  for (size_t i : indices)
    targets.push_back(
        {step.executable.arguments[i].name, step.executable.arguments[i].type});
  // Same names only: a checkpoint is of this very step, or of another model.
  std::vector<Named> sources;
  Binding binding;
  std::map<std::string, size_t> byName;
  std::vector<bool> used(file.tensors.size(), false);
  for (const TensorFile::Tensor &tensor : file.tensors) {
    byName[tensor.name] = sources.size();
    sources.push_back({tensor.name, tensor.type});
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    auto found = byName.find(targets[i].name);
    binding.sources.push_back(-1);
    if (found == byName.end()) {
      if (!countsCalls(step.executable.arguments[indices[i]]))
        binding.missing.push_back(i);
      continue;
    }
    used[found->second] = true;
    if (sources[found->second].type != targets[i].type)
      binding.misshaped.emplace_back(i, found->second);
    else
      binding.sources[i] = found->second;
  }
  for (size_t i = 0; i < sources.size(); ++i)
    if (!used[i])
      binding.extra.push_back(i);
  if (!binding.missing.empty() || !binding.misshaped.empty() ||
      !binding.extra.empty()) {
    FingerprintDifference other =
        compareFingerprints(newest->info.fingerprint, fingerprint);
    throw Error(
        FP8_ERROR_MISMATCH,
        describe(binding,
                 str("'", newest->at.path, "' is a checkpoint of another model",
                     newest->info.fingerprint == fingerprint
                         ? ""
                         : str(" or recipe ('", other.found, "', this is '",
                               other.expected, "')"),
                     ":"),
                 targets, sources));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    // A counter that the compiler did not add when this was written.
    const void *data = &newest->info.step;
    if (binding.sources[i] >= 0)
      data = file.tensors[binding.sources[i]].data;
    std::memcpy(step.argument(indices[i]), data, targets[i].type.bytes());
  }
  path = newest->at.path;
  return newest->info;
}

} // namespace fp8::rt
