//===- ResumeTest.cpp - Checkpoints and logs of an interrupted run --------===//

#include "UnigramTraining.h"

#include <csignal>
#include <locale>

using namespace fp8::test;

namespace {
class Resume : public Train {};
} // namespace

TEST_F(Resume, ResumesExactly) {
  options.eval_every = 8;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string whole = read(out + "/checkpoint-40.safetensors");
  std::string wholeLog = losses(out);

  // Stopped at step 16 and resumed; the second part gives no seed.
  out = dir / "parts";
  options.out_dir = out.c_str();
  options.steps = 16;
  ASSERT_EQ(run(), FP8_OK) << error;
  // A killed run leaves a log beyond its checkpoint, and an incomplete line.
  write(out + "/log.jsonl", read(out + "/log.jsonl") +
                                "{\"step\": 17, \"loss\": 1}\n{\"step\": 18,");
  options.steps = 40;
  options.resume = 1;
  options.init = nullptr;
  options.seed = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(summary.first_step, 16);
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), whole);
  EXPECT_EQ(losses(out), wholeLog);
  EXPECT_HAS(said, "resuming from");

  // Another seed than the run's is a mistake.
  options.seed = 4;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(said, "warning: expected --seed 5, with which the run began, but "
                   "got 4: going on with 5");
  options.seed = 0;

  // Nothing is left to do.
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(said, "nothing to train");
  EXPECT_EQ(losses(out), wholeLog);
}

TEST_F(Resume, ResumeNeedsACheckpoint) {
  options.resume = 1;
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "no checkpoint to resume from");
}

TEST_F(Resume, KeepsTheNewestCheckpoints) {
  options.checkpoint_every = 5;
  options.keep_checkpoints = 2;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_FALSE(exists(out + "/checkpoint-30.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-35.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-40.safetensors"));
}

TEST_F(Resume, WritesNoCheckpointAtAll) {
  options.checkpoint_every = -1;
  hook = [](int32_t count, int32_t *) {
    if (count == 12)
      std::raise(SIGINT);
  };
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_HAS(error, "interrupted after step 13 of 40");
  EXPECT_HAS_NOT(error, "resume");
  hook = nullptr;
  options.overwrite = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(summary.last_step, 40);
  EXPECT_STREQ(summary.checkpoint, "");
  EXPECT_TRUE(exists(out + "/log.jsonl"));
  for (int step : {13, 40})
    EXPECT_FALSE(
        exists(out + "/checkpoint-" + std::to_string(step) + ".safetensors"));
}

TEST_F(Resume, PassesOverADamagedCheckpoint) {
  options.checkpoint_every = 10;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string whole = read(out + "/checkpoint-40.safetensors");
  write(out + "/checkpoint-40.safetensors", whole.substr(0, 700));
  options.resume = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(summary.first_step, 30);
  EXPECT_HAS(said, "passing over a checkpoint");
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), whole);
  // It does not count among those to keep.
  write(out + "/checkpoint-40.safetensors", whole.substr(0, 700));
  options.keep_checkpoints = 2;
  options.steps = 35;
  options.checkpoint_every = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_FALSE(exists(out + "/checkpoint-33.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-34.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-35.safetensors"));
}

TEST_F(Resume, NumbersOfACheckpointAreWhole) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string path = out + "/checkpoint-40.safetensors", whole = read(path);
  options.resume = 1;
  for (const std::string key : {"step", "data_position", "seed"}) {
    std::string damaged = whole;
    size_t at = damaged.find("\"" + key + "\":\"") + key.size() + 4;
    damaged[damaged.find('"', at) - 1] = 'e';
    write(path, damaged);
    EXPECT_EQ(run(), FP8_ERROR_IO);
    EXPECT_HAS(said, "expected '" + key +
                         "' in its metadata to be a whole number but got '");
  }
}

TEST_F(Resume, CheckpointOfAnotherModel) {
  ASSERT_EQ(run(), FP8_OK) << error;
  Executable wide(makeStep(vocabulary * 2));
  options.step = wide;
  options.eval = nullptr;
  options.resume = 1;
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "is a checkpoint of another model:\n  2 of another type:");
  EXPECT_HAS(error, "p['w']: expected f32[512] but got f32[256]");
  EXPECT_TRUE(exists(out + "/checkpoint-40.safetensors"));
}

TEST_F(Resume, CheckpointOfAnotherRun) {
  options.steps = 5;
  std::string of = "module a, recipe x 1, compiler 0.1 c";
  options.fingerprint = of.c_str();
  ASSERT_EQ(run(), FP8_OK) << error;
  options.resume = 1;
  auto saidBy = [&](const char *fingerprint) {
    said.clear();
    options.fingerprint = fingerprint;
    EXPECT_EQ(run(), FP8_OK) << error;
    size_t at = said.find("warning: ");
    return at == std::string::npos ? ""
                                   : said.substr(at, said.find('\n', at) - at);
  };
  EXPECT_EQ(saidBy(of.c_str()), "");
  EXPECT_EQ(saidBy("module a, recipe y 2, compiler 0.1 d"),
            "warning: module or recipe are not those of the checkpoint "
            "('recipe x 1, compiler 0.1 c', this is 'recipe y 2, compiler 0.1 "
            "d'): the run does not continue exactly");
  EXPECT_EQ(saidBy("module a, recipe x 1, compiler 0.1 d"),
            "warning: the compiler is not that of the checkpoint ('compiler "
            "0.1 c', this is 'compiler 0.1 d'): the run may not continue "
            "exactly");
  // This one was written before fingerprints had a kind of arithmetic.
  EXPECT_EQ(saidBy("module a, recipe x 1, compiler 0.1 c, arithmetic f"), "");
  // Fingerprints of earlier versions: the module's hash and the recipe's name.
  options.resume = 0;
  options.overwrite = 1;
  EXPECT_EQ(saidBy("A1B2/x"), "");
  options.resume = 1;
  options.overwrite = 0;
  EXPECT_EQ(saidBy(of.c_str()),
            "warning: the checkpoint is of an earlier version, which kept its "
            "recipe's name alone and no compiler: whether the run continues "
            "exactly is not known");
}

TEST_F(Resume, CheckpointOfAnotherProcessor) {
  options.steps = 5;
  options.fingerprint = "module a, recipe x 1, compiler c, arithmetic f";
  ASSERT_EQ(run(), FP8_OK) << error;
  options.resume = 1;
  said.clear();
  options.fingerprint = "module a, recipe x 1, compiler c, arithmetic g";
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(said, "warning: the processor's arithmetic is not that of the "
                   "checkpoint ('arithmetic f', this is 'arithmetic g'): the "
                   "run may not continue exactly\n");
  said.clear();
  options.fingerprint = "module a, recipe x 1, compiler d, arithmetic g";
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(said, "warning: the compiler and the processor's arithmetic are "
                   "not those of the checkpoint");
}

namespace {
/// Digits in groups of one, "4.0", and a decimal comma.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\1"; }
};

/// Sets the global locale while it lives.
struct GlobalLocale {
  GlobalLocale()
      : old(std::locale::global(
            std::locale(std::locale::classic(), new Grouping))) {}
  ~GlobalLocale() { std::locale::global(old); }
  std::locale old;
};
} // namespace

TEST_F(Resume, AGlobalLocaleChangesNoFile) {
  options.eval_every = 20;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string whole = read(out + "/checkpoint-40.safetensors");
  std::string wholeLog = losses(out);
  out = dir / "grouped";
  options.out_dir = out.c_str();
  options.steps = 20;
  options.checkpoint_every = 10;
  {
    GlobalLocale grouping;
    ASSERT_EQ(run(), FP8_OK) << error;
    options.steps = 40;
    options.resume = 1;
    ASSERT_EQ(run(), FP8_OK) << error;
  }
  EXPECT_HAS(said, "step 40/40");
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), whole);
  EXPECT_EQ(losses(out), wholeLog);
}

TEST_F(Resume, NumbersOfAnEvaluationStayWithoutIt) {
  options.steps = 8;
  options.eval = nullptr;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string log = read(out + "/log.jsonl");
  log.replace(log.rfind('}'), 1,
              ", \"heldout_loss\": 2, \"heldout_metrics\": {\"accuracy\": "
              "0.5, \"ratio\": \"-inf\"}}");
  write(out + "/log.jsonl", log);
  options.steps = 10;
  options.resume = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(read(out + "/log.jsonl"),
             "\"accuracy\": 0.5, \"ratio\": \"-inf\"");
  EXPECT_HAS(read(out + "/log.csv"), ",0.5,-inf\n");
  std::istringstream csv(read(out + "/log.csv"));
  std::string line;
  ASSERT_TRUE(std::getline(csv, line));
  EXPECT_HAS(line, ",heldout accuracy,heldout ratio");
  int64_t commas = occurrences(line, ",") - 1; // one is in a name
  for (int i = 1; i <= 10; ++i) {
    ASSERT_TRUE(std::getline(csv, line));
    EXPECT_EQ(occurrences(line, ","), commas) << line;
  }
}

TEST_F(Resume, ALogMakesUpForRowsThatTheOtherLacks) {
  options.steps = 8;
  options.eval_every = 4;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string csv = read(out + "/log.csv"), jsonl = read(out + "/log.jsonl");
  options.resume = 1;
  // The other log is missing, cut, or has rows that say nothing.
  size_t third = jsonl.find("{\"step\": 3"), fourth = jsonl.find("\n", third);
  for (const std::string &damaged :
       {std::string(), jsonl.substr(0, jsonl.size() / 2),
        jsonl.substr(0, third) + "{\"step\": 3, \"note\": 1}" +
            jsonl.substr(fourth),
        jsonl.substr(0, third) + "{\"step\": 3, \"loss\": 1, \"metrics\": 5}" +
            jsonl.substr(fourth),
        jsonl.substr(0, third) +
            "{\"step\": 3, \"loss\": 1, \"heldout_metrics\": [1]}" +
            jsonl.substr(fourth),
        jsonl.substr(0, third) + "oops" + jsonl.substr(fourth)}) {
    if (damaged.empty())
      std::filesystem::remove(out + "/log.jsonl");
    else
      write(out + "/log.jsonl", damaged);
    ASSERT_EQ(run(), FP8_OK) << error;
    EXPECT_EQ(read(out + "/log.csv"), csv) << damaged;
    EXPECT_EQ(read(out + "/log.jsonl"), jsonl) << damaged;
  }
  write(out + "/log.csv", csv.substr(0, csv.size() / 2));
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/log.csv"), csv);
  // What another program has written is no log.
  write(out + "/log.csv", "a,b\n1,2\n");
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/log.csv"), csv);
}

TEST_F(Resume, ALogThatCannotBeReadIsAnError) {
  options.steps = 8;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::filesystem::remove(out + "/log.jsonl");
  std::filesystem::create_directory(out + "/log.jsonl");
  options.steps = 16;
  options.resume = 1;
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "log.jsonl");
  EXPECT_TRUE(std::filesystem::is_directory(out + "/log.jsonl"));
}
