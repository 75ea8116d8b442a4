//===- FirstFit.h - Memory that buffers share over time ---------*- C++ -*-===//

#ifndef FP8_SUPPORT_FIRSTFIT_H
#define FP8_SUPPORT_FIRSTFIT_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mlir::fp8 {

/// The first and the last point in time at which a buffer is used.
struct Lifetime {
  unsigned first = 0, last = 0;
  bool overlaps(Lifetime other) const {
    return first <= other.last && other.first <= last;
  }
};

/// Memory in which buffers whose lifetimes do not overlap may have the same
/// bytes. Each takes a multiple of the alignment.
class FirstFit {
public:
  explicit FirstFit(int64_t alignment = 1) : alignment(alignment) {}

  /// Returns the lowest offset at which `bytes` are free during a lifetime.
  int64_t find(Lifetime lifetime, int64_t bytes) const {
    int64_t offset = 0;
    for (const Place &place : places) {
      if (!place.lifetime.overlaps(lifetime))
        continue;
      if (place.offset - offset >= bytes)
        break;
      offset = std::max(offset, place.end);
    }
    return offset;
  }

  /// Gives the bytes at `offset` to a buffer.
  void take(Lifetime lifetime, int64_t offset, int64_t bytes) {
    int64_t end = offset + bytes;
    used = std::max(used, end);
    Place next{offset, static_cast<int64_t>(llvm::alignTo(end, alignment)),
               lifetime};
    places.insert(llvm::upper_bound(places, next,
                                    [](const Place &a, const Place &b) {
                                      return a.offset < b.offset;
                                    }),
                  next);
  }

  /// Takes `bytes` where they fit; returns their offset.
  int64_t place(Lifetime lifetime, int64_t bytes) {
    int64_t offset = find(lifetime, bytes);
    take(lifetime, offset, bytes);
    return offset;
  }

  /// The bytes up to the end of the last buffer.
  int64_t size() const { return used; }

private:
  /// What a search reads, close together.
  struct Place {
    int64_t offset, end; // with the alignment
    Lifetime lifetime;
  };
  int64_t alignment, used = 0;
  std::vector<Place> places; // by offset
};

} // namespace mlir::fp8

#endif // FP8_SUPPORT_FIRSTFIT_H
