//===- DeviceFaultTest.cpp - Missing drivers and devices, faults ----------===//

#include "DeviceFunctions.h"

using namespace fp8::test;

static std::string failureOf(Function &function) {
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_NE(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(step, nullptr);
  return fp8_last_error();
}

TEST(Missing, Driver) {
  Trained function;
  std::string text = failureOf(function);
  EXPECT_EQ(text.find("the code is for an NVIDIA GPU, but there is none: "), 0u)
      << text;
  EXPECT_NE(text.find("libcuda.so.1"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_NE(fp8_gpu_find(), FP8_OK);
  EXPECT_EQ(fp8_last_error(), text);
}

TEST(Missing, Device) {
  Trained function;
  EXPECT_EQ(failureOf(function),
            "the code is for an NVIDIA GPU, but there is none: the driver says "
            "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
}

TEST(Missing, Memory) {
  Trained function;
  EXPECT_EQ(failureOf(function),
            "'step' needs 14.0 KiB of GPU memory, but GPU emulator has 4.0 KiB "
            "free of 4.0 KiB");
}

/// Returns the error of a function whose entry is `entry`.
static std::string faultOf(fp8_entry_fn entry) {
  Trained function(entry);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  EXPECT_NE(fp8_step_run(step), FP8_OK);
  std::string text = fp8_last_error();
  // Later runs fail as well, and nothing hangs.
  EXPECT_NE(fp8_step_run(step), FP8_OK);
  fp8_step_destroy(step);
  return text;
}

static void beyondTheEnd(fp8_step *step) {
  start(step, 0, add, 2, {~0, ~1});
  int64_t offsets[] = {1 << 20};
  start(step, 3, count, 1, {0}, offsets);
}

TEST(Fault, OutOfBounds) {
  EXPECT_EQ(faultOf(beyondTheEnd),
            "launch 3 (count) of 'step': the GPU cannot run launch 3 (count) "
            "of 'step': CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access "
            "was encountered)");
}

static void racing(fp8_step *step) { start(step, 2, race, 1, {0}); }

TEST(Fault, Race) {
  EXPECT_NE(faultOf(racing).find("CUDA_ERROR_LAUNCH_FAILED"),
            std::string::npos);
}

static void unwritten(fp8_step *step) { start(step, 3, count, 1, {64}); }

TEST(Fault, Unwritten) {
  EXPECT_NE(faultOf(unwritten).find("launch 3 (count) of 'step'"),
            std::string::npos);
}

static void wrongOperands(fp8_step *step) { start(step, 3, count, 1, {0, 4}); }

TEST(Fault, BadOperands) {
  EXPECT_NE(faultOf(wrongOperands)
                .find("launch 3 (count) of 'step': expected 1 operands of "
                      "kernel 'count' but got 2"),
            std::string::npos);
}

static void setsOfAnotherKernel(fp8_step *step) {
  startSets(step, 3, count, 1, {0, 4}, 2);
}
static void setsAsOne(fp8_step *step) { start(step, 3, addSets, 1, {0, 4}); }

TEST(Fault, KernelsOfSets) {
  EXPECT_NE(faultOf(setsOfAnotherKernel)
                .find("expected a kernel that takes sets of operands but got "
                      "'count'"),
            std::string::npos);
  EXPECT_NE(faultOf(setsAsOne).find(
                "expected a kernel for one set of operands but got "
                "'add_sets'"),
            std::string::npos);
}

TEST(Fault, IsToldLater) {
  Trained function(racing);
  Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK);
  EXPECT_EQ(fp8_step_run(step), FP8_OK);
  EXPECT_EQ(fp8_step_result(step, 1), nullptr);
  std::string text = fp8_last_error();
  EXPECT_NE(text.find("run 'step'"), std::string::npos) << text;
  std::string hint = "; with FP8_GPU_CHECK=1 the error names the launch";
  EXPECT_NE(text.find(hint), std::string::npos) << text;
  EXPECT_EQ(text.find(hint), text.rfind(hint)) << text;
  fp8_step_destroy(step);
}

/// Returns the error of loading a function whose only kernel is `kernel`.
static std::string loadingFailureOf(fp8_gpu_kernel kernel) {
  Trained function;
  const fp8_gpu_kernel *kernels[] = {&kernel};
  function.builder.desc.gpu_kernels = kernels;
  function.builder.desc.num_gpu_kernels = 1;
  return failureOf(function);
}

TEST(Fault, BadImage) {
  fp8_gpu_kernel kernel = add;
  std::string ptx = ".version 8.4\n.target sm_90a\n";
  kernel.image = ptx.data();
  kernel.image_bytes = static_cast<int64_t>(ptx.size());
  EXPECT_EQ(loadingFailureOf(kernel),
            "the GPU cannot load kernel 'add': CUDA_ERROR_NO_BINARY_FOR_GPU "
            "(no kernel image is available for execution on the device); it is "
            "GPU emulator (compute capability 8.9): the GPU emulator loads "
            "LLVM IR for nvptx64, but this image is machine code or PTX");
}

TEST(Fault, BadName) {
  fp8_gpu_kernel kernel = add;
  kernel.name = "missing";
  EXPECT_EQ(loadingFailureOf(kernel),
            "the GPU cannot find kernel 'missing' of 'step' in its image: "
            "CUDA_ERROR_NOT_FOUND (named symbol not found)");
}

TEST(Fault, TooMuchShared) {
  fp8_gpu_kernel kernel = add;
  kernel.shared_bytes = 1 << 20;
  EXPECT_NE(loadingFailureOf(kernel).find("give kernel 'add' of 'step' 1048576 "
                                          "bytes of shared memory a block"),
            std::string::npos);
}
