//===- KernelCacheTest.cpp - Cached kernels -------------------------------===//

#include "fp8/Compiler/Cache.h"
#include "fp8/Compiler/Compiler.h"
#include "fp8/Init.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <fstream>

using namespace mlir;
using namespace mlir::fp8;
namespace fs = llvm::sys::fs;

namespace {

/// `once` has a dot and a sum over rows; `twice` has a second dot, and a
/// maximum.
constexpr llvm::StringLiteral once = R"mlir(
func.func public @main(%x: tensor<8x8xf32> loc("x")) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8xf32>
}
)mlir";
constexpr llvm::StringLiteral twice = R"mlir(
func.func public @main(%x: tensor<8x8xf32> loc("x")) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8xf32>
}
)mlir";

class KernelCacheTest : public ::testing::Test {
protected:
  KernelCacheTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    // Counts this pass, which runs on every kernel that codegen lowers.
    context.registerActionHandler(
        [&](function_ref<void()> transform, const tracing::Action &action) {
          if (const auto *execution = dyn_cast<PassExecutionAction>(&action))
            lowered += execution->getPass().getArgument() == "fp8-expand-math";
          transform();
        });
    llvm::SmallString<128> path;
    EXPECT_FALSE(fs::createUniqueDirectory("fp8-kernel-cache", path));
    directory = path.str().str();
    cache = std::make_unique<Cache>(directory);
  }
  ~KernelCacheTest() override { (void)fs::remove_directories(directory); }

  /// Compiles the text and counts the kernels that codegen lowers.
  Executable compileText(StringRef text, bool useCache = true,
                         StringRef cpu = "x86-64-v3") {
    CompileOptions options;
    options.signature.functionKind = FunctionKind::Function;
    options.threads = 1;
    options.targetCPU = cpu.str();
    options.cache = useCache ? cache.get() : nullptr;
    lowered = 0;
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    FailureOr<Executable> result = compile(*module, options);
    EXPECT_TRUE(succeeded(result));
    return succeeded(result) ? std::move(*result) : Executable();
  }

  static std::map<std::string, std::string> objectsOf(const Executable &step) {
    std::map<std::string, std::string> objects;
    for (const ObjectCode &object : step.objects)
      EXPECT_TRUE(objects.insert({object.symbol, object.bytes}).second);
    return objects;
  }

  /// Expects equal code, including the schedule, and equal memory.
  static void expectEqual(const Executable &a, const Executable &b) {
    EXPECT_EQ(objectsOf(a), objectsOf(b));
    EXPECT_EQ(a.functions[0].entry, b.functions[0].entry);
    EXPECT_EQ(a.functions[0].scratchBytes, b.functions[0].scratchBytes);
    EXPECT_EQ(a.functions[0].stats.kernels, b.functions[0].stats.kernels);
    EXPECT_EQ(a.functions[0].kernels, b.functions[0].kernels);
    // The order is the same, so that packages are equal too.
    ASSERT_EQ(a.objects.size(), b.objects.size());
    for (size_t i = 0; i < a.objects.size(); ++i)
      EXPECT_EQ(a.objects[i].symbol, b.objects[i].symbol);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; it != end && !error;
         it.increment(error))
      if (llvm::sys::path::filename(it->path()) != "sizes")
        paths.push_back(it->path());
    return paths;
  }

  MLIRContext context;
  std::string directory;
  std::unique_ptr<Cache> cache;
  int64_t lowered = 0;
};

} // namespace

TEST_F(KernelCacheTest, FoundKernelsAreNotLowered) {
  Executable without = compileText(once, /*useCache=*/false);
  EXPECT_GE(lowered, 2);
  EXPECT_TRUE(files().empty());
  int64_t all = lowered;
  Executable cold = compileText(once);
  EXPECT_EQ(lowered, all);
  EXPECT_EQ(cold.functions[0].stats.cachedKernels, 0);
  expectEqual(cold, without);
  Executable warm = compileText(once);
  EXPECT_EQ(lowered, 0);
  EXPECT_EQ(warm.functions[0].stats.cachedKernels,
            warm.functions[0].stats.kernels);
  expectEqual(warm, without);
}

TEST_F(KernelCacheTest, OnlyNewKernelsAreLowered) {
  Executable without = compileText(twice, /*useCache=*/false);
  int64_t all = lowered;
  compileText(once);
  Executable step = compileText(twice);
  EXPECT_GT(lowered, 0);
  EXPECT_LT(lowered, all);
  EXPECT_EQ(step.functions[0].stats.cachedKernels, all - lowered);
  expectEqual(step, without);
}

TEST_F(KernelCacheTest, EachTargetHasItsOwn) {
  compileText(once, /*useCache=*/true, "x86-64-v2");
  compileText(once, /*useCache=*/true, "x86-64-v3");
  EXPECT_GT(lowered, 0);
}

TEST_F(KernelCacheTest, DamagedEntriesAreCompiledAnew) {
  Executable cold = compileText(once);
  int64_t all = lowered;
  std::vector<std::string> paths = files();
  EXPECT_EQ(static_cast<int64_t>(paths.size()), all);
  for (const std::string &path : paths)
    std::ofstream(path, std::ios::in | std::ios::binary).put('?');
  expectEqual(compileText(once), cold);
  EXPECT_EQ(lowered, all);
  // The entries are valid again.
  expectEqual(compileText(once), cold);
  EXPECT_EQ(lowered, 0);
}
