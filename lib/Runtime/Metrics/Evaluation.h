//===- Evaluation.h - The loss on held-out data -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_METRICS_EVALUATION_H
#define FP8_LIB_RUNTIME_METRICS_EVALUATION_H

#include "../Data/Arrays.h"
#include "../Data/Data.h"
#include "../Data/Keys.h"
#include "../State/Binding.h"
#include "../State/InitialValues.h"
#include "../State/StoredState.h"

namespace fp8::rt {

/// A function of the step's arguments (found by path) and of data: held-out
/// text or arrays. It reads the state without changing it.
class Evaluation {
public:
  /// Determines the source of each argument; text is one if `hasText`.
  Evaluation(const fp8_executable &function, const fp8_executable &step,
             StoredState &state, const fp8_train_options &options, bool hasText,
             TensorFiles &files);

  /// Returns the arguments that take text; `input` is -1 if none does.
  const TextArguments &textArguments() const { return text; }
  void setText(const TextData &data);

  /// Arguments without a value in the step; they take initial values.
  const std::vector<NamedTensor> &missing() const { return missingNames; }
  /// Allocates memory. `keyOf` returns the initial value of a key argument.
  void prepare(fp8_step &trained, const std::vector<Value> &missing,
               const std::function<Key(const TensorInfo &)> &keyOf,
               int threads);

  /// Shares the batches with other ranks, which call run() too: each runs some,
  /// and all get the means.
  void shareBatchesWith(fp8_group &ranks) { group = &ranks; }

  /// Runs over all data and returns the means of the scalar results over the
  /// batches, the loss first; nothing if `stop` returned true. `given` is
  /// empty, or has for each leaf of the step's state a value that replaces the
  /// step's own, or an empty one. `seen` is called after each batch.
  std::optional<std::vector<double>>
  run(const std::function<bool()> &stop, const std::vector<Value> &given = {},
      const std::function<void(int64_t batch, fp8_step &)> &seen = nullptr);
  /// Returns the paths of the scalar results other than the loss.
  std::vector<std::string> metricNames() const;

  int64_t batches() const { return numBatches; }
  /// Returns "1,024 bytes of text" or "64 rows of arrays".
  std::string dataText() const;
  /// Returns a text that differs if the data do.
  std::string dataFingerprint() const;
  void memory(fp8_memory &out) const { step->memory(out); }

private:
  void bindState(const std::vector<Value> &given);
  void feed(int64_t batch, RowPosition &position);
  std::vector<double> collect(std::vector<double> mine) const;
  void findScalars();
  void findData(const fp8_train_options &options, const fp8_executable &trained,
                bool hasText, TensorFiles &files);

  const fp8_executable &function;
  StoredState &state; // of the step
  TextArguments text;
  ArrayBatches arrays;
  const TextData *textData = nullptr;
  std::vector<TextData::Window> windows;
  int64_t numBatches = 0;
  std::vector<size_t> scalars; // results, the loss first
  // Arguments, and the leaves of the step's state that they take.
  std::vector<size_t> boundArguments, boundLeaves;
  std::vector<size_t> missingArguments;
  std::vector<NamedTensor> missingNames;
  std::vector<std::pair<size_t, Key>> keys;
  fp8_step *trained = nullptr;
  fp8_group *group = nullptr;
  std::unique_ptr<fp8_step> step;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_EVALUATION_H
