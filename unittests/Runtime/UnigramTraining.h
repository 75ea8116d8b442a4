//===- UnigramTraining.h - A step that learns letters -----------*- C++ -*-===//
//
// The step is a hand-written byte unigram model (256 logits, SGD with
// momentum), in the form of the compiler's steps.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_UNITTESTS_RUNTIME_UNIGRAMTRAINING_H
#define FP8_UNITTESTS_RUNTIME_UNIGRAMTRAINING_H

#include "TestSupport.h"

#include <functional>

namespace fp8::test {

constexpr int64_t vocabulary = 256, rows = 4, window = 16;
constexpr int64_t tokens = rows * window;

/// Runs inside a step, with the number of finished steps.
extern std::function<void(int32_t count, int32_t *batch)> hook;
/// This step ends after its update, with an error (-1: none).
extern int32_t failingStep;
/// At this step the gradient is NaN (-1: never).
extern int32_t poisonedStep;
/// The number of extra empty launches in every step.
extern int extraLaunches;

float unigramLoss(const float *w, const int32_t *x);

/// The entry of the step, for steps with other arguments.
void stepEntry(fp8_step *step);

fp8_executable *makeStep(int64_t width = vocabulary, int64_t known = 256,
                         const std::vector<const char *> &launches = {});
fp8_executable *makeInit(bool withMoments = true, int64_t width = vocabulary);
fp8_executable *makeEval();

/// A run of 40 steps on a text, to a directory of its own.
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

} // namespace fp8::test

#endif // FP8_UNITTESTS_RUNTIME_UNIGRAMTRAINING_H
