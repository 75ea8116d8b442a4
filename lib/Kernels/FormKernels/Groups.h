//===- Groups.h - Ops of a block that will be one kernel --------*- C++ -*-===//
//
// Ops of the step are nodes; a group is a set of nodes that will be one kernel.
// Groups grow along producer-consumer edges. Two groups may join when
//   - a non-empty set of loops (the domain) exists that all their ops share and
//     along which every value passed between them is written and read at the
//     same index, so that each task is self-contained;
//   - joining makes no cycle among groups;
//   - the result has at most one contraction, and nothing comes before it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_GROUPS_H
#define FP8_LIB_KERNELS_FORMKERNELS_GROUPS_H

#include "GroupOrder.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// One op of the step: a structured op or an irregular loop nest, with the
/// fills and empties that only it uses as destinations. Ops that control the
/// schedule (a loop, a branch, a slice of a stack) are nodes that no kernel
/// contains, and so is the launch of an attention.
struct KernelNode {
  Operation *op = nullptr;
  SmallVector<Operation *> attached;
  /// A value of another node that `op` reads: as an operand, or captured in a
  /// region.
  struct Read {
    unsigned node;
    OpOperand *operand = nullptr;
  };
  SmallVector<Read, 0> reads;
  unsigned group = 0;
  bool afterRecompute = false; // at or after a recomputed op
};

/// Nodes that will be one kernel. Empty once they have joined another group.
struct KernelGroup {
  SetVector<unsigned> nodes; // in program order after sorting
  bool contraction = false;
  bool schedule = false;       // a loop, a branch, a slice: not outlined
  bool recompute = false;      // recomputes values to avoid storing them
  bool afterRecompute = false; // has a node at or after a recomputed op
  Attribute sweep;             // the sweep that it recomputes values for
  IntegerAttr shard; // the shard of the state whose owner alone runs it
  /// Extents of the shared loops, and each node's loop for each of them.
  SmallVector<int64_t> domain;
  llvm::MapVector<unsigned, SmallVector<unsigned>> loops;
  int64_t work = 0;     // iterations
  int64_t elements = 0; // of the largest result
};

/// The groups of one block.
class KernelGroups {
public:
  /// `forBlocks` says whether the tasks of kernels are blocks of a GPU.
  KernelGroups(Block &block, bool forBlocks)
      : block(block), forBlocks(forBlocks) {}

  /// Forms the groups; fails on an op that no kernel can hold.
  LogicalResult form();
  /// Returns the groups in an order in which each one comes after those it
  /// depends on. Of the groups that are ready, the one that begins first in
  /// program order comes first: values are then computed shortly before they
  /// are read, and buffers are live for a short time.
  SmallVector<unsigned> order() const;

  const KernelGroup &group(unsigned index) const { return groups[index]; }
  const KernelNode &node(unsigned index) const { return nodes[index]; }
  /// Returns the nodes of a group: in program order, but for results that are
  /// computed where their operands are.
  SmallVector<unsigned> membersOf(unsigned group) const;

private:
  /// Pairs of domain positions in a producer and in its consumer.
  using DomainPairs = SmallVector<std::pair<unsigned, unsigned>>;

  LogicalResult collectNodes();
  void attachDestinations(unsigned index);
  void findDependences(unsigned index);
  bool isElementwiseEnd(unsigned node) const;
  bool shareNest(unsigned first, unsigned second) const;
  unsigned *placeBySources(unsigned *begin, unsigned *it) const;
  void initGroup(unsigned node);
  void grow();
  void tryJoin(unsigned producerGroup, unsigned consumerGroup);
  bool isWorthJoining(const KernelGroup &producer, const KernelGroup &consumer,
                      const DomainPairs &pairs);
  std::optional<std::pair<unsigned, AffineMap>>
  findLargest(const KernelGroup &group) const;
  int64_t countLines(const KernelGroup &group, ArrayRef<unsigned> kept) const;
  bool areColumns(const KernelGroup &group, ArrayRef<unsigned> kept) const;
  void join(unsigned producerIndex, unsigned consumerIndex,
            const DomainPairs &pairs);
  LogicalResult makeNeighbors(unsigned producer, unsigned consumer);
  std::optional<DomainPairs> sharedDomain(unsigned producerGroup,
                                          unsigned consumerGroup);
  void matchLoops(const KernelGroup &producer, const KernelGroup &consumer,
                  OpOperand &operand, unsigned consumerNode,
                  MutableArrayRef<int> mapping);

  Block &block;
  bool forBlocks;
  SmallVector<KernelNode> nodes;
  SmallVector<KernelGroup> groups;
  DenseMap<Operation *, unsigned> nodeOf; // also of attached ops
  SmallVector<SmallVector<unsigned>> nodePreds, nodeSuccs;
  /// While groups grow: an order in which each one comes after those it depends
  /// on.
  GroupOrder groupOrder;
  /// For each group, the number of the last walk that reached it, on from a
  /// producer and back from a consumer.
  SmallVector<unsigned> reachedOn, reachedBack;
  unsigned walk = 0;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_GROUPS_H
