//===- GraphRaces.cpp - Races between the nodes of a graph ----------------===//

#include "GraphRaces.h"

#include <algorithm>
#include <iterator>

namespace fp8::emulator {

static constexpr size_t nobody = SIZE_MAX;

GraphPaths::GraphPaths(const std::vector<std::vector<size_t>> &before)
    : reached(before.size()) {
  size_t words = (before.size() + 63) / 64;
  for (size_t node = 0; node < before.size(); ++node) {
    reached[node].resize(words, 0);
    for (size_t other : before[node]) {
      for (size_t word = 0; word < words; ++word)
        reached[node][word] |= reached[other][word];
      reached[node][other / 64] |= uint64_t(1) << other % 64;
    }
  }
}

/// Lets a segment begin at `at`, if one contains it.
void GraphRaces::split(uint64_t at) {
  auto after = segments.upper_bound(at);
  if (after == segments.begin())
    return;
  auto before = std::prev(after);
  if (before->first == at || before->second.end <= at)
    return;
  Segment rest = before->second;
  before->second.end = at;
  segments.emplace_hint(after, at, std::move(rest));
}

bool GraphRaces::read(size_t node, const Touched::Range &range, Race &race) {
  split(range.begin);
  split(range.end);
  uint64_t at = range.begin;
  for (auto it = segments.lower_bound(at); at < range.end; ++it) {
    if (it == segments.end() || it->first > at) {
      uint64_t end =
          it == segments.end() ? range.end : std::min(range.end, it->first);
      it = segments.emplace_hint(it, at, Segment{end, nobody, {}});
    }
    Segment &segment = it->second;
    if (segment.writer != nobody && segment.writer != node &&
        !paths.isPath(segment.writer, node)) {
      race = {segment.writer, node, at};
      return true;
    }
    segment.readers.push_back(node);
    at = segment.end;
  }
  return false;
}

bool GraphRaces::write(size_t node, const Touched::Range &range, Race &race) {
  split(range.begin);
  split(range.end);
  auto first = segments.lower_bound(range.begin), it = first;
  for (; it != segments.end() && it->first < range.end; ++it) {
    std::vector<size_t> others = it->second.readers;
    if (it->second.writer != nobody)
      others.push_back(it->second.writer);
    for (size_t other : others)
      if (other != node && !paths.isPath(other, node)) {
        race = {other, node, it->first};
        return true;
      }
  }
  segments.erase(first, it);
  segments[range.begin] = {range.end, node, {}};
  return false;
}

bool GraphRaces::add(size_t node, const Touched &touched, Race &race) {
  for (const Touched::Range &range : touched.reads)
    if (read(node, range, race))
      return true;
  for (const Touched::Range &range : touched.writes)
    if (write(node, range, race))
      return true;
  return false;
}

} // namespace fp8::emulator
