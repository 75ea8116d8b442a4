//===- TestPasses.h - Passes that only tests need ---------------*- C++ -*-===//
//
// Only fp8-opt registers them; they are in no library of the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_TESTPASSES_H
#define FP8_TEST_LIB_TESTPASSES_H

namespace mlir {
namespace fp8 {
namespace test {

/// Registers test-fp8-contraction.
void registerTestContractionPass();

/// Registers test-fp8-break-function.
void registerTestInternalErrorsPass();

/// Registers all of them.
inline void registerTestPasses() {
  registerTestContractionPass();
  registerTestInternalErrorsPass();
}

} // namespace test
} // namespace fp8
} // namespace mlir

#endif // FP8_TEST_LIB_TESTPASSES_H
