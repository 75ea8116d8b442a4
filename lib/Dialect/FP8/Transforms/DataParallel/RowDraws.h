//===- RowDraws.h - Random numbers for a rank's own rows --------*- C++ -*-===//
//
// Generators of random bits count: threefry, as JAX writes it out, hashes a key
// and the indices that `iota` counts; rng_bit_generator has a counter in its
// state. With keys that are the same on all ranks, each rank starts to count
// where the rank before it ends. It then draws for its own rows what one device
// would draw for them in the batch of all ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWDRAWS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWDRAWS_H

#include "RowOrigins.h"

#include <map>
#include <set>
#include <vector>

namespace mlir::fp8 {

/// Whose rows the batch of a step has.
enum class BatchOf { OneRank, AllRanks };

class RowDraws {
public:
  explicit RowDraws(BatchOf batch) : batch(batch) {}
  /// Whether rows of `value` differ only by random draws.
  bool isDrawn(Value value, ArrayRef<RowDim> rows) {
    return classify(value, rows) == Class::Random;
  }
  /// Makes each rank draw `value` for its own rows. Returns false if nothing
  /// has changed.
  bool draw(Value value, ArrayRef<RowDim> rows);

private:
  enum class Class {
    Same,     ///< The same for all rows.
    Position, ///< A count of rows, or a function of one.
    Random,   ///< Random bits, or a function of these alone.
    Other     ///< Anything else, or unknown.
  };
  /// A value and its rows.
  using Key = std::pair<const void *, std::vector<int64_t>>;

  Class classify(Value value, ArrayRef<RowDim> rows);
  Class classifyOp(OpResult result, ArrayRef<RowDim> rows);
  Value countOnRank(OpBuilder &builder, stablehlo::IotaOp iota);
  Value positionOnRank(Value value, ArrayRef<RowDim> rows);
  static Key keyOf(Value value, ArrayRef<RowDim> rows);

  BatchOf batch;
  std::map<Key, Class> classes;
  std::map<Key, Value> positions;
  std::set<Key> drawn;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWDRAWS_H
