//===- TestSupport.h - Hand-written executables and files -------*- C++ -*-===//

#ifndef FP8_UNITTESTS_RUNTIME_TESTSUPPORT_H
#define FP8_UNITTESTS_RUNTIME_TESTSUPPORT_H

#include "fp8-c/Runtime.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define EXPECT_HAS(text, part)                                                 \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << text
#define EXPECT_HAS_NOT(text, part)                                             \
  EXPECT_EQ(std::string(text).find(part), std::string::npos) << text

namespace fp8::test {

/// A directory that is removed when the test ends.
class TempDir {
public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fp8-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  std::string path;
};

inline std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
}

inline bool exists(const std::string &path) {
  return std::filesystem::exists(path);
}

inline int64_t occurrences(const std::string &text, const std::string &part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// Returns the status of a forked process that returns what `body` returns, and
/// is ended after a minute.
template <typename Body> int runInChild(Body &&body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

/// Returns text without repeated windows.
inline std::string sampleText(size_t size, unsigned seed = 1) {
  std::string text(size, ' ');
  for (char &c : text) {
    seed = seed * 1664525u + 1013904223u;
    c = static_cast<char>('a' + (seed >> 24) % 26);
  }
  return text;
}

/// Collects the data of a description.
class Builder {
public:
  explicit Builder(const char *name, fp8_entry_fn entry) {
    desc = {};
    desc.name = name;
    desc.entry = entry;
  }
  fp8_tensor_info info(const char *name, fp8_dtype dtype,
                       std::vector<int64_t> dims) {
    shapes.push_back(std::move(dims));
    fp8_tensor_info result = {};
    result.name = name;
    result.dtype = dtype;
    result.rank = static_cast<int32_t>(shapes.back().size());
    result.dims = shapes.back().data();
    result.vocabulary = -1;
    result.state_arg = -1;
    return result;
  }
  Builder &arg(const char *name, fp8_dtype dtype, std::vector<int64_t> dims,
               fp8_role role, int64_t vocabulary = -1) {
    fp8_tensor_info argument = info(name, dtype, std::move(dims));
    argument.role = role;
    argument.vocabulary = vocabulary;
    arguments.push_back(argument);
    return *this;
  }
  /// Makes the last argument one of labels.
  Builder &ofLabels() {
    arguments.back().labels = 1;
    return *this;
  }
  /// Assigns the last argument to a shard.
  Builder &inShard(int64_t number, int64_t slices = 1) {
    arguments.back().shard = number;
    arguments.back().slices = slices;
    return *this;
  }
  Builder &result(const char *name, fp8_dtype dtype, std::vector<int64_t> dims,
                  fp8_kind kind, int32_t stateArg = -1, int32_t ownBuffer = 0) {
    fp8_tensor_info result = info(name, dtype, std::move(dims));
    result.kind = kind;
    result.state_arg = stateArg;
    result.own_buffer = ownBuffer;
    results.push_back(result);
    return *this;
  }
  const fp8_executable_desc &describe() {
    desc.arguments = arguments.data();
    desc.num_arguments = static_cast<int64_t>(arguments.size());
    desc.results = results.data();
    desc.num_results = static_cast<int64_t>(results.size());
    return desc;
  }
  fp8_executable *build() {
    fp8_executable *executable = nullptr;
    EXPECT_EQ(fp8_executable_create(&describe(), &executable), FP8_OK)
        << fp8_last_error();
    return executable;
  }
  fp8_executable_desc desc;

private:
  std::deque<std::vector<int64_t>> shapes;
  std::vector<fp8_tensor_info> arguments, results;
};

/// Sets the state of a step that has never run from a checkpoint.
inline void restore(fp8_step *step, const fp8_executable *executable,
                    const std::string &path) {
  fp8_tensors *tensors = nullptr;
  ASSERT_EQ(fp8_tensors_load(path.c_str(), &tensors), FP8_OK);
  for (int64_t i = 0; i < fp8_executable_num_arguments(executable); ++i)
    for (int64_t j = 0; j < fp8_tensors_count(tensors); ++j) {
      fp8_tensor_info argument, stored;
      const void *data;
      fp8_executable_argument(executable, i, &argument);
      fp8_tensors_get(tensors, j, &stored, &data);
      if (std::string(argument.name) == stored.name)
        std::memcpy(fp8_step_argument(step, i), data,
                    fp8_tensor_bytes(&argument));
    }
  fp8_tensors_destroy(tensors);
}

/// Owns an executable.
struct Executable {
  Executable(fp8_executable *handle) : handle(handle) {}
  ~Executable() { fp8_executable_destroy(handle); }
  Executable(const Executable &) = delete;
  operator const fp8_executable *() const { return handle; }
  fp8_executable *handle;
};

} // namespace fp8::test

#endif // FP8_UNITTESTS_RUNTIME_TESTSUPPORT_H
