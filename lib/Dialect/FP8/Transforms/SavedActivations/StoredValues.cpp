//===- StoredValues.cpp - The forms in which values are saved -------------===//

#include "StoredValues.h"

#include "../Quantize/Quantizer.h"
#include "Recomputation.h"
#include "RelatedValues.h"
#include "SavedUses.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Support/Shapes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// The number of elements that share a scale (COAT).
static constexpr int64_t kScaleGroup = 16;

StoredValues::StoredValues(func::FuncOp function, const LinearLayers &layers,
                           const ComputeRecipe &compute)
    : compute(compute), builder(function.getContext()),
      rounder(function.getContext()), blockQuantizer(function.getContext()) {
  // How large the activations of the layers are. Other saved values say nothing
  // of that: logits may be a hundred times larger.
  for (OpOperand *use : layers.getSavedUses())
    largestOperand = std::max(largestOperand, getLargestOperand(*use));
  if (compute.savedNorms != SavedFormat::Same)
    ofNorms = findValuesOfNorms(function, layers);
  if (compute.savedGated != SavedFormat::Same)
    ofGatedUnits = findValuesOfGatedUnits(function, layers);
  if (compute.attention == AttentionFormat::F8)
    findBlocks(function, layers);
}

/// Whether `isReader` is true for an op, or for all ops that read what it
/// repeats.
static bool isOrFeeds(Operation *op,
                      llvm::function_ref<bool(Operation *)> isReader) {
  return isReader(op) || (isa<stablehlo::BroadcastInDimOp>(op) &&
                          feedsOnly(op->getResult(0), [&](Operation *next) {
                            return isOrFeeds(next, isReader);
                          }));
}

void StoredValues::findBlocks(func::FuncOp function,
                              const LinearLayers &layers) {
  SmallVector<RoundedOperand> operands = findRoundedOperands(function);
  DenseSet<Operation *> dots;
  for (const RoundedOperand &operand : operands)
    dots.insert(operand.use->getOwner());
  // The forward pass reads values as they are.
  auto readsBlocks = [&](Operation *op) {
    return isOrFeeds(op, [&](Operation *reader) {
      return dots.contains(reader) ||
             (layers.isForward(reader) && !keepsElements(reader));
    });
  };
  for (auto &[value, tile] : findValuesInBlocks(operands))
    if (feedsOnly(value, readsBlocks))
      blocks.insert({value, tile});
}

void StoredValues::addUse(Value value, OpOperand &use) {
  if (isAddedToScores(use))
    exact.insert(value);
  auto readsOperand = [](Operation *op) {
    return isOrFeeds(op, llvm::IsaPred<stablehlo::DotGeneralOp>);
  };
  if (!feedsOnly(use, readsOperand))
    ofOthers.insert(value);
}

std::optional<SavedFormat> StoredValues::getForm(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  // The mask of a rectifier, which is no float, also follows from the norm's
  // input.
  if (!isa<FloatType>(type.getElementType()))
    return std::nullopt;
  if (isInBlocks(value))
    return SavedFormat::F8E4M3FN;
  // Rows shorter than a group would have too many scales.
  if (type.getRank() > 0 && type.getShape().back() >= kScaleGroup) {
    if (compute.savedNorms != SavedFormat::Same && ofNorms.contains(value))
      return compute.savedNorms;
    if (compute.savedGated != SavedFormat::Same && ofGatedUnits.contains(value))
      return compute.savedGated;
  }
  return std::nullopt;
}

/// Puts a barrier after the stored form of a value. Without it the value would
/// be recomputed where it is read, and ops of the backward pass would be merged
/// with those of the forward pass.
Value StoredValues::addBarrier(Value narrow) {
  Value &kept = barriers[narrow];
  if (kept)
    return kept;
  Location loc = narrow.getLoc();
  builder.setInsertionPointAfterValue(narrow);
  auto scaled = dyn_cast<ScaledType>(narrow.getType());
  if (!scaled) {
    auto barrier = stablehlo::OptimizationBarrierOp::create(
        builder, loc, narrow.getType(), narrow);
    return kept = barrier->getResult(0);
  }
  auto parts = UnpackOp::create(builder, loc, scaled.getPayloadType(),
                                scaled.getScaleTensorType(), narrow);
  auto barrier = stablehlo::OptimizationBarrierOp::create(
      builder, loc, parts->getResultTypes(), parts->getResults());
  return kept = PackOp::create(builder, loc, scaled, barrier->getResult(0),
                               barrier->getResult(1));
}

/// Whether a constant has a finite number that would be infinite in bf16.
static bool exceedsBF16(DenseFPElementsAttr numbers) {
  return llvm::any_of(numbers.getValues<APFloat>(), [](APFloat number) {
    bool losesInfo, isFinite = number.isFinite();
    number.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
    return isFinite && !number.isFinite();
  });
}

/// Whether `value` follows from such a constant: masks add the lowest number of
/// f32.
static bool mayExceedBF16(Value value) {
  return anySource(
      value, [](Operation *op) { return isa<stablehlo::BroadcastInDimOp>(op); },
      [](Value source) {
        DenseFPElementsAttr numbers;
        return matchPattern(source, m_Constant(&numbers)) &&
               exceedsBF16(numbers);
      });
}

/// Returns a value with the nearest numbers that bf16 has for those beyond its
/// range.
Value StoredValues::inRangeOfBF16(Value value) {
  Value &clamped = clampedValues[value];
  if (clamped)
    return clamped;
  builder.setInsertionPointAfterValue(value);
  RankedTensorType scalar = tensorOf(value).clone(ArrayRef<int64_t>());
  auto bound = [&](bool isLow) {
    APFloat number = APFloat::getLargest(APFloat::BFloat(), isLow);
    return stablehlo::makeSplat(builder, value.getLoc(), scalar,
                                builder.getFloatAttr(scalar.getElementType(),
                                                     number.convertToDouble()));
  };
  Value low = bound(/*isLow=*/true), high = bound(/*isLow=*/false);
  return clamped = stablehlo::ClampOp::create(
             builder, value.getLoc(), value.getType(), low, value, high);
}

/// Returns the payload and scales of a value.
Value StoredValues::quantize(Value value, SavedFormat form) {
  Value &payload = payloads[value];
  if (payload)
    return payload;
  if (auto tile = blocks.find(value); tile != blocks.end())
    return payload = blockQuantizer.get(value, tile->second);
  RankedTensorType type = tensorOf(value);
  Location loc = value.getLoc();
  setInsertionPointToQuantize(builder, value);
  Type format = form == SavedFormat::F8E4M3FN
                    ? Type(builder.getType<Float8E4M3FNType>())
                    : Type(builder.getType<Float8E5M2Type>());
  SmallVector<int64_t> tile(type.getRank(), 1);
  tile.back() = kScaleGroup;
  auto scaled = ScaledType::get(RankedTensorType::get(type.getShape(), format),
                                tile, builder.getF32Type());
  auto amax = AmaxOp::create(builder, loc, value, scaled);
  auto scale =
      ComputeScaleOp::create(builder, loc, amax, ScaleRule::Exact, format);
  return payload = QuantizeOp::create(builder, loc, scaled, value,
                                      scale.getScale(), scale.getQuantizer());
}

Value StoredValues::store(Value value, bool isStacked) {
  RankedTensorType type = tensorOf(value);
  if (std::optional<SavedFormat> form = getForm(value)) {
    Value payload = quantize(value, *form);
    return isStacked ? payload : addBarrier(payload);
  }
  // Sums of rows take little memory, and many values are computed from each.
  if (ofOthers.contains(value) &&
      type.getNumElements() * kSmallPart <= largestOperand)
    return value;
  if (compute.saved != ComputeFormat::BF16 || !type.getElementType().isF32() ||
      exact.contains(value))
    return isStacked || isa<BlockArgument>(value) ? value : addBarrier(value);
  Value narrow =
      rounder.get(mayExceedBF16(value) ? inRangeOfBF16(value) : value);
  return isStacked || isa<BlockArgument>(narrow) ? narrow : addBarrier(narrow);
}

Value StoredValues::restore(Value value, Operation *reader, bool isStacked) {
  Value stored = store(value, isStacked);
  if (stored.getType() == value.getType())
    return stored;
  builder.setInsertionPoint(reader);
  if (isa<ScaledType>(stored.getType()))
    return DequantizeOp::create(builder, value.getLoc(), value.getType(),
                                stored);
  return stablehlo::ConvertOp::create(builder, value.getLoc(), value.getType(),
                                      stored);
}
