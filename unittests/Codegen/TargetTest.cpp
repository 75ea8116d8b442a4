//===- TargetTest.cpp - Targets that this machine can run -----------------===//

#include "fp8/Codegen/Target.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "gtest/gtest.h"

using namespace mlir::fp8;

/// Returns the error of code for a CPU that is the oldest with 64 bits but for
/// some features, or "".
static std::string errorOf(const char *features) {
  return llvm::toString(
      checkRunsHere({llvm::sys::getProcessTriple(), "x86-64", features}));
}

TEST(Target, InstructionsThatOccur) {
  if (llvm::Triple(llvm::sys::getProcessTriple()).getArch() !=
      llvm::Triple::x86_64)
    GTEST_SKIP();
  EXPECT_EQ(errorOf(""), "");
  // No CPU has all of these, and code contains none of them.
  EXPECT_EQ(errorOf("+mwaitx,+pku,+rdpru,+wbnoinvd,+sgx,+clzero,+enqcmd"), "");
  // (No CPU with AVX2 has it.)
  std::string error = errorOf("+fma4,+mwaitx");
  if (llvm::sys::getHostCPUFeatures().lookup("avx2"))
    EXPECT_NE(error.find("cannot run code for x86-64: it lacks fma4"),
              std::string::npos)
        << error;
  EXPECT_EQ(error.find("mwaitx"), std::string::npos) << error;
}
