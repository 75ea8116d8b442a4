//===- TensorMapTest.cpp - Tensor maps of the emulated driver -------------===//

#include "GPU/Cuda.h"
#include "gtest/gtest.h"

#include <dlfcn.h>
#include <functional>

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

// Tensor maps need compute capability 9.0.
TEST(TensorMapsOfOldCards, AreRejected) {
  TensorMaps::SetUpTestSuite();
  EXPECT_EQ(TensorMaps::encode([](Arguments &) {}), InvalidValue);
}
