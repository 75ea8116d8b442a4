//===- TrainRanks.cpp - Ranks that train together -------------------------===//
//
// Every rank runs the same loop on its own rows. All inputs to its decisions,
// and all replicated state, must be the same on all ranks: both are checked.
//
//===----------------------------------------------------------------------===//

#include "../Support/Interrupt.h"
#include "Trainer.h"

#include <cstring>
#include <dlfcn.h>

namespace fp8::rt {

/// Hashes bytes, eight at a time. The shift brings the upper bits of each word
/// down: a product alone moves bits up only, so that two changed signs could
/// cancel.
static uint64_t hashOf(const char *data, int64_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<int64_t>(8, bytes - at));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Identifies the build of the runtime: a hash of the library.
static std::string buildOfRuntime() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&buildOfRuntime), &info) ||
      !info.dli_fname || !fileExists(info.dli_fname))
    return str("version ", FP8_ABI_VERSION);
  FileContents library = readFile(info.dli_fname);
  return str(std::hex, hashOf(library.data.get(), library.size));
}

/// Fails on all ranks if one of them has a different value than rank 0.
void Trainer::expectSame(const std::string &what, const std::string &mine) {
  std::vector<std::string> all = options.group->gather(mine);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw Error(FP8_ERROR_RANK,
                  str("rank ", rank, " of ", all.size(), " has another ", what,
                      " than rank 0 ('", all[rank], "' instead of '", all[0],
                      "')"));
}

/// Runs before the first step.
void Trainer::checkRanks() {
  if (numRanks() == 1)
    return;
  if (evaluation)
    evaluation->shareBatchesWith(*options.group);
  std::string alarmText;
  for (int64_t i = 0; i < options.num_alarms; ++i)
    alarmText += str(options.alarms[i], "; ");
  expectSame("build of the runtime", buildOfRuntime());
  // (Ranks on processors of other kinds end at a checkpoint, if their state
  // becomes different.)
  expectSame("file, recipe or compiler",
             withoutArithmetic(position.fingerprint));
  std::string compiled = options.ranks ? options.ranks : "";
  expectSame("--zero or --global-amax",
             compiled.substr(0, compiled.find('\n')));
  expectSame("data set", position.dataFingerprint);
  expectSame("set of held-out data",
             evaluation ? evaluation->dataFingerprint() : "none");
  expectSame("checkpoint to begin with",
             checkpoint.empty() ? "none" : str("step ", position.step));
  expectSame("option", str("steps ", options.steps, ", seed ", position.seed,
                           ", shuffle ", position.shuffle,
                           ", checkpoints every ", options.checkpoint_every,
                           options.sharded_checkpoints ? " (sharded)" : "",
                           ", evaluation every ", options.eval_every,
                           evaluation ? "" : " (none)", ", alarms ",
                           options.num_alarms ? alarmText : "none"));
  expectSame("size of buckets (FP8_BUCKET_BYTES)",
             str(options.group->bucketBytes(), " bytes"));
  // After a resume a rank has only its own shards.
  checkStateIsSame(/*withShards=*/!options.resume);
  step->drop();
}

/// Checks that all ranks hold the same bits, except for shards that only one
/// rank has. A part must be the same on all ranks that have it.
void Trainer::checkStateIsSame(bool withShards) {
  if (numRanks() == 1)
    return;
  std::vector<size_t> indices;
  for (size_t i : stateArguments(step->executable))
    if (withShards || arguments()[i].shard == 0)
      indices.push_back(i);
  std::vector<uint64_t> hashes;
  for (size_t i : indices)
    hashes.push_back(hashOf(step->value(i), arguments()[i].type.bytes()));
  std::vector<std::string> all = options.group->gather(
      std::string(reinterpret_cast<const char *>(hashes.data()),
                  hashes.size() * sizeof(uint64_t)));
  for (size_t i = 0; i < indices.size(); ++i)
    for (size_t rank = 1; rank < all.size(); ++rank) {
      size_t first = step->partOf(indices[i], static_cast<int64_t>(rank));
      if (all[rank].compare(i * sizeof(uint64_t), sizeof(uint64_t), all[first],
                            i * sizeof(uint64_t), sizeof(uint64_t)) != 0)
        throw Error(FP8_ERROR_RANK,
                    str("step ", position.step, ": '",
                        arguments()[indices[i]].name, "' of rank ", rank,
                        " is not that of rank ", first,
                        ": all ranks have to hold the same state"));
    }
}

/// A single process may end after any step.
bool Trainer::shouldStop() const {
  return isEnding || (numRanks() == 1 && isInterrupted());
}

/// Returns whether any rank was interrupted: all end after the same step.
bool Trainer::isInterruptedAnywhere() {
  if (numRanks() == 1)
    return isInterrupted();
  return options.group->endRun(isInterrupted()) || isEnding;
}

} // namespace fp8::rt
