//===- SafeTensors.cpp - Tensor files -------------------------------------===//

#include "SafeTensors.h"
#include "../Support/Json.h"
#include "Checkpoint.h"
#include "SafeTensorsIndex.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace fp8::rt {

using json = nlohmann::json;

/// The format's own limit: a larger header means a wrong size.
static constexpr uint64_t maxHeaderBytes = 100000000;

static uint64_t loadLittle(const char *data, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(data[i]);
  return value;
}

const TensorFile::Tensor *TensorFile::find(const std::string &name) const {
  for (const Tensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

/// Parses JSON and rejects objects with duplicate keys (the parser alone would
/// silently keep the last one).
static json parseUniqueKeys(const std::string &text, const char *begin,
                            const char *end) {
  std::vector<std::set<std::string>> keys;
  // Nothing valid is nested deeper, and errors print what they name.
  constexpr int maxDepth = 8;
  auto callback = [&](int depth, json::parse_event_t event, json &parsed) {
    if (depth > maxDepth)
      throw Error(FP8_ERROR_FORMAT,
                  str(text, "nested more than ", maxDepth, " deep"));
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      if (!keys.back().insert(parsed.get<std::string>()).second)
        throw Error(
            FP8_ERROR_FORMAT,
            str(text, "name '", parsed.get<std::string>(), "' appears twice"));
    }
    return true;
  };
  try {
    return json::parse(begin, end, callback);
  } catch (const json::exception &error) {
    throw Error(FP8_ERROR_FORMAT, str(text, "not valid JSON: ", error.what()));
  }
}

/// Returns the element type with this name.
static std::optional<fp8_dtype> dtypeOf(const json &name) {
  for (int dtype = 0; name.is_string() && dtype < FP8_NUM_DTYPES; ++dtype)
    if (name.get<std::string>() ==
        fp8_dtype_name(static_cast<fp8_dtype>(dtype)))
      return static_cast<fp8_dtype>(dtype);
  return std::nullopt;
}

/// The metadata key for the types that safetensors has no name for: a JSON
/// object from tensor to type. In the file such tensors have type U8.
static constexpr const char *dtypesKey = "fp8.dtypes";

namespace {
/// Reads one file and checks everything that the format demands.
class SafeTensorsReader {
public:
  SafeTensorsReader(const std::string &path, FileContents contents)
      : where(str("'", path, "' is no valid safetensors file: ")) {
    file.contents.push_back(std::move(contents));
  }

  TensorFile read();

private:
  struct Entry {
    TensorFile::Tensor tensor;
    uint64_t begin, end;
  };

  json readHeader();
  void readMetadata(const json &metadata);
  Entry readEntry(const std::string &name, const json &value);
  TensorType readType(const json &dtype, const json &shape);
  void readOffsets(const json &offsets, Entry &entry);
  void takeInOrder(std::vector<Entry> entries);
  void applyNamedTypes();

  [[noreturn]] void fail(const std::string &message) const {
    throw Error(FP8_ERROR_FORMAT, where + message);
  }

  std::string where;
  TensorFile file;
  const char *data = nullptr;
  uint64_t dataBytes = 0;
};
} // namespace

json SafeTensorsReader::readHeader() {
  const char *bytes = file.contents.front().data.get();
  int64_t size = file.contents.front().size;
  if (size < 8)
    fail(str("expected at least 8 bytes but got ", size));
  uint64_t headerBytes = loadLittle(bytes, 8);
  if (std::memcmp(bytes, "PK\3\4", 4) == 0)
    fail("it is a zip archive, such as .npz, which is not supported: write its "
         "arrays to one .safetensors file, or those of data to .npy files");
  if (headerBytes > maxHeaderBytes)
    fail(str("its header claims ", headerBytes, " bytes, the format allows ",
             maxHeaderBytes));
  if (headerBytes > static_cast<uint64_t>(size - 8))
    fail(str("its header claims ", headerBytes, " bytes but only ", size - 8,
             " follow (truncated?)"));
  if (headerBytes == 0 || bytes[8] != '{')
    fail("the header does not begin with '{'");
  data = bytes + 8 + headerBytes;
  dataBytes = size - 8 - headerBytes;
  return parseUniqueKeys(where + "the header: ", bytes + 8, data);
}

void SafeTensorsReader::readMetadata(const json &metadata) {
  if (!metadata.is_object())
    fail("__metadata__ is not a map");
  for (auto &[key, text] : metadata.items()) {
    if (!text.is_string())
      fail(str("metadata '", key, "' is not a string"));
    file.metadata[key] = text.get<std::string>();
  }
}

TensorType SafeTensorsReader::readType(const json &dtype, const json &shape) {
  TensorType type;
  std::optional<fp8_dtype> known = dtypeOf(dtype);
  if (!known || !hasSafeTensorsName(*known))
    fail(str("dtype ", dtype.dump(), " is not supported"));
  type.dtype = *known;
  if (!shape.is_array())
    fail("shape is not a list");
  for (const json &dim : shape) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > INT64_MAX)
      fail(str("shape ", shape.dump(), " is not valid"));
    type.dims.push_back(dim.get<int64_t>());
  }
  if (tensorBytes(type.dtype, type.dims.data(), type.dims.size()) < 0)
    fail(str("shape ", shape.dump(), " is too large"));
  return type;
}

void SafeTensorsReader::readOffsets(const json &offsets, Entry &entry) {
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    fail(str("data_offsets ", offsets.dump(), " are not valid"));
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end)
    fail(str("data_offsets ", offsets.dump(), " are not valid"));
  if (entry.end > dataBytes)
    fail(str("its data end at byte ", entry.end, " but the file has ",
             dataBytes, " bytes of data (truncated?)"));
  const TensorType &type = entry.tensor.type;
  if (entry.end - entry.begin != static_cast<uint64_t>(type.bytes()))
    fail(str("expected ", type.bytes(), " bytes for ", type.text(),
             " but its offsets give ", entry.end - entry.begin));
}

SafeTensorsReader::Entry SafeTensorsReader::readEntry(const std::string &name,
                                                      const json &value) {
  std::string outer = where;
  where += str("tensor '", name, "': ");
  if (!value.is_object() || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    fail("expected dtype, shape and data_offsets");
  Entry entry;
  entry.tensor.name = name;
  entry.tensor.type = readType(value["dtype"], value["shape"]);
  readOffsets(value["data_offsets"], entry);
  entry.tensor.data = data + entry.begin;
  where = std::move(outer);
  return entry;
}

/// Takes the tensors in the order of their data; each byte must belong to
/// exactly one.
void SafeTensorsReader::takeInOrder(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.tensor.name) <
           std::tie(b.begin, b.end, b.tensor.name);
  });
  uint64_t end = 0;
  for (Entry &entry : entries) {
    if (entry.begin < end)
      fail(str("tensor '", entry.tensor.name,
               "' overlaps the tensor before it"));
    if (entry.begin > end)
      fail(str("there is a hole before tensor '", entry.tensor.name, "'"));
    end = entry.end;
    file.tensors.push_back(std::move(entry.tensor));
  }
  if (end != dataBytes)
    fail(str("its tensors take ", end, " bytes but ", dataBytes,
             " bytes of data follow the header"));
}

/// Gives tensors the types that the metadata name.
void SafeTensorsReader::applyNamedTypes() {
  auto metadata = file.metadata.find(dtypesKey);
  if (metadata == file.metadata.end())
    return;
  where += str("metadata '", dtypesKey, "': ");
  const std::string &text = metadata->second;
  json types = parseUniqueKeys(where, text.data(), text.data() + text.size());
  for (const auto &[name, type] : types.items()) {
    auto tensor = std::find_if(
        file.tensors.begin(), file.tensors.end(),
        [&name = name](const auto &tensor) { return tensor.name == name; });
    std::optional<fp8_dtype> dtype = dtypeOf(type);
    if (tensor == file.tensors.end() || tensor->type.dtype != FP8_DTYPE_U8 ||
        !dtype || fp8_dtype_size(*dtype) != 1)
      fail(str("expected the type of a tensor of bytes but got '", name,
               "': ", type.dump()));
    tensor->type.dtype = *dtype;
  }
}

TensorFile SafeTensorsReader::read() {
  json header = readHeader();
  std::vector<Entry> entries;
  for (auto &[name, value] : header.items()) {
    if (name == "__metadata__")
      readMetadata(value);
    else
      entries.push_back(readEntry(name, value));
  }
  takeInOrder(std::move(entries));
  applyNamedTypes();
  return std::move(file);
}

TensorFile readSafeTensors(const std::string &path) {
  return isSafeTensorsIndex(path)
             ? readSafeTensorsSet(path)
             : SafeTensorsReader(path, readFile(path)).read();
}

TensorFile mapSafeTensors(const std::string &path) {
  return SafeTensorsReader(path, mapFile(path)).read();
}

namespace {
/// Reads a .npy file: numpy's magic bytes, a header and the elements.
class NpyReader {
public:
  explicit NpyReader(const std::string &path) : path(path) {}
  TensorFile read();

private:
  [[noreturn]] void fail(const std::string &message) const {
    throw Error(FP8_ERROR_FORMAT,
                str("'", path, "' is no readable .npy file: ", message));
  }
  /// Reads the header; returns where the elements start.
  int64_t readHeader(const char *bytes, int64_t size);
  /// Returns the rest of the header from the value of `key` on.
  std::string valueOf(const std::string &key) const;
  fp8_dtype dtype() const;
  std::vector<int64_t> dims() const;

  const std::string &path;
  /// A Python dictionary: {'descr': '<i4', 'fortran_order': False,
  /// 'shape': (10, 4), }
  std::string header;
};
} // namespace

int64_t NpyReader::readHeader(const char *bytes, int64_t size) {
  if (size < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
    fail("expected numpy's magic bytes");
  int lengthBytes = bytes[6] == 1 ? 2 : 4;
  int64_t headerBytes = loadLittle(bytes + 8, lengthBytes);
  int64_t start = 8 + lengthBytes + headerBytes;
  if (start > size)
    fail("its header is longer than the file (truncated?)");
  header.assign(bytes + 8 + lengthBytes, headerBytes);
  return start;
}

std::string NpyReader::valueOf(const std::string &key) const {
  size_t at = header.find("'" + key + "':");
  if (at == std::string::npos)
    fail(str("its header has no '", key, "'"));
  at = header.find_first_not_of(' ', at + key.size() + 3);
  return at == std::string::npos ? std::string() : header.substr(at);
}

fp8_dtype NpyReader::dtype() const {
  static const std::pair<const char *, fp8_dtype> types[] = {
      {"|b1", FP8_DTYPE_BOOL},
      {"|u1", FP8_DTYPE_U8},
      {"|i1", FP8_DTYPE_I8},
      {"<u2", FP8_DTYPE_U16},
      {"<i2", FP8_DTYPE_I16},
      {"<u4", FP8_DTYPE_U32},
      {"<i4", FP8_DTYPE_I32},
      {"<u8", FP8_DTYPE_U64},
      {"<i8", FP8_DTYPE_I64},
      {"<f2", FP8_DTYPE_F16},
      {"<f4", FP8_DTYPE_F32},
      {"<f8", FP8_DTYPE_F64},
      // numpy has no bf16: ml_dtypes writes it as two bytes without a type.
      {"<V2", FP8_DTYPE_BF16},
      {"|V2", FP8_DTYPE_BF16}};
  std::string descr = valueOf("descr");
  const auto *type = std::find_if(
      std::begin(types), std::end(types), [&](const auto &candidate) {
        return descr.rfind(str("'", candidate.first, "'"), 0) == 0;
      });
  if (type == std::end(types))
    fail(str("its type ", descr.substr(0, descr.find(',')),
             " is not supported"));
  return type->second;
}

std::vector<int64_t> NpyReader::dims() const {
  std::string shape = valueOf("shape");
  size_t close = shape.find(')');
  if (shape.empty() || shape[0] != '(' || close == std::string::npos)
    fail("its shape is not valid");
  auto texts = classic<std::istringstream>(shape.substr(1, close - 1));
  std::vector<int64_t> dims;
  std::string text;
  while (std::getline(texts, text, ',')) {
    char *end;
    const char *begin = text.c_str();
    errno = 0;
    int64_t value = std::strtoll(begin, &end, 10);
    if (value < 0 || errno == ERANGE)
      fail(str("expected sizes >= 0 in its shape but got ",
               std::to_string(value)));
    if (end != begin)
      dims.push_back(value);
  }
  return dims;
}

TensorFile NpyReader::read() {
  TensorFile file;
  file.contents.push_back(readFile(path));
  const char *bytes = file.contents.front().data.get();
  int64_t size = file.contents.front().size;
  int64_t start = readHeader(bytes, size);
  TensorFile::Tensor tensor;
  tensor.type.dtype = dtype();
  if (valueOf("fortran_order").rfind("False", 0) != 0)
    fail("column-major arrays are not supported");
  tensor.type.dims = dims();
  int64_t needed = tensorBytes(tensor.type.dtype, tensor.type.dims.data(),
                               tensor.type.dims.size());
  if (needed < 0)
    fail(str("its shape ", tensor.type.text(), " is too large"));
  if (needed != size - start)
    fail(str("expected ", needed, " bytes for ", tensor.type.text(),
             " but got ", size - start));
  tensor.data = bytes + start;
  file.tensors.push_back(std::move(tensor));
  return file;
}

TensorFile readNpy(const std::string &path) { return NpyReader(path).read(); }

std::map<std::string, std::string> metadataOf(const char *const *pairs,
                                              int64_t numPairs) {
  checkTexts("keys and values of metadata", pairs,
             numPairs > INT64_MAX / 2 ? -1 : 2 * numPairs);
  std::map<std::string, std::string> metadata;
  for (int64_t i = 0; i < numPairs; ++i)
    metadata[pairs[2 * i]] = pairs[2 * i + 1];
  return metadata;
}

/// Throws unless a name can stand in JSON. With other characters in its place
/// no reader would find it.
static void checkName(const std::string &path, const std::string &name) {
  try {
    json(name).dump();
  } catch (const json::type_error &) {
    throw Error(FP8_ERROR_INVALID,
                str("cannot write '", path,
                    "': expected names in UTF-8 but got ",
                    json(name).dump(-1, ' ', /*ensure_ascii=*/true,
                                    json::error_handler_t::replace)));
  }
}

void writeSafeTensors(const std::string &path,
                      std::vector<TensorToWrite> tensors,
                      std::map<std::string, std::string> metadata) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorToWrite &a, const TensorToWrite &b) {
              size_t sizeA = fp8_dtype_size(a.type.dtype),
                     sizeB = fp8_dtype_size(b.type.dtype);
              return sizeA != sizeB ? sizeA > sizeB : a.name < b.name;
            });
  json header = json::object(), namedTypes = json::object();
  std::vector<Piece> pieces(2);
  int64_t offset = 0;
  for (const TensorToWrite &tensor : tensors) {
    int64_t size = tensor.type.bytes();
    checkName(path, tensor.name);
    if (tensor.name == "__metadata__" || header.contains(tensor.name))
      throw Error(FP8_ERROR_INVALID,
                  str("cannot write '", path, "': two tensors named '",
                      tensor.name, "'"));
    bool isNamed = hasSafeTensorsName(tensor.type.dtype);
    if (!isNamed)
      namedTypes[tensor.name] = fp8_dtype_name(tensor.type.dtype);
    header[tensor.name] = {
        {"dtype", fp8_dtype_name(isNamed ? tensor.type.dtype : FP8_DTYPE_U8)},
        {"shape", tensor.type.dims},
        {"data_offsets", {offset, offset + size}}};
    pieces.push_back({tensor.data, size});
    offset += size;
  }
  if (!namedTypes.empty())
    metadata[dtypesKey] = namedTypes.dump();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  // Metadata are arbitrary bytes; JSON requires UTF-8.
  std::string text = dumpJson(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i));
  pieces[0] = {length, 8};
  pieces[1] = {text.data(), static_cast<int64_t>(text.size())};
  writeFileAtomically(path, pieces);
}

} // namespace fp8::rt

//===----------------------------------------------------------------------===//
// C interface of this file
//===----------------------------------------------------------------------===//

using namespace fp8::rt;

fp8_status fp8_tensors_load(const char *path, fp8_tensors **tensors) {
  return guard([&] {
    if (!path || !tensors)
      throw Error(FP8_ERROR_INVALID, "expected a path but got none");
    *tensors = nullptr;
    auto result = std::make_unique<fp8_tensors>();
    result->file = readSafeTensors(path);
    *tensors = result.release();
  });
}

fp8_status fp8_checkpoint_load(const char *directory, fp8_tensors **tensors) {
  return guard([&] {
    if (!directory || !tensors)
      throw Error(FP8_ERROR_INVALID, "expected a directory but got none");
    *tensors = nullptr;
    auto result = std::make_unique<fp8_tensors>();
    result->file = readNewestCheckpoint(directory);
    if (!result->file.tensors.empty())
      *tensors = result.release();
  });
}

void fp8_tensors_destroy(fp8_tensors *tensors) { delete tensors; }

int64_t fp8_tensors_count(const fp8_tensors *tensors) {
  return tensors ? static_cast<int64_t>(tensors->file.tensors.size()) : 0;
}

fp8_status fp8_tensors_get(const fp8_tensors *tensors, int64_t index,
                           fp8_tensor_info *info, const void **data) {
  return guard([&] {
    if (index < 0 || index >= fp8_tensors_count(tensors))
      throw Error(FP8_ERROR_INVALID,
                  str("expected a tensor index below ",
                      fp8_tensors_count(tensors), " but got ", index));
    const TensorFile::Tensor &tensor = tensors->file.tensors[index];
    if (info) {
      *info = fp8_tensor_info();
      info->name = tensor.name.c_str();
      info->dtype = tensor.type.dtype;
      info->rank = static_cast<int32_t>(tensor.type.dims.size());
      info->dims = tensor.type.dims.data();
      info->vocabulary = -1;
      info->state_arg = -1;
    }
    if (data)
      *data = tensor.data;
  });
}

const char *fp8_tensors_metadata(const fp8_tensors *tensors, const char *key) {
  if (!tensors || !key)
    return nullptr;
  auto found = tensors->file.metadata.find(key);
  return found == tensors->file.metadata.end() ? nullptr
                                               : found->second.c_str();
}

fp8_status fp8_tensors_save(const char *path, const fp8_tensor_info *infos,
                            const void *const *data, int64_t count,
                            const char *const *metadata, int64_t num_metadata) {
  return guard([&] {
    if (!path || count < 0 || (count > 0 && (!infos || !data)))
      throw Error(FP8_ERROR_INVALID, "expected a path and tensors");
    std::vector<TensorToWrite> tensors;
    for (int64_t i = 0; i < count; ++i) {
      if (!infos[i].name || fp8_tensor_bytes(&infos[i]) < 0)
        throw Error(FP8_ERROR_INVALID,
                    str("tensor ", i, " has no name or no valid type"));
      if (!data[i] && fp8_tensor_bytes(&infos[i]) > 0)
        throw Error(FP8_ERROR_INVALID, str("expected data for '", infos[i].name,
                                           "' but got NULL"));
      TensorType type;
      type.dtype = infos[i].dtype;
      type.dims.assign(infos[i].dims, infos[i].dims + infos[i].rank);
      tensors.push_back({infos[i].name, std::move(type), data[i]});
    }
    writeSafeTensors(path, std::move(tensors),
                     metadataOf(metadata, num_metadata));
  });
}
