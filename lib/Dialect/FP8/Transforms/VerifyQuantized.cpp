//===- VerifyQuantized.cpp - Check the contract of the fp8 stage ----------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8VERIFYQUANTIZED
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// The op that a scaled value or its payload comes from, through ops that
/// change no number; null for a value from outside.
static Operation *getQuantization(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    // A stack of payloads: what the loop writes into its slots.
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
      Operation *yield = loop.getBody().front().getTerminator();
      auto update = yield->getOperand(cast<OpResult>(value).getResultNumber())
                        .getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
      if (!update)
        return op;
      value = update.getUpdate();
      continue;
    }
    if (!isa<PackOp, UnpackOp, stablehlo::ReshapeOp, stablehlo::TransposeOp,
             stablehlo::DynamicSliceOp>(op))
      return op;
    value = op->getOperand(0);
  }
  return nullptr;
}

static LogicalResult verifyDot(fp8::DotGeneralOp dot) {
  for (Value operand : {dot.getLhs(), dot.getRhs()}) {
    Operation *source = getQuantization(operand);
    if (source && !isa<QuantizeOp>(source)) {
      InFlightDiagnostic diag = dot.emitOpError()
                                << "expected operands that come from "
                                   "fp8.quantize but got one from "
                                << source->getName();
      diag.attachNote(source->getLoc()) << "defined here";
      return diag;
    }
  }
  return success();
}

static LogicalResult verifyScales(QuantizeOp quantize) {
  auto scale = quantize.getScale().getDefiningOp<ComputeScaleOp>();
  auto quantizer = quantize.getQuantizer().getDefiningOp<ComputeScaleOp>();
  if (!scale && !quantizer)
    return success();
  if (scale != quantizer || quantize.getScale() != scale.getScale() ||
      quantize.getQuantizer() != scale.getQuantizer())
    return quantize.emitOpError()
           << "expected scale and quantizer to be the first and the second "
              "result of one fp8.compute_scale";
  return success();
}

namespace {
struct VerifyQuantized
    : public fp8::impl::FP8VerifyQuantizedBase<VerifyQuantized> {
  void runOnOperation() override {
    using Key = std::pair<std::pair<Value, Value>, std::pair<Type, Attribute>>;
    DenseMap<Key, QuantizeOp> seen;
    WalkResult result = getOperation()->walk([&](Operation *op) -> WalkResult {
      if (auto dot = dyn_cast<fp8::DotGeneralOp>(op))
        return verifyDot(dot);
      if (auto amax = dyn_cast<AmaxOp>(op)) {
        if (amax->use_empty())
          return amax.emitOpError() << "is computed and never used";
        return WalkResult::advance();
      }
      if (auto scale = dyn_cast<ComputeScaleOp>(op)) {
        // Delayed scaling keeps the quantizer alone.
        if (scale->use_empty())
          return scale.emitOpError() << "computes a scale that is never used";
        return WalkResult::advance();
      }
      auto quantize = dyn_cast<QuantizeOp>(op);
      if (!quantize)
        return WalkResult::advance();
      if (failed(verifyScales(quantize)))
        return WalkResult::interrupt();
      // Type, rounding, overflow and the scale's rule tell ways apart, a scale
      // that is not the tensor's own by itself.
      Value state;
      SmallVector<Attribute> way{op->getAttrDictionary()};
      if (auto scale = quantize.getScale().getDefiningOp<ComputeScaleOp>())
        way.push_back(scale->getAttrDictionary());
      else
        state = quantize.getScale();
      Key key{
          {quantize.getInput(), state},
          {quantize.getResult().getType(), ArrayAttr::get(&getContext(), way)}};
      auto [it, inserted] = seen.try_emplace(key, quantize);
      if (!inserted) {
        InFlightDiagnostic diag =
            quantize.emitOpError()
            << "quantizes a tensor that is already quantized in the same way";
        diag.attachNote(it->second.getLoc()) << "quantized here first";
        return diag;
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
