//===- OutputFileTest.cpp - Files that are written as a whole -------------===//

#include "fp8/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fp8;
namespace fs = llvm::sys::fs;

namespace {

/// A directory that is removed when the test ends.
class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("fp8-output", directory));
  }
  void TearDown() override { fs::remove_directories(directory); }

  std::string at(StringRef name) {
    SmallString<128> path(directory);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }
  std::string read(StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(at(name));
    return buffer ? (*buffer)->getBuffer().str() : "none";
  }

  SmallString<128> directory;
};

TEST_F(OutputFileTest, ALinkStaysAndItsFileIsWritten) {
  ASSERT_FALSE(llvm::errorToBool(writeFile(at("old"), "before")));
  for (const char *target : {"old", "new"}) {
    ASSERT_FALSE(fs::create_link(target, at("link")));
    EXPECT_FALSE(llvm::errorToBool(writeFile(at("link"), "after")));
    EXPECT_TRUE(fs::is_symlink_file(at("link")));
    EXPECT_EQ(read(target), "after");
    fs::remove(at("link"));
  }
}

TEST_F(OutputFileTest, APercentSignIsALetterLikeAnyOther) {
  ASSERT_FALSE(fs::create_directory(at("50%s")));
  for (const char *bytes : {"before", "after"}) {
    EXPECT_FALSE(llvm::errorToBool(writeFile(at("50%s/100%"), bytes)));
    EXPECT_EQ(read("50%s/100%"), bytes);
  }
  // Nothing else is left.
  std::error_code error;
  for (fs::directory_iterator it(at("50%s"), error), end; !error && it != end;
       it.increment(error))
    EXPECT_EQ(llvm::sys::path::filename(it->path()), "100%");
  EXPECT_FALSE(error);
}

} // namespace
