//===- Checkpoint.cpp - Saving and resuming a run -------------------------===//

#include "Checkpoint.h"
#include "SafeTensorsIndex.h"
#include "StateSet.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace fp8::rt {

static const char *const formatName = "fp8-checkpoint-2";

/// The metadata's list of the state that the compiler has added to the user's,
/// one name a line.
static const char *const compilersKey = "compiler_state";

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

/// Returns the arguments that a checkpoint holds.
static std::vector<size_t> savedArguments(const fp8_executable &executable) {
  std::vector<size_t> indices = stateArguments(executable);
  for (size_t i : keyArguments(executable))
    indices.push_back(i);
  return indices;
}

static std::map<std::string, std::string> metadataOf(const CheckpointInfo &info,
                                                     const StateNames &names) {
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
  for (const std::string &name : info.mayBeInfinite)
    metadata["may_be_infinite"] += name + "\n";
  std::string &compilers = metadata[compilersKey];
  for (const std::string &name : names.compilers)
    compilers += name + "\n";
  if (!names.user.empty()) {
    metadata["user_state"] = names.user;
    metadata["stored_state"] = names.stored;
  }
  return metadata;
}

std::string writeCheckpoint(const std::string &directory, fp8_step &step,
                            const CheckpointInfo &info,
                            const StateNames &names) {
  std::vector<TensorToWrite> tensors;
  for (size_t i : savedArguments(step.executable))
    tensors.push_back(tensorOf(step, i));
  std::string path = str(directory, "/checkpoint-", info.step, ".safetensors");
  writeSafeTensors(path, std::move(tensors), metadataOf(info, names));
  return path;
}

std::string writeCheckpointSet(const std::string &directory, fp8_step &step,
                               const CheckpointInfo &info,
                               const StateNames &names, fp8_group &group) {
  StateSet set = {str(directory, "/checkpoint-", info.step),
                  savedArguments(step.executable), metadataOf(info, names)};
  // The run has passed over what is there: it is damaged.
  if (group.rank() == 0)
    unlink(set.index().c_str());
  writeStateSet(set, step, group);
  step.drop();
  return set.index();
}

//===----------------------------------------------------------------------===//
// The files in a directory
//===----------------------------------------------------------------------===//

/// Returns the step of a file checkpoint-<step><suffix>, or -1. The suffix of a
/// file of a set begins with '-'.
static int64_t stepOfName(const std::string &name, std::string &suffix) {
  static const std::string prefix = "checkpoint-";
  if (name.compare(0, prefix.size(), prefix) != 0)
    return -1;
  size_t end = name.find_first_not_of("0123456789", prefix.size());
  if (end == std::string::npos || end == prefix.size() ||
      end - prefix.size() > 18)
    return -1;
  suffix = name.substr(end);
  return std::stoll(name.substr(prefix.size(), end - prefix.size()));
}

/// Returns whether a suffix is -<number>-of-<count>.safetensors.
static bool isOfSet(const std::string &suffix) {
  static const char *const digits = "0123456789";
  size_t first = suffix.find_first_not_of(digits, 1);
  if (suffix[0] != '-' || first == std::string::npos || first == 1 ||
      suffix.compare(first, 4, "-of-") != 0)
    return false;
  size_t second = suffix.find_first_not_of(digits, first + 4);
  return second != std::string::npos && second > first + 4 &&
         suffix.substr(second) == ".safetensors";
}

/// Removes the files of sets of the steps for which `isToGo` returns true.
static void removeParts(const std::string &directory,
                        const std::function<bool(int64_t)> &isToGo) {
  std::string suffix;
  for (const std::string &name : listDirectory(directory)) {
    int64_t step = stepOfName(name, suffix);
    if (step >= 0 && isOfSet(suffix) && isToGo(step))
      unlink((directory + "/" + name).c_str());
  }
}

int removeCheckpoint(const CheckpointFile &checkpoint) {
  // Without its index a set is no checkpoint, so the index goes first.
  if (unlink(checkpoint.path.c_str()) != 0)
    return errno;
  if (isSafeTensorsIndex(checkpoint.path))
    removeParts(directoryOf(checkpoint.path),
                [&](int64_t step) { return step == checkpoint.step; });
  return 0;
}

void removeIncompleteCheckpoints(const std::string &directory) {
  removeParts(directory, [&](int64_t step) {
    return !fileExists(str(directory, "/checkpoint-", step, indexSuffix));
  });
}

std::vector<CheckpointFile> listCheckpoints(const std::string &directory) {
  std::vector<CheckpointFile> found;
  std::string suffix;
  for (const std::string &name : listDirectory(directory)) {
    int64_t step = stepOfName(name, suffix);
    if (step >= 0 && (suffix == ".safetensors" || suffix == indexSuffix))
      found.push_back({step, directory + "/" + name});
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointFile &a, const CheckpointFile &b) {
              return a.step > b.step;
            });
  return found;
}

/// Returns the names in a list of the metadata, one a line; nothing if there is
/// no such list.
static std::optional<std::set<std::string>> namesIn(const TensorFile &file,
                                                    const std::string &key) {
  auto list = file.metadata.find(key);
  if (list == file.metadata.end())
    return std::nullopt;
  auto lines = classic<std::istringstream>(list->second);
  std::set<std::string> names;
  for (std::string name; std::getline(lines, name);)
    names.insert(name);
  return names;
}

/// Returns the checkpoint's metadata; throws if the file is not a checkpoint.
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
  if (value("format") == "fp8.state")
    throw Error(FP8_ERROR_MISMATCH,
                str("'", at.path,
                    "' was written from Python and does not say where the data "
                    "stand: continue it there, with fp8.Trainer, or remove it "
                    "to continue from an earlier one"));
  if (value("format") != formatName)
    throw Error(FP8_ERROR_FORMAT,
                str("'", at.path, "': expected checkpoint format ", formatName,
                    " but got ", value("format")));
  auto number = [&](const char *key, auto &out) {
    std::string text = value(key);
    auto whole = numberOf<std::decay_t<decltype(out)>>(text);
    if (!whole)
      throw Error(FP8_ERROR_FORMAT,
                  str("'", at.path, "': expected '", key,
                      "' in its metadata to be a whole number but got '", text,
                      "'"));
    out = *whole;
  };
  CheckpointInfo info;
  number("step", info.step);
  number("data_position", info.batches);
  number("seed", info.seed);
  number("data_epoch", info.rows.epoch);
  number("data_index", info.rows.index);
  if (info.batches < 0 || info.rows.epoch < 0 || info.rows.index < 0)
    throw Error(FP8_ERROR_FORMAT,
                str("'", at.path, "': its position in the data is negative"));
  info.shuffle = value("shuffle_seed") != "none";
  info.fingerprint = value("module");
  info.dataFingerprint = value("data");
  info.mayBeInfinite =
      namesIn(file, "may_be_infinite").value_or(std::set<std::string>());
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

/// Returns the newest checkpoint that is complete; nothing if there is none.
/// Throws if that is one of Python's: it is not damaged, and the steps since
/// an earlier one would be lost.
static std::optional<Whole>
readNewest(const std::vector<CheckpointFile> &checkpoints, const Warn &warn) {
  for (const CheckpointFile &checkpoint : checkpoints) {
    try {
      Whole whole{checkpoint, readSafeTensors(checkpoint.path), {}};
      whole.info = readInfo(whole.file, checkpoint);
      return std::move(whole);
    } catch (const Error &error) {
      if (error.status == FP8_ERROR_MEMORY ||
          error.status == FP8_ERROR_MISMATCH)
        throw;
      warn(str("warning: passing over a checkpoint: ", error.what()));
    }
  }
  return std::nullopt;
}

TensorFile readNewestCheckpoint(const std::string &directory) {
  std::optional<Whole> newest =
      readNewest(listCheckpoints(directory), [](const std::string &) {});
  return newest ? std::move(newest->file) : TensorFile();
}

/// Returns the parts of a fingerprint, or the fingerprint as one part if it has
/// none.
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

/// Returns the first word of a part, which says what it is of.
static std::string subjectOf(const std::string &part) {
  return part.substr(0, part.find(' '));
}

FingerprintDifference compareFingerprints(const std::string &found,
                                          const std::string &expected) {
  std::vector<std::string> a = partsOf(found), b = partsOf(expected);
  FingerprintDifference difference;
  if ((a.size() == 1) != (b.size() == 1)) {
    difference.found = found;
    difference.expected = expected;
    difference.isEarlier = a.size() == 1;
    return difference;
  }
  // An earlier version wrote fewer parts; nothing is known of the others.
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i])
      continue;
    difference.found += (difference.found.empty() ? "" : ", ") + a[i];
    difference.expected += (difference.expected.empty() ? "" : ", ") + b[i];
    difference.subjects.insert(a.size() == 1 ? "" : subjectOf(a[i]));
  }
  return difference;
}

std::string withoutArithmetic(const std::string &fingerprint) {
  std::string text;
  for (const std::string &part : partsOf(fingerprint))
    if (subjectOf(part) != "arithmetic")
      text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// Returns whether the argument is the compiler's own counter of the step's
/// calls.
static bool isCallCounter(const TensorInfo &argument) {
  return argument.zeroInit && argument.kind == FP8_KIND_STEP &&
         argument.type.bytes() == sizeof(CheckpointInfo::step);
}

/// Returns the tensors of a checkpoint that a recipe has for itself. Before
/// checkpoints listed what the compiler had added, the names alone told.
static std::set<std::string> findRecipeState(const TensorFile &file) {
  const std::string begin = "fp8.";
  std::optional<std::set<std::string>> listed = namesIn(file, compilersKey);
  std::set<std::string> found;
  for (const TensorFile::Tensor &tensor : file.tensors)
    if (tensor.name.compare(0, begin.size(), begin) == 0 &&
        (!listed || listed->count(tensor.name)))
      found.insert(tensor.name);
  return found;
}

/// Returns whether state of a recipe's own is an automatic scale of gradients
/// on an f8 wire. (`fp8-data-parallel` adds it under this name; files have no
/// more than names.)
static bool scalesWire(const std::string &name) {
  const std::string begin = "fp8.", wire = ".all_reduce", end = ".mu";
  size_t at = name.rfind(wire);
  if (at == std::string::npos || name.compare(0, begin.size(), begin) != 0)
    return false;
  // (Further scales of the same gradient are numbered.)
  at = name.find_first_not_of(".0123456789", at + wire.size());
  return at != std::string::npos && name.substr(at - 1) == end;
}

namespace {

/// The tensors of a checkpoint, and the state that they are for.
struct SavedState {
  std::vector<NamedTensor> targets, sources;
  /// The tensors of the checkpoint that its recipe has for itself.
  std::set<std::string> ofRecipe;
  Binding binding;
  /// How many scales of an f8 wire the checkpoint lacks, or has in vain.
  size_t newScales = 0, unusedScales = 0;
};

} // namespace

/// Binds tensors by their names, which must match exactly: a checkpoint is
/// either of this step or of another model. What the compiler alone has added
/// may be missing, and the scales of a wire that this run has not may be extra.
static SavedState bindSaved(const TensorFile &file,
                            const fp8_executable &executable,
                            const std::vector<size_t> &indices) {
  SavedState state;
  std::map<std::string, size_t> byName;
  for (const TensorFile::Tensor &tensor : file.tensors) {
    byName[tensor.name] = state.sources.size();
    state.sources.push_back({tensor.name, tensor.type});
  }
  state.ofRecipe = findRecipeState(file);
  std::vector<bool> used(state.sources.size(), false);
  for (size_t i = 0; i < indices.size(); ++i) {
    const TensorInfo &argument = executable.arguments[indices[i]];
    state.targets.push_back({argument.name, argument.wholeType()});
    state.binding.sources.push_back(-1);
    auto found = byName.find(argument.name);
    bool isScale = argument.zeroInit && scalesWire(argument.name);
    if (isScale && found != byName.end() &&
        state.sources[found->second].type != state.targets[i].type) {
      // One of the two has a scale for each layer of a stack, the other one
      // for all layers.
      used[found->second] = true;
      ++state.newScales;
      continue;
    }
    if (found == byName.end()) {
      if (isScale)
        ++state.newScales;
      else if (!isCallCounter(argument))
        state.binding.missing.push_back(i);
      continue;
    }
    used[found->second] = true;
    if (state.sources[found->second].type != state.targets[i].type)
      state.binding.misshaped.emplace_back(i, found->second);
    else
      state.binding.sources[i] = found->second;
  }
  for (size_t i = 0; i < state.sources.size(); ++i) {
    if (used[i])
      continue;
    const std::string &name = state.sources[i].name;
    if (state.ofRecipe.count(name) && scalesWire(name))
      ++state.unusedScales;
    else
      state.binding.extra.push_back(i);
  }
  return state;
}

/// Calls `set(index, value)` for each argument, with its tensor of a checkpoint
/// of step `count` or, for what that lacks, an initial value.
template <typename Set>
static void loadSaved(const SavedState &state, const TensorFile &file,
                      const int64_t &count, const std::vector<size_t> &indices,
                      const fp8_executable &executable, Set &&set) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (state.binding.sources[i] >= 0) {
      set(indices[i], file.tensors[state.binding.sources[i]].data);
    } else if (isCallCounter(executable.arguments[indices[i]])) {
      // A counter that the compiler did not yet add when this was written.
      set(indices[i], reinterpret_cast<const char *>(&count));
    } else {
      std::vector<char> zeros(state.targets[i].type.bytes());
      set(indices[i], zeros.data());
    }
  }
}

/// Returns whether there are tensors without a counterpart.
static bool isMismatch(const Binding &binding) {
  return !binding.missing.empty() || !binding.misshaped.empty() ||
         !binding.extra.empty();
}

/// Returns whether a state is none the less the step's if its file also has
/// this tensor: another argument of the step, which `fp8-run` saves too, or
/// state of another recipe's own, which has an end with that recipe.
static bool mayBeExtra(const std::string &name, const SavedState &state,
                       const fp8_executable &executable) {
  return state.ofRecipe.count(name) ||
         std::any_of(
             executable.arguments.begin(), executable.arguments.end(),
             [&](const TensorInfo &argument) { return argument.name == name; });
}

void restoreState(const TensorFile &file, fp8_step &step) {
  const fp8_executable &executable = step.executable;
  std::vector<size_t> indices;
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    if (executable.arguments[i].role == FP8_ROLE_STATE)
      indices.push_back(i);
  SavedState state = bindSaved(file, executable, indices);
  std::vector<int64_t> &extra = state.binding.extra;
  auto isHarmless = [&](int64_t i) {
    return mayBeExtra(state.sources[i].name, state, executable);
  };
  extra.erase(std::remove_if(extra.begin(), extra.end(), isHarmless),
              extra.end());
  if (isMismatch(state.binding))
    throw Error(FP8_ERROR_MISMATCH,
                describe(state.binding,
                         "expected the tensors of this step's state but got "
                         "others:",
                         state.targets, state.sources));
  auto found = file.metadata.find("step");
  int64_t count = found == file.metadata.end()
                      ? 0
                      : numberOf<int64_t>(found->second).value_or(0);
  loadSaved(state, file, count, indices, executable,
            [&](size_t i, const char *value) { step.setWhole(i, value); });
}

std::vector<CheckpointFile> expectCheckpoints(const std::string &directory) {
  std::vector<CheckpointFile> checkpoints;
  if (fileExists(directory))
    checkpoints = listCheckpoints(directory);
  if (checkpoints.empty())
    throw Error(FP8_ERROR_IO,
                str("no checkpoint to resume from in '", directory, "'"));
  return checkpoints;
}

CheckpointInfo resumeFromNewest(const std::string &directory, fp8_step &step,
                                const std::string &fingerprint,
                                std::string &path, const Warn &warn) {
  std::optional<Whole> newest = readNewest(expectCheckpoints(directory), warn);
  if (!newest)
    throw Error(FP8_ERROR_IO,
                str("no valid checkpoint to resume from in '", directory, "'"));
  std::vector<size_t> indices = savedArguments(step.executable);
  SavedState state = bindSaved(newest->file, step.executable, indices);
  const Binding &binding = state.binding;
  if (isMismatch(binding)) {
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
                 state.targets, state.sources));
  }
  if (state.newScales)
    warn(str("note: the checkpoint lacks ", state.newScales,
             " scales of gradients between ranks: they begin anew"));
  if (state.unusedScales)
    warn(str("note: the checkpoint has ", state.unusedScales,
             " scales of gradients between ranks that this run does not use"));
  loadSaved(state, newest->file, newest->info.step, indices, step.executable,
            [&](size_t i, const char *value) { step.setOwned(i, value); });
  path = newest->at.path;
  return newest->info;
}

} // namespace fp8::rt
