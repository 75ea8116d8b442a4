//===- RunFiles.cpp - What a run expects of files -------------------------===//

#include "RunFiles.h"
#include "../Data/Arrays.h"
#include "../Data/Data.h"
#include "../State/Checkpoint.h"
#include "../Support/Error.h"
#include "../Support/Files.h"

namespace fp8::rt {

void expectNoEarlierRun(const std::string &directory) {
  std::vector<CheckpointFile> old = listCheckpoints(directory);
  std::string what = old.empty() ? "" : old[0].path;
  for (const char *name : {"/log.jsonl", "/trace.jsonl"})
    if (what.empty() && fileExists(directory + name))
      what = directory + name;
  if (!what.empty())
    throw Error(
        FP8_ERROR_IO,
        str("'", directory, "' holds an earlier run ('", what,
            "'): resume it, overwrite it, or choose another directory"));
}

/// Checks the directory of a run, which need not be there yet.
static void checkDirectory(const fp8_train_options &options) {
  // Only rank 0 writes, and it may be faster than the others are here.
  bool isWritten =
      fp8_group_rank(options.group) == 0 && fileExists(options.out_dir);
  if (isWritten)
    DirectoryLock().take(options.out_dir);
  if (options.resume) {
    expectCheckpoints(options.out_dir);
    return;
  }
  if (!isWritten)
    return;
  expectNoPackage(options.out_dir, "the run");
  if (!options.overwrite)
    expectNoEarlierRun(options.out_dir);
}

void checkFiles(const fp8_train_options &options) {
  checkDataLists(options);
  if (options.out_dir)
    checkDirectory(options);
  if (options.init_file)
    expectReadable(options.init_file);
  for (int64_t i = 0; i < options.num_data_files; ++i)
    expectReadable(options.data_files[i]);
  for (int64_t i = 0; i < options.num_eval_files; ++i)
    expectReadable(options.eval_files[i]);
  for (int64_t i = 0; i < options.num_batches; ++i)
    if (options.batches[i].file)
      expectReadable(options.batches[i].file);
  for (int64_t i = 0; i < options.num_eval_batches; ++i)
    if (options.eval_batches[i].file)
      expectReadable(options.eval_batches[i].file);
}

void checkBatches(const fp8_train_options &options,
                  std::vector<TensorInfo> arguments, bool isEvaluation) {
  checkDataLists(options);
  for (TensorInfo &argument : arguments)
    argument.type = argument.wholeType();
  TensorFiles files;
  if (!isEvaluation) {
    ArrayBatches arrays = ArrayBatches::ofStep(options, arguments, files);
    std::string missing = arrays.findMissing(arguments);
    // An export of a finished run needs no data.
    if (!missing.empty() && options.num_data_files <= 0 && !options.resume)
      throw Error(FP8_ERROR_DATA, missing);
    return;
  }
  ArrayBatches arrays = ArrayBatches::ofEvaluation(options, arguments, files);
  bool hasText = options.num_data_files > 0 || options.num_eval_files > 0;
  if (!hasText && arrays.hasRows())
    arrays.wholeBatches(); // throws if there is none
}

} // namespace fp8::rt
