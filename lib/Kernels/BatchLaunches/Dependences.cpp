//===- Dependences.cpp - Order of the ops of a schedule -------------------===//

#include "Dependences.h"

#include "fp8/Kernels/Structure.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the accesses of `op` and of the ops inside of it; nullopt if they
/// are not known.
static std::optional<SmallVector<BufferAccess>> accessesOf(Operation *op) {
  llvm::SmallMapVector<Value, bool, 8> writes;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    // This is most ops, and quicker than a list of their effects.
    for (auto [index, buffer] : llvm::enumerate(launch.getOperands()))
      writes[memoryOf(buffer)] |= launch.getAccess(index) != Access::Read;
  } else {
    std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
        getEffectsRecursively(op);
    if (!effects)
      return std::nullopt;
    for (const MemoryEffects::EffectInstance &effect : *effects) {
      if (isa<MemoryEffects::Allocate>(effect.getEffect()))
        continue;
      if (!effect.getValue())
        return std::nullopt;
      writes[memoryOf(effect.getValue())] |=
          !isa<MemoryEffects::Read>(effect.getEffect());
    }
  }
  SmallVector<BufferAccess> accesses;
  for (auto [buffer, isWritten] : writes)
    accesses.push_back({buffer, isWritten});
  return accesses;
}

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
    std::optional<SmallVector<BufferAccess>> accesses = accessesOf(&op);
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
    for (auto [buffer, writes] : nodes[number].accesses) {
      LastAccesses &known = last[buffer];
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
