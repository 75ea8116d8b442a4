//===- Package.cpp - Compiled functions by name ---------------------------===//

#include "Package.h"
#include "Support/Cpu.h"
#include "Support/Files.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace fp8::rt;

//===----------------------------------------------------------------------===//
// Shared libraries
//===----------------------------------------------------------------------===//

namespace {
/// The paths by which libraries are loaded. dlopen remembers what it has loaded
/// by path; if another file has replaced that one, `./` before the name makes a
/// path that is new to it.
class LoadedPaths {
public:
  /// Lives as long as any package, also a static one.
  static LoadedPaths &get() {
    static LoadedPaths &paths = *new LoadedPaths;
    return paths;
  }

  /// Loads a file and sets `path` to the one by which dlopen knows it.
  void *load(std::string &path) {
    std::lock_guard<std::mutex> lock(mutex);
    struct stat info;
    if (stat(path.c_str(), &info) == 0) {
      Identity identity(info.st_dev, info.st_ino);
      while (known.emplace(path, identity).first->second != identity)
        path.insert(path.rfind('/') + 1, "./");
    }
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  void unload(void *handle, const std::string &path) {
    std::lock_guard<std::mutex> lock(mutex);
    dlclose(handle);
    // A path that dlopen has forgotten may stand for another file.
    if (void *kept = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD))
      dlclose(kept);
    else
      known.erase(path);
  }

private:
  using Identity = std::pair<dev_t, ino_t>;
  std::mutex mutex;
  std::map<std::string, Identity> known;
};
} // namespace

Library::Library(const std::string &file) : file(file), path(file) {
  handle = LoadedPaths::get().load(path);
  if (!handle)
    throw Error(FP8_ERROR_IO, str("cannot load '", file, "': ", dlerror()));
}

Library::~Library() {
  if (handle)
    LoadedPaths::get().unload(handle, path);
}

void *Library::find(const std::string &symbol) const {
  void *address = dlsym(handle, symbol.c_str());
  if (!address)
    throw Error(FP8_ERROR_FORMAT, str("expected '", file, "' to export '",
                                      symbol, "' but it does not"));
  return address;
}

//===----------------------------------------------------------------------===//
// The manifest
//===----------------------------------------------------------------------===//

namespace {
/// What a value of the manifest is to be, for errors.
template <typename T> constexpr const char *kWanted = "a whole number";
template <> constexpr const char *kWanted<std::string> = "a string";
template <> constexpr const char *kWanted<bool> = "true or false";
template <>
constexpr const char *kWanted<std::vector<int64_t>> = "a list of numbers";

/// A value of the manifest and its place, which errors name.
class Entry {
public:
  Entry(const std::string &file, const nlohmann::json &json,
        std::string place = "")
      : file(file), json(json), place(std::move(place)) {}

  bool has(const std::string &key) const { return json.contains(key); }
  Entry at(const std::string &key) const {
    std::string inner = place.empty() ? key : str(place, ".", key);
    if (!json.is_object())
      fail("an object");
    if (!has(key))
      throw Error(FP8_ERROR_FORMAT, str("'", file, "': expected '", inner,
                                        "' but it is missing"));
    return Entry(file, json.at(key), inner);
  }
  std::vector<Entry> list() const {
    if (!json.is_array())
      fail("a list");
    std::vector<Entry> entries;
    for (size_t i = 0; i < json.size(); ++i)
      entries.emplace_back(file, json[i], str(place, "[", i, "]"));
    return entries;
  }
  template <typename T> T get() const {
    // (A number beyond the type's would become another one.)
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      if (!json.is_number_integer())
        fail(kWanted<T>);
    try {
      return json.get<T>();
    } catch (const nlohmann::json::exception &) {
      fail(kWanted<T>);
    }
  }
  template <typename T> T get(const std::string &key, T missing) const {
    return has(key) ? at(key).get<T>() : missing;
  }
  /// The enum value with this name.
  template <typename T>
  T named(int count, const char *(*nameOf)(T), const char *what) const {
    std::string name = get<std::string>();
    for (int i = 0; i < count; ++i)
      if (name == nameOf(static_cast<T>(i)))
        return static_cast<T>(i);
    throw Error(FP8_ERROR_FORMAT,
                str("'", file, "': expected '", place, "' to be a ", what,
                    " but got '", name, "'"));
  }
  /// The text where it lies in the manifest.
  const char *text() const {
    if (!json.is_string())
      fail(kWanted<std::string>);
    return json.get_ref<const std::string &>().c_str();
  }

  const std::string &manifest() const { return file; }

private:
  [[noreturn]] void fail(const char *wanted) const {
    throw Error(FP8_ERROR_FORMAT,
                str("'", file, "': expected '", place, "' to be ", wanted,
                    " but got ", json.type_name()));
  }

  const std::string &file;
  const nlohmann::json &json;
  std::string place;
};

/// The dimension lists that a description points to.
struct Sizes {
  std::vector<int64_t> shape, whole, partOffsets;
};
} // namespace

/// Returns an argument or result of the manifest. The result points into the
/// manifest and into `sizes`, which this function fills.
static fp8_tensor_info readTensor(const Entry &entry, Sizes &sizes) {
  fp8_tensor_info info = {};
  info.name = entry.at("name").text();
  info.dtype = entry.at("dtype").named(FP8_NUM_DTYPES, fp8_dtype_name, "dtype");
  sizes.shape = entry.at("shape").get<std::vector<int64_t>>();
  info.rank = static_cast<int32_t>(sizes.shape.size());
  info.dims = sizes.shape.data();
  info.kind = entry.at("kind").named(FP8_NUM_KINDS, fp8_kind_name, "kind");
  if (entry.has("role"))
    info.role = entry.at("role").named(FP8_NUM_ROLES, fp8_role_name, "role");
  info.vocabulary = entry.get("vocabulary", int64_t(-1));
  info.labels = entry.get("labels", false);
  info.zero_init = entry.get("zero_init", false);
  info.shard = entry.get("shard", int64_t(0));
  info.slices = entry.get("slices", int64_t(1));
  sizes.whole = entry.get("whole", std::vector<int64_t>());
  sizes.partOffsets = entry.get("part_offsets", std::vector<int64_t>());
  if (!sizes.whole.empty()) {
    if (sizes.whole.size() != sizes.shape.size() ||
        sizes.partOffsets.size() % sizes.whole.size() != 0)
      throw Error(FP8_ERROR_FORMAT,
                  str("'", info.name, "': expected offsets of parts of ",
                      sizes.shape.size(), " dimensions but got ",
                      sizes.partOffsets.size(), " numbers"));
    info.whole_dims = sizes.whole.data();
    info.part_offsets = sizes.partOffsets.data();
    info.num_parts =
        static_cast<int64_t>(sizes.partOffsets.size() / sizes.whole.size());
    info.part_blocks = entry.get("part_blocks", int64_t(1));
  }
  info.state_arg = entry.get("state_arg", -1);
  return info;
}

/// Adds one function, described by the manifest and the library.
static void addFunction(fp8_package &package, const Entry &entry,
                        const fp8_package_code &code) {
  std::vector<Entry> arguments = entry.at("arguments").list();
  std::vector<Entry> results = entry.at("results").list();
  std::vector<Sizes> sizes(arguments.size() + results.size());
  std::vector<fp8_tensor_info> infos;
  for (const std::vector<Entry> *list : {&arguments, &results})
    for (const Entry &tensor : *list)
      infos.push_back(readTensor(tensor, sizes[infos.size()]));
  std::vector<const char *> names;
  for (const Entry &launch : entry.at("launches").list())
    names.push_back(launch.text());
  fp8_executable_desc desc = {};
  desc.name = code.function;
  desc.entry = code.entry;
  desc.arguments = infos.data();
  desc.num_arguments = static_cast<int64_t>(arguments.size());
  desc.results = infos.data() + arguments.size();
  desc.num_results = static_cast<int64_t>(results.size());
  desc.constants = code.constants;
  desc.num_constants = code.num_constants;
  desc.arena_bytes = entry.at("arena_bytes").get<int64_t>();
  desc.scratch_bytes = entry.at("scratch_bytes").get<int64_t>();
  desc.launch_names = names.data();
  desc.num_launches = static_cast<int64_t>(names.size());
  desc.gpu_kernels = code.gpu_kernels;
  desc.num_gpu_kernels = code.num_gpu_kernels;
  try {
    package.add(desc);
  } catch (const Error &error) {
    throw Error(error.status, str("'", entry.manifest(), "': ", error.what()));
  }
}

//===----------------------------------------------------------------------===//
// Compatibility checks
//===----------------------------------------------------------------------===//

/// Computes CRC-32 as zip and gzip do.
static uint32_t crc32(const char *data, int64_t size) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made;
    for (uint32_t i = 0; i < made.size(); ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        made[i] = (made[i] >> 1) ^ (made[i] & 1 ? 0xedb88320u : 0);
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (int64_t i = 0; i < size; ++i)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(data[i])) & 0xff];
  return ~crc;
}

/// Checks the library before it is loaded: a damaged one might crash the
/// process.
static void checkLibrary(const std::string &path, const Entry &entry) {
  FileContents file = readFile(path);
  int64_t bytes = entry.at("bytes").get<int64_t>();
  if (file.size != bytes)
    throw Error(FP8_ERROR_FORMAT, str("expected '", path, "' to have ", bytes,
                                      " bytes but got ", file.size));
  uint32_t expected = entry.at("crc32").get<uint32_t>();
  uint32_t crc = crc32(file.data.get(), file.size);
  if (crc != expected)
    throw Error(FP8_ERROR_FORMAT,
                str("expected '", path, "' to have the CRC-32 ", expected,
                    " but got ", crc,
                    ": it is damaged, or of another package "
                    "than manifest.json"));
}

/// Checks that the manifest is as it was written: the code relies on its sizes.
static void checkManifest(const std::string &path, const Entry &manifest,
                          std::string text) {
  if (!manifest.has(FP8_MANIFEST_SUM))
    return; // of a compiler that wrote no sum yet
  uint32_t expected = manifest.at(FP8_MANIFEST_SUM).get<uint32_t>();
  // The sum is that of the text with a 0 in its own place.
  const std::string field = "\"" FP8_MANIFEST_SUM "\": ";
  if (size_t at = text.find(field); at != std::string::npos) {
    size_t begin = at + field.size();
    size_t end = text.find_first_not_of("0123456789", begin);
    text.replace(begin, end - begin, "0");
  }
  uint32_t crc = crc32(text.data(), static_cast<int64_t>(text.size()));
  if (crc != expected)
    throw Error(FP8_ERROR_FORMAT,
                str("expected '", path, "' to have the CRC-32 ", expected,
                    " but got ", crc, ": it is damaged"));
}

static void checkVersion(const std::string &path, const nlohmann::json &json) {
  auto format = json.is_object() ? json.find("format") : json.end();
  if (format == json.end() || *format != "fp8-package")
    throw Error(FP8_ERROR_FORMAT,
                str("expected '", path,
                    "' to be the manifest of a package but it is not"));
  int64_t abi = Entry(path, json).get("abi", int64_t(0));
  if (abi != FP8_ABI_VERSION)
    throw Error(FP8_ERROR_FORMAT,
                str("'", path, "': expected a package for version ",
                    FP8_ABI_VERSION, " of the runtime but got one for ", abi,
                    ": emit it again"));
}

//===----------------------------------------------------------------------===//
// Packages
//===----------------------------------------------------------------------===//

/// Points a library to a function of this runtime. One that is loaded already
/// points to it, and another thread may be running its code.
template <typename Function>
static void provide(Function **place, Function *function) {
  if (*place != function)
    *place = function;
}

/// Sets the library's pointers to this runtime and returns the code of each
/// function by name.
static std::map<std::string, fp8_package_code> connect(const Library &library) {
  auto *exported = static_cast<fp8_package_library *>(
      library.find(str("fp8_package_v", FP8_ABI_VERSION)));
  if (exported->abi != FP8_ABI_VERSION)
    throw Error(FP8_ERROR_FORMAT,
                str("expected code for version ", FP8_ABI_VERSION,
                    " of the runtime but "
                    "got code for ",
                    exported->abi));
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
#define PROVIDE(result, field, function, parameters)                           \
  provide(exported->field, &function);
  FP8_CALLED_FUNCTIONS(PROVIDE)
#undef PROVIDE
  std::map<std::string, fp8_package_code> code;
  for (int64_t i = 0; i < exported->num_functions; ++i)
    code[exported->functions[i].function] = exported->functions[i];
  return code;
}

static nlohmann::json parseJSON(const std::string &path,
                                const std::string &text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error &error) {
    throw Error(FP8_ERROR_FORMAT,
                str("expected '", path, "' to be JSON but it is not, at byte ",
                    error.byte));
  } catch (const nlohmann::json::exception &error) {
    // Such as a number that no type holds.
    throw Error(FP8_ERROR_FORMAT, str("'", path, "': ", error.what()));
  }
}

fp8_package::fp8_package(const std::string &directory) {
  std::string path = directory + "/manifest.json";
  if (!fileExists(path))
    throw Error(FP8_ERROR_IO, str("expected a package in '", directory,
                                  "' but '", path, "' does not exist"));
  std::string content = readTextFile(path);
  nlohmann::json json = parseJSON(path, content);
  checkVersion(path, json);
  Entry manifest(path, json);
  checkManifest(path, manifest, std::move(content));
  checkCpu(manifest.at("target").at("cpu").get<std::string>(),
           manifest.at("target").at("features").get<std::string>());
  Entry file = manifest.at("library");
  // The absolute path keeps the loader from searching its own directories.
  std::string name = str(directory, "/", file.at("file").get<std::string>());
  std::unique_ptr<char, FreeDeleter> whole(realpath(name.c_str(), nullptr));
  if (!whole)
    throw Error(FP8_ERROR_IO,
                str("cannot read '", name, "': ", errnoText(errno)));
  checkLibrary(whole.get(), file);
  library = Library(whole.get());
  std::map<std::string, fp8_package_code> code = connect(library);
  for (const Entry &function : manifest.at("functions").list()) {
    std::string key = function.at("name").get<std::string>();
    if (!code.count(key))
      throw Error(FP8_ERROR_FORMAT,
                  str("expected code for '", key, "' but got none"));
    addFunction(*this, function, code[key]);
  }
  for (const Entry &text : manifest.at("texts").list()) {
    std::string name = text.get<std::string>(),
                path = str(directory, "/", name);
    texts[name] = readTextFile(path);
    if (name.size() > 5 && name.compare(name.size() - 5, 5, ".json") == 0)
      parseJSON(path, texts[name]);
  }
  texts["fingerprint"] = manifest.at("fingerprint").get<std::string>();
}

void fp8_package::add(const fp8_executable_desc &desc) {
  std::string name = desc.name ? desc.name : "";
  if (name.empty() || functions.count(name))
    throw Error(
        FP8_ERROR_INVALID,
        str("expected a function of a name of its own but got '", name, "'"));
  functions[name] = std::make_unique<fp8_executable>(desc);
}

const fp8_executable *fp8_package::function(const std::string &name) const {
  auto it = functions.find(name);
  return it == functions.end() ? nullptr : it->second.get();
}

const char *fp8_package::text(const std::string &name) const {
  auto it = texts.find(name);
  return it == texts.end() ? nullptr : it->second.c_str();
}

void fp8_package::fill(fp8_train_options &options, fp8_export *exported) const {
  options.step = function("step");
  if (!options.step)
    throw Error(FP8_ERROR_INVALID,
                "expected a package with a step but it has none");
  options.init = function("init");
  options.eval = function("eval");
  options.store = function("store");
  options.load = function("load");
  options.fingerprint = text("fingerprint");
  options.verdicts = text("verdicts.json");
  options.memory_plan = text("memory.json");
  options.recipe = text("recipe.yaml");
  options.preset = text("preset.yaml");
  options.cost = text("cost.json");
  options.ranks = text("ranks.txt");
  if (!exported)
    return;
  exported->encode = function("export");
  exported->decode = function("import");
  if (!exported->encode)
    throw Error(FP8_ERROR_INVALID,
                "expected a package that can export weights but this one was "
                "emitted without --export-weights");
  exported->manifest = text("export.json");
  exported->eval = function("check");
  exported->logits = nullptr;
  if (!exported->eval)
    return;
  for (const TensorInfo &result : exported->eval->results)
    if (result.name == FP8_LOGITS_NAME)
      exported->logits = result.name.c_str();
}
