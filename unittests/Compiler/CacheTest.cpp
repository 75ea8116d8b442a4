//===- CacheTest.cpp - The cache on disk ----------------------------------===//

#include "fp8/Compiler/Cache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <thread>

using namespace mlir;
using namespace mlir::fp8;

namespace {

class CacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fp8-cache", path));
    directory = path.str().str();
  }
  void TearDown() override {
    (void)llvm::sys::fs::remove_directories(directory);
  }

  static std::string contents(const Cache &cache, llvm::StringRef name) {
    auto bytes = cache.read(name);
    return bytes ? bytes->getBuffer().str() : "none";
  }
  /// Makes an entry look as if it was last used `seconds` seconds ago.
  void age(llvm::StringRef name, int seconds) {
    int file;
    ASSERT_FALSE(
        llvm::sys::fs::openFileForRead(directory + "/" + name.str(), file));
    ASSERT_FALSE(llvm::sys::fs::setLastAccessAndModificationTime(
        file,
        std::chrono::system_clock::now() - std::chrono::seconds(seconds)));
    ::close(file);
  }
  /// Returns the number of files but that of sizes.
  size_t files() const {
    std::error_code error;
    size_t count = 0;
    for (llvm::sys::fs::directory_iterator it(directory, error), end;
         it != end && !error; it.increment(error))
      count += llvm::sys::path::filename(it->path()) != "sizes";
    return count;
  }
  void writeFile(llvm::StringRef name, llvm::StringRef bytes) const {
    std::error_code error;
    llvm::raw_fd_ostream(directory + "/" + name.str(), error) << bytes;
    ASSERT_FALSE(error);
  }

  std::string directory;
};

} // namespace

TEST_F(CacheTest, KeysTellFieldsApart) {
  EXPECT_EQ(CacheKey().add("ab").add("c").digest(),
            CacheKey().add("ab").add("c").digest());
  EXPECT_NE(CacheKey().add("ab").add("c").digest(),
            CacheKey().add("a").add("bc").digest());
  EXPECT_NE(CacheKey().add("").add("a").digest(),
            CacheKey().add("a").add("").digest());
}

TEST_F(CacheTest, ReadsWhatWasWritten) {
  Cache cache(directory + "/made/when/needed");
  EXPECT_EQ(contents(cache, "a"), "none");
  cache.write("a", "one");
  EXPECT_EQ(contents(cache, "a"), "one");
  cache.write("a", "two");
  EXPECT_EQ(contents(cache, "a"), "two");
  cache.remove("a");
  EXPECT_EQ(contents(cache, "a"), "none");
}

TEST_F(CacheTest, WhatCannotBeWrittenIsNotThere) {
  Cache cache("/proc/no/such/place");
  cache.write("a", "one");
  cache.prune();
  EXPECT_EQ(contents(cache, "a"), "none");
}

TEST_F(CacheTest, LeastRecentlyUsedGoesFirst) {
  Cache cache(directory, /*bytes=*/250);
  for (const char *name : {"kernel_a", "kernel_b", "kernel_c"})
    cache.write(name, std::string(100, 'x'));
  age("kernel_a", 300);
  age("kernel_b", 200);
  age("kernel_c", 100);
  // Reading counts as use.
  EXPECT_EQ(contents(cache, "kernel_a").size(), 100u);
  cache.prune();
  EXPECT_EQ(contents(cache, "kernel_b"), "none");
  EXPECT_EQ(contents(cache, "kernel_a").size(), 100u);
  EXPECT_EQ(contents(cache, "kernel_c").size(), 100u);
}

TEST_F(CacheTest, RemovesWhatKilledProcessesLeft) {
  Cache cache(directory);
  cache.write("function_a.tmp-00000000", "old");
  cache.write("function_b.tmp-00000000", "new");
  age("function_a.tmp-00000000", 7200);
  cache.prune();
  EXPECT_EQ(files(), 1u);
}

TEST_F(CacheTest, KeepsFilesThatAreNoEntries) {
  Cache cache(directory, /*bytes=*/250);
  cache.write("data.bin", std::string(1000, 'x'));
  cache.write("notes.tmp-1", "old");
  cache.write("kernel_a", std::string(200, 'x'));
  cache.write("kernel_b", std::string(200, 'x'));
  age("data.bin", 7200);
  age("notes.tmp-1", 7200);
  age("kernel_a", 100);
  cache.prune();
  EXPECT_EQ(contents(cache, "data.bin").size(), 1000u);
  EXPECT_EQ(contents(cache, "notes.tmp-1"), "old");
  EXPECT_EQ(contents(cache, "kernel_a"), "none");
  EXPECT_EQ(contents(cache, "kernel_b").size(), 200u);
}

TEST_F(CacheTest, CountsWhatIsWrittenSinceItLooked) {
  Cache(directory, 1000).prune();
  // A file that it has not written shows when it looks.
  writeFile("kernel_a", std::string(2000, 'x'));
  age("kernel_a", 100);
  Cache(directory, 1000).write("kernel_b", std::string(600, 'x'));
  Cache(directory, 1000).prune();
  EXPECT_EQ(files(), 2u);
  Cache(directory, 1000).write("kernel_c", std::string(600, 'x'));
  age("kernel_b", 50);
  Cache(directory, 1000).prune();
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(contents(Cache(directory), "kernel_c").size(), 600u);
}

TEST_F(CacheTest, LooksAgainIfItsSizesAreOldOrDamaged) {
  for (const char *sizes : {"=1000000 5\n", "=99999999999", "3\n", "?", "",
                            "=\n", "=99999999999 5\nx\n"}) {
    writeFile("kernel_a", std::string(2000, 'x'));
    writeFile("sizes", sizes);
    Cache(directory, 1000).prune();
    EXPECT_EQ(files(), 0u) << sizes;
  }
}

TEST_F(CacheTest, ManyWritersAndReaders) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([this, thread] {
      Cache cache(directory, 3000);
      for (int i = 0; i < 50; ++i) {
        std::string name = "kernel_" + std::to_string(i % 10);
        std::string bytes(1000, static_cast<char>('0' + i % 10));
        cache.write(name, bytes);
        std::string read = contents(cache, name);
        EXPECT_TRUE(read == bytes || read == "none") << read;
        if (thread == 0)
          cache.prune();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  Cache(directory, 3000).prune();
  EXPECT_LE(files(), 3u);
}

TEST_F(CacheTest, Environment) {
  auto set = [](const char *name, const char *value) {
    value ? setenv(name, value, 1) : unsetenv(name);
  };
  set("FP8_CACHE_SIZE", nullptr);
  set("FP8_CACHE_DIR", "");
  EXPECT_FALSE(llvm::cantFail(Cache::fromEnvironment()));
  set("FP8_CACHE_DIR", nullptr);
  set("HOME", nullptr);
  set("XDG_CACHE_HOME", "not/absolute");
  EXPECT_FALSE(llvm::cantFail(Cache::fromEnvironment()));
  set("XDG_CACHE_HOME", directory.c_str());
  std::unique_ptr<Cache> cache = llvm::cantFail(Cache::fromEnvironment());
  ASSERT_TRUE(cache);
  cache->write("a", "one");
  EXPECT_EQ(contents(Cache(directory + "/fp8"), "a"), "one");
  set("XDG_CACHE_HOME", nullptr);
  set("HOME", directory.c_str());
  cache = llvm::cantFail(Cache::fromEnvironment());
  ASSERT_TRUE(cache);
  cache->write("b", "two");
  EXPECT_EQ(contents(Cache(directory + "/.cache/fp8"), "b"), "two");
  set("FP8_CACHE_SIZE", "0");
  EXPECT_FALSE(llvm::cantFail(Cache::fromEnvironment()));
  set("FP8_CACHE_SIZE", "much");
  auto failed = Cache::fromEnvironment();
  ASSERT_FALSE(static_cast<bool>(failed));
  EXPECT_EQ(llvm::toString(failed.takeError()),
            "expected FP8_CACHE_SIZE to be a size like 500MB but got 'much'");
}
