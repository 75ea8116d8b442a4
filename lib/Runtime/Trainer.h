//===- Trainer.h - One run of the training loop -----------------*- C++ -*-===//
//
// The parts of a run share its state, and each part is a file: what is given to
// it (TrainInputs.cpp), what it begins with (TrainBegin.cpp), the loop
// (Train.cpp), values that are not finite (TrainFinite.cpp), the files that it
// writes (TrainFiles.cpp), what it says (TrainConsole.cpp), and other ranks
// that train with it (TrainRanks.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TRAINER_H
#define FP8_LIB_RUNTIME_TRAINER_H

#include "Alarm.h"
#include "Arrays.h"
#include "Checkpoint.h"
#include "Console.h"
#include "Data.h"
#include "Evaluation.h"
#include "Export.h"
#include "InitialValues.h"
#include "Keys.h"
#include "Report.h"
#include "Step.h"
#include "StoredState.h"

#include <chrono>
#include <optional>

namespace fp8::rt {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Trainer {
public:
  Trainer(const fp8_train_options &options, fp8_train_summary &summary)
      : options(options), summary(summary), console(options) {}

  void run();

private:
  using Infos = std::vector<TensorInfo>;

  // What is given to the run.
  void checkOptions();
  void readOptions();
  void openData();
  std::unique_ptr<Evaluation> makeEvaluation(const fp8_executable *function,
                                             TensorFiles &files) const;
  void findTextArguments();
  void checkThatDataFeedsAll();
  void openText();
  int64_t commonVocabulary(const TextArguments &evalText) const;
  int64_t tokensPerStep() const;

  // What the run begins with.
  void initialize();
  void begin(const InitialValues &initial);
  void setKeys(const std::vector<const void *> &values);
  void resume();
  void checkResumed(const CheckpointInfo &info);
  void warnOfOtherRun(const std::string &fingerprint);
  void readKeys();
  void prepareEvaluation(Evaluation &each, const InitialValues *initial);

  // Ranks that train together.
  int64_t rank() const { return options.group ? options.group->rank() : 0; }
  int64_t numRanks() const { return options.group ? options.group->size() : 1; }
  bool isWriter() const { return rank() == 0; }
  void expectSame(const std::string &what, const std::string &mine);
  void checkRanks();
  void checkStateIsSame(bool withShards = false);
  bool isInterruptedAnywhere();
  bool isToEnd() const;

  // The loop.
  void trainAndSave();
  void loop();
  void feed(int64_t step);
  void feedAhead();
  void runStep();
  LogRow readRow(Clock::time_point start);
  bool isEvaluationDue(const LogRow &row, bool isTaken, bool isLast) const;
  bool evaluate(LogRow &row);
  void openTrace();
  void keepState();
  bool heedAlarms(LogRow &row);
  void summarize();

  // Values that are not finite.
  void checkFinite(const LogRow &row);
  std::string nonFiniteStateText();
  std::string firstNonFiniteText();
  void checkStateFinite();
  [[noreturn]] void failNonFinite(const std::string &what);

  // Files.
  void prepareDirectory();
  void removeOldCheckpoints();
  void openLogs();
  void saveCheckpoint();
  void writeState(bool isAlone = false);
  void removeSurplusCheckpoints();
  std::string saveAfter(const Error &error);
  void writeMemory();
  void beginProfile();
  void writeProfile();
  void writeCollectives();
  void exportWeights();
  void copyCheckpointPath();

  // What is said.
  void sayRanks();
  void sayData();
  void sayProgress(const LogRow &row, bool isLast);
  bool isProgressDue(const LogRow &row, bool isLast) const;
  void saySummary();
  void sayAlarms();
  void sayHeldOut();
  void saySpeed();
  void sayProfile();
  void sayMemory();
  void sayFiles();
  void sayExport(const std::optional<WeightExport::Check> &check);
  int64_t restOfProcess() const;

  const Infos &arguments() const { return step->executable.arguments; }
  const Infos &results() const { return step->executable.results; }
  const fp8_train_options &options;
  fp8_train_summary &summary;
  Console console;
  std::string directory;
  std::unique_ptr<fp8_step> step;
  std::unique_ptr<StoredState> state;
  std::unique_ptr<Evaluation> evaluation;
  std::unique_ptr<WeightExport> exporter; // if there is to be an export
  std::unique_ptr<Evaluation> exportEvaluation;

  // What feeds the batch.
  std::unique_ptr<TextData> trainingData, separateEvalData;
  TextArguments text;
  ArrayBatches arrays;
  std::string missingData; // why nothing can be trained
  // Key arguments with the values that they began with.
  std::vector<std::pair<size_t, Key>> keys;

  ScalarResults scalars;
  std::vector<bool> mayBeInfinite; // state arguments that began non-finite
  CheckpointInfo position;
  /// The next step has its batch; the rows behind it; or why it has none.
  bool isFed = false;
  RowPosition rowsAfterBatch;
  std::optional<Error> feedFailure;
  std::string checkpoint; // the last one's path
  int64_t savedStep = -1;
  bool isEnding = false; // some rank was interrupted
  std::unique_ptr<Report> report;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<TraceFile> traceFile; // if there is to be one
  TraceSummary traceSummary;
  std::unique_ptr<Alarms> alarms;
  std::vector<std::vector<char>> keptState; // before the step; to skip it
  int64_t skippedSteps = 0;
  std::optional<std::string> stopReason;
  std::vector<double> stepSeconds;
  fp8_limits limits = {}; // of the machine, if a profile is compared with them
  std::string lossUnit;   // "" if not known
  std::vector<std::string> metricLabels, evalLabels; // short, for people
  LogRow lastEvaluated;
  double secondsBefore = 0; // of the run that this one resumes
  Clock::time_point beginTime, lastProgress;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TRAINER_H
