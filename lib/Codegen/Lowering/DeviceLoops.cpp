//===- DeviceLoops.cpp - Loops and conditions on a GPU --------------------===//

#include "DeviceLoops.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;

using Strides = std::optional<SmallVector<int64_t>>;

SmallVector<scf::ForOp> fp8::deviceLoopsAround(Operation *op) {
  SmallVector<scf::ForOp> loops;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (loop->hasAttr(FP8Dialect::kDeviceLoopAttrName))
      loops.push_back(loop);
  return {loops.rbegin(), loops.rend()};
}

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

/// Returns the load behind `value`, ignoring casts.
static memref::LoadOp loadOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (auto load = dyn_cast<memref::LoadOp>(def))
      return isa<IntegerType>(load.getType()) ? load : memref::LoadOp();
    // A boolean is stored as a byte, 0 or 1.
    if (!isa<arith::IndexCastOp>(def) &&
        !(isa<arith::TruncIOp>(def) &&
          def->getResult(0).getType().isInteger(1)))
      break;
    value = def->getOperand(0);
  }
  return {};
}

std::optional<Condition> fp8::conditionOf(Value condition) {
  memref::LoadOp load = loadOf(condition);
  if (!load)
    return std::nullopt;
  return Condition{load, 0, 0, /*inverted=*/true};
}

std::optional<Condition> fp8::conditionOf(scf::IndexSwitchOp choice,
                                          unsigned number) {
  memref::LoadOp load = loadOf(choice.getArg());
  if (!load)
    return std::nullopt;
  if (number > 0) {
    int64_t value = choice.getCases()[number - 1];
    return Condition{load, value, value, /*inverted=*/false};
  }
  // The default region: the cases must be consecutive numbers.
  ArrayRef<int64_t> cases = choice.getCases();
  for (auto [i, value] : llvm::enumerate(cases))
    if (value != cases[0] + static_cast<int64_t>(i))
      return std::nullopt;
  // Without cases, the default region always runs.
  return cases.empty() ? Condition{load, 1, 0, /*inverted=*/true}
                       : Condition{load, cases.front(), cases.back(), true};
}
