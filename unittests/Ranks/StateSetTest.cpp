//===- StateSetTest.cpp - State in one file for each rank -----------------===//

#include "RanksInMemory.h"

#include <dirent.h>
#include <numeric>
#include <set>

using namespace fp8::test;

namespace {

constexpr int64_t kRows = 5, kColumns = 3, kWhole = 32;

/// Builds a step with a stack w whose rows several ranks own, a tensor v with
/// one owner, and a tensor u that all ranks have. A run adds 1 to the first
/// element of u.
fp8_executable *build() {
  Builder builder("set", [](fp8_step *step) {
    ++*static_cast<int32_t *>(fp8_operand(step, ~int64_t(2)));
  });
  builder.arg("w", FP8_DTYPE_I32, {kRows, kColumns}, FP8_ROLE_STATE)
      .inShard(1, kRows)
      .arg("v", FP8_DTYPE_I32, {kWhole}, FP8_ROLE_STATE)
      .inShard(2)
      .arg("u", FP8_DTYPE_I32, {kWhole}, FP8_ROLE_STATE);
  fp8_executable *executable = nullptr;
  (void)fp8_executable_create(&builder.describe(), &executable);
  return executable;
}

std::vector<int32_t> numbersFrom(int32_t first, size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::set<std::string> namesIn(const std::string &directory) {
  std::set<std::string> names;
  DIR *opened = opendir(directory.c_str());
  while (dirent *entry = readdir(opened))
    if (entry->d_name[0] != '.')
      names.insert(entry->d_name);
  closedir(opened);
  return names;
}

/// Reads a tensor of a set.
std::vector<int32_t> read(const std::string &index, const std::string &name) {
  std::vector<int32_t> values;
  fp8_tensors *tensors = nullptr;
  EXPECT_EQ(fp8_tensors_load(index.c_str(), &tensors), FP8_OK)
      << fp8_last_error();
  for (int64_t i = 0; i < fp8_tensors_count(tensors); ++i) {
    fp8_tensor_info info;
    const void *data;
    EXPECT_EQ(fp8_tensors_get(tensors, i, &info, &data), FP8_OK);
    if (info.name != name)
      continue;
    values.resize(fp8_tensor_bytes(&info) / sizeof(int32_t));
    std::memcpy(values.data(), data, values.size() * sizeof(int32_t));
  }
  EXPECT_STREQ(fp8_tensors_metadata(tensors, "step"), "7");
  fp8_tensors_destroy(tensors);
  return values;
}

std::string makeDirectory() {
  std::string path = ::testing::TempDir() + "fp8-set-XXXXXX";
  return mkdtemp(path.data());
}

} // namespace

TEST(StateSet, EachRankWritesWhatItOwns) {
  Executable executable(build());
  std::string directory = makeDirectory(),
              index = directory + "/a.safetensors.index.json";
  std::vector<int32_t> w = numbersFrom(100, kRows * kColumns),
                       v = numbersFrom(200, kWhole),
                       u = numbersFrom(300, kWhole);
  const char *metadata[] = {"step", "7"};
  runRanks(3, [&](fp8_group *group, int64_t rank) {
    fp8_step *step = nullptr;
    ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
    ASSERT_EQ(fp8_step_set_group(step, group), FP8_OK);
    ASSERT_EQ(fp8_step_set_whole(step, 0, w.data()), FP8_OK);
    ASSERT_EQ(fp8_step_set_whole(step, 1, v.data()), FP8_OK);
    ASSERT_EQ(fp8_step_set_whole(step, 2, u.data()), FP8_OK);
    ASSERT_EQ(fp8_step_release(step), FP8_OK);
    auto save = [&] {
      EXPECT_EQ(fp8_step_save_set(step, index.c_str(), metadata, 1), FP8_OK)
          << fp8_last_error();
      EXPECT_EQ(fp8_group_barrier(group), FP8_OK);
    };
    save();
    if (rank == 0) {
      EXPECT_EQ(namesIn(directory),
                (std::set<std::string>{"a-00001-of-00003.safetensors",
                                       "a-00002-of-00003.safetensors",
                                       "a-00003-of-00003.safetensors",
                                       "a.safetensors.index.json"}));
      EXPECT_EQ(read(index, "w"), w);
      EXPECT_EQ(read(index, "v"), v);
      EXPECT_EQ(read(index, "u"), u);
    }
    EXPECT_EQ(fp8_group_barrier(group), FP8_OK);
    // Another set replaces it, and leaves none of its files.
    EXPECT_EQ(fp8_step_run(step), FP8_OK) << fp8_last_error();
    save();
    if (rank == 0) {
      EXPECT_EQ(namesIn(directory).size(), 4u);
      EXPECT_EQ(namesIn(directory).count("a-00001-of-00003.safetensors"), 0u);
      EXPECT_EQ(read(index, "w"), w);
      EXPECT_EQ(read(index, "u").front(), u.front() + 1);
    }
    fp8_step_destroy(step);
  });
}

TEST(StateSet, OfAProcessWithoutAGroup) {
  Executable executable(build());
  std::string directory = makeDirectory(),
              index = directory + "/a.safetensors.index.json";
  std::vector<int32_t> w = numbersFrom(100, kRows * kColumns);
  const char *metadata[] = {"step", "7"};
  fp8_step *step = nullptr;
  ASSERT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
  ASSERT_EQ(fp8_step_set_whole(step, 0, w.data()), FP8_OK);
  EXPECT_EQ(fp8_step_save_set(step, index.c_str(), metadata, 1), FP8_OK)
      << fp8_last_error();
  EXPECT_EQ(namesIn(directory),
            (std::set<std::string>{"a-00001-of-00001.safetensors",
                                   "a.safetensors.index.json"}));
  EXPECT_EQ(read(index, "w"), w);
  // A failure is this process's own.
  index = directory + "/none/a.safetensors.index.json";
  EXPECT_EQ(fp8_step_save_set(step, index.c_str(), metadata, 1), FP8_ERROR_IO);
  EXPECT_EQ(std::string(fp8_last_error()),
            "cannot write '" + directory +
                "/none/a-00001-of-00001.safetensors': No such file or "
                "directory");
  std::string file = directory + "/a.safetensors";
  EXPECT_EQ(fp8_step_save_set(step, file.c_str(), metadata, 1),
            FP8_ERROR_INVALID);
  EXPECT_EQ(std::string(fp8_last_error()),
            "expected the path of an index, FILE.safetensors.index.json, but "
            "got '" +
                file + "'");
  fp8_step_destroy(step);
}
