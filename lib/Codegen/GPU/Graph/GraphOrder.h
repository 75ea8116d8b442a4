//===- GraphOrder.h - Order of the nodes of a graph -------------*- C++ -*-===//
//
// What the ops of a schedule that become nodes of a graph access, and which of
// them must not run at once.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CODEGEN_GPU_GRAPH_GRAPHORDER_H
#define FP8_LIB_CODEGEN_GPU_GRAPH_GRAPHORDER_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

#include <map>

namespace mlir::fp8 {

/// Returns true if `op` itself becomes a node of the graph, or several of which
/// each follows the one before: a launch, a scalar, a collective, a branch or a
/// loop that the GPU counts.
bool isGraphNode(Operation *op);

/// Returns true if nodes before and after `op` are in order anyway: a loop with
/// a condition, parts of which are in the graph before it and in its body.
bool isGraphBarrier(Operation *op);

/// Bytes that a node accesses.
struct GraphAccess {
  int64_t begin, end;
  bool writes;
};

/// The memory of a schedule, in which every buffer has a range of addresses:
/// the arena, the arguments, scratch memory, which all launches share, and the
/// counters and conditions of loops and branches.
class GraphMemory {
public:
  GraphMemory(ScheduleOp schedule, const SymbolTable &symbols);

  /// Returns what the nodes of `op` access, or those in it.
  SmallVector<GraphAccess> accessesOf(Operation *op);
  /// Returns what a copy of `buffer` accesses.
  SmallVector<GraphAccess> readsOf(Value buffer);

private:
  void addBuffer(Value buffer, bool writes);
  void addLaunch(LaunchOp launch);
  void addOne(Operation *op);
  int64_t conditionOf(memref::LoadOp load);
  int64_t allocate(int64_t bytes);

  const SymbolTable &symbols;
  DenseMap<Value, int64_t> places;
  DenseMap<Operation *, int64_t> conditions;
  int64_t scratch = 0, counters = 0, next = 0;
  SmallVector<GraphAccess> found;
};

/// Finds the earlier nodes of a block that a node must follow, since both
/// access the same bytes and one of them writes. Only the last writer of a byte
/// and its readers since then count: those have waited for all nodes before.
/// Nodes are numbered from 0.
class GraphConflicts {
public:
  /// Returns the nodes, in ascending order, that `node` must follow.
  SmallVector<int64_t> add(int64_t node, ArrayRef<GraphAccess> accesses);
  void clear() { segments.clear(); }

private:
  /// Who accessed a range of bytes last.
  struct Segment {
    int64_t end;
    int64_t writer;                  // -1: none
    SmallVector<int64_t, 2> readers; // since then
  };
  using Segments = std::map<int64_t, Segment>;
  void split(int64_t at);
  void cover(int64_t begin, int64_t end);
  void read(int64_t node, const GraphAccess &access,
            SmallVectorImpl<int64_t> &before);
  void write(int64_t node, const GraphAccess &access,
             SmallVectorImpl<int64_t> &before);

  Segments segments; // by their begin
};

/// Answers which nodes of a block follow which. The nodes are divided into
/// chains, of which each node follows the one before, and a node knows how far
/// it follows each chain: time and memory are the number of nodes times that of
/// chains, which is about the number of nodes that may run at once.
class GraphPaths {
public:
  /// Adds the next node, which follows the nodes `before`. Returns those of
  /// them that follow from no other, in ascending order.
  SmallVector<int64_t> add(ArrayRef<int64_t> before);
  /// Returns true if there is a path from node `first` to node `second`.
  bool isPath(int64_t first, int64_t second) const {
    return covers(nodes[second].reached, first);
  }

private:
  using Clock = std::vector<int32_t>;
  struct Node {
    int32_t chain, position;
    Clock reached; // by chain, how many of its nodes come before this one
  };
  bool covers(const Clock &clock, int64_t node) const {
    const Node &other = nodes[node];
    return static_cast<size_t>(other.chain) < clock.size() &&
           clock[other.chain] > other.position;
  }
  int32_t chooseChain(const Clock &clock, ArrayRef<int64_t> before) const;

  std::vector<Node> nodes;
  std::vector<int32_t> lengths; // of the chains
};

} // namespace mlir::fp8

#endif // FP8_LIB_CODEGEN_GPU_GRAPH_GRAPHORDER_H
