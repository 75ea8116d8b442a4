//===- UnigramTraining.cpp - A step that learns letters -------------------===//

#include "UnigramTraining.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace fp8::test;

std::function<void(int32_t count, int32_t *batch)> fp8::test::hook;
int32_t fp8::test::failingStep = -1;
int32_t fp8::test::poisonedStep = -1;
int fp8::test::extraLaunches = 0;

// Arguments 0 w, 1 mu, 2 count, 3 x; results 4 loss, 5 norm; arena: 0 logsumexp
// (256 floats: one a task).
static void unigramTask(int64_t task, void *const *operands, void *scratch) {
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

float fp8::test::unigramLoss(const float *w, const int32_t *x) {
  float sum = 0, loss = 0;
  for (int64_t i = 0; i < vocabulary; ++i)
    sum += std::exp(w[i]);
  for (int64_t i = 0; i < tokens; ++i)
    loss += std::log(sum) - w[x[i]];
  return loss / tokens;
}

static void lossTask(int64_t, void *const *operands, void *) {
  const float *w = static_cast<const float *>(operands[0]);
  const int32_t *x = static_cast<const int32_t *>(operands[1]);
  std::memcpy(operands[3], w, vocabulary * sizeof(float));
  *static_cast<float *>(operands[2]) = unigramLoss(w, x);
}

static void countTask(int64_t, void *const *operands, void *) {
  ++*static_cast<int32_t *>(operands[0]);
  *static_cast<float *>(operands[1]) =
      static_cast<float>(*static_cast<int32_t *>(operands[0])) * 0.5f;
}

void fp8::test::stepEntry(fp8_step *step) {
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

static void evalEntry(fp8_step *step) {
  const int64_t operands[4] = {~0, ~1, ~2, 0};
  fp8_launch(step, 0, lossTask, 1, operands, nullptr, 4);
}

static void initTask(int64_t task, void *const *operands, void *) {
  uint32_t seed = *static_cast<const uint32_t *>(operands[0]);
  static_cast<float *>(operands[1])[task] =
      static_cast<float>((seed * 977 + task * 31) % 17) * 0.01f;
  static_cast<float *>(operands[2])[task] = 0;
}

static void initEntry(fp8_step *step) {
  const int64_t operands[3] = {~0, ~1, ~2};
  fp8_launch(step, 0, initTask, vocabulary, operands, nullptr, 3);
}

fp8_executable *fp8::test::makeStep(int64_t width, int64_t known,
                                    const std::vector<const char *> &launches) {
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

fp8_executable *fp8::test::makeInit(bool withMoments, int64_t width) {
  Builder builder("init", initEntry);
  builder.arg("seed", FP8_DTYPE_U32, {}, FP8_ROLE_BATCH)
      .result("result[0]['w']", FP8_DTYPE_F32, {width}, FP8_KIND_OUTPUT)
      .result(withMoments ? "result[1][0].mu['w']" : "result[1]['other']",
              FP8_DTYPE_F32, {width}, FP8_KIND_OUTPUT)
      .result("result[1][0].count", FP8_DTYPE_I32, {}, FP8_KIND_METRIC);
  return builder.build();
}

fp8_executable *fp8::test::makeEval() {
  Builder builder("eval", evalEntry);
  builder.desc.arena_bytes = 4096;
  builder.arg("params['w']", FP8_DTYPE_F32, {vocabulary}, FP8_ROLE_FROZEN)
      .arg("tokens", FP8_DTYPE_I32, {rows, window}, FP8_ROLE_BATCH)
      .result("result", FP8_DTYPE_F32, {}, FP8_KIND_LOSS);
  return builder.build();
}
