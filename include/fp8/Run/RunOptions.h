//===- RunOptions.h - A training run as a command line has it ---*- C++ -*-===//
//
// What fp8-run and fp8-train have in common: options of a run in the types of
// a command line, their mistakes in its words, and the call of fp8_train. No
// LLVM in here.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUN_RUNOPTIONS_H
#define FP8_RUN_RUNOPTIONS_H

#include "fp8-c/Runtime.h"

#include <string>
#include <vector>

namespace fp8run {

/// Options of a training run; see `fp8-run --help`.
struct RunOptions {
  /// What messages begin with.
  std::string program;
  /// Whether the functions come from a package, and what there is of them.
  bool isPackage = false, hasInit = false, hasEval = false;

  /// What is trained, or "": the report looks for its source around it.
  std::string stepFile;
  /// A safetensors file, or "".
  std::string initFile;
  std::vector<std::string> dataFiles, evalData;
  /// PATH=FILE[:TENSOR] each.
  std::vector<std::string> batches, evalBatches;
  std::vector<std::string> alarms;
  std::string outDir = "out", exportDir;
  int64_t steps = 0, evalEvery = 0, checkpointEvery = 0, logEvery = 0,
          traceEvery = 0;
  double holdout = 0.1;
  bool hasHoldout = false; // The command line gives it.
  uint64_t seed = 0;
  int32_t threads = 0;
  bool shuffle = false, resume = false, overwrite = false, profile = false,
       trace = false, quiet = false, showVerdicts = false, report = false;
  /// Ranks train together, each with rows of its own; seconds until one that
  /// does not answer has failed (0: 300).
  bool dataParallel = false;
  // For fp8-run alone: a package was compiled with them.
  unsigned zero = 0;
  bool globalAmax = false;
  double rankTimeout = 0;
  /// Each rank writes a share of a checkpoint.
  bool shardedCheckpoints = false;
  /// No checkpoint is written, not even at the end.
  bool noCheckpoints = false;
  /// Those, or null: see Ranks.
  fp8_group *group = nullptr;

  /// No steps are to be done: what is trained already is exported.
  bool isExportAlone() const {
    return resume && !exportDir.empty() && steps == 0;
  }
  /// The first mistake in the options; "" if there is none.
  std::string findMistake() const;
  /// The arguments that `batches` feed.
  std::vector<std::string> batchPaths() const;
};

/// What is wrong with a number of threads; "" if nothing.
std::string findThreadsMistake(int64_t threads);

/// Prints what the package has to say before the first step.
void printReports(const RunOptions &options, const fp8_package *package);

/// Prints the message of an error, as the program's.
void printError(const std::string &program, const std::string &message);

/// Prints the message of a failure and returns the exit status of the program.
int exitCode(const std::string &program, fp8_status status);

/// The same at the end of a run: of all ranks that fail one prints, and ends
/// the others.
int exitCodeOnRanks(const RunOptions &run, fp8_status status);

/// Why ranks cannot train with the functions of a package; "" if they can, or
/// are not to.
std::string findRanksMistake(const RunOptions &run, const fp8_package *package);

/// Trains with the functions of a package; returns the exit status.
int train(const RunOptions &options, const fp8_package *package);

/// Writes report.html into the directory of a run; false, with a message, if
/// that fails.
bool writeReport(const RunOptions &options);

} // namespace fp8run

#endif // FP8_RUN_RUNOPTIONS_H
