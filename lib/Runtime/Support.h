//===- Support.h - Errors, tensor types, files ------------------*- C++ -*-===//
//
// Internal header of the runtime; not installed.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_H
#define FP8_LIB_RUNTIME_SUPPORT_H

#include "fp8-c/Runtime.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <locale>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fp8::rt {

/// A failure that the C interface turns into a status.
struct Error : std::runtime_error {
  Error(fp8_status status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  fp8_status status;
};

/// Returns a stream whose numbers do not depend on the global locale, which may
/// group their digits.
template <typename Stream, typename... Ts> Stream classic(Ts &&...arguments) {
  Stream stream(std::forward<Ts>(arguments)...);
  stream.imbue(std::locale::classic());
  return stream;
}

/// Concatenates any values that have operator<<.
template <typename... Ts> std::string str(const Ts &...parts) {
  auto stream = classic<std::ostringstream>();
  (stream << ... << parts);
  return stream.str();
}

/// Returns the number that a text is as a whole; nothing if it is none.
template <typename T> std::optional<T> numberOf(const std::string &text) {
  T number;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end)
    return std::nullopt;
  return number;
}

/// Returns the exception that is being handled.
Error currentError();

/// Returns the median of numbers, 0 if there are none. Of an even count it is
/// the mean of the middle two.
inline double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Runs `body` and converts exceptions to a status and fp8_last_error().
fp8_status recordFailure() noexcept;
template <typename F> fp8_status guard(F &&body) noexcept {
  try {
    body();
    return FP8_OK;
  } catch (...) {
    return recordFailure();
  }
}

/// Throws unless a caller's list has `count` texts; what: "alarms", for the
/// message.
void checkTexts(const char *what, const char *const *texts, int64_t count);

//===----------------------------------------------------------------------===//
// Tensor types
//===----------------------------------------------------------------------===//

struct TensorType {
  fp8_dtype dtype = FP8_DTYPE_F32;
  std::vector<int64_t> dims;

  bool operator==(const TensorType &other) const {
    return dtype == other.dtype && dims == other.dims;
  }
  bool operator!=(const TensorType &other) const { return !(*this == other); }
  int64_t elements() const;
  int64_t bytes() const { return elements() * fp8_dtype_size(dtype); }
  /// Returns the type as JAX prints it, "f32[8,128]".
  std::string text() const;
};

/// An argument, a result, or a tensor in a file.
struct TensorInfo {
  std::string name;
  TensorType type;
  fp8_kind kind = FP8_KIND_OTHER;
  fp8_role role = FP8_ROLE_STATE;
  int64_t vocabulary = -1;
  int64_t stateArg = -1;
  bool ownBuffer = false;
  bool zeroInit = false;
  int64_t shard = 0;
  /// The slices of the shard along the leading dimension, each with an owner.
  int64_t slices = 1;
  /// If each rank has a part: the shape of the whole, and the offsets of the
  /// parts of ranks 0, 1, ..., one after another.
  std::vector<int64_t> whole, partOffsets;

  bool isPart() const { return !whole.empty(); }
  TensorType wholeType() const {
    return isPart() ? TensorType{type.dtype, whole} : type;
  }
  int64_t numParts() const {
    return static_cast<int64_t>(partOffsets.size() / whole.size());
  }
  /// Returns the offset of a rank's part.
  std::vector<int64_t> partOffset(int64_t rank) const {
    auto begin = partOffsets.begin() + rank * whole.size();
    return {begin, begin + whole.size()};
  }
};

/// Returns the bytes, or -1 if a size is negative or the product overflows.
int64_t tensorBytes(fp8_dtype dtype, const int64_t *dims, int64_t rank);

bool isInteger(fp8_dtype dtype);
bool isFloat(fp8_dtype dtype);

/// Returns whether safetensors has a name for this type. Tensors of other types
/// are stored as bytes, and the metadata name the type.
bool hasSafeTensorsName(fp8_dtype dtype);
/// Returns the least and largest value of an integer type, clipped to int64's.
std::pair<int64_t, int64_t> integerRange(fp8_dtype dtype);
/// Return one element of any type.
double elementAsDouble(const void *data, fp8_dtype dtype, int64_t index);
int64_t elementAsInteger(const void *data, fp8_dtype dtype, int64_t index);
/// Stores `value`, which must be in the type's range.
void storeInteger(void *data, fp8_dtype dtype, int64_t index, int64_t value);
/// Stores `value` as f32 or f64.
void storeDouble(void *data, fp8_dtype dtype, int64_t index, double value);
/// Returns the index of the first element that is NaN or infinite, or -1.
int64_t firstNonFinite(const void *data, const TensorType &type);

/// Returns the shortest text that reads back as the same number.
std::string numberText(double value);
/// Quotes a text as JSON, which is UTF-8: names of source files may hold other
/// bytes, each of which becomes U+FFFD.
std::string jsonText(const std::string &text);
/// 1234567 -> "1,234,567".
std::string groupedText(int64_t value);
/// 12345678 -> "11.8 MiB".
std::string bytesText(int64_t bytes);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

struct FreeDeleter {
  void operator()(void *memory) const;
  int64_t mappedBytes = 0; // of a mapped file; 0: heap memory
};
using AlignedBuffer = std::unique_ptr<char, FreeDeleter>;
/// Allocates 64-byte aligned memory that is not cleared.
AlignedBuffer allocateAligned(int64_t bytes);

/// Rounds up to a multiple of `alignment`; the default is that of host buffers.
constexpr int64_t alignUp(int64_t bytes, int64_t alignment = 64) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Zeroed pages that take memory only once they are touched.
class Mapping {
public:
  Mapping() = default;
  explicit Mapping(int64_t bytes);
  ~Mapping();
  Mapping(Mapping &&other) noexcept { *this = std::move(other); }
  Mapping &operator=(Mapping &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(length, other.length);
    return *this;
  }
  char *data() const { return memory; }
  int64_t reserved() const { return length; }
  int64_t touched() const;
  /// Frees the whole pages of a range: they read as zeros again.
  void release(const char *begin, int64_t bytes);

private:
  char *memory = nullptr;
  int64_t length = 0;
};

/// Returns the largest resident set of the process so far (VmHWM); 0 if
/// unknown.
int64_t peakRss();

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Returns "No such file or directory", ...
std::string errnoText(int code);

struct FileContents {
  AlignedBuffer data;
  int64_t size = 0;
};
FileContents readFile(const std::string &path);
/// Does the same for a file that is never changed in place: its pages take
/// memory only where they are read.
FileContents mapFile(const std::string &path);
std::string readTextFile(const std::string &path);

/// Writes the pieces one after another. The file has either its old or its new
/// contents, whatever happens: temporary file, fsync, rename, fsync of the
/// directory. A symbolic link stays: the file that it leads to is written. So
/// do pipes and devices, which are written directly.
struct Piece {
  const void *data;
  int64_t size;
};
void writeFileAtomically(const std::string &path,
                         const std::vector<Piece> &pieces);
void writeFileAtomically(const std::string &path, const std::string &text);

/// Removes temporary files that killed processes left behind.
void removeTemporaryFiles(const std::string &directory);

bool fileExists(const std::string &path);
/// Returns the directory of a file; "." if its path has none.
std::string directoryOf(const std::string &path);
/// Returns the names in a directory, sorted.
std::vector<std::string> listDirectory(const std::string &path);
/// Creates a directory and its missing parents.
void createDirectories(const std::string &path);

/// Keeps other runs from writing to a directory. The lock ends with the
/// process, however that ends, and leaves no file.
class DirectoryLock {
public:
  DirectoryLock() = default;
  DirectoryLock(const DirectoryLock &) = delete;
  DirectoryLock &operator=(const DirectoryLock &) = delete;
  ~DirectoryLock();
  /// Throws if another process or object has the lock. File systems without
  /// locks lock nothing.
  void take(const std::string &path);

private:
  int file = -1;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_H
