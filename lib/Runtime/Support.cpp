//===- Support.cpp - Errors, tensor types, files --------------------------===//

#include "Support.h"
#include "Json.h"
#include "fp8/Binding/Texts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static thread_local std::string lastError;

static void setLastError(const char *message) noexcept {
  try {
    lastError = message;
  } catch (...) {
    lastError.clear();
  }
}

Error currentError() {
  try {
    throw;
  } catch (const Error &error) {
    return error;
  } catch (const std::bad_alloc &) {
    return {FP8_ERROR_MEMORY, "out of memory"};
  } catch (const std::exception &error) {
    return {FP8_ERROR_INTERNAL, error.what()};
  } catch (...) {
    return {FP8_ERROR_INTERNAL, "unknown failure"};
  }
}

fp8_status recordFailure() noexcept {
  try {
    Error error = currentError();
    setLastError(error.what());
    return error.status;
  } catch (...) {
    setLastError("out of memory");
    return FP8_ERROR_MEMORY;
  }
}

void checkTexts(const char *what, const char *const *texts, int64_t count) {
  if (std::string mistake = fp8binding::mistakeInTexts(what, texts, count);
      !mistake.empty())
    throw Error(FP8_ERROR_INVALID, mistake);
}

//===----------------------------------------------------------------------===//
// Tensor types
//===----------------------------------------------------------------------===//

namespace {
struct DtypeInfo {
  const char *name; // in safetensors
  const char *text; // in messages
  size_t size;
};
} // namespace

static const DtypeInfo dtypes[FP8_NUM_DTYPES] = {
    {"BOOL", "bool", 1},
    {"U8", "u8", 1},
    {"I8", "i8", 1},
    {"U16", "u16", 2},
    {"I16", "i16", 2},
    {"U32", "u32", 4},
    {"I32", "i32", 4},
    {"U64", "u64", 8},
    {"I64", "i64", 8},
    {"F8_E4M3", "f8e4m3fn", 1},
    {"F8_E5M2", "f8e5m2", 1},
    {"F16", "f16", 2},
    {"BF16", "bf16", 2},
    {"F32", "f32", 4},
    {"F64", "f64", 8},
    {"F8_E4M3FNUZ", "f8e4m3fnuz", 1},
    {"F8_E5M2FNUZ", "f8e5m2fnuz", 1},
    {"F8_E8M0", "f8e8m0fnu", 1},
    // Safetensors has no name for these (see `hasSafeTensorsName`).
    {"float8_e4m3", "f8e4m3", 1},
    {"float8_e3m4", "f8e3m4", 1},
    {"float8_e4m3b11fnuz", "f8e4m3b11fnuz", 1},
};

static bool isDtype(fp8_dtype dtype) {
  return static_cast<int>(dtype) >= 0 &&
         static_cast<int>(dtype) < FP8_NUM_DTYPES;
}

int64_t tensorBytes(fp8_dtype dtype, const int64_t *dims, int64_t rank) {
  if (!isDtype(dtype) || rank < 0 || (rank > 0 && !dims))
    return -1;
  int64_t bytes = dtypes[dtype].size;
  bool empty = false;
  for (int64_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return -1;
    if (dims[i] == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, dims[i], &bytes))
      return -1;
  }
  return empty ? 0 : bytes;
}

int64_t TensorType::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

std::string TensorType::text() const {
  std::string result = isDtype(dtype) ? dtypes[dtype].text : "?";
  result += '[';
  for (size_t i = 0; i < dims.size(); ++i)
    result += (i ? "," : "") + std::to_string(dims[i]);
  return result + ']';
}

bool isInteger(fp8_dtype dtype) {
  return dtype >= FP8_DTYPE_U8 && dtype <= FP8_DTYPE_I64;
}

bool isFloat(fp8_dtype dtype) {
  return dtype >= FP8_DTYPE_F8_E4M3FN && dtype < FP8_NUM_DTYPES;
}

bool hasSafeTensorsName(fp8_dtype dtype) { return dtype < FP8_DTYPE_F8_E4M3; }

std::pair<int64_t, int64_t> integerRange(fp8_dtype dtype) {
  switch (dtype) {
  case FP8_DTYPE_BOOL:
    return {0, 1};
  case FP8_DTYPE_U8:
    return {0, UINT8_MAX};
  case FP8_DTYPE_I8:
    return {INT8_MIN, INT8_MAX};
  case FP8_DTYPE_U16:
    return {0, UINT16_MAX};
  case FP8_DTYPE_I16:
    return {INT16_MIN, INT16_MAX};
  case FP8_DTYPE_U32:
    return {0, UINT32_MAX};
  case FP8_DTYPE_I32:
    return {INT32_MIN, INT32_MAX};
  case FP8_DTYPE_U64:
    return {0, INT64_MAX};
  default:
    return {INT64_MIN, INT64_MAX};
  }
}

template <typename T> static T load(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T> static void store(void *data, int64_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}

int64_t elementAsInteger(const void *data, fp8_dtype dtype, int64_t index) {
  switch (dtype) {
  case FP8_DTYPE_BOOL:
  case FP8_DTYPE_U8:
    return load<uint8_t>(data, index);
  case FP8_DTYPE_I8:
    return load<int8_t>(data, index);
  case FP8_DTYPE_U16:
    return load<uint16_t>(data, index);
  case FP8_DTYPE_I16:
    return load<int16_t>(data, index);
  case FP8_DTYPE_U32:
    return load<uint32_t>(data, index);
  case FP8_DTYPE_I32:
    return load<int32_t>(data, index);
  case FP8_DTYPE_U64:
    // Values that int64 cannot hold become its largest: never valid tokens.
    return static_cast<int64_t>(
        std::min<uint64_t>(load<uint64_t>(data, index), INT64_MAX));
  default:
    return load<int64_t>(data, index);
  }
}

void storeInteger(void *data, fp8_dtype dtype, int64_t index, int64_t value) {
  switch (fp8_dtype_size(dtype)) {
  case 1:
    return store(data, index, static_cast<uint8_t>(value));
  case 2:
    return store(data, index, static_cast<uint16_t>(value));
  case 4:
    return store(data, index, static_cast<uint32_t>(value));
  default:
    return store(data, index, value);
  }
}

void storeDouble(void *data, fp8_dtype dtype, int64_t index, double value) {
  if (dtype == FP8_DTYPE_F32)
    store(data, index, static_cast<float>(value));
  else
    store(data, index, value);
}

/// Decodes a byte of a format without infinities and without a negative zero,
/// whose encoding is the only NaN.
static double decodeUnsignedZero(uint8_t bits, int mantissaBits, int bias) {
  if (bits == 0x80)
    return std::numeric_limits<double>::quiet_NaN();
  int exponent = (bits & 0x7f) >> mantissaBits;
  int mantissa = bits & ((1 << mantissaBits) - 1);
  double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                               : std::ldexp(mantissa + (1 << mantissaBits),
                                            exponent - bias - mantissaBits);
  return bits & 0x80 ? -value : value;
}

/// Decodes a power of two, the scale of the OCP microscaling formats (5.4.1).
static double decodePowerOfTwo(uint8_t bits) {
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN()
                      : std::ldexp(1.0, bits - 127);
}

/// Decodes any format with sign, exponent, mantissa and IEEE's subnormals.
static double decodeFloat(uint32_t bits, int exponentBits, int mantissaBits,
                          bool hasInfinity) {
  uint32_t mantissa = bits & ((1u << mantissaBits) - 1);
  uint32_t exponent = (bits >> mantissaBits) & ((1u << exponentBits) - 1);
  bool negative = (bits >> (mantissaBits + exponentBits)) & 1;
  uint32_t top = (1u << exponentBits) - 1;
  int bias = static_cast<int>(top >> 1);
  double value;
  if (exponent == top && hasInfinity)
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == top && mantissa == (1u << mantissaBits) - 1 &&
           !hasInfinity)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - bias - mantissaBits);
  else
    value = std::ldexp(mantissa + (1u << mantissaBits),
                       static_cast<int>(exponent) - bias - mantissaBits);
  return negative ? -value : value;
}

double elementAsDouble(const void *data, fp8_dtype dtype, int64_t index) {
  switch (dtype) {
  case FP8_DTYPE_F8_E4M3FN:
    return decodeFloat(load<uint8_t>(data, index), 4, 3, false);
  case FP8_DTYPE_F8_E5M2:
    return decodeFloat(load<uint8_t>(data, index), 5, 2, true);
  case FP8_DTYPE_F8_E4M3:
    return decodeFloat(load<uint8_t>(data, index), 4, 3, true);
  case FP8_DTYPE_F8_E3M4:
    return decodeFloat(load<uint8_t>(data, index), 3, 4, true);
  case FP8_DTYPE_F8_E4M3FNUZ:
    return decodeUnsignedZero(load<uint8_t>(data, index), 3, 8);
  case FP8_DTYPE_F8_E4M3B11FNUZ:
    return decodeUnsignedZero(load<uint8_t>(data, index), 3, 11);
  case FP8_DTYPE_F8_E5M2FNUZ:
    return decodeUnsignedZero(load<uint8_t>(data, index), 2, 16);
  case FP8_DTYPE_F8_E8M0FNU:
    return decodePowerOfTwo(load<uint8_t>(data, index));
  case FP8_DTYPE_F16:
    return decodeFloat(load<uint16_t>(data, index), 5, 10, true);
  case FP8_DTYPE_BF16:
    return decodeFloat(load<uint16_t>(data, index), 8, 7, true);
  case FP8_DTYPE_F32:
    return load<float>(data, index);
  case FP8_DTYPE_F64:
    return load<double>(data, index);
  case FP8_DTYPE_U64:
    return static_cast<double>(load<uint64_t>(data, index));
  default:
    return static_cast<double>(elementAsInteger(data, dtype, index));
  }
}

/// Returns the index of the first of `count` bytes that is `value`, the only
/// NaN of its format, or -1.
static int64_t firstEqual(const void *data, int64_t count, uint8_t value) {
  const void *found = count ? std::memchr(data, value, count) : nullptr;
  return found ? static_cast<const char *>(found) -
                     static_cast<const char *>(data)
               : -1;
}

/// Returns the index of the first of `count` words that is NaN or infinite, or
/// -1: its bits under `mask` are at least `limit`.
template <typename T>
static int64_t firstAtLeast(const void *data, int64_t count, T mask, T limit) {
  const T *words = static_cast<const T *>(data);
  for (int64_t i = 0; i < count; ++i)
    if ((words[i] & mask) >= limit)
      return i;
  return -1;
}

int64_t firstNonFinite(const void *data, const TensorType &type) {
  int64_t count = type.elements();
  switch (type.dtype) {
  case FP8_DTYPE_F8_E4M3FN:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x7f);
  case FP8_DTYPE_F8_E5M2:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x7c);
  case FP8_DTYPE_F8_E4M3:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x78);
  case FP8_DTYPE_F8_E3M4:
    return firstAtLeast<uint8_t>(data, count, 0x7f, 0x70);
  case FP8_DTYPE_F8_E4M3FNUZ:
  case FP8_DTYPE_F8_E4M3B11FNUZ:
  case FP8_DTYPE_F8_E5M2FNUZ:
    return firstEqual(data, count, 0x80);
  case FP8_DTYPE_F8_E8M0FNU:
    return firstEqual(data, count, 0xff);
  case FP8_DTYPE_F16:
    return firstAtLeast<uint16_t>(data, count, 0x7fff, 0x7c00);
  case FP8_DTYPE_BF16:
    return firstAtLeast<uint16_t>(data, count, 0x7fff, 0x7f80);
  case FP8_DTYPE_F32:
    return firstAtLeast<uint32_t>(data, count, 0x7fffffff, 0x7f800000);
  case FP8_DTYPE_F64:
    return firstAtLeast<uint64_t>(data, count, 0x7fffffffffffffff,
                                  0x7ff0000000000000);
  default:
    return -1;
  }
}

std::string numberText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char text[40];
  bool isSingle = static_cast<double>(static_cast<float>(value)) == value;
  // (The functions of <charconv> do not depend on the process's locale.)
  char *end = text;
  for (int digits = isSingle ? 6 : 15; digits <= 17; ++digits) {
    end = std::to_chars(text, text + sizeof(text), value,
                        std::chars_format::general, digits)
              .ptr;
    double back = 0;
    std::from_chars(text, end, back);
    if (isSingle ? static_cast<float>(back) == static_cast<float>(value)
                 : back == value)
      break;
  }
  return {text, end};
}

std::string jsonText(const std::string &text) {
  return dumpJson(nlohmann::json(text));
}

std::string groupedText(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3;
       i > (value < 0 ? 1 : 0); i -= 3)
    digits.insert(i, ",");
  return digits;
}

std::string bytesText(int64_t bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void FreeDeleter::operator()(void *memory) const {
  if (mappedBytes > 0)
    munmap(memory, mappedBytes);
  else
    std::free(memory);
}

AlignedBuffer allocateAligned(int64_t bytes) {
  // (Unsigned, for any size can be asked for, but not be had.)
  uint64_t least = std::max<int64_t>(bytes, 1),
           rounded = (least + 63) / 64 * 64;
  void *memory = std::aligned_alloc(64, rounded);
  if (!memory)
    throw Error(FP8_ERROR_MEMORY,
                str("out of memory: cannot allocate ", bytesText(bytes)));
  return AlignedBuffer(static_cast<char *>(memory));
}

Mapping::Mapping(int64_t bytes) {
  if (bytes <= 0)
    return;
  uint64_t page = sysconf(_SC_PAGESIZE);
  uint64_t rounded = (bytes + page - 1) / page * page;
  void *address = mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw Error(FP8_ERROR_MEMORY,
                str("out of memory: cannot reserve ", bytesText(bytes), ": ",
                    errnoText(errno)));
  // Huge pages reduce TLB misses; where they are disabled this has no effect.
  if (rounded >= (16 << 20))
    madvise(address, rounded, MADV_HUGEPAGE);
  memory = static_cast<char *>(address);
  length = static_cast<int64_t>(rounded);
}

Mapping::~Mapping() {
  if (memory)
    munmap(memory, length);
}

int64_t Mapping::touched() const {
  if (!memory)
    return 0;
  int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> resident(length / page);
  if (mincore(memory, length, resident.data()) != 0)
    return 0;
  int64_t count = 0;
  for (unsigned char flags : resident)
    count += flags & 1;
  return count * page;
}

void Mapping::release(const char *begin, int64_t bytes) {
  int64_t page = sysconf(_SC_PAGESIZE), from = begin - memory,
          end = (from + bytes) / page * page;
  from = (from + page - 1) / page * page;
  if (from < end)
    madvise(memory + from, end - from, MADV_DONTNEED);
}

int64_t peakRss() {
  auto file = classic<std::ifstream>("/proc/self/status");
  std::string line;
  while (std::getline(file, line))
    if (line.rfind("VmHWM:", 0) == 0)
      return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::string errnoText(int code) {
  char buffer[256];
  // The GNU version returns the text, which need not be in the buffer.
  return strerror_r(code, buffer, sizeof(buffer));
}

namespace {
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};
} // namespace

/// Opens a regular file for reading and sets `size` to its bytes.
static void openToRead(const std::string &path, Descriptor &file,
                       int64_t &size) {
  // Without O_NONBLOCK opening a pipe waits for someone who writes to it.
  file.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0)
    throw Error(FP8_ERROR_IO,
                str("cannot open '", path, "': ", errnoText(errno)));
  struct stat status;
  if (fstat(file.fd, &status) != 0)
    throw Error(FP8_ERROR_IO,
                str("cannot read '", path, "': ", errnoText(errno)));
  if (S_ISDIR(status.st_mode))
    throw Error(FP8_ERROR_IO, str("cannot read '", path, "': is a directory"));
  if (!S_ISREG(status.st_mode))
    throw Error(FP8_ERROR_IO,
                str("cannot read '", path, "': not a regular file"));
  size = status.st_size;
}

FileContents readFile(const std::string &path) {
  Descriptor file;
  int64_t size = 0;
  openToRead(path, file, size);
  FileContents contents;
  contents.data = allocateAligned(size);
  while (contents.size < size) {
    ssize_t got = read(file.fd, contents.data.get() + contents.size,
                       size - contents.size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error(FP8_ERROR_IO,
                  str("cannot read '", path, "': ", errnoText(errno)));
    if (got == 0)
      break; // The file has shrunk; the reader checks the size.
    contents.size += got;
  }
  return contents;
}

FileContents mapFile(const std::string &path) {
  Descriptor file;
  int64_t size = 0;
  openToRead(path, file, size);
  // mmap rejects a length of zero.
  if (size == 0)
    return {allocateAligned(0), 0};
  void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (memory == MAP_FAILED)
    throw Error(FP8_ERROR_IO,
                str("cannot read '", path, "': ", errnoText(errno)));
  FreeDeleter unmap;
  unmap.mappedBytes = size;
  return {AlignedBuffer(static_cast<char *>(memory), unmap), size};
}

std::string readTextFile(const std::string &path) {
  FileContents contents = readFile(path);
  return std::string(contents.data.get(), contents.size);
}

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

static const std::string temporarySuffix = ".fp8-tmp";

void removeTemporaryFiles(const std::string &directory) {
  for (const std::string &name : listDirectory(directory))
    if (name.size() > temporarySuffix.size() &&
        name.compare(name.size() - temporarySuffix.size(),
                     temporarySuffix.size(), temporarySuffix) == 0)
      unlink((directory + "/" + name).c_str());
}

/// Writes all bytes; returns 0, or the number of the error.
static int writeAll(int fd, const std::vector<Piece> &pieces) {
  for (const Piece &piece : pieces) {
    const char *data = static_cast<const char *>(piece.data);
    int64_t left = piece.size;
    while (left > 0) {
      ssize_t wrote = write(fd, data, std::min<int64_t>(left, 1 << 30));
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote < 0)
        return errno;
      data += wrote;
      left -= wrote;
    }
  }
  return 0;
}

/// Writes to a pipe or device, which another file must not replace; returns 0,
/// or the number of the error.
static int writeThrough(const std::string &path,
                        const std::vector<Piece> &pieces) {
  Descriptor file;
  file.fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd < 0)
    return errno;
  if (int code = writeAll(file.fd, pieces))
    return code;
  return close(std::exchange(file.fd, -1)) == 0 ? 0 : errno;
}

/// Replaces a regular file, or creates it; returns 0, or the number of the
/// error.
static int replaceFile(const std::string &path,
                       const std::vector<Piece> &pieces) {
  std::string temporary = path + temporarySuffix;
  Descriptor file;
  file.fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.fd < 0)
    return errno;
  int code = writeAll(file.fd, pieces);
  if (!code &&
      (fsync(file.fd) != 0 || rename(temporary.c_str(), path.c_str()) != 0))
    code = errno;
  if (code) {
    unlink(temporary.c_str());
    return code;
  }
  // Without this a power failure may undo the rename. Some file systems refuse
  // to sync a directory; the file itself is safe then.
  Descriptor directory;
  directory.fd =
      open(directoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory.fd >= 0)
    fsync(directory.fd);
  return 0;
}

/// Returns where a symbolic link leads, even if nothing is there yet; any other
/// path as it is.
static std::string followLinks(std::string path) {
  std::error_code isNone;
  for (int links = 0; links < 40; ++links) {
    std::filesystem::path target = std::filesystem::read_symlink(path, isNone);
    if (isNone)
      break;
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

void writeFileAtomically(const std::string &path,
                         const std::vector<Piece> &pieces) {
  struct stat status;
  bool isThere = stat(path.c_str(), &status) == 0;
  int code = 0;
  if (!isThere && errno == ELOOP)
    code = ELOOP;
  else if (isThere && !S_ISREG(status.st_mode))
    code = writeThrough(path, pieces);
  else
    code = replaceFile(followLinks(path), pieces);
  if (code)
    throw Error(FP8_ERROR_IO,
                str("cannot write '", path, "': ", errnoText(code)));
}

void writeFileAtomically(const std::string &path, const std::string &text) {
  writeFileAtomically(path, {{text.data(), static_cast<int64_t>(text.size())}});
}

bool fileExists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::vector<std::string> listDirectory(const std::string &path) {
  DIR *directory = opendir(path.c_str());
  if (!directory)
    throw Error(FP8_ERROR_IO,
                str("cannot list '", path, "': ", errnoText(errno)));
  std::vector<std::string> names;
  while (const dirent *entry = readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void createDirectories(const std::string &path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/')
      continue;
    std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      int code = errno;
      if (fileExists(part))
        continue;
      throw Error(FP8_ERROR_IO, str("cannot create directory '", path,
                                    "': ", errnoText(code)));
    }
  }
  struct stat status;
  bool isThere = stat(path.c_str(), &status) == 0;
  if (!isThere || !S_ISDIR(status.st_mode))
    throw Error(FP8_ERROR_IO, str("cannot create directory '", path, "': ",
                                  isThere ? "a file of this name is there"
                                          : "it is a link to nothing"));
}

DirectoryLock::~DirectoryLock() {
  if (file >= 0)
    close(file);
}

void DirectoryLock::take(const std::string &path) {
  file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return;
  throw Error(FP8_ERROR_IO,
              str("another run writes to '", path,
                  "': wait for its end, or choose another directory "
                  "(processes that mpirun starts train together with "
                  "--data-parallel)"));
}

} // namespace fp8::rt

//===----------------------------------------------------------------------===//
// C interface of this file
//===----------------------------------------------------------------------===//

const char *fp8_last_error(void) { return fp8::rt::lastError.c_str(); }

const char *fp8_status_name(fp8_status status) {
  switch (status) {
  case FP8_OK:
    return "ok";
  case FP8_ERROR_INVALID:
    return "invalid use";
  case FP8_ERROR_IO:
    return "input/output error";
  case FP8_ERROR_FORMAT:
    return "malformed file";
  case FP8_ERROR_DATA:
    return "unfit data";
  case FP8_ERROR_MISMATCH:
    return "tensors do not match";
  case FP8_ERROR_NONFINITE:
    return "not a finite value";
  case FP8_ERROR_MEMORY:
    return "out of memory";
  case FP8_ERROR_INTERNAL:
    return "internal error";
  case FP8_INTERRUPTED:
    return "interrupted";
  case FP8_STOPPED:
    return "stopped by an alarm";
  case FP8_ERROR_RANK:
    return "another rank failed";
  }
  return "unknown status";
}

size_t fp8_dtype_size(fp8_dtype dtype) {
  return fp8::rt::isDtype(dtype) ? fp8::rt::dtypes[dtype].size : 0;
}

const char *fp8_dtype_name(fp8_dtype dtype) {
  return fp8::rt::isDtype(dtype) ? fp8::rt::dtypes[dtype].name : nullptr;
}

const char *fp8_role_name(fp8_role role) {
  static constexpr const char *names[FP8_NUM_ROLES] = {
      "state", "frozen", "batch", "key", "constant"};
  return role >= 0 && role < FP8_NUM_ROLES ? names[role] : nullptr;
}

const char *fp8_kind_name(fp8_kind kind) {
  static constexpr const char *names[FP8_NUM_KINDS] = {
      "other",        "parameter",
      "moment1",      "moment2",
      "step",         "state",
      "loss",         "metric",
      "output",       "trace_quantization",
      "trace_update", "trace_alignment"};
  return kind >= 0 && kind < FP8_NUM_KINDS ? names[kind] : nullptr;
}

int32_t fp8_abi_version(void) { return FP8_ABI_VERSION; }

int64_t fp8_tensor_bytes(const fp8_tensor_info *info) {
  return info ? fp8::rt::tensorBytes(info->dtype, info->dims, info->rank) : -1;
}
