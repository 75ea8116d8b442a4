//===- Arrays.h - Feeding batches from arrays -------------------*- C++ -*-===//
//
// An array is a list of rows, one for each index of its leading dimension. An
// argument of the shape of a row takes one row in every step; an argument with
// more leading dimensions takes as many rows as these count: [8, 128] is fed
// from [steps, 8, 128], or from [examples, 128], 8 at a time. All arrays of a
// function go through their rows together, in one order; scalar arguments
// follow the step instead.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_ARRAYS_H
#define FP8_LIB_RUNTIME_ARRAYS_H

#include "SafeTensors.h"

#include <functional>
#include <optional>

namespace fp8::rt {

/// How far the rows are read: all before `index` of the order of `epoch`.
struct RowPosition {
  int64_t epoch = 0;
  int64_t index = 0;
};

/// Tensor files by path, each read once.
using TensorFiles = std::map<std::string, std::shared_ptr<TensorFile>>;

class ArrayBatches {
public:
  ArrayBatches() = default;
  /// Errors speak of `option`, which gave the sources, and of `function`.
  ArrayBatches(const std::string &function, const std::string &option,
               const fp8_batch_source *sources, int64_t count,
               const std::vector<TensorInfo> &arguments, TensorFiles &files);

  bool feeds(size_t argument) const;
  /// Without scalars' arrays, which have no rows.
  bool hasRows() const { return numRows > 0; }
  int64_t rows() const { return numRows; }
  int64_t rowsPerStep() const { return rowsEachStep; }

  /// Every epoch goes through the rows in an order of its own.
  void shuffle(uint64_t seed) { shuffleSeed = seed; }

  /// Leaves out the rows of so many steps of one rank: others read them.
  void skip(RowPosition &position, int64_t steps) const;
  /// Copies the next rows to the buffers, and the scalars of `step`.
  void store(RowPosition &position, int64_t step,
             const std::function<void *(size_t argument)> &buffer);

  /// Of the contents; "" without arrays.
  std::string fingerprint() const;

private:
  struct Array {
    size_t argument;
    std::string name;                 // of the argument
    std::string path;                 // of the file
    std::shared_ptr<TensorFile> file; // none: the caller has the array
    TensorFile::Tensor tensor;
    TensorType type; // of the argument
    int64_t rowElements = 0;
    int64_t rowsEachStep = 0;

    /// Take the tensor from a file, or as the caller has it.
    void read(const std::string &option, const fp8_batch_source &source,
              TensorFiles &files);
    void show(const fp8_batch_source &source);
    int64_t rows() const { return tensor.type.dims[0]; }
    void copyRow(int64_t row, int64_t slot, void *buffer) const;
  };
  static void findRows(Array &array);
  static void checkValues(const Array &array, int64_t vocabulary);
  int64_t rowAt(const RowPosition &position);

  std::vector<Array> arrays;
  int64_t numRows = 0;
  int64_t rowsEachStep = 0;
  std::optional<uint64_t> shuffleSeed;
  std::vector<int64_t> order; // of epoch `orderEpoch`
  int64_t orderEpoch = -1;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_ARRAYS_H
