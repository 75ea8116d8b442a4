//===- Assignment.h - The best pairing of two sets --------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_ASSIGNMENT_H
#define FP8_LIB_ANALYSIS_ASSIGNMENT_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <utility>
#include <vector>

namespace mlir {
namespace fp8 {

/// A possible pair, with a positive weight.
struct WeightedPair {
  unsigned from, to;
  double weight;
};

/// One side of a tie: `from`, and its partners in equally good pairings.
struct Ambiguity {
  unsigned from;
  SmallVector<unsigned> to;
};

/// Returns true if of any two pairs the one with the later `from` has the later
/// `to`.
bool areInOrder(ArrayRef<std::optional<unsigned>> partners);

/// Finds the pairing of the highest total weight: returns the partner in `to`,
/// if any, of each of `numFrom`. Works on connected parts, which are small.
/// Pairs of one `from` with values of `to` that are `isSame` count as equal.
///
/// Among equally good pairings, those win that keep the order of both sides,
/// and those with a positive `hint`. Each criterion only counts if it agrees
/// with all pairs that the weights alone determine; order only counts if all
/// pairs are in order then, with those that were decided elsewhere
/// (`isInOrder`). The remaining ties are `ambiguities`.
SmallVector<std::optional<unsigned>> assignPairs(
    unsigned numFrom, ArrayRef<WeightedPair> pairs,
    function_ref<bool(unsigned, unsigned)> isSame,
    std::vector<Ambiguity> &ambiguities,
    function_ref<double(unsigned, unsigned)> hint = nullptr,
    function_ref<bool(ArrayRef<std::optional<unsigned>>)> isInOrder = nullptr);

/// Finds the pairing of the highest total weight that keeps the order of both
/// sides: of two pairs, the one with the later `from` has the later `to`.
SmallVector<std::optional<unsigned>>
assignInOrder(unsigned numFrom, unsigned numTo, ArrayRef<WeightedPair> pairs);

/// Returns the total weight of a pairing; a pair that is not among `pairs`
/// weighs nothing.
double sumOf(ArrayRef<WeightedPair> pairs,
             ArrayRef<std::optional<unsigned>> partners);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_ASSIGNMENT_H
