//===- DataTest.cpp - Texts, tokens and arrays that feed a step -----------===//

#include "UnigramTraining.h"

using namespace fp8::test;

namespace {
class Data : public Train {};
} // namespace

TEST_F(Data, IncompleteListsAreMistakes) {
  options.num_alarms = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected 1 alarms but got NULL for number 0");
  options.num_alarms = -1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected a number of alarms but got -1");
  options.num_alarms = 0;
  const char *none[1] = {nullptr};
  options.eval_files = none;
  options.num_eval_files = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 1, &own), FP8_OK);
  EXPECT_EQ(fp8_evaluate(&options, own, options.message, this),
            FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected 1 held-out files but got NULL for number 0");
  fp8_step_destroy(own);
  options.num_eval_files = 0;
  options.num_batches = -1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected batch sources but got less than 0");
  options.num_batches = 1;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_EQ(error, "expected batch sources but got none");
}

TEST_F(Data, BadData) {
  std::string missing = dir / "missing";
  files[0] = missing.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "cannot open '" + missing + "': No such file");

  files[0] = text.c_str();
  write(text, "");
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "is empty");

  write(text, "short");
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "is too short: it has 5 bytes but one row takes 16: at "
                    "least 17 are needed");

  // Enough to train on, but not to hold out.
  write(text, sampleText(100));
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "the held-out text is too short");

  files[0] = dir.path.c_str();
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "is a directory");
  options.num_data_files = 0;
  options.eval = nullptr;
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "no data for batch argument 'x' i32[4,16]");
  EXPECT_FALSE(exists(out));
}

TEST_F(Data, TokensOutsideTheVocabulary) {
  Executable small(makeStep(vocabulary, 128));
  options.step = small;
  std::string contents = sampleText(5000);
  contents[4321] = '\xe9';
  write(text, contents);
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "data file '" + text +
                        "': byte 4321 is 233 but the vocabulary has 128 "
                        "entries");
  std::string tokens16 = dir / "tokens.u16";
  std::string words(10000, '\0');
  words[2 * 77 + 1] = 3; // token 77 is 768
  write(tokens16, words);
  files[0] = tokens16.c_str();
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "token 77 is 768 but the vocabulary has 128 entries");
}

TEST_F(Data, TokenFiles) {
  std::string contents = sampleText(20000);
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string expected = losses(out);
  // The same tokens in other formats give the same run.
  std::string u16 = dir / "t.u16", npy = dir / "t.npy";
  std::string words, longs;
  for (char c : contents) {
    words += c;
    words += '\0';
    longs += c;
    longs += std::string(7, '\0');
  }
  write(u16, words);
  std::string header =
      "{'descr': '<i8', 'fortran_order': False, 'shape': (20000,), }";
  header.resize(118 - 1, ' ');
  header += '\n';
  write(npy, std::string("\x93NUMPY\x01\0", 8) +
                 static_cast<char>(header.size()) + std::string(1, '\0') +
                 header + longs);
  int run_ = 0;
  for (const std::string &file : {u16, npy}) {
    files[0] = file.c_str();
    out = dir / ("run" + std::to_string(run_++));
    options.out_dir = out.c_str();
    ASSERT_EQ(run(), FP8_OK) << error;
    EXPECT_EQ(losses(out), expected);
    EXPECT_HAS(said, "nats per token");
  }
}

TEST_F(Data, WindowsComeFromTheTrainingPartOfTheirFile) {
  // Capitals are held out; neither they nor windows across files may be fed.
  std::string other = dir / "other";
  write(text, std::string(900, 'a') + std::string(100, 'X'));
  write(other, std::string(450, 'b') + std::string(50, 'Y'));
  const char *both[2] = {text.c_str(), other.c_str()};
  options.data_files = both;
  options.num_data_files = 2;
  options.steps = 200;
  int64_t ofA = 0, ofB = 0, mixed = 0;
  hook = [&](int32_t, int32_t *batch) {
    for (int64_t row = 0; row < rows; ++row) {
      std::string line(batch + row * window, batch + (row + 1) * window);
      ofA += line == std::string(window, 'a');
      ofB += line == std::string(window, 'b');
      ++mixed;
    }
  };
  ASSERT_EQ(run(), FP8_OK) << error;
  mixed -= ofA + ofB;
  EXPECT_EQ(mixed, 0);
  // Two thirds of the positions are in the first file.
  EXPECT_NEAR(static_cast<double>(ofA) / (ofA + ofB), 2.0 / 3, 0.06);
}

TEST_F(Data, SeparateHeldOutFiles) {
  std::string other = dir / "other";
  write(other, sampleText(1000, 99));
  const char *heldOut[1] = {other.c_str()};
  options.eval_files = heldOut;
  options.num_eval_files = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_HAS(said, "20,000 bytes to train on, 1,000 held out");
  EXPECT_HAS(said, "on 960 bytes");
}

namespace {
// y is x shifted by one token.
bool shifted;
void pairEntry(fp8_step *step) {
  const uint8_t *x = static_cast<const uint8_t *>(fp8_operand(step, ~1));
  const int32_t *y = static_cast<const int32_t *>(fp8_operand(step, ~0));
  const float *mask = static_cast<const float *>(fp8_operand(step, ~2));
  const uint32_t *key = static_cast<const uint32_t *>(fp8_operand(step, ~3));
  for (int64_t i = 0; i + 1 < 8; ++i)
    shifted &= y[i] == x[i + 1] && y[8 + i] == x[8 + i + 1];
  static_cast<float *>(fp8_operand(step, ~4))[0] = mask[0];
  static_cast<float *>(fp8_operand(step, ~5))[0] =
      static_cast<float>(key[0] >> 8);
}
} // namespace

TEST_F(Data, InputsTargetsArraysAndKeys) {
  Builder builder("step", pairEntry);
  builder.arg("wanted", FP8_DTYPE_I32, {2, 8}, FP8_ROLE_BATCH)
      .ofLabels()
      .arg("inputs", FP8_DTYPE_U8, {2, 8}, FP8_ROLE_BATCH)
      .arg("mask", FP8_DTYPE_F32, {2}, FP8_ROLE_BATCH)
      .arg("rng", FP8_DTYPE_U32, {2}, FP8_ROLE_KEY)
      .result("loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS)
      .result("noise", FP8_DTYPE_F32, {}, FP8_KIND_METRIC);
  Executable pair(builder.build());
  std::vector<float> masks = {1, 0, 2, 0, 3, 0};
  fp8_tensor_info info = builder.info("m", FP8_DTYPE_F32, {3, 2});
  const void *data = masks.data();
  std::string file = dir / "mask.safetensors";
  ASSERT_EQ(fp8_tensors_save(file.c_str(), &info, &data, 1, nullptr, 0),
            FP8_OK);
  options.step = pair;
  options.init = options.eval = nullptr;
  // A float batch argument takes no text.
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "batch argument 'mask'");
  fp8_batch_source source = {"mask", file.c_str(), "m", nullptr, nullptr};
  options.batches = &source;
  options.num_batches = 1;
  options.steps = 5;
  shifted = true;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_TRUE(shifted);
  std::string log = losses(out);
  EXPECT_HAS(log, "1;1;");
  EXPECT_HAS(log, "3;3;");
  EXPECT_HAS(log, "4;1;"); // starts again
  // Keys differ by step, and repeat with the same seed.
  out = dir / "again";
  options.out_dir = out.c_str();
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(losses(out), log);
  options.seed = 6;
  options.overwrite = 1;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_NE(losses(out), log);

  source.tensor = "other";
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "has no tensor 'other'");
  source = {"nothing", file.c_str(), nullptr, nullptr, nullptr};
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "no batch argument 'nothing'; it has 'wanted', 'inputs', "
                    "'mask'");
  source = {"inputs", file.c_str(), nullptr, nullptr, nullptr};
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "expected u8[rows,2,8] (one row a step) or u8[rows,8] (2 "
                    "rows a step) but got f32[3,2]");
}
