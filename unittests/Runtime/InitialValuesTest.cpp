//===- InitialValuesTest.cpp - Initial values -----------------------------===//

#include "UnigramTraining.h"

using namespace fp8::test;

namespace {
class InitialValues : public Train {};
} // namespace

TEST_F(InitialValues, OfAnInitializerThatDoesNotFit) {
  Executable bad(makeInit(false));
  options.init = bad;
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "1 missing:\n    s[0].mu['w'] f32[256]");
  EXPECT_HAS(error, "1 not wanted:\n    result[1]['other'] f32[256]");
}

TEST_F(InitialValues, FromAFile) {
  options.steps = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string start = out + "/checkpoint-0.safetensors";
  out = dir / "a";
  options.out_dir = out.c_str();
  options.steps = 40;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string expected = read(out + "/checkpoint-40.safetensors");
  out = dir / "b";
  options.out_dir = out.c_str();
  options.init = nullptr;
  options.init_file = start.c_str();
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(out + "/checkpoint-40.safetensors"), expected);
}

TEST_F(InitialValues, FromAFileAndAnInitializer) {
  // Only the parameter, under its bare name.
  std::vector<float> w(vocabulary, 0.25f);
  Builder builder("", nullptr);
  fp8_tensor_info info = builder.info("w", FP8_DTYPE_F32, {vocabulary});
  const void *data = w.data();
  std::string file = dir / "w.safetensors";
  ASSERT_EQ(fp8_tensors_save(file.c_str(), &info, &data, 1, nullptr, 0),
            FP8_OK);
  options.init_file = file.c_str();
  options.steps = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(
      fp8_tensors_load((out + "/checkpoint-0.safetensors").c_str(), &tensors),
      FP8_OK);
  for (int i = 0; i < fp8_tensors_count(tensors); ++i) {
    const void *values;
    fp8_tensors_get(tensors, i, &info, &values);
    if (std::string(info.name) == "p['w']") {
      EXPECT_EQ(static_cast<const float *>(values)[3], 0.25f);
    } else if (std::string(info.name) == "s[0].mu['w']") {
      EXPECT_EQ(static_cast<const float *>(values)[3], 0);
    }
  }
  fp8_tensors_destroy(tensors);
  // Without the initializer the rest is missing.
  options.init = nullptr;
  options.overwrite = 1;
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "2 missing:");
}

TEST_F(InitialValues, FromADamagedFile) {
  std::string file = dir / "bad.safetensors";
  write(file, "nonsense, but long enough");
  options.init_file = file.c_str();
  EXPECT_EQ(run(), FP8_ERROR_FORMAT);
  EXPECT_HAS(error, "no valid safetensors file");
}
