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

SmallVector<scf::ForOp> fp8::deviceLoopsAround(Operation *op) {
  SmallVector<scf::ForOp> loops;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (loop->hasAttr(FP8Dialect::kDeviceLoopAttrName))
      loops.push_back(loop);
  return {loops.rbegin(), loops.rend()};
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
