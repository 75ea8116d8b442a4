//===- RunDirectoryTest.cpp - The directory of a run, and its disk --------===//

#include "UnigramTraining.h"

#include <sys/resource.h>

using namespace fp8::test;

namespace {
class RunDirectory : public Train {};
} // namespace

TEST_F(RunDirectory, EarlierRunIsNotOverwritten) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string log = read(out + "/log.csv");
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "holds an earlier run");
  EXPECT_EQ(read(out + "/log.csv"), log);
  options.overwrite = 1;
  options.steps = 5;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_FALSE(exists(out + "/checkpoint-40.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-5.safetensors"));
}

TEST_F(RunDirectory, FilesAreCheckedWithoutFunctions) {
  fp8_train_options all = options;
  options.step = options.init = options.eval = nullptr;
  EXPECT_EQ(fp8_check_files(&options), FP8_OK);
  EXPECT_FALSE(exists(out));
  options.resume = 1;
  EXPECT_EQ(fp8_check_files(&options), FP8_ERROR_IO);
  EXPECT_HAS(fp8_last_error(), "no checkpoint to resume from in '" + out + "'");
  options = all;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string log = read(out + "/log.csv");
  EXPECT_EQ(fp8_check_files(&options), FP8_ERROR_IO);
  EXPECT_HAS(fp8_last_error(), "holds an earlier run");
  options.overwrite = 1;
  EXPECT_EQ(fp8_check_files(&options), FP8_OK);
  EXPECT_EQ(read(out + "/log.csv"), log);
  std::string missing = dir / "missing";
  fp8_batch_source source = {"x", missing.c_str(), nullptr, nullptr, nullptr};
  options.batches = &source;
  options.num_batches = 1;
  EXPECT_EQ(fp8_check_files(&options), FP8_ERROR_IO);
  EXPECT_HAS(fp8_last_error(), "cannot open '" + missing + "'");
  options.num_batches = 0;
  files[0] = missing.c_str();
  EXPECT_EQ(fp8_check_files(&options), FP8_ERROR_IO);
  EXPECT_EQ(fp8_check_files(nullptr), FP8_ERROR_INVALID);
}

TEST_F(RunDirectory, AMistakeRemovesNoEarlierRun) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string log = read(out + "/log.csv"),
              checkpoint = out + "/checkpoint-40.safetensors";
  options.overwrite = 1;
  const char *alarm = "grad_norn > 3";
  options.alarms = &alarm;
  options.num_alarms = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "grad_norn");
  EXPECT_EQ(read(out + "/log.csv"), log);
  options.num_alarms = 0;
  options.init = nullptr;
  options.init_file = checkpoint.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "expected another directory for the run than that of the "
                    "initial values, '" +
                        checkpoint + "'");
  EXPECT_EQ(read(out + "/log.csv"), log);
  EXPECT_TRUE(exists(checkpoint));
}

TEST_F(RunDirectory, ANewRunRemovesNoFilesOfOthers) {
  std::filesystem::create_directory(out);
  write(out + "/profile.json", "mine");
  write(out + "/preset.yaml", "mine");
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/profile.json"), "mine");
  EXPECT_EQ(read(out + "/preset.yaml"), "mine");
  options.overwrite = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_FALSE(exists(out + "/profile.json"));
  std::filesystem::remove(out + "/log.jsonl");
  std::filesystem::remove(out + "/checkpoint-40.safetensors");
  write(out + "/trace.jsonl", "mine");
  options.overwrite = 0;
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "holds an earlier run ('" + out + "/trace.jsonl')");
}

TEST_F(RunDirectory, OutputDirectoryCannotBeMade) {
  std::string file = dir / "file";
  write(file, "x");
  std::string below = file + "/out";
  options.out_dir = below.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot create directory '" + below + "'");
  options.out_dir = file.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
}

TEST_F(RunDirectory, FullDiskKeepsTheLastCheckpoint) {
  options.checkpoint_every = 10;
  options.steps = 10;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string good = read(out + "/checkpoint-10.safetensors");
  // Also runs that leave other signals alone get an error, and no SIGXFSZ.
  options.no_signals = 1;
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  hook = [&](int32_t count, int32_t *) {
    rlimit small = {512, old.rlim_max};
    if (count == 15)
      setrlimit(RLIMIT_FSIZE, &small);
  };
  options.steps = 40;
  options.resume = 1;
  fp8_status status = run();
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(status, FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot write");
  EXPECT_HAS(error,
             "the last checkpoint is " + out + "/checkpoint-10.safetensors");
  EXPECT_EQ(read(out + "/checkpoint-10.safetensors"), good);
  hook = nullptr;
  EXPECT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(summary.first_step, 10);
}

TEST_F(RunDirectory, VanishedDirectory) {
  options.checkpoint_every = 10;
  hook = [&](int32_t count, int32_t *) {
    if (count == 15)
      std::filesystem::remove_all(out);
  };
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot write '" + out);
  EXPECT_HAS(error, "No such file or directory");
}
