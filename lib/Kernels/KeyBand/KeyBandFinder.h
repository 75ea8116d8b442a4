//===- KeyBandFinder.h - The search for a key band --------------*- C++ -*-===//
//
// What the parts of the search share (KeyBand.cpp describes it).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_KEYBAND_KEYBANDFINDER_H
#define FP8_LIB_KERNELS_KEYBAND_KEYBANDFINDER_H

#include "fp8/Kernels/KeyBand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <cmath>

namespace mlir::fp8 {

/// Scores stay above this value; a constant at or below it hides a key: -1e9,
/// also in bf16.
constexpr double kHidden = -9.9e8;

/// What is known about a value at one kind of pair of a query and a key.
struct Known {
  enum Kind {
    Unknown,
    /// A number or a boolean.
    Constant,
    /// Computed from products of inputs, from indices, and from constants that
    /// hide nothing.
    Score,
    /// No larger than scores are, but possibly hidden: a bias, a mask of data.
    Bias,
    /// The same for all keys of a row.
    Row,
    /// At or below `kHidden`: a score to which a mask has been added.
    Hidden,
    /// A hidden score minus a value of its row: its exponential is 0.
    Lowest,
  };
  Kind kind = Unknown;
  double number = 0;

  static Known constant(double number) { return {Constant, number}; }
  bool is(double other) const { return kind == Constant && number == other; }
  bool isHidden() const {
    return kind == Hidden || (kind == Constant && number <= kHidden);
  }
  bool isFiniteScore() const {
    return kind == Score || (kind == Constant && std::abs(number) < -kHidden);
  }
  bool isBias() const {
    return isFiniteScore() || isHidden() || kind == Bias || kind == Row;
  }
  bool isOfRow() const { return kind == Row || kind == Constant; }
};

/// What is known about a value at each kind of pair of a query and a key: those
/// whose key is too late, those whose key is too early, and visible ones.
using PerPair = std::array<Known, 3>;
constexpr unsigned kLatePair = 0, kEarlyPair = 1, kSeenPair = 2;
constexpr unsigned kHiddenPairs[] = {kLatePair, kEarlyPair};

/// From how many positions before its query to how many after it a key is.
struct Distances {
  static constexpr int64_t kAny = int64_t(1) << 40;
  int64_t low = -kAny, high = kAny;
};

/// Returns the number in a float or integer attribute.
std::optional<double> numberIn(Attribute attr);

/// Returns what casts between floats begin with.
inline Value skipCasts(Value value) {
  while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// What is known of the values in the body of an op.
using BodyValues = DenseMap<Value, PerPair>;

/// Finds the band of one kernel.
class KeyBandFinder {
public:
  KeyBandFinder(Block &kernel, KeyBand::Checks checks)
      : kernel(kernel), checks(checks) {
    auto op = dyn_cast<KernelOp>(kernel.getParentOp());
    if (op && op.getBlock())
      orderedLoop = op.getDomain().size() - 1;
  }

  std::optional<KeyBand> run();

private:
  /// A comparison of the index of a query with that of a key. It is true
  /// exactly if the key is at one of these distances from the query.
  struct Mask {
    unsigned queries, keys; // loops of the op
    Distances distances;
  };
  std::optional<Mask> asMask(linalg::GenericOp op, arith::CmpIOp compare) const;
  std::optional<Mask> maskOf(arith::CmpIOp compare) const;
  bool isQuery(linalg::GenericOp op, unsigned loop, unsigned other) const;
  std::optional<unsigned> loopOfRows(unsigned a, unsigned b) const;
  bool setLoops(linalg::GenericOp op, const Mask &mask);
  std::optional<unsigned> queriesOf(linalg::GenericOp op) const;
  bool findKeyLoops(linalg::GenericOp start, unsigned loop);
  SmallVector<int64_t> bounds() const;
  bool findBand();
  bool setBand(int64_t last, std::optional<int64_t> first);
  bool prove(bool withChecks);
  bool isOfPairs(linalg::GenericOp op, unsigned result);
  bool canCheckRows() const;
  bool checkRow(linalg::GenericOp op, Value row);
  std::optional<BodyValues> evaluateBody(linalg::GenericOp op);
  bool maximumIsVisible(linalg::GenericOp op, arith::SubFOp difference,
                        const BodyValues &values);
  bool proveOp(linalg::GenericOp op);
  bool proveReduction(linalg::GenericOp op, unsigned result,
                      const BodyValues &values);
  bool proveResult(linalg::GenericOp op, unsigned result,
                   const PerPair &yielded);

  PerPair argumentOf(linalg::GenericOp op, BlockArgument argument) const;
  Known evaluate(Operation &op, unsigned which, const BodyValues &values) const;
  Known compare(arith::CmpIOp op, unsigned which) const;
  bool areSame(linalg::GenericOp op, Value a, Value b) const;

  Block &kernel;
  KeyBand::Checks checks;
  /// Whether values of rows are checked in this proof, and which maxima must be
  /// among them.
  bool isChecking = false;
  SmallVector<Value> maxima;
  /// The domain loop that runs in order, if any.
  std::optional<unsigned> orderedLoop;
  KeyBand found;
  int64_t numQueries = 0;
  /// Whether the seen pairs are those of a query and the key of its position.
  bool seesItself = false;
  /// The distances of each kind of pair.
  std::array<Distances, 3> distances;
  DenseMap<Value, PerPair> buffers;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_KEYBAND_KEYBANDFINDER_H
