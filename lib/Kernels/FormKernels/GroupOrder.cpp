//===- GroupOrder.cpp - A topological order of groups ---------------------===//

#include "GroupOrder.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// The distance of neighbors at first: room for the groups that move.
static constexpr uint64_t kDistance = uint64_t(1) << 32;

GroupOrder::GroupOrder(ArrayRef<unsigned> groups)
    : previous(groups.size() + 1), following(groups.size() + 1),
      positions(groups.size() + 1) {
  unsigned last = groups.size();
  for (unsigned group : groups) {
    link(last, group);
    last = group;
  }
  link(last, groups.size());
  assignPositions();
}

void GroupOrder::moveBefore(SmallVector<unsigned> moved, unsigned group) {
  sort(moved);
  llvm::for_each(moved, [&](unsigned other) { unlink(other); });
  place(moved, previous[group], group);
}

void GroupOrder::moveAfter(SmallVector<unsigned> moved, unsigned group) {
  sort(moved);
  llvm::for_each(moved, [&](unsigned other) { unlink(other); });
  place(moved, group, following[group]);
}

void GroupOrder::sort(SmallVectorImpl<unsigned> &groups) const {
  llvm::sort(groups, [&](unsigned a, unsigned b) { return isBefore(a, b); });
}

void GroupOrder::unlink(unsigned group) {
  link(previous[group], following[group]);
}

void GroupOrder::link(unsigned left, unsigned right) {
  following[left] = right;
  previous[right] = left;
}

/// Puts unlinked groups between two neighbors.
void GroupOrder::place(ArrayRef<unsigned> moved, unsigned left,
                       unsigned right) {
  unsigned end = positions.size() - 1, last = left;
  for (unsigned group : moved) {
    link(last, group);
    last = group;
  }
  link(last, right);
  uint64_t first = left == end ? 0 : positions[left];
  uint64_t limit =
      right == end ? first + kDistance * (moved.size() + 1) : positions[right];
  uint64_t step = (limit - first) / (moved.size() + 1);
  if (step == 0)
    return assignPositions();
  for (unsigned group : moved)
    positions[group] = first += step;
}

void GroupOrder::assignPositions() {
  unsigned end = positions.size() - 1;
  uint64_t last = 0;
  for (unsigned group = following[end]; group != end; group = following[group])
    positions[group] = last += kDistance;
}
