//===- Executable.cpp - Serialization of executables ----------------------===//

#include "fp8/Compiler/Executable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace mlir::fp8;
namespace json = llvm::json;

/// Raised whenever older compilers would misread the format.
static constexpr int64_t kFormatVersion = 1;

static llvm::Error damaged(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

//===----------------------------------------------------------------------===//
// Archives with a checksum
//===----------------------------------------------------------------------===//

// The last member is written by hand, because it covers all bytes before it,
// and the file's name, such that no file passes for another one: a header as in
// `ar`, the digest in hexadecimal digits, and a line feed.
static constexpr llvm::StringLiteral kSealHeader =
    "sha256/         0           0     0     644     65        `\n";
static constexpr size_t kDigestSize = 64;
// Members begin at even offsets, hence one more line feed.
static constexpr size_t kSealSize = kSealHeader.size() + kDigestSize + 2;

static std::string digestOf(StringRef name, StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(name);
  hash.update(bytes);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

llvm::Expected<std::string> mlir::fp8::writeSealedArchive(
    StringRef name, ArrayRef<std::pair<std::string, StringRef>> members) {
  std::vector<llvm::NewArchiveMember> archived;
  for (const auto &[member, contents] : members)
    archived.emplace_back(llvm::MemoryBufferRef(contents, member));
  auto archive = llvm::writeArchiveToBuffer(
      archived, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
      /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return archive.takeError();
  std::string bytes = (*archive)->getBuffer().str();
  std::string digest = digestOf(name, bytes);
  bytes += kSealHeader;
  return bytes + digest + "\n\n";
}

llvm::Expected<std::vector<std::pair<std::string, StringRef>>>
mlir::fp8::readSealedArchive(StringRef name, StringRef bytes) {
  if (!bytes.starts_with("!<arch>\n"))
    return damaged("expected an archive but got something else");
  StringRef seal = bytes.take_back(kSealSize);
  if (seal.size() != kSealSize || !seal.consume_front(kSealHeader))
    return damaged("expected a checksum at the end of the archive but got "
                   "none: it is truncated or damaged");
  StringRef content = bytes.drop_back(kSealSize);
  std::string digest = digestOf(name, content);
  if (seal.take_front(kDigestSize) != digest)
    return damaged("expected the checksum " + digest + " but got " +
                   seal.take_front(kDigestSize) + ": the archive is damaged");
  auto archive =
      llvm::object::Archive::create(llvm::MemoryBufferRef(content, ""));
  if (!archive)
    return archive.takeError();
  std::vector<std::pair<std::string, StringRef>> members;
  llvm::Error error = llvm::Error::success();
  for (const llvm::object::Archive::Child &child :
       (*archive)->children(error)) {
    auto member = child.getName();
    if (!member)
      return member.takeError();
    auto buffer = child.getBuffer();
    if (!buffer)
      return buffer.takeError();
    members.emplace_back(member->str(), *buffer);
  }
  if (error)
    return std::move(error);
  return members;
}

//===----------------------------------------------------------------------===//
// The manifest
//===----------------------------------------------------------------------===//

/// Parses the name of an enum value of the C interface.
template <typename T>
static bool fromName(const json::Value &value, T &out, int count,
                     const char *(*nameOf)(T), json::Path path) {
  std::optional<StringRef> text = value.getAsString();
  for (int i = 0; text && i < count; ++i) {
    if (*text != nameOf(static_cast<T>(i)))
      continue;
    out = static_cast<T>(i);
    return true;
  }
  path.report("unknown name");
  return false;
}

static json::Value toJSON(const TensorDescription &tensor, bool isArgument) {
  json::Object object{{"name", tensor.name},
                      {"dtype", fp8_dtype_name(tensor.dtype)},
                      {"shape", json::Array(tensor.shape)},
                      {"kind", fp8_kind_name(tensor.kind)}};
  if (isArgument)
    object["role"] = fp8_role_name(tensor.role);
  if (tensor.vocabulary > 0)
    object["vocabulary"] = tensor.vocabulary;
  if (tensor.labels)
    object["labels"] = true;
  if (tensor.zeroInit)
    object["zero_init"] = true;
  if (tensor.shard > 0)
    object["shard"] = tensor.shard;
  if (tensor.slices > 1)
    object["slices"] = tensor.slices;
  if (!tensor.whole.empty()) {
    object["whole"] = json::Array(tensor.whole);
    object["part_offsets"] = json::Array(tensor.partOffsets);
    if (tensor.partBlocks > 1)
      object["part_blocks"] = tensor.partBlocks;
  }
  if (tensor.stateArg >= 0)
    object["state_arg"] = tensor.stateArg;
  return object;
}

namespace mlir::fp8 {

static bool fromJSON(const json::Value &value, TensorDescription &tensor,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("name", tensor.name) ||
      !map.map("shape", tensor.shape) ||
      !map.mapOptional("vocabulary", tensor.vocabulary) ||
      !map.mapOptional("labels", tensor.labels) ||
      !map.mapOptional("zero_init", tensor.zeroInit) ||
      !map.mapOptional("shard", tensor.shard) ||
      !map.mapOptional("slices", tensor.slices) ||
      !map.mapOptional("whole", tensor.whole) ||
      !map.mapOptional("part_offsets", tensor.partOffsets) ||
      !map.mapOptional("part_blocks", tensor.partBlocks) ||
      !map.mapOptional("state_arg", tensor.stateArg))
    return false;
  const json::Object &object = *value.getAsObject();
  auto get = [&](StringRef key) {
    const json::Value *found = object.get(key);
    return found ? *found : json::Value(nullptr);
  };
  return fromName(get("dtype"), tensor.dtype, FP8_NUM_DTYPES, fp8_dtype_name,
                  path.field("dtype")) &&
         fromName(get("kind"), tensor.kind, FP8_NUM_KINDS, fp8_kind_name,
                  path.field("kind")) &&
         (!object.get("role") ||
          fromName(get("role"), tensor.role, FP8_NUM_ROLES, fp8_role_name,
                   path.field("role")));
}

static bool fromJSON(const json::Value &value, CompileStats &stats,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("import_seconds", stats.importSeconds) &&
         map.map("fp8_seconds", stats.fp8Seconds) &&
         map.map("structure_seconds", stats.structureSeconds) &&
         map.map("kernels_seconds", stats.kernelsSeconds) &&
         map.map("codegen_seconds", stats.codegenSeconds) &&
         map.map("llvm_seconds", stats.llvmSeconds) &&
         map.map("launches", stats.launches) &&
         map.map("kernels", stats.kernels) &&
         map.map("cached_kernels", stats.cachedKernels);
}

static bool fromJSON(const json::Value &value, ExecutableFunction &function,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  std::vector<int64_t> constants;
  if (!map || !map.map("name", function.name) ||
      !map.map("entry", function.entry) ||
      !map.map("kernels", function.kernels) ||
      !map.map("arguments", function.arguments) ||
      !map.map("results", function.results) ||
      !map.map("constants", constants) ||
      !map.map("arena_bytes", function.arenaBytes) ||
      !map.map("scratch_bytes", function.scratchBytes) ||
      !map.map("launches", function.launchNames) ||
      !map.map("statistics", function.stats))
    return false;
  for (int64_t bytes : constants)
    function.constants.emplace_back(bytes, '\0');
  return true;
}

static bool fromJSON(const json::Value &value, CodeTarget &target,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("triple", target.triple) &&
         map.map("cpu", target.cpu) && map.map("features", target.features);
}

static bool fromJSON(const json::Value &value, CompilerWarning &warning,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("file", warning.file) &&
         map.map("line", warning.line) && map.map("column", warning.column) &&
         map.map("text", warning.text) && map.map("notes", warning.notes);
}

static bool fromJSON(const json::Value &value, Executable &executable,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("functions", executable.functions) &&
         map.map("target", executable.target) &&
         map.mapOptional("gpu", executable.gpu) &&
         map.mapOptional("gpu_image", executable.gpuImage) &&
         map.map("compiler", executable.compiler) &&
         map.map("build", executable.build) &&
         map.map("fingerprint", executable.fingerprint) &&
         map.map("warnings", executable.warnings);
}

} // namespace mlir::fp8

static json::Value toJSON(const ExecutableFunction &function) {
  json::Array arguments, results, constants;
  for (const TensorDescription &argument : function.arguments)
    arguments.push_back(toJSON(argument, /*isArgument=*/true));
  for (const TensorDescription &result : function.results)
    results.push_back(toJSON(result, /*isArgument=*/false));
  for (const std::string &bytes : function.constants)
    constants.push_back(static_cast<int64_t>(bytes.size()));
  const CompileStats &stats = function.stats;
  return json::Object{
      {"name", function.name},
      {"entry", function.entry},
      {"kernels", json::Array(function.kernels)},
      {"arguments", std::move(arguments)},
      {"results", std::move(results)},
      {"constants", std::move(constants)},
      {"arena_bytes", function.arenaBytes},
      {"scratch_bytes", function.scratchBytes},
      {"launches", json::Array(function.launchNames)},
      {"statistics", json::Object{{"import_seconds", stats.importSeconds},
                                  {"fp8_seconds", stats.fp8Seconds},
                                  {"structure_seconds", stats.structureSeconds},
                                  {"kernels_seconds", stats.kernelsSeconds},
                                  {"codegen_seconds", stats.codegenSeconds},
                                  {"llvm_seconds", stats.llvmSeconds},
                                  {"launches", stats.launches},
                                  {"kernels", stats.kernels},
                                  {"cached_kernels", stats.cachedKernels}}}};
}

json::Value Executable::manifest() const {
  json::Array jsonFunctions, jsonWarnings;
  for (const ExecutableFunction &function : functions)
    jsonFunctions.push_back(toJSON(function));
  for (const CompilerWarning &warning : warnings)
    jsonWarnings.push_back(json::Object{{"file", warning.file},
                                        {"line", warning.line},
                                        {"column", warning.column},
                                        {"text", warning.text},
                                        {"notes", json::Array(warning.notes)}});
  return json::Object{{"format", "fp8-executable"},
                      {"version", kFormatVersion},
                      {"abi", FP8_ABI_VERSION},
                      {"compiler", compiler},
                      {"build", build},
                      {"target", json::Object{{"triple", target.triple},
                                              {"cpu", target.cpu},
                                              {"features", target.features}}},
                      {"gpu", gpu},
                      {"gpu_image", gpuImage},
                      {"fingerprint", fingerprint},
                      {"functions", std::move(jsonFunctions)},
                      {"warnings", std::move(jsonWarnings)}};
}

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

const ExecutableFunction *Executable::find(StringRef name) const {
  for (const ExecutableFunction &function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

StringRef Executable::text(StringRef name) const {
  auto it = texts.find(name.str());
  return it == texts.end() ? StringRef() : StringRef(it->second);
}

void Executable::merge(Executable other) {
  llvm::StringSet<> known;
  for (const ObjectCode &object : objects)
    known.insert(object.symbol);
  for (ObjectCode &object : other.objects)
    if (known.insert(object.symbol).second)
      objects.push_back(std::move(object));
  llvm::move(other.functions, std::back_inserter(functions));
  llvm::move(other.warnings, std::back_inserter(warnings));
}

llvm::Expected<std::string> Executable::serialize(StringRef name) const {
  std::string manifestText = llvm::formatv("{0:2}\n", manifest()).str();
  std::vector<std::string> constants;
  for (const ExecutableFunction &function : functions)
    constants.push_back(llvm::join(function.constants, ""));
  std::vector<std::pair<std::string, StringRef>> members;
  members.emplace_back("manifest.json", manifestText);
  for (const auto &[member, text] : texts)
    members.emplace_back(member, text);
  for (const ObjectCode &object : objects)
    members.emplace_back(object.symbol + ".o", object.bytes);
  for (const auto &[function, bytes] : llvm::zip_equal(functions, constants))
    if (!bytes.empty())
      members.emplace_back(function.name + ".constants", bytes);
  return writeSealedArchive(name, members);
}

/// Checks the format in the manifest and reads the rest of it.
static llvm::Error readManifest(StringRef text, Executable &executable) {
  auto value = json::parse(text);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != "fp8-executable")
    return damaged("expected the manifest of an executable but got another");
  auto check = [&](StringRef key, int64_t expected) -> llvm::Error {
    int64_t found = object->getInteger(key).value_or(0);
    if (found == expected)
      return llvm::Error::success();
    return damaged("expected an executable of " + key + " " +
                   llvm::Twine(expected) + " but got " + llvm::Twine(found));
  };
  if (llvm::Error error = check("version", kFormatVersion))
    return error;
  if (llvm::Error error = check("abi", FP8_ABI_VERSION))
    return error;
  json::Path::Root root("manifest.json");
  if (!fromJSON(*value, executable, root))
    return root.getError();
  return llvm::Error::success();
}

/// Splits the archive member of a function's constants.
static llvm::Error readConstants(ExecutableFunction &function,
                                 StringRef bytes) {
  for (std::string &constant : function.constants) {
    if (bytes.size() < constant.size())
      return damaged("expected more constants of '" + function.name + "'");
    constant = bytes.take_front(constant.size()).str();
    bytes = bytes.drop_front(constant.size());
  }
  return llvm::Error::success();
}

/// Checks that every symbol that a function names has an object.
static llvm::Error checkObjects(const Executable &executable) {
  llvm::StringSet<> known;
  for (const ObjectCode &object : executable.objects)
    known.insert(object.symbol);
  for (const ExecutableFunction &function : executable.functions) {
    if (!known.contains(function.entry))
      return damaged("expected the schedule of '" + function.name + "'");
    for (const std::string &kernel : function.kernels)
      if (!known.contains(kernel))
        return damaged("expected kernel '" + kernel + "' of '" + function.name +
                       "'");
  }
  return llvm::Error::success();
}

llvm::Expected<Executable> Executable::parse(StringRef name, StringRef bytes) {
  auto members = readSealedArchive(name, bytes);
  if (!members)
    return members.takeError();
  if (members->empty() || members->front().first != "manifest.json")
    return damaged("expected manifest.json to be the archive's first member");
  Executable executable;
  if (llvm::Error error = readManifest(members->front().second, executable))
    return std::move(error);
  std::map<std::string, StringRef> constants;
  for (auto &[member, contents] : llvm::drop_begin(*members)) {
    StringRef stem = member;
    if (stem.consume_back(".o"))
      executable.objects.push_back({stem.str(), contents.str()});
    else if (stem.consume_back(".constants"))
      constants[stem.str()] = contents;
    else
      executable.texts[member] = contents.str();
  }
  for (ExecutableFunction &function : executable.functions)
    if (llvm::Error error = readConstants(function, constants[function.name]))
      return std::move(error);
  if (llvm::Error error = checkObjects(executable))
    return std::move(error);
  return executable;
}
