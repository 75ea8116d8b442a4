//===- Arrays.cpp - Feeding batches from arrays ---------------------------===//

#include "Arrays.h"
#include "../State/Binding.h"
#include "../Support/Elements.h"
#include "../Support/Error.h"
#include "Data.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Finding tensor and argument
//===----------------------------------------------------------------------===//

static bool isWhole(fp8_dtype dtype) {
  return isInteger(dtype) || dtype == FP8_DTYPE_BOOL;
}

/// Returns whether `to` is a wider float type that represents every value of
/// `from`.
static bool widens(fp8_dtype from, fp8_dtype to) {
  return isFloat(from) && ((to == FP8_DTYPE_F64 && from != FP8_DTYPE_F64) ||
                           (to == FP8_DTYPE_F32 && from != FP8_DTYPE_F32 &&
                            from != FP8_DTYPE_F64));
}

static std::string listOf(const TensorFile &file) {
  constexpr size_t most = 20;
  std::string text;
  for (size_t i = 0; i < std::min(most, file.tensors.size()); ++i)
    text += str(i ? ", '" : "'", file.tensors[i].name, "' ",
                file.tensors[i].type.text());
  if (file.tensors.size() > most)
    text += str(" and ", file.tensors.size() - most, " more");
  return text.empty() ? "none" : text;
}

/// Returns the argument with this path, where `p.x` equals `p['x']`.
static size_t findArgument(const std::string &function,
                           const std::string &option, const std::string &path,
                           const std::vector<TensorInfo> &arguments) {
  std::vector<std::string> keys = splitPath(path);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (splitPath(arguments[i].name) != keys)
      continue;
    if (arguments[i].role == FP8_ROLE_STATE)
      throw Error(FP8_ERROR_DATA,
                  str(option, ": '", arguments[i].name, "' is state, which ",
                      function, " returns itself"));
    return i;
  }
  std::string known;
  for (const TensorInfo &argument : arguments)
    if (argument.role == FP8_ROLE_BATCH)
      known += str(known.empty() ? "" : ", ", "'", argument.name, "'");
  throw Error(FP8_ERROR_DATA,
              str(option, ": ", function, " has no batch argument '", path,
                  "'; it has ", known.empty() ? "none" : known));
}

static const TensorFile::Tensor &findTensor(const TensorFile &file,
                                            const std::string &option,
                                            const fp8_batch_source &source) {
  if (source.tensor) {
    if (const TensorFile::Tensor *found = file.find(source.tensor))
      return *found;
    throw Error(FP8_ERROR_DATA,
                str(option, ": '", source.file, "' has no tensor '",
                    source.tensor, "'; it has ", listOf(file)));
  }
  if (file.tensors.size() == 1)
    return file.tensors[0];
  if (const TensorFile::Tensor *found = file.find(source.path))
    return *found;
  throw Error(FP8_ERROR_DATA,
              str(option, ": '", source.file, "' has ", file.tensors.size(),
                  " tensors and none is named '", source.path,
                  "': give its name after a colon; it has ", listOf(file)));
}

/// Returns "f32[rows,8,128] (one row a step) or f32[rows,128] (8 rows a step)".
static std::string expectedText(const TensorType &type) {
  TensorType rows = type;
  auto text = [&] {
    rows.dims.insert(rows.dims.begin(), -1);
    std::string result = rows.text();
    return result.replace(result.find("-1"), 2, "rows");
  };
  std::string result = text() + " (one row a step)";
  if (!type.dims.empty()) {
    rows.dims.assign(type.dims.begin() + 1, type.dims.end());
    result += str(" or ", text(), " (", type.dims[0], " rows a step)");
  }
  return result;
}

void ArrayBatches::Array::read(const std::string &option,
                               const fp8_batch_source &source,
                               TensorFiles &files) {
  path = source.file;
  std::shared_ptr<TensorFile> &opened = files[path];
  if (!opened) {
    bool isNpy =
        path.size() > 4 && path.compare(path.size() - 4, 4, ".npy") == 0;
    opened = std::make_shared<TensorFile>(isNpy ? readNpy(path)
                                                : readSafeTensors(path));
  }
  file = opened;
  tensor = findTensor(*file, option, source);
}

void ArrayBatches::Array::show(const fp8_batch_source &source) {
  const fp8_tensor_info &info = *source.info;
  if (tensorBytes(info.dtype, info.dims, info.rank) < 0)
    throw Error(FP8_ERROR_INVALID,
                str("the array for '", source.path, "' has no valid type"));
  path = "the array";
  tensor.type.dtype = info.dtype;
  tensor.type.dims.assign(info.dims, info.dims + info.rank);
  tensor.data = static_cast<const char *>(source.data);
}

void ArrayBatches::findRows(Array &array) {
  const TensorType &from = array.tensor.type, &to = array.type;
  size_t rowRank = from.dims.empty() ? 0 : from.dims.size() - 1;
  bool fits = !from.dims.empty() && from.dims[0] > 0 &&
              rowRank <= to.dims.size() &&
              std::equal(from.dims.begin() + 1, from.dims.end(),
                         to.dims.end() - rowRank);
  bool converts = from.dtype == to.dtype ||
                  (isWhole(from.dtype) && isWhole(to.dtype)) ||
                  widens(from.dtype, to.dtype);
  if (!fits || !converts)
    throw Error(FP8_ERROR_DATA,
                str("'", array.path, "' for batch argument '", array.name,
                    "': expected ", expectedText(to), " but got ", from.text(),
                    fits && isFloat(from.dtype) && isFloat(to.dtype)
                        ? ": narrower floats have to be rounded before"
                        : ""));
  array.rowElements = from.elements() / from.dims[0];
  array.rowsEachStep = 1;
  for (size_t i = 0; i < to.dims.size() - rowRank; ++i)
    array.rowsEachStep *= to.dims[i];
  if (to.elements() == 0)
    throw Error(FP8_ERROR_DATA, str("batch argument '", array.name, "' is ",
                                    to.text(), ": it holds nothing"));
}

/// Returns whether an element is a number that no i64 holds.
static bool isBeyondI64(const TensorFile::Tensor &tensor, int64_t i) {
  if (tensor.type.dtype != FP8_DTYPE_U64)
    return false;
  uint64_t value;
  std::memcpy(&value, tensor.data + i * sizeof(value), sizeof(value));
  return value > INT64_MAX;
}

void ArrayBatches::checkValues(const Array &array, int64_t vocabulary) {
  const TensorFile::Tensor &tensor = array.tensor;
  if (!isWhole(tensor.type.dtype))
    return;
  std::pair<int64_t, int64_t> range = integerRange(array.type.dtype);
  // Negative values are allowed: they mark positions that a loss ignores.
  if (vocabulary > 0)
    range.second = std::min(range.second, vocabulary - 1);
  int64_t count = tensor.type.elements();
  bool isCopied = tensor.type.dtype == array.type.dtype;
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = elementAsInteger(tensor.data, tensor.type.dtype, i);
    bool isBeyond = !isCopied && isBeyondI64(tensor, i);
    if (value < range.first || value > range.second || isBeyond)
      throw Error(FP8_ERROR_DATA,
                  str("'", array.path, "' for batch argument '", array.name,
                      "': element ", i, " is ", isBeyond ? "above " : "", value,
                      ", expected ",
                      vocabulary > 0 ? "at most " : str(range.first, " to "),
                      range.second));
  }
}

ArrayBatches::ArrayBatches(const std::string &function,
                           const std::string &option,
                           const fp8_batch_source *sources, int64_t count,
                           const std::vector<TensorInfo> &arguments,
                           TensorFiles &files) {
  for (int64_t i = 0; i < count; ++i) {
    const fp8_batch_source &source = sources[i];
    Array array;
    array.argument = findArgument(function, option, source.path, arguments);
    const TensorInfo &argument = arguments[array.argument];
    if (feeds(array.argument))
      throw Error(FP8_ERROR_DATA, str(option, ": batch argument '",
                                      argument.name, "' has two sources"));
    array.name = argument.name;
    array.type = argument.type;
    if (source.file)
      array.read(option, source, files);
    else
      array.show(source);
    findRows(array);
    checkValues(array, argument.vocabulary);
    arrays.push_back(std::move(array));
  }
  const Array *first = nullptr;
  for (const Array &array : arrays) {
    if (array.type.dims.empty())
      continue;
    if (!first)
      first = &array;
    if (array.rows() == first->rows() &&
        array.rowsEachStep == first->rowsEachStep)
      continue;
    auto text = [](const Array &one) {
      return str("'", one.name, "' (", one.tensor.type.text(), " in '",
                 one.path, "') has ", one.rows(), " rows, ", one.rowsEachStep,
                 " a step");
    };
    throw Error(FP8_ERROR_DATA,
                str(option, ": all arrays go through their rows together, but ",
                    text(*first), ", and ", text(array)));
  }
  if (first) {
    numRows = first->rows();
    rowsEachStep = first->rowsEachStep;
  }
}

ArrayBatches ArrayBatches::ofStep(const fp8_train_options &options,
                                  const std::vector<TensorInfo> &arguments,
                                  TensorFiles &files) {
  return ArrayBatches("the step", "--batch", options.batches,
                      options.num_batches, arguments, files);
}

ArrayBatches
ArrayBatches::ofEvaluation(const fp8_train_options &options,
                           const std::vector<TensorInfo> &arguments,
                           TensorFiles &files) {
  return ArrayBatches("the evaluation", "--eval-batch", options.eval_batches,
                      options.num_eval_batches, arguments, files);
}

int64_t ArrayBatches::wholeBatches() const {
  if (numRows < rowsEachStep)
    throw Error(FP8_ERROR_DATA,
                str("the evaluation's arrays have ", numRows,
                    " rows but one evaluation takes ", rowsEachStep));
  return numRows / rowsEachStep;
}

bool ArrayBatches::feeds(size_t argument) const {
  return std::any_of(arrays.begin(), arrays.end(), [&](const Array &array) {
    return array.argument == argument;
  });
}

std::string
ArrayBatches::findMissing(const std::vector<TensorInfo> &arguments) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].role == FP8_ROLE_BATCH && !feeds(i))
      return str("no data for batch argument '", arguments[i].name, "' ",
                 arguments[i].type.text());
  return "";
}

//===----------------------------------------------------------------------===//
// Feeding
//===----------------------------------------------------------------------===//

int64_t ArrayBatches::rowAt(const RowPosition &position) {
  if (!shuffleSeed)
    return position.index;
  if (orderEpoch != position.epoch) {
    // Fisher-Yates shuffle: every order is equally likely.
    order.resize(numRows);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = numRows - 1; i > 0; --i) {
      RandomWords random =
          randomAt(*shuffleSeed, position.epoch, static_cast<uint32_t>(i),
                   shuffleStream + static_cast<uint32_t>(i >> 32));
      std::swap(order[i], order[random.below(i + 1)]);
    }
    orderEpoch = position.epoch;
  }
  return order[position.index];
}

void ArrayBatches::Array::copyRow(int64_t row, int64_t slot,
                                  void *buffer) const {
  fp8_dtype from = tensor.type.dtype, to = type.dtype;
  int64_t source = row * rowElements, target = slot * rowElements;
  if (from == to) {
    int64_t size = fp8_dtype_size(to);
    std::memcpy(static_cast<char *>(buffer) + target * size,
                tensor.data + source * size, rowElements * size);
    return;
  }
  for (int64_t i = 0; i < rowElements; ++i) {
    if (isFloat(to))
      storeDouble(buffer, to, target + i,
                  elementAsDouble(tensor.data, from, source + i));
    else
      storeInteger(buffer, to, target + i,
                   elementAsInteger(tensor.data, from, source + i));
  }
}

void ArrayBatches::skip(RowPosition &position, int64_t steps) const {
  if (numRows == 0 || steps == 0)
    return;
  int64_t index = position.index % numRows + steps * rowsEachStep;
  position = {position.epoch + index / numRows, index % numRows};
}

void ArrayBatches::store(RowPosition &position, int64_t step,
                         const std::function<void *(size_t)> &buffer) {
  for (const Array &array : arrays)
    if (array.type.dims.empty())
      array.copyRow(step % array.rows(), 0, buffer(array.argument));
  for (int64_t slot = 0; slot < rowsEachStep; ++slot) {
    // An epoch may end in the middle of a step, so no row is left out.
    position.index %= numRows;
    int64_t row = rowAt(position);
    for (const Array &array : arrays)
      if (!array.type.dims.empty())
        array.copyRow(row, slot, buffer(array.argument));
    if (++position.index == numRows)
      position = {position.epoch + 1, 0};
  }
}

std::string ArrayBatches::fingerprint() const {
  if (arrays.empty())
    return "";
  Fingerprint hash;
  for (const Array &array : arrays) {
    hash.add(array.argument);
    hash.add(array.tensor.type.dtype);
    for (int64_t dim : array.tensor.type.dims)
      hash.add(dim);
    int64_t bytes = array.tensor.type.bytes();
    for (int64_t at = 0; at < bytes; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, array.tensor.data + at,
                  std::min<int64_t>(8, bytes - at));
      hash.add(word);
    }
  }
  return hash.text();
}

} // namespace fp8::rt
