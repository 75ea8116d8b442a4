//===- TrainTest.cpp - Learning, profiles, failing steps ------------------===//

#include "UnigramTraining.h"

#include <cmath>

using namespace fp8::test;

TEST_F(Train, LearnsAndReports) {
  options.eval_every = 10;
  options.checkpoint_every = 20;
  options.profile = 1;
  options.cost = R"({"flops": 12})";
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(summary.last_step, 40);
  EXPECT_HAS(read(out + "/cost.json"), "\"flops\":12");
  EXPECT_HAS(read(out + "/cost.json"), "\"bytes_per_second\":");
  EXPECT_NEAR(summary.first_loss, std::log(256), 0.05);
  EXPECT_LT(summary.last_loss, summary.first_loss - 1);
  EXPECT_TRUE(std::isfinite(summary.heldout_loss));
  EXPECT_LT(summary.heldout_loss, summary.first_loss - 1);
  EXPECT_EQ(summary.tokens_per_step, tokens);
  EXPECT_GT(summary.tokens_per_second, 0);
  EXPECT_EQ(std::string(summary.checkpoint),
            out + "/checkpoint-40.safetensors");
  for (const char *file :
       {"log.csv", "log.jsonl", "loss.svg", "memory.json", "profile.json",
        "timeline.json", "checkpoint-20.safetensors",
        "checkpoint-40.safetensors"})
    EXPECT_TRUE(exists(out + "/" + file)) << file;
  std::string csv = read(out + "/log.csv");
  EXPECT_HAS(csv, "step,loss,heldout_loss,tokens_per_second,seconds,"
                  "\"result[3]['half, count']\"\n");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 41);
  EXPECT_HAS(read(out + "/loss.svg"), "held out");
  EXPECT_HAS(read(out + "/log.jsonl"), "\"heldout_loss\"");
  EXPECT_HAS(read(out + "/memory.json"), "arena_planned");
  EXPECT_HAS(said, "step 40/40");
  EXPECT_HAS(said, "nats per byte");
  EXPECT_HAS(said, "18,000 bytes to train on, 2,000 held out");
  EXPECT_HAS(said, "profile   limits of 2 threads: ");
  EXPECT_HAS(said, "\n          in all         3 ");
}

TEST_F(Train, SameForOneAndTwoThreads) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string two = read(out + "/checkpoint-40.safetensors");
  out = dir / "one";
  options.out_dir = out.c_str();
  options.threads = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), two);
}

TEST_F(Train, ATimelineHasTheLastStepsThatFit) {
  constexpr int64_t most = 1 << 16; // slices, as Timeline.h has it
  options.profile = 1;
  options.steps = 4;
  extraLaunches = most / 2 - 1000;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string text = read(out + "/timeline.json");
  EXPECT_EQ(occurrences(text, "\"cat\": \"step\""), 2);
  EXPECT_HAS_NOT(text, "\"step 2\"");
  EXPECT_HAS(text, "\"step 3\"");
  EXPECT_HAS(text, "\"step 4\"");
  EXPECT_HAS_NOT(text, "slices_left_out");
  int64_t slices = occurrences(text, "\"cat\": \"launch\"");
  EXPECT_GE(slices, 2 * (extraLaunches + 3));
  EXPECT_LE(slices, most);
  EXPECT_EQ(occurrences(text, "\"name\": \"launch 1\""), 2 * extraLaunches);
  // A step that does not fit reports how much is missing.
  out = dir / "cut";
  options.out_dir = out.c_str();
  options.steps = 1;
  extraLaunches = most;
  ASSERT_EQ(run(), FP8_OK) << error;
  text = read(out + "/timeline.json");
  EXPECT_EQ(occurrences(text, "\"cat\": \"launch\""), most);
  EXPECT_HAS(text, "\"name\": \"step 1\", \"args\": {\"slices_left_out\": ");
}

TEST_F(Train, LabelsOfLaunchesMayHoldAnyBytes) {
  Executable labelled(makeStep(vocabulary, 256, {"gr\xfc\xdf.py:1 (add)"}));
  options.step = labelled;
  options.profile = 1;
  options.steps = 2;
  ASSERT_EQ(run(), FP8_OK) << error;
  for (const char *file : {"/profile.json", "/timeline.json"})
    EXPECT_HAS(read(out + file), "\"gr\ufffd\ufffd.py:1 (add)\"");
}

TEST_F(Train, CostsOfTheWrongFormAreNoticedBeforeTraining) {
  options.profile = 1;
  for (const char *cost : {"[]", "{", R"({"launches": [{"launch": 1}]})"}) {
    options.cost = cost;
    EXPECT_EQ(run(), FP8_ERROR_INVALID) << cost;
    EXPECT_HAS(error, "expected the costs of launches, as in cost.json, but "
                      "got others: ");
    EXPECT_FALSE(exists(out));
  }
}

TEST_F(Train, WithoutAProfileNothingIsTimed) {
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_FALSE(exists(out + "/profile.json"));
  EXPECT_FALSE(exists(out + "/timeline.json"));
  EXPECT_HAS_NOT(said, "profile");
}

TEST_F(Train, NonFiniteLossStops) {
  options.checkpoint_every = 10;
  poisonedStep = 24;
  EXPECT_EQ(run(), FP8_ERROR_NONFINITE);
  // Step 25 makes the state NaN; step 26 shows it in its loss.
  EXPECT_HAS(error, "step 26: the loss is nan; first non-finite value: "
                    "p['w'][0] is nan; the last checkpoint is " +
                        out + "/checkpoint-20.safetensors");
  EXPECT_TRUE(exists(out + "/checkpoint-20.safetensors"));
  EXPECT_FALSE(exists(out + "/checkpoint-25.safetensors"));
  EXPECT_HAS(read(out + "/log.jsonl"), "\"step\": 26, \"loss\": \"nan\"");
  poisonedStep = -1;
  options.resume = 1;
  EXPECT_EQ(run(), FP8_OK) << error;
}

TEST_F(Train, NonFiniteStateIsNotSaved) {
  options.checkpoint_every = 10;
  poisonedStep = 19;
  EXPECT_EQ(run(), FP8_ERROR_NONFINITE);
  EXPECT_HAS(error, "step 20: the state is not finite: p['w'][0] is nan");
  EXPECT_FALSE(exists(out + "/checkpoint-20.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-10.safetensors"));
}

TEST_F(Train, ANonFiniteStateStopsARunWithoutCheckpoints) {
  options.checkpoint_every = -1;
  poisonedStep = 39;
  EXPECT_NE(run(), FP8_OK);
  EXPECT_HAS(error, "not finite");
}

TEST_F(Train, AHalfDoneStepIsNotSaved) {
  options.checkpoint_every = 10;
  failingStep = 24;
  fp8_status status = run();
  failingStep = -1;
  EXPECT_EQ(status, FP8_ERROR_INTERNAL);
  EXPECT_HAS(error,
             "; the last checkpoint is " + out + "/checkpoint-20.safetensors");
  EXPECT_FALSE(exists(out + "/checkpoint-24.safetensors"));
}
