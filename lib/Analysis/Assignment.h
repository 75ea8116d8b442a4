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

/// A possible pair; the weight is positive.
struct WeightedPair {
  unsigned from, to;
  double weight;
};

/// Where another pairing is as good: whose, and what it could be paired with.
struct Ambiguity {
  unsigned from;
  SmallVector<unsigned> to;
};

/// The pairing of the highest total weight: the partner in `to`, if any, of
/// each of `numFrom`. Works on connected parts, which are small. Pairs of one
/// `from` with values of `to` that are `isSame` are as good as one another.
///
/// Where several pairings are as good, the order of both sides decides, and a
/// `hint` above 0 for a pair, but each of them only if it agrees with
/// everything that weights decide alone (`inOrder`: and what is decided
/// elsewhere). What they leave open is ambiguous.
SmallVector<std::optional<unsigned>>
assignPairs(unsigned numFrom, ArrayRef<WeightedPair> pairs,
            function_ref<bool(unsigned, unsigned)> isSame,
            std::vector<Ambiguity> &ambiguities,
            function_ref<double(unsigned, unsigned)> hint = nullptr,
            bool inOrder = true);

/// The pairing of the highest total weight that keeps the order of both sides:
/// of two pairs the one of the later `from` has the later `to`.
SmallVector<std::optional<unsigned>>
assignInOrder(unsigned numFrom, unsigned numTo, ArrayRef<WeightedPair> pairs);

/// The total weight of a pairing; pairs that are not among `pairs` weigh
/// nothing.
double sumOf(ArrayRef<WeightedPair> pairs,
             ArrayRef<std::optional<unsigned>> partners);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_ASSIGNMENT_H
