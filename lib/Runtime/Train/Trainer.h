//===- Trainer.h - One run of the training loop -----------------*- C++ -*-===//
//
// The parts of a run share the state of a Trainer, and each part is a file:
// inputs (TrainInputs.cpp), initial state (TrainInitialState.cpp), the loop
// (Train.cpp), values that are not finite (TrainNonFinite.cpp), output files
// (TrainFiles.cpp), messages (TrainConsole.cpp), and ranks that train together
// (TrainRanks.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TRAIN_TRAINER_H
#define FP8_LIB_RUNTIME_TRAIN_TRAINER_H

#include "../Data/Arrays.h"
#include "../Data/Data.h"
#include "../Data/Keys.h"
#include "../Metrics/Alarm.h"
#include "../Metrics/Evaluation.h"
#include "../Metrics/Report.h"
#include "../State/Checkpoint.h"
#include "../State/Export.h"
#include "../State/InitialValues.h"
#include "../State/StoredState.h"
#include "../Step/ScalarResults.h"
#include "../Step/Step.h"
#include "../Support/Clock.h"
#include "../Support/Interrupt.h"
#include "Console.h"

#include <map>
#include <optional>

namespace fp8::rt {

class Trainer {
public:
  Trainer(const fp8_train_options &options, fp8_train_summary &summary)
      : options(options), summary(summary), console(options) {}

  void run();

private:
  using Infos = std::vector<TensorInfo>;

  // Inputs.
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

  // Initial state.
  void initialize();
  void begin(const InitialValues &initial);
  void setKeys(const std::vector<Value> &values);
  void resume();
  void checkResumed(const CheckpointInfo &info);
  void warnOfOtherRun(const std::string &fingerprint);
  void readKeys();
  void prepareEvaluation(Evaluation &each, const InitialValues *initial);

  // Ranks that train together.
  int64_t rank() const { return options.group ? options.group->rank() : 0; }
  int64_t numRanks() const { return options.group ? options.group->size() : 1; }
  bool isWriter() const { return rank() == 0; }
  /// How many batches of the data a step takes: one of each rank, or one that
  /// all ranks share.
  int64_t batchesPerStep() const { return sharesBatch ? 1 : numRanks(); }
  void expectSame(const std::string &what, const std::string &mine);
  void checkRanks();
  void checkStateIsSame(bool withShards = false);
  bool isInterrupted() const { return signals && signals->isInterrupted(); }
  bool isInterruptedAnywhere();
  bool shouldStop() const;

  // The loop.
  void trainAndSave();
  void loop();
  char *batch(size_t argument);
  RowPosition storeBatch(int64_t at, int64_t number, RowPosition rows);
  void feed();
  void feedAgain();
  void setKeys(std::optional<int64_t> step);
  void feedAhead();
  void runStep();
  LogRow readRow(Clock::time_point start);
  bool isEvaluationDue(const LogRow &row, bool isTaken, bool isLast) const;
  bool evaluate(LogRow &row);
  void readAlarms();
  void openTrace();
  void keepState();
  bool heedAlarms(LogRow &row);
  void summarize();

  // Values that are not finite.
  void noteInfiniteState();
  void checkFinite(const LogRow &row);
  std::string nonFiniteStateText();
  std::string firstNonFiniteText();
  std::string nonFiniteBatchText();
  void checkStateFinite();
  [[noreturn]] void failNonFinite(const std::string &what);

  // Files.
  void prepareDirectory();
  void expectOtherInit(const std::string &file, const char *what) const;
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
  std::string resumeHint() const;
  void copyCheckpointPath();

  // Messages.
  void printRanks();
  void printShares();
  void printData();
  void printProgress(const LogRow &row, bool isLast);
  bool isProgressDue(const LogRow &row, bool isLast) const;
  std::string meansText() const;
  void printSummary();
  void printAlarms();
  void printHeldOut();
  void printSpeed();
  void printProfile();
  void printMemory();
  void printFiles();
  void printExport(const std::optional<WeightExport::Check> &check);
  int64_t restOfProcess() const;

  const Infos &arguments() const { return step->executable.arguments; }
  const Infos &results() const { return step->executable.results; }
  const fp8_train_options &options;
  fp8_train_summary &summary;
  std::optional<SignalScope> signals; // outlives all files
  Console console;
  std::string directory;
  DirectoryLock lock;
  std::unique_ptr<fp8_step> step;
  std::unique_ptr<StoredState> state;
  std::unique_ptr<Evaluation> evaluation;
  std::unique_ptr<WeightExport> exporter; // if there is an export
  std::unique_ptr<Evaluation> exportEvaluation;

  // The sources of the batch.
  std::unique_ptr<TextData> trainingData, separateEvalData;
  TextArguments text;
  ArrayBatches arrays;
  /// The arguments of the step as the data feeds them: if ranks share a batch,
  /// with the rows of all of them.
  std::vector<TensorInfo> fed;
  bool sharesBatch = false;
  std::map<size_t, AlignedBuffer> sharedBatch;
  std::string missingData; // why training is impossible
  // Key arguments with their initial values.
  std::vector<std::pair<size_t, Key>> keys;

  ScalarResults scalars;
  CheckpointInfo position;
  /// Whether the next step has its batch; the position after it, and before
  /// that of the last step; or why it has none.
  bool isFed = false;
  RowPosition rowsAfterBatch, rowsOfBatch;
  std::optional<Error> feedFailure;
  std::string checkpoint; // path of the last one
  int64_t savedStep = -1;
  bool isEnding = false; // a rank was interrupted
  std::unique_ptr<Report> report;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<TraceFile> traceFile; // if there is one
  TraceSummary traceSummary;
  std::unique_ptr<Alarms> alarms;
  int64_t skippedSteps = 0;
  std::optional<std::string> stopReason;
  std::vector<double> stepSeconds;
  fp8_limits limits = {}; // of the machine, if a profile is compared with them
  std::string lossUnit;   // "" if unknown
  std::vector<std::string> metricLabels, evalLabels; // short, for people
  LogRow lastRow, lastEvaluated;
  double secondsBefore = 0; // of the run that this one resumes
  Clock::time_point beginTime, lastProgress;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TRAIN_TRAINER_H
