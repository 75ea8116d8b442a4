//===- StoredForm.cpp - How an array is stored ----------------------------===//

#include "StoredForm.h"

#include "OperandRows.h"
#include "Quantize/Quantizer.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

using namespace mlir;
using namespace mlir::fp8;

/// The number of elements along the last dimension that share a scale.
static constexpr int64_t kGroup = 128;

StoredForm StoredForm::get(const StorageRecipe &recipe, RankedTensorType real,
                           unsigned layers) {
  StoredForm form{recipe, real, {}, {}};
  MLIRContext *context = real.getContext();
  RankedTensorType type = real.clone(getStorageType(recipe.format, context));
  if (recipe.tile == StorageTiling::None) {
    form.narrow = type;
    return form;
  }
  bool isWhole = recipe.tile == StorageTiling::Tensor;
  SmallVector<int64_t> tile(real.getRank(), isWhole ? ScaledType::kWhole : 1);
  std::fill_n(tile.begin(), layers, 1);
  if (!isWhole)
    tile.back() = kGroup;
  form.scaled = ScaledType::get(type, tile, Float32Type::get(context));
  return form;
}

bool StoredForm::canStoreParts(const StorageRecipe &recipe,
                               ArrayRef<int64_t> part,
                               ArrayRef<int64_t> whole) {
  if (recipe.tile == StorageTiling::None)
    return true;
  if (recipe.scaling == Scaling::Delayed)
    return false;
  return recipe.tile == StorageTiling::Tensor || part.back() % kGroup == 0 ||
         part.back() == whole.back();
}

SmallVector<RankedTensorType> StoredForm::getPartTypes() const {
  if (isCast())
    return {narrow};
  SmallVector<RankedTensorType> types{scaled.getPayloadType(),
                                      scaled.getScaleTensorType()};
  if (recipe.expand)
    types.append(2, getQuantizerType(scaled));
  return types;
}

FailureOr<SmallVector<Value>> StoredForm::store(OpBuilder &builder,
                                                Location loc, Value value,
                                                Seeds *seeds, int64_t number,
                                                ChooseScale chooseScale,
                                                StringRef overRanks) const {
  auto f32 = RankedTensorType::get(real.getShape(), builder.getF32Type());
  if (value.getType() != f32)
    value = stablehlo::ConvertOp::create(builder, loc, f32, value);
  Value seed;
  IntegerAttr tensor;
  Rounding rounding = Rounding::NearestEven;
  if (recipe.rounding == Rounding::Stochastic && seeds) {
    FailureOr<Value> found = seeds->get(builder.getInsertionBlock());
    if (failed(found))
      return failure();
    seed = *found;
    rounding = Rounding::Stochastic;
    tensor = builder.getI64IntegerAttr(number);
  }
  if (isCast())
    return SmallVector<Value>{
        RoundOp::create(builder, loc, narrow, value, seed, rounding, tensor)};

  SmallVector<Value> expansion;
  Type format = scaled.getElementType();
  if (recipe.expand) {
    auto tile = builder.getDenseI64ArrayAttr(scaled.getTile());
    RankedTensorType tiles = getQuantizerType(scaled);
    Value amax = AmaxOp::create(builder, loc, value, scaled);
    Value amin = AminOp::create(builder, loc, tiles, value, tile);
    auto range = ComputeExpansionOp::create(builder, loc, tiles, tiles, amax,
                                            amin, TypeAttr::get(format));
    expansion = {range.getCenter(), range.getExponent()};
    value = ExpandRangeOp::create(builder, loc, f32, value, range.getCenter(),
                                  range.getExponent(), tile);
  }
  Value amax = AmaxOp::create(builder, loc, value, scaled);
  if (!overRanks.empty() && recipe.tile == StorageTiling::Tensor)
    amax = reduceAmaxOverRanks(builder, amax, overRanks);
  auto current = ComputeScaleOp::create(builder, loc, amax, recipe.scale,
                                        format, recipe.margin);
  DelayedScaling::Scale by{current.getScale(), current.getQuantizer()};
  if (chooseScale)
    by = chooseScale(current);
  Value quantized =
      QuantizeOp::create(builder, loc, scaled, value, by.scale, by.quantizer,
                         seed, rounding, Overflow::Saturate, tensor);
  auto unpack = UnpackOp::create(builder, loc, scaled.getPayloadType(),
                                 scaled.getScaleTensorType(), quantized);
  SmallVector<Value> parts{unpack.getPayload(), unpack.getScale()};
  llvm::append_range(parts, expansion);
  return parts;
}

Value StoredForm::load(OpBuilder &builder, Location loc,
                       ArrayRef<Value> parts) const {
  auto toReal = [&](Value value) -> Value {
    if (value.getType() == real)
      return value;
    return stablehlo::ConvertOp::create(builder, loc, real, value);
  };
  if (isCast())
    return toReal(parts.front());
  Value packed = builder.createOrFold<PackOp>(loc, scaled, parts[0], parts[1]);
  if (!recipe.expand)
    return DequantizeOp::create(builder, loc, real, packed);
  auto f32 = RankedTensorType::get(real.getShape(), builder.getF32Type());
  Value wide = DequantizeOp::create(builder, loc, f32, packed);
  return toReal(
      RestoreRangeOp::create(builder, loc, f32, wide, parts[2], parts[3],
                             builder.getDenseI64ArrayAttr(scaled.getTile())));
}
