//===- SafeTensorsIndex.cpp - Sets of tensor files ------------------------===//

#include "SafeTensorsIndex.h"
#include "../Support/Error.h"
#include "../Support/Json.h"

#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

namespace fp8::rt {

using json = nlohmann::json;

bool isSafeTensorsIndex(const std::string &path) {
  size_t length = std::strlen(indexSuffix);
  return path.size() > length &&
         path.compare(path.size() - length, length, indexSuffix) == 0;
}

namespace {
/// Reads an index and the files that it names.
class SetReader {
public:
  explicit SetReader(const std::string &path)
      : path(path), where(str("'", path, "' is no valid index: ")) {}

  TensorFile read();
  std::set<std::string> files();

private:
  void readIndex();
  void readPart(const std::string &name, const std::set<std::string> &expected);

  [[noreturn]] void fail(const std::string &message) const {
    throw Error(FP8_ERROR_FORMAT, where + message);
  }

  const std::string &path;
  std::string where;
  std::map<std::string, std::set<std::string>> parts; // their tensors
  TensorFile set;
};
} // namespace

void SetReader::readIndex() {
  json index;
  try {
    index = json::parse(readTextFile(path),
                        [&](int depth, json::parse_event_t, const json &) {
                          // Metadata from other programs may be nested, but not
                          // like this.
                          if (depth > 64)
                            fail("nested more than 64 deep");
                          return true;
                        });
  } catch (const json::exception &error) {
    fail(str("not valid JSON: ", error.what()));
  }
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    fail("expected a 'weight_map' of tensors to files");
  for (const auto &[tensor, file] : index["weight_map"].items()) {
    // Files are beside the index; a path elsewhere is rejected.
    if (!file.is_string() ||
        file.get<std::string>().find('/') != std::string::npos)
      fail(str("expected a file in the index's directory for '", tensor,
               "' but got ", file.dump()));
    parts[file.get<std::string>()].insert(tensor);
  }
  // Metadata from other programs may have any type.
  if (index.contains("metadata") && index["metadata"].is_object())
    for (const auto &[key, value] : index["metadata"].items())
      if (value.is_string())
        set.metadata[key] = value.get<std::string>();
}

void SetReader::readPart(const std::string &name,
                         const std::set<std::string> &expected) {
  std::string file = directoryOf(path) + "/" + name;
  if (isSafeTensorsIndex(file))
    fail(
        str("expected a safetensors file but got another index, '", name, "'"));
  TensorFile part = mapSafeTensors(file);
  auto mine = set.metadata.find(setKey), its = part.metadata.find(setKey);
  if (mine != set.metadata.end() &&
      (its == part.metadata.end() || its->second != mine->second))
    throw Error(FP8_ERROR_FORMAT,
                str("'", file, "' belongs to another set than '", path, "'"));
  for (const std::string &tensor : expected)
    if (!part.find(tensor))
      throw Error(FP8_ERROR_FORMAT,
                  str("'", file, "': expected tensor '", tensor,
                      "', which the index names, but got none"));
  for (TensorFile::Tensor &tensor : part.tensors) {
    if (!expected.count(tensor.name))
      throw Error(FP8_ERROR_FORMAT,
                  str("'", file,
                      "': expected the tensors that the index names "
                      "but got '",
                      tensor.name, "' too"));
    set.tensors.push_back(std::move(tensor));
  }
  std::move(part.contents.begin(), part.contents.end(),
            std::back_inserter(set.contents));
}

TensorFile SetReader::read() {
  readIndex();
  for (const auto &[name, tensors] : parts)
    readPart(name, tensors);
  return std::move(set);
}

std::set<std::string> SetReader::files() {
  readIndex();
  std::set<std::string> names;
  for (const auto &[name, tensors] : parts)
    names.insert(name);
  return names;
}

std::set<std::string> filesOfSafeTensorsSet(const std::string &path) {
  try {
    return SetReader(path).files();
  } catch (const Error &) {
    return {};
  }
}

TensorFile readSafeTensorsSet(const std::string &path) {
  return SetReader(path).read();
}

void writeSafeTensorsIndex(const std::string &path,
                           const std::map<std::string, std::string> &files,
                           int64_t bytes,
                           const std::map<std::string, std::string> &metadata) {
  json index;
  index["metadata"] = metadata;
  index["metadata"]["total_size"] = bytes;
  index["weight_map"] = files;
  writeFileAtomically(path, dumpJson(index, /*indent=*/2) + "\n");
}

} // namespace fp8::rt
