//===- TraceTest.cpp - Traces and alarms in training ----------------------===//
//
// The step adds its batch, a single number, to its state. The number is also
// its loss, and the amax of its traced tensor.
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace fp8::test;

namespace {

constexpr int64_t kSize = FP8_TRACE_QUANTIZATION_SIZE;

// Arguments 0 sum, 1 x; results 2 sum (swapped with 0), 3 loss, 4 trace.
void entry(fp8_step *step) {
  auto *before = static_cast<const float *>(fp8_operand(step, ~0));
  float x = *static_cast<const float *>(fp8_operand(step, ~1));
  auto *after = static_cast<float *>(fp8_operand(step, ~2));
  for (int i = 0; i < 3; ++i)
    after[i] = before[i] + x;
  *static_cast<float *>(fp8_operand(step, ~3)) = x;
  auto *rows = static_cast<double *>(fp8_operand(step, ~4));
  std::fill_n(rows, 2 * kSize, 0.0);
  // Elements 1, 2, 3, 4 in layer 0; layer 1 is not computed if x < 0.
  for (int layer = 0; layer < (x < 0 ? 1 : 2); ++layer) {
    double *row = rows + layer * kSize;
    row[FP8_TRACE_AMAX] = x * (layer + 1);
    row[FP8_TRACE_SCALE] = 0.5;
    row[FP8_TRACE_MINUS_SCALE] = -0.25;
    row[FP8_TRACE_COUNT] = 4;
    row[FP8_TRACE_UNDERFLOW] = 1;
    row[FP8_TRACE_SATURATED] = 2;
    row[FP8_TRACE_SUM1] = 10;
    row[FP8_TRACE_SUM2] = 30;
    row[FP8_TRACE_SUM3] = 100;
    row[FP8_TRACE_SUM4] = 354;
    row[FP8_TRACE_ERROR] = layer == 0 ? 0.3 : 0;
  }
}

class TraceTest : public ::testing::Test {
protected:
  TraceTest() : step(makeStep()) {
    options.step = step;
    options.out_dir = out.c_str();
    options.batches = &batch;
    options.num_batches = 1;
    options.init_file = init.c_str();
    options.no_signals = 1;
    options.trace = 1;
    options.user = &said;
    options.message = [](void *user, const char *text) {
      *static_cast<std::string *>(user) += text;
    };
  }

  static fp8_executable *makeStep(const char *trace = "trace.quantization.a") {
    Builder builder("step", entry);
    builder.arg("sum", FP8_DTYPE_F32, {3}, FP8_ROLE_STATE)
        .arg("x", FP8_DTYPE_F32, {1}, FP8_ROLE_BATCH)
        .result("result[0]", FP8_DTYPE_F32, {3}, FP8_KIND_STATE, 0, 1)
        .result("result[1]", FP8_DTYPE_F32, {}, FP8_KIND_LOSS)
        .result(trace, FP8_DTYPE_F64, {2, kSize}, FP8_KIND_TRACE_QUANTIZATION);
    return builder.build();
  }

  void save(const std::string &path, const char *name,
            const std::vector<float> &values, std::vector<int64_t> dims) {
    fp8_tensor_info info = {};
    info.name = name;
    info.dtype = FP8_DTYPE_F32;
    info.rank = static_cast<int32_t>(dims.size());
    info.dims = dims.data();
    const void *data = values.data();
    ASSERT_EQ(fp8_tensors_save(path.c_str(), &info, &data, 1, nullptr, 0),
              FP8_OK)
        << fp8_last_error();
  }

  /// Trains on these numbers, one a step (-1: on all).
  fp8_status run(const std::vector<float> &numbers,
                 std::vector<const char *> alarms = {}, int64_t steps = -1) {
    save(dir / "x.safetensors", "x", numbers,
         {static_cast<int64_t>(numbers.size()), 1});
    save(init, "sum", {0, 1, 2}, {3});
    options.alarms = alarms.data();
    options.num_alarms = static_cast<int64_t>(alarms.size());
    options.steps = steps < 0 ? static_cast<int64_t>(numbers.size()) : steps;
    options.overwrite = !options.resume;
    said.clear();
    return fp8_train(&options, nullptr);
  }

  /// Returns the state of the newest checkpoint.
  std::vector<float> state() {
    fp8_tensors *tensors = nullptr;
    EXPECT_EQ(fp8_checkpoint_load(out.c_str(), &tensors), FP8_OK);
    const void *data = nullptr;
    EXPECT_EQ(fp8_tensors_get(tensors, 0, nullptr, &data), FP8_OK);
    auto *values = static_cast<const float *>(data);
    std::vector<float> result(values, values + 3);
    fp8_tensors_destroy(tensors);
    return result;
  }

  size_t count(const std::string &part) const {
    size_t found = 0;
    for (size_t at = 0; (at = said.find(part, at)) != std::string::npos; ++at)
      ++found;
    return found;
  }

  TempDir dir;
  std::string out = dir / "out", init = dir / "init.safetensors",
              data = dir / "x.safetensors", said;
  fp8_batch_source batch = {"x", data.c_str(), nullptr, nullptr, nullptr};
  Executable step;
  fp8_train_options options = {};
};

} // namespace

TEST_F(TraceTest, Lines) {
  ASSERT_EQ(run({3, -1}), FP8_OK) << fp8_last_error();
  EXPECT_EQ(
      read(out + "/trace.jsonl"),
      "{\"step\": 1, \"tensors\": {\"a\": {\"amax\": [3, 6], \"scale\": [0.5, "
      "0.5], \"scale_min\": [0.25, 0.25], \"underflow\": [0.25, 0.25], "
      "\"saturation\": [0.5, 0.5], \"snr\": [20, null], \"kurtosis\": [1.64, "
      "1.64]}}}\n"
      "{\"step\": 2, \"tensors\": {\"a\": {\"amax\": [-1, null], \"scale\": "
      "[0.5, null], \"scale_min\": [0.25, null], \"underflow\": [0.25, null], "
      "\"saturation\": [0.5, null], \"snr\": [20, null], \"kurtosis\": [1.64, "
      "null]}}}\n");
  EXPECT_HAS(said, "worst SNR 20.00 dB, a, layer 0 in step 1");
  EXPECT_HAS(said, "largest underflow 25 %, a, layer 0 in step 1");
  EXPECT_HAS(said, "trace.jsonl");
  // Statistics are not among the user's metrics.
  EXPECT_EQ(read(out + "/log.jsonl").find("metrics"), std::string::npos);
}

TEST_F(TraceTest, NamesMayHoldAnyBytes) {
  Executable other(makeStep("trace.quantization.gr\xfc\xdf"));
  options.step = other;
  ASSERT_EQ(run({3}, {"amax > 5 : warn"}), FP8_OK) << fp8_last_error();
  EXPECT_HAS(read(out + "/trace.jsonl"), "{\"gr\ufffd\ufffd\": {\"amax\"");
  EXPECT_HAS(read(out + "/log.jsonl"), "amax of gr\ufffd\ufffd, layer 1 is 6");
}

TEST_F(TraceTest, Every) {
  options.trace_every = 2;
  ASSERT_EQ(run({1, 2, 3, 4, 5}), FP8_OK) << fp8_last_error();
  std::string text = read(out + "/trace.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_HAS(text, "{\"step\": 2, ");
  EXPECT_HAS(text, "{\"step\": 4, ");
}

TEST_F(TraceTest, NoFileWithoutTrace) {
  ASSERT_EQ(run({1, 2}), FP8_OK);
  options.trace = 0;
  ASSERT_EQ(run({1, 2}), FP8_OK);
  EXPECT_FALSE(exists(out + "/trace.jsonl"));
}

TEST_F(TraceTest, Resume) {
  ASSERT_EQ(run({1, 2, 3, 4}), FP8_OK);
  std::string whole = read(out + "/trace.jsonl");
  ASSERT_EQ(run({1, 2, 3, 4}, {}, 2), FP8_OK);
  // Lines beyond the checkpoint, the last one incomplete.
  write(out + "/trace.jsonl", whole.substr(0, whole.size() - 20));
  options.resume = 1;
  ASSERT_EQ(run({1, 2, 3, 4}), FP8_OK) << fp8_last_error();
  EXPECT_EQ(read(out + "/trace.jsonl"), whole);
}

TEST_F(TraceTest, WarnsOnceUntilItIsOver) {
  ASSERT_EQ(run({1, 9, 9, 1, 9}, {"loss > 5 : warn"}), FP8_OK);
  EXPECT_EQ(count("warning: step"), 2u) << said;
  EXPECT_HAS(said, "warning: step 2: loss is 9, above 5 [loss > 5 : warn]");
  EXPECT_HAS(said, "warning: step 5: loss is 9");
}

TEST_F(TraceTest, WarnsOfPlaces) {
  ASSERT_EQ(run({1, 3, 6}, {"amax@a > 5 : warn"}), FP8_OK);
  // Layer 1 has twice the amax of layer 0; the alarm of layer 0 is new in step
  // 3.
  EXPECT_HAS(said, "step 2: amax of a, layer 1 is 6, above 5 [");
  EXPECT_HAS(said, "step 3: amax of a, layer 0 is 6, above 5 (and 1 more) [");
  EXPECT_EQ(count("warning: step"), 2u) << said;
}

TEST_F(TraceTest, Below) {
  // An exact tensor, such as layer 1, has no SNR that could be too small.
  ASSERT_EQ(run({1}, {"snr < 25 : warn"}), FP8_OK);
  EXPECT_HAS(said, "step 1: snr of a, layer 0 is 20, below 25 [");
}

TEST_F(TraceTest, Median) {
  // The median of 1, 2, 30 is 2, that of 2, 30, 40 is 30.
  ASSERT_EQ(run({1, 2, 30, 40, 50}, {"loss > 10x median(3) : warn"}), FP8_OK);
  EXPECT_EQ(count("warning: step"), 1u) << said;
  EXPECT_HAS(said, "step 4: loss is 40, above 20 [");
}

TEST_F(TraceTest, NaNNeedsNoMedian) {
  ASSERT_EQ(run({1, NAN, 2, 3}, {"loss > 10x median(50) : skip"}), FP8_OK)
      << fp8_last_error();
  EXPECT_EQ(count("skipped: step 2: loss is nan"), 1u) << said;
}

TEST_F(TraceTest, Stop) {
  EXPECT_EQ(run({1, 2, 9, 4}, {"loss > 5 : stop"}), FP8_STOPPED);
  EXPECT_HAS(fp8_last_error(),
             "stopped by an alarm: step 3: loss is 9, above 5 [loss > 5 : "
             "stop]; resume from");
  EXPECT_TRUE(exists(out + "/checkpoint-3.safetensors"));
  EXPECT_EQ(state(), (std::vector<float>{12, 13, 14}));
  options.resume = 1;
  EXPECT_EQ(run({1, 2, 9, 4}, {"loss > 5 : stop"}), FP8_OK);
  EXPECT_EQ(state(), (std::vector<float>{16, 17, 18}));
}

TEST_F(TraceTest, Skip) {
  float inf = std::numeric_limits<float>::infinity();
  ASSERT_EQ(run({1, 9, 2, inf, NAN, 3}, {"loss > 5 : skip"}), FP8_OK)
      << fp8_last_error();
  EXPECT_EQ(count("skipped: step"), 3u) << said;
  EXPECT_EQ(state(), (std::vector<float>{6, 7, 8}));
  EXPECT_HAS(said, "skipped   3 of 6 steps");
  std::string log = read(out + "/log.jsonl");
  EXPECT_HAS(log, "{\"step\": 2, \"loss\": 9, ");
  size_t skipped = 0;
  for (size_t at = 0;
       (at = log.find("\"skipped\": true", at)) != std::string::npos; ++at)
    ++skipped;
  EXPECT_EQ(skipped, 3u) << log;
}

TEST_F(TraceTest, AlarmsAreInTheLog) {
  ASSERT_EQ(run({9, 1, 9, 1, 9, 8}, {"loss > 5 : skip", "amax > 7 : warn"}, 5),
            FP8_OK);
  EXPECT_HAS(said, "alarms    step 1: amax of a, layer 0 is 9, above 7 (and 1 "
                   "more) [amax > 7 : warn]\n");
  EXPECT_HAS(said, "          step 1: loss is 9, above 5 [loss > 5 : skip]\n");
  EXPECT_HAS(said, "          and 3 more, in 3 steps in all: log.jsonl has");
  std::string log = read(out + "/log.jsonl");
  EXPECT_HAS(log, "\"skipped\": true, \"alarms\": [\"step 3: amax of a, layer "
                  "0 is 9, above 7 (and 1 more) [amax > 7 : warn]\",\"step 3: "
                  "loss is 9, above 5 [loss > 5 : skip]\"]}\n{\"step\": 4, ");
  // A resumed run keeps them.
  options.resume = 1;
  ASSERT_EQ(run({9, 1, 9, 1, 9, 8}), FP8_OK) << fp8_last_error();
  EXPECT_EQ(read(out + "/log.jsonl").find(log), 0u);
}

TEST_F(TraceTest, Sparkline) {
  setenv("LC_ALL", "C.UTF-8", 1);
  ASSERT_EQ(run({8, 1, 3, 2}), FP8_OK);
  EXPECT_HAS(said, "\n          \u2588\u2581\u2583\u2582\n");
  ASSERT_EQ(run(std::vector<float>(300, 2)), FP8_OK);
  std::string flat;
  for (int i = 0; i < 60; ++i)
    flat += "\u2581";
  EXPECT_HAS(said, "\n          " + flat + "\n");
  // Two steps have no shape to show, and a terminal without UTF-8 has no
  // blocks.
  ASSERT_EQ(run({8, 1}), FP8_OK);
  EXPECT_EQ(said.find("\u2581"), std::string::npos);
  setenv("LC_ALL", "C", 1);
  ASSERT_EQ(run({8, 1, 3, 2}), FP8_OK);
  EXPECT_EQ(said.find("\u2581"), std::string::npos);
  unsetenv("LC_ALL");
}

TEST_F(TraceTest, SkippedStepsCountForNoMedian) {
  ASSERT_EQ(run({1, 1, 1, 50, 50, 1}, {"loss > 10x median(3) : skip"}), FP8_OK);
  EXPECT_EQ(count("skipped: step"), 2u) << said;
  EXPECT_EQ(state(), (std::vector<float>{4, 5, 6}));
}

TEST_F(TraceTest, SkipAndStop) {
  EXPECT_EQ(run({1, 9}, {"loss > 5 : skip", "loss > 8 : stop"}), FP8_STOPPED);
  EXPECT_EQ(state(), (std::vector<float>{1, 2, 3}));
}

TEST_F(TraceTest, AlarmsOfALoopOfTheCallers) {
  const char *rules[] = {"loss > 5 : skip", "amax > 7 : warn",
                         "loss > 8 : stop"};
  fp8_alarms *alarms = nullptr;
  ASSERT_EQ(fp8_alarms_create(step, rules, 3, &alarms), FP8_OK);
  EXPECT_TRUE(fp8_alarms_may_skip(alarms));
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 1, &own), FP8_OK);
  auto check = [&](int64_t number, float x) {
    *static_cast<float *>(fp8_step_argument(own, 1)) = x;
    EXPECT_EQ(fp8_step_run(own), FP8_OK);
    int32_t skip = -1, stop = -1;
    said.clear();
    EXPECT_EQ(fp8_alarms_check(alarms, own, number, options.message, &said,
                               &skip, &stop),
              FP8_OK)
        << fp8_last_error();
    return std::make_pair(skip, stop);
  };
  EXPECT_EQ(check(1, 2), std::make_pair(0, 0));
  EXPECT_EQ(said, "");
  EXPECT_EQ(check(2, 6), std::make_pair(1, 0));
  EXPECT_EQ(said, "step 2: amax of a, layer 1 is 12, above 7 [amax > 7 : warn]"
                  "step 2: loss is 6, above 5 [loss > 5 : skip]");
  EXPECT_EQ(check(3, 9), std::make_pair(1, 1));
  fp8_step_destroy(own);
  fp8_alarms_destroy(alarms);
  EXPECT_EQ(fp8_alarms_create(step, rules + 1, 1, &alarms), FP8_OK);
  EXPECT_FALSE(fp8_alarms_may_skip(alarms));
  // A step of other results.
  Builder builder("other", entry);
  builder.result("loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS);
  Executable other(builder.build());
  int32_t skip, stop;
  ASSERT_EQ(fp8_step_create(other, 1, &own), FP8_OK);
  EXPECT_EQ(fp8_alarms_check(alarms, own, 1, nullptr, nullptr, &skip, &stop),
            FP8_ERROR_INVALID);
  EXPECT_HAS(fp8_last_error(), "expected a step of the results that the alarms "
                               "were created for but got one of others");
  fp8_step_destroy(own);
  fp8_alarms_destroy(alarms);
  const char *none[] = {nullptr};
  EXPECT_EQ(fp8_alarms_create(step, none, 1, &alarms), FP8_ERROR_INVALID);
  EXPECT_EQ(fp8_alarms_create(step, nullptr, 1, &alarms), FP8_ERROR_INVALID);
  EXPECT_EQ(fp8_alarms_create(step, nullptr, -1, &alarms), FP8_ERROR_INVALID);
  const char *wrong = "lss > 5 : warn";
  EXPECT_EQ(fp8_alarms_create(step, &wrong, 1, &alarms), FP8_ERROR_INVALID);
  EXPECT_EQ(alarms, nullptr);
}

TEST_F(TraceTest, WrongRules) {
  EXPECT_EQ(run({1}, {"lss > 5 : warn"}), FP8_ERROR_INVALID);
  EXPECT_HAS(fp8_last_error(),
             "alarm 'lss > 5 : warn': there is no metric 'lss'; expected one "
             "of the step (loss) or of its trace (amax, ");
  EXPECT_EQ(run({1}, {"amax@b* > 5 : warn"}), FP8_ERROR_INVALID);
  EXPECT_HAS(fp8_last_error(), "no tensor fits 'b*'; those that have one: a");
  EXPECT_EQ(run({1}, {"update_rms > 5 : warn"}), FP8_ERROR_INVALID);
  EXPECT_HAS(fp8_last_error(),
             "no tensor has a 'update_rms'; those that have one: none");
}
