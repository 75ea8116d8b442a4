//===- TrainInputs.cpp - The inputs of a run: options and data ------------===//

#include "../Metrics/Profile.h"
#include "Trainer.h"

#include <algorithm>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static void require(bool condition, const char *message) {
  if (!condition)
    throw Error(FP8_ERROR_INVALID, message);
}

void Trainer::checkOptions() {
  require(options.step, "expected a step executable but got none");
  require(options.steps >= 0, "expected a number of steps but got less than 0");
  require(options.out_dir && *options.out_dir,
          "expected an output directory but got none");
  checkDataLists(options);
  checkTexts("alarms", options.alarms, options.num_alarms);
  require(options.eval ||
              (options.num_eval_batches <= 0 && options.num_eval_files <= 0),
          "expected an evaluation for the held-out data but got none");
  if (options.profile)
    checkCosts(options.cost);
  heldOutShare(options.holdout); // throws if it is none
  require(options.resume || options.init || options.init_file ||
              stateArguments(*options.step).empty(),
          "expected an initializer or a file with initial values");
}

void Trainer::readOptions() {
  directory = options.out_dir;
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  position.seed = options.seed;
  position.shuffle = options.shuffle != 0;
  if (options.fingerprint)
    position.fingerprint = options.fingerprint;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

void Trainer::openData() {
  fed = options.step->arguments;
  for (TensorInfo &argument : fed) {
    sharesBatch |= argument.isPart() && argument.role == FP8_ROLE_BATCH;
    argument.type = argument.wholeType();
  }
  TensorFiles files;
  arrays = ArrayBatches::ofStep(options, fed, files);
  if (options.num_data_files > 0)
    findTextArguments();
  else
    checkThatDataFeedsAll();
  evaluation = makeEvaluation(options.eval, files);
  if (options.export_weights)
    exportEvaluation = makeEvaluation(options.export_weights->eval, files);
  openText();
  std::string arrayFingerprint = arrays.fingerprint();
  if (!arrayFingerprint.empty())
    position.dataFingerprint +=
        (position.dataFingerprint.empty() ? "" : "/") + arrayFingerprint;
  summary.tokens_per_step = tokensPerStep() * batchesPerStep();
}

std::unique_ptr<Evaluation>
Trainer::makeEvaluation(const fp8_executable *function,
                        TensorFiles &files) const {
  if (!function)
    return nullptr;
  bool hasText = options.num_data_files > 0 || options.num_eval_files > 0;
  return std::make_unique<Evaluation>(*function, *options.step, *state, options,
                                      hasText, files);
}

void Trainer::findTextArguments() {
  std::vector<bool> taken(fed.size(), false);
  for (size_t i = 0; i < fed.size(); ++i)
    taken[i] = arrays.feeds(i);
  text = rt::findTextArguments("the step", fed, taken);
  if (text.input < 0)
    throw Error(FP8_ERROR_DATA,
                "data files are given but the step has no batch argument "
                "left for them");
}

void Trainer::checkThatDataFeedsAll() {
  missingData = arrays.findMissing(fed);
  // An export of a finished run needs no data.
  if (!missingData.empty() && !(options.resume && exporter))
    throw Error(FP8_ERROR_DATA, missingData);
}

void Trainer::openText() {
  TextArguments evalText;
  // The evaluation for the export reads the same text as any other.
  if (const auto &any = evaluation ? evaluation : exportEvaluation)
    evalText = any->textArguments();
  int64_t vocabulary = commonVocabulary(evalText);
  if (options.num_data_files > 0) {
    std::vector<std::string> files(options.data_files,
                                   options.data_files + options.num_data_files);
    double holdout =
        options.num_eval_files > 0 ? 0 : heldOutShare(options.holdout);
    trainingData = std::make_unique<TextData>(files, vocabulary, holdout);
    trainingData->prepareTraining(text.span());
    position.dataFingerprint = trainingData->fingerprint();
  }
  if (options.num_eval_files > 0) {
    std::vector<std::string> files(options.eval_files,
                                   options.eval_files + options.num_eval_files);
    separateEvalData = std::make_unique<TextData>(files, vocabulary, 1);
  }
  for (Evaluation *each : {evaluation.get(), exportEvaluation.get()})
    if (each && each->textArguments().input >= 0)
      each->setText(separateEvalData ? *separateEvalData : *trainingData);
  if (evalText.input < 0 && separateEvalData)
    throw Error(FP8_ERROR_DATA, "held-out text is given but the evaluation has "
                                "no integer argument left for it");
}

/// Returns the vocabulary that both the step and its evaluation can read; -1 if
/// neither has one.
int64_t Trainer::commonVocabulary(const TextArguments &evalText) const {
  if (evalText.input < 0)
    return text.vocabulary;
  return text.vocabulary < 0 ? evalText.vocabulary
                             : std::min(text.vocabulary, evalText.vocabulary);
}

int64_t Trainer::tokensPerStep() const {
  int64_t tokens = text.rows * text.window;
  // For arrays, integers are tokens (or labels), else every row counts as one.
  if (tokens == 0)
    for (const TensorInfo &argument : fed)
      if (argument.role == FP8_ROLE_BATCH && isInteger(argument.type.dtype))
        tokens = std::max(tokens, argument.type.elements());
  if (tokens == 0)
    for (const TensorInfo &argument : fed)
      if (argument.role == FP8_ROLE_BATCH && !argument.type.dims.empty())
        tokens = std::max(tokens, argument.type.dims[0]);
  return tokens;
}

} // namespace fp8::rt
