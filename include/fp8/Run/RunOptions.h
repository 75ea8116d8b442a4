//===- RunOptions.h - A training run as a command line has it ---*- C++ -*-===//
//
// The options of a run that fp8-run and fp8-train have, in the types of a
// command line, and the mistakes in them. No LLVM in here.
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
  unsigned globalBatch = 0;
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
  bool hasData() const { return !dataFiles.empty() || !batches.empty(); }
  /// The first mistake in the options; "" if there is none.
  std::string findMistake() const;
  /// The arguments that `batches` feed.
  std::vector<std::string> batchPaths() const;
};

/// What is wrong with a number of threads; "" if nothing.
std::string findThreadsMistake(int64_t threads);

} // namespace fp8run

#endif // FP8_RUN_RUNOPTIONS_H
