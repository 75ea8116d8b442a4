//===- Train.cpp - The training loop --------------------------------------===//

#include "Train.h"
#include "Alarm.h"
#include "Arrays.h"
#include "Binding.h"
#include "Checkpoint.h"
#include "Data.h"
#include "Evaluation.h"
#include "Export.h"
#include "InitialValues.h"
#include "Keys.h"
#include "Report.h"
#include "Step.h"
#include "StoredState.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fp8::rt {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

static volatile std::sig_atomic_t interrupted = 0;

extern "C" {
static void onInterrupt(int) { interrupted = 1; }
}

namespace {
/// While it lives, the first SIGINT or SIGTERM only asks the loop to stop; the
/// second one has its usual effect.
class SignalScope {
public:
  explicit SignalScope(bool active) : active(active) {
    interrupted = 0;
    if (!active)
      return;
    struct sigaction action = {};
    action.sa_handler = onInterrupt;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigaction(SIGINT, &action, &oldInt);
    sigaction(SIGTERM, &action, &oldTerm);
    // A file that grows beyond its limit is to be an error, not the end.
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, &oldFileSize);
  }
  ~SignalScope() {
    if (!active)
      return;
    sigaction(SIGINT, &oldInt, nullptr);
    sigaction(SIGTERM, &oldTerm, nullptr);
    sigaction(SIGXFSZ, &oldFileSize, nullptr);
  }

private:
  bool active;
  struct sigaction oldInt = {}, oldTerm = {}, oldFileSize = {};
};
} // namespace

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static std::string durationText(double seconds) {
  int64_t whole = std::max<int64_t>(0, std::llround(seconds));
  if (whole < 60)
    return str(whole, "s");
  auto two = [](int64_t value) {
    return (value < 10 ? "0" : "") + std::to_string(value);
  };
  if (whole < 3600)
    return str(whole / 60, "m", two(whole % 60), "s");
  return str(whole / 3600, "h", two(whole / 60 % 60), "m");
}

static std::string lossText(double loss) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.4f", loss);
  return text;
}

/// For each path its last keys: as many as tell it from the others.
static std::vector<std::string>
shortNames(const std::vector<std::string> &paths) {
  auto lastKeys = [](const std::string &path, size_t count) {
    std::vector<std::string> keys = splitPath(path);
    std::string text;
    for (size_t i = keys.size() - std::min(count, keys.size()); i < keys.size();
         ++i)
      text += (text.empty() ? "" : ".") + keys[i];
    return text.empty() ? path : text;
  };
  std::vector<std::string> names;
  for (const std::string &path : paths) {
    size_t most = splitPath(path).size(), count = 1;
    auto isShared = [&] {
      return std::count_if(
                 paths.begin(), paths.end(), [&](const std::string &other) {
                   return lastKeys(other, count) == lastKeys(path, count);
                 }) > 1;
    };
    while (count < most && isShared())
      ++count;
    names.push_back(lastKeys(path, count));
  }
  return names;
}

/// "  accuracy 0.53  grad_norm 1.27".
static std::string metricText(const std::vector<std::string> &names,
                              const std::vector<double> &values) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < values.size(); ++i) {
    char number[40];
    bool isWhole = values[i] == std::floor(values[i]) &&
                   std::abs(values[i]) < 1e15; // counts, step numbers
    std::snprintf(number, sizeof(number), isWhole ? "%.0f" : "%.5g", values[i]);
    text += str("  ", names[i], " ", number);
  }
  return text;
}

static double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  return values[middle];
}

/// "[3, 17]" for an element of a tensor; "" for a scalar.
static std::string elementText(const TensorType &type, int64_t index) {
  if (type.dims.empty())
    return "";
  std::vector<int64_t> position(type.dims.size());
  for (size_t i = type.dims.size(); i-- > 0;) {
    position[i] = index % type.dims[i];
    index /= type.dims[i];
  }
  std::string text = "[";
  for (size_t i = 0; i < position.size(); ++i)
    text += (i ? ", " : "") + std::to_string(position[i]);
  return text + "]";
}

static nlohmann::json memoryJson(const fp8_memory &memory) {
  return {{"arena_planned", memory.arena_planned},
          {"arena_reserved", memory.arena_reserved},
          {"arena_touched", memory.arena_touched},
          {"arguments", memory.arguments},
          {"results", memory.results},
          {"constants", memory.constants},
          {"scratch", memory.scratch}};
}

//===----------------------------------------------------------------------===//
// Trainer
//===----------------------------------------------------------------------===//

namespace {
class Trainer {
public:
  Trainer(const fp8_train_options &options, fp8_train_summary &summary)
      : options(options), summary(summary) {}

  void run();

private:
  using Infos = std::vector<TensorInfo>;

  void checkOptions();
  void openData();
  void openText();
  void prepareDirectory();
  void initialize();
  void begin(const InitialValues &initial);
  void resume();
  void warnOfOtherRun(const std::string &fingerprint);
  void prepareEvaluation(Evaluation &each, const InitialValues *initial);
  Key firstKey(size_t ordinal, const TensorInfo &info) const;

  void loop();
  void feed(int64_t step);
  void checkFinite(const LogRow &row);
  void checkStateFinite();
  void openTrace();
  void keepState();
  bool heedAlarms(LogRow &row);
  [[noreturn]] void failNonFinite(const std::string &what);
  bool evaluate(LogRow &row);
  void saveCheckpoint();
  int64_t restOfProcess() const;
  void sayMemory();
  void writeMemory();
  void writeProfile();
  void exportWeights();
  void progress(const LogRow &row, bool isLast);
  void sayData();
  void finish();

  void say(const std::string &text) {
    if (options.quiet)
      return;
    if (options.message) {
      options.message(options.user, text.c_str());
      return;
    }
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  /// A whole line, below the live one if there is one.
  void sayLine(const std::string &text) {
    if (lineIsLive)
      say("\n");
    lineIsLive = false;
    say(text + "\n");
  }

  /// Said whether quiet or not: the run is not what it may be taken for.
  void warn(const std::string &text) {
    if (options.message)
      options.message(options.user, (text + "\n").c_str());
    else
      std::fputs((text + "\n").c_str(), stderr);
  }

  const Infos &arguments() const { return step->executable.arguments; }
  const Infos &results() const { return step->executable.results; }
  double scalarResult(size_t i) {
    return elementAsDouble(step->result(i), results()[i].type.dtype, 0);
  }

  const fp8_train_options &options;
  fp8_train_summary &summary;
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

  size_t loss = 0;
  std::vector<size_t> metrics;
  std::vector<bool> mayBeInfinite; // state arguments that began non-finite
  CheckpointInfo position;
  std::string checkpoint; // the last one's path
  int64_t savedStep = -1;
  std::unique_ptr<Report> report;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<TraceFile> traceFile; // if there is to be one
  TraceSummary traceSummary;
  std::unique_ptr<Alarms> alarms;
  std::vector<std::vector<char>> keptState; // before the step; to skip it
  int64_t skippedSteps = 0;
  std::optional<std::string> stopReason;
  std::vector<double> stepSeconds;
  std::string lossUnit;                              // "" if not known
  std::vector<std::string> metricLabels, evalLabels; // short, for people
  LogRow lastEvaluated;
  double secondsBefore = 0;
  Clock::time_point beginTime, lastProgress;
  bool isTerminal = false;
  bool lineIsLive = false;
};
} // namespace

void Trainer::checkOptions() {
  auto require = [](bool condition, const char *message) {
    if (!condition)
      throw Error(FP8_ERROR_INVALID, message);
  };
  require(options.step, "expected a step executable but got none");
  require(options.steps >= 0, "expected a number of steps but got less than 0");
  require(options.out_dir && *options.out_dir,
          "expected an output directory but got none");
  require(options.num_data_files <= 0 || options.data_files,
          "expected data files but got none");
  require(options.num_eval_files <= 0 || options.eval_files,
          "expected held-out files but got none");
  require(options.num_batches <= 0 || options.batches,
          "expected batch sources but got none");
  require(options.num_eval_batches <= 0 || options.eval_batches,
          "expected batch sources for the evaluation but got none");
  require(options.eval ||
              (options.num_eval_batches <= 0 && options.num_eval_files <= 0),
          "expected an evaluation for the held-out data but got none");
  require(options.holdout < 1, "expected a held-out fraction below 1");
  require(options.resume || options.init || options.init_file ||
              stateArguments(*options.step).empty(),
          "expected an initializer or a file with initial values");
  directory = options.out_dir;
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  isTerminal = options.live > 0 || (options.live == 0 && isatty(1));
  position.seed = options.seed;
  position.shuffle = options.shuffle != 0;
  if (options.fingerprint)
    position.fingerprint = options.fingerprint;

  bool hasLoss = false;
  const Infos &all = options.step->results;
  for (size_t i = 0; i < all.size(); ++i) {
    bool isScalar = all[i].type.elements() == 1;
    if (all[i].kind == FP8_KIND_LOSS) {
      if (!isScalar || !isFloat(all[i].type.dtype))
        throw Error(FP8_ERROR_INVALID,
                    str("loss '", all[i].name,
                        "': expected a floating-point scalar but got ",
                        all[i].type.text()));
      if (hasLoss)
        throw Error(FP8_ERROR_INVALID, "expected one loss but got two");
      loss = i;
      hasLoss = true;
    } else if (all[i].stateArg < 0 && isScalar && !isTrace(all[i].kind)) {
      metrics.push_back(i);
    }
  }
  require(hasLoss, "the step has no loss");
}

void Trainer::openData() {
  const Infos &all = options.step->arguments;
  TensorFiles files;
  arrays = ArrayBatches("the step", "--batch", options.batches,
                        options.num_batches, all, files);
  std::vector<bool> taken(all.size(), false);
  for (size_t i = 0; i < all.size(); ++i)
    taken[i] = arrays.feeds(i);
  bool hasText = options.num_data_files > 0;
  auto makeEvaluation = [&](const fp8_executable *function) {
    return function ? std::make_unique<Evaluation>(
                          *function, *options.step, *state, options,
                          hasText || options.num_eval_files > 0, files)
                    : nullptr;
  };
  evaluation = makeEvaluation(options.eval);
  if (options.export_weights)
    exportEvaluation = makeEvaluation(options.export_weights->eval);
  if (hasText) {
    text = findTextArguments("the step", all, taken);
    if (text.input < 0)
      throw Error(FP8_ERROR_DATA,
                  "data files are given but the step has no batch argument "
                  "left for them");
  } else {
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].role == FP8_ROLE_BATCH && !taken[i] && missingData.empty())
        missingData = str("no data for batch argument '", all[i].name, "' ",
                          all[i].type.text());
    // An export of what is trained already needs none.
    if (!missingData.empty() && !(options.resume && exporter))
      throw Error(FP8_ERROR_DATA, missingData);
  }
  openText();
  std::string arrayFingerprint = arrays.fingerprint();
  if (!arrayFingerprint.empty())
    position.dataFingerprint +=
        (position.dataFingerprint.empty() ? "" : "/") + arrayFingerprint;
  summary.tokens_per_step = text.rows * text.window;
  // Of arrays: integers are tokens (or labels), else every row counts as one.
  if (summary.tokens_per_step == 0)
    for (const TensorInfo &argument : all)
      if (argument.role == FP8_ROLE_BATCH && isInteger(argument.type.dtype))
        summary.tokens_per_step =
            std::max(summary.tokens_per_step, argument.type.elements());
  if (summary.tokens_per_step == 0)
    for (const TensorInfo &argument : all)
      if (argument.role == FP8_ROLE_BATCH && !argument.type.dims.empty())
        summary.tokens_per_step =
            std::max(summary.tokens_per_step, argument.type.dims[0]);
}

void Trainer::openText() {
  TextArguments evalText;
  // One for the export reads what any other does.
  if (const auto &any = evaluation ? evaluation : exportEvaluation)
    evalText = any->textArguments();
  int64_t vocabulary = text.vocabulary;
  if (evalText.input >= 0)
    vocabulary = vocabulary < 0 ? evalText.vocabulary
                                : std::min(vocabulary, evalText.vocabulary);
  if (options.num_data_files > 0) {
    std::vector<std::string> files(options.data_files,
                                   options.data_files + options.num_data_files);
    double holdout = options.holdout == 0 ? 0.1 : options.holdout;
    if (holdout < 0 || options.num_eval_files > 0)
      holdout = 0;
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

void Trainer::prepareDirectory() {
  createDirectories(directory);
  if (access(directory.c_str(), W_OK) != 0)
    throw Error(FP8_ERROR_IO, str("cannot write to directory '", directory,
                                  "': ", errnoText(errno)));
  if (options.resume || options.overwrite) {
    removeTemporaryFiles(directory);
    return;
  }
  std::vector<CheckpointFile> old = listCheckpoints(directory);
  std::string what = !old.empty() ? old[0].path
                     : fileExists(directory + "/log.jsonl")
                         ? directory + "/log.jsonl"
                         : "";
  if (!what.empty())
    throw Error(
        FP8_ERROR_IO,
        str("'", directory, "' holds an earlier run ('", what,
            "'): resume it, overwrite it, or choose another directory"));
}

/// The key of a seed; of several key arguments each has another. (Numbers from
/// the top, which no step reaches.)
Key Trainer::firstKey(size_t ordinal, const TensorInfo &info) const {
  if (!isKeyType(info.type) || info.type.dims.size() != 1)
    throw Error(FP8_ERROR_MISMATCH, str("key argument '", info.name,
                                        "': expected u32[2], u32[4] "
                                        "or an initial value but got ",
                                        info.type.text()));
  Key key = keyFromSeed(position.seed, info.type.dims[0]);
  return ordinal == 0 ? key : foldIn(key, -static_cast<uint32_t>(ordinal));
}

void Trainer::resume() {
  uint64_t seed = position.seed;
  CheckpointInfo info =
      resumeFromNewest(directory, *step, position.fingerprint, checkpoint,
                       [&](const std::string &text) { sayLine(text); });
  savedStep = info.step;
  if (options.steps < info.step)
    throw Error(FP8_ERROR_INVALID,
                str("expected at least ", info.step, " steps, which is where '",
                    checkpoint, "' stands, but got ", options.steps,
                    ": steps count in all, those before a resume included"));
  if (info.seed != seed)
    sayLine(str("note: going on with the checkpoint's seed ", info.seed));
  if (!missingData.empty() && info.step < options.steps)
    throw Error(FP8_ERROR_DATA, missingData);
  if (missingData.empty() && info.dataFingerprint != position.dataFingerprint)
    warn("warning: the data are not those that the checkpoint was trained "
         "on: the run does not continue exactly");
  if (info.fingerprint != position.fingerprint)
    warnOfOtherRun(info.fingerprint);
  if (info.shuffle != position.shuffle)
    warn(str("warning: the checkpoint's run ",
             info.shuffle ? "shuffled" : "did not shuffle",
             " its data, this one does", position.shuffle ? "" : " not",
             ": the run does not continue exactly"));
  position.step = info.step;
  position.seed = info.seed;
  position.rows = info.rows;
  sayLine(str("resuming from ", checkpoint));
}

/// Says that the checkpoint was written by a run that is not this one.
void Trainer::warnOfOtherRun(const std::string &fingerprint) {
  FingerprintDifference other =
      compareFingerprints(fingerprint, position.fingerprint);
  std::string names =
      str(" ('", other.found, "', this is '", other.expected, "')");
  if (other.isEarlier)
    warn("warning: the checkpoint is of an earlier version, which kept its "
         "recipe's name alone and no compiler: whether the run continues "
         "exactly is not known");
  else if (other.isCompilerAlone)
    warn(str("warning: the compiler is not that of the checkpoint", names,
             ": the run may not continue exactly"));
  else
    warn(str("warning: module or recipe are not those of the checkpoint", names,
             ": the run does not continue exactly"));
}

void Trainer::begin(const InitialValues &initial) {
  // A checkpoint of this recipe has the state as it is stored.
  StoredState asStored(step->executable, nullptr, nullptr, options.threads);
  bool isStored = state->changes() && initial.fileHas(state->storedNames());
  StoredState &form = isStored ? asStored : *state;
  const std::vector<StoredState::Leaf> &tree = form.tree();
  std::vector<size_t> keyIndices = keyArguments(step->executable);
  std::vector<size_t> leaves, optionalLeaves; // behind the keys
  std::vector<Named> targets, optional;
  for (size_t i : keyIndices)
    optional.push_back({arguments()[i].name, arguments()[i].type});
  for (size_t i = 0; i < tree.size(); ++i) {
    (tree[i].zeroInit ? optional : targets).push_back(tree[i].named);
    (tree[i].zeroInit ? optionalLeaves : leaves).push_back(i);
  }
  InitialValues::Found found = initial.find(targets, optional);
  if (!found.unused.empty())
    sayLine(str("note: ", found.unused.size(), " tensors of '",
                options.init_file, "' are not used, '", found.unused[0].name,
                "' first"));
  for (size_t i = 0; i < keyIndices.size(); ++i) {
    const TensorInfo &argument = arguments()[keyIndices[i]];
    Key first;
    const void *value = found.optional[i];
    if (!value) {
      first = firstKey(i, argument);
      value = first.data();
    }
    std::memcpy(step->argument(keyIndices[i]), value, argument.type.bytes());
  }
  std::vector<const void *> values(tree.size());
  for (size_t i = 0; i < leaves.size(); ++i)
    values[leaves[i]] = found.targets[i];
  for (size_t i = 0; i < optionalLeaves.size(); ++i)
    values[optionalLeaves[i]] = found.optional[keyIndices.size() + i];
  form.write(values, *step);
}

void Trainer::initialize() {
  std::unique_ptr<InitialValues> initial;
  auto isMissing = [](const std::unique_ptr<Evaluation> &each) {
    return each && !each->missing().empty();
  };
  if (!options.resume || isMissing(evaluation) || isMissing(exportEvaluation))
    initial = std::make_unique<InitialValues>(options.init_file, options.init,
                                              options.seed, options.threads);
  if (options.resume)
    resume();
  else
    begin(*initial);
  for (size_t i : keyArguments(step->executable)) {
    const TensorType &type = arguments()[i].type;
    if (!isKeyType(type))
      throw Error(FP8_ERROR_INVALID,
                  str("key argument '", arguments()[i].name,
                      "': expected u32[2] or u32[4] but got ", type.text()));
    Key key(type.elements());
    std::memcpy(key.data(), step->argument(i), type.bytes());
    keys.emplace_back(i, std::move(key));
  }
  if (position.shuffle)
    arrays.shuffle(position.seed);
  mayBeInfinite.assign(arguments().size(), false);
  for (size_t i : stateArguments(step->executable))
    mayBeInfinite[i] =
        firstNonFinite(step->argument(i), arguments()[i].type) >= 0;
  for (Evaluation *each : {evaluation.get(), exportEvaluation.get()})
    if (each)
      prepareEvaluation(*each, initial.get());
}

void Trainer::prepareEvaluation(Evaluation &each,
                                const InitialValues *initial) {
  std::vector<const void *> values;
  if (initial)
    values = initial->find({}, each.missing()).optional;
  each.prepare(
      *step, values,
      [&](const TensorInfo &info) {
        for (const auto &[argument, key] : keys)
          if (arguments()[argument].name == info.name &&
              arguments()[argument].type == info.type)
            return key;
        return firstKey(0, info);
      },
      options.threads);
}

void Trainer::feed(int64_t at) {
  for (int64_t row = 0; row < text.rows; ++row)
    storeWindow(trainingData->trainingWindow(position.seed, at, row), text,
                arguments(), row, step->argument(text.input),
                text.target >= 0 ? step->argument(text.target) : nullptr);
  arrays.store(position.rows, at, [&](size_t i) { return step->argument(i); });
  // A key that the step does not return advances by the step's number.
  for (const auto &[argument, key] : keys) {
    Key words = foldIn(key, static_cast<uint32_t>(at));
    std::memcpy(step->argument(argument), words.data(),
                words.size() * sizeof(uint32_t));
  }
}

void Trainer::failNonFinite(const std::string &what) {
  throw Error(FP8_ERROR_NONFINITE,
              what + (checkpoint.empty()
                          ? "; no checkpoint had been written"
                          : str("; the last good checkpoint is ", checkpoint)));
}

void Trainer::checkFinite(const LogRow &row) {
  if (std::isfinite(row.loss))
    return;
  std::string where;
  auto look = [&](const TensorInfo &info, const void *data) {
    int64_t at = firstNonFinite(data, info.type);
    if (at >= 0)
      where = str(info.name, elementText(info.type, at), " is ",
                  numberText(elementAsDouble(data, info.type.dtype, at)));
  };
  for (size_t i = 0; i < arguments().size() && where.empty(); ++i)
    if (arguments()[i].role == FP8_ROLE_STATE && !mayBeInfinite[i])
      look(arguments()[i], step->argument(i));
  for (size_t i = 0; i < results().size() && where.empty(); ++i)
    if (results()[i].stateArg < 0 && !isTrace(results()[i].kind))
      look(results()[i], step->result(i));
  failNonFinite(str("step ", row.step, ": the loss is ", numberText(row.loss),
                    "; first non-finite value: ", where));
}

void Trainer::checkStateFinite() {
  for (size_t i = 0; i < arguments().size(); ++i) {
    const TensorInfo &info = arguments()[i];
    if (info.role != FP8_ROLE_STATE || mayBeInfinite[i])
      continue;
    int64_t at = firstNonFinite(step->argument(i), info.type);
    if (at >= 0)
      failNonFinite(str(
          "step ", position.step, ": the state is not finite: ", info.name,
          elementText(info.type, at), " is ",
          numberText(elementAsDouble(step->argument(i), info.type.dtype, at))));
  }
}

//===----------------------------------------------------------------------===//
// Traces and alarms
//===----------------------------------------------------------------------===//

void Trainer::openTrace() {
  trace = std::make_unique<Trace>(results());
  std::vector<Alarms::Scalar> scalars = {{"loss", "loss"}};
  for (size_t i = 0; i < metrics.size(); ++i)
    scalars.push_back({results()[metrics[i]].name, metricLabels[i]});
  alarms = std::make_unique<Alarms>(options.alarms, options.num_alarms,
                                    std::move(scalars), *trace);
  TraceFile(directory).trim(options.resume ? position.step : -1);
  if (!options.trace)
    return;
  if (trace->empty())
    warn("warning: the step has no statistics to trace: nothing in it is "
         "quantized");
  traceFile = std::make_unique<TraceFile>(directory);
}

/// A copy of the state, where an alarm may ask for it after the step.
void Trainer::keepState() {
  if (!alarms->maySkip())
    return;
  keptState.resize(arguments().size());
  for (size_t i : stateArguments(step->executable)) {
    const char *data = step->argument(i);
    keptState[i].assign(data, data + arguments()[i].type.bytes());
  }
}

/// Reads the trace and does what the alarms ask for. False if the step was not
/// taken.
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
  for (const std::string &warning : verdict.warnings)
    warn("warning: " + warning);
  stopReason = verdict.stop;
  if (!verdict.skip)
    return true;
  warn("skipped: " + *verdict.skip);
  for (size_t i : stateArguments(step->executable))
    std::copy(keptState[i].begin(), keptState[i].end(), step->argument(i));
  row.isSkipped = true;
  ++skippedSteps;
  return false;
}

/// False if it was interrupted.
bool Trainer::evaluate(LogRow &row) {
  std::optional<std::vector<double>> means =
      evaluation->run([] { return interrupted != 0; });
  if (!means)
    return false;
  row.hasHeldOut = true;
  row.heldOut = means->front();
  row.evalMetrics.assign(means->begin() + 1, means->end());
  lastEvaluated = row;
  summary.heldout_loss = row.heldOut;
  return true;
}

void Trainer::saveCheckpoint() {
  if (savedStep == position.step)
    return;
  checkStateFinite();
  // A checkpoint has the keys that the run began with: the step tells the rest.
  for (const auto &[argument, key] : keys)
    std::memcpy(step->argument(argument), key.data(),
                key.size() * sizeof(uint32_t));
  StoredTrees trees;
  if (state->changes())
    trees = {state->treeJson(), state->storedJson()};
  checkpoint = writeCheckpoint(directory, *step, position,
                               state->changes() ? &trees : nullptr);
  savedStep = position.step;
  if (options.keep_checkpoints > 0) {
    int64_t kept = 0;
    for (const CheckpointFile &file : listCheckpoints(directory))
      if (++kept > options.keep_checkpoints && file.step < position.step)
        unlink(file.path.c_str());
  }
}

void Trainer::progress(const LogRow &row, bool isLast) {
  int64_t every = options.log_every > 0 ? options.log_every : 10;
  bool isDue =
      isTerminal ? isLast || row.hasHeldOut || secondsSince(lastProgress) > 0.1
                 : isLast || row.hasHeldOut || row.step % every == 0 ||
                       row.step == summary.first_step + 1;
  if (!isDue)
    return;
  lastProgress = Clock::now();
  int64_t done = row.step - summary.first_step;
  std::string line =
      str("step ", row.step, "/", options.steps, "  loss ", lossText(row.loss));
  line += metricText(metricLabels, row.metrics);
  if (std::isfinite(lastEvaluated.heldOut))
    line += "  held-out " + lossText(lastEvaluated.heldOut);
  line +=
      str("  ", groupedText(std::llround(row.tokensPerSecond)), " tokens/s");
  if (!isLast)
    line += str("  ",
                durationText(secondsSince(beginTime) / done *
                             (options.steps - row.step)),
                " left");
  if (isTerminal) {
    // A live line must not be longer than the terminal is wide.
    struct winsize size = {};
    if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      line.resize(std::min<size_t>(line.size(), size.ws_col - 1));
    say("\r" + line + "\x1b[K");
    lineIsLive = true;
  } else {
    say(line + "\n");
  }
}

void Trainer::loop() {
  beginTime = lastProgress = Clock::now();
  std::vector<double> recent; // for a steady speed
  while (position.step < options.steps && !interrupted && !stopReason) {
    feed(position.step);
    keepState();
    Clock::time_point start = Clock::now();
    step->run();
    stepSeconds.push_back(secondsSince(start));
    ++position.step;
    summary.last_step = position.step;

    recent.push_back(stepSeconds.back());
    if (recent.size() > 16)
      recent.erase(recent.begin());
    double total = 0;
    for (double seconds : recent)
      total += seconds;
    LogRow row;
    row.step = position.step;
    row.loss = scalarResult(loss);
    row.tokensPerSecond =
        summary.tokens_per_step * recent.size() / std::max(total, 1e-9);
    for (size_t i : metrics)
      row.metrics.push_back(scalarResult(i));
    bool isTaken = heedAlarms(row);
    bool isLast = position.step == options.steps || stopReason;
    if ((std::isfinite(row.loss) || !isTaken) && evaluation && !interrupted &&
        (isLast ||
         (options.eval_every > 0 && position.step % options.eval_every == 0)))
      evaluate(row);
    row.seconds = secondsBefore + secondsSince(beginTime);
    report->append(row);
    if (isTaken)
      checkFinite(row);
    progress(row, isLast || interrupted);
    if (options.checkpoint_every > 0 &&
        position.step % options.checkpoint_every == 0) {
      saveCheckpoint();
      report->writePicture();
    }
  }
  saveCheckpoint();
}

/// What the process holds beside the memory of the step: code, compiler, data,
/// heap.
int64_t Trainer::restOfProcess() const {
  const fp8_memory &memory = summary.memory;
  return std::max<int64_t>(0, memory.peak_rss - memory.arena_touched -
                                  memory.arguments - memory.results -
                                  memory.constants - memory.scratch);
}

/// What was planned, beside what the process took.
void Trainer::sayMemory() {
  const fp8_memory &memory = summary.memory;
  double agreement = memory.arena_planned
                         ? 100.0 * memory.arena_touched / memory.arena_planned
                         : 100;
  sayLine(str("memory    arena ", bytesText(memory.arena_planned), " planned, ",
              bytesText(memory.arena_touched), " touched (",
              numberText(std::round(agreement * 10) / 10), " %); arguments ",
              bytesText(memory.arguments), ", results ",
              bytesText(memory.results), ", constants ",
              bytesText(memory.constants), ", scratch ",
              bytesText(memory.scratch)));
  sayLine(str("          the process at most ", bytesText(memory.peak_rss),
              ", of these ", bytesText(restOfProcess()),
              " beside the step: code, compiler, data, heap"));
}

void Trainer::writeMemory() {
  step->memory(summary.memory);
  nlohmann::json json;
  json["step"] = memoryJson(summary.memory);
  if (evaluation) {
    fp8_memory memory;
    evaluation->memory(memory);
    json["eval"] = memoryJson(memory);
  }
  if (state->storeMemory())
    json["store"] = memoryJson(*state->storeMemory());
  if (state->loadMemory())
    json["load"] = memoryJson(*state->loadMemory());
  json["threads"] = step->threads();
  json["peak_rss"] = summary.memory.peak_rss;
  json["rest_of_process"] = restOfProcess();
  if (options.memory_plan)
    json["plan"] = nlohmann::json::parse(options.memory_plan);
  writeFileAtomically(directory + "/memory.json", json.dump(2) + "\n");
}

void Trainer::writeProfile() {
  if (!options.profile)
    return;
  std::string text = "[\n";
  for (size_t i = 0; i < step->profile.size(); ++i) {
    const fp8_launch_stat &stat = step->profile[i];
    text +=
        str(i ? ",\n" : "", "  {\"launch\": ", i,
            ", \"name\": ", nlohmann::json(stat.name ? stat.name : "").dump(),
            ", \"tasks\": ", stat.tasks, ", \"runs\": ", stat.runs,
            ", \"microseconds\": ",
            numberText(std::round(stat.seconds /
                                  std::max<int64_t>(stat.runs, 1) * 1e7) /
                       10),
            "}");
  }
  writeFileAtomically(directory + "/profile.json", text + "\n]\n");
}

void Trainer::finish() {
  const std::vector<LogRow> &rows = report->rows();
  if (!rows.empty()) {
    auto meanOfLast = [&](size_t count) {
      count = std::min(count, rows.size());
      double sum = 0;
      for (size_t i = rows.size() - count; i < rows.size(); ++i)
        sum += rows[i].loss;
      return sum / count;
    };
    summary.first_loss = rows.front().loss;
    summary.last_loss = rows.back().loss;
    summary.mean_loss_10 = meanOfLast(10);
    summary.mean_loss_20 = meanOfLast(20);
  }
  summary.step_seconds = median(stepSeconds);
  if (summary.step_seconds > 0)
    summary.tokens_per_second = summary.tokens_per_step / summary.step_seconds;
  std::snprintf(summary.checkpoint, sizeof(summary.checkpoint), "%s",
                checkpoint.c_str());
  report->writePicture();
  writeMemory();
  writeProfile();
  if (lineIsLive)
    say("\n");
  lineIsLive = false;

  if (!rows.empty())
    sayLine(str("loss      ", lossText(summary.first_loss), " -> ",
                lossText(summary.last_loss), " in ", summary.last_step,
                " steps (mean of the last 10 ", lossText(summary.mean_loss_10),
                ", of the last 20 ", lossText(summary.mean_loss_20), ")"));
  if (!rows.empty() && !metrics.empty())
    sayLine("metrics " + metricText(metricLabels, rows.back().metrics));
  if (skippedSteps > 0)
    sayLine(str("skipped   ", skippedSteps, " of ",
                summary.last_step - summary.first_step, " steps"));
  std::vector<std::string> traceLines = traceSummary.lines();
  for (size_t i = 0; i < traceLines.size(); ++i)
    sayLine((i ? "          " : "trace     ") + traceLines[i]);
  if (evaluation && lastEvaluated.hasHeldOut)
    sayLine(str("held out  ", lossText(lastEvaluated.heldOut),
                lossUnit.empty() ? "" : " " + lossUnit, ", on ",
                evaluation->dataText(),
                metricText(evalLabels, lastEvaluated.evalMetrics)));
  if (!stepSeconds.empty())
    sayLine(str(
        "speed     ", groupedText(std::llround(summary.tokens_per_second)),
        " tokens/s, ", numberText(std::round(summary.step_seconds * 1e5) / 1e2),
        " ms a step (medians), ", step->threads(),
        step->threads() == 1 ? " thread" : " threads"));
  sayMemory();
  sayLine(str("files     ", directory,
              "/log.csv, log.jsonl, loss.svg, "
              "memory.json",
              options.verdicts ? ", verdicts.json" : "",
              traceFile ? ", trace.jsonl" : "",
              options.profile ? ", profile.json" : ""));
  if (!checkpoint.empty())
    sayLine(str("          ", checkpoint));
}

void Trainer::exportWeights() {
  exporter->write(*state, *step);
  std::optional<WeightExport::Check> check;
  if (exportEvaluation)
    check = exporter->check(*exportEvaluation, [] { return interrupted != 0; });
  exporter->finish(position.step, check);
  sayLine(str("export    ", exporter->file(), ", ",
              bytesText(exporter->bytes()), "; export.json"));
  if (!check)
    return;
  std::string snr;
  if (check->logitsSNR && std::isfinite(*check->logitsSNR))
    snr = str(", logits at ",
              numberText(std::round(*check->logitsSNR * 10) / 10), " dB");
  sayLine(str("          held out ", lossText(check->model), " as trained, ",
              lossText(check->exported), " as exported", snr));
}

void Trainer::sayData() {
  if (trainingData)
    sayLine(
        str("data      ", groupedText(trainingData->trainingTokens()), " ",
            trainingData->unit(), " to train on, ",
            groupedText((separateEvalData ? *separateEvalData : *trainingData)
                            .heldOutTokens()),
            " held out, ", trainingData->numFiles(),
            trainingData->numFiles() == 1 ? " file; " : " files; ", text.rows,
            " rows of ", text.window, " a step"));
  if (!arrays.hasRows())
    return;
  std::string where;
  if (position.rows.epoch > 0 || position.rows.index > 0)
    where = str("; at row ", groupedText(position.rows.index), " of epoch ",
                position.rows.epoch);
  sayLine(str("arrays    ", groupedText(arrays.rows()), " rows, ",
              groupedText(arrays.rowsPerStep()), " a step, ",
              position.shuffle ? "shuffled in every epoch" : "in their order",
              where));
}

void Trainer::run() {
  checkOptions();
  state = std::make_unique<StoredState>(*options.step, options.store,
                                        options.load, options.threads);
  if (options.export_weights)
    exporter = std::make_unique<WeightExport>(
        *options.export_weights, *options.step, *state, options.threads);
  openData();
  prepareDirectory();
  step = std::make_unique<fp8_step>(*options.step, options.threads);
  SignalScope signals(!options.no_signals);
  initialize();
  summary.first_step = summary.last_step = position.step;
  step->profiling = options.profile != 0;

  if (!options.resume && options.overwrite)
    for (const CheckpointFile &file : listCheckpoints(directory))
      if (unlink(file.path.c_str()) != 0)
        throw Error(FP8_ERROR_IO,
                    str("cannot remove '", file.path, "': ", errnoText(errno)));
  std::vector<std::string> metricNames, evalNames;
  for (size_t i : metrics)
    metricNames.push_back(results()[i].name);
  if (evaluation)
    evalNames = evaluation->metricNames();
  metricLabels = shortNames(metricNames);
  evalLabels = shortNames(evalNames);
  if (trainingData)
    lossUnit = std::strcmp(trainingData->unit(), "bytes") == 0
                   ? "nats per byte"
                   : "nats per token";
  report =
      std::make_unique<Report>(directory, metricNames, evalNames, lossUnit);
  report->open(options.resume ? position.step : -1);
  openTrace();
  if (options.verdicts)
    writeFileAtomically(directory + "/verdicts.json", options.verdicts);
  if (!report->rows().empty())
    secondsBefore = report->rows().back().seconds;
  for (const LogRow &row : report->rows())
    if (row.hasHeldOut)
      lastEvaluated = row;

  sayData();

  bool isDone = position.step >= options.steps;
  if (isDone)
    sayLine(str("nothing to train: the checkpoint is of step ", position.step));
  try {
    loop();
    if (isDone && evaluation)
      evaluate(lastEvaluated);
  } catch (const Error &error) {
    if (lineIsLive)
      say("\n");
    lineIsLive = false;
    std::string message = error.what();
    // The steps since the last checkpoint are worth saving, unless they are
    // what went wrong.
    if (error.status == FP8_ERROR_NONFINITE) {
      try {
        report->writePicture();
        writeMemory();
      } catch (const Error &) {
      }
    } else if (savedStep != position.step && position.step > 0) {
      try {
        saveCheckpoint();
        message += str("; step ", position.step, " is saved in ", checkpoint);
      } catch (const Error &) {
        message += checkpoint.empty()
                       ? "; no checkpoint had been written"
                       : str("; the last checkpoint is ", checkpoint);
      }
    }
    std::snprintf(summary.checkpoint, sizeof(summary.checkpoint), "%s",
                  checkpoint.c_str());
    throw Error(error.status, message);
  }
  finish();
  if (stopReason)
    throw Error(FP8_STOPPED, str("stopped by an alarm: ", *stopReason,
                                 "; resume from ", checkpoint));
  if (interrupted && position.step < options.steps)
    throw Error(FP8_INTERRUPTED,
                str("interrupted after step ", position.step, " of ",
                    options.steps, "; resume from ", checkpoint));
  if (exporter)
    exportWeights();
}

void train(const fp8_train_options &options, fp8_train_summary &summary) {
  Trainer(options, summary).run();
}

//===----------------------------------------------------------------------===//
// Running once
//===----------------------------------------------------------------------===//

void runOnce(const fp8_executable &executable, const char *inputs,
             const char *outputs, int threads) {
  TensorFile file;
  if (inputs)
    file = readSafeTensors(inputs);
  std::vector<Named> targets = namesOf(executable.arguments);
  std::vector<Named> sources = namesOf(file);
  Binding binding = bindByPath(targets, sources);
  if (!binding.complete())
    throw Error(FP8_ERROR_MISMATCH,
                describe(binding,
                         inputs ? str("the tensors in '", inputs,
                                      "' do not fit the function:")
                                : "the function's arguments are not given:",
                         targets, sources));
  fp8_step step(executable, threads);
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i].type.bytes())
      std::memcpy(step.argument(i), file.tensors[binding.sources[i]].data,
                  targets[i].type.bytes());
  step.run();
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < executable.results.size(); ++i) {
    const TensorInfo &result = executable.results[i];
    // A result with a buffer of its own has changed places with its argument.
    const void *data =
        result.stateArg >= 0 ? step.argument(result.stateArg) : step.result(i);
    tensors.push_back({result.name, result.type, data});
  }
  writeSafeTensors(outputs, std::move(tensors), {});
}

} // namespace fp8::rt
