//===- GroupOrder.h - A topological order of groups -------------*- C++ -*-===//
//
// Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic
// graphs": whether two groups are connected by a path is a question about the
// groups between them in a topological order, if joins keep the order valid.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_GROUPORDER_H
#define FP8_LIB_KERNELS_FORMKERNELS_GROUPORDER_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::fp8 {

/// Keeps groups, which are numbers, in an order. A move takes as long as groups
/// move, except when all groups must get new positions.
class GroupOrder {
public:
  GroupOrder() = default;
  explicit GroupOrder(ArrayRef<unsigned> groups);

  bool isBefore(unsigned a, unsigned b) const {
    return positions[a] < positions[b];
  }

  /// Moves groups, which keep their order, to directly before or after another
  /// one.
  void moveBefore(SmallVector<unsigned> moved, unsigned group);
  void moveAfter(SmallVector<unsigned> moved, unsigned group);

private:
  void sort(SmallVectorImpl<unsigned> &groups) const;
  void unlink(unsigned group);
  void link(unsigned left, unsigned right);
  void place(ArrayRef<unsigned> moved, unsigned left, unsigned right);
  void assignPositions();

  /// The groups before and after each one; both ends are the number of groups.
  SmallVector<unsigned> previous, following;
  SmallVector<uint64_t> positions;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_GROUPORDER_H
