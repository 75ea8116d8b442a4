//===- Dependences.cpp - Order of the ops of a schedule -------------------===//

#include "Dependences.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// The nodes that have accessed a buffer last.
struct LastAccesses {
  std::optional<unsigned> writer;
  SmallVector<unsigned> readers; // since then
};
} // namespace

std::optional<std::vector<ScheduleNode>> fp8::findDependences(Block &block) {
  std::vector<ScheduleNode> nodes;
  DenseMap<Value, LastAccesses> last;
  for (Operation &op : block.without_terminator()) {
    std::optional<SmallVector<MemoryAccess>> accesses = accessesOf(&op);
    if (!accesses)
      return std::nullopt;
    if (accesses->empty() && op.getNumRegions() == 0)
      continue;
    unsigned number = nodes.size();
    nodes.push_back({&op, std::move(*accesses), {}, {}});
    auto follow = [&](unsigned earlier) {
      nodes[number].before.push_back(earlier);
      nodes[earlier].after.push_back(number);
    };
    for (auto [memory, reads, writes] : nodes[number].accesses) {
      LastAccesses &known = last[memory];
      if (known.writer && (!writes || known.readers.empty()))
        follow(*known.writer);
      if (!writes) {
        known.readers.push_back(number);
        continue;
      }
      // (These follow the writer before them.)
      for (unsigned reader : known.readers)
        follow(reader);
      known.writer = number;
      known.readers.clear();
    }
  }
  return nodes;
}
