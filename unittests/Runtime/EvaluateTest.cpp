//===- EvaluateTest.cpp - Evaluations and functions that run once ---------===//

#include "UnigramTraining.h"

#include <cmath>

using namespace fp8::test;

namespace {
class Evaluate : public Train {};
} // namespace

TEST_F(Evaluate, EvaluatesAStepOfTheCallers) {
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

TEST_F(Evaluate, AnEvaluationNeedsNoArraysOfItsStep) {
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

TEST_F(Evaluate, RunOnce) {
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
