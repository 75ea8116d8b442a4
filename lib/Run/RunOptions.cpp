//===- RunOptions.cpp - A training run as a command line has it -----------===//

#include "fp8/Run/RunOptions.h"
#include "BatchSources.h"

#include <sstream>
#include <utility>

using namespace fp8run;

static std::string findBatchMistake(const RunOptions &run) {
  std::string path, file;
  for (auto &[option, texts] : {std::pair("batch", &run.batches),
                                std::pair("eval-batch", &run.evalBatches)})
    for (const std::string &text : *texts)
      if (!splitBatch(text, path, file))
        return std::string("expected --") + option + " KEY=VALUE but got '" +
               text + "'";
  return "";
}

static std::string findAlarmMistake(const RunOptions &run) {
  for (const std::string &rule : run.alarms) {
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

static std::string findNumberMistake(const RunOptions &run) {
  if (run.steps < 0 || (run.steps == 0 && !run.isExportAlone()))
    return "expected --steps N with N > 0 but got " + std::to_string(run.steps);
  for (auto [name, value] : {std::pair("eval-every", run.evalEvery),
                             std::pair("checkpoint-every", run.checkpointEvery),
                             std::pair("log-every", run.logEvery),
                             std::pair("trace-every", run.traceEvery)})
    if (value < 0)
      return std::string("expected --") + name + " N with N >= 0 but got " +
             std::to_string(value);
  if (!(run.holdout >= 0 && run.holdout < 1))
    return "expected --holdout to be at least 0 and below 1 but got " +
           textOf(run.holdout);
  return "";
}

static std::string findEvaluationMistake(const RunOptions &run) {
  if (run.hasHoldout && run.dataFiles.empty() && !run.batches.empty())
    return "expected --data FILE... with --holdout (of arrays nothing is held "
           "out)";
  const char *given = !run.evalData.empty()      ? "eval-data"
                      : !run.evalBatches.empty() ? "eval-batch"
                      : run.evalEvery > 0        ? "eval-every"
                                                 : nullptr;
  if (run.hasEval || !given)
    return "";
  return std::string(run.isPackage ? "expected a package with an evaluation"
                                   : "expected --eval EVAL.mlir") +
         " with --" + given;
}

static std::string findCheckpointMistake(const RunOptions &run) {
  if (run.noCheckpoints && (run.checkpointEvery > 0 || run.shardedCheckpoints))
    return std::string("expected --no-checkpoints or --") +
           (run.shardedCheckpoints ? "sharded-checkpoints"
                                   : "checkpoint-every") +
           " but got both";
  if (run.shardedCheckpoints && !run.dataParallel)
    return "expected --data-parallel with --sharded-checkpoints";
  return "";
}

static std::string findTimeoutMistake(const RunOptions &run) {
  if (!(run.rankTimeout >= 0))
    return "expected --rank-timeout SECONDS with SECONDS >= 0 but got " +
           textOf(run.rankTimeout);
  if (run.rankTimeout > 0 && !run.dataParallel)
    return "expected --data-parallel with --rank-timeout";
  return "";
}

static std::string findZeroMistake(const RunOptions &run) {
  if (run.zero > 1)
    return "expected --zero 0 or 1 (gradients and parameters are not dealt) "
           "but got " +
           std::to_string(run.zero);
  if (run.zero > 0 && !run.dataParallel)
    return "expected --data-parallel with --zero";
  if (run.globalAmax && !run.dataParallel)
    return "expected --data-parallel with --global-amax";
  if (run.globalBatch > 0 && !run.dataParallel)
    return "expected --data-parallel with --global-batch";
  return "";
}

static std::string findIdleOption(const RunOptions &run) {
  if (run.shuffle && run.batches.empty())
    return "expected --batch PATH=FILE with --shuffle (text is read in random "
           "order anyway)";
  if (run.traceEvery > 0 && !run.trace)
    return "expected --trace with --trace-every";
  return "";
}

static std::string findInputMistake(const RunOptions &run) {
  if (run.resume && run.overwrite)
    return "expected --resume or --overwrite but got both";
  if (!run.hasInit && run.initFile.empty() && !run.resume)
    return run.isPackage ? "expected --init W.safetensors, since the package "
                           "has no initializer"
                         : "expected --init INIT.mlir or --init W.safetensors";
  return "";
}

std::string RunOptions::findMistake() const {
  for (auto find :
       {findNumberMistake, findEvaluationMistake, findTimeoutMistake,
        findCheckpointMistake, findZeroMistake, findIdleOption,
        findAlarmMistake, findInputMistake, findBatchMistake})
    if (std::string mistake = find(*this); !mistake.empty())
      return mistake;
  return "";
}

std::vector<std::string> RunOptions::batchPaths() const {
  std::vector<std::string> paths;
  std::string key, value;
  for (const std::string &text : batches)
    if (splitBatch(text, key, value))
      paths.push_back(key);
  return paths;
}
