//===- ProgramTest.cpp - Compiling files, and the cache -------------------===//

#include "fp8/Compiler/Program.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Init.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <fstream>

using namespace mlir;
using namespace mlir::fp8;

namespace {

constexpr llvm::StringLiteral source = R"mlir(
func.func public @main(%x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
)mlir";

class Program : public ::testing::Test {
protected:
  Program()
      : handler(&context, [this](Diagnostic &diagnostic) {
          for (std::string &line : formatDiagnostic(diagnostic))
            lines.push_back(std::move(line));
          return success();
        }) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    llvm::SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("fp8-program", path));
    directory = path.str().str();
    cache = std::make_unique<Cache>(directory + "/cache");
    write(source);
  }
  ~Program() override { (void)llvm::sys::fs::remove_directories(directory); }

  std::string file() const { return directory + "/function.mlir"; }
  void write(llvm::StringRef text) { std::ofstream(file()) << text.str(); }

  /// Compiles the file; returns whether it came from the cache.
  std::optional<bool> compileAgain(const CompileOptions &changed = {}) {
    CompileOptions options = changed;
    options.name = "function";
    options.signature.functionKind = FunctionKind::Function;
    options.threads = 1;
    options.cache = cache.get();
    std::optional<bool> isFromCache;
    lines.clear();
    FailureOr<Executable> executable = compileFile(
        file(), options, context, [&](const CompiledNotice &notice) {
          isFromCache = notice.isFromCache;
        });
    if (succeeded(executable))
      fingerprint = executable->fingerprint;
    return isFromCache;
  }

  MLIRContext context;
  ScopedDiagnosticHandler handler;
  std::vector<std::string> lines;
  std::string directory, fingerprint;
  std::unique_ptr<Cache> cache;
};

/// Returns the only compiled function in a directory.
std::string findEntry(const std::string &directory) {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(directory, error), end;
       it != end && !error; it.increment(error))
    if (llvm::StringRef(it->path()).contains("function_"))
      return it->path();
  return "";
}

} // namespace

TEST_F(Program, EverythingThatMattersIsInTheKey) {
  EXPECT_EQ(compileAgain(), false);
  std::string first = fingerprint;
  EXPECT_EQ(compileAgain(), true);
  EXPECT_EQ(fingerprint, first);
  CompileOptions options;
  options.returnLogits = true;
  EXPECT_EQ(compileAgain(options), false);
  options = CompileOptions();
  options.entry = "main";
  EXPECT_EQ(compileAgain(options), false);
  options = CompileOptions();
  options.signature.roles = {{"x", "frozen"}};
  EXPECT_EQ(compileAgain(options), false);
  EXPECT_EQ(fingerprint, first);
  options = CompileOptions();
  options.recipe = "tensorwise";
  EXPECT_EQ(compileAgain(options), false);
  std::string recipe = fingerprint;
  EXPECT_NE(recipe, first);
  options.recipeOverrides = {"forward.activation.format=f8E5M2"};
  EXPECT_EQ(compileAgain(options), false);
  EXPECT_NE(fingerprint, recipe);
  write((source + "// changed\n").str());
  EXPECT_EQ(compileAgain(), false);
  EXPECT_NE(fingerprint, first);
  write(source);
  EXPECT_EQ(compileAgain(), true);
}

TEST_F(Program, WarningsAreRepeated) {
  ASSERT_EQ(compileAgain(), false);
  std::string entry = findEntry(directory + "/cache");
  auto bytes = llvm::MemoryBuffer::getFile(entry);
  ASSERT_TRUE(static_cast<bool>(bytes));
  StringRef name = llvm::sys::path::filename(entry);
  Executable executable =
      llvm::cantFail(Executable::parse(name, (*bytes)->getBuffer()));
  executable.warnings = {{"step.py", 12, 4, "odd", {"a note"}},
                         {"", 0, 0, "nowhere", {}}};
  std::ofstream(entry, std::ios::binary)
      << llvm::cantFail(executable.serialize(name));
  EXPECT_EQ(compileAgain(), true);
  EXPECT_EQ(lines, (std::vector<std::string>{"warning: step.py:12:4: odd",
                                             "note: step.py:12:4: a note",
                                             "warning: nowhere"}));
}

TEST_F(Program, ErrorsAreNotKept) {
  CompileOptions options;
  options.recipe = "no-such-recipe";
  EXPECT_EQ(compileAgain(options), std::nullopt);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].find("error: unknown recipe 'no-such-recipe'"), 0u);
  write("func.func public @main() { nonsense }");
  EXPECT_EQ(compileAgain(), std::nullopt);
  EXPECT_EQ(compileAgain(), std::nullopt);
  EXPECT_EQ(findEntry(directory + "/cache"), "");
}
