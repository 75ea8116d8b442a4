//===- DataParallelTest.cpp - Ranks and one process compared --------------===//
//
// A step is compiled for the rows of one rank and runs on N ranks (threads,
// over a transport in memory); it is also compiled for N times the rows and
// runs alone. Both must reach the same state, and all ranks the same bits.
//
//===----------------------------------------------------------------------===//

#include "../Ranks/RanksInMemory.h"

#include "fp8/Compiler/Compiler.h"
#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Init.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <map>
#include <random>

namespace compiler = mlir::fp8;

namespace {

using Tensor = std::vector<float>;

/// Two layers, squared errors, gradients clipped by their norm. ROWS stands for
/// the rows of the batch, COUNT for ROWS as a float, by which the loss is
/// divided.
constexpr const char *kMLP = R"mlir(
func.func public @main(
    %u: tensor<16x32xf32> loc("params['u']"),
    %v: tensor<32xf32> loc("params['v']"),
    %x: tensor<ROWSx16xf32> loc("x"), %t: tensor<ROWSxf32> loc("t"))
    -> (tensor<16x32xf32> {jax.result_info = "[0]['u']"}, tensor<32xf32> {jax.result_info = "[0]['v']"},
        tensor<f32> {jax.result_info = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %count = stablehlo.constant dense<COUNT> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<ROWSx32xf32>
  %h = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<ROWSx16xf32>, tensor<16x32xf32>) -> tensor<ROWSx32xf32>
  %a = stablehlo.maximum %h, %zeros : tensor<ROWSx32xf32>
  %y = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<ROWSx32xf32>, tensor<32xf32>) -> tensor<ROWSxf32>
  %d = stablehlo.subtract %y, %t : tensor<ROWSxf32>
  %dd = stablehlo.multiply %d, %d : tensor<ROWSxf32>
  %s = stablehlo.reduce(%dd init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<ROWSxf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %count : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %c = stablehlo.divide %two, %count : tensor<f32>
  %cs = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<ROWSxf32>
  %dy = stablehlo.multiply %d, %cs : tensor<ROWSxf32>
  %gv = stablehlo.dot_general %a, %dy, contracting_dims = [0] x [0] : (tensor<ROWSx32xf32>, tensor<ROWSxf32>) -> tensor<32xf32>
  %dys = stablehlo.broadcast_in_dim %dy, dims = [0] : (tensor<ROWSxf32>) -> tensor<ROWSx32xf32>
  %vs = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<32xf32>) -> tensor<ROWSx32xf32>
  %da = stablehlo.multiply %dys, %vs : tensor<ROWSx32xf32>
  %on = stablehlo.compare GT, %h, %zeros, FLOAT : (tensor<ROWSx32xf32>, tensor<ROWSx32xf32>) -> tensor<ROWSx32xi1>
  %dh = stablehlo.select %on, %da, %zeros : tensor<ROWSx32xi1>, tensor<ROWSx32xf32>
  %gu = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<ROWSx16xf32>, tensor<ROWSx32xf32>) -> tensor<16x32xf32>
  %gu2 = stablehlo.multiply %gu, %gu : tensor<16x32xf32>
  %gv2 = stablehlo.multiply %gv, %gv : tensor<32xf32>
  %nu = stablehlo.reduce(%gu2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
  %nv = stablehlo.reduce(%gv2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32xf32>, tensor<f32>) -> tensor<f32>
  %n2 = stablehlo.add %nu, %nv : tensor<f32>
  %n = stablehlo.sqrt %n2 : tensor<f32>
  %m = stablehlo.maximum %n, %one : tensor<f32>
  %rate = stablehlo.constant dense<0.1> : tensor<f32>
  %r = stablehlo.divide %rate, %m : tensor<f32>
  %ru = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
  %rv = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<32xf32>
  %su = stablehlo.multiply %ru, %gu : tensor<16x32xf32>
  %sv = stablehlo.multiply %rv, %gv : tensor<32xf32>
  %newu = stablehlo.subtract %u, %su : tensor<16x32xf32>
  %newv = stablehlo.subtract %v, %sv : tensor<32xf32>
  return %newu, %newv, %loss : tensor<16x32xf32>, tensor<32xf32>, tensor<f32>
}
)mlir";

/// One layer with a mask: the loss is divided by the number of unmasked rows,
/// which differs between ranks.
constexpr const char *kMasked = R"mlir(
func.func public @main(
    %w: tensor<16xf32> loc("params['w']"),
    %x: tensor<ROWSx16xf32> loc("x"), %mask: tensor<ROWSxf32> loc("mask"))
    -> (tensor<16xf32> {jax.result_info = "[0]['w']"}, tensor<f32> {jax.result_info = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<ROWSx16xf32>, tensor<16xf32>) -> tensor<ROWSxf32>
  %yy = stablehlo.multiply %y, %y : tensor<ROWSxf32>
  %m = stablehlo.multiply %yy, %mask : tensor<ROWSxf32>
  %s = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<ROWSxf32>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.reduce(%mask init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<ROWSxf32>, tensor<f32>) -> tensor<f32>
  %count = stablehlo.maximum %c, %one : tensor<f32>
  %loss = stablehlo.divide %s, %count : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %k = stablehlo.divide %two, %count : tensor<f32>
  %ks = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<ROWSxf32>
  %ym = stablehlo.multiply %y, %mask : tensor<ROWSxf32>
  %dy = stablehlo.multiply %ym, %ks : tensor<ROWSxf32>
  %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<ROWSx16xf32>, tensor<ROWSxf32>) -> tensor<16xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<16xf32>
  %step = stablehlo.multiply %rate, %g : tensor<16xf32>
  %new = stablehlo.subtract %w, %step : tensor<16xf32>
  return %new, %loss : tensor<16xf32>, tensor<f32>
}
)mlir";

/// Four micro-batches of PART rows; their mean losses are averaged.
constexpr const char *kMicro = R"mlir(
func.func public @main(
    %w: tensor<16xf32> loc("params['w']"), %x: tensor<ROWSx16xf32> loc("x"))
    -> (tensor<16xf32> {jax.result_info = "[0]['w']"}, tensor<f32> {jax.result_info = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<16xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i4 = stablehlo.constant dense<4> : tensor<i32>
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %count = stablehlo.constant dense<COUNT> : tensor<f32>
  %part = stablehlo.divide %count, %four : tensor<f32>
  %xs = stablehlo.reshape %x : (tensor<ROWSx16xf32>) -> tensor<4xPARTx16xf32>
  %0:3 = stablehlo.while(%i = %i0, %sum = %zeros, %total = %zero) : tensor<i32>, tensor<16xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %i4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %xs, %i, %i0, %i0, sizes = [1, PART, 16] : (tensor<4xPARTx16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1xPARTx16xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xPARTx16xf32>) -> tensor<PARTx16xf32>
    %y = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<PARTx16xf32>, tensor<16xf32>) -> tensor<PARTxf32>
    %yy = stablehlo.multiply %y, %y : tensor<PARTxf32>
    %s = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<PARTxf32>, tensor<f32>) -> tensor<f32>
    %l = stablehlo.divide %s, %part : tensor<f32>
    %parts = stablehlo.broadcast_in_dim %part, dims = [] : (tensor<f32>) -> tensor<PARTxf32>
    %dy0 = stablehlo.divide %y, %parts : tensor<PARTxf32>
    %dy = stablehlo.add %dy0, %dy0 : tensor<PARTxf32>
    %g = stablehlo.dot_general %2, %dy, contracting_dims = [0] x [0] : (tensor<PARTx16xf32>, tensor<PARTxf32>) -> tensor<16xf32>
    %3 = stablehlo.add %sum, %g : tensor<16xf32>
    %4 = stablehlo.add %total, %l : tensor<f32>
    %5 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %5, %3, %4 : tensor<i32>, tensor<16xf32>, tensor<f32>
  }
  %loss = stablehlo.divide %0#2, %four : tensor<f32>
  %rate = stablehlo.constant dense<0.025> : tensor<16xf32>
  %step = stablehlo.multiply %rate, %0#1 : tensor<16xf32>
  %new = stablehlo.subtract %w, %step : tensor<16xf32>
  return %new, %loss : tensor<16xf32>, tensor<f32>
}
)mlir";

/// The loss of three layers, and the derivative of their results.
const std::string kLossOfLayers = R"mlir(
func.func public @main(
    %w: tensor<3x16x256xf32> loc("params['w']"), %x: tensor<ROWSx16xf32> loc("x"))
    -> (tensor<3x16x256xf32> {jax.result_info = "[0]['w']"}, tensor<f32> {jax.result_info = "[1]"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i2 = stablehlo.constant dense<2> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %count = stablehlo.constant dense<COUNT> : tensor<f32>
  %ones = stablehlo.constant dense<1.0> : tensor<ROWSx3x256xf32>
  %y0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<ROWSx16xf32>, tensor<3x16x256xf32>) -> tensor<ROWSx3x256xf32>
  %y = stablehlo.subtract %y0, %ones : tensor<ROWSx3x256xf32>
  %yy = stablehlo.multiply %y, %y : tensor<ROWSx3x256xf32>
  %sr = stablehlo.reduce(%yy init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<ROWSx3x256xf32>, tensor<f32>) -> tensor<ROWSxf32>
  %s = stablehlo.reduce(%sr init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<ROWSxf32>, tensor<f32>) -> tensor<f32>
  %loss = stablehlo.divide %s, %count : tensor<f32>
  %counts = stablehlo.broadcast_in_dim %count, dims = [] : (tensor<f32>) -> tensor<ROWSx3x256xf32>
  %dy = stablehlo.divide %y, %counts : tensor<ROWSx3x256xf32>
)mlir";

/// A loop over the layers that makes a stack, up to its body.
const std::string kLoopOverLayers =
    R"mlir(  %empty = stablehlo.constant dense<0.0> : tensor<3x16x256xf32>
  %0:2 = stablehlo.while(%i = %i0, %new = %empty) : tensor<i32>, tensor<3x16x256xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %i3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
)mlir";

/// Gradients are clipped, each layer's by its own norm, and added to the
/// weights in a loop over layers.
const std::string kLayers =
    kLossOfLayers +
    R"mlir(  %g0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<ROWSx16xf32>, tensor<ROWSx3x256xf32>) -> tensor<16x3x256xf32>
  %g = stablehlo.transpose %g0, dims = [1, 0, 2] : (tensor<16x3x256xf32>) -> tensor<3x16x256xf32>
)mlir" +
    kLoopOverLayers +
    R"mlir(    %1 = stablehlo.dynamic_slice %g, %i, %i0, %i0, sizes = [1, 16, 256] : (tensor<3x16x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x256xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<1x16x256xf32>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x256xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.sqrt %3 : tensor<f32>
    %5 = stablehlo.maximum %4, %one : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x16x256xf32>
    %7 = stablehlo.divide %1, %6 : tensor<1x16x256xf32>
    %8 = stablehlo.dynamic_slice %w, %i, %i0, %i0, sizes = [1, 16, 256] : (tensor<3x16x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x256xf32>
    %9 = stablehlo.subtract %8, %7 : tensor<1x16x256xf32>
    %10 = stablehlo.dynamic_update_slice %new, %9, %i, %i0, %i0 : (tensor<3x16x256xf32>, tensor<1x16x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x256xf32>
    %11 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %11, %10 : tensor<i32>, tensor<3x16x256xf32>
  }
  return %0#1, %loss : tensor<3x16x256xf32>, tensor<f32>
}
)mlir";

/// The backward pass is a loop, from the last layer to the first, that stacks
/// the layers' gradients.
const std::string kStacks =
    kLossOfLayers + kLoopOverLayers +
    R"mlir(    %1 = stablehlo.subtract %i2, %i : tensor<i32>
    %2 = stablehlo.dynamic_slice %dy, %i0, %1, %i0, sizes = [ROWS, 1, 256] : (tensor<ROWSx3x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<ROWSx1x256xf32>
    %3 = stablehlo.reshape %2 : (tensor<ROWSx1x256xf32>) -> tensor<ROWSx256xf32>
    %4 = stablehlo.dot_general %x, %3, contracting_dims = [0] x [0] : (tensor<ROWSx16xf32>, tensor<ROWSx256xf32>) -> tensor<16x256xf32>
    %5 = stablehlo.reshape %4 : (tensor<16x256xf32>) -> tensor<1x16x256xf32>
    %6 = stablehlo.dynamic_update_slice %new, %5, %1, %i0, %i0 : (tensor<3x16x256xf32>, tensor<1x16x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x256xf32>
    %7 = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %7, %6 : tensor<i32>, tensor<3x16x256xf32>
  }
  %updated = stablehlo.subtract %w, %0#1 : tensor<3x16x256xf32>
  return %updated, %loss : tensor<3x16x256xf32>, tensor<f32>
}
)mlir";

/// Returns `text` for a batch of `rows`.
std::string forRows(std::string text, int64_t rows) {
  auto replace = [&](const std::string &word, const std::string &by) {
    for (size_t at; (at = text.find(word)) != std::string::npos;)
      text.replace(at, word.size(), by);
  };
  replace("ROWS", std::to_string(rows));
  replace("PART", std::to_string(rows / 4));
  replace("COUNT", std::to_string(rows) + ".0");
  return text;
}

/// A compiled step with its arguments and results.
struct Step {
  compiler::ExecutableFunction about;
  llvm::json::Value verdicts = nullptr;
  std::unique_ptr<compiler::LoadedExecutable> code;

  explicit operator bool() const { return code != nullptr; }
};

Step load(const std::string &text, bool dataParallel,
          const std::string &recipe = "none",
          const std::vector<std::string> &set = {}, unsigned zero = 0) {
  mlir::DialectRegistry registry;
  compiler::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  mlir::ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &d) {
    if (d.getSeverity() == mlir::DiagnosticSeverity::Error)
      ADD_FAILURE() << d.str();
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return {};
  compiler::CompileOptions options;
  options.name = "step";
  options.threads = 1;
  options.recipe = recipe;
  options.recipeOverrides = set;
  options.dataParallel = dataParallel;
  options.zero = zero;
  options.signature.functionKind = compiler::FunctionKind::Step;
  for (const char *path : {"x", "t", "mask"})
    if (text.find("loc(\"" + std::string(path) + "\")") != std::string::npos)
      options.signature.roles.push_back({path, "batch"});
  // Data flow does not show which argument the result of a loop replaces.
  if (text.find("[0]['w']") != std::string::npos)
    options.signature.states.push_back({"params['w']", "[0]['w']"});
  mlir::FailureOr<compiler::Executable> compiled =
      compiler::compile(*module, options);
  if (mlir::failed(compiled))
    return {};
  const compiler::ExecutableFunction *about = compiled->find("step");
  if (!about)
    return {};
  Step step{*about, nullptr, nullptr};
  auto verdicts = llvm::json::parse(compiled->texts["verdicts.json"]);
  if (!verdicts) {
    ADD_FAILURE() << llvm::toString(verdicts.takeError());
    return {};
  }
  step.verdicts = std::move(*verdicts);
  auto loaded = compiler::LoadedExecutable::load(std::move(*compiled));
  if (!loaded) {
    ADD_FAILURE() << llvm::toString(loaded.takeError());
    return {};
  }
  step.code = std::move(*loaded);
  return step;
}

int64_t elementsOf(const compiler::TensorDescription &tensor) {
  int64_t elements = 1;
  for (int64_t extent : tensor.shape)
    elements *= extent;
  return elements;
}

/// The result of a run: all state arguments, and the last loss.
struct Outcome {
  std::map<std::string, Tensor> state;
  float loss = 0;
  fp8_memory memory = {}; // after the last step
};

/// The whole batch of a step, by path.
using Batch = std::map<std::string, Tensor>;

/// Runs steps on the rows of one rank; state starts as given, else as zeros.
Outcome runSteps(const Step &compiled, fp8_group *group, int64_t rank,
                 const Batch &initial, const std::vector<Batch> &batches) {
  Outcome outcome;
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(compiled.code->function("step"), 1, &step), FP8_OK);
  if (group)
    EXPECT_EQ(fp8_step_set_group(step, group), FP8_OK);
  const auto &arguments = compiled.about.arguments;
  auto put = [&](size_t index, const float *from, int64_t count) {
    std::memcpy(fp8_step_argument(step, index), from, count * sizeof(float));
  };
  for (size_t i = 0; i < arguments.size(); ++i)
    if (auto first = initial.find(arguments[i].name);
        first != initial.end() && fp8_owns(step, arguments[i].shard))
      put(i, first->second.data(), elementsOf(arguments[i]));
  for (const Batch &batch : batches) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (auto own = batch.find(arguments[i].name); own != batch.end()) {
        int64_t count = elementsOf(arguments[i]);
        put(i, own->second.data() + rank * count, count);
      }
    EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
  }
  EXPECT_EQ(fp8_step_memory(step, &outcome.memory), FP8_OK);
  EXPECT_EQ(fp8_step_gather(step), FP8_OK) << fp8_last_error();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (batches.front().count(arguments[i].name) ||
        arguments[i].dtype != FP8_DTYPE_F32)
      continue;
    auto *data = static_cast<const float *>(fp8_step_argument(step, i));
    outcome.state[arguments[i].name] =
        Tensor(data, data + elementsOf(arguments[i]));
  }
  for (size_t i = 0; i < compiled.about.results.size(); ++i)
    if (compiled.about.results[i].name == "[1]")
      outcome.loss = *static_cast<const float *>(fp8_step_result(step, i));
  fp8_step_destroy(step);
  return outcome;
}

std::vector<Outcome> runOnRanks(const Step &step, int64_t ranks,
                                const Batch &initial,
                                const std::vector<Batch> &batches) {
  std::vector<Outcome> outcomes(ranks);
  ::fp8::test::runRanks(ranks, [&](fp8_group *group, int64_t rank) {
    outcomes[rank] = runSteps(step, group, rank, initial, batches);
  });
  return outcomes;
}

class Random {
public:
  Tensor normal(size_t count) {
    Tensor values(count);
    for (float &value : values)
      value = distribution(engine);
    return values;
  }
  Tensor mask(size_t count) {
    Tensor values = normal(count);
    for (float &value : values)
      value = value > 0.5f;
    return values;
  }

private:
  std::mt19937 engine{7};
  std::normal_distribution<float> distribution;
};

void expectNear(const Outcome &found, const Outcome &expected) {
  ASSERT_EQ(found.state.size(), expected.state.size());
  for (const auto &[path, values] : expected.state) {
    const Tensor &own = found.state.at(path);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(own[i], values[i], 1e-6 * std::max(1.0f, std::abs(values[i])))
          << path << " " << i;
  }
  EXPECT_NEAR(found.loss, expected.loss, 1e-6 * std::abs(expected.loss));
}

void expectEqualBits(const Outcome &a, const Outcome &b) {
  ASSERT_EQ(a.state.size(), b.state.size());
  for (const auto &[path, values] : a.state)
    EXPECT_EQ(std::memcmp(values.data(), b.state.at(path).data(),
                          values.size() * sizeof(float)),
              0)
        << path;
  EXPECT_EQ(a.loss, b.loss);
}

constexpr int64_t kRows = 8, kSteps = 3;

/// Compares N ranks with one process, and one rank with a step without ranks.
void compare(const std::string &text, const Batch &initial,
             const std::function<Batch(int64_t rows)> &makeBatch) {
  auto forRanks = load(forRows(text, kRows), /*dataParallel=*/true);
  ASSERT_TRUE(forRanks);
  for (int64_t ranks : {1, 2, 4}) {
    std::vector<Batch> batches;
    for (int64_t step = 0; step < kSteps; ++step)
      batches.push_back(makeBatch(ranks * kRows));
    auto alone = load(forRows(text, ranks * kRows), /*dataParallel=*/false);
    ASSERT_TRUE(alone);
    Outcome expected = runSteps(alone, nullptr, 0, initial, batches);
    // The state has changed.
    EXPECT_NE(expected.state.begin()->second, initial.begin()->second);
    std::vector<Outcome> found = runOnRanks(forRanks, ranks, initial, batches);
    for (const Outcome &outcome : found) {
      expectNear(outcome, expected);
      expectEqualBits(outcome, found.front());
    }
    if (ranks == 1)
      expectEqualBits(found.front(), expected);
  }
}

} // namespace

TEST(DataParallel, ClippedGradientsAreThoseOfAllRows) {
  Random random;
  Batch initial{{"params['u']", random.normal(16 * 32)},
                {"params['v']", random.normal(32)}};
  compare(kMLP, initial, [&](int64_t rows) {
    return Batch{{"x", random.normal(rows * 16)}, {"t", random.normal(rows)}};
  });
}

namespace {

/// Returns the same step with momentum, and with a weight large enough for
/// kernels of its own.
std::string withMomentum() {
  std::string text = kMLP;
  auto replace = [&](const std::string &from, const std::string &to) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("%x: tensor<ROWSx16xf32> loc",
          "%mu: tensor<16x32xf32> loc(\"opt.trace['u']\"), %mv: "
          "tensor<32xf32> loc(\"opt.trace['v']\"), %x: tensor<ROWSx16xf32> "
          "loc");
  replace("tensor<f32> {jax.result_info = \"[1]\"}",
          "tensor<f32> {jax.result_info = \"[1]\"}, tensor<16x32xf32> "
          "{jax.result_info = \"[2].trace['u']\"}, tensor<32xf32> "
          "{jax.result_info = \"[2].trace['v']\"}");
  replace("%newu = stablehlo.subtract %u, %su : tensor<16x32xf32>",
          R"(%ku = stablehlo.constant dense<0.9> : tensor<16x32xf32>
  %kv = stablehlo.constant dense<0.9> : tensor<32xf32>
  %du = stablehlo.multiply %ku, %mu : tensor<16x32xf32>
  %dv = stablehlo.multiply %kv, %mv : tensor<32xf32>
  %newmu = stablehlo.add %du, %su : tensor<16x32xf32>
  %newmv = stablehlo.add %dv, %sv : tensor<32xf32>
  %newu = stablehlo.subtract %u, %newmu : tensor<16x32xf32>)");
  replace("%newv = stablehlo.subtract %v, %sv",
          "%newv = stablehlo.subtract %v, %newmv");
  replace("return %newu, %newv, %loss : tensor<16x32xf32>, tensor<32xf32>, "
          "tensor<f32>",
          "return %newu, %newv, %loss, %newmu, %newmv : tensor<16x32xf32>, "
          "tensor<32xf32>, tensor<f32>, tensor<16x32xf32>, tensor<32xf32>");
  // The shards must fill pages of 4096 bytes.
  auto widen = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  widen("x32xf32>", "x256xf32>");
  widen("<32xf32>", "<256xf32>");
  widen("x32xi1>", "x256xi1>");
  return text;
}

void compareDealt(const std::string &recipe,
                  const std::vector<std::string> &set, int64_t shards) {
  Random random;
  Batch initial{{"params['u']", random.normal(16 * 256)},
                {"params['v']", random.normal(256)}};
  std::string text = withMomentum();
  auto step =
      load(forRows(text.c_str(), kRows), /*dataParallel=*/true, recipe, set);
  auto dealt = load(forRows(text.c_str(), kRows), /*dataParallel=*/true, recipe,
                    set, /*zero=*/1);
  ASSERT_TRUE(step);
  ASSERT_TRUE(dealt);
  std::map<int64_t, int64_t> bytes;
  for (const auto &argument : dealt.about.arguments)
    if (argument.shard > 0)
      bytes[argument.shard] +=
          elementsOf(argument) * fp8_dtype_size(argument.dtype);
  EXPECT_EQ(static_cast<int64_t>(bytes.size()), shards);
  for (int64_t ranks : {1, 2, 3}) {
    std::vector<Batch> batches;
    for (int64_t step = 0; step < kSteps; ++step)
      batches.push_back({{"x", random.normal(ranks * kRows * 16)},
                         {"t", random.normal(ranks * kRows)}});
    std::vector<Outcome> expected = runOnRanks(step, ranks, initial, batches),
                         found = runOnRanks(dealt, ranks, initial, batches);
    int64_t all = 0, owned = 0;
    for (const auto &[shard, each] : bytes)
      all += each;
    for (const Outcome &outcome : found) {
      expectEqualBits(outcome, expected.front());
      owned += outcome.memory.shards;
      // Shards of other ranks were not touched.
      constexpr int64_t page = 4096;
      EXPECT_LE(outcome.memory.arguments_touched, outcome.memory.arguments +
                                                      outcome.memory.results +
                                                      (shards + 2) * page);
      EXPECT_EQ(expected.front().memory.arguments - outcome.memory.arguments,
                all - outcome.memory.shards);
    }
    EXPECT_EQ(owned, all);
  }
}

} // namespace

TEST(DataParallel, DealtStateIsUpdatedToTheSameBits) {
  // Moments only: the layers read the parameters directly.
  compareDealt("none", {}, 2);
}

TEST(DataParallel, DealtMastersAreSentAsPayloads) {
  compareDealt("tensorwise", {"rules=[]"}, 2);
}

/// What only owners send, and gradients that go to them alone, have verdicts.
TEST(DataParallel, TransfersOfShardsHaveVerdicts) {
  auto step = load(forRows(withMomentum(), kRows), /*dataParallel=*/true,
                   "tensorwise", {"rules=[]"}, /*zero=*/1);
  ASSERT_TRUE(step);
  int64_t payloads = 0, gradients = 0;
  for (const llvm::json::Value &value :
       *step.verdicts.getAsObject()->getArray("collectives")) {
    const llvm::json::Object &row = *value.getAsObject();
    llvm::StringRef what = *row.getString("what"),
                    reason = *row.getString("reason");
    if (what == "owner of params['u']" && row.getString("wire") == "f8E4M3FN") {
      ++payloads;
      EXPECT_EQ(row.getString("operation"), "owner");
      EXPECT_EQ(row.getInteger("bytes"), 16 * 256);
      EXPECT_TRUE(reason.ends_with("every reader takes this payload"));
    }
    if (what == "gradient params['u']") {
      ++gradients;
      EXPECT_EQ(row.getInteger("bytes"), 4 * 16 * 256);
      EXPECT_TRUE(reason.ends_with("; to the owner of its shard alone"));
    }
  }
  EXPECT_EQ(payloads, 1);
  EXPECT_EQ(gradients, 1);
}

TEST(DataParallel, MasksCountTheRowsOfAllRanks) {
  Random random;
  compare(kMasked, {{"params['w']", random.normal(16)}}, [&](int64_t rows) {
    return Batch{{"x", random.normal(rows * 16)}, {"mask", random.mask(rows)}};
  });
}

TEST(DataParallel, MicroBatchesAreSummedFirst) {
  Random random;
  // Micro-batches of one process hold other rows than the ranks', which does
  // not affect sums.
  compare(kMicro, {{"params['w']", random.normal(16)}},
          [&](int64_t rows) { return Batch{{"x", random.normal(rows * 16)}}; });
}

/// Codes are exchanged; the results are the same on all ranks, and close to the
/// exact sum.
TEST(DataParallel, GradientsTravelInFP8) {
  Random random;
  Batch initial{{"params['u']", random.normal(16 * 32)},
                {"params['v']", random.normal(32)}};
  std::vector<Batch> batches{
      {{"x", random.normal(4 * kRows * 16)}, {"t", random.normal(4 * kRows)}}};
  auto exact = load(forRows(kMLP, kRows), /*dataParallel=*/true);
  ASSERT_TRUE(exact);
  Outcome expected = runOnRanks(exact, 4, initial, batches).front();
  for (const char *tile : {"tensor", "1x128"}) {
    auto step = load(
        forRows(kMLP, kRows), /*dataParallel=*/true, "none",
        {std::string("all_reduce={format: f8E4M3FN, tile: ") + tile + "}"});
    ASSERT_TRUE(step);
    std::vector<Outcome> found = runOnRanks(step, 4, initial, batches);
    for (const Outcome &outcome : found)
      expectEqualBits(outcome, found.front());
    for (const char *path : {"params['u']", "params['v']"}) {
      // The automatic scale mu is state.
      const Tensor &mu =
          found.front().state.at("fp8." + std::string(path) + ".all_reduce.mu");
      ASSERT_EQ(mu.size(), 2u);
      EXPECT_NE(mu[0], 0);
      double error = 0, moved = 0;
      const Tensor &narrow = found.front().state.at(path),
                   &wide = expected.state.at(path), &old = initial.at(path);
      for (size_t i = 0; i < wide.size(); ++i) {
        error += std::pow(narrow[i] - wide[i], 2);
        moved += std::pow(wide[i] - old[i], 2);
      }
      // The error is not zero, and the signal is 20 dB above it.
      EXPECT_GT(error, 0) << path;
      EXPECT_LT(error, moved / 100) << path << " " << tile;
    }
  }
}

TEST(DataParallel, GradientsInALoopAreThoseOfAllRows) {
  Random random;
  Batch initial{{"params['w']", random.normal(3 * 16 * 256)}};
  compare(kLayers, initial,
          [&](int64_t rows) { return Batch{{"x", random.normal(rows * 16)}}; });
}

TEST(DataParallel, GradientsInAStackAreThoseOfAllRows) {
  Random random;
  Batch initial{{"params['w']", random.normal(3 * 16 * 256)}};
  // The step is as long as the gradient, so larger weights grow.
  for (float &value : initial.begin()->second)
    value *= 0.1f;
  compare(kStacks, initial,
          [&](int64_t rows) { return Batch{{"x", random.normal(rows * 16)}}; });
}

namespace {
/// Compares layers whose gradients differ by factors of 10 and travel in FP8
/// with those that travel unchanged, and with dealt state.
void compareLayersInFP8(const std::string &text) {
  Random random;
  Batch initial{{"params['w']", random.normal(3 * 16 * 256)}};
  // The layers' gradients differ by factors of 10.
  for (size_t i = 0; i < initial.begin()->second.size(); ++i)
    initial.begin()->second[i] *= std::pow(10.0f, static_cast<float>(i / 4096));
  std::vector<Batch> batches;
  for (int64_t step = 0; step < kSteps; ++step)
    batches.push_back({{"x", random.normal(4 * kRows * 16)}});
  auto exact = load(forRows(text, kRows), /*dataParallel=*/true);
  std::vector<std::string> set = {"all_reduce.format=f8E4M3FN"};
  auto step = load(forRows(text, kRows), /*dataParallel=*/true, "none", set);
  auto dealt = load(forRows(text, kRows), /*dataParallel=*/true, "none", set,
                    /*zero=*/1);
  ASSERT_TRUE(exact && step && dealt);
  Outcome expected = runOnRanks(exact, 4, initial, batches).front();
  std::vector<Outcome> found = runOnRanks(step, 4, initial, batches);
  for (const Outcome &outcome : found)
    expectEqualBits(outcome, found.front());
  for (const Outcome &outcome : runOnRanks(dealt, 4, initial, batches))
    expectEqualBits(outcome, found.front());
  const Tensor &mu = found.front().state.at("fp8.params['w'].all_reduce.mu");
  ASSERT_EQ(mu.size(), 6u);
  const Tensor &narrow = found.front().state.at("params['w']"),
               &wide = expected.state.at("params['w']"),
               &old = initial.begin()->second;
  for (size_t layer = 0; layer < 3; ++layer) {
    // Mu counts the steps of each layer.
    EXPECT_GE(mu[2 * layer], 1) << layer;
    EXPECT_EQ(mu[2 * layer + 1], static_cast<float>(kSteps)) << layer;
    double error = 0, moved = 0;
    for (size_t i = layer * 4096; i < (layer + 1) * 4096; ++i) {
      error += std::pow(narrow[i] - wide[i], 2);
      moved += std::pow(wide[i] - old[i], 2);
    }
    EXPECT_GT(error, 0) << layer;
    EXPECT_LT(error, moved / 100) << layer;
  }
}
} // namespace

/// A reduction in a loop has a mu for each iteration.
TEST(DataParallel, GradientsInALoopTravelInFP8) { compareLayersInFP8(kLayers); }

/// One of a stack has a scale and a mu for each layer.
TEST(DataParallel, GradientsInAStackTravelInFP8) {
  compareLayersInFP8(kStacks);
}

/// Quantized independently, each rank has its own scales; the state is the
/// same.
TEST(DataParallel, StateOfDelayedScalingIsTheSameOnAllRanks) {
  Random random;
  Batch initial{{"params['u']", random.normal(16 * 32)},
                {"params['v']", random.normal(32)}};
  std::vector<Batch> batches;
  for (int64_t step = 0; step < kSteps; ++step)
    batches.push_back({{"x", random.normal(4 * kRows * 16)},
                       {"t", random.normal(4 * kRows)}});
  auto step = load(forRows(kMLP, kRows), /*dataParallel=*/true, "delayed",
                   {"rules=[]"});
  ASSERT_TRUE(step);
  std::vector<Outcome> found = runOnRanks(step, 4, initial, batches);
  bool hasHistory = false;
  for (const auto &[path, values] : found.front().state)
    hasHistory |= path.find("amax_history") != std::string::npos;
  EXPECT_TRUE(hasHistory);
  for (const Outcome &outcome : found)
    expectEqualBits(outcome, found.front());
}
