//===- Train.cpp - The training loop --------------------------------------===//

#include "Train.h"
#include "../Support/Json.h"
#include "../Support/Median.h"
#include "Trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

using json = nlohmann::json;

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

/// Returns where the data of a batch argument is written: the rows of all ranks
/// that share a batch, or those of the step.
char *Trainer::batch(size_t i) {
  if (!arguments()[i].isPart())
    return step->argument(i);
  AlignedBuffer &whole = sharedBatch[i];
  if (!whole)
    whole = allocateAligned(fed[i].type.bytes());
  return whole.get();
}

/// Writes the batch of step number `at`: text of the batch of this number, and
/// rows of arrays from `rows` on. Returns the position behind these.
RowPosition Trainer::storeBatch(int64_t at, int64_t number, RowPosition rows) {
  // The number of a batch does not depend on the rank that takes it.
  int64_t before = batchesPerStep() == 1 ? 0 : rank();
  for (int64_t row = 0; row < text.rows; ++row)
    storeWindow(
        trainingData->trainingWindow(position.seed, number + before, row), text,
        fed, row, batch(text.input),
        text.target >= 0 ? batch(text.target) : nullptr);
  arrays.skip(rows, before);
  arrays.store(rows, at, [&](size_t i) { return batch(i); });
  arrays.skip(rows, batchesPerStep() - before - 1);
  for (const auto &[i, whole] : sharedBatch)
    step->setWhole(i, {whole.get()});
  setKeys(at);
  return rows;
}

/// Writes the batch of the next step.
void Trainer::feed() {
  rowsAfterBatch = storeBatch(position.step, position.batches, position.rows);
  isFed = true;
}

/// Writes the batch of the last step again, in the place of the next one.
void Trainer::feedAgain() {
  isFed = false;
  storeBatch(position.step - 1, position.batches - batchesPerStep(),
             rowsOfBatch);
}

/// Sets the keys that the step does not return: those of step number `at`, or
/// the initial ones, from which they follow.
void Trainer::setKeys(std::optional<int64_t> at) {
  for (const auto &[argument, key] : keys) {
    Key words = at ? foldIn(key, static_cast<uint32_t>(*at)) : key;
    std::memcpy(step->argument(argument), words.data(),
                words.size() * sizeof(uint32_t));
  }
}

/// Copies the next batch to the GPU while it runs a step. An error is reported
/// when that batch's turn comes.
void Trainer::feedAhead() {
  if (!step->isAsynchronous() || position.step >= options.steps)
    return;
  try {
    feed();
    step->stage();
  } catch (const Error &error) {
    feedFailure = error;
  }
}

/// Runs a step. On a GPU it may still be running when this returns.
void Trainer::runStep() {
  if (step->timeline)
    step->timeline->beginStep(position.step + 1);
  step->run();
  if (step->timeline)
    step->timeline->endStep();
  ++position.step;
  position.batches += batchesPerStep();
  rowsOfBatch = std::exchange(position.rows, rowsAfterBatch);
  isFed = false;
  summary.last_step = position.step;
}

/// Returns the log entry of the step that began at `start`. Waits until its
/// metrics are computed; a GPU may still be working on the rest of the step.
LogRow Trainer::readRow(Clock::time_point start) {
  std::vector<double> values = scalars.values(*step);
  stepSeconds.push_back(secondsSince(start));
  // The speed of a single step would fluctuate.
  constexpr size_t averaged = 16;
  size_t count = std::min(averaged, stepSeconds.size());
  double total = 0;
  for (size_t i = stepSeconds.size() - count; i < stepSeconds.size(); ++i)
    total += stepSeconds[i];
  LogRow row;
  row.step = position.step;
  row.seconds = secondsBefore + secondsSince(beginTime);
  row.loss = values.front();
  row.tokensPerSecond = summary.tokens_per_step * count / std::max(total, 1e-9);
  row.metrics.assign(values.begin() + 1, values.end());
  return row;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

bool Trainer::isEvaluationDue(const LogRow &row, bool isTaken,
                              bool isLast) const {
  if (!evaluation || shouldStop() || (!std::isfinite(row.loss) && isTaken))
    return false;
  return isLast ||
         (options.eval_every > 0 && position.step % options.eval_every == 0);
}

/// Returns false if it was interrupted.
bool Trainer::evaluate(LogRow &row) {
  // Ranks that share an evaluation finish it together.
  auto stop = [&] { return numRanks() == 1 && isInterrupted(); };
  step->gather();
  std::optional<std::vector<double>> means = evaluation->run(stop);
  step->drop();
  if (!means) {
    console.warn(str("warning: the evaluation of step ", row.step,
                     " was interrupted: it has no held-out loss"));
    return false;
  }
  row.hasHeldOut = true;
  row.heldOut = means->front();
  row.evalMetrics.assign(means->begin() + 1, means->end());
  lastEvaluated = row;
  summary.heldout_loss = row.heldOut;
  return true;
}

//===----------------------------------------------------------------------===//
// Traces and alarms
//===----------------------------------------------------------------------===//

void Trainer::readAlarms() {
  trace = std::make_unique<Trace>(results());
  alarms = std::make_unique<Alarms>(options.alarms, options.num_alarms,
                                    scalars.names(step->executable), *trace);
}

void Trainer::openTrace() {
  if (isWriter())
    TraceFile(directory).trim(options.resume ? position.step : -1);
  if (!options.trace)
    return;
  if (trace->empty())
    console.warn("warning: the step has no statistics to trace: nothing in it "
                 "is quantized, or its package was emitted without --trace");
  if (isWriter())
    traceFile = std::make_unique<TraceFile>(directory);
}

/// Copies the state if an alarm may discard the next step's update.
void Trainer::keepState() {
  if (alarms->maySkip())
    step->keep(stateArguments(step->executable));
}

/// Returns what rank 0 has decided.
static AlarmVerdict verdictOfFirst(const AlarmVerdict &mine, fp8_group &group) {
  auto reason = [](const std::optional<std::string> &text) {
    return text ? json(*text) : json();
  };
  json parts = {mine.warnings, reason(mine.skip), reason(mine.stop)};
  json first = json::parse(group.gather(dumpJson(parts))[0]);
  AlarmVerdict verdict;
  verdict.warnings = first[0].get<std::vector<std::string>>();
  if (first[1].is_string())
    verdict.skip = first[1].get<std::string>();
  if (first[2].is_string())
    verdict.stop = first[2].get<std::string>();
  return verdict;
}

/// Reads the trace and carries out the alarms' actions. Returns false if the
/// step's update was discarded.
bool Trainer::heedAlarms(LogRow &row) {
  trace->read(*step);
  if (traceFile) {
    traceSummary.add(trace->series(), row.step);
    if (row.step % std::max<int64_t>(options.trace_every, 1) == 0)
      traceFile->append(trace->jsonLine(row.step));
  }
  if (alarms->empty())
    return true;
  std::vector<double> values{row.loss};
  values.insert(values.end(), row.metrics.begin(), row.metrics.end());
  AlarmVerdict verdict = alarms->check(row.step, values);
  // A rank's trace covers its own rows, but all ranks must do the same.
  if (numRanks() > 1 && alarms->watchTrace())
    verdict = verdictOfFirst(verdict, *options.group);
  for (const std::string &warning : verdict.warnings)
    console.warn("warning: " + warning);
  row.alarms = verdict.all();
  stopReason = verdict.stop;
  if (!verdict.skip)
    return true;
  console.warn("skipped: " + *verdict.skip);
  step->restore(stateArguments(step->executable));
  row.isSkipped = true;
  ++skippedSteps;
  return false;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void Trainer::loop() {
  beginTime = lastProgress = Clock::now();
  while (position.step < options.steps && !shouldStop() && !stopReason) {
    if (feedFailure)
      throw Error(*feedFailure);
    if (!isFed)
      feed();
    keepState();
    Clock::time_point start = Clock::now();
    runStep();
    feedAhead();
    LogRow &row = lastRow = readRow(start);
    isEnding = isInterruptedAnywhere();
    bool isTaken = heedAlarms(row);
    bool isLast = position.step == options.steps || stopReason;
    if (isEvaluationDue(row, isTaken, isLast))
      evaluate(row);
    row.seconds = secondsBefore + secondsSince(beginTime);
    report->append(row);
    if (isTaken)
      checkFinite(row);
    printProgress(row, isLast || shouldStop());
    if (options.checkpoint_every > 0 &&
        position.step % options.checkpoint_every == 0) {
      saveCheckpoint();
      report->writePicture();
    }
  }
  saveCheckpoint();
}

/// Runs the loop; if it fails, saves the finished steps first.
void Trainer::trainAndSave() {
  bool isDone = position.step >= options.steps;
  if (isDone)
    console.printLine(
        str("nothing to train: the checkpoint is of step ", position.step));
  try {
    loop();
    if (isDone && evaluation)
      evaluate(lastEvaluated);
  } catch (...) {
    fp8_status status = recordFailure();
    console.endLiveLine();
    std::string message = saveAfter(Error(status, fp8_last_error()));
    copyCheckpointPath();
    throw Error(status, message);
  }
}

static double meanLossOfLast(const std::vector<LogRow> &rows, size_t count) {
  count = std::min(count, rows.size());
  double sum = 0;
  for (size_t i = rows.size() - count; i < rows.size(); ++i)
    sum += rows[i].loss;
  return sum / count;
}

void Trainer::summarize() {
  const std::vector<LogRow> &rows = report->rows();
  if (!rows.empty()) {
    summary.first_loss = rows.front().loss;
    summary.last_loss = rows.back().loss;
    summary.mean_loss_10 = meanLossOfLast(rows, 10);
    summary.mean_loss_20 = meanLossOfLast(rows, 20);
  }
  summary.step_seconds = median(stepSeconds);
  if (summary.step_seconds > 0)
    summary.tokens_per_second = summary.tokens_per_step / summary.step_seconds;
  copyCheckpointPath();
}

void Trainer::run() {
  checkOptions();
  readOptions();
  scalars = ScalarResults(*options.step);
  state = std::make_unique<StoredState>(*options.step, options.store,
                                        options.load, options.threads);
  if (options.export_weights)
    exporter = std::make_unique<WeightExport>(
        *options.export_weights, *options.step, *state, options.threads);
  openData();
  prepareDirectory();
  step = std::make_unique<fp8_step>(*options.step, options.threads);
  if (numRanks() > 1)
    step->setGroup(options.group);
  step->checkNumRanks();
  signals.emplace(!options.no_signals);
  initialize();
  summary.first_step = summary.last_step = position.step;
  beginProfile();
  checkRanks();
  readAlarms();
  isEnding = isInterruptedAnywhere();
  // Mistakes have been reported: an earlier run goes only now.
  if (!options.resume && options.overwrite && isWriter())
    removeOldCheckpoints();
  openLogs();
  printRanks();
  printShares();
  printData();
  trainAndSave();

  summarize();
  report->writePicture();
  writeMemory(); // fills the summary, too
  writeProfile();
  printSummary();
  if (stopReason)
    throw Error(FP8_STOPPED,
                str("stopped by an alarm: ", *stopReason, resumeHint()));
  if (shouldStop() && position.step < options.steps)
    throw Error(FP8_INTERRUPTED, str("interrupted after step ", position.step,
                                     " of ", options.steps, resumeHint()));
  if (!exporter)
    return;
  step->gather(/*only=*/0);
  if (isWriter())
    exportWeights();
}

void train(const fp8_train_options &options, fp8_train_summary &summary) {
  Trainer(options, summary).run();
}

} // namespace fp8::rt
