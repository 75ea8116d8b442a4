//===- DropSharding.cpp - Removal of sharding annotations -----------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_DROPSHARDING
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

/// True if a custom call with this target returns its operands.
static bool isAnnotation(StringRef target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" ||
         target == "SPMDShardToFullShape" || target == "annotate" ||
         target.starts_with("xla.sdy.");
}

static bool isShardingAttr(StringRef name) {
  return name.starts_with("sdy.") || name.starts_with("xla.sdy.") ||
         name == "mhlo.sharding" || name == "mhlo.num_partitions" ||
         name == "mhlo.num_replicas" || name.starts_with("mhlo.layout_mode") ||
         name.starts_with("mhlo.memory_kind") || name == "stablehlo.mesh";
}

namespace {
struct DropSharding : public stablehlo::impl::DropShardingBase<DropSharding> {
  void runOnOperation() override {
    auto dropFrom = [](Operation *op) {
      for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
        if (isShardingAttr(attr.getName().getValue()))
          op->removeDiscardableAttr(attr.getName());
    };
    dropFrom(getOperation());
    SmallVector<Operation *> dead;
    getOperation().walk([&](Operation *op) {
      dropFrom(op);
      // By name, so that annotations need no class of their own.
      StringRef name = op->getName().getStringRef();
      if (name == "sdy.mesh") {
        dead.push_back(op);
        return;
      }
      bool forwards = name == "sdy.sharding_constraint";
      if (auto call = dyn_cast<stablehlo::CustomCallOp>(op))
        forwards = isAnnotation(call.getCallTargetName());
      // A target that changes the shape splits data over devices: it stays and
      // is rejected by name.
      if (forwards && op->getOperandTypes() == op->getResultTypes()) {
        op->replaceAllUsesWith(op->getOperands());
        dead.push_back(op);
      }
    });
    for (Operation *op : dead)
      op->erase();
    getOperation().walk([&](func::FuncOp func) {
      for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
        for (NamedAttribute attr : llvm::to_vector(
                 mlir::function_interface_impl::getArgAttrs(func, i)))
          if (isShardingAttr(attr.getName().getValue()))
            func.removeArgAttr(i, attr.getName());
      for (unsigned i = 0, e = func.getNumResults(); i < e; ++i)
        for (NamedAttribute attr : llvm::to_vector(
                 mlir::function_interface_impl::getResultAttrs(func, i)))
          if (isShardingAttr(attr.getName().getValue()))
            func.removeResultAttr(i, attr.getName());
    });
  }
};
} // namespace
