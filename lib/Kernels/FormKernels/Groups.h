//===- Groups.h - Ops of a block that will be one kernel --------*- C++ -*-===//
//
// Ops of the step are nodes; a group is a set of nodes that will be one kernel.
// Groups grow along producer-consumer edges. Two groups may join when
//   - a non-empty set of loops (the domain) exists that all their ops share and
//     along which every value passed between them is written and read at the
//     same place, so that each task is self-contained;
//   - joining makes no cycle among groups;
//   - at most one contraction is in the result, and nothing comes before it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_GROUPS_H
#define FP8_LIB_KERNELS_FORMKERNELS_GROUPS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// One op of the step: a structured op or an irregular loop nest, with the
/// fills and empties that only it uses as destinations. What controls the
/// schedule (a loop, a branch, a slice of a stack) is a node that no kernel
/// contains, and so is the launch of an attention.
struct KernelNode {
  Operation *op = nullptr;
  SmallVector<Operation *> attached;
  unsigned group = 0;
  bool afterRecompute = false; // at or after what is computed again
};

/// Nodes that will be one kernel; none once they are in another group.
struct KernelGroup {
  SetVector<unsigned> nodes; // in program order after sorting
  bool contraction = false;
  bool schedule = false;       // a loop, a branch, a slice: not outlined
  bool recompute = false;      // computes again what is not to be kept
  bool afterRecompute = false; // has a node at or after what is computed again
  Attribute sweep;             // the sweep that it computes something again for
  IntegerAttr shard;           // of the state: its owner alone runs it
  /// Extents of the shared loops, and each node's loop for each of them.
  SmallVector<int64_t> domain;
  llvm::MapVector<unsigned, SmallVector<unsigned>> loops;
  int64_t work = 0; // iterations
};

/// The groups of one block.
class KernelGroups {
public:
  explicit KernelGroups(Block &block) : block(block) {}

  /// Makes the groups; an error for an op that no kernel can hold.
  LogicalResult form();
  /// Groups in an order in which each call comes after those it depends on: of
  /// those that are ready the one that the program begins first. What is read
  /// soon is made late that way, and buffers live short.
  SmallVector<unsigned> order() const;

  const KernelGroup &group(unsigned index) const { return groups[index]; }
  const KernelNode &node(unsigned index) const { return nodes[index]; }
  /// The nodes of a group in the order of the program.
  SmallVector<unsigned> membersOf(unsigned group) const;

private:
  /// Pairs of domain positions, in a producer and in its consumer.
  using DomainPairs = SmallVector<std::pair<unsigned, unsigned>>;

  LogicalResult collectNodes();
  void attachDestinations(unsigned index);
  void findDependences(unsigned index);
  void initGroup(unsigned node);
  void grow();
  void tryJoin(unsigned producerGroup, unsigned consumerGroup);
  bool isWorthJoining(const KernelGroup &producer, const KernelGroup &consumer,
                      ArrayRef<int64_t> domain);
  void join(unsigned producerIndex, unsigned consumerIndex,
            const DomainPairs &pairs);
  bool joinMakesCycle(unsigned a, unsigned b);
  bool isIn(const KernelGroup &group, Operation *op) const;
  std::optional<DomainPairs> sharedDomain(const KernelGroup &producer,
                                          const KernelGroup &consumer);
  void matchLoops(const KernelGroup &producer, const KernelGroup &consumer,
                  OpOperand &operand, unsigned consumerNode,
                  MutableArrayRef<int> mapping);

  Block &block;
  SmallVector<KernelNode> nodes;
  SmallVector<KernelGroup> groups;
  DenseMap<Operation *, unsigned> nodeOf; // also of attached ops
  SmallVector<SmallVector<unsigned>> nodePreds;
  /// Of every node, the last one in a group with it or with one before it.
  SmallVector<unsigned> lastWith;
  /// Of every group, the last walk for a cycle that came to it, by number.
  SmallVector<unsigned> lastWalk;
  unsigned walk = 0;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_GROUPS_H
