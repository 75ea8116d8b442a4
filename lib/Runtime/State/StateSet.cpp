//===- StateSet.cpp - State in one file for each rank ---------------------===//

#include "StateSet.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <unistd.h>

namespace fp8::rt {

TensorToWrite tensorOf(fp8_step &step, size_t i) {
  const TensorInfo &argument = step.executable.arguments[i];
  return {argument.name, argument.wholeType(), step.whole(i)};
}

/// Returns the rank that writes each argument: for a shard with one owner that
/// rank; for state that all ranks have, or have parts or slices of, the rank
/// with the fewest bytes so far.
static std::vector<int64_t>
writersOf(const fp8_step &step, std::vector<size_t> arguments, int64_t ranks) {
  const std::vector<TensorInfo> &infos = step.executable.arguments;
  std::vector<int64_t> writers(infos.size(), -1), load(ranks);
  for (size_t i : arguments)
    if (infos[i].shard > 0)
      writers[i] = step.ownerOf(infos[i].shard);
  std::sort(arguments.begin(), arguments.end(), [&](size_t a, size_t b) {
    return std::tuple(writers[a] < 0, -infos[a].wholeType().bytes(), a) <
           std::tuple(writers[b] < 0, -infos[b].wholeType().bytes(), b);
  });
  for (size_t i : arguments) {
    if (writers[i] < 0)
      writers[i] = std::min_element(load.begin(), load.end()) - load.begin();
    load[writers[i]] += infos[i].wholeType().bytes();
  }
  return writers;
}

static std::string numbered(int64_t number) {
  std::string digits = std::to_string(number);
  return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
}

/// Returns the path of each rank's file; "" if it has nothing to write.
static std::vector<std::string> partPaths(const std::string &stem,
                                          const std::vector<int64_t> &writers,
                                          int64_t ranks) {
  std::vector<std::string> names(ranks);
  for (int64_t writer : writers)
    if (writer >= 0)
      names[writer] = "part";
  int64_t number = 0,
          count = ranks - std::count(names.begin(), names.end(), "");
  for (std::string &name : names)
    if (!name.empty())
      name = str(stem, "-", numbered(++number), "-of-", numbered(count),
                 ".safetensors");
  return names;
}

/// Writes this rank's file of a set and waits for those of the others. On
/// return all files are complete and synced; if one fails, all ranks throw its
/// message.
static void writePart(const std::string &path,
                      std::vector<TensorToWrite> tensors,
                      const std::string &set, fp8_group &group) {
  bool isPart = !tensors.empty();
  std::string problem;
  try {
    if (isPart)
      writeSafeTensors(path, std::move(tensors), {{setKey, set}});
  } catch (const std::exception &error) {
    if (group.size() == 1)
      throw;
    problem = error.what();
    isPart = false;
  }
  std::vector<std::string> problems = group.gather(problem);
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (problems[rank].empty())
      continue;
    if (isPart)
      unlink(path.c_str());
    throw Error(FP8_ERROR_RANK,
                str("rank ", rank, " of ", group.size(), ": ", problems[rank]));
  }
}

/// Returns a name that no other set has, the same on all ranks.
static std::string nameSet(fp8_group &group) {
  return group.gather(
      str(std::chrono::system_clock::now().time_since_epoch().count(), "-",
          getpid()))[0];
}

/// Gathers what this rank writes, and returns it.
static std::vector<TensorToWrite>
gatherMine(const StateSet &set, const std::vector<int64_t> &writers,
           fp8_step &step, int64_t rank) {
  std::vector<TensorToWrite> mine;
  for (size_t i : set.arguments) {
    const TensorInfo &argument = step.executable.arguments[i];
    if (argument.isPart())
      step.gatherPart(i, writers[i]);
    if (argument.shard > 0)
      step.gatherShard(i, writers[i]);
    if (writers[i] == rank)
      mine.push_back(tensorOf(step, i));
  }
  return mine;
}

/// Writes the index of a set whose files are complete, and removes the files of
/// the set that it replaces.
static void writeIndex(const StateSet &set, const fp8_step &step,
                       const std::string &name,
                       const std::map<size_t, std::string> &fileOf) {
  std::set<std::string> old = filesOfSafeTensorsSet(set.index());
  std::map<std::string, std::string> files, metadata = set.metadata;
  int64_t bytes = 0;
  for (const auto &[i, file] : fileOf) {
    files[step.executable.arguments[i].name] = file;
    bytes += step.executable.arguments[i].wholeType().bytes();
    old.erase(file);
  }
  metadata[setKey] = name;
  writeSafeTensorsIndex(set.index(), files, bytes, metadata);
  for (const std::string &file : old)
    unlink((directoryOf(set.stem) + "/" + file).c_str());
}

void writeStateSet(const StateSet &set, fp8_step &step, fp8_group &group) {
  std::vector<int64_t> writers = writersOf(step, set.arguments, group.size());
  std::string name = nameSet(group);
  // The set that is replaced has other files.
  bool isNew = group.gather(fileExists(set.index()))[0] == 0;
  std::vector<std::string> paths = partPaths(
      isNew ? set.stem : str(set.stem, "-", name), writers, group.size());
  writePart(paths[group.rank()], gatherMine(set, writers, step, group.rank()),
            name, group);
  if (group.rank() != 0)
    return;
  std::map<size_t, std::string> fileOf;
  for (size_t i : set.arguments)
    fileOf[i] = paths[writers[i]].substr(paths[writers[i]].rfind('/') + 1);
  writeIndex(set, step, name, fileOf);
}

} // namespace fp8::rt
