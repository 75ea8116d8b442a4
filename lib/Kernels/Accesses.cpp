//===- Accesses.cpp - Accesses of ops to memory ---------------------------===//

#include "fp8/Kernels/Accesses.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::memoryOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

std::optional<int64_t> fp8::beginOf(ViewLikeOpInterface view) {
  Operation *op = view;
  if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(op))
    return 0;
  if (auto inArena = dyn_cast<memref::ViewOp>(op))
    return getConstantIntValue(inArena.getByteShift());
  auto part = dyn_cast<SubbufferOp>(op);
  std::optional<int64_t> elements =
      part ? getConstantIntValue(part.getOffset()) : std::nullopt;
  if (!elements)
    return std::nullopt;
  return *elements * elementBytes(part.getType().getElementType());
}

namespace {
struct Use {
  bool reads, writes;
};
} // namespace

std::optional<SmallVector<MemoryAccess>> fp8::accessesOf(Operation *op) {
  llvm::SmallMapVector<Value, Use, 8> uses;
  auto add = [&](Value buffer, bool reads, bool writes) {
    Use &use = uses.insert({memoryOf(buffer), {false, false}}).first->second;
    use.reads |= reads;
    use.writes |= writes;
  };
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    // This is most ops, and quicker than a list of their effects.
    for (auto [index, buffer] : llvm::enumerate(launch.getOperands())) {
      Access access = launch.getAccess(index);
      add(buffer, access != Access::Write, access != Access::Read);
    }
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
      bool reads = isa<MemoryEffects::Read>(effect.getEffect());
      add(effect.getValue(), reads, !reads);
    }
  }
  return llvm::map_to_vector(uses, [](auto &entry) {
    return MemoryAccess{entry.first, entry.second.reads, entry.second.writes};
  });
}

bool fp8::mayWrite(OpOperand &operand) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(operand.getOwner());
  return !effects ||
         effects.getEffectOnValue<MemoryEffects::Write>(operand.get());
}

//===----------------------------------------------------------------------===//
// Arguments of kernels
//===----------------------------------------------------------------------===//

/// Returns true if `op` writes every element of operand `init`.
static bool writesAll(linalg::LinalgOp op, OpOperand &init) {
  AffineMap map = op.getMatchingIndexingMap(&init);
  auto type = cast<ShapedType>(init.get().getType());
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  return map.isProjectedPermutation() &&
         llvm::all_of(llvm::enumerate(map.getResults()), [&](auto result) {
           unsigned loop = cast<AffineDimExpr>(result.value()).getPosition();
           return extents[loop] == type.getDimSize(result.index());
         });
}

/// Returns how the owner of `use` accesses a tensor or buffer.
static Use kindOf(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (linalgOp.isDpsInput(&use))
      return {true, false};
    return {linalgOp.payloadUsesValueFromOperand(&use) ||
                !writesAll(linalgOp, use),
            true};
  }
  if (isa<memref::LoadOp, tensor::ExtractOp>(op))
    return {true, false};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return {store.getValueToStore() == use.get(), true};
  return {true, true};
}

Access fp8::accessOf(BlockArgument argument) {
  bool reads = false, writes = false;
  Operation *firstWriter = nullptr; // the first that writes all of it
  SmallVector<Value> views{argument};
  SmallVector<std::pair<Operation *, Use>> uses;
  while (!views.empty())
    for (OpOperand &use : views.pop_back_val().getUses()) {
      if (isa<ViewLikeOpInterface>(use.getOwner())) {
        views.push_back(use.getOwner()->getResult(0));
        continue;
      }
      if (isa<ReturnOp>(use.getOwner()))
        continue;
      Use kind = kindOf(use);
      Operation *top =
          argument.getOwner()->findAncestorOpInBlock(*use.getOwner());
      uses.push_back({top, kind});
      writes |= kind.writes;
      if (kind.writes && !kind.reads && top == use.getOwner() &&
          (!firstWriter || top->isBeforeInBlock(firstWriter)))
        firstWriter = top;
    }
  // Ops after the first complete write read what it wrote.
  for (auto [op, kind] : uses)
    reads |= kind.reads && (!firstWriter || op == firstWriter ||
                            op->isBeforeInBlock(firstWriter));
  if (!writes)
    return Access::Read;
  return reads ? Access::Update : Access::Write;
}
