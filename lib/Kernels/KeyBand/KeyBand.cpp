//===- KeyBand.cpp - Keys that a mask of positions shows ------------------===//
//
// Comparisons of a query's index with a key's give the hypotheses: keys after
// query + last are hidden, and those before query + first. The bodies of all
// ops are then evaluated for a pair of query and key of each kind. Every row
// has to have a visible key, since a softmax over hidden keys alone would
// weight all of them equally. If each query has a key of the same position,
// that is the pair of the two; it is also visible to a mask that compares the
// segments of both. If it is not known to be visible, because data hide keys,
// too, the values of rows tell at run time whether a row has a visible key.
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/KeyBand.h"

#include "KeyBandFinder.h"

using namespace mlir;
using namespace mlir::fp8;

/// Takes keys from `first` to `last` after a query for those that it sees.
/// Returns false if some query had none.
bool KeyBandFinder::setBand(int64_t last, std::optional<int64_t> first) {
  if (last < 0 ||
      (first && (*first > last || numQueries + *first > found.numKeys)))
    return false;
  found.last = last;
  found.first = first;
  int64_t low = first.value_or(-Distances::kAny);
  seesItself = numQueries <= found.numKeys && low <= 0;
  Distances late = {last + 1, Distances::kAny};
  distances[kLatePair] = late;
  distances[kEarlyPair] =
      first ? Distances{-Distances::kAny, *first - 1} : late;
  distances[kSeenPair] = seesItself ? Distances{0, 0} : Distances{low, last};
  return true;
}

/// Finds the narrowest band that can be proved.
bool KeyBandFinder::findBand() {
  SmallVector<int64_t> all = bounds();
  auto isProved = [&](int64_t last, std::optional<int64_t> first) {
    return setBand(last, first) &&
           (prove(/*withChecks=*/false) ||
            (canCheckRows() && prove(/*withChecks=*/true)));
  };
  for (int64_t last : all) {
    for (int64_t before : llvm::reverse(all))
      if (before < last && isProved(last, before + 1))
        return true;
    if (isProved(last, std::nullopt))
      return true;
  }
  return false;
}

std::optional<KeyBand> KeyBandFinder::run() {
  for (auto op : kernel.getOps<linalg::GenericOp>())
    for (auto compare : op.getBody()->getOps<arith::CmpIOp>())
      if (std::optional<Mask> mask = asMask(op, compare);
          mask && setLoops(op, *mask) && findBand())
        return found;
  return std::nullopt;
}

std::optional<KeyBand> KeyBand::find(Block &kernel, Checks checks) {
  return KeyBandFinder(kernel, checks).run();
}
