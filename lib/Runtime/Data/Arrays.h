//===- Arrays.h - Feeding batches from arrays -------------------*- C++ -*-===//
//
// An array is a list of rows, one for each index of its leading dimension. An
// argument with the shape of a row takes one row in every step; one with more
// leading dimensions takes as many rows as these count: [8, 128] takes one row
// of [steps, 8, 128], or 8 rows of [examples, 128]. All arrays of a function
// advance through their rows together, in one order; arrays of scalar arguments
// are indexed by step instead.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_DATA_ARRAYS_H
#define FP8_LIB_RUNTIME_DATA_ARRAYS_H

#include "../State/SafeTensors.h"

#include <functional>
#include <optional>

namespace fp8::rt {

/// The position in the rows: those before `index` in the order of `epoch` are
/// read.
struct RowPosition {
  int64_t epoch = 0;
  int64_t index = 0;
};

/// Tensor files by path, each read once.
using TensorFiles = std::map<std::string, std::shared_ptr<TensorFile>>;

class ArrayBatches {
public:
  ArrayBatches() = default;
  /// Errors name `option`, which gave the sources, and `function`.
  ArrayBatches(const std::string &function, const std::string &option,
               const fp8_batch_source *sources, int64_t count,
               const std::vector<TensorInfo> &arguments, TensorFiles &files);

  /// Those of the options for the step, or for its evaluation.
  static ArrayBatches ofStep(const fp8_train_options &options,
                             const std::vector<TensorInfo> &arguments,
                             TensorFiles &files);
  static ArrayBatches ofEvaluation(const fp8_train_options &options,
                                   const std::vector<TensorInfo> &arguments,
                                   TensorFiles &files);

  bool feeds(size_t argument) const;
  /// Describes the first batch argument that no array feeds; "" if all are fed.
  std::string findMissing(const std::vector<TensorInfo> &arguments) const;
  /// Arrays of scalars have no rows.
  bool hasRows() const { return numRows > 0; }
  int64_t rows() const { return numRows; }
  int64_t rowsPerStep() const { return rowsEachStep; }
  /// Returns for how many evaluations the rows are enough; throws if that is
  /// none.
  int64_t wholeBatches() const;

  /// Goes through the rows in a new random order in every epoch.
  void shuffle(uint64_t seed) { shuffleSeed = seed; }

  /// Skips the rows of `steps` steps of one rank, which other ranks read.
  void skip(RowPosition &position, int64_t steps) const;
  /// Copies the next rows, and the scalars of `step`, to the buffers.
  void store(RowPosition &position, int64_t step,
             const std::function<void *(size_t argument)> &buffer);

  /// Returns a hash of the contents; "" without arrays.
  std::string fingerprint() const;

private:
  struct Array {
    size_t argument;
    std::string name;                 // of the argument
    std::string path;                 // of the file
    std::shared_ptr<TensorFile> file; // null: the caller owns the array
    TensorFile::Tensor tensor;
    TensorType type; // of the argument
    int64_t rowElements = 0;
    int64_t rowsEachStep = 0;

    /// Read the tensor from a file, or borrow the caller's.
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

#endif // FP8_LIB_RUNTIME_DATA_ARRAYS_H
