//===- Data.h - Feeding text, tokens and arrays -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_DATA_DATA_H
#define FP8_LIB_RUNTIME_DATA_DATA_H

#include "../State/SafeTensors.h"
#include "../Support/Elements.h"
#include "../Support/Error.h"

namespace fp8::rt {

/// Four random words for a position in a sequence (Philox 4x32-10). They are a
/// function of the position, so resuming at any step needs no stored state.
struct RandomWords {
  uint32_t words[4];

  /// Returns an integer below `limit`; all are equally likely (up to 2^-64).
  int64_t below(int64_t limit) const {
    uint64_t word = static_cast<uint64_t>(words[1]) << 32 | words[0];
    return static_cast<int64_t>(static_cast<unsigned __int128>(word) * limit >>
                                64);
  }
};
/// The streams: each purpose draws its own numbers.
constexpr uint32_t windowStream = 0, shuffleStream = 2;
RandomWords randomAt(uint64_t seed, uint64_t step, uint32_t row,
                     uint32_t stream);

/// FNV-1a over words: detects changed data, but no deliberate collisions.
class Fingerprint {
public:
  void add(uint64_t word) { hash = (hash ^ word) * 0x100000001b3; }
  std::string text() const;

private:
  uint64_t hash = 0xcbf29ce484222325;
};

/// The tokens of one file: the bytes of text, or the integers of a token file.
struct TokenFile {
  std::string path;
  FileContents contents;       // owns text
  std::vector<uint32_t> words; // tokens that are not bytes
  int64_t count = 0;
  bool isText = true;

  int64_t at(int64_t i) const {
    return isText ? static_cast<unsigned char>(contents.data.get()[i])
                  : words[i];
  }
};

/// Reads text, or .u16, .npy and .safetensors token files. Tokens must be below
/// `vocabulary` (if known).
TokenFile readTokens(const std::string &path, int64_t vocabulary);

/// The integer batch arguments that take text.
struct TextArguments {
  int64_t input = -1;
  int64_t target = -1; // takes the tokens shifted by one, or -1
  int64_t rows = 0;    // all dimensions but the last
  int64_t window = 0;  // the last dimension
  int64_t vocabulary = -1;

  /// The number of tokens that one row takes from a file.
  int64_t span() const { return window + (target >= 0); }
};
/// Finds them among the batch arguments that are not in `taken`; throws if text
/// does not fit them.
TextArguments findTextArguments(const std::string &function,
                                const std::vector<TensorInfo> &arguments,
                                const std::vector<bool> &taken);

/// Returns the vocabulary of the arguments that text feeds if arrays feed those
/// in `taken` and all that text cannot; -1 if there are none, or too many.
int64_t textVocabulary(const std::vector<TensorInfo> &arguments,
                       const std::vector<bool> &taken);

/// Throws unless the lists of files and arrays in the options are complete.
void checkDataLists(const fp8_train_options &options);

/// Returns the share of text that is held out if the option of a run says so
/// (0: a tenth; below 0: none). Throws Error unless it is below 1.
double heldOutShare(double option);

/// The files of a run. Each is split: the last `holdout` of it is held out, the
/// rest is for training.
class TextData {
public:
  TextData(const std::vector<std::string> &paths, int64_t vocabulary,
           double holdout);

  /// Checks that every file has a window of this many tokens to train on.
  void prepareTraining(int64_t span);
  /// Row `row` of step `step`: `span` consecutive tokens.
  struct Window {
    const TokenFile *file;
    int64_t start;
  };
  Window trainingWindow(uint64_t seed, int64_t step, int64_t row) const;

  /// Returns the held-out text as non-overlapping windows, file by file.
  std::vector<Window> heldOutWindows(int64_t span) const;

  int64_t trainingTokens() const;
  int64_t heldOutTokens() const;
  size_t numFiles() const { return files.size(); }
  const char *unit() const; // "bytes" or "tokens"
  /// Returns a hash of the contents (sizes and tokens), independent of file
  /// names.
  std::string fingerprint() const;

private:
  std::vector<TokenFile> files;
  double holdout; // the share of each file that is not trained on
  std::vector<int64_t> trainingCounts;
  // The number of window positions in the preceding files, then the total.
  std::vector<int64_t> firstPosition;
};

/// Copies a window into row `row` of the arguments' buffers.
void storeWindow(const TextData::Window &window, const TextArguments &text,
                 const std::vector<TensorInfo> &arguments, int64_t row,
                 void *input, void *target);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_DATA_DATA_H
