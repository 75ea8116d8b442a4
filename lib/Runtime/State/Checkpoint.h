//===- Checkpoint.h - Saving and resuming a run -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STATE_CHECKPOINT_H
#define FP8_LIB_RUNTIME_STATE_CHECKPOINT_H

#include "../Data/Arrays.h"
#include "../Step/Step.h"
#include "Binding.h"
#include "SafeTensors.h"

#include <functional>
#include <set>

namespace fp8::rt {

/// The part of a run's state that is not in tensors.
struct CheckpointInfo {
  int64_t step = 0;    // steps done
  int64_t batches = 0; // read by all ranks together: the position in text
  uint64_t seed = 0;
  RowPosition rows;            // the position in arrays
  bool shuffle = false;        // the order of rows follows from the seed
  std::string fingerprint;     // of the module
  std::string dataFingerprint; // of the data
  // State that began with values that are not finite, such as the best loss of
  // an early stopping: it may have them later, too.
  std::set<std::string> mayBeInfinite;
};

/// What the metadata say of the tensors, besides their names: see StoredState.
struct StateNames {
  /// State that the compiler has added to the user's.
  std::vector<std::string> compilers;
  /// State that is stored in another form than the user's (JSON); empty if
  /// there is none.
  std::string user, stored;
};

/// Returns the arguments that need an initial value: all but batches and keys.
std::vector<size_t> stateArguments(const fp8_executable &executable);
/// Returns the key arguments, whose values follow from their initial ones.
std::vector<size_t> keyArguments(const fp8_executable &executable);

/// Writes all arguments but batches to checkpoint-<step>.safetensors and
/// returns its path. Keys must hold their initial values.
std::string writeCheckpoint(const std::string &directory, fp8_step &step,
                            const CheckpointInfo &info,
                            const StateNames &names);

/// Does the same for state that is dealt to ranks, all of which call it: each
/// writes a file with the state that it owns, then rank 0 the index. Returns
/// the path of the index. If a rank fails, all throw its message.
std::string writeCheckpointSet(const std::string &directory, fp8_step &step,
                               const CheckpointInfo &info,
                               const StateNames &names, fp8_group &group);

/// A checkpoint, by its step and its file; of a set, the index.
struct CheckpointFile {
  int64_t step;
  std::string path;
};
std::vector<CheckpointFile> listCheckpoints(const std::string &directory);

/// Removes a checkpoint with all of its files. Returns 0 or an errno.
int removeCheckpoint(const CheckpointFile &checkpoint);
/// Removes files of sets without an index, which killed ranks left behind.
void removeIncompleteCheckpoints(const std::string &directory);

/// Reads the newest complete checkpoint; returns no tensors if there is none.
TensorFile readNewestCheckpoint(const std::string &directory);

/// The difference between the fingerprints of two runs. A compiler's
/// fingerprint is a list of parts, "module M, recipe NAME R, compiler C,
/// arithmetic A"; any other is one part.
struct FingerprintDifference {
  /// The parts that differ.
  std::string found, expected;
  /// Their first words ("" if a fingerprint is one part).
  std::set<std::string> subjects;
  /// `found` is from an earlier version, whose fingerprints had no parts.
  bool isEarlier = false;
};
FingerprintDifference compareFingerprints(const std::string &found,
                                          const std::string &expected);

/// Returns a fingerprint without the part that depends on the machine.
std::string withoutArithmetic(const std::string &fingerprint);

/// Sets the step's state, on each rank all of it, from the tensors of a file
/// that holds just this state by name. Passes over the step's other arguments
/// and over state that another recipe keeps for itself; any other difference is
/// an error that lists the tensors, and nothing is set.
void restoreState(const TensorFile &file, fp8_step &step);

/// Returns the checkpoints of a directory, the newest first; throws if it has
/// none.
std::vector<CheckpointFile> expectCheckpoints(const std::string &directory);

/// Loads the newest valid checkpoint into the step: the state that all ranks
/// have, and the state that this rank owns. Skips damaged ones with a warning;
/// one of another model or recipe (by their `fingerprint`) is an error that
/// lists the tensors that differ. The automatic scales of gradients on an f8
/// wire may differ: they begin anew, or are dropped, with a note.
CheckpointInfo
resumeFromNewest(const std::string &directory, fp8_step &step,
                 const std::string &fingerprint, std::string &path,
                 const std::function<void(const std::string &)> &warn);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_CHECKPOINT_H
