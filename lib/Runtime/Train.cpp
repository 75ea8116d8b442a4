//===- Train.cpp - The training loop --------------------------------------===//

#include "Train.h"
#include "Binding.h"
#include "Checkpoint.h"
#include "Data.h"
#include "Report.h"
#include "Step.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
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
  }
  ~SignalScope() {
    if (!active)
      return;
    sigaction(SIGINT, &oldInt, nullptr);
    sigaction(SIGTERM, &oldTerm, nullptr);
  }

private:
  bool active;
  struct sigaction oldInt = {}, oldTerm = {};
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

static bool isKeyType(const TensorType &type) {
  return (type.dtype == FP8_DTYPE_U32 || type.dtype == FP8_DTYPE_I32) &&
         type.dims.size() == 1 && (type.dims[0] == 2 || type.dims[0] == 4);
}

static std::vector<Named> namesOf(const std::vector<TensorInfo> &infos) {
  std::vector<Named> names;
  for (const TensorInfo &info : infos)
    names.push_back({info.name, info.type});
  return names;
}

static std::vector<Named> namesOf(const TensorFile &file) {
  std::vector<Named> names;
  for (const TensorFile::Tensor &tensor : file.tensors)
    names.push_back({tensor.name, tensor.type});
  return names;
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
  void prepareDirectory();
  void initialize();
  void initializeFromFunction(const std::vector<Named> &targets,
                              std::vector<const void *> &values,
                              std::unique_ptr<fp8_step> &init, Binding &binding,
                              std::vector<Named> &sources);
  void prepareEvaluation();

  void loop();
  void feed(int64_t step);
  void checkFinite(const LogRow &row);
  void checkStateFinite();
  [[noreturn]] void failNonFinite(const std::string &what);
  std::optional<double> evaluate();
  void saveCheckpoint();
  void writeMemory();
  void writeProfile();
  void progress(const LogRow &row, bool isLast);
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
  std::unique_ptr<fp8_step> step, eval;

  // What feeds the batch.
  std::unique_ptr<TextData> trainingData, separateEvalData;
  TextArguments text, evalText;
  std::vector<std::pair<size_t, ArraySource>> arrays;
  std::vector<std::pair<size_t, size_t>> evalBindings; // eval <- step argument
  std::vector<TextData::Window> evalWindows;
  int64_t evalBatches = 0;
  size_t evalLoss = 0;
  double evalSeconds = 0;

  size_t loss = 0;
  std::vector<size_t> metrics;
  std::vector<bool> mayBeInfinite; // state arguments that began non-finite
  CheckpointInfo position;
  std::string checkpoint; // the last one's path
  int64_t savedStep = -1;
  std::unique_ptr<Report> report;
  std::vector<double> stepSeconds;
  double lastHeldOut = std::numeric_limits<double>::quiet_NaN();
  double secondsBefore = 0;
  Clock::time_point begin, lastProgress;
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
  require(options.holdout < 1, "expected a held-out fraction below 1");
  require(options.resume || options.init || options.init_file ||
              stateArguments(*options.step).empty(),
          "expected an initializer or a file with initial values");
  directory = options.out_dir;
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  isTerminal = options.live > 0 || (options.live == 0 && isatty(1));
  position.seed = options.seed;
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
    } else if (all[i].kind == FP8_KIND_METRIC && isScalar) {
      metrics.push_back(i);
    }
  }
  require(hasLoss, "the step has no loss");
}

void Trainer::openData() {
  const Infos &all = options.step->arguments;
  std::vector<bool> taken(all.size(), false);
  for (int64_t i = 0; i < options.num_batches; ++i) {
    const fp8_batch_source &source = options.batches[i];
    if (!source.path || !source.file)
      throw Error(FP8_ERROR_INVALID, "a batch source has no path or no file");
    size_t found = 0;
    std::string known;
    while (found < all.size() && !(all[found].role == FP8_ROLE_BATCH &&
                                   all[found].name == source.path)) {
      if (all[found].role == FP8_ROLE_BATCH)
        known += str(known.empty() ? "" : ", ", "'", all[found].name, "'");
      ++found;
    }
    if (found == all.size())
      throw Error(FP8_ERROR_DATA,
                  str("the step has no batch argument '", source.path,
                      "'; it has ", known.empty() ? "none" : known));
    if (taken[found])
      throw Error(FP8_ERROR_DATA,
                  str("batch argument '", source.path, "' has two sources"));
    taken[found] = true;
    arrays.emplace_back(found, ArraySource(source, all[found]));
  }
  bool hasText = options.num_data_files > 0;
  if (!hasText) {
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].role == FP8_ROLE_BATCH && !taken[i])
        throw Error(FP8_ERROR_DATA, str("no data for batch argument '",
                                        all[i].name, "' ", all[i].type.text()));
  } else {
    text = findTextArguments("the step", all, taken);
    if (text.input < 0)
      throw Error(FP8_ERROR_DATA,
                  "data files are given but the step has no batch argument "
                  "left for them");
    if (options.eval)
      // Float arguments are parameters; integers take text.
      evalText =
          findTextArguments("the evaluation", options.eval->arguments, [&] {
            // An integer that is the step's own state (a counter) is no data.
            std::vector<bool> bound(options.eval->arguments.size(), false);
            for (size_t i = 0; i < bound.size(); ++i)
              for (const TensorInfo &argument : all)
                if (argument.role != FP8_ROLE_BATCH &&
                    argument.name == options.eval->arguments[i].name &&
                    argument.type == options.eval->arguments[i].type)
                  bound[i] = true;
            return bound;
          }());
    std::vector<std::string> files(options.data_files,
                                   options.data_files + options.num_data_files);
    double holdout = options.holdout == 0 ? 0.1 : options.holdout;
    if (holdout < 0 || options.num_eval_files > 0)
      holdout = 0;
    int64_t vocabulary = text.vocabulary;
    if (evalText.input >= 0)
      vocabulary = std::min(vocabulary, evalText.vocabulary);
    trainingData = std::make_unique<TextData>(files, vocabulary, holdout);
    trainingData->prepareTraining(text.span());
    position.dataFingerprint = trainingData->fingerprint();
    if (options.num_eval_files > 0) {
      std::vector<std::string> evalFiles(
          options.eval_files, options.eval_files + options.num_eval_files);
      separateEvalData = std::make_unique<TextData>(evalFiles, vocabulary, 1);
    }
  }
  if (options.eval)
    prepareEvaluation();
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

void Trainer::prepareEvaluation() {
  const Infos &outs = options.eval->results;
  bool found = false;
  for (int pass = 0; pass < 2 && !found; ++pass)
    for (size_t i = 0; i < outs.size() && !found; ++i)
      if (isFloat(outs[i].type.dtype) && outs[i].type.elements() == 1 &&
          (pass == 1 || outs[i].kind == FP8_KIND_LOSS)) {
        evalLoss = i;
        found = true;
      }
  if (!found)
    throw Error(FP8_ERROR_DATA, "the evaluation has no scalar result: expected "
                                "a loss");
  if (!trainingData || evalText.input < 0)
    throw Error(FP8_ERROR_DATA,
                "the evaluation needs text for an integer batch argument");
  const TextData &data = separateEvalData ? *separateEvalData : *trainingData;
  evalWindows = data.heldOutWindows(evalText.span());
  evalBatches = static_cast<int64_t>(evalWindows.size()) / evalText.rows;
  if (evalBatches == 0)
    throw Error(FP8_ERROR_DATA,
                str("the held-out text is too short: its ",
                    groupedText(data.heldOutTokens()), " ", data.unit(),
                    " make ", evalWindows.size(), " rows of ", evalText.span(),
                    " but one evaluation takes ", evalText.rows,
                    ": give more data, hold out more, or give evaluation "
                    "files"));
  evalWindows.resize(evalBatches * evalText.rows);
}

void Trainer::prepareDirectory() {
  createDirectories(directory);
  if (access(directory.c_str(), W_OK) != 0)
    throw Error(FP8_ERROR_IO, str("cannot write to directory '", directory,
                                  "': ", errnoText(errno)));
  if (options.resume || options.overwrite)
    return;
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

void Trainer::initializeFromFunction(const std::vector<Named> &targets,
                                     std::vector<const void *> &values,
                                     std::unique_ptr<fp8_step> &init,
                                     Binding &binding,
                                     std::vector<Named> &sources) {
  init = std::make_unique<fp8_step>(*options.init, options.threads);
  const Infos &args = options.init->arguments;
  uint32_t low = static_cast<uint32_t>(options.seed);
  uint32_t high = static_cast<uint32_t>(options.seed >> 32);
  for (size_t i = 0; i < args.size(); ++i) {
    void *buffer = init->argument(i);
    if (args[i].type.dims.empty() && isInteger(args[i].type.dtype)) {
      storeInteger(buffer, args[i].type.dtype, 0,
                   static_cast<int64_t>(options.seed));
    } else if (isKeyType(args[i].type)) {
      uint32_t words[4] = {0, 0, high, low};
      int64_t count = args[i].type.dims[0];
      std::memcpy(buffer, words + (4 - count), count * sizeof(uint32_t));
    } else {
      throw Error(FP8_ERROR_MISMATCH,
                  str("initializer argument '", args[i].name,
                      "': expected a seed (an integer, or a key u32[2]) but "
                      "got ",
                      args[i].type.text()));
    }
  }
  init->run();
  sources = namesOf(options.init->results);
  binding = bindByPath(targets, sources);
  for (size_t i = 0; i < targets.size(); ++i)
    if (binding.sources[i] >= 0 && !values[i])
      values[i] = init->result(binding.sources[i]);
}

void Trainer::initialize() {
  std::vector<size_t> indices = stateArguments(step->executable);
  if (options.resume) {
    uint64_t seed = position.seed;
    CheckpointInfo info =
        resumeFromNewest(directory, *step, checkpoint,
                         [&](const std::string &text) { sayLine(text); });
    savedStep = info.step;
    if (options.steps < info.step)
      throw Error(FP8_ERROR_INVALID,
                  str("expected at least ", info.step,
                      " steps, which is where '", checkpoint,
                      "' stands, but got ", options.steps,
                      ": steps count in all, those before a resume included"));
    if (info.seed != seed)
      sayLine(str("note: going on with the checkpoint's seed ", info.seed));
    if (info.dataFingerprint != position.dataFingerprint)
      warn("warning: the data are not those that the checkpoint was trained "
           "on: the run does not continue exactly");
    if (info.fingerprint != position.fingerprint)
      warn("warning: module or recipe are not those of the checkpoint: the "
           "run does not continue exactly");
    position.step = info.step;
    position.seed = info.seed;
    sayLine(str("resuming from ", checkpoint));
  } else {
    std::vector<Named> targets;
    for (size_t i : indices)
      targets.push_back({arguments()[i].name, arguments()[i].type});
    std::vector<const void *> values(targets.size(), nullptr);
    TensorFile file;
    std::unique_ptr<fp8_step> init;
    Binding binding;
    std::vector<Named> sources;
    std::string title = "the initial values do not fit the step:";
    if (options.init_file) {
      file = readSafeTensors(options.init_file);
      title =
          str("the tensors in '", options.init_file, "' do not fit the step:");
      sources = namesOf(file);
      binding = bindByPath(targets, sources);
      for (size_t i = 0; i < targets.size(); ++i)
        if (binding.sources[i] >= 0)
          values[i] = file.tensors[binding.sources[i]].data;
      if (!binding.misshaped.empty() ||
          (!binding.missing.empty() && !options.init))
        throw Error(FP8_ERROR_MISMATCH,
                    describe(binding, title, targets, sources));
      if (!binding.extra.empty())
        sayLine(str("note: ", binding.extra.size(), " tensors of '",
                    options.init_file, "' are not used, '",
                    sources[binding.extra[0]].name, "' first"));
    }
    if (options.init) {
      initializeFromFunction(targets, values, init, binding, sources);
      if (std::any_of(values.begin(), values.end(),
                      [](const void *value) { return !value; })) {
        // What the file gave is not missing.
        auto given = [&](int64_t target) { return values[target] != nullptr; };
        binding.missing.erase(std::remove_if(binding.missing.begin(),
                                             binding.missing.end(), given),
                              binding.missing.end());
        binding.misshaped.erase(
            std::remove_if(binding.misshaped.begin(), binding.misshaped.end(),
                           [&](const std::pair<int64_t, int64_t> &pair) {
                             return given(pair.first);
                           }),
            binding.misshaped.end());
        throw Error(FP8_ERROR_MISMATCH,
                    describe(binding, title, targets, sources));
      }
    }
    for (size_t i = 0; i < targets.size(); ++i)
      std::memcpy(step->argument(indices[i]), values[i],
                  targets[i].type.bytes());
  }
  mayBeInfinite.assign(arguments().size(), false);
  for (size_t i : indices)
    mayBeInfinite[i] =
        firstNonFinite(step->argument(i), arguments()[i].type) >= 0;

  if (!options.eval)
    return;
  eval = std::make_unique<fp8_step>(*options.eval, options.threads);
  const Infos &args = options.eval->arguments;
  std::vector<Named> targets, sources;
  std::vector<size_t> targetIndices;
  for (size_t i = 0; i < args.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    if (index == evalText.input || index == evalText.target)
      continue;
    if (args[i].role == FP8_ROLE_KEY)
      continue; // stays zero
    targets.push_back({args[i].name, args[i].type});
    targetIndices.push_back(i);
  }
  for (size_t i : indices)
    sources.push_back({arguments()[i].name, arguments()[i].type});
  Binding binding = bindByPath(targets, sources);
  if (!binding.complete()) {
    binding.extra.clear(); // moments and counters, of course
    throw Error(
        FP8_ERROR_MISMATCH,
        describe(binding,
                 "the evaluation's arguments are not found in the step:",
                 targets, sources));
  }
  for (size_t i = 0; i < targets.size(); ++i)
    evalBindings.emplace_back(targetIndices[i], indices[binding.sources[i]]);
}

void Trainer::feed(int64_t at) {
  for (int64_t row = 0; row < text.rows; ++row)
    storeWindow(trainingData->trainingWindow(position.seed, at, row), text,
                arguments(), row, step->argument(text.input),
                text.target >= 0 ? step->argument(text.target) : nullptr);
  for (auto &[argument, source] : arrays)
    source.store(at, step->argument(argument));
  // A key that the step does not return: fresh words for every step, from the
  // generator that orders the data, in a stream of their own.
  for (size_t i = 0; i < arguments().size(); ++i) {
    const TensorInfo &argument = arguments()[i];
    if (argument.role != FP8_ROLE_KEY)
      continue;
    RandomWords random =
        randomAt(position.seed, at, static_cast<uint32_t>(i), /*stream=*/1);
    std::memcpy(step->argument(i), random.words,
                std::min<int64_t>(sizeof(random.words), argument.type.bytes()));
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
    if (results()[i].stateArg < 0)
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

std::optional<double> Trainer::evaluate() {
  Clock::time_point start = Clock::now();
  for (auto [target, source] : evalBindings)
    std::memcpy(eval->argument(target), step->argument(source),
                arguments()[source].type.bytes());
  double sum = 0;
  const Infos &args = eval->executable.arguments;
  for (int64_t batch = 0; batch < evalBatches; ++batch) {
    if (interrupted)
      return std::nullopt;
    for (int64_t row = 0; row < evalText.rows; ++row)
      storeWindow(evalWindows[batch * evalText.rows + row], evalText, args, row,
                  eval->argument(evalText.input),
                  evalText.target >= 0 ? eval->argument(evalText.target)
                                       : nullptr);
    eval->run();
    sum += elementAsDouble(eval->result(evalLoss),
                           eval->executable.results[evalLoss].type.dtype, 0);
  }
  evalSeconds += secondsSince(start);
  lastHeldOut = sum / evalBatches;
  summary.heldout_loss = lastHeldOut;
  return lastHeldOut;
}

void Trainer::saveCheckpoint() {
  if (savedStep == position.step)
    return;
  checkStateFinite();
  checkpoint = writeCheckpoint(directory, *step, position);
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
  if (std::isfinite(lastHeldOut))
    line += "  held-out " + lossText(lastHeldOut);
  line +=
      str("  ", groupedText(std::llround(row.tokensPerSecond)), " tokens/s");
  if (!isLast)
    line += str(
        "  ",
        durationText(secondsSince(begin) / done * (options.steps - row.step)),
        " left");
  if (isTerminal) {
    say("\r" + line + "\x1b[K");
    lineIsLive = true;
  } else {
    say(line + "\n");
  }
}

void Trainer::loop() {
  begin = lastProgress = Clock::now();
  std::vector<double> recent; // for a steady speed
  while (position.step < options.steps && !interrupted) {
    feed(position.step);
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
    bool isLast = position.step == options.steps;
    if (std::isfinite(row.loss) && eval && !interrupted &&
        (isLast ||
         (options.eval_every > 0 && position.step % options.eval_every == 0))) {
      if (std::optional<double> heldOut = evaluate()) {
        row.hasHeldOut = true;
        row.heldOut = *heldOut;
      }
    }
    row.seconds = secondsBefore + secondsSince(begin);
    report->append(row);
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

void Trainer::writeMemory() {
  step->memory(summary.memory);
  nlohmann::json json;
  json["step"] = memoryJson(summary.memory);
  if (eval) {
    fp8_memory memory;
    eval->memory(memory);
    json["eval"] = memoryJson(memory);
  }
  json["threads"] = step->threads();
  json["peak_rss"] = summary.memory.peak_rss;
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
  if (eval && std::isfinite(lastHeldOut)) {
    const TextData &data = separateEvalData ? *separateEvalData : *trainingData;
    bool isBytes = std::strcmp(data.unit(), "bytes") == 0;
    sayLine(str("held out  ", lossText(lastHeldOut), " nats per ",
                isBytes ? "byte" : "token", ", on ",
                groupedText(evalWindows.size() * evalText.span()), " ",
                data.unit(), " of text that it did not train on (",
                groupedText(data.heldOutTokens()), " held out)"));
  }
  if (!stepSeconds.empty())
    sayLine(str(
        "speed     ", groupedText(std::llround(summary.tokens_per_second)),
        " tokens/s, ", numberText(std::round(summary.step_seconds * 1e5) / 1e2),
        " ms a step (medians), ", step->threads(),
        step->threads() == 1 ? " thread" : " threads"));
  const fp8_memory &memory = summary.memory;
  sayLine(str("memory    arena ", bytesText(memory.arena_planned), " planned, ",
              bytesText(memory.arena_touched), " touched; arguments ",
              bytesText(memory.arguments), "; the process at most ",
              bytesText(memory.peak_rss)));
  sayLine(str("files     ", directory,
              "/log.csv, log.jsonl, loss.svg, "
              "memory.json",
              options.verdicts ? ", verdicts.json" : "",
              options.profile ? ", profile.json" : ""));
  if (!checkpoint.empty())
    sayLine(str("          ", checkpoint));
}

void Trainer::run() {
  checkOptions();
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
  std::vector<std::string> metricNames;
  for (size_t i : metrics)
    metricNames.push_back(results()[i].name);
  std::string unit = "nats";
  if (trainingData)
    unit += std::strcmp(trainingData->unit(), "bytes") == 0 ? " per byte"
                                                            : " per token";
  report = std::make_unique<Report>(directory, metricNames, unit);
  report->open(options.resume ? position.step : -1);
  if (options.verdicts)
    writeFileAtomically(directory + "/verdicts.json", options.verdicts);
  if (!report->rows().empty())
    secondsBefore = report->rows().back().seconds;
  for (const LogRow &row : report->rows())
    if (row.hasHeldOut)
      lastHeldOut = row.heldOut;

  if (trainingData)
    sayLine(
        str("data      ", groupedText(trainingData->trainingTokens()), " ",
            trainingData->unit(), " to train on, ",
            groupedText((separateEvalData ? *separateEvalData : *trainingData)
                            .heldOutTokens()),
            " held out, ", trainingData->numFiles(),
            trainingData->numFiles() == 1 ? " file; " : " files; ", text.rows,
            " rows of ", text.window, " a step"));

  bool isDone = position.step >= options.steps;
  if (isDone)
    sayLine(str("nothing to train: the checkpoint is of step ", position.step));
  try {
    loop();
    if (isDone && eval)
      evaluate();
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
  if (interrupted && position.step < options.steps)
    throw Error(FP8_INTERRUPTED,
                str("interrupted after step ", position.step, " of ",
                    options.steps, "; resume from ", checkpoint));
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
