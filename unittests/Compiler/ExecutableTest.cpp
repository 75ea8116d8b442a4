//===- ExecutableTest.cpp - Executables as bytes --------------------------===//

#include "fp8/Compiler/Executable.h"
#include "fp8/Compiler/BuildId.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Returns an executable with every optional part. Its objects hold no code.
Executable makeExecutable() {
  TensorDescription state;
  state.name = "p['w']";
  state.shape = {2, 4};
  state.kind = FP8_KIND_PARAMETER;
  TensorDescription batch;
  batch.name = "batch";
  batch.dtype = FP8_DTYPE_I32;
  batch.role = FP8_ROLE_BATCH;
  batch.vocabulary = 256;
  batch.labels = true;
  TensorDescription counter;
  counter.name = "calls";
  counter.dtype = FP8_DTYPE_I64;
  counter.kind = FP8_KIND_STEP;
  counter.zeroInit = true;
  TensorDescription loss;
  loss.name = "loss";
  loss.kind = FP8_KIND_LOSS;
  TensorDescription next = state;
  next.kind = FP8_KIND_STATE;
  next.stateArg = 0;

  ExecutableFunction step;
  step.name = "step";
  step.entry = "fp8_schedule_0123";
  step.kernels = {"fp8_kernel_4567"};
  step.arguments = {state, batch, counter};
  step.results = {loss, next};
  step.constants = {std::string("\0\1\2", 3), "", std::string(70, 'c')};
  step.arenaBytes = 1 << 20;
  step.scratchBytes = 4096;
  step.launchNames = {"kernel a", "kernel b \"quoted\"\n"};
  step.stats.llvmSeconds = 0.25;
  step.stats.launches = 2;
  step.stats.kernels = 1;

  Executable executable;
  executable.functions = {step};
  executable.objects = {{"fp8_kernel_4567", std::string("\x7f"
                                                        "ELF\0",
                                                        5)},
                        {"fp8_schedule_0123", "odd"}};
  executable.target = {"x86_64-unknown-linux-gnu", "znver4", "+avx2,-sse4a"};
  executable.compiler = "fp8";
  executable.build = "abcdef";
  executable.fingerprint = "module/recipe";
  executable.texts = {{"verdicts.json", "{}\n"}, {"recipe.yaml", "name: x"}};
  executable.warnings = {{"step.py", 12, 4, "odd", {"a note"}}};
  return executable;
}

std::string errorOf(StringRef bytes, StringRef name = "entry") {
  llvm::Expected<Executable> parsed = Executable::parse(name, bytes);
  return parsed ? "" : llvm::toString(parsed.takeError());
}

} // namespace

TEST(Executable, ReadsWhatItWrites) {
  Executable executable = makeExecutable();
  llvm::Expected<std::string> bytes = executable.serialize("entry");
  ASSERT_TRUE(static_cast<bool>(bytes));
  llvm::Expected<Executable> parsed = Executable::parse("entry", *bytes);
  ASSERT_TRUE(static_cast<bool>(parsed)) << llvm::toString(parsed.takeError());
  EXPECT_EQ(parsed->manifest(), executable.manifest());
  EXPECT_EQ(parsed->texts, executable.texts);
  EXPECT_EQ(parsed->functions[0].constants, executable.functions[0].constants);
  ASSERT_EQ(parsed->objects.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(parsed->objects[i].symbol, executable.objects[i].symbol);
    EXPECT_EQ(parsed->objects[i].bytes, executable.objects[i].bytes);
  }
  llvm::Expected<std::string> again = parsed->serialize("entry");
  ASSERT_TRUE(static_cast<bool>(again));
  EXPECT_EQ(*again, *bytes);
}

TEST(Executable, DamagedBytesAreErrors) {
  std::string bytes = llvm::cantFail(makeExecutable().serialize("entry"));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(errorOf(StringRef(bytes).take_front(size)), "") << size;
  for (size_t i = 0; i < bytes.size(); ++i) {
    // The line feed that makes the size even carries no information.
    if (i + 1 == bytes.size())
      continue;
    std::string changed = bytes;
    changed[i] ^= 0x10;
    bool isPadding = i + 2 == bytes.size();
    EXPECT_EQ(errorOf(changed).empty(), isPadding) << i;
  }
  EXPECT_EQ(errorOf("a text"), "expected an archive but got something else");
  EXPECT_EQ(errorOf(StringRef(bytes).drop_back(9)),
            "expected a checksum at the end of the archive but got none: it is "
            "truncated or damaged");
}

TEST(Executable, RenamedFilesAreErrors) {
  std::string bytes = llvm::cantFail(makeExecutable().serialize("entry"));
  EXPECT_EQ(errorOf(bytes, "entry"), "");
  EXPECT_NE(errorOf(bytes, "other").find("the archive is damaged"),
            std::string::npos);
}

TEST(Executable, OtherVersionsAreErrors) {
  std::string manifest =
      R"({"format": "fp8-executable", "version": 99, "abi": 2})";
  std::string bytes = llvm::cantFail(
      writeSealedArchive("entry", {{"manifest.json", StringRef(manifest)}}));
  EXPECT_EQ(errorOf(bytes), "expected an executable of version 1 but got 99");
  manifest = R"({"format": "something"})";
  bytes = llvm::cantFail(
      writeSealedArchive("entry", {{"manifest.json", StringRef(manifest)}}));
  EXPECT_EQ(errorOf(bytes),
            "expected the manifest of an executable but got another");
}

TEST(Executable, MissingObjectsAreErrors) {
  Executable executable = makeExecutable();
  executable.objects.pop_back();
  EXPECT_EQ(errorOf(llvm::cantFail(executable.serialize("entry"))),
            "expected the schedule of 'step'");
}

TEST(Executable, MergeKeepsEqualObjectsOnce) {
  Executable one = makeExecutable(), other = makeExecutable();
  other.functions[0].name = "eval";
  other.objects[1].symbol = other.functions[0].entry = "fp8_schedule_89ab";
  other.texts["summary.txt"] = "of the other";
  one.merge(other);
  EXPECT_EQ(one.functions.size(), 2u);
  EXPECT_EQ(one.objects.size(), 3u);
  EXPECT_TRUE(one.find("eval"));
  EXPECT_FALSE(one.find("init"));
  EXPECT_EQ(one.text("summary.txt"), "");
}

TEST(Executable, BuildId) {
  EXPECT_EQ(getCompilerBuildId().size(), 32u);
  EXPECT_TRUE(getCompilerVersion().starts_with("fp8 "));
}
