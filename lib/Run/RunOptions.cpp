//===- RunOptions.cpp - A training run as a command line has it -----------===//

#include "fp8/Run/RunOptions.h"
#include "fp8/Binding/PathBinding.h"

#include <cstdio>
#include <cstdlib>
#include <list>
#include <sstream>
#include <utility>

#include <unistd.h>

using namespace fp8run;

//===----------------------------------------------------------------------===//
// Mistakes
//===----------------------------------------------------------------------===//

static bool splitAt(size_t at, const std::string &text, std::string &key,
                    std::string &value) {
  key = text.substr(0, at);
  value = text.substr(at + 1);
  return !key.empty() && !value.empty();
}

static bool exists(const std::string &file) {
  return access(file.c_str(), F_OK) == 0;
}

/// The file of `FILE[:TENSOR]`. File names may hold colons too: the longest
/// name that exists is one. "" if none exists.
static std::string findFile(std::string file) {
  for (size_t at; !exists(file) && (at = file.rfind(':')) != std::string::npos;)
    file.resize(at);
  return exists(file) ? file : "";
}

/// Splits `PATH=FILE[:TENSOR]`. Both may hold '=': the first one before a file
/// that exists separates; if there is none, the first one.
static bool splitBatch(const std::string &text, std::string &path,
                       std::string &file) {
  std::vector<size_t> places = fp8binding::findSeparators(text);
  for (size_t at : places)
    if (splitAt(at, text, path, file) && !findFile(file).empty())
      return true;
  return !places.empty() && splitAt(places.front(), text, path, file);
}

/// The first of `texts` that is no `KEY=VALUE`, as a mistake.
static std::string findBatchMistake(const char *option,
                                    const std::vector<std::string> &texts) {
  std::string key, value;
  for (const std::string &text : texts)
    if (!splitBatch(text, key, value))
      return std::string("expected --") + option + " KEY=VALUE but got '" +
             text + "'";
  return "";
}

static std::string findAlarmMistake(const std::vector<std::string> &alarms) {
  for (const std::string &rule : alarms) {
    fp8_alarm alarm;
    if (fp8_alarm_parse(rule.c_str(), &alarm) != FP8_OK)
      return fp8_last_error();
  }
  return "";
}

std::string fp8run::findThreadsMistake(int64_t threads) {
  if (threads >= 0 && threads <= 4096)
    return "";
  return "expected --threads to be 0 to 4096 but got " +
         std::to_string(threads);
}

static std::string textOf(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

std::string RunOptions::findMistake() const {
  if (steps < 0 || (steps == 0 && !isExportAlone()))
    return "expected --steps N with N > 0 but got " + std::to_string(steps);
  for (auto [name, value] :
       {std::pair("eval-every", evalEvery),
        std::pair("checkpoint-every", checkpointEvery),
        std::pair("log-every", logEvery), std::pair("trace-every", traceEvery)})
    if (value < 0)
      return std::string("expected --") + name + " N with N >= 0 but got " +
             std::to_string(value);
  if (!(holdout >= 0 && holdout < 1))
    return "expected --holdout to be at least 0 and below 1 but got " +
           textOf(holdout);
  if (hasHoldout && dataFiles.empty() && !batches.empty())
    return "expected --data FILE... with --holdout (of arrays nothing is held "
           "out)";
  if (!hasEval && (!evalData.empty() || !evalBatches.empty() || evalEvery > 0))
    return std::string(isPackage ? "expected a package with an evaluation"
                                 : "expected --eval EVAL.mlir") +
           " with --" +
           (!evalData.empty()      ? "eval-data"
            : !evalBatches.empty() ? "eval-batch"
                                   : "eval-every");
  if (!(rankTimeout >= 0))
    return "expected --rank-timeout SECONDS with SECONDS >= 0 but got " +
           textOf(rankTimeout);
  if (rankTimeout > 0 && !dataParallel)
    return "expected --data-parallel with --rank-timeout";
  if (noCheckpoints && (checkpointEvery > 0 || shardedCheckpoints))
    return std::string("expected --no-checkpoints or --") +
           (shardedCheckpoints ? "sharded-checkpoints" : "checkpoint-every") +
           " but got both";
  if (shardedCheckpoints && !dataParallel)
    return "expected --data-parallel with --sharded-checkpoints";
  if (zero > 1)
    return "expected --zero 0 or 1 (gradients and parameters are not dealt) "
           "but got " +
           std::to_string(zero);
  if (zero > 0 && !dataParallel)
    return "expected --data-parallel with --zero";
  if (globalAmax && !dataParallel)
    return "expected --data-parallel with --global-amax";
  if (shuffle && batches.empty())
    return "expected --batch PATH=FILE with --shuffle (text is read in random "
           "order anyway)";
  if (traceEvery > 0 && !trace)
    return "expected --trace with --trace-every";
  if (std::string mistake = findAlarmMistake(alarms); !mistake.empty())
    return mistake;
  if (resume && overwrite)
    return "expected --resume or --overwrite but got both";
  if (!hasInit && initFile.empty() && !resume)
    return isPackage ? "expected --init W.safetensors, since the package has "
                       "no initializer"
                     : "expected --init INIT.mlir or --init W.safetensors";
  if (dataFiles.empty() && batches.empty() && !isExportAlone())
    return "expected --data FILE... or --batch PATH=FILE";
  if (std::string mistake = findBatchMistake("batch", batches);
      !mistake.empty())
    return mistake;
  return findBatchMistake("eval-batch", evalBatches);
}

std::vector<std::string> RunOptions::batchPaths() const {
  std::vector<std::string> paths;
  std::string key, value;
  for (const std::string &text : batches)
    if (splitBatch(text, key, value))
      paths.push_back(key);
  return paths;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

/// `PATH=FILE[:TENSOR]` options as the runtime takes them, and the strings that
/// it points to.
class BatchSources {
public:
  explicit BatchSources(const std::vector<std::string> &texts) {
    for (const std::string &text : texts)
      add(text);
  }

  std::vector<fp8_batch_source> sources;

private:
  void add(const std::string &text) {
    std::string path, value;
    if (!splitBatch(text, path, value))
      return;
    std::string file = findFile(value);
    if (file.empty())
      file = value.substr(0, value.find(':'));
    const char *tensor = file.size() + 1 < value.size()
                             ? keep(value.substr(file.size() + 1))
                             : nullptr;
    sources.push_back({keep(path), keep(file), tensor, nullptr, nullptr});
  }
  const char *keep(const std::string &text) {
    return strings.emplace_back(text).c_str();
  }

  std::list<std::string> strings;
};

std::vector<const char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  return pointers;
}

/// The step of the newest checkpoint in a directory; 0 if there is none.
int64_t checkpointStep(const std::string &directory) {
  fp8_tensors *tensors = nullptr;
  if (fp8_checkpoint_load(directory.c_str(), &tensors) != FP8_OK || !tensors)
    return 0;
  const char *text = fp8_tensors_metadata(tensors, "step");
  int64_t step = text ? std::strtoll(text, nullptr, 10) : 0;
  fp8_tensors_destroy(tensors);
  return step;
}

void print(const char *text) {
  if (text)
    std::fputs(text, stdout);
}

/// A pairing that leaves state as it is may be a mistake: it is said before the
/// first step.
void printUnchangedState(const char *text) {
  constexpr size_t kShown = 6;
  std::string line;
  size_t count = 0;
  for (std::string rest = text ? text : ""; !rest.empty(); ++count) {
    size_t end = rest.find('\n');
    if (count < kShown)
      line += (count ? ", " : "") + rest.substr(0, end);
    rest.erase(0, end == std::string::npos ? end : end + 1);
  }
  if (count == 0)
    return;
  if (count > kShown)
    line += " and " + std::to_string(count - kShown) + " more";
  std::printf("state that the step returns as it came: %s\n", line.c_str());
}

} // namespace

void fp8run::printReports(const RunOptions &options,
                          const fp8_package *package) {
  if (options.showVerdicts)
    print(fp8_package_text(package, "verdicts.txt"));
  else if (!options.quiet)
    print(fp8_package_text(package, "summary.txt"));
  if (!options.quiet) {
    printUnchangedState(fp8_package_text(package, "state.txt"));
    print(fp8_package_text(package, "memory.txt"));
  }
  std::fflush(stdout);
}

static int exitStatus(fp8_status status) {
  switch (status) {
  case FP8_OK:
    return 0;
  case FP8_INTERRUPTED:
    return 130;
  case FP8_STOPPED:
    return 4;
  case FP8_ERROR_NONFINITE:
    return 3;
  default:
    return 1;
  }
}

void fp8run::printError(const std::string &program,
                        const std::string &message) {
  if (!message.empty())
    std::fprintf(stderr, "%s: error: %s\n", program.c_str(), message.c_str());
}

int fp8run::exitCode(const std::string &program, fp8_status status) {
  if (status != FP8_OK)
    printError(program, fp8_last_error());
  return exitStatus(status);
}

int fp8run::exitCodeOnRanks(const RunOptions &run, fp8_status status) {
  int64_t rank = fp8_group_rank(run.group), ranks = fp8_group_size(run.group);
  if (status == FP8_OK || ranks == 1)
    return exitCode(run.program, status);
  std::string message = fp8_last_error();
  int result = exitStatus(status);
  // What is no failure of a rank ends all of them at the same step.
  if (result != 1) {
    if (rank == 0)
      printError(run.program, message);
    return result;
  }
  // The messages of these name the rank.
  if (status != FP8_ERROR_RANK)
    message = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
              ": " + message;
  if (fp8_group_claim_failure(run.group))
    printError(run.program, message);
  fp8_group_abort(run.group, message.c_str());
  return result;
}

std::string fp8run::findRanksMistake(const RunOptions &run,
                                     const fp8_package *package) {
  if (!run.dataParallel || fp8_package_text(package, "ranks.txt"))
    return "";
  return "expected a step that was compiled for several ranks but got one for "
         "a single process: emit the package with --data-parallel";
}

int fp8run::train(const RunOptions &run, const fp8_package *package) {
  fp8_train_options options = {};
  fp8_export exported = {};
  bool isExported = !run.exportDir.empty();
  fp8_status status =
      fp8_package_options(package, &options, isExported ? &exported : nullptr);
  if (status != FP8_OK)
    return exitCode(run.program, status);
  exported.directory = run.exportDir.c_str();
  options.export_weights = isExported ? &exported : nullptr;
  BatchSources batches(run.batches), evalBatches(run.evalBatches);
  std::vector<const char *> data = pointersTo(run.dataFiles);
  std::vector<const char *> evalData = pointersTo(run.evalData);
  std::vector<const char *> alarms = pointersTo(run.alarms);
  options.init_file = run.initFile.empty() ? nullptr : run.initFile.c_str();
  options.data_files = data.data();
  options.num_data_files = static_cast<int64_t>(data.size());
  options.eval_files = evalData.data();
  options.num_eval_files = static_cast<int64_t>(evalData.size());
  options.batches = batches.sources.data();
  options.num_batches = static_cast<int64_t>(batches.sources.size());
  options.eval_batches = evalBatches.sources.data();
  options.num_eval_batches = static_cast<int64_t>(evalBatches.sources.size());
  options.alarms = alarms.data();
  options.num_alarms = static_cast<int64_t>(alarms.size());
  options.shuffle = run.shuffle;
  options.holdout = run.holdout > 0 ? run.holdout : -1;
  options.out_dir = run.outDir.c_str();
  options.seed = run.seed;
  options.steps = run.isExportAlone() ? checkpointStep(run.outDir) : run.steps;
  options.checkpoint_every = run.noCheckpoints ? -1 : run.checkpointEvery;
  options.eval_every = run.evalEvery;
  options.log_every = run.logEvery;
  options.threads = run.threads;
  options.resume = run.resume;
  options.overwrite = run.overwrite;
  options.quiet = run.quiet;
  options.profile = run.profile;
  options.trace = run.trace;
  options.trace_every = run.traceEvery;
  options.group = run.group;
  options.sharded_checkpoints = run.shardedCheckpoints;
  status = fp8_train(&options, nullptr);
  int code = exitCodeOnRanks(run, status);
  // A run that went wrong is one to look at.
  bool hasTrained = status == FP8_OK || status == FP8_INTERRUPTED ||
                    status == FP8_STOPPED || status == FP8_ERROR_NONFINITE;
  if (run.report && hasTrained && !writeReport(run) && code == 0)
    return 1;
  return code;
}
