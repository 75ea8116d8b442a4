//===- Data.cpp - Feeding text, tokens and arrays -------------------------===//

#include "Data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fp8::rt {

RandomWords randomAt(uint64_t seed, uint64_t step, uint32_t row,
                     uint32_t stream) {
  uint32_t counter[4] = {static_cast<uint32_t>(step),
                         static_cast<uint32_t>(step >> 32), row, stream};
  uint32_t key[2] = {static_cast<uint32_t>(seed),
                     static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t first = 0xD2511F53ull * counter[0];
    uint64_t second = 0xCD9E8D57ull * counter[2];
    uint32_t next[4] = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0],
        static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1],
        static_cast<uint32_t>(first)};
    std::copy(next, next + 4, counter);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return {{counter[0], counter[1], counter[2], counter[3]}};
}

std::string Fingerprint::text() const {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(hash));
  return text;
}

//===----------------------------------------------------------------------===//
// Token files
//===----------------------------------------------------------------------===//

static bool endsWith(const std::string &text, const char *suffix) {
  size_t length = std::strlen(suffix);
  return text.size() >= length &&
         text.compare(text.size() - length, length, suffix) == 0;
}

TokenFile readTokens(const std::string &path, int64_t vocabulary) {
  if (endsWith(path, ".npz"))
    throw Error(FP8_ERROR_DATA,
                str("token file '", path,
                    "': expected text, .u16, .npy or .safetensors but got "
                    ".npz, which is not supported"));
  TokenFile file;
  file.path = path;
  bool isArray = endsWith(path, ".npy") || endsWith(path, ".safetensors");
  if (isArray) {
    TensorFile array =
        endsWith(path, ".npy") ? readNpy(path) : readSafeTensors(path);
    if (array.tensors.size() != 1)
      throw Error(FP8_ERROR_DATA,
                  str("token file '", path, "': expected one tensor but got ",
                      array.tensors.size()));
    const TensorFile::Tensor &tensor = array.tensors[0];
    if (!isInteger(tensor.type.dtype))
      throw Error(FP8_ERROR_DATA,
                  str("token file '", path, "': expected integers but got ",
                      tensor.type.text()));
    file.isText = false;
    file.words.resize(tensor.type.elements());
    for (size_t i = 0; i < file.words.size(); ++i) {
      int64_t value = elementAsInteger(tensor.data, tensor.type.dtype, i);
      if (value < 0 || value > UINT32_MAX)
        throw Error(FP8_ERROR_DATA, str("token file '", path, "': token ", i,
                                        " is ", value, ", not a token"));
      file.words[i] = static_cast<uint32_t>(value);
    }
  } else if (endsWith(path, ".u16")) {
    FileContents contents = readFile(path);
    if (contents.size % 2)
      throw Error(FP8_ERROR_DATA,
                  str("token file '", path, "': expected 16-bit words but got ",
                      contents.size, " bytes"));
    file.isText = false;
    file.words.resize(contents.size / 2);
    for (size_t i = 0; i < file.words.size(); ++i)
      file.words[i] = static_cast<uint32_t>(
          elementAsInteger(contents.data.get(), FP8_DTYPE_U16, i));
  } else {
    file.contents = readFile(path);
  }
  file.count = file.isText ? file.contents.size
                           : static_cast<int64_t>(file.words.size());
  if (file.count == 0)
    throw Error(FP8_ERROR_DATA, str("data file '", path, "' is empty"));
  if (vocabulary > 0 && !(file.isText && vocabulary >= 256))
    for (int64_t i = 0; i < file.count; ++i)
      if (file.at(i) >= vocabulary)
        throw Error(FP8_ERROR_DATA,
                    str("data file '", path, "': ",
                        file.isText ? "byte " : "token ", i, " is ", file.at(i),
                        " but the vocabulary has ", vocabulary, " entries"));
  return file;
}

//===----------------------------------------------------------------------===//
// Arguments for text
//===----------------------------------------------------------------------===//

static bool takesText(const TensorInfo &argument) {
  return isInteger(argument.type.dtype) && !argument.type.dims.empty();
}

/// Returns how text feeds arguments that take text: one, or inputs and targets
/// of one shape. Nothing if they are others.
static std::optional<TextArguments>
textArgumentsOf(const std::vector<TensorInfo> &arguments,
                const std::vector<int64_t> &found) {
  bool isPair = found.size() == 2 &&
                arguments[found[0]].type.dims == arguments[found[1]].type.dims;
  if (found.size() != 1 && !isPair)
    return std::nullopt;
  TextArguments text;
  text.input = found[0];
  if (isPair) {
    text.target = found[1];
    if (arguments[found[0]].labels && !arguments[found[1]].labels)
      std::swap(text.input, text.target);
  }
  const TensorInfo &input = arguments[text.input];
  text.window = input.type.dims.back();
  text.rows = text.window ? input.type.elements() / text.window : 0;
  // Tokens that the argument's type cannot hold are outside the vocabulary too.
  for (int64_t i : found) {
    int64_t limit = integerRange(arguments[i].type.dtype).second;
    limit = limit == INT64_MAX ? limit : limit + 1;
    if (arguments[i].vocabulary > 0)
      limit = std::min(limit, arguments[i].vocabulary);
    text.vocabulary =
        text.vocabulary < 0 ? limit : std::min(text.vocabulary, limit);
  }
  return text;
}

TextArguments findTextArguments(const std::string &function,
                                const std::vector<TensorInfo> &arguments,
                                const std::vector<bool> &taken) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorInfo &argument = arguments[i];
    if (argument.role != FP8_ROLE_BATCH || taken[i])
      continue;
    if (!takesText(argument))
      throw Error(FP8_ERROR_DATA,
                  str("batch argument '", argument.name, "' of ", function,
                      " is ", argument.type.text(),
                      ": text feeds integers of rank 1 or more; give it an "
                      "array of its own"));
    found.push_back(static_cast<int64_t>(i));
  }
  if (found.empty())
    return {};
  std::optional<TextArguments> text = textArgumentsOf(arguments, found);
  if (!text) {
    std::string names;
    for (int64_t i : found)
      names += str(names.empty() ? "" : ", ", "'", arguments[i].name, "' ",
                   arguments[i].type.text());
    throw Error(FP8_ERROR_DATA,
                str("text feeds one batch argument, or inputs and targets of "
                    "one shape, but ",
                    function, " has ", names, ": give each an array"));
  }
  const TensorInfo &input = arguments[text->input];
  if (text->rows == 0)
    throw Error(FP8_ERROR_DATA,
                str("batch argument '", input.name, "' of ", function, " is ",
                    input.type.text(), ": it holds nothing"));
  return *text;
}

int64_t textVocabulary(const std::vector<TensorInfo> &arguments,
                       const std::vector<bool> &taken) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].role == FP8_ROLE_BATCH && !taken[i] &&
        takesText(arguments[i]))
      found.push_back(static_cast<int64_t>(i));
  std::optional<TextArguments> text = textArgumentsOf(arguments, found);
  return text ? text->vocabulary : -1;
}

//===----------------------------------------------------------------------===//
// TextData
//===----------------------------------------------------------------------===//

void checkDataLists(const fp8_train_options &options) {
  checkTexts("data files", options.data_files, options.num_data_files);
  checkTexts("held-out files", options.eval_files, options.num_eval_files);
  auto check = [](const char *what, const void *list, int64_t count) {
    if (count < 0 || (count > 0 && !list))
      throw Error(FP8_ERROR_INVALID, str("expected ", what, " but got ",
                                         count < 0 ? "less than 0" : "none"));
  };
  auto checkSources = [&](const char *what, const fp8_batch_source *sources,
                          int64_t count) {
    check(what, sources, count);
    for (int64_t i = 0; i < count; ++i)
      if (!sources[i].path ||
          (!sources[i].file && !(sources[i].info && sources[i].data)))
        throw Error(
            FP8_ERROR_INVALID,
            "a batch source has no path, or neither a file nor an array");
  };
  checkSources("batch sources", options.batches, options.num_batches);
  checkSources("batch sources for the evaluation", options.eval_batches,
               options.num_eval_batches);
}

double heldOutShare(double option) {
  if (!(option < 1))
    throw Error(FP8_ERROR_INVALID, "expected a held-out fraction below 1");
  return option == 0 ? 0.1 : std::max(option, 0.0);
}

/// Returns how many of a file's tokens are not held out.
static int64_t trainingCountOf(int64_t count, double holdout) {
  return count - static_cast<int64_t>(std::floor(count * holdout));
}

/// Returns how many tokens a file needs so that `span` of them are not held
/// out.
static int64_t countFor(int64_t span, double holdout) {
  auto count = static_cast<int64_t>((span - 1) / (1 - holdout));
  while (trainingCountOf(count, holdout) < span)
    ++count;
  return count;
}

TextData::TextData(const std::vector<std::string> &paths, int64_t vocabulary,
                   double holdout)
    : holdout(holdout) {
  for (const std::string &path : paths) {
    files.push_back(readTokens(path, vocabulary));
    trainingCounts.push_back(trainingCountOf(files.back().count, holdout));
  }
}

const char *TextData::unit() const {
  for (const TokenFile &file : files)
    if (!file.isText)
      return "tokens";
  return "bytes";
}

void TextData::prepareTraining(int64_t span) {
  firstPosition.assign(1, 0);
  for (size_t i = 0; i < files.size(); ++i) {
    int64_t positions = trainingCounts[i] - span + 1;
    if (positions <= 0) {
      int64_t count = files[i].count;
      throw Error(FP8_ERROR_DATA,
                  str("data file '", files[i].path, "' is too short: it has ",
                      count, " ", unit(),
                      trainingCounts[i] < count ? str(" (", trainingCounts[i],
                                                      " of them to train on)")
                                                : "",
                      " but one row takes ", span, ": at least ",
                      countFor(span, holdout), " are needed"));
    }
    firstPosition.push_back(firstPosition.back() + positions);
  }
}

TextData::Window TextData::trainingWindow(uint64_t seed, int64_t step,
                                          int64_t row) const {
  RandomWords random =
      randomAt(seed, step, static_cast<uint32_t>(row), windowStream);
  // Every position of every file is equally likely.
  int64_t position = random.below(firstPosition.back());
  size_t file =
      std::upper_bound(firstPosition.begin(), firstPosition.end(), position) -
      firstPosition.begin() - 1;
  return {&files[file], position - firstPosition[file]};
}

std::vector<TextData::Window> TextData::heldOutWindows(int64_t span) const {
  std::vector<Window> windows;
  for (size_t i = 0; i < files.size(); ++i)
    for (int64_t start = trainingCounts[i]; start + span <= files[i].count;
         start += span)
      windows.push_back({&files[i], start});
  return windows;
}

int64_t TextData::trainingTokens() const {
  int64_t sum = 0;
  for (int64_t count : trainingCounts)
    sum += count;
  return sum;
}

int64_t TextData::heldOutTokens() const {
  int64_t sum = 0;
  for (const TokenFile &file : files)
    sum += file.count;
  return sum - trainingTokens();
}

std::string TextData::fingerprint() const {
  Fingerprint hash;
  for (size_t i = 0; i < files.size(); ++i) {
    hash.add(files[i].count);
    hash.add(trainingCounts[i]);
    for (int64_t j = 0; j < files[i].count; ++j)
      hash.add(files[i].at(j));
  }
  return hash.text();
}

void storeWindow(const TextData::Window &window, const TextArguments &text,
                 const std::vector<TensorInfo> &arguments, int64_t row,
                 void *input, void *target) {
  for (int64_t i = 0; i < text.window; ++i) {
    storeInteger(input, arguments[text.input].type.dtype, row * text.window + i,
                 window.file->at(window.start + i));
    if (text.target >= 0)
      storeInteger(target, arguments[text.target].type.dtype,
                   row * text.window + i,
                   window.file->at(window.start + i + 1));
  }
}

} // namespace fp8::rt
