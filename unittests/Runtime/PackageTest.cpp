//===- PackageTest.cpp - Functions by name --------------------------------===//

#include "TestSupport.h"

using namespace fp8::test;

namespace {

void doNothing(fp8_step *) {}

class Package : public ::testing::Test {
protected:
  Package() {
    EXPECT_EQ(fp8_package_create(&package), FP8_OK);
    Builder step("step", doNothing);
    step.arg("x", FP8_DTYPE_F32, {2, 3}, FP8_ROLE_BATCH)
        .result("loss", FP8_DTYPE_F32, {}, FP8_KIND_LOSS);
    EXPECT_EQ(fp8_package_add(package, &step.describe()), FP8_OK);
  }
  ~Package() override { fp8_package_close(package); }

  /// Opens a directory with this manifest; returns the error.
  std::string failureOf(const std::string &manifest) {
    write(dir / "manifest.json", manifest);
    fp8_package *opened = nullptr;
    EXPECT_NE(fp8_package_open(dir.path.c_str(), &opened), FP8_OK);
    EXPECT_FALSE(opened);
    return fp8_last_error();
  }

  TempDir dir;
  fp8_package *package = nullptr;
};

} // namespace

TEST_F(Package, FunctionsAndTexts) {
  const fp8_executable *step = fp8_package_function(package, "step");
  ASSERT_TRUE(step);
  EXPECT_FALSE(fp8_package_function(package, "init"));
  ASSERT_EQ(fp8_executable_num_arguments(step), 1);
  ASSERT_EQ(fp8_executable_num_results(step), 1);
  fp8_tensor_info info;
  ASSERT_EQ(fp8_executable_argument(step, 0, &info), FP8_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_EQ(info.role, FP8_ROLE_BATCH);
  ASSERT_EQ(fp8_executable_result(step, 0, &info), FP8_OK);
  EXPECT_EQ(info.kind, FP8_KIND_LOSS);
  EXPECT_EQ(fp8_executable_result(step, 1, &info), FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected the index of a result below 1 but got 1");

  EXPECT_FALSE(fp8_package_text(package, "summary.txt"));
  EXPECT_EQ(fp8_package_set_text(package, "summary.txt", "all"), FP8_OK);
  EXPECT_STREQ(fp8_package_text(package, "summary.txt"), "all");
  EXPECT_EQ(fp8_package_set_text(package, "summary.txt", nullptr), FP8_OK);
  EXPECT_FALSE(fp8_package_text(package, "summary.txt"));
}

TEST_F(Package, NeedsAPlace) {
  EXPECT_EQ(fp8_package_create(nullptr), FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected a place for the package but got NULL");
}

TEST_F(Package, NamesAreUnique) {
  Builder again("step", doNothing);
  EXPECT_EQ(fp8_package_add(package, &again.describe()), FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected a function of a name of its own but got 'step'");
}

TEST_F(Package, Options) {
  fp8_package_set_text(package, "fingerprint", "this one");
  fp8_train_options options = {};
  options.seed = 7;
  ASSERT_EQ(fp8_package_options(package, &options, nullptr), FP8_OK);
  EXPECT_EQ(options.step, fp8_package_function(package, "step"));
  EXPECT_FALSE(options.init || options.eval || options.store);
  EXPECT_STREQ(options.fingerprint, "this one");
  EXPECT_EQ(options.seed, 7u);
  fp8_export exported = {};
  EXPECT_EQ(fp8_package_options(package, &options, &exported),
            FP8_ERROR_INVALID);
  EXPECT_STREQ(fp8_last_error(),
               "expected a package that can export weights but this one was "
               "emitted without --export-weights");
  fp8_package *empty = nullptr;
  ASSERT_EQ(fp8_package_create(&empty), FP8_OK);
  EXPECT_EQ(fp8_package_options(empty, &options, nullptr), FP8_ERROR_INVALID);
  fp8_package_close(empty);
}

static const std::string kVersion = std::to_string(FP8_ABI_VERSION);

TEST_F(Package, WhatIsNone) {
  fp8_package *opened = nullptr;
  EXPECT_EQ(fp8_package_open((dir / "none").c_str(), &opened), FP8_ERROR_IO);
  EXPECT_EQ(fp8_last_error(), "expected a package in '" + (dir / "none") +
                                  "' but '" + (dir / "none/manifest.json") +
                                  "' does not exist");
  std::string file = "'" + (dir / "manifest.json") + "'";
  EXPECT_EQ(failureOf("[]"), "expected " + file +
                                 " to be the manifest of a package but it is "
                                 "not");
  EXPECT_EQ(failureOf(R"({"format": "fp8-package", "abi": 99})"),
            file + ": expected a package for version " + kVersion +
                " of the runtime but got one for 99: emit it again");
  EXPECT_EQ(failureOf("{\"format\": "),
            "expected " + file + " to be JSON but it is not, at byte 12");
}

TEST_F(Package, MissingAndWrongEntries) {
  std::string file = "'" + (dir / "manifest.json") + "'";
  auto withRest = [&](const std::string &rest) {
    return failureOf(R"({"format": "fp8-package", "abi": )" + kVersion + rest +
                     "}");
  };
  EXPECT_EQ(withRest(""), file + ": expected 'target' but it is missing");
  EXPECT_EQ(withRest(R"(, "target": null)"),
            file + ": expected 'target' to be an object but got null");
  EXPECT_EQ(withRest(R"(, "target": {"cpu": 7})"),
            file + ": expected 'target.cpu' to be a string but got number");
  std::string target = R"(, "target": {"cpu": "", "features": ""})";
  EXPECT_EQ(withRest(target + R"(, "library": {"file": null})"),
            file + ": expected 'library.file' to be a string but got null");
  write(dir / "code.so", "123456789");
  EXPECT_EQ(
      withRest(target + R"(, "library": {"file": "code.so", "bytes": "9"})"),
      file + ": expected 'library.bytes' to be a whole number but got string");
  EXPECT_EQ(failureOf(R"({"format": null})"),
            "expected " + file +
                " to be the manifest of a package but it is not");
  EXPECT_EQ(failureOf(R"({"format": "fp8-package", "abi": null})"),
            file + ": expected 'abi' to be a whole number but got null");
}

TEST_F(Package, ADamagedManifestIsNotRead) {
  std::string file = "'" + (dir / "manifest.json") + "'";
  auto sized = [](int scratch) {
    return R"({"format": "fp8-package", "abi": )" + kVersion +
           R"(, "manifest_crc32": 123, "scratch_bytes": )" +
           std::to_string(scratch) + "}";
  };
  std::string seven = failureOf(sized(7)), eight = failureOf(sized(8));
  EXPECT_EQ(seven.find("expected " + file + " to have the CRC-32 123 but got "),
            0u);
  EXPECT_NE(seven, eight);
  EXPECT_EQ(failureOf(R"({"format": 1e999})"),
            file + ": [json.exception.out_of_range.406] number overflow "
                   "parsing '1e999'");
}

TEST_F(Package, DamagedLibraryIsNotLoaded) {
  auto manifest = [](int64_t bytes, uint32_t crc) {
    return R"({"format": "fp8-package", "abi": )" + kVersion +
           R"(, "functions": [], "texts": [],
        "target": {"triple": "", "cpu": "", "features": ""},
        "fingerprint": "", "library": {"file": "code.so", "bytes": )" +
           std::to_string(bytes) + ", \"crc32\": " + std::to_string(crc) + "}}";
  };
  EXPECT_EQ(failureOf(manifest(9, 0)), "cannot read '" + (dir / "code.so") +
                                           "': No such file or directory");
  write(dir / "code.so", "123456789");
  EXPECT_EQ(failureOf(manifest(8, 0)),
            "expected '" + (dir / "code.so") + "' to have 8 bytes but got 9");
  EXPECT_EQ(failureOf(manifest(9, 1)),
            "expected '" + (dir / "code.so") +
                "' to have the CRC-32 1 but got 3421780262: it is damaged, or "
                "of another package than manifest.json");
  // The CRC-32 of these digits is valid, but the file is not a library.
  EXPECT_EQ(failureOf(manifest(9, 3421780262)).find("cannot load '"), 0u);
}

TEST(Names, RolesAndKinds) {
  EXPECT_STREQ(fp8_role_name(FP8_ROLE_CONSTANT), "constant");
  EXPECT_STREQ(fp8_kind_name(FP8_KIND_TRACE_ALIGNMENT), "trace_alignment");
  for (int i = 0; i < FP8_NUM_KINDS; ++i)
    EXPECT_TRUE(fp8_kind_name(static_cast<fp8_kind>(i))) << i;
  EXPECT_FALSE(fp8_kind_name(FP8_NUM_KINDS));
  EXPECT_FALSE(fp8_role_name(FP8_NUM_ROLES));
  EXPECT_EQ(fp8_abi_version(), FP8_ABI_VERSION);
}
