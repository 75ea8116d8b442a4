//===- OneRank.cpp - The program of one rank of a shard_map ---------------===//

#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/IR/Sdy.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_ONERANK
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

/// The names in quotes, in their order.
static SmallVector<StringRef> namesIn(StringRef text) {
  SmallVector<StringRef> names;
  SmallVector<StringRef> pieces;
  text.split(pieces, '"');
  for (size_t i = 1; i < pieces.size(); i += 2)
    names.push_back(pieces[i]);
  return names;
}

/// The text of each sharding of a list, such as `<@mesh, [{"a"}, {}]>`.
static SmallVector<StringRef>
shardingsIn(sdy::TensorShardingPerValueAttr list) {
  SmallVector<StringRef> shardings;
  StringRef text = list.getText();
  int depth = 0;
  size_t begin = 0;
  for (auto [i, c] : llvm::enumerate(text)) {
    if (c == '<' && depth++ == 0)
      begin = i;
    else if (c == '>' && --depth == 0)
      shardings.push_back(text.slice(begin, i + 1));
  }
  return shardings;
}

namespace {
class OneRank : public stablehlo::impl::OneRankBase<OneRank> {
public:
  void runOnOperation() override {
    auto partitions =
        getOperation()->getAttrOfType<IntegerAttr>("mhlo.num_partitions");
    devices = partitions ? partitions.getInt() : 1;
    SmallVector<sdy::ManualComputationOp> computations;
    getOperation().walk(
        [&](sdy::ManualComputationOp op) { computations.push_back(op); });
    // The import knows what to do on one device, and with sharding annotations.
    if (devices <= 1 || computations.empty())
      return;
    if (computations.size() > 1) {
      computations[1].emitOpError("expected the whole step in one "
                                  "jax.shard_map but got a second one");
      return signalPassFailure();
    }
    if (failed(check(computations.front())))
      return signalPassFailure();
    unwrap(computations.front());
  }

private:
  LogicalResult check(sdy::ManualComputationOp op);
  LogicalResult checkOperand(sdy::ManualComputationOp op, OpOperand &operand,
                             StringRef sharding);
  void unwrap(sdy::ManualComputationOp op);

  int64_t devices = 1;
};
} // namespace

/// Every rank has the whole operand, or its rows: rank r those of device r.
LogicalResult OneRank::checkOperand(sdy::ManualComputationOp op,
                                    OpOperand &operand, StringRef sharding) {
  unsigned index = operand.getOperandNumber();
  auto argument = dyn_cast<BlockArgument>(operand.get());
  if (!argument || !argument.hasOneUse())
    return op.emitOpError("expected operand ")
           << index
           << " to be an argument of the step, which nothing else reads: put "
              "what is outside of jax.shard_map inside of it";
  auto whole = cast<RankedTensorType>(argument.getType());
  auto shard =
      cast<RankedTensorType>(op.getBody().getArgument(index).getType());
  if (whole == shard)
    return success();
  bool isRows = whole.getDimSize(0) == shard.getDimSize(0) * devices &&
                whole.getShape().drop_front() == shard.getShape().drop_front();
  // The axes that split it are all of the mesh, in the mesh's order.
  auto mesh = llvm::find_if(
      getOperation().getOps<sdy::MeshOp>(), [&](sdy::MeshOp mesh) {
        return sharding.starts_with(("<@" + mesh.getSymName() + ",").str()) ||
               sharding.starts_with(("<@\"" + mesh.getSymName() + "\",").str());
      });
  if (isRows && mesh != getOperation().getOps<sdy::MeshOp>().end()) {
    StringRef dims = sharding.drop_front(sharding.find('['));
    StringRef axes = (*mesh).getMesh().getText();
    if (namesIn(dims) == namesIn(axes) && !dims.contains(':') &&
        !axes.contains("device_ids"))
      return success();
  }
  return op.emitOpError("expected operand ")
         << index << " of " << whole
         << " whole on every device, or its rows (dimension 0) split over all "
            "axes of a mesh in their order; "
         << sharding << " is not supported yet";
}

LogicalResult OneRank::check(sdy::ManualComputationOp op) {
  auto func = dyn_cast<func::FuncOp>(op->getParentOp());
  if (!func || !func.isPublic())
    return op.emitOpError("expected jax.shard_map around the whole step, not "
                          "inside of a function or a loop that it calls");
  for (Operation &other : func.getBody().front())
    if (&other != op && !isa<func::ReturnOp>(other))
      return other.emitOpError(
          "is outside of jax.shard_map: put it inside (a step that is "
          "partitioned automatically does not run on ranks)");
  SmallVector<StringRef> shardings = shardingsIn(op.getInShardings());
  if (shardings.size() != op.getNumOperands())
    return op.emitOpError("expected ")
           << op.getNumOperands() << " shardings of operands but got "
           << shardings.size();
  for (OpOperand &operand : op->getOpOperands())
    if (failed(
            checkOperand(op, operand, shardings[operand.getOperandNumber()])))
      return failure();
  Operation *returned = op.getBody().front().getTerminator();
  for (auto [index, shard, whole] :
       llvm::enumerate(returned->getOperandTypes(), op.getResultTypes()))
    if (shard != whole)
      return op.emitOpError("expected result ")
             << index << " to be whole on every device, of type " << whole
             << "; state that is split over devices is not supported yet";
  return success();
}

/// The body becomes that of the function, whose arguments are what a rank has.
void OneRank::unwrap(sdy::ManualComputationOp op) {
  auto func = cast<func::FuncOp>(op->getParentOp());
  Block &body = op.getBody().front();
  for (auto [argument, operand] :
       llvm::zip(body.getArguments(), op.getOperands())) {
    if (operand.getType() != argument.getType())
      func.setArgAttr(cast<BlockArgument>(operand).getArgNumber(),
                      stablehlo::kRowsAttrName,
                      UnitAttr::get(func.getContext()));
    operand.setType(argument.getType());
    argument.replaceAllUsesWith(operand);
  }
  Operation *terminator = body.getTerminator();
  op->replaceAllUsesWith(terminator->getOperands());
  terminator->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         body.getOperations());
  op.erase();
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().front().getArgumentTypes(),
                                 func.getResultTypes()));
}
