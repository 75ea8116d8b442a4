//===- StoredStateTest.cpp - State in another form ------------------------===//
//
// A hand-written step that stores its weights as bf16 payloads and one scale,
// with the functions that convert from and to the user's f32.
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace fp8::test;

namespace {
constexpr int64_t vocabulary = 256, rows = 4, window = 16;
constexpr int64_t tokens = rows * window;
using Weights = std::vector<float>;

/// Called with the state in every step.
std::function<void(int32_t count, uint16_t *payload, float *scale)> hook;

void encode(const Weights &w, uint16_t *payload, float *scale) {
  float amax = 0;
  for (float x : w)
    amax = std::max(amax, std::abs(x));
  *scale = std::ldexp(1.0f, amax > 0 ? std::ilogb(amax) : 0);
  for (size_t i = 0; i < w.size(); ++i) {
    float x = w[i] / *scale;
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    payload[i] = static_cast<uint16_t>((bits + 0x8000) >> 16);
  }
}

Weights decode(const uint16_t *payload, const float *scale) {
  Weights w;
  for (int64_t i = 0; i < vocabulary; ++i) {
    uint32_t bits = uint32_t(payload[i]) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    w.push_back(x * *scale);
  }
  return w;
}

template <typename T> T *at(fp8_step *step, int64_t external) {
  return static_cast<T *>(fp8_operand(step, ~external));
}

/// A unigram model; adds the gradient step to `w`.
float train(Weights &w, const int32_t *x) {
  float sum = 0, loss = 0;
  for (float v : w)
    sum += std::exp(v);
  Weights gradient;
  for (float v : w)
    gradient.push_back(std::exp(v) / sum);
  for (int64_t i = 0; i < tokens; ++i) {
    loss += std::log(sum) - w[x[i]];
    gradient[x[i]] -= 1.0f / tokens;
  }
  for (size_t i = 0; i < w.size(); ++i)
    w[i] -= 5 * gradient[i];
  return loss / tokens;
}

// Arguments 0 payload, 1 bias, 2 scale, 3 count, 4 x; result 5 loss.
void stepEntry(fp8_step *step) {
  uint16_t *payload = at<uint16_t>(step, 0);
  float *scale = at<float>(step, 2);
  int32_t *count = at<int32_t>(step, 3);
  if (hook)
    hook(*count, payload, scale);
  Weights w = decode(payload, scale);
  at<float>(step, 5)[0] = train(w, at<int32_t>(step, 4));
  encode(w, payload, scale);
  ++*count;
}

void storeEntry(fp8_step *step) {
  const float *w = at<float>(step, 0);
  encode(Weights(w, w + vocabulary), at<uint16_t>(step, 1), at<float>(step, 2));
}

void loadEntry(fp8_step *step) {
  Weights w = decode(at<uint16_t>(step, 1), at<float>(step, 0));
  std::memcpy(at<float>(step, 2), w.data(), vocabulary * sizeof(float));
}

// Arguments 0 w, 1 tokens; result 2.
void evalEntry(fp8_step *step) {
  const float *w = at<float>(step, 0);
  Weights copy(w, w + vocabulary);
  at<float>(step, 2)[0] = train(copy, at<int32_t>(step, 1));
}

void initEntry(fp8_step *step) {
  for (int64_t i = 0; i < vocabulary; ++i)
    at<float>(step, 1)[i] = static_cast<float>(i % 17) * 0.013f;
  at<float>(step, 2)[0] = 7;
}

constexpr auto F32 = FP8_DTYPE_F32;
constexpr auto BF16 = FP8_DTYPE_BF16;
constexpr auto I32 = FP8_DTYPE_I32;

fp8_executable *makeStep(const char *scale = "p['w'].scale") {
  return Builder("step", stepEntry)
      .arg("p['w']", BF16, {vocabulary}, FP8_ROLE_STATE)
      .arg("p['bias']", F32, {}, FP8_ROLE_FROZEN)
      .arg(scale, F32, {}, FP8_ROLE_STATE)
      .arg("count", I32, {}, FP8_ROLE_STATE)
      .arg("x", I32, {rows, window}, FP8_ROLE_BATCH, 256)
      .result("result[0]", BF16, {vocabulary}, FP8_KIND_STATE, 0)
      .result("result[0].scale", F32, {}, FP8_KIND_STATE, 2)
      .result("result[1]", I32, {}, FP8_KIND_STATE, 3)
      .result("loss", F32, {}, FP8_KIND_LOSS)
      .build();
}

fp8_executable *makeStore() {
  return Builder("store", storeEntry)
      .arg("p['w']", F32, {vocabulary}, FP8_ROLE_FROZEN)
      .result("p['w']", BF16, {vocabulary}, FP8_KIND_OUTPUT)
      .result("p['w'].scale", F32, {}, FP8_KIND_OUTPUT)
      .build();
}

fp8_executable *makeLoad(const char *name = "p['w']") {
  return Builder("load", loadEntry)
      .arg("p['w'].scale", F32, {}, FP8_ROLE_FROZEN)
      .arg("p['w']", BF16, {vocabulary}, FP8_ROLE_FROZEN)
      .result(name, F32, {vocabulary}, FP8_KIND_OUTPUT)
      .build();
}

fp8_executable *makeInit() {
  return Builder("init", initEntry)
      .arg("seed", FP8_DTYPE_U32, {}, FP8_ROLE_BATCH)
      .result("result[0]['w']", F32, {vocabulary}, FP8_KIND_OUTPUT)
      .result("result[0]['bias']", F32, {}, FP8_KIND_OUTPUT)
      .result("count", I32, {}, FP8_KIND_OUTPUT)
      .build();
}

fp8_executable *makeEval() {
  return Builder("eval", evalEntry)
      .arg("params['w']", F32, {vocabulary}, FP8_ROLE_FROZEN)
      .arg("tokens", I32, {rows, window}, FP8_ROLE_BATCH)
      .result("result", F32, {}, FP8_KIND_LOSS)
      .build();
}

// The export: half the weights, and a count of two changes.
void encodeEntry(fp8_step *step) {
  for (int64_t i = 0; i < vocabulary; ++i)
    at<float>(step, 1)[i] = at<float>(step, 0)[i] / 2;
  at<int32_t>(step, 2)[0] = 2;
}
void decodeEntry(fp8_step *step) {
  for (int64_t i = 0; i < vocabulary; ++i)
    at<float>(step, 1)[i] = at<float>(step, 0)[i] * 2;
}

fp8_executable *makeEncode(const char *name = "p['w']") {
  return Builder("export", encodeEntry)
      .arg(name, F32, {vocabulary}, FP8_ROLE_CONSTANT)
      .result("w", F32, {vocabulary}, FP8_KIND_OUTPUT)
      .result("w.changed", I32, {}, FP8_KIND_METRIC)
      .build();
}

fp8_executable *makeDecode(const char *name = "w") {
  return Builder("import", decodeEntry)
      .arg(name, F32, {vocabulary}, FP8_ROLE_CONSTANT)
      .result("p['w']", F32, {vocabulary}, FP8_KIND_OUTPUT)
      .build();
}

class StoredState : public ::testing::Test {
protected:
  StoredState()
      : step(makeStep()), store(makeStore()), load(makeLoad()),
        init(makeInit()), eval(makeEval()) {
    hook = nullptr;
    write(text, sampleText(20000));
    options.step = step;
    options.store = store;
    options.load = load;
    options.init = init;
    options.eval = eval;
    options.data_files = files;
    options.num_data_files = 1;
    options.out_dir = out.c_str();
    options.fingerprint = "model/bf16";
    options.steps = 20;
    options.threads = 2;
    options.quiet = 1;
  }
  ~StoredState() override { hook = nullptr; }

  fp8_status run() {
    fp8_status status = fp8_train(&options, &summary);
    error = status == FP8_OK ? "" : fp8_last_error();
    return status;
  }
  fp8_status runTo(const std::string &name) {
    out = dir / name;
    options.out_dir = out.c_str();
    return run();
  }
  std::string save(const char *name, const std::vector<float> &w) {
    Builder builder("", nullptr);
    fp8_tensor_info infos[3] = {
        builder.info("p['w']", F32, {static_cast<int64_t>(w.size())}),
        builder.info("p['bias']", F32, {}), builder.info("count", I32, {})};
    float bias = 7;
    int32_t count = 0;
    const void *data[3] = {w.data(), &bias, &count};
    std::string file = dir / name;
    EXPECT_EQ(fp8_tensors_save(file.c_str(), infos, data, 3, nullptr, 0),
              FP8_OK);
    return file;
  }

  TempDir dir;
  std::string out = dir / "out", text = dir / "text";
  const char *files[1] = {text.c_str()};
  Executable step, store, load, init, eval;
  fp8_train_options options = {};
  fp8_train_summary summary = {};
  std::string error;
};
} // namespace

TEST_F(StoredState, BeginsWithWhatStoreMakesOfTheUsersTree) {
  options.steps = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(fp8_tensors_load(summary.checkpoint, &tensors), FP8_OK);
  Weights expected;
  for (int64_t i = 0; i < vocabulary; ++i)
    expected.push_back(static_cast<float>(i % 17) * 0.013f);
  std::vector<uint16_t> payload(vocabulary);
  float scale;
  encode(expected, payload.data(), &scale);
  int found = 0;
  for (int64_t i = 0; i < fp8_tensors_count(tensors); ++i) {
    fp8_tensor_info info;
    const void *data;
    fp8_tensors_get(tensors, i, &info, &data);
    if (std::string(info.name) == "p['w']") {
      EXPECT_EQ(info.dtype, BF16);
      EXPECT_EQ(std::memcmp(data, payload.data(), 2 * vocabulary), 0);
      ++found;
    } else if (std::string(info.name) == "p['w'].scale") {
      EXPECT_EQ(*static_cast<const float *>(data), scale);
      ++found;
    } else if (std::string(info.name) == "p['bias']") {
      EXPECT_EQ(*static_cast<const float *>(data), 7);
      ++found;
    }
  }
  EXPECT_EQ(found, 3);
  EXPECT_STREQ(fp8_tensors_metadata(tensors, "user_state"),
               R"({"p['w']":{"dtype":"F32","shape":[256]}})");
  EXPECT_STREQ(fp8_tensors_metadata(tensors, "stored_state"),
               R"(["p['w']","p['w'].scale"])");
  fp8_tensors_destroy(tensors);
}

TEST_F(StoredState, EvaluatesWhatLoadMakes) {
  options.eval_every = 5;
  ASSERT_EQ(run(), FP8_OK) << error;
  double heldOut = summary.heldout_loss;
  EXPECT_LT(heldOut, summary.first_loss - 1);
  std::string memory = read(out + "/memory.json");
  EXPECT_HAS(memory, "\"load\"");
  EXPECT_HAS(memory, "\"store\"");
  // The stored arguments: bf16[256], three scalars, the batch.
  EXPECT_EQ(summary.memory.arguments, 2 * vocabulary + 3 * 64 + 4 * tokens);

  // The loss equals that of a step with the decoded weights.
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(fp8_tensors_load(summary.checkpoint, &tensors), FP8_OK);
  const void *payload = nullptr, *scale = nullptr;
  for (int64_t i = 0; i < fp8_tensors_count(tensors); ++i) {
    fp8_tensor_info info;
    const void *data;
    fp8_tensors_get(tensors, i, &info, &data);
    if (std::string(info.name) == "p['w']")
      payload = data;
    else if (std::string(info.name) == "p['w'].scale")
      scale = data;
  }
  ASSERT_TRUE(payload && scale);
  std::string file =
      save("user.safetensors", decode(static_cast<const uint16_t *>(payload),
                                      static_cast<const float *>(scale)));
  fp8_tensors_destroy(tensors);
  Executable plain(
      Builder("step", stepEntry)
          .arg("p['w']", F32, {vocabulary}, FP8_ROLE_STATE)
          .arg("x", I32, {rows, window}, FP8_ROLE_BATCH, 256)
          .result("result[0]", F32, {vocabulary}, FP8_KIND_STATE, 0)
          .result("loss", F32, {}, FP8_KIND_LOSS)
          .build());
  options.step = plain;
  options.store = options.load = options.init = nullptr;
  options.init_file = file.c_str();
  options.steps = 0;
  ASSERT_EQ(runTo("plain"), FP8_OK) << error;
  EXPECT_EQ(summary.heldout_loss, heldOut);
}

TEST_F(StoredState, ResumesExactly) {
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string whole = read(summary.checkpoint);
  options.steps = 8;
  ASSERT_EQ(runTo("parts"), FP8_OK) << error;
  options.steps = 20;
  options.resume = 1;
  options.init = nullptr;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(summary.first_step, 8);
  EXPECT_EQ(read(summary.checkpoint), whole);
}

TEST_F(StoredState, TakesAStoredFileAsItIs) {
  options.steps = 8;
  ASSERT_EQ(run(), FP8_OK) << error;
  std::string start = summary.checkpoint;
  options.steps = 0;
  options.init = nullptr;
  options.init_file = start.c_str();
  ASSERT_EQ(runTo("again"), FP8_OK) << error;
  // Apart from step and data it is the same: the weights were not stored again.
  auto tensorBytes = [](const std::string &file) {
    return file.substr(8 + *reinterpret_cast<const int64_t *>(file.data()));
  };
  EXPECT_EQ(tensorBytes(read(summary.checkpoint)), tensorBytes(read(start)));
}

TEST_F(StoredState, MisfitsAreToldOfTheUsersTree) {
  options.init = nullptr;
  std::string file = save("short.safetensors", Weights(128, 0.5f));
  options.init_file = file.c_str();
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "1 of another type:\n    p['w']: expected f32[256] but got "
                    "f32[128]");
  EXPECT_EQ(error.find("scale"), std::string::npos) << error;
  file = save("whole.safetensors", Weights(256, 0.5f));
  options.init_file = file.c_str();
  EXPECT_EQ(run(), FP8_OK) << error;
}

TEST_F(StoredState, CheckpointOfAnotherRecipe) {
  ASSERT_EQ(run(), FP8_OK) << error;
  Executable plain(makeStep("p['w'].other"));
  options.step = plain;
  options.store = options.load = options.eval = nullptr;
  options.fingerprint = "model/other";
  options.resume = 1;
  EXPECT_EQ(run(), FP8_ERROR_MISMATCH);
  EXPECT_HAS(error, "checkpoint-20.safetensors' is a checkpoint of another "
                    "model or recipe ('model/bf16', this is 'model/other'):\n"
                    "  1 missing:\n    p['w'].other f32[]\n  1 not wanted:\n"
                    "    p['w'].scale f32[]");
}

TEST_F(StoredState, NonFiniteScaleIsNotSaved) {
  options.checkpoint_every = 10;
  options.eval = nullptr;
  hook = [](int32_t count, uint16_t *, float *scale) {
    if (count == 12)
      *scale = std::numeric_limits<float>::infinity();
  };
  EXPECT_EQ(run(), FP8_ERROR_NONFINITE);
  EXPECT_HAS(error, "first non-finite value: p['w']");
  EXPECT_HAS(error,
             "the last checkpoint is " + out + "/checkpoint-10.safetensors");
}

TEST_F(StoredState, FunctionsThatDoNotFit) {
  options.load = nullptr;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "expected both functions of stored state but got 'store' "
                    "alone");
  Executable other(makeLoad("q"));
  options.load = other;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "result of 'load' 'q' f32[256]: expected an argument of "
                    "'store' of this name and type but got none");
  options.load = load;
  Executable plain(makeStep("scale"));
  options.step = plain;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "result of 'store' 'p['w'].scale' f32[]: expected an "
                    "argument of the step of this name and type but got none");
}

TEST_F(StoredState, ExportsTheUsersTree) {
  Executable encode(makeEncode()), decode(makeDecode());
  std::string weights = dir / "weights";
  fp8_export exported = {};
  exported.directory = weights.c_str();
  exported.encode = encode;
  exported.decode = decode;
  exported.eval = eval;
  exported.manifest = R"({"format": "half"})";
  options.export_weights = &exported;
  ASSERT_EQ(run(), FP8_OK) << error;
  fp8_tensors *tensors = nullptr;
  std::string file = weights + "/model.safetensors";
  ASSERT_EQ(fp8_tensors_load(file.c_str(), &tensors), FP8_OK);
  EXPECT_EQ(fp8_tensors_count(tensors), 1);
  EXPECT_STREQ(fp8_tensors_metadata(tensors, "format"), "pt");
  fp8_tensors_destroy(tensors);
  std::string json = read(weights + "/export.json");
  EXPECT_HAS(json, "\"format\": \"half\"");
  EXPECT_HAS(json, "\"step\": 20");
  EXPECT_HAS(json, "\"w.changed\": 2.0");
  std::ostringstream loss;
  loss.precision(17);
  loss << summary.heldout_loss;
  EXPECT_HAS(json, "\"exported\": " + loss.str());
  EXPECT_HAS(json, "\"model\": " + loss.str());

  // The same with a step of the caller's.
  std::string before = read(file);
  fp8_step *own = nullptr;
  ASSERT_EQ(fp8_step_create(step, 2, &own), FP8_OK);
  restore(own, step, summary.checkpoint);
  std::filesystem::remove_all(weights);
  ASSERT_EQ(fp8_export_weights(&options, own, 20), FP8_OK) << fp8_last_error();
  EXPECT_EQ(read(file), before);
  EXPECT_EQ(read(weights + "/export.json"), json);
  // Without data the manifest has no losses.
  options.num_data_files = 0;
  ASSERT_EQ(fp8_export_weights(&options, own, 21), FP8_OK) << fp8_last_error();
  EXPECT_EQ(read(file), before);
  EXPECT_HAS(read(weights + "/export.json"), "\"step\": 21");
  EXPECT_EQ(read(weights + "/export.json").find("heldout"), std::string::npos);
  options.export_weights = nullptr;
  EXPECT_EQ(fp8_export_weights(&options, own, 20), FP8_ERROR_INVALID);
  options.export_weights = &exported;
  options.num_data_files = 1;
  fp8_step_destroy(own);

  // Again from the checkpoint only, without data.
  std::filesystem::remove_all(weights);
  options.resume = 1;
  options.init = options.eval = exported.eval = nullptr;
  options.num_data_files = 0;
  ASSERT_EQ(run(), FP8_OK) << error;
  EXPECT_EQ(read(file), before);
  // More steps would need data.
  options.steps = 21;
  EXPECT_EQ(run(), FP8_ERROR_DATA);
  EXPECT_HAS(error, "no data for batch argument 'x'");
  // The weights that a run begins with are not replaced by those it ends with.
  options.init_file = file.c_str();
  options.overwrite = 1;
  EXPECT_EQ(run(), FP8_ERROR_IO);
  EXPECT_HAS(error, "expected another directory for the weights than that of "
                    "the initial values");
}

TEST_F(StoredState, ExportThatDoesNotFit) {
  Executable stored(makeEncode("p['w'].other")), encode(makeEncode()),
      decode(makeDecode("v"));
  std::string weights = dir / "weights";
  fp8_export exported = {};
  exported.directory = weights.c_str();
  exported.encode = stored;
  options.export_weights = &exported;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "argument of the export 'p['w'].other' f32[256]: the step "
                    "has none like it");
  exported.encode = encode;
  exported.decode = decode;
  EXPECT_EQ(run(), FP8_ERROR_INVALID);
  EXPECT_HAS(error, "argument of what reads the export 'v' f32[256]");
  EXPECT_FALSE(exists(weights));
}
