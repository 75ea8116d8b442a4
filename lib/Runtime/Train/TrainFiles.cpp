//===- TrainFiles.cpp - The files of a run --------------------------------===//

#include "../Metrics/Limits.h"
#include "../Metrics/Profile.h"
#include "../Support/Interrupt.h"
#include "RunFiles.h"
#include "Trainer.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// The directory and the logs
//===----------------------------------------------------------------------===//

/// Reports an error if the initial values are in `file`, which the run replaces
/// or removes.
void Trainer::expectOtherInit(const std::string &file, const char *what) const {
  std::error_code unknown;
  if (options.init_file &&
      std::filesystem::equivalent(options.init_file, file, unknown))
    throw Error(FP8_ERROR_IO, str("expected another directory for ", what,
                                  " than that of the initial values, '", file,
                                  "', which would be lost"));
}

void Trainer::prepareDirectory() {
  if (!isWriter())
    return;
  createDirectories(directory);
  if (access(directory.c_str(), W_OK) != 0)
    throw Error(FP8_ERROR_IO, str("cannot write to directory '", directory,
                                  "': ", errnoText(errno)));
  lock.take(directory);
  if (!options.resume)
    expectNoPackage(directory, "the run");
  // Not only when the run is over.
  if (exporter) {
    createDirectories(options.export_weights->directory);
    expectNoPackage(options.export_weights->directory, "the weights");
    expectOtherInit(exporter->file(), "the weights");
  }
  if (!options.resume)
    for (const CheckpointFile &file : listCheckpoints(directory))
      expectOtherInit(file.path, "the run");
  if (options.resume || options.overwrite) {
    removeTemporaryFiles(directory);
    removeIncompleteCheckpoints(directory);
    return;
  }
  expectNoEarlierRun(directory);
  // Someone may have written this one by hand.
  std::string recipe = directory + "/recipe.yaml";
  if (options.recipe && fileExists(recipe) &&
      readTextFile(recipe) != options.recipe)
    throw Error(FP8_ERROR_IO,
                str("expected no '", recipe,
                    "', which the run would replace by its own: move it, "
                    "overwrite it, or choose another directory"));
}

void Trainer::removeOldCheckpoints() {
  for (const CheckpointFile &file : listCheckpoints(directory))
    if (int code = removeCheckpoint(file))
      throw Error(FP8_ERROR_IO,
                  str("cannot remove '", file.path, "': ", errnoText(code)));
}

void Trainer::openLogs() {
  std::vector<std::string> metricNames = scalars.metricNames(step->executable);
  std::vector<std::string> evalNames;
  if (evaluation)
    evalNames = evaluation->metricNames();
  metricLabels = shortNames(metricNames);
  evalLabels = shortNames(evalNames);
  if (trainingData)
    lossUnit = std::strcmp(trainingData->unit(), "bytes") == 0
                   ? "nats per byte"
                   : "nats per token";
  report = std::make_unique<Report>(isWriter() ? directory : "", metricNames,
                                    evalNames, lossUnit);
  report->open(options.resume ? position.step : -1);
  openTrace();
  // Files of an earlier run must not stay.
  bool isNew = !options.resume && !options.overwrite;
  for (auto [name, text] : {std::pair("/verdicts.json", options.verdicts),
                            std::pair("/recipe.yaml", options.recipe),
                            std::pair("/preset.yaml", options.preset)}) {
    if (!isWriter())
      break;
    if (text)
      writeFileAtomically(directory + name, text);
    else if (!isNew)
      unlink((directory + name).c_str());
  }
  for (const char *name :
       {"/profile.json", "/cost.json", "/timeline.json", "/report.html"})
    if (isWriter() && options.overwrite && !options.resume)
      unlink((directory + name).c_str());
  if (!report->rows().empty())
    secondsBefore = report->rows().back().seconds;
  for (const LogRow &row : report->rows())
    if (row.hasHeldOut)
      lastEvaluated = row;
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

void Trainer::saveCheckpoint() {
  if (savedStep == position.step)
    return;
  checkStateFinite();
  checkStateIsSame();
  if (options.checkpoint_every >= 0)
    writeState();
}

/// Writes a checkpoint. Each rank writes the state that it owns, or a share if
/// the options say so; otherwise rank 0 writes all. After a failure (`isAlone`)
/// rank 0 can write without the other ranks if it has all state.
void Trainer::writeState(bool isAlone) {
  bool isSet = step->isDealt() || step->hasParts() ||
               (options.sharded_checkpoints && numRanks() > 1 && !isAlone);
  if (!isWriter() && !isSet) {
    savedStep = position.step;
    return;
  }
  // A checkpoint holds the initial keys.
  setKeys(std::nullopt);
  StateNames names;
  names.compilers = state->compilersNames();
  if (state->changes()) {
    names.user = state->treeJson();
    names.stored = state->storedJson();
  }
  checkpoint = isSet ? writeCheckpointSet(directory, *step, position, names,
                                          *options.group)
                     : writeCheckpoint(directory, *step, position, names);
  // Those of the next step may have been set already.
  if (isFed)
    setKeys(position.step);
  savedStep = position.step;
  if (isWriter())
    removeSurplusCheckpoints();
}

void Trainer::removeSurplusCheckpoints() {
  if (options.keep_checkpoints <= 0)
    return;
  int64_t kept = 0;
  for (const CheckpointFile &file : listCheckpoints(directory))
    // Later ones are damaged: the run was resumed from an earlier one.
    if (file.step <= position.step && ++kept > options.keep_checkpoints)
      removeCheckpoint(file);
}

/// Saves what can be saved after a failure, and returns the message of both.
/// The steps since the last checkpoint are saved unless they caused the
/// failure.
std::string Trainer::saveAfter(const Error &error) {
  std::string message = error.what();
  if (error.status == FP8_ERROR_NONFINITE) {
    try {
      report->writePicture();
      writeMemory();
    } catch (const Error &) {
      // Report the first failure only.
    }
    return message;
  }
  // Other ranks cannot be asked for their shards and parts of the state any
  // more, and a step or a collective that failed may be half done.
  bool isWhole = error.status != FP8_ERROR_RANK && !step->hasFailed() &&
                 !step->isDealt() && !step->hasParts();
  if (savedStep == position.step || position.step <= 0 || !isWriter())
    return message;
  if (options.checkpoint_every < 0)
    return message;
  try {
    if (!isWhole)
      throw error;
    checkStateFinite();
    writeState(/*isAlone=*/true);
    report->restore(lastRow);
    return message + str("; step ", position.step, " is saved in ", checkpoint);
  } catch (const Error &) {
    return message + (checkpoint.empty()
                          ? "; no checkpoint had been written"
                          : str("; the last checkpoint is ", checkpoint));
  }
}

/// Returns how to continue after a run that ended early, for its message.
std::string Trainer::resumeHint() const {
  return checkpoint.empty() ? "" : "; resume from " + checkpoint;
}

void Trainer::copyCheckpointPath() {
  std::snprintf(summary.checkpoint, sizeof(summary.checkpoint), "%s",
                checkpoint.c_str());
}

//===----------------------------------------------------------------------===//
// Memory, profile, weights
//===----------------------------------------------------------------------===//

static nlohmann::json memoryJson(const fp8_memory &memory) {
  return {{"arena_planned", memory.arena_planned},
          {"arena_reserved", memory.arena_reserved},
          {"arena_touched", memory.arena_touched},
          {"arguments", memory.arguments},
          {"results", memory.results},
          {"constants", memory.constants},
          {"scratch", memory.scratch}};
}

void Trainer::writeMemory() {
  step->memory(summary.memory);
  if (!isWriter())
    return;
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
  if (numRanks() > 1)
    json["step"]["reductions"] = summary.memory.reductions;
  if (step->isDealt()) {
    json["step"]["shards"] = summary.memory.shards;
    json["step"]["arguments_touched"] = summary.memory.arguments_touched;
    for (int64_t each = 0; each < numRanks(); ++each)
      json["shards_by_rank"].push_back(step->shardBytesOf(each));
  }
  json["threads"] = step->threads();
  json["peak_rss"] = summary.memory.peak_rss;
  json["rest_of_process"] = restOfProcess();
  if (options.memory_plan)
    json["plan"] = nlohmann::json::parse(options.memory_plan);
  writeFileAtomically(directory + "/memory.json", json.dump(2) + "\n");
}

/// Returns the memory of the process beside the step's: code, compiler, data,
/// heap.
int64_t Trainer::restOfProcess() const {
  const fp8_memory &memory = summary.memory;
  return std::max<int64_t>(0, memory.peak_rss - memory.arena_touched -
                                  memory.arguments - memory.results -
                                  memory.constants - memory.scratch);
}

void Trainer::beginProfile() {
  if (!options.profile)
    return;
  step->profiling = true;
  // The timeline and the limits are measured on the CPU.
  if (!step->executable.gpuKernels.empty())
    return;
  step->timeline = std::make_unique<Timeline>(step->threads());
  if (options.cost)
    limits = measureLimits(options.threads);
}

void Trainer::writeProfile() {
  if (!options.profile || !isWriter())
    return;
  writeCollectives();
  if (options.cost) {
    nlohmann::json cost = nlohmann::json::parse(options.cost);
    cost["limits"] = {{"threads", limits.threads},
                      {"f32_flops_per_second", std::round(limits.f32_flops)},
                      {"bf16_flops_per_second", std::round(limits.bf16_flops)},
                      {"bytes_per_second", std::round(limits.bytes)}};
    writeFileAtomically(directory + "/cost.json", cost.dump() + "\n");
  }
  writeFileAtomically(directory + "/profile.json", profileJson(step->profile));
  if (step->timeline)
    writeFileAtomically(directory + "/timeline.json",
                        step->timeline->json(step->executable.launchNames));
}

/// Only rank 0 calls this.
void Trainer::writeCollectives() {
  std::string path = directory + "/collectives.json";
  if (numRanks() == 1)
    unlink(path.c_str());
  else
    writeFileAtomically(
        path, collectivesJson(step->collectives(), numRanks(),
                              options.group->name(), step->carrier(),
                              static_cast<int64_t>(stepSeconds.size())));
}

void Trainer::exportWeights() {
  exporter->write(*state, *step);
  std::optional<WeightExport::Check> check;
  if (exportEvaluation)
    check = exporter->check(*exportEvaluation, [&] { return isInterrupted(); });
  exporter->writeManifest(position.step, check);
  printExport(check);
}

} // namespace fp8::rt
