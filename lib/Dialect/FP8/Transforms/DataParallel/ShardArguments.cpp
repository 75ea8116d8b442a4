//===- ShardArguments.cpp - What a rank has of each argument --------------===//

#include "ShardArguments.h"

#include "StateParts.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::isShardMapStep(func::FuncOp func) {
  return func->hasAttr(stablehlo::kDevicesAttrName) ||
         func.walk([](ExchangeOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

Value fp8::gatherFromRanks(OpBuilder &builder, Value part, int64_t ranks,
                           const Twine &label) {
  auto members = llvm::to_vector(llvm::seq<int64_t>(0, ranks));
  auto group = DenseIntElementsAttr::get(
      RankedTensorType::get({1, ranks}, builder.getI64Type()), members);
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), ranks);
  return ExchangeOp::create(builder, part.getLoc(), type.clone(shape),
                            ExchangeKind::Gather, part, group,
                            builder.getStringAttr(label));
}

/// Gives each rank only its own rows of an argument. Ops that read rows of
/// other ranks gather them.
static LogicalResult shardBatch(func::FuncOp func, const SignatureArg &arg,
                                int64_t devices) {
  BlockArgument rows = func.getArgument(arg.index);
  auto whole = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(whole.getShape());
  if (shape[0] % devices != 0)
    return emitError(rows.getLoc())
           << "expected as many rows of '" << arg.path << "' on each of "
           << devices << " ranks but got " << shape[0] << " for all";
  shape[0] /= devices;
  rows.setType(whole.clone(shape));
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().getArgumentTypes(),
                                 func.getResultTypes()));
  if (rows.use_empty())
    return success();
  Operation *reader = rows.hasOneUse() ? *rows.user_begin() : nullptr;
  if (func.getArgAttr(arg.index, stablehlo::kRowsAttrName) &&
      isa_and_nonnull<stablehlo::DynamicSliceOp>(reader) &&
      reader->getResult(0).getType() == rows.getType()) {
    reader->replaceAllUsesWith(ValueRange{rows});
    reader->erase();
    return success();
  }
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : rows.getUses())
    uses.push_back(&use);
  auto builder = OpBuilder::atBlockBegin(rows.getOwner());
  Value parts = gatherFromRanks(builder, rows, devices, "rows of " + arg.path);
  Value all =
      stablehlo::ReshapeOp::create(builder, rows.getLoc(), whole, parts);
  for (OpOperand *use : uses)
    use->set(all);
  return success();
}

LogicalResult fp8::shardArguments(func::FuncOp func, const Signature &signature,
                                  const Recipe *recipe) {
  auto devices = func->getAttrOfType<IntegerAttr>(stablehlo::kDevicesAttrName);
  if (devices && devices.getInt() <= 0)
    return func.emitOpError("expected '")
           << stablehlo::kDevicesAttrName << "' to be positive but got "
           << devices.getInt();
  splitState(func, signature, recipe);
  for (auto [index, arg] : llvm::enumerate(signature.args)) {
    auto type = cast<RankedTensorType>(arg.type);
    if (devices && arg.role == ArgRole::Batch && type.getRank() > 0 &&
        failed(shardBatch(func, arg, devices.getInt())))
      return failure();
    func.removeArgAttr(index, stablehlo::kRowsAttrName);
  }
  func->removeAttr(stablehlo::kDevicesAttrName);
  // Erase the ops that computed where a rank's rows begin.
  IRRewriter rewriter(func.getContext());
  (void)runRegionDCE(rewriter, func->getRegions());
  return success();
}
