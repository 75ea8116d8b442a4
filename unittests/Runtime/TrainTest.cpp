//===- TrainTest.cpp - Training, resuming, failing ------------------------===//
//
// The step is a hand-written byte unigram model (256 logits, SGD with
// momentum), in the form of the compiler's steps.
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <locale>
#include <sys/resource.h>
#include <thread>

using namespace fp8::test;

#define EXPECT_HAS(text, part)                                                 \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << text
#define EXPECT_HAS_NOT(text, part)                                             \
  EXPECT_EQ(std::string(text).find(part), std::string::npos) << text

namespace {
constexpr int64_t vocabulary = 256, rows = 4, window = 16;
constexpr int64_t tokens = rows * window;

/// Runs inside a step, with the number of finished steps.
std::function<void(int32_t count, int32_t *batch)> hook;
/// This step ends after its update, with an error (-1: none).
int32_t failingStep = -1;
/// At this step the gradient is NaN (-1: never).
int32_t poisonedStep = -1;
/// The number of extra empty launches in every step.
int extraLaunches = 0;

// Arguments 0 w, 1 mu, 2 count, 3 x; results 4 loss, 5 norm; arena: 0 logsumexp
// (256 floats: one a task).
void unigramTask(int64_t task, void *const *operands, void *scratch) {
  float *w = static_cast<float *>(operands[0]);
  float *mu = static_cast<float *>(operands[1]);
  const int32_t *count = static_cast<const int32_t *>(operands[2]);
  const int32_t *x = static_cast<const int32_t *>(operands[3]);
  const float *old = static_cast<const float *>(operands[4]);
  float *hits = static_cast<float *>(scratch);
  hits[0] = 0;
  for (int64_t i = 0; i < tokens; ++i)
    hits[0] += x[i] == task;
  float sum = 0;
  for (int64_t i = 0; i < vocabulary; ++i)
    sum += std::exp(old[i]);
  float gradient = std::exp(old[task]) / sum - hits[0] / tokens;
  if (*count == poisonedStep)
    gradient = std::numeric_limits<float>::quiet_NaN();
  mu[task] = 0.9f * mu[task] + gradient;
  w[task] = old[task] - 0.5f * mu[task];
}

float unigramLoss(const float *w, const int32_t *x) {
  float sum = 0, loss = 0;
  for (int64_t i = 0; i < vocabulary; ++i)
    sum += std::exp(w[i]);
  for (int64_t i = 0; i < tokens; ++i)
    loss += std::log(sum) - w[x[i]];
  return loss / tokens;
}

void lossTask(int64_t, void *const *operands, void *) {
  const float *w = static_cast<const float *>(operands[0]);
  const int32_t *x = static_cast<const int32_t *>(operands[1]);
  std::memcpy(operands[3], w, vocabulary * sizeof(float));
  *static_cast<float *>(operands[2]) = unigramLoss(w, x);
}

void countTask(int64_t, void *const *operands, void *) {
  ++*static_cast<int32_t *>(operands[0]);
  *static_cast<float *>(operands[1]) =
      static_cast<float>(*static_cast<int32_t *>(operands[0])) * 0.5f;
}

void stepEntry(fp8_step *step) {
  if (hook)
    hook(*static_cast<int32_t *>(fp8_operand(step, ~2)),
         static_cast<int32_t *>(fp8_operand(step, ~3)));
  const int64_t forLoss[4] = {~0, ~3, ~4, 0};
  fp8_launch(step, 0, lossTask, 1, forLoss, nullptr, 4);
  const int64_t forUpdate[5] = {~0, ~1, ~2, ~3, 0};
  fp8_launch(step, 0, unigramTask, vocabulary, forUpdate, nullptr, 5);
  if (*static_cast<int32_t *>(fp8_operand(step, ~2)) == failingStep)
    fp8_operand(step, ~99);
  const int64_t forCount[2] = {~2, ~5};
  fp8_launch(step, 0, countTask, 1, forCount, nullptr, 2);
  for (int i = 0; i < extraLaunches; ++i)
    fp8_launch(
        step, 1, [](int64_t, void *const *, void *) {}, 1, nullptr, nullptr, 0);
}

void evalEntry(fp8_step *step) {
  const int64_t operands[4] = {~0, ~1, ~2, 0};
  fp8_launch(step, 0, lossTask, 1, operands, nullptr, 4);
}

void initTask(int64_t task, void *const *operands, void *) {
  uint32_t seed = *static_cast<const uint32_t *>(operands[0]);
  static_cast<float *>(operands[1])[task] =
      static_cast<float>((seed * 977 + task * 31) % 17) * 0.01f;
  static_cast<float *>(operands[2])[task] = 0;
}
void initEntry(fp8_step *step) {
  const int64_t operands[3] = {~0, ~1, ~2};
  fp8_launch(step, 0, initTask, vocabulary, operands, nullptr, 3);
}

fp8_executable *makeStep(int64_t width = vocabulary, int64_t known = 256,
                         const std::vector<const char *> &launches = {}) {
  Builder builder("step", stepEntry);
  builder.desc.launch_names = launches.data();
  builder.desc.num_launches = static_cast<int64_t>(launches.size());
  builder.desc.arena_bytes = 4096;
  builder.desc.scratch_bytes = 64;
  builder.arg("p['w']", FP8_DTYPE_F32, {width}, FP8_ROLE_STATE)
      .arg("s[0].mu['w']", FP8_DTYPE_F32, {width}, FP8_ROLE_STATE)
      .arg("s[0].count", FP8_DTYPE_I32, {}, FP8_ROLE_STATE)
      .arg("x", FP8_DTYPE_I32, {rows, window}, FP8_ROLE_BATCH, known)
      .result("result[0]['w']", FP8_DTYPE_F32, {width}, FP8_KIND_STATE, 0)
      .result("result[1][0].mu['w']", FP8_DTYPE_F32, {width}, FP8_KIND_STATE, 1)
      .result("result[1][0].count", FP8_DTYPE_I32, {}, FP8_KIND_STATE, 2)
      .result("result[2]", FP8_DTYPE_F32, {}, FP8_KIND_LOSS)
      .result("result[3]['half, count']", FP8_DTYPE_F32, {}, FP8_KIND_METRIC);
  return builder.build();
}

fp8_executable *makeInit(bool withMoments = true, int64_t width = vocabulary) {
  Builder builder("init", initEntry);
  builder.arg("seed", FP8_DTYPE_U32, {}, FP8_ROLE_BATCH)
      .result("result[0]['w']", FP8_DTYPE_F32, {width}, FP8_KIND_OUTPUT)
      .result(withMoments ? "result[1][0].mu['w']" : "result[1]['other']",
              FP8_DTYPE_F32, {width}, FP8_KIND_OUTPUT)
      .result("result[1][0].count", FP8_DTYPE_I32, {}, FP8_KIND_METRIC);
  return builder.build();
}

fp8_executable *makeEval() {
  Builder builder("eval", evalEntry);
  builder.desc.arena_bytes = 4096;
  builder.arg("params['w']", FP8_DTYPE_F32, {vocabulary}, FP8_ROLE_FROZEN)
      .arg("tokens", FP8_DTYPE_I32, {rows, window}, FP8_ROLE_BATCH)
      .result("result", FP8_DTYPE_F32, {}, FP8_KIND_LOSS);
  return builder.build();
}

class Train : public ::testing::Test {
protected:
  Train() : step(makeStep()), init(makeInit()), eval(makeEval()) {
    hook = nullptr;
    poisonedStep = -1;
    write(text, sampleText(20000));
    options.step = step;
    options.init = init;
    options.eval = eval;
    options.data_files = files;
    options.num_data_files = 1;
    options.out_dir = out.c_str();
    options.steps = 40;
    options.seed = 5;
    options.threads = 2;
    options.live = -1;
    options.message = [](void *user, const char *line) {
      static_cast<Train *>(user)->said += line;
    };
    options.user = this;
  }
  ~Train() override {
    hook = nullptr;
    extraLaunches = 0;
  }

  fp8_status run() {
    said.clear();
    fp8_status status = fp8_train(&options, &summary);
    error = status == FP8_OK ? "" : fp8_last_error();
    return status;
  }
  /// Returns step, loss and metric of every row: these must not depend on
  /// interruptions.
  static std::string losses(const std::string &dir) {
    std::istringstream log(read(dir + "/log.csv"));
    std::string line, result;
    while (std::getline(log, line)) {
      std::istringstream cells(line);
      std::string cell;
      for (int i = 0; std::getline(cells, cell, ','); ++i)
        if (i < 3 || i > 4)
          result += cell + ";";
      result += "\n";
    }
    return result;
  }

  TempDir dir;
  std::string out = dir / "out", text = dir / "text";
  const char *files[1] = {text.c_str()};
  Executable step, init, eval;
  fp8_train_options options = {};
  fp8_train_summary summary = {};
  std::string said, error;
};
} // namespace

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

static int64_t occurrences(const std::string &text, const std::string &part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
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

TEST_F(Train, EvaluatesAStepOfTheCallers) {
  options.steps = 7;
  ASSERT_EQ(run(), FP8_OK) << error;
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 2, &own), FP8_OK);
  restore(own, step, summary.checkpoint);
  auto evaluate = [&] {
    said.clear();
    fp8_status status = fp8_evaluate(&options, own, options.message, this);
    error = status == FP8_OK ? "" : fp8_last_error();
    return status;
  };
  // The same windows of the same text.
  ASSERT_EQ(evaluate(), FP8_OK) << error;
  std::ostringstream loss;
  loss.precision(17);
  loss << summary.heldout_loss;
  EXPECT_EQ(said, "{\"heldout_loss\":" + loss.str() + ",\"batches\":31}");
  for (double fraction : {1.5, 30.0, std::nan("")}) {
    options.holdout = fraction;
    EXPECT_EQ(evaluate(), FP8_ERROR_INVALID);
    EXPECT_HAS(error, "expected a held-out fraction below 1");
  }
  options.holdout = 0;
  // An array in memory.
  std::vector<int32_t> values(3 * tokens);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>('a' + i % 26);
  int64_t dims[] = {3, rows, window};
  fp8_tensor_info info = {};
  info.dtype = FP8_DTYPE_I32;
  info.rank = 3;
  info.dims = dims;
  fp8_batch_source batch = {};
  batch.path = "tokens";
  batch.info = &info;
  batch.data = values.data();
  options.num_data_files = 0;
  options.eval_batches = &batch;
  options.num_eval_batches = 1;
  ASSERT_EQ(evaluate(), FP8_OK) << error;
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i)
    expected +=
        unigramLoss(static_cast<const float *>(fp8_step_argument(own, 0)),
                    values.data() + i * tokens);
  expected /= 3;
  double got = std::stod(said.substr(said.find(':') + 1));
  EXPECT_NEAR(got, expected, 1e-6);
  EXPECT_HAS(said, "\"batches\":3}");
  dims[1] = 5;
  EXPECT_EQ(evaluate(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "'the array' for batch argument 'tokens': expected "
                    "i32[rows,4,16]");
  dims[1] = -1;
  EXPECT_EQ(evaluate(), FP8_ERROR_INVALID);
  batch.data = nullptr;
  EXPECT_EQ(evaluate(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "neither a file nor an array");
  options.num_eval_batches = 0;
  EXPECT_EQ(evaluate(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "the evaluation has no data");
  Executable other(makeStep(8));
  options.step = other;
  EXPECT_EQ(evaluate(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "but got one of others");
  options.eval = nullptr;
  EXPECT_EQ(evaluate(), FP8_ERROR_INVALID);
  fp8_step_destroy(own);
}

TEST_F(Train, AnEvaluationNeedsNoArraysOfItsStep) {
  // The caller's loop feeds a mask besides the tokens; x has a smaller
  // vocabulary than the evaluation's tokens.
  Builder builder("step", stepEntry);
  builder.arg("p['w']", FP8_DTYPE_F32, {vocabulary}, FP8_ROLE_STATE)
      .arg("batch['x']", FP8_DTYPE_I32, {rows, window}, FP8_ROLE_BATCH, 100)
      .arg("batch['mask']", FP8_DTYPE_F32, {rows, window}, FP8_ROLE_BATCH)
      .result("result[0]['w']", FP8_DTYPE_F32, {vocabulary}, FP8_KIND_STATE, 0)
      .result("result[1]", FP8_DTYPE_F32, {}, FP8_KIND_LOSS);
  Executable masked(builder.build());
  options.step = masked;
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(masked, 1, &own), FP8_OK);
  auto evaluate = [&] {
    said.clear();
    fp8_status status = fp8_evaluate(&options, own, options.message, this);
    error = status == FP8_OK ? "" : fp8_last_error();
    return status;
  };
  EXPECT_EQ(evaluate(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "vocabulary");
  write(text, std::string(20000, 'a')); // below 100
  ASSERT_EQ(evaluate(), FP8_OK) << error;
  EXPECT_HAS(said, "\"batches\":31}");
  // If an array feeds x, the evaluation's own vocabulary is used.
  write(text, sampleText(20000));
  int64_t dims[] = {1, rows, window};
  fp8_tensor_info info = {};
  info.dtype = FP8_DTYPE_I32;
  info.rank = 3;
  info.dims = dims;
  std::vector<int32_t> values(tokens);
  fp8_batch_source source = {"batch.x", nullptr, nullptr, &info, values.data()};
  options.batches = &source;
  options.num_batches = 1;
  EXPECT_EQ(evaluate(), FP8_OK) << error;
  source.path = nullptr;
  EXPECT_EQ(evaluate(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "a batch source has no path");
  fp8_step_destroy(own);
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

TEST_F(Train, ResumesExactly) {
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

TEST_F(Train, AGlobalLocaleChangesNoFile) {
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

TEST_F(Train, NumbersOfAnEvaluationStayWithoutIt) {
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

TEST_F(Train, ALogMakesUpForRowsThatTheOtherLacks) {
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

TEST_F(Train, ALogThatCannotBeReadIsAnError) {
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

TEST_F(Train, PassesOverADamagedCheckpoint) {
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

TEST_F(Train, NumbersOfACheckpointAreWhole) {
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

TEST_F(Train, InterruptFinishesTheStepAndSaves) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string whole = read(out + "/checkpoint-40.safetensors");
  out = dir / "interrupted";
  options.out_dir = out.c_str();
  hook = [](int32_t count, int32_t *) {
    if (count == 12)
      std::raise(SIGINT);
  };
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_HAS(error, "interrupted after step 13 of 40; resume from " + out +
                        "/checkpoint-13.safetensors");
  EXPECT_EQ(summary.last_step, 13);
  hook = nullptr;
  options.resume = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), whole);
}

TEST_F(Train, AClosedTerminalSavesUnlessIgnored) {
  // The shell may tell it again.
  hook = [](int32_t count, int32_t *) {
    for (int i = 0; count == 12 && i < 2; ++i)
      std::raise(SIGHUP);
  };
  // (The tests themselves may run under nohup.)
  auto *before = std::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_HAS(error, "resume from " + out + "/checkpoint-13.safetensors");
  // As nohup does.
  std::signal(SIGHUP, SIG_IGN);
  options.overwrite = 1;
  EXPECT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST_F(Train, ASignalIsForTheRunsThatHeedSignals) {
  options.threads = 1; // a step in a step cannot share a pool of threads
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 1, &own), FP8_OK);
  fp8_train_options others = options;
  others.no_signals = 1;
  fp8_status evaluated = FP8_ERROR_INTERNAL;
  std::string line;
  hook = [&](int32_t count, int32_t *) {
    if (count != 12)
      return;
    std::raise(SIGINT);
    evaluated = fp8_evaluate(
        &others, own,
        [](void *user, const char *text) {
          *static_cast<std::string *>(user) = text;
        },
        &line);
  };
  EXPECT_EQ(run(), FP8_INTERRUPTED);
  EXPECT_EQ(summary.last_step, 13);
  EXPECT_EQ(evaluated, FP8_OK) << line;
  EXPECT_HAS(line, "heldout_loss");
  fp8_step_destroy(own);
}

TEST_F(Train, TheLastRunRestoresTheHandlers) {
  struct sigaction old[2], now;
  sigaction(SIGINT, nullptr, &old[0]);
  sigaction(SIGPIPE, nullptr, &old[1]);
  // This run begins in the other one, and ends after it.
  static thread_local bool isSecond = false;
  std::promise<void> secondBegan, firstEnded;
  hook = [&](int32_t count, int32_t *) {
    if (count == 0 && isSecond) {
      secondBegan.set_value();
      firstEnded.get_future().wait();
    } else if (count == 0) {
      secondBegan.get_future().wait();
    }
  };
  options.threads = 1;
  fp8_train_options others = options;
  std::string otherDir = dir / "second";
  others.out_dir = otherDir.c_str();
  others.message = [](void *, const char *) {};
  others.steps = options.steps = 2;
  fp8_status status = FP8_ERROR_INTERNAL;
  std::thread second([&] {
    isSecond = true;
    status = fp8_train(&others, nullptr);
  });
  EXPECT_EQ(run(), FP8_OK) << error;
  firstEnded.set_value();
  second.join();
  EXPECT_EQ(status, FP8_OK);
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, old[0].sa_handler);
  sigaction(SIGPIPE, nullptr, &now);
  EXPECT_EQ(now.sa_handler, old[1].sa_handler);
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

TEST_F(Train, CheckpointOfAnotherModel) {
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

TEST_F(Train, CheckpointOfAnotherRun) {
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

TEST_F(Train, CheckpointOfAnotherProcessor) {
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

TEST_F(Train, EarlierRunIsNotOverwritten) {
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

TEST_F(Train, FilesAreCheckedWithoutFunctions) {
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

TEST_F(Train, AMistakeRemovesNoEarlierRun) {
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

TEST_F(Train, ANewRunRemovesNoFilesOfOthers) {
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

TEST_F(Train, ResumeNeedsACheckpoint) {
  options.resume = 1;
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "no checkpoint to resume from");
}

TEST_F(Train, KeepsTheNewestCheckpoints) {
  options.checkpoint_every = 5;
  options.keep_checkpoints = 2;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_FALSE(exists(out + "/checkpoint-30.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-35.safetensors"));
  EXPECT_TRUE(exists(out + "/checkpoint-40.safetensors"));
}

TEST_F(Train, WritesNoCheckpointAtAll) {
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

TEST_F(Train, ANonFiniteStateStopsARunWithoutCheckpoints) {
  options.checkpoint_every = -1;
  poisonedStep = 39;
  EXPECT_NE(run(), FP8_OK);
  EXPECT_HAS(error, "not finite");
}

//===----------------------------------------------------------------------===//
// Initial values
//===----------------------------------------------------------------------===//

TEST_F(Train, InitializerThatDoesNotFit) {
  Executable bad(makeInit(false));
  options.init = bad;
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "1 missing:\n    s[0].mu['w'] f32[256]");
  EXPECT_HAS(error, "1 not wanted:\n    result[1]['other'] f32[256]");
}

TEST_F(Train, InitialValuesFromAFile) {
  options.steps = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string start = out + "/checkpoint-0.safetensors";
  out = dir / "a";
  options.out_dir = out.c_str();
  options.steps = 40;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string expected = read(out + "/checkpoint-40.safetensors");
  out = dir / "b";
  options.out_dir = out.c_str();
  options.init = nullptr;
  options.init_file = start.c_str();
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), expected);
}

TEST_F(Train, FileAndInitializerTogether) {
  // Only the parameter, under its bare name.
  std::vector<float> w(vocabulary, 0.25f);
  Builder builder("", nullptr);
  fp8_tensor_info info = builder.info("w", FP8_DTYPE_F32, {vocabulary});
  const void *data = w.data();
  std::string file = dir / "w.safetensors";
  ASSERT_EQ(fp8_tensors_save(file.c_str(), &info, &data, 1, nullptr, 0),
            FP8_OK);
  options.init_file = file.c_str();
  options.steps = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(
      fp8_tensors_load((out + "/checkpoint-0.safetensors").c_str(), &tensors),
      FP8_OK);
  for (int i = 0; i < fp8_tensors_count(tensors); ++i) {
    const void *values;
    fp8_tensors_get(tensors, i, &info, &values);
    if (std::string(info.name) == "p['w']") {
      EXPECT_EQ(static_cast<const float *>(values)[3], 0.25f);
    } else if (std::string(info.name) == "s[0].mu['w']") {
      EXPECT_EQ(static_cast<const float *>(values)[3], 0);
    }
  }
  fp8_tensors_destroy(tensors);
  // Without the initializer the rest is missing.
  options.init = nullptr;
  options.overwrite = 1;
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "2 missing:");
}

TEST_F(Train, DamagedInitialFile) {
  std::string file = dir / "bad.safetensors";
  write(file, "nonsense, but long enough");
  options.init_file = file.c_str();
  EXPECT_EQ(run(), FP8_ERROR_FORMAT);
  EXPECT_HAS(error, "no valid safetensors file");
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

TEST_F(Train, IncompleteListsAreMistakes) {
  options.num_alarms = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected 1 alarms but got NULL for number 0");
  options.num_alarms = -1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected a number of alarms but got -1");
  options.num_alarms = 0;
  const char *none[1] = {nullptr};
  options.eval_files = none;
  options.num_eval_files = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 1, &own), FP8_OK);
  EXPECT_EQ(fp8_evaluate(&options, own, options.message, this),
            FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected 1 held-out files but got NULL for number 0");
  fp8_step_destroy(own);
  options.num_eval_files = 0;
  options.num_batches = -1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected batch sources but got less than 0");
  options.num_batches = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected batch sources but got none");
}

TEST_F(Train, BadData) {
  std::string missing = dir / "missing";
  files[0] = missing.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot open '" + missing + "': No such file");

  files[0] = text.c_str();
  write(text, "");
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "is empty");

  write(text, "short");
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "is too short: it has 5 bytes but one row takes 16: at "
                    "least 17 are needed");

  // Enough to train on, but not to hold out.
  write(text, sampleText(100));
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "the held-out text is too short");

  files[0] = dir.path.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "is a directory");
  options.num_data_files = 0;
  options.eval = nullptr;
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "no data for batch argument 'x' i32[4,16]");
  EXPECT_FALSE(exists(out));
}

TEST_F(Train, TokensOutsideTheVocabulary) {
  Executable small(makeStep(vocabulary, 128));
  options.step = small;
  std::string contents = sampleText(5000);
  contents[4321] = '\xe9';
  write(text, contents);
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "data file '" + text +
                        "': byte 4321 is 233 but the vocabulary has 128 "
                        "entries");
  std::string tokens16 = dir / "tokens.u16";
  std::string words(10000, '\0');
  words[2 * 77 + 1] = 3; // token 77 is 768
  write(tokens16, words);
  files[0] = tokens16.c_str();
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "token 77 is 768 but the vocabulary has 128 entries");
}

TEST_F(Train, TokenFiles) {
  std::string contents = sampleText(20000);
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string expected = losses(out);
  // The same tokens in other formats give the same run.
  std::string u16 = dir / "t.u16", npy = dir / "t.npy";
  std::string words, longs;
  for (char c : contents) {
    words += c;
    words += '\0';
    longs += c;
    longs += std::string(7, '\0');
  }
  write(u16, words);
  std::string header =
      "{'descr': '<i8', 'fortran_order': False, 'shape': (20000,), }";
  header.resize(118 - 1, ' ');
  header += '\n';
  write(npy, std::string("\x93NUMPY\x01\0", 8) +
                 static_cast<char>(header.size()) + std::string(1, '\0') +
                 header + longs);
  int run_ = 0;
  for (const std::string &file : {u16, npy}) {
    files[0] = file.c_str();
    out = dir / ("run" + std::to_string(run_++));
    options.out_dir = out.c_str();
    ASSERT_EQ(run(), FP8_OK) << error;
    EXPECT_EQ(losses(out), expected);
    EXPECT_HAS(said, "nats per token");
  }
}

TEST_F(Train, WindowsComeFromTheTrainingPartOfTheirFile) {
  // Capitals are held out; neither they nor windows across files may be fed.
  std::string other = dir / "other";
  write(text, std::string(900, 'a') + std::string(100, 'X'));
  write(other, std::string(450, 'b') + std::string(50, 'Y'));
  const char *both[2] = {text.c_str(), other.c_str()};
  options.data_files = both;
  options.num_data_files = 2;
  options.steps = 200;
  int64_t ofA = 0, ofB = 0, mixed = 0;
  hook = [&](int32_t, int32_t *batch) {
    for (int64_t row = 0; row < rows; ++row) {
      std::string line(batch + row * window, batch + (row + 1) * window);
      ofA += line == std::string(window, 'a');
      ofB += line == std::string(window, 'b');
      ++mixed;
    }
  };
  ASSERT_EQ(run(), FP8_OK) << error;
  mixed -= ofA + ofB;
  EXPECT_EQ(mixed, 0);
  // Two thirds of the positions are in the first file.
  EXPECT_NEAR(static_cast<double>(ofA) / (ofA + ofB), 2.0 / 3, 0.06);
}

TEST_F(Train, SeparateHeldOutFiles) {
  std::string other = dir / "other";
  write(other, sampleText(1000, 99));
  const char *heldOut[1] = {other.c_str()};
  options.eval_files = heldOut;
  options.num_eval_files = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(said, "20,000 bytes to train on, 1,000 held out");
  EXPECT_HAS(said, "on 960 bytes");
}

namespace {
// y is x shifted by one token.
bool shifted;
void pairEntry(fp8_step *step) {
  const uint8_t *x = static_cast<const uint8_t *>(fp8_operand(step, ~1));
  const int32_t *y = static_cast<const int32_t *>(fp8_operand(step, ~0));
  const float *mask = static_cast<const float *>(fp8_operand(step, ~2));
  const uint32_t *key = static_cast<const uint32_t *>(fp8_operand(step, ~3));
  for (int64_t i = 0; i + 1 < 8; ++i)
    shifted &= y[i] == x[i + 1] && y[8 + i] == x[8 + i + 1];
  static_cast<float *>(fp8_operand(step, ~4))[0] = mask[0];
  static_cast<float *>(fp8_operand(step, ~5))[0] =
      static_cast<float>(key[0] >> 8);
}
} // namespace

TEST_F(Train, InputsTargetsArraysAndKeys) {
  Builder builder("step", pairEntry);
  builder.arg("wanted", FP8_DTYPE_I32, {2, 8}, FP8_ROLE_BATCH)
      .ofLabels()
      .arg("inputs", FP8_DTYPE_U8, {2, 8}, FP8_ROLE_BATCH)
      .arg("mask", FP8_DTYPE_F32, {2}, FP8_ROLE_BATCH)
      .arg("rng", FP8_DTYPE_U32, {2}, FP8_ROLE_KEY)
      .result("loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS)
      .result("noise", FP8_DTYPE_F32, {}, FP8_KIND_METRIC);
  Executable pair(builder.build());
  std::vector<float> masks = {1, 0, 2, 0, 3, 0};
  fp8_tensor_info info = builder.info("m", FP8_DTYPE_F32, {3, 2});
  const void *data = masks.data();
  std::string file = dir / "mask.safetensors";
  ASSERT_EQ(fp8_tensors_save(file.c_str(), &info, &data, 1, nullptr, 0),
            FP8_OK);
  options.step = pair;
  options.init = options.eval = nullptr;
  // A float batch argument takes no text.
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "batch argument 'mask'");
  fp8_batch_source source = {"mask", file.c_str(), "m", nullptr, nullptr};
  options.batches = &source;
  options.num_batches = 1;
  options.steps = 5;
  shifted = true;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_TRUE(shifted);
  std::string log = losses(out);
  EXPECT_HAS(log, "1;1;");
  EXPECT_HAS(log, "3;3;");
  EXPECT_HAS(log, "4;1;"); // starts again
  // Keys differ by step, and repeat with the same seed.
  out = dir / "again";
  options.out_dir = out.c_str();
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(losses(out), log);
  options.seed = 6;
  options.overwrite = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_NE(losses(out), log);

  source.tensor = "other";
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "has no tensor 'other'");
  source = {"nothing", file.c_str(), nullptr, nullptr, nullptr};
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "no batch argument 'nothing'; it has 'wanted', 'inputs', "
                    "'mask'");
  source = {"inputs", file.c_str(), nullptr, nullptr, nullptr};
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "expected u8[rows,2,8] (one row a step) or u8[rows,8] (2 "
                    "rows a step) but got f32[3,2]");
}

//===----------------------------------------------------------------------===//
// Disks
//===----------------------------------------------------------------------===//

TEST_F(Train, OutputDirectoryCannotBeMade) {
  std::string file = dir / "file";
  write(file, "x");
  std::string below = file + "/out";
  options.out_dir = below.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot create directory '" + below + "'");
  options.out_dir = file.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
}

TEST_F(Train, FullDiskKeepsTheLastCheckpoint) {
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

TEST_F(Train, VanishedDirectory) {
  options.checkpoint_every = 10;
  hook = [&](int32_t count, int32_t *) {
    if (count == 15)
      std::filesystem::remove_all(out);
  };
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot write '" + out);
  EXPECT_HAS(error, "No such file or directory");
}

//===----------------------------------------------------------------------===//
// Running once
//===----------------------------------------------------------------------===//

TEST_F(Train, RunOnce) {
  std::vector<float> w(vocabulary, 0);
  std::vector<int32_t> x(tokens, 3);
  Builder builder("", nullptr);
  fp8_tensor_info infos[2] = {
      builder.info("params['w']", FP8_DTYPE_F32, {vocabulary}),
      builder.info("tokens", FP8_DTYPE_I32, {rows, window})};
  const void *data[2] = {w.data(), x.data()};
  std::string in = dir / "in.safetensors", result = dir / "out.safetensors";
  ASSERT_EQ(fp8_tensors_save(in.c_str(), infos, data, 2, nullptr, 0), FP8_OK);
  ASSERT_EQ(fp8_run_once(eval, in.c_str(), result.c_str(), 1), FP8_OK)
      << fp8_last_error();
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(fp8_tensors_load(result.c_str(), &tensors), FP8_OK);
  const void *loss;
  fp8_tensor_info info;
  ASSERT_EQ(fp8_tensors_get(tensors, 0, &info, &loss), FP8_OK);
  EXPECT_STREQ(info.name, "result");
  EXPECT_NEAR(*static_cast<const float *>(loss), std::log(256), 1e-4);
  fp8_tensors_destroy(tensors);
  EXPECT_EQ(fp8_run_once(eval, nullptr, result.c_str(), 1), FP8_ERROR_MISMATCH);
  EXPECT_HAS(fp8_last_error(), "2 missing:");
}
