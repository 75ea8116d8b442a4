//===- DropSharding.cpp - Removal of sharding annotations -----------------===//

#include "fp8/Dialect/StableHLO/IR/Sdy.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"
#include "fp8/Support/FunctionAttributes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

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

/// Returns the largest number of devices among the meshes that a sharding
/// names.
static int64_t countDevices(ModuleOp module, StringRef shardings) {
  int64_t devices = 1;
  for (auto mesh : module.getOps<sdy::MeshOp>())
    if (shardings.contains("@" + mesh.getSymName().str()) ||
        shardings.contains("@\"" + mesh.getSymName().str() + "\""))
      devices = std::max(devices, mesh.getMesh().getNumDevices());
  return devices;
}

/// Replaces the computation of the only device by its body.
static LogicalResult unwrap(sdy::ManualComputationOp op) {
  auto module = op->getParentOfType<ModuleOp>();
  int64_t devices =
      std::max(countDevices(module, op.getInShardings().getText()),
               countDevices(module, op.getOutShardings().getText()));
  Block &body = op.getBody().front();
  Operation *terminator = body.getTerminator();
  // A mesh may also be written inline: the types show whether it splits
  // anything.
  if (devices > 1 || body.getArgumentTypes() != op.getOperandTypes() ||
      terminator->getOperandTypes() != op.getResultTypes()) {
    InFlightDiagnostic diag = op.emitOpError();
    if (devices > 1)
      diag << "over " << devices << " devices ";
    return diag << "needs a distributed run, which is not supported yet";
  }
  for (auto [argument, operand] :
       llvm::zip(body.getArguments(), op.getOperands()))
    argument.replaceAllUsesWith(operand);
  op->replaceAllUsesWith(terminator->getOperands());
  terminator->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         body.getOperations());
  op.erase();
  return success();
}

/// True if every group of devices is one device.
static bool isAlone(DenseIntElementsAttr groups) {
  return groups.getType().getRank() == 2 && groups.getType().getDimSize(1) == 1;
}

/// Returns the results of a collective on one device, its operands or zeros;
/// nothing if it is not known to run on one device.
static SmallVector<Value> simplifyCollective(Operation *op, bool onePartition,
                                             bool oneReplica) {
  OpBuilder b(op);
  auto zero = [&](Type type) {
    return stablehlo::ConstantOp::create(
        b, op->getLoc(),
        DenseElementsAttr::get(cast<ShapedType>(type),
                               b.getZeroAttr(getElementTypeOrSelf(type))));
  };
  if ((onePartition && isa<stablehlo::PartitionIdOp>(op)) ||
      (oneReplica && isa<stablehlo::ReplicaIdOp>(op)))
    return {zero(op->getResult(0).getType())};
  if (auto permute = dyn_cast<stablehlo::CollectivePermuteOp>(op)) {
    if (!onePartition || !oneReplica)
      return {};
    // Nothing is sent: the result is zero.
    if (permute.getSourceTargetPairs().empty())
      return {zero(op->getResult(0).getType())};
    return {op->getOperand(0)};
  }
  auto groups = op->getAttrOfType<DenseIntElementsAttr>("replica_groups");
  if (groups && isAlone(groups) &&
      isa<stablehlo::AllReduceOp, stablehlo::AllGatherOp,
          stablehlo::ReduceScatterOp, stablehlo::AllToAllOp,
          stablehlo::CollectiveBroadcastOp>(op) &&
      op->getOperandTypes() == op->getResultTypes())
    return op->getOperands();
  return {};
}

namespace {
struct DropSharding : public stablehlo::impl::DropShardingBase<DropSharding> {
  void runOnOperation() override {
    auto isOne = [&](StringRef name) {
      auto attr = getOperation()->getAttrOfType<IntegerAttr>(name);
      return attr && attr.getValue() == 1;
    };
    bool onePartition = isOne("mhlo.num_partitions");
    bool oneReplica = isOne("mhlo.num_replicas");
    SmallVector<sdy::ManualComputationOp> manual;
    getOperation().walk(
        [&](sdy::ManualComputationOp op) { manual.push_back(op); });
    for (sdy::ManualComputationOp op : manual)
      if (failed(unwrap(op)))
        return signalPassFailure();

    auto dropFrom = [](Operation *op) {
      for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
        if (isShardingAttr(attr.getName().getValue()))
          op->removeDiscardableAttr(attr.getName());
    };
    dropFrom(getOperation());
    SmallVector<Operation *> dead;
    getOperation().walk([&](Operation *op) {
      dropFrom(op);
      // Compare names, so that annotations need no op classes.
      StringRef name = op->getName().getStringRef();
      if (name == "sdy.mesh") {
        dead.push_back(op);
        return;
      }
      if (SmallVector<Value> results =
              simplifyCollective(op, onePartition, oneReplica);
          !results.empty()) {
        op->replaceAllUsesWith(results);
        dead.push_back(op);
        return;
      }
      bool forwards = name == "sdy.sharding_constraint";
      if (auto call = dyn_cast<stablehlo::CustomCallOp>(op))
        forwards = isAnnotation(call.getCallTargetName());
      // A target that changes the shape splits data over devices: it stays, and
      // the end of the import rejects it by name.
      if (forwards && op->getOperandTypes() == op->getResultTypes()) {
        op->replaceAllUsesWith(op->getOperands());
        dead.push_back(op);
      }
    });
    for (Operation *op : dead)
      op->erase();
    getOperation().walk([&](func::FuncOp func) {
      auto drop = [](unsigned, NamedAttrList &attributes) {
        for (NamedAttribute attr : llvm::to_vector(attributes))
          if (isShardingAttr(attr.getName().getValue()))
            attributes.erase(attr.getName());
      };
      fp8::updateArgAttrs(func, drop);
      fp8::updateResultAttrs(func, drop);
    });
  }
};
} // namespace
