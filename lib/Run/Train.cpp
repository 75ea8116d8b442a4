//===- Train.cpp - Training with the functions of a package ---------------===//

#include "fp8/Run/Train.h"
#include "BatchSources.h"
#include "ReportPage.h"
#include "fp8/Run/ExitCode.h"

#include <algorithm>
#include <cstdlib>
#include <sys/stat.h>

using namespace fp8run;

namespace {

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

/// The options of a run as the runtime takes them, and what they point to.
class TrainOptions {
public:
  explicit TrainOptions(const RunOptions &run)
      : run(run), batches(run.batches), evalBatches(run.evalBatches),
        data(pointersTo(run.dataFiles)), evalData(pointersTo(run.evalData)),
        alarms(pointersTo(run.alarms)) {
    setInputs();
    setOutputs();
  }

  /// Takes the functions of the package.
  fp8_status set(const fp8_package *package) {
    bool isExported = !run.exportDir.empty();
    fp8_status status = fp8_package_options(package, &options,
                                            isExported ? &exported : nullptr);
    if (status != FP8_OK)
      return status;
    exported.directory = run.exportDir.c_str();
    options.export_weights = isExported ? &exported : nullptr;
    setSchedule();
    return FP8_OK;
  }

  fp8_train_options options = {};

private:
  void setInputs() {
    options.init_file = run.initFile.empty() ? nullptr : run.initFile.c_str();
    options.data_files = data.data();
    options.num_data_files = static_cast<int64_t>(data.size());
    options.eval_files = evalData.data();
    options.num_eval_files = static_cast<int64_t>(evalData.size());
    options.batches = batches.sources.data();
    options.num_batches = static_cast<int64_t>(batches.sources.size());
    options.eval_batches = evalBatches.sources.data();
    options.num_eval_batches = static_cast<int64_t>(evalBatches.sources.size());
    options.shuffle = run.shuffle;
    options.holdout = run.holdout > 0 ? run.holdout : -1;
    options.seed = run.seed;
    options.group = run.group;
  }
  void setSchedule() {
    options.steps =
        run.isExportAlone() ? checkpointStep(run.outDir) : run.steps;
    options.checkpoint_every = run.noCheckpoints ? -1 : run.checkpointEvery;
    options.eval_every = run.evalEvery;
    options.log_every = run.logEvery;
    options.trace_every = run.traceEvery;
    options.threads = run.threads;
  }
  void setOutputs() {
    options.alarms = alarms.data();
    options.num_alarms = static_cast<int64_t>(alarms.size());
    options.out_dir = run.outDir.c_str();
    options.resume = run.resume;
    options.overwrite = run.overwrite;
    options.sharded_checkpoints = run.shardedCheckpoints;
    options.quiet = run.quiet;
    options.profile = run.profile;
    options.trace = run.trace;
  }

  const RunOptions &run;
  fp8_export exported = {};
  BatchSources batches, evalBatches;
  std::vector<const char *> data, evalData, alarms;
};

} // namespace

std::string fp8run::findRanksMistake(const RunOptions &run,
                                     const fp8_package *package) {
  if (!run.dataParallel || fp8_package_text(package, "ranks.txt"))
    return "";
  return "expected a step that was compiled for several ranks but got one for "
         "a single process: emit the package with --data-parallel";
}

int fp8run::checkFiles(const RunOptions &run) {
  TrainOptions given(run);
  return exitCodeOnRanks(run, fp8_check_files(&given.options));
}

std::string
fp8run::findBatchMistake(const RunOptions &run,
                         const std::vector<fp8_tensor_info> &arguments,
                         bool isEvaluation) {
  TrainOptions given(run);
  // Others, such as pipes, can be read only once.
  auto isRegular = [](const fp8_batch_source &source) {
    struct stat info;
    return stat(source.file, &info) == 0 && S_ISREG(info.st_mode);
  };
  const fp8_train_options &options = given.options;
  if (!std::all_of(options.batches, options.batches + options.num_batches,
                   isRegular) ||
      !std::all_of(options.eval_batches,
                   options.eval_batches + options.num_eval_batches, isRegular))
    return "";
  fp8_status status =
      fp8_check_batches(&options, arguments.data(),
                        static_cast<int64_t>(arguments.size()), isEvaluation);
  return status == FP8_OK ? "" : fp8_last_error();
}

int fp8run::train(const RunOptions &run, const fp8_package *package) {
  TrainOptions given(run);
  if (fp8_status status = given.set(package); status != FP8_OK)
    return exitCode(run.program, status);
  fp8_status status = fp8_train(&given.options, nullptr);
  int code = exitCodeOnRanks(run, status);
  // A run that went wrong is one to look at.
  bool hasTrained = status == FP8_OK || status == FP8_INTERRUPTED ||
                    status == FP8_STOPPED || status == FP8_ERROR_NONFINITE;
  if (run.report && hasTrained && !writeReport(run) && code == 0)
    return 1;
  return code;
}
