//===- Checkpoint.h - Saving and resuming a run -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_CHECKPOINT_H
#define FP8_LIB_RUNTIME_CHECKPOINT_H

#include "Arrays.h"
#include "Binding.h"
#include "SafeTensors.h"
#include "Step.h"

#include <functional>

namespace fp8::rt {

/// All of a run that is not in tensors.
struct CheckpointInfo {
  int64_t step = 0;    // steps done
  int64_t batches = 0; // that all ranks have read: the position in text
  uint64_t seed = 0;
  RowPosition rows;            // the position in arrays
  bool shuffle = false;        // their order is the seed's
  std::string fingerprint;     // of the module
  std::string dataFingerprint; // of the data
};

/// What the metadata say of state that is stored otherwise than the user has
/// it: see StoredState.
struct StoredTrees {
  std::string user, stored; // JSON
};

/// The arguments that need an initial value: all but batches and keys.
std::vector<size_t> stateArguments(const fp8_executable &executable);
/// The arguments whose values advance from the ones that they began with.
std::vector<size_t> keyArguments(const fp8_executable &executable);

/// Writes the arguments but batches to checkpoint-<step>.safetensors and
/// returns its path. Keys are to stand at their initial values.
std::string writeCheckpoint(const std::string &directory, fp8_step &step,
                            const CheckpointInfo &info,
                            const StoredTrees *stored = nullptr);

/// The same of state that is dealt to ranks, all of which call it: each writes
/// a file of what it owns, then rank 0 the index. Returns the index's path. If
/// a rank fails, all throw what it says.
std::string writeCheckpointSet(const std::string &directory, fp8_step &step,
                               const CheckpointInfo &info,
                               const StoredTrees *stored, fp8_group &group);

/// Checkpoints in a directory, newest first, with their steps; of a set, the
/// index.
struct CheckpointFile {
  int64_t step;
  std::string path;
};
std::vector<CheckpointFile> listCheckpoints(const std::string &directory);

/// Removes a checkpoint with all of its files. Returns 0, or an errno.
int removeCheckpoint(const CheckpointFile &checkpoint);
/// Removes files of sets that have no index: killed ranks left them.
void removeIncompleteCheckpoints(const std::string &directory);

/// The newest checkpoint that is whole; no tensors if there is none.
TensorFile readNewestCheckpoint(const std::string &directory);

/// In what two fingerprints of runs differ. One that a compiler made is a list
/// of parts, "module M, recipe NAME R, compiler C"; any other is one part.
struct FingerprintDifference {
  /// The parts that are not the same.
  std::string found, expected;
  /// Of the parts, only the compiler differs.
  bool isCompilerAlone = false;
  /// The first one is of an earlier version, which had no such parts.
  bool isEarlier = false;
};
FingerprintDifference compareFingerprints(const std::string &found,
                                          const std::string &expected);

/// Loads the newest valid checkpoint into the step: what all have, and what
/// this rank owns. Damaged ones are passed
/// over with a warning; one of another model or recipe (by their
/// `fingerprint`) is an error that lists the tensors that differ.
CheckpointInfo
resumeFromNewest(const std::string &directory, fp8_step &step,
                 const std::string &fingerprint, std::string &path,
                 const std::function<void(const std::string &)> &warn);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_CHECKPOINT_H
