//===- GraphRaces.h - Races between the nodes of a graph --------*- C++ -*-===//
//
// Two nodes of a graph with no path between them may run at once. If both
// access one byte and one of them writes, the result depends on their order,
// which is a race no matter in which order they have run here.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_GRAPHRACES_H
#define FP8_TEST_LIB_GPUEMULATOR_GRAPHRACES_H

#include "Memory.h"

namespace fp8::emulator {

/// Which nodes of a graph follow which.
class GraphPaths {
public:
  /// `before` has for each node the nodes from which it has an edge, all of
  /// which have smaller numbers.
  explicit GraphPaths(const std::vector<std::vector<size_t>> &before);
  bool isPath(size_t first, size_t second) const {
    return reached[second][first / 64] >> first % 64 & 1;
  }

private:
  std::vector<std::vector<uint64_t>> reached; // a bit for each node before
};

/// One run of a graph.
class GraphRaces {
public:
  explicit GraphRaces(const GraphPaths &paths) : paths(paths) {}

  /// A pair of nodes, the later one second, and a byte that both access.
  struct Race {
    size_t first, second;
    uint64_t address;
  };
  /// Adds what `node` has accessed, after those that ran before it. Returns
  /// true and sets `race` if it races with one of them.
  bool add(size_t node, const Touched &touched, Race &race);

private:
  /// Who accessed a range of bytes last: the last writer, and who has read it
  /// since.
  struct Segment {
    uint64_t end;
    size_t writer; // none: SIZE_MAX
    std::vector<size_t> readers;
  };
  void split(uint64_t at);
  bool read(size_t node, const Touched::Range &range, Race &race);
  bool write(size_t node, const Touched::Range &range, Race &race);

  const GraphPaths &paths;
  std::map<uint64_t, Segment> segments; // by their begin
};

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_GRAPHRACES_H
