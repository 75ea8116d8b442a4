//===- StoredStateTest.cpp - Compiling store and load ---------------------===//
//
// The step keeps its weight in FP8. Its payload and scale, and the values that
// `load` restores, are compared bit for bit with the scale rule.
//
//===----------------------------------------------------------------------===//

#include "CompileFunction.h"
#include "fp8/Compiler/Compiler.h"
#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Init.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <map>

using namespace mlir;
using namespace mlir::fp8;

namespace {

constexpr StringLiteral module = R"mlir(
!stored = !fp8.scaled<2x4xf8E4M3FN, tile = [*, *], scale = f32>

func.func public @main(
    %u: tensor<2x4xui8> {fp8.path = "u", fp8.role = "batch"},
    %w: !stored {fp8.path = "w", fp8.role = "state", fp8.kind = "parameter"},
    %x: tensor<2x4xf32> {fp8.path = "x", fp8.role = "batch"})
    -> (tensor<f32> {fp8.path = "loss", fp8.kind = "loss"},
        !stored {fp8.path = "new", fp8.state = "w"}) {
  %wide = fp8.dequantize %w : !stored -> tensor<2x4xf32>
  %0 = stablehlo.convert %u : (tensor<2x4xui8>) -> tensor<2x4xf32>
  %1 = stablehlo.add %wide, %x : tensor<2x4xf32>
  %2 = stablehlo.add %1, %0 : tensor<2x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
  %amax = fp8.amax %2 : tensor<2x4xf32> -> tensor<f32>
  %s, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  %new = fp8.quantize %2, %s, %q rounding = nearest_even, overflow = saturate : tensor<2x4xf32> -> !stored
  return %loss, %new : tensor<f32>, !stored
}

func.func private @fp8_store(%w: tensor<2x4xf32> {fp8.path = "w", fp8.role = "constant"})
    -> (!stored {fp8.path = "w", fp8.kind = "output"}) attributes {fp8.entry = "store"} {
  %amax = fp8.amax %w : tensor<2x4xf32> -> tensor<f32>
  %s, %q = fp8.compute_scale %amax {rule = #fp8.scale_rule<pow2>, format = f8E4M3FN} : tensor<f32> -> tensor<f32>
  %0 = fp8.quantize %w, %s, %q rounding = nearest_even, overflow = saturate : tensor<2x4xf32> -> !stored
  return %0 : !stored
}

func.func private @fp8_load(%w: !stored {fp8.path = "w", fp8.role = "constant"})
    -> (tensor<2x4xf32> {fp8.path = "w", fp8.kind = "output"}) attributes {fp8.entry = "load"} {
  %0 = fp8.dequantize %w : !stored -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
)mlir";

using Values = std::vector<float>;

/// Compiles what the fp8 stage would leave: a public function, and those with
/// `fp8.entry`.
FailureOr<Executable> compileQuantized(ModuleOp module,
                                       const CompileOptions &options) {
  FailureOr<Executable> result = beginExecutable(module, options);
  Reports reports;
  if (failed(result) || failed(compileEntries(module, options, *result)) ||
      failed(
          compileFunction(module, options, CompileStats(), reports, *result)))
    return failure();
  return result;
}

class StoredState : public ::testing::Test {
protected:
  StoredState() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    OwningOpRef<ModuleOp> parsed =
        parseSourceString<ModuleOp>(module, &context);
    if (!parsed)
      return;
    CompileOptions options;
    options.threads = 1;
    FailureOr<Executable> compiled = compileQuantized(*parsed, options);
    if (failed(compiled))
      return;
    auto result = LoadedExecutable::load(std::move(*compiled));
    if (result)
      loaded = std::move(*result);
    else
      ADD_FAILURE() << llvm::toString(result.takeError());
  }

  MLIRContext context;
  std::unique_ptr<LoadedExecutable> loaded;
};

/// A function with its memory.
class Call {
public:
  explicit Call(const fp8_executable *function) {
    EXPECT_EQ(fp8_step_create(function, 1, &step), FP8_OK);
  }
  ~Call() { fp8_step_destroy(step); }
  template <typename T> void set(int64_t index, const std::vector<T> &values) {
    std::memcpy(fp8_step_argument(step, index), values.data(),
                values.size() * sizeof(T));
  }
  void run() { EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error(); }
  template <typename T> std::vector<T> get(int64_t index, size_t count) {
    const T *data = static_cast<const T *>(fp8_step_result(step, index));
    return std::vector<T>(data, data + count);
  }
  int64_t argumentBytes() const {
    fp8_memory memory;
    EXPECT_EQ(fp8_step_memory(step, &memory), FP8_OK);
    return memory.arguments;
  }

private:
  fp8_step *step = nullptr;
};

} // namespace

TEST_F(StoredState, ThreeFunctions) {
  ASSERT_TRUE(loaded && loaded->function("store") && loaded->function("load"));
  // The amax is 6: the scale is 2^ceil(log2(6 / 448)), so payloads are the
  // values times 64. 5.3 is between 5 and 5.5.
  Values w = {0.25f, -1, 6, 2, 5.3f, 0, -3.5f, 1};
  Call store(loaded->function("store"));
  store.set(0, w);
  store.run();
  std::vector<uint8_t> payload = store.get<uint8_t>(0, 8);
  Values scale = store.get<float>(1, 1);
  EXPECT_EQ(scale[0], 1.0f / 64);
  EXPECT_EQ(payload, (std::vector<uint8_t>{0x58, 0xe8, 0x7c, 0x70, 0x7b, 0,
                                           0xf6, 0x68}));

  auto loadOf = [&](const std::vector<uint8_t> &payload, const Values &scale) {
    Call load(loaded->function("load"));
    load.set(0, payload);
    load.set(1, scale);
    load.run();
    return load.get<float>(0, 8);
  };
  Values rounded = w;
  rounded[4] = 5.5f;
  EXPECT_EQ(loadOf(payload, scale), rounded);

  // The step takes u, payload, scale and x in this order, and returns the loss
  // and both updated in place. It adds 200 and subtracts 199.
  Call step(loaded->function("function"));
  step.set(0, std::vector<uint8_t>(8, 200));
  step.set(1, payload);
  step.set(2, scale);
  step.set(3, Values(8, -199));
  step.run();
  Values expected;
  float loss = 0;
  for (float x : rounded) {
    expected.push_back(x + 1);
    loss += expected.back();
  }
  EXPECT_EQ(step.get<float>(0, 1)[0], loss);
  EXPECT_EQ(loadOf(step.get<uint8_t>(1, 8), step.get<float>(2, 1)), expected);
  // Each takes a multiple of 64 bytes.
  EXPECT_EQ(step.argumentBytes(), 4 * 64);
}
