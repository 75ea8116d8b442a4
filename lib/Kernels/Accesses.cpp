//===- Accesses.cpp - Accesses of ops to memory ---------------------------===//

#include "fp8/Kernels/Accesses.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
// Addresses in loops
//===----------------------------------------------------------------------===//

using Strides = std::optional<SmallVector<int64_t>>;

/// Returns a + scale * b.
static Strides sum(const Strides &a, const Strides &b, int64_t scale) {
  if (!a || !b)
    return std::nullopt;
  SmallVector<int64_t> all = *a;
  for (auto [value, other] : llvm::zip(all, *b))
    value += scale * other;
  return all;
}

Strides fp8::stridesOf(Value value, ArrayRef<scf::ForOp> loops) {
  SmallVector<int64_t> none(loops.size());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto counted = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!counted || argument != counted.getInductionVar())
      return std::nullopt;
    for (auto [level, loop] : llvm::enumerate(loops)) {
      if (loop != counted)
        continue;
      std::optional<int64_t> step = getConstantIntValue(counted.getStep());
      if (!step)
        return std::nullopt;
      none[level] = *step;
    }
    return none;
  }
  Operation *op = value.getDefiningOp();
  if (op->hasTrait<OpTrait::ConstantLike>())
    return none;
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return stridesOf(op->getOperand(0), loops);
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return sum(stridesOf(op->getOperand(0), loops),
               stridesOf(op->getOperand(1), loops),
               isa<arith::AddIOp>(op) ? 1 : -1);
  if (isa<arith::MulIOp>(op))
    for (unsigned i = 0; i < 2; ++i)
      if (std::optional<int64_t> scale =
              getConstantIntValue(op->getOperand(1 - i)))
        return sum(none, stridesOf(op->getOperand(i), loops), *scale);
  // A value computed from invariant values, such as the rank, is invariant.
  if (!isPure(op) || op->getNumRegions() > 0)
    return std::nullopt;
  for (Value operand : op->getOperands())
    if (stridesOf(operand, loops) != none)
      return std::nullopt;
  return none;
}

Strides fp8::stridesOfBuffer(Value buffer, ArrayRef<scf::ForOp> loops) {
  Strides bytes = SmallVector<int64_t>(loops.size());
  for (Operation *def = buffer.getDefiningOp(); def;
       def = buffer.getDefiningOp()) {
    if (auto part = dyn_cast<SubbufferOp>(def)) {
      bytes = sum(bytes, stridesOf(part.getOffset(), loops),
                  elementBytes(part.getType().getElementType()));
    } else if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(def)) {
      break;
    }
    buffer = cast<ViewLikeOpInterface>(def).getViewSource();
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Arguments of kernels
//===----------------------------------------------------------------------===//

bool fp8::writesAll(linalg::LinalgOp op, OpOperand &init) {
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
