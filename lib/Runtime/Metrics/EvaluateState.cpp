//===- EvaluateState.cpp - Evaluation and export outside of a run ---------===//

#include "EvaluateState.h"
#include "../Data/Data.h"
#include "../State/Binding.h"
#include "../State/Checkpoint.h"
#include "../State/Export.h"
#include "../State/InitialValues.h"
#include "../Support/Interrupt.h"
#include "../Support/Json.h"
#include "Evaluation.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fp8::rt {

namespace {

/// A step's state and the data on which it is evaluated.
class HeldOut {
public:
  HeldOut(const fp8_train_options &options, fp8_step &step)
      : options(options), step(step),
        state(step.executable, options.store, options.load, options.threads),
        holdout(heldOutShare(options.holdout)) {
    checkStep();
  }

  bool hasData() const {
    return options.num_data_files > 0 || options.num_eval_files > 0 ||
           options.num_eval_batches > 0;
  }
  /// Makes an evaluation that is ready to run.
  std::unique_ptr<Evaluation> open(const fp8_executable &function);

  StoredState &storedState() { return state; }

private:
  void checkStep() const;
  void openText(Evaluation &evaluation);
  int64_t vocabularyOfStep() const;

  const fp8_train_options &options;
  fp8_step &step;
  StoredState state;
  double holdout;
  TensorFiles files;
  std::unique_ptr<TextData> text;
};

} // namespace

void HeldOut::checkStep() const {
  if (!options.step)
    throw Error(FP8_ERROR_INVALID, "expected a step executable but got none");
  checkDataLists(options);
  auto isSame = [](const TensorInfo &a, const TensorInfo &b) {
    return a.name == b.name && a.type == b.type && a.role == b.role;
  };
  const std::vector<TensorInfo> &mine = options.step->arguments,
                                &its = step.executable.arguments;
  if (!std::equal(mine.begin(), mine.end(), its.begin(), its.end(), isSame))
    throw Error(FP8_ERROR_INVALID,
                "expected a step of the arguments that the options' step has "
                "but got one of others");
}

/// Returns the vocabulary of the step's own text arguments; -1 if unknown. The
/// caller's loop may feed others, of which the options say nothing.
int64_t HeldOut::vocabularyOfStep() const {
  std::vector<bool> taken; // by arrays
  for (const TensorInfo &argument : step.executable.arguments)
    taken.push_back(
        std::any_of(options.batches, options.batches + options.num_batches,
                    [&](const fp8_batch_source &batch) {
                      return splitPath(argument.name) == splitPath(batch.path);
                    }));
  return textVocabulary(step.executable.arguments, taken);
}

void HeldOut::openText(Evaluation &evaluation) {
  bool isSeparate = options.num_eval_files > 0;
  const char *const *names =
      isSeparate ? options.eval_files : options.data_files;
  int64_t count = isSeparate ? options.num_eval_files : options.num_data_files;
  int64_t vocabulary = evaluation.textArguments().vocabulary;
  // Use the vocabulary with which training read the text.
  if (options.num_data_files > 0)
    if (int64_t other = vocabularyOfStep(); other >= 0)
      vocabulary = vocabulary < 0 ? other : std::min(vocabulary, other);
  text =
      std::make_unique<TextData>(std::vector<std::string>(names, names + count),
                                 vocabulary, isSeparate ? 1 : holdout);
  evaluation.setText(*text);
}

std::unique_ptr<Evaluation> HeldOut::open(const fp8_executable &function) {
  bool hasText = options.num_data_files > 0 || options.num_eval_files > 0;
  auto evaluation = std::make_unique<Evaluation>(
      function, step.executable, state, options, hasText, files);
  if (evaluation->textArguments().input >= 0)
    openText(*evaluation);
  else if (options.num_eval_files > 0)
    throw Error(FP8_ERROR_DATA, "held-out text is given but the evaluation has "
                                "no integer argument left for it");
  std::unique_ptr<InitialValues> initial;
  std::vector<Value> values;
  if (!evaluation->missing().empty()) {
    initial = std::make_unique<InitialValues>(options.init_file, options.init,
                                              options.seed, options.threads);
    values = initial->find({}, evaluation->missing()).optional;
  }
  // Returns the initial key of a run with this seed.
  auto keyOf = [&](const TensorInfo &info) {
    const std::vector<TensorInfo> &arguments = step.executable.arguments;
    std::vector<size_t> keys = keyArguments(step.executable);
    for (size_t i = 0; i < keys.size(); ++i)
      if (arguments[keys[i]].name == info.name &&
          arguments[keys[i]].type == info.type)
        return firstKey(options.seed, i, info);
    return firstKey(options.seed, 0, info);
  };
  evaluation->prepare(step, values, keyOf, options.threads);
  return evaluation;
}

/// Returns whether an evaluation is to end before its next batch.
static bool isToStop(const fp8_train_options &options,
                     const SignalScope &signals) {
  return signals.isInterrupted() ||
         (options.stop && options.stop(options.user) != 0);
}

static Error interruption() {
  return {FP8_INTERRUPTED, "interrupted during the evaluation"};
}

std::string evaluateState(const fp8_train_options &options, fp8_step &step) {
  if (!options.eval)
    throw Error(FP8_ERROR_INVALID, "expected an evaluation but got none");
  HeldOut heldOut(options, step);
  std::unique_ptr<Evaluation> evaluation = heldOut.open(*options.eval);
  bool isShared = options.group && options.group->size() > 1;
  if (isShared)
    evaluation->shareBatchesWith(*options.group);
  SignalScope signals(!options.no_signals);
  // Ranks that share an evaluation finish it together.
  std::optional<std::vector<double>> means =
      evaluation->run([&] { return !isShared && isToStop(options, signals); });
  if (!means)
    throw interruption();
  // JSON has no NaN and no infinity.
  auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value)
                                : nlohmann::ordered_json();
  };
  nlohmann::ordered_json line = {{"heldout_loss", number(means->front())}};
  std::vector<std::string> names = evaluation->metricNames();
  for (size_t i = 0; i < names.size(); ++i)
    line["heldout_metrics"][names[i]] = number((*means)[i + 1]);
  line["batches"] = evaluation->batches();
  return dumpJson(line);
}

void exportState(const fp8_train_options &options, fp8_step &step,
                 int64_t number) {
  if (!options.export_weights)
    throw Error(FP8_ERROR_INVALID, "expected an export but got none");
  HeldOut heldOut(options, step);
  WeightExport exporter(*options.export_weights, step.executable,
                        heldOut.storedState(), options.threads);
  exporter.write(heldOut.storedState(), step);
  std::optional<WeightExport::Check> check;
  if (options.export_weights->eval && heldOut.hasData()) {
    std::unique_ptr<Evaluation> evaluation =
        heldOut.open(*options.export_weights->eval);
    SignalScope signals(!options.no_signals);
    bool isStopped = false;
    check = exporter.check(
        *evaluation, [&] { return isStopped = isToStop(options, signals); });
    if (isStopped || signals.isInterrupted())
      throw interruption();
  }
  exporter.writeManifest(number, check);
}

} // namespace fp8::rt
