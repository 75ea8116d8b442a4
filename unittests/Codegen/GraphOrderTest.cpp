//===- GraphOrderTest.cpp - Order of the nodes of a graph -----------------===//

#include "GPU/Graph/GraphOrder.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::fp8;

namespace {

using Accesses = SmallVector<GraphAccess>;
/// [second][first]: there is a path.
using Paths = std::vector<std::vector<bool>>;

/// Returns nodes that access up to three random ranges of a small memory.
std::vector<Accesses> makeNodes(std::mt19937 &random, size_t count) {
  std::vector<Accesses> nodes(count);
  for (Accesses &accesses : nodes)
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      auto begin = static_cast<int64_t>(random() % 60);
      auto bytes = static_cast<int64_t>(1 + random() % (random() % 8 ? 6 : 60));
      accesses.push_back({begin, begin + bytes, random() % 3 == 0});
    }
  return nodes;
}

bool conflict(const Accesses &a, const Accesses &b) {
  for (const GraphAccess &one : a)
    for (const GraphAccess &other : b)
      if ((one.writes || other.writes) && one.begin < other.end &&
          other.begin < one.end)
        return true;
  return false;
}

/// Returns the paths along edges that each node has from earlier ones.
Paths pathsOf(const std::vector<SmallVector<int64_t>> &before) {
  Paths paths(before.size(), std::vector<bool>(before.size()));
  for (size_t node = 0; node < before.size(); ++node)
    for (int64_t other : before[node]) {
      paths[node][other] = true;
      for (size_t first = 0; first < node; ++first)
        if (paths[other][first])
          paths[node][first] = true;
    }
  return paths;
}

} // namespace

// The paths are those of all conflicts, and no edge follows from others.
TEST(GraphOrder, HasThePathsOfAllConflictsAndNoOtherEdges) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<Accesses> nodes = makeNodes(random, 60);
    std::vector<SmallVector<int64_t>> all(nodes.size()), edges;
    GraphConflicts conflicts;
    GraphPaths order;
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (size_t other = 0; other < node; ++other)
        if (conflict(nodes[other], nodes[node]))
          all[node].push_back(static_cast<int64_t>(other));
      edges.push_back(
          order.add(conflicts.add(static_cast<int64_t>(node), nodes[node])));
    }
    Paths expected = pathsOf(all);
    ASSERT_EQ(pathsOf(edges), expected) << round;
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (size_t other = 0; other < node; ++other)
        EXPECT_EQ(order.isPath(static_cast<int64_t>(other),
                               static_cast<int64_t>(node)),
                  expected[node][other]);
      for (int64_t from : edges[node])
        for (int64_t other : edges[node])
          EXPECT_FALSE(expected[other][from])
              << from << " -> " << other << " -> " << node;
    }
  }
}

// Nodes of ten chains, which meet now and then: a path is known however long it
// is.
TEST(GraphOrder, FollowsLongChains) {
  GraphPaths order;
  constexpr int64_t chains = 10, length = 1000;
  for (int64_t node = 0; node < chains * length; ++node) {
    SmallVector<int64_t> before;
    if (node >= chains)
      before.push_back(node - chains);
    bool meets = node % chains == 0 && node / chains % 100 == 99;
    if (meets)
      for (int64_t other = node - chains + 1; other < node; ++other)
        before.push_back(other);
    EXPECT_EQ(order.add(before).size(), before.size());
  }
  EXPECT_TRUE(order.isPath(3, chains * 99));
  EXPECT_FALSE(order.isPath(3, chains * 98));
  EXPECT_TRUE(order.isPath(3, 3 + chains * (length - 1)));
  EXPECT_FALSE(order.isPath(3, 4 + chains * (length - 1)));
}
