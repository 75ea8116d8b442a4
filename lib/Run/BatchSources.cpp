//===- BatchSources.cpp - Arrays that feed arguments ----------------------===//

#include "BatchSources.h"
#include "fp8/Binding/PathBinding.h"

#include <unistd.h>

using namespace fp8run;

static bool splitAt(size_t at, const std::string &text, std::string &key,
                    std::string &value) {
  key = text.substr(0, at);
  value = text.substr(at + 1);
  return !key.empty() && !value.empty();
}

static bool exists(const std::string &file) {
  return access(file.c_str(), F_OK) == 0;
}

/// The file of `FILE[:TENSOR]`. File names may hold colons too: the longest
/// name that exists is one. "" if none exists.
static std::string findFile(std::string file) {
  for (size_t at; !exists(file) && (at = file.rfind(':')) != std::string::npos;)
    file.resize(at);
  return exists(file) ? file : "";
}

// Both sides may hold '=': the first one before a file that exists separates;
// if there is none, the first one.
bool fp8run::splitBatch(const std::string &text, std::string &path,
                        std::string &file) {
  std::vector<size_t> places = fp8binding::findSeparators(text);
  for (size_t at : places)
    if (splitAt(at, text, path, file) && !findFile(file).empty())
      return true;
  return !places.empty() && splitAt(places.front(), text, path, file);
}

BatchSources::BatchSources(const std::vector<std::string> &texts) {
  for (const std::string &text : texts)
    add(text);
}

void BatchSources::add(const std::string &text) {
  std::string path, value;
  if (!splitBatch(text, path, value))
    return;
  std::string file = findFile(value);
  if (file.empty())
    file = value.substr(0, value.find(':'));
  const char *tensor = file.size() + 1 < value.size()
                           ? keep(value.substr(file.size() + 1))
                           : nullptr;
  sources.push_back({keep(path), keep(file), tensor, nullptr, nullptr});
}

const char *BatchSources::keep(const std::string &text) {
  return strings.emplace_back(text).c_str();
}
