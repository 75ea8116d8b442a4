//===- FilesTest.cpp - safetensors files ----------------------------------===//

#include "TestSupport.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace fp8::test;

/// Returns a file with this header, preceded by its length, and `dataBytes`
/// bytes of data.
static std::string fileWith(const std::string &header, size_t dataBytes,
                            int64_t claimed = -1) {
  uint64_t size = claimed < 0 ? header.size() : claimed;
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i)
    text[i] = static_cast<char>(size >> (8 * i));
  return text + header + std::string(dataBytes, '\0');
}

static std::string loadError(const std::string &contents) {
  TempDir dir;
  write(dir / "a.safetensors", contents);
  fp8_tensors *tensors = nullptr;
  fp8_status status =
      fp8_tensors_load((dir / "a.safetensors").c_str(), &tensors);
  EXPECT_EQ(status, FP8_ERROR_FORMAT);
  EXPECT_EQ(tensors, nullptr);
  fp8_tensors_destroy(tensors);
  return fp8_last_error();
}

TEST(SafeTensors, BadFilesAreClearErrors) {
  EXPECT_HAS(loadError(""), "expected at least 8 bytes but got 0");
  EXPECT_HAS(loadError("1234567"), "but got 7");
  EXPECT_HAS(loadError(fileWith("{}", 0, 1000)), "truncated");
  EXPECT_HAS(loadError(fileWith("{}", 0, int64_t(1) << 62)), "claims");
  EXPECT_HAS(loadError(fileWith("[1]", 0)), "does not begin with '{'");
  EXPECT_HAS(loadError(fileWith("{\"a\": ", 0)), "not valid JSON");
  EXPECT_HAS(loadError(fileWith("{\"a\": 3}", 0)), "expected dtype");
  auto tensor = [](const char *dtype, const char *shape, const char *offsets) {
    return std::string("{\"a\": {\"dtype\": ") + dtype +
           ", \"shape\": " + shape + ", \"data_offsets\": " + offsets + "}}";
  };
  EXPECT_HAS(loadError(fileWith(tensor("\"Q4\"", "[2]", "[0, 8]"), 8)),
             "dtype \"Q4\" is not supported");
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", "[-2]", "[0, 8]"), 8)),
             "shape");
  EXPECT_HAS(
      loadError(fileWith(
          tensor("\"F32\"", "[4294967296, 4294967296, 4294967296]", "[0, 8]"),
          8)),
      "too large");
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", "[2]", "[8, 0]"), 8)),
             "data_offsets");
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", "[2]", "[0, 8]"), 4)),
             "truncated");
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", "[3]", "[0, 8]"), 8)),
             "expected 12 bytes for f32[3] but its offsets give 8");
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", "[1]", "[4, 8]"), 8)),
             "hole");
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", "[1]", "[0, 4]"), 8)),
             "but 8 bytes");
  std::string entry =
      "{\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}";
  EXPECT_HAS(
      loadError(fileWith("{\"a\": " + entry + ", \"b\": " + entry + "}", 4)),
      "overlaps");
  EXPECT_HAS(
      loadError(fileWith("{\"a\": " + entry + ", \"a\": " + entry + "}", 4)),
      "appears twice");
  EXPECT_HAS(loadError(fileWith("{\"__metadata__\": {\"x\": 3}}", 0)),
             "not a string");
  std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_HAS(loadError(fileWith(tensor("\"F32\"", deep.c_str(), "[0, 8]"), 8)),
             "nested more than 8 deep");
}

TEST(SafeTensors, MissingFile) {
  fp8_tensors *tensors = nullptr;
  EXPECT_EQ(fp8_tensors_load("/nowhere/a.safetensors", &tensors), FP8_ERROR_IO);
  EXPECT_HAS(fp8_last_error(), "No such file");
  EXPECT_EQ(fp8_tensors_load("/", &tensors), FP8_ERROR_IO);
  EXPECT_HAS(fp8_last_error(), "directory");
}

static fp8_status saveSample(const std::string &path, size_t floats) {
  Builder builder("", nullptr);
  std::vector<float> x(floats, 1.5f);
  int32_t n = 7;
  uint8_t f8[3] = {1, 2, 255};
  fp8_tensor_info infos[3] = {
      builder.info("p['f8']", FP8_DTYPE_F8_E4M3FN, {3}),
      builder.info("p['x']", FP8_DTYPE_F32, {static_cast<int64_t>(floats)}),
      builder.info("n \"quoted\"", FP8_DTYPE_I32, {})};
  const void *data[3] = {f8, x.data(), &n};
  const char *metadata[] = {"step", "12", "module", "abc"};
  return fp8_tensors_save(path.c_str(), infos, data, 3, metadata, 2);
}

TEST(SafeTensors, RoundTrip) {
  TempDir dir;
  std::string path = dir / "a.safetensors";
  ASSERT_EQ(saveSample(path, 100), FP8_OK) << fp8_last_error();
  EXPECT_FALSE(exists(path + ".fp8-tmp"));
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(fp8_tensors_load(path.c_str(), &tensors), FP8_OK)
      << fp8_last_error();
  ASSERT_EQ(fp8_tensors_count(tensors), 3);
  EXPECT_STREQ(fp8_tensors_metadata(tensors, "step"), "12");
  EXPECT_EQ(fp8_tensors_metadata(tensors, "none"), nullptr);
  int seen = 0;
  for (int i = 0; i < 3; ++i) {
    fp8_tensor_info info;
    const void *data;
    ASSERT_EQ(fp8_tensors_get(tensors, i, &info, &data), FP8_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % fp8_dtype_size(info.dtype),
              0u);
    if (std::string(info.name) == "p['f8']") {
      EXPECT_EQ(info.dtype, FP8_DTYPE_F8_E4M3FN);
      EXPECT_EQ(static_cast<const uint8_t *>(data)[2], 255);
      ++seen;
    } else if (std::string(info.name) == "n \"quoted\"") {
      EXPECT_EQ(info.rank, 0);
      EXPECT_EQ(*static_cast<const int32_t *>(data), 7);
      ++seen;
    } else {
      EXPECT_EQ(info.dims[0], 100);
      EXPECT_EQ(static_cast<const float *>(data)[99], 1.5f);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(fp8_tensors_get(tensors, 3, nullptr, nullptr), FP8_ERROR_INVALID);
  fp8_tensors_destroy(tensors);
}

TEST(SafeTensors, WhatIsMissingIsAMistake) {
  TempDir dir;
  std::string path = dir / "a.safetensors";
  Builder builder("", nullptr);
  fp8_tensor_info infos[2] = {builder.info("empty", FP8_DTYPE_F32, {0}),
                              builder.info("one", FP8_DTYPE_F32, {})};
  const void *none[2] = {nullptr, nullptr};
  EXPECT_EQ(fp8_tensors_save(path.c_str(), infos, none, 1, nullptr, 0), FP8_OK);
  EXPECT_EQ(fp8_tensors_save(path.c_str(), infos, none, 2, nullptr, 0),
            FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(), "expected data for 'one' but got NULL");
  for (int missing : {0, 1}) {
    const char *pair[2] = {"key", "value"};
    pair[missing] = nullptr;
    EXPECT_EQ(fp8_tensors_save(path.c_str(), infos, none, 1, pair, 1),
              FP8_ERROR_INVALID);
    EXPECT_EQ(
        std::string(fp8_last_error()),
        "expected 2 keys and values of metadata but got NULL for number " +
            std::to_string(missing));
  }
  for (int64_t pairs : {int64_t(-1), int64_t(1), INT64_MAX})
    EXPECT_EQ(fp8_tensors_save(path.c_str(), infos, none, 1, nullptr, pairs),
              FP8_ERROR_INVALID);
}

TEST(SafeTensors, NamesAreUtf8) {
  TempDir dir;
  std::string path = dir / "a.safetensors";
  Builder builder("", nullptr);
  const void *data[1] = {&path};
  auto save = [&](const char *name) {
    fp8_tensor_info info = builder.info(name, FP8_DTYPE_U8, {1});
    return fp8_tensors_save(path.c_str(), &info, data, 1, nullptr, 0);
  };
  EXPECT_EQ(save("gr\xc3\xbc\xc3\x9f"), FP8_OK) << fp8_last_error();
  std::string before = read(path);
  EXPECT_EQ(save("bad\xff"), FP8_ERROR_INVALID);
  EXPECT_EQ(std::string(fp8_last_error()),
            "cannot write '" + path +
                "': expected names in UTF-8 but got \"bad\\ufffd\"");
  EXPECT_EQ(read(path), before);
}

TEST(SafeTensors, EveryTruncationIsNoticed) {
  TempDir dir;
  std::string path = dir / "a.safetensors";
  ASSERT_EQ(saveSample(path, 4), FP8_OK);
  std::string whole = read(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    write(path, whole.substr(0, size));
    fp8_tensors *tensors = nullptr;
    EXPECT_EQ(fp8_tensors_load(path.c_str(), &tensors), FP8_ERROR_FORMAT)
        << size;
  }
}

TEST(SafeTensors, FailedWriteKeepsTheOldFile) {
  TempDir dir;
  std::string path = dir / "a.safetensors";
  ASSERT_EQ(saveSample(path, 4), FP8_OK);
  std::string before = read(path);
  // A limit on file sizes makes a write fail midway, like a full disk.
  auto oldHandler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = {4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  fp8_status status = saveSample(path, 100000);
  std::string message = fp8_last_error();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, oldHandler);
  EXPECT_EQ(status, FP8_ERROR_IO);
  EXPECT_HAS(message, "cannot write");
  EXPECT_EQ(read(path), before);
  EXPECT_FALSE(exists(path + ".fp8-tmp"));
  EXPECT_EQ(saveSample(dir / "none/a.safetensors", 4), FP8_ERROR_IO);
}

TEST(SafeTensors, WritersOfOneFileTakeTurns) {
  TempDir dir;
  std::string path = dir / "a.safetensors";
  constexpr int kWriters = 4, kTimes = 25;
  constexpr size_t kFloats = 1 << 18;
  std::vector<std::string> mistakes(kWriters);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([&, writer] {
      Builder builder("", nullptr);
      fp8_tensor_info info = builder.info("x", FP8_DTYPE_F32, {kFloats});
      std::vector<float> x(kFloats, static_cast<float>(writer));
      const void *data[] = {x.data()};
      for (int i = 0; i < kTimes && mistakes[writer].empty(); ++i)
        if (fp8_tensors_save(path.c_str(), &info, data, 1, nullptr, 0))
          mistakes[writer] = fp8_last_error();
    });
  int mixed = 0, unread = 0;
  for (int i = 0; i < 4 * kTimes; ++i) {
    fp8_tensors *tensors = nullptr;
    if (!exists(path))
      continue;
    const void *data = nullptr;
    if (fp8_tensors_load(path.c_str(), &tensors) != FP8_OK ||
        fp8_tensors_get(tensors, 0, nullptr, &data) != FP8_OK) {
      ++unread;
      continue;
    }
    const auto *x = static_cast<const float *>(data);
    mixed += std::count(x, x + kFloats, *x) != kFloats;
    fp8_tensors_destroy(tensors);
  }
  for (std::thread &writer : writers)
    writer.join();
  EXPECT_EQ(mistakes, std::vector<std::string>(kWriters));
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(unread, 0);
  EXPECT_FALSE(exists(path + ".fp8-tmp"));
}

TEST(SafeTensors, LinksAreFollowed) {
  TempDir dir;
  ASSERT_EQ(saveSample(dir / "plain.safetensors", 4), FP8_OK);
  std::string expected = read(dir / "plain.safetensors");
  std::filesystem::create_directory(dir / "far");
  write(dir / "far/old.safetensors", "old");
  for (const char *target : {"far/old.safetensors", "far/new.safetensors"}) {
    std::string link = dir / "link.safetensors", hop = dir / "hop";
    std::filesystem::create_symlink(target, hop);
    std::filesystem::create_symlink("hop", link);
    ASSERT_EQ(saveSample(link, 4), FP8_OK) << fp8_last_error();
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_TRUE(std::filesystem::is_symlink(hop));
    EXPECT_EQ(read(dir / target), expected);
    std::filesystem::remove(link);
    std::filesystem::remove(hop);
  }
  std::filesystem::create_symlink("loop", dir / "loop");
  EXPECT_EQ(saveSample(dir / "loop", 4), FP8_ERROR_IO);
  EXPECT_HAS(fp8_last_error(), "symbolic links");
}

TEST(SafeTensors, APipeIsNoFileToRead) {
  TempDir dir;
  std::string pipe = dir / "pipe.safetensors";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fp8_tensors *tensors = nullptr;
  EXPECT_EQ(fp8_tensors_load(pipe.c_str(), &tensors), FP8_ERROR_IO);
  EXPECT_EQ(std::string(fp8_last_error()),
            "cannot read '" + pipe + "': not a regular file");
}

TEST(SafeTensors, PipesAreWrittenThrough) {
  TempDir dir;
  ASSERT_EQ(saveSample(dir / "plain.safetensors", 4), FP8_OK);
  std::string pipe = dir / "pipe", got(4096, '\0');
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // This opens both ends, so that nothing waits.
  int fd = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(saveSample(pipe, 4), FP8_OK) << fp8_last_error();
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  ssize_t count = ::read(fd, got.data(), got.size());
  close(fd);
  ASSERT_GT(count, 0);
  EXPECT_EQ(got.substr(0, count), read(dir / "plain.safetensors"));
}

/// Returns the error of an index whose file holds "a", a tensor of two bytes.
static std::string indexError(const std::string &index) {
  TempDir dir;
  write(dir / "part.safetensors",
        fileWith(R"({"a": {"dtype": "U8", "shape": [2], )"
                 R"("data_offsets": [0, 2]}})",
                 2));
  std::string path = dir / "model.safetensors.index.json";
  write(path, index);
  fp8_tensors *tensors = nullptr;
  fp8_status status = fp8_tensors_load(path.c_str(), &tensors);
  EXPECT_EQ(status == FP8_OK, tensors != nullptr);
  EXPECT_EQ(fp8_tensors_count(tensors), status == FP8_OK ? 1 : 0);
  fp8_tensors_destroy(tensors);
  return status == FP8_OK ? "" : fp8_last_error();
}

TEST(SafeTensors, AnIndexStandsForItsFiles) {
  // An index like those of shared models, without our metadata.
  EXPECT_EQ(indexError(R"({"metadata": {"total_size": 2},
                           "weight_map": {"a": "part.safetensors"}})"),
            "");
  EXPECT_HAS(indexError(""), "is no valid index: not valid JSON");
  EXPECT_HAS(indexError("{}"), "expected a 'weight_map' of tensors to files");
  EXPECT_HAS(indexError(R"({"weight_map": {"a": )" + std::string(100000, '[') +
                        std::string(100000, ']') + "}}"),
             "nested more than 64 deep");
  EXPECT_HAS(indexError(R"({"weight_map": {"a": "../part.safetensors"}})"),
             "expected a file in the index's directory for 'a' but got "
             "\"../part.safetensors\"");
  EXPECT_HAS(indexError(R"({"weight_map": {"a": "part.safetensors",
                                           "b": "part.safetensors"}})"),
             "part.safetensors': expected tensor 'b', which the index names, "
             "but got none");
  EXPECT_HAS(indexError(R"({"weight_map": {"b": "other.safetensors"}})"),
             "other.safetensors'");
  EXPECT_HAS(indexError(R"({"weight_map": {"a": "x.safetensors.index.json"}})"),
             "expected a safetensors file but got another index");
  EXPECT_HAS(indexError(R"({"metadata": {"set": "1"},
                            "weight_map": {"a": "part.safetensors"}})"),
             "belongs to another set than");
}
