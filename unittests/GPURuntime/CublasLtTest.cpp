//===- CublasLtTest.cpp - Dots by cuBLASLt --------------------------------===//
//
// Uses the emulated driver with an emulated cuBLASLt (test/lib/GPUEmulator),
// which rejects what the documentation does not allow.
//
//===----------------------------------------------------------------------===//

#include "Formats.h"
#include "TestSupport.h"

#include <cmath>
#include <cstring>

using namespace fp8::test;
using fp8::emulator::decode;
using fp8::emulator::encode;
using fp8::emulator::Format;

namespace {

constexpr int64_t rows = 32, columns = 48, depth = 64, workspace = 4096;

Format formatOf(int32_t dtype) {
  return dtype == FP8_DTYPE_F8_E4M3FN ? Format::E4M3
         : dtype == FP8_DTYPE_F8_E5M2 ? Format::E5M2
         : dtype == FP8_DTYPE_BF16    ? Format::BF16
         : dtype == FP8_DTYPE_F16     ? Format::F16
                                      : Format::F32;
}

fp8_gpu_dot dotOf(fp8_dtype lhs, fp8_dtype rhs, fp8_dtype result, bool scaled) {
  fp8_gpu_dot dot = {};
  dot.rows = rows;
  dot.columns = columns;
  dot.depth = depth;
  dot.workspace_bytes = workspace;
  dot.lhs = lhs;
  dot.rhs = rhs;
  dot.result = result;
  dot.lhs_along_k = dot.rhs_along_k = 1;
  dot.scaled = scaled;
  return dot;
}

/// The kernel that `entry` launches: a dot of the arguments, computed twice
/// into the result.
fp8_gpu_kernel kernel;

// External buffers: lhs, rhs, the scales, the result.
void entry(fp8_step *step) {
  int64_t operands[] = {~0, ~1, ~2, ~3, ~4, 256};
  int64_t plain[] = {~0, ~1, ~4, 256};
  for (int i = 0; i < 2; ++i)
    fp8_launch(step, 0, reinterpret_cast<fp8_kernel_fn>(&kernel), 1,
               kernel.dot->scaled ? operands : plain, nullptr,
               kernel.num_operands);
}

struct Function {
  explicit Function(const fp8_gpu_dot &dot) : builder("step", entry), dot(dot) {
    kernel = {};
    kernel.name = "dot";
    kernel.threads = 1;
    kernel.num_operands = dot.scaled ? 6 : 4;
    kernel.dot = &this->dot;
    builder.desc.arena_bytes = 256 + workspace;
    builder.desc.gpu_kernels = kernels;
    builder.desc.num_gpu_kernels = 1;
    auto matrix = [](bool alongK, int64_t across) {
      return alongK ? std::vector<int64_t>{across, depth}
                    : std::vector<int64_t>{depth, across};
    };
    builder
        .arg("a", fp8_dtype(dot.lhs), matrix(dot.lhs_along_k, rows),
             FP8_ROLE_BATCH)
        .arg("b", fp8_dtype(dot.rhs), matrix(dot.rhs_along_k, columns),
             FP8_ROLE_BATCH)
        .arg("s", FP8_DTYPE_F32, {}, FP8_ROLE_BATCH)
        .arg("t", FP8_DTYPE_F32, {}, FP8_ROLE_BATCH)
        .result("c", fp8_dtype(dot.result), {rows, columns}, FP8_KIND_OUTPUT);
  }
  Builder builder;
  fp8_gpu_dot dot;
  const fp8_gpu_kernel *kernels[1] = {&kernel};
};

/// Fills a matrix with small numbers and returns them.
std::vector<double> fill(fp8_step *step, int64_t argument, int32_t dtype,
                         int64_t across, unsigned seed) {
  char *at = static_cast<char *>(fp8_step_argument(step, argument));
  size_t bytes = fp8_dtype_size(fp8_dtype(dtype));
  std::vector<double> values;
  for (int64_t i = 0; i < across * depth; ++i) {
    seed = seed * 1664525 + 1013904223;
    uint32_t bits =
        encode(formatOf(dtype), (int(seed >> 24) - 128) / 64.0, true);
    std::memcpy(at + i * bytes, &bits, bytes);
    values.push_back(decode(formatOf(dtype), bits));
  }
  return values;
}

void expectProduct(const fp8_gpu_dot &dot) {
  Function function(dot);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  for (unsigned run = 0; run < 2; ++run) {
    std::vector<double> a = fill(step, 0, dot.lhs, rows, run),
                        b = fill(step, 1, dot.rhs, columns, run + 7);
    const float scales[] = {0.5f, 3.0f + run};
    for (int i = 0; i < 2; ++i)
      std::memcpy(fp8_step_argument(step, 2 + i), &scales[i], sizeof(float));
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    auto *result = static_cast<const char *>(fp8_step_result(step, 0));
    ASSERT_NE(result, nullptr) << fp8_last_error();
    size_t bytes = fp8_dtype_size(fp8_dtype(dot.result));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += a[dot.lhs_along_k ? i * depth + k : k * rows + i] *
                 b[dot.rhs_along_k ? j * depth + k : k * columns + j];
        if (dot.scaled)
          sum *= double(scales[0]) * scales[1];
        uint32_t bits = 0;
        std::memcpy(&bits, result + (i * columns + j) * bytes, bytes);
        ASSERT_EQ(bits, encode(formatOf(dot.result), sum, false))
            << i << ", " << j;
      }
  }
  fp8_step_destroy(step);
}

std::string failureOf(const fp8_gpu_dot &dot) {
  Function function(dot);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_NE(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(step, nullptr);
  return fp8_last_error();
}

} // namespace

TEST(CublasLt, FP8WithScales) {
  for (fp8_dtype rhs : {FP8_DTYPE_F8_E4M3FN, FP8_DTYPE_F8_E5M2})
    for (fp8_dtype result : {FP8_DTYPE_F32, FP8_DTYPE_BF16, FP8_DTYPE_F16})
      expectProduct(dotOf(FP8_DTYPE_F8_E4M3FN, rhs, result, true));
}

TEST(CublasLt, FP8WithFastSums) {
  fp8_gpu_dot dot =
      dotOf(FP8_DTYPE_F8_E5M2, FP8_DTYPE_F8_E4M3FN, FP8_DTYPE_F32, false);
  dot.fast_accumulation = 1;
  expectProduct(dot);
}

TEST(CublasLt, OtherTypesLieAsTheyLike) {
  for (fp8_dtype type : {FP8_DTYPE_BF16, FP8_DTYPE_F16})
    for (int layout = 0; layout < 4; ++layout) {
      fp8_gpu_dot dot =
          dotOf(type, type, layout % 2 ? type : FP8_DTYPE_F32, false);
      dot.lhs_along_k = layout & 1;
      dot.rhs_along_k = layout >> 1;
      expectProduct(dot);
    }
}

TEST(CublasLtRefuses, WhatTheLibraryDoes) {
  EXPECT_EQ(failureOf(dotOf(FP8_DTYPE_F8_E5M2, FP8_DTYPE_F8_E5M2, FP8_DTYPE_F32,
                            false)),
            "cuBLASLt cannot find an algorithm for dot 'dot' of 'step' "
            "(32x48x64): CUBLAS_STATUS_NOT_SUPPORTED");
  fp8_gpu_dot dot =
      dotOf(FP8_DTYPE_F8_E4M3FN, FP8_DTYPE_F8_E4M3FN, FP8_DTYPE_F32, false);
  dot.lhs_along_k = 0;
  EXPECT_NE(failureOf(dot).find("CUBLAS_STATUS_NOT_SUPPORTED"),
            std::string::npos);
}

TEST(CublasLtRefuses, ABadDescription) {
  Function function(
      dotOf(FP8_DTYPE_BF16, FP8_DTYPE_BF16, FP8_DTYPE_F32, false));
  kernel.num_operands = 5;
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_NE(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(std::string(fp8_last_error()),
            "expected 4 operands of dot 'dot' of 'step' (32x48x64) but got 5");
}

TEST(CublasLtMissing, Library) {
  std::string text =
      failureOf(dotOf(FP8_DTYPE_BF16, FP8_DTYPE_BF16, FP8_DTYPE_F32, false));
  EXPECT_EQ(
      text.find("'step' leaves dots to cuBLASLt (it was compiled with the "
                "target option 'cublaslt'), but the library cannot be "
                "opened: "),
      0u)
      << text;
  EXPECT_NE(text.find("libcublasLt.so.13"), std::string::npos) << text;
  EXPECT_NE(text.find("libcublasLt.so.12"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}
