//===- TrainOnRanks.cpp - A small training run, on ranks ------------------===//
//
// The program that the tests start on several ranks, by sockets or by mpirun:
// it trains a hand-written step.
//   train-on-ranks OUT STEPS ROWS [KEY[=VALUE]...]
// ROWS: rows of one rank's batch. Keys: resume, text=FILE, timeout=S,
// backward=MS (duration of the step after it has started its reductions),
// every=N (steps between checkpoints), profile, sharded (checkpoints), deal
// (ranks own `seen` and `tokens`, as with ZeRO), ballast=MiB (size of each of
// two more tensors that ranks own), and mistakes of one rank: differ=RANK (its
// initial state), signs=RANK (of two of its zeros), other=RANK (its file),
// seed=RANK, othertext=RANK (its text is at=FILE), heldout=RANK (its held-out
// data), and in its third step nan=RANK (in its gradient), stray=RANK (a number
// of its state), disk=RANK (files must stay small from then on) and memory=RANK
// (it allocates more than there is).
// wire=f8: the wire of the gradient.
//
//===----------------------------------------------------------------------===//

#include "fp8/Run/ExitCode.h"
#include "fp8/Run/Ranks.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int64_t width = 64, numRows = 30;
int64_t rows = 1;
std::map<std::string, std::string> keys;

int64_t number(const char *key, int64_t missing) {
  auto found = keys.find(key);
  return found == keys.end() ? missing : std::atoll(found->second.c_str());
}

/// Arguments: w, seen, tokens, control, x, ids, text, ballast. Results: w,
/// seen, tokens, control, ballast in place, then loss.
enum { W, Seen, Tokens, Control, X, Ids, Text };
int64_t lossNumber = 7; // behind the ballast

template <typename T> T *operand(fp8_step *step, int64_t number) {
  return static_cast<T *>(fp8_operand(step, ~number));
}

int64_t myRank = 0;

/// Makes the mistakes of a rank's third step.
void makeMistakes(float *gradient, float *w) {
  static int64_t steps = 0;
  if (++steps != 3)
    return;
  if (number("stray", -1) == myRank)
    w[5] += 1e-3f;
  if (number("nan", -1) == myRank)
    gradient[5] = NAN;
  if (number("infinity", -1) == myRank)
    gradient[5] = INFINITY;
  if (number("disk", -1) == myRank) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {64, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (number("memory", -1) == myRank) {
    rlimit limit = {rlim_t(2) << 30, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    std::vector<char> data(size_t(4) << 30);
    gradient[0] += data[number("memory", 0)];
  }
}

/// Averages the gradients of three ranks as a step in shard_map does. Each also
/// gathers an infinity, which is no mistake.
void exchangeGradients(fp8_step *step, float *gradient) {
  static const int64_t ranks[] = {0, 1, 2};
  static const fp8_exchange limits = {"limits", FP8_EXCHANGE_GATHER, 4, 1, 3,
                                      ranks,    FP8_DTYPE_F32,       0};
  static const fp8_exchange sum = {"psum", FP8_EXCHANGE_GATHER, width * 4, 1, 3,
                                   ranks,  FP8_DTYPE_F32,       1};
  auto *limit = static_cast<float *>(fp8_operand(step, 4096));
  *limit = -INFINITY;
  const int64_t places[2][2] = {{4096, 4100}, {0, 8192}};
  fp8_exchange_start(step, 4, &limits, places[0], nullptr, 2);
  fp8_exchange_start(step, 5, &sum, places[1], nullptr, 2);
  fp8_wait(step, 4);
  fp8_wait(step, 5);
  const auto *all = static_cast<float *>(fp8_operand(step, 8192));
  for (int64_t i = 0; i < width; ++i)
    gradient[i] = (all[i] + all[width + i] + all[2 * width + i]) / 3;
}

/// Computes the gradient of mean |w - x|^2 / 2 in the arena and takes the step;
/// records its rows and tokens.
void entry(fp8_step *step) {
  const float *x = operand<float>(step, X);
  float *w = operand<float>(step, W);
  auto *gradient = static_cast<float *>(fp8_operand(step, 0));
  auto *counts = static_cast<int64_t *>(fp8_operand(step, 1024));
  auto *tokens = static_cast<int64_t *>(fp8_operand(step, 2048));
  float *loss = operand<float>(step, lossNumber);
  std::memset(gradient, 0, width * sizeof(float));
  std::memset(counts, 0, numRows * sizeof(int64_t));
  *loss = 0;
  for (int64_t row = 0; row < rows; ++row) {
    ++counts[operand<int32_t>(step, Ids)[row]];
    for (int64_t i = 0; i < width; ++i) {
      float difference = w[i] - x[row * width + i];
      gradient[i] += difference / static_cast<float>(rows);
      *loss += difference * difference / static_cast<float>(2 * rows);
    }
  }
  makeMistakes(gradient, w);
  *tokens = 0;
  const int32_t *text = operand<int32_t>(step, Text);
  for (int64_t i = 0; i < rows * 8; ++i)
    *tokens += (i % 8 + 1) * text[i];

  bool isNarrow = keys.count("wire") != 0;
  static const fp8_all_reduce reductions[] = {
      {"gradient w", FP8_REDUCE_MEAN, FP8_WIRE_EXACT, FP8_DTYPE_F32, 0, width,
       0},
      {"loss", FP8_REDUCE_MEAN, FP8_WIRE_EXACT, FP8_DTYPE_F32, 0, 1, 0},
      {"seen", FP8_REDUCE_SUM, FP8_WIRE_EXACT, FP8_DTYPE_I64, 0, numRows, 0},
      {"tokens", FP8_REDUCE_SUM, FP8_WIRE_EXACT, FP8_DTYPE_I64, 0, 1, 0},
      {"gradient w", FP8_REDUCE_MEAN, FP8_WIRE_F8_E4M3FN, FP8_DTYPE_F32, 0,
       width, 0}};
  const int64_t places[4][3] = {{0, 0, ~Control},
                                {~lossNumber, ~lossNumber, 0},
                                {1024, 1024, 0},
                                {2048, 2048, 0}};
  bool isExchanged = keys.count("exchange") != 0;
  for (int64_t i = isExchanged; i < 4; ++i)
    fp8_all_reduce_start(step, i, &reductions[i == 0 && isNarrow ? 4 : i], -1,
                         places[i], nullptr, i == 0 && isNarrow ? 3 : 2);
  usleep(static_cast<useconds_t>(number("backward", 0) * 1000));
  for (int64_t i = isExchanged; i < 4; ++i)
    fp8_wait(step, i);
  if (isExchanged)
    exchangeGradients(step, gradient);
  for (int64_t i = 0; i < width; ++i)
    w[i] -= 0.1f * gradient[i];
  bool isDealt = keys.count("deal") != 0;
  for (int64_t i = 0; i < numRows; ++i)
    if (!isDealt || fp8_owns(step, 1))
      operand<int64_t>(step, Seen)[i] += counts[i];
  if (!isDealt || fp8_owns(step, 2))
    *operand<int64_t>(step, Tokens) += *tokens;
}

/// Computes the same loss of two rows from w and x.
void evaluate(fp8_step *step) {
  const float *w = operand<float>(step, 0), *x = operand<float>(step, 1);
  float sum = 0;
  for (int64_t i = 0; i < 2 * width; ++i)
    sum += (w[i % width] - x[i]) * (w[i % width] - x[i]);
  *operand<float>(step, 2) = sum / 4;
}

struct Tensor {
  std::string name;
  fp8_dtype dtype;
  std::vector<int64_t> dims;
  fp8_kind kind;
  fp8_role role;
  int32_t stateArg;
  int64_t shard = 0;
  fp8_tensor_info info() const {
    fp8_tensor_info info = {};
    info.name = name.c_str();
    info.dtype = dtype;
    info.rank = static_cast<int32_t>(dims.size());
    info.dims = dims.data();
    info.kind = kind;
    info.role = role;
    info.state_arg = stateArg;
    info.vocabulary = -1;
    info.shard = shard;
    return info;
  }
};

fp8_executable *build(const char *name, fp8_entry_fn function,
                      const std::vector<Tensor> &arguments,
                      const std::vector<Tensor> &results) {
  std::vector<fp8_tensor_info> in, out;
  for (const Tensor &each : arguments)
    in.push_back(each.info());
  for (const Tensor &each : results)
    out.push_back(each.info());
  fp8_executable_desc desc = {};
  desc.name = name;
  desc.entry = function;
  desc.arguments = in.data();
  desc.num_arguments = static_cast<int64_t>(in.size());
  desc.results = out.data();
  desc.num_results = static_cast<int64_t>(out.size());
  desc.arena_bytes = 16384;
  fp8_executable *executable = nullptr;
  if (fp8_executable_create(&desc, &executable) != FP8_OK)
    std::fprintf(stderr, "%s\n", fp8_last_error());
  return executable;
}

int train(fp8run::RunOptions &run, const char *out, int64_t steps) {
  std::vector<Tensor> state = {
      {"w", FP8_DTYPE_F32, {width}, FP8_KIND_PARAMETER, FP8_ROLE_STATE, -1},
      {"seen", FP8_DTYPE_I64, {numRows}, FP8_KIND_OTHER, FP8_ROLE_STATE, -1},
      {"tokens", FP8_DTYPE_I64, {}, FP8_KIND_OTHER, FP8_ROLE_STATE, -1},
      {"control", FP8_DTYPE_F32, {2}, FP8_KIND_OTHER, FP8_ROLE_STATE, -1}};
  std::vector<Tensor> arguments = state;
  if (keys.count("deal")) {
    arguments[Seen].shard = 1;
    arguments[Tokens].shard = 2;
  }
  arguments.push_back(
      {"x", FP8_DTYPE_F32, {rows, width}, FP8_KIND_OTHER, FP8_ROLE_BATCH, -1});
  arguments.push_back(
      {"ids", FP8_DTYPE_I32, {rows}, FP8_KIND_OTHER, FP8_ROLE_BATCH, -1});
  arguments.push_back(
      {"text", FP8_DTYPE_I32, {rows, 8}, FP8_KIND_OTHER, FP8_ROLE_BATCH, -1});
  std::vector<Tensor> results;
  auto returnState = [&](const Tensor &tensor, size_t argument) {
    results.push_back(tensor);
    results.back().kind = FP8_KIND_STATE;
    results.back().stateArg = static_cast<int32_t>(argument);
  };
  for (size_t i = 0; i < state.size(); ++i)
    returnState(state[i], i);
  for (int64_t shard : {3, 4}) {
    if (!keys.count("ballast"))
      break;
    state.push_back({"ballast " + std::to_string(shard),
                     FP8_DTYPE_U8,
                     {number("ballast", 0) << 20},
                     FP8_KIND_OTHER,
                     FP8_ROLE_STATE,
                     -1});
    returnState(state.back(), arguments.size());
    arguments.push_back(state.back());
    arguments.back().shard = shard;
    ++lossNumber;
  }
  results.push_back(
      {"loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS, FP8_ROLE_STATE, -1});
  fp8_executable *step = build("step", entry, arguments, results);
  // Zeros, except for a rank that must start differently.
  std::vector<Tensor> initial = state;
  for (Tensor &each : initial)
    each.kind = FP8_KIND_OUTPUT;
  fp8_executable *init = build(
      "init",
      [](fp8_step *step) {
        if (number("differ", -1) == myRank)
          *operand<float>(step, 0) = 1;
        if (number("signs", -1) == myRank)
          operand<float>(step, 0)[1] = operand<float>(step, 0)[3] = -0.0f;
      },
      {}, initial);

  // 15 batches, which two ranks cannot share evenly.
  fp8_executable *eval = build(
      "eval", evaluate,
      {state[W],
       {"x", FP8_DTYPE_F32, {2, width}, FP8_KIND_OTHER, FP8_ROLE_BATCH, -1}},
      {{"loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS, FP8_ROLE_STATE, -1}});
  std::vector<float> data(numRows * width);
  std::vector<int32_t> ids(numRows);
  for (int64_t i = 0; i < numRows; ++i) {
    ids[i] = static_cast<int32_t>(i);
    for (int64_t j = 0; j < width; ++j)
      data[i * width + j] = std::sin(static_cast<float>(i * 7 + j));
  }
  Tensor dataTensor{"data",         FP8_DTYPE_F32,  {numRows, width},
                    FP8_KIND_OTHER, FP8_ROLE_BATCH, -1};
  Tensor idTensor{"ids",          FP8_DTYPE_I32,  {numRows},
                  FP8_KIND_OTHER, FP8_ROLE_BATCH, -1};
  fp8_tensor_info dataInfo = dataTensor.info(), idInfo = idTensor.info();
  const fp8_batch_source batches[] = {
      {"x", nullptr, nullptr, &dataInfo, data.data()},
      {"ids", nullptr, nullptr, &idInfo, ids.data()}};
  bool hasOtherText = number("othertext", -1) == myRank;
  const char *files[] = {keys[hasOtherText ? "at" : "text"].c_str()};
  fp8_train_options options = {};
  options.step = step;
  options.init = init;
  options.eval = eval;
  fp8_tensor_info fewer = dataInfo;
  const int64_t fewerDims[] = {numRows - 2, width};
  fewer.dims = fewerDims;
  fp8_batch_source heldOut = batches[0];
  if (number("heldout", -1) == myRank)
    heldOut.info = &fewer;
  options.eval_batches = &heldOut;
  options.num_eval_batches = 1;
  options.batches = batches;
  options.num_batches = 2;
  options.shuffle = 1;
  options.data_files = files;
  options.num_data_files = 1;
  options.out_dir = out;
  options.fingerprint = number("other", -1) == myRank
                            ? "module b, recipe none 1, compiler c"
                            : "module a, recipe none 1, compiler c";
  options.seed = number("seed", -1) == myRank ? 6 : 5;
  options.steps = steps;
  options.checkpoint_every = number("every", 0);
  options.threads = 1;
  options.resume = static_cast<int32_t>(keys.count("resume"));
  options.live = -1;
  options.profile = static_cast<int32_t>(keys.count("profile"));
  options.group = run.group;
  options.sharded_checkpoints = static_cast<int32_t>(keys.count("sharded"));
  int status = fp8run::exitCodeOnRanks(run, fp8_train(&options, nullptr));
  fp8_executable_destroy(step);
  fp8_executable_destroy(init);
  fp8_executable_destroy(eval);
  return status;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  rows = std::atoll(argv[3]);
  for (int i = 4; i < argc; ++i) {
    std::string text = argv[i];
    size_t equals = text.find('=');
    keys[text.substr(0, equals)] =
        equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  fp8run::RunOptions run;
  run.program = "train-on-ranks";
  run.dataParallel = true;
  run.rankTimeout = static_cast<double>(number("timeout", 0));
  fp8run::Ranks ranks;
  if (int status = ranks.join(run))
    return status;
  myRank = fp8_group_rank(run.group);
  return ranks.leave(train(run, argv[1], std::atoll(argv[2])));
}
