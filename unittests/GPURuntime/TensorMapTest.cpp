//===- TensorMapTest.cpp - Tensor maps of the emulated driver -------------===//

#include "GPU/Cuda.h"
#include "TestKernels.h"
#include "TestSupport.h"

#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <numeric>

using namespace fp8::cuda;

namespace {

/// A map that the driver accepts: 96 by 40 bytes in boxes of 64 by 8.
struct Arguments {
  TensorMapType type = MapUInt8;
  uint32_t rank = 2;
  uint64_t address = 1 << 20;
  uint64_t sizes[6] = {96, 40, 3, 2, 2, 2};
  uint64_t strides[5] = {96, 3840, 11520, 23040, 46080};
  uint32_t box[6] = {64, 8, 1, 1, 1, 1};
  uint32_t steps[6] = {1, 1, 1, 1, 1, 1};
  TensorMapSwizzle swizzle = Swizzle64Bytes;
  TensorMapFill fill = FillZeros;
  size_t offset = 0; // of the map
};

struct TensorMaps : testing::Test {
  static void SetUpTestSuite() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
#define FP8_FIND(name, arguments)                                              \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name));
    FP8_CUDA_FUNCTIONS(FP8_FIND)
#undef FP8_FIND
    Context context = nullptr;
    ASSERT_EQ(driver.cuInit(0), Success);
    ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), Success);
    ASSERT_EQ(driver.cuCtxSetCurrent(context), Success);
  }

  static Status encode(const std::function<void(Arguments &)> &change) {
    Arguments arguments;
    change(arguments);
    alignas(64) char memory[2 * sizeof(TensorMap)] = {};
    return driver.cuTensorMapEncodeTiled(
        reinterpret_cast<TensorMap *>(memory + arguments.offset),
        arguments.type, arguments.rank,
        reinterpret_cast<void *>(arguments.address), arguments.sizes,
        arguments.strides, arguments.box, arguments.steps, InterleaveNone,
        arguments.swizzle, Promote128Bytes, arguments.fill);
  }

  static Functions driver;
};
Functions TensorMaps::driver;

} // namespace

TEST_F(TensorMaps, AreMade) {
  EXPECT_EQ(encode([](Arguments &) {}), Success);
  for (uint32_t rank = 1; rank <= 5; ++rank)
    EXPECT_EQ(encode([&](Arguments &a) { a.rank = rank; }), Success) << rank;
  EXPECT_EQ(encode([](Arguments &a) {
              a.type = MapBFloat16;
              a.sizes[0] = 48;
              a.box[0] = 16;
              a.swizzle = Swizzle32Bytes;
            }),
            Success);
  // A box may be larger than the tensor.
  EXPECT_EQ(encode([](Arguments &a) { a.box[1] = 256; }), Success);
}

TEST_F(TensorMaps, FollowTheRulesOfTheDocumentation) {
  std::function<void(Arguments &)> mistakes[] = {
      [](Arguments &a) { a.offset = 16; },
      [](Arguments &a) { a.rank = 0; },
      [](Arguments &a) { a.rank = 6; },
      [](Arguments &a) { a.address += 8; },
      [](Arguments &a) { a.sizes[0] = 0; },
      [](Arguments &a) { a.sizes[1] = (uint64_t(1) << 32) + 1; },
      [](Arguments &a) { a.strides[0] = 104; },
      [](Arguments &a) { a.strides[0] = uint64_t(1) << 40; },
      [](Arguments &a) { a.strides[0] = 80; }, // Rows overlap.
      [](Arguments &a) {
        a.rank = 3;
        a.strides[1] = 3840 + 16; // not a multiple of the stride before
      },
      [](Arguments &a) { a.box[1] = 0; },
      [](Arguments &a) { a.box[1] = 257; },
      [](Arguments &a) { a.box[0] = 24; },
      [](Arguments &a) { a.box[0] = 96; }, // more than the span
      [](Arguments &a) { a.steps[1] = 0; },
      [](Arguments &a) { a.steps[1] = 9; },
      [](Arguments &a) { a.swizzle = static_cast<TensorMapSwizzle>(7); },
      [](Arguments &a) { a.fill = FillNaNs; }, // not for integers
      [](Arguments &a) { a.type = static_cast<TensorMapType>(16); },
  };
  for (const auto &mistake : mistakes)
    EXPECT_EQ(encode(mistake), InvalidValue) << &mistake - mistakes;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

/// Copies four rows of 32 bytes by TMA; the second half is outside of the
/// tensor.
const std::string boxImage = R"(
target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global [128 x i8] undef, align 128
@full = internal addrspace(3) global i64 undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3), ptr addrspace(3), ptr, i32, i32, i64, i1)
define ptx_kernel void @box(ptr %in, ptr %out, ptr %scratch, ptr byval([128 x i8]) align 64 %map) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %isFirst = icmp eq i32 %t, 0
  br i1 %isFirst, label %fill, label %wait
fill:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @full, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @full, i32 128)
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3) @tile, ptr addrspace(3) @full, ptr %map, i32 0, i32 2, i64 0, i1 false)
  br label %wait
wait:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %again
again:
  %came = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @full, i32 0)
  br i1 %came, label %read, label %again
read:
  %at = mul i32 %t, 4
  %from = getelementptr i8, ptr addrspace(3) @tile, i32 %at
  %to = getelementptr i8, ptr %out, i32 %at
  %v = load i32, ptr addrspace(3) %from, align 4
  store i32 %v, ptr %to, align 4
  ret void
}
)";

const fp8_gpu_tensor_map boxMap = {
    0, FP8_DTYPE_F8_E4M3FN, 2, 32, {32, 4}, {32}, {32, 4}};
const fp8_gpu_kernel boxKernel = [] {
  fp8_gpu_kernel kernel = fp8::test::kernelOf("box", 32, 2, 8, boxImage);
  kernel.maps = &boxMap;
  kernel.num_maps = 1;
  return kernel;
}();

int64_t firstOffset = 0;

/// A stack of three parts: the host knows the address of each.
void boxes(fp8_step *step) {
  for (int64_t i = 0; i < 3; ++i) {
    int64_t offsets[] = {firstOffset + i * 128, i * 128};
    fp8::test::start(step, i, boxKernel, 1, {~0, ~1}, offsets);
  }
}

struct Boxes {
  Boxes() : builder("boxes", boxes) {
    builder.desc.arena_bytes = 64;
    builder.desc.scratch_bytes = 8;
    builder.desc.gpu_kernels = kernels;
    builder.desc.num_gpu_kernels = 1;
    builder.arg("x", FP8_DTYPE_U8, {512}, FP8_ROLE_BATCH)
        .result("y", FP8_DTYPE_U8, {384}, FP8_KIND_OUTPUT);
  }
  fp8::test::Builder builder;
  const fp8_gpu_kernel *kernels[1] = {&boxKernel};
};

} // namespace

TEST(TensorMapSteps, MapsHaveTheAddressesOfTheirOperands) {
  firstOffset = 0;
  Boxes function;
  fp8::test::Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  for (int run = 0; run < 3; ++run) {
    auto *x = static_cast<uint8_t *>(fp8_step_argument(step, 0));
    std::iota(x, x + 512, static_cast<uint8_t>(run));
    std::vector<uint8_t> expected(384);
    for (int i = 0; i < 384; ++i)
      expected[i] = i % 128 < 64 ? x[i + 64] : 0;
    ASSERT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    auto *y = static_cast<uint8_t *>(fp8_step_result(step, 0));
    ASSERT_NE(y, nullptr) << fp8_last_error();
    EXPECT_EQ(std::vector<uint8_t>(y, y + 384), expected) << run;
  }
  fp8_step_destroy(step);
}

TEST(TensorMapSteps, AnAddressThatTheDriverRejectsIsAnError) {
  firstOffset = 8;
  Boxes function;
  fp8::test::Executable executable(function.builder.build());
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 0, &step), FP8_OK) << fp8_last_error();
  EXPECT_NE(fp8_step_run(step), FP8_OK);
  std::string error = fp8_last_error();
  EXPECT_NE(error.find("the GPU cannot make a tensor map of operand 0 of "
                       "kernel 'box'"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("CUDA_ERROR_INVALID_VALUE"), std::string::npos) << error;
  fp8_step_destroy(step);
}

TEST(TensorMapSteps, AMapNeedsAnOperand) {
  fp8_gpu_tensor_map map = boxMap;
  map.operand = 2;
  fp8_gpu_kernel kernel = boxKernel;
  kernel.maps = &map;
  Boxes function;
  function.kernels[0] = &kernel;
  fp8_executable *executable = nullptr;
  EXPECT_EQ(fp8_executable_create(&function.builder.describe(), &executable),
            FP8_ERROR_INVALID);
  EXPECT_EQ(std::string(fp8_last_error()),
            "tensor map 0 of kernel 'box' has no operand, or not 1 to 5 "
            "dimensions");
}

// Tensor maps need compute capability 9.0.
TEST(TensorMapsOfOldCards, AreRejected) {
  TensorMaps::SetUpTestSuite();
  EXPECT_EQ(TensorMaps::encode([](Arguments &) {}), InvalidValue);
}
