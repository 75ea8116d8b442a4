//===- Quantizer.cpp - Dots on quantized operands -------------------------===//

#include "Quantizer.h"
#include "../EffectiveRecipe.h"
#include "../OperandRows.h"
#include "../SmallTensors.h"

#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Types of the recipe's formats and tiles
//===----------------------------------------------------------------------===//

FloatType fp8::getFormatType(Format format, MLIRContext *context) {
  switch (format) {
  case Format::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case Format::F8E5M2:
    return Float8E5M2Type::get(context);
  case Format::F8E4M3:
    return Float8E4M3Type::get(context);
  case Format::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case Format::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  }
  return {};
}

SmallVector<int64_t> fp8::getTile(Tiling tile, ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> batching,
                                  ArrayRef<int64_t> contracting) {
  constexpr int64_t kWhole = ScaledType::kWhole;
  int64_t rank = shape.size();
  if (tile == Tiling::Tensor)
    return SmallVector<int64_t>(rank, kWhole);
  SmallVector<int64_t> result(rank, 1);
  int64_t lastFree = -1;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (llvm::is_contained(contracting, dim))
      result[dim] = tile == Tiling::Row  ? kWhole
                    : tile == Tiling::MX ? 32
                    : shape[dim] <= 128  ? kWhole
                                         : 128;
    else if (!llvm::is_contained(batching, dim))
      lastFree = dim;
  }
  if (tile == Tiling::Block128 && lastFree >= 0)
    result[lastFree] = shape[lastFree] <= 128 ? kWhole : 128;
  return result;
}

//===----------------------------------------------------------------------===//
// Arranging operands
//===----------------------------------------------------------------------===//

/// Returns the values that `value` is a layout of, from the root on, and last
/// the value itself.
static SmallVector<Value> getLayoutChain(Value value) {
  SmallVector<Value> chain{value};
  while (Value source = getLayoutSource(chain.back()))
    chain.push_back(source);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

/// Returns the last value of a chain of layouts that is not made of windows, in
/// which elements occur several times.
static Value getBeforeWindows(ArrayRef<Value> chain) {
  for (auto [i, value] : llvm::enumerate(chain))
    if (value.getDefiningOp<WindowsOp>() && i > 0)
      return chain[i - 1];
  return chain.back();
}

/// Walks through barriers and transposes that the dot can express by its
/// dimension numbers, at most to `end`.
static void absorbTransposes(Value &value, SmallVectorImpl<int64_t> &batching,
                             SmallVectorImpl<int64_t> &contracting,
                             Value end = {}) {
  while (value != end) {
    Operation *layout = value.getDefiningOp();
    if (auto transpose = dyn_cast_or_null<stablehlo::TransposeOp>(layout)) {
      ArrayRef<int64_t> permutation = transpose.getPermutation();
      // The free dimensions keep their order in the result, so it must not
      // change.
      int64_t last = -1;
      bool ordered = true;
      for (auto [dim, source] : llvm::enumerate(permutation)) {
        if (llvm::is_contained(batching, dim) ||
            llvm::is_contained(contracting, dim))
          continue;
        ordered &= source > last;
        last = source;
      }
      if (!ordered)
        break;
      for (int64_t &dim : batching)
        dim = permutation[dim];
      for (int64_t &dim : contracting)
        dim = permutation[dim];
    } else if (!isa_and_nonnull<stablehlo::OptimizationBarrierOp>(layout)) {
      break;
    }
    value = getLayoutSource(value);
  }
}

static bool isConsecutive(ArrayRef<int64_t> dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1)
      return false;
  return true;
}

/// Returns groups of dimensions, each of which becomes one dimension. They keep
/// the operand's order if the dimensions are adjacent there; else the order is
/// batching, free, contracting.
static SmallVector<SmallVector<int64_t>>
groupDims(ArrayRef<int64_t> batching, ArrayRef<int64_t> free,
          ArrayRef<int64_t> contracting, bool mergeFree,
          bool mergeContracting) {
  SmallVector<SmallVector<int64_t>> groups;
  auto addGroup = [&](ArrayRef<int64_t> dims, bool merge) {
    if (merge)
      groups.emplace_back(dims);
    else
      for (int64_t dim : dims)
        groups.push_back({dim});
  };
  addGroup(batching, false);
  addGroup(free, mergeFree);
  addGroup(contracting, mergeContracting);
  if (llvm::all_of(groups, [](auto &dims) { return isConsecutive(dims); }))
    llvm::sort(groups, [](auto &a, auto &b) { return a.front() < b.front(); });
  return groups;
}

/// Returns a value with its dimensions permuted and then merged to `shape`.
Value Quantizer::permuteAndReshape(Value value, ArrayRef<int64_t> permutation,
                                   ArrayRef<int64_t> shape) {
  Attribute key =
      builder.getArrayAttr({builder.getDenseI64ArrayAttr(permutation),
                            builder.getDenseI64ArrayAttr(shape)});
  Value &result = arranged[{value, key}];
  if (result)
    return result;
  builder.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  RankedTensorType type = tensorOf(value);
  result = value;
  if (!llvm::is_sorted(permutation)) {
    SmallVector<int64_t> permuted;
    for (int64_t dim : permutation)
      permuted.push_back(type.getDimSize(dim));
    result = stablehlo::TransposeOp::create(
        builder, loc, RankedTensorType::get(permuted, type.getElementType()),
        result, builder.getDenseI64ArrayAttr(permutation));
  }
  return result = stablehlo::ReshapeOp::create(
             builder, loc, RankedTensorType::get(shape, type.getElementType()),
             result);
}

/// Merges the contracting dimensions of an operand into one, and also its free
/// dimensions if a tile spans several, because blocks are blocks of a matrix.
void Quantizer::arrange(Operand &operand, bool mergeFree) {
  auto type = cast<RankedTensorType>(operand.value.getType());
  SmallVector<int64_t> free = stablehlo::getFreeDims(
      type.getRank(), operand.batching, operand.contracting);
  bool mergeContracting = operand.contracting.size() > 1;
  mergeFree &= free.size() > 1;
  if (!mergeContracting && !mergeFree)
    return;

  SmallVector<SmallVector<int64_t>> groups = groupDims(
      operand.batching, free, operand.contracting, mergeFree, mergeContracting);
  SmallVector<int64_t> permutation, shape, batching, contracting;
  for (auto [i, dims] : llvm::enumerate(groups)) {
    int64_t size = 1;
    for (int64_t dim : dims) {
      permutation.push_back(dim);
      size *= type.getDimSize(dim);
    }
    shape.push_back(size);
    if (dims.front() == operand.contracting.front())
      contracting.push_back(i);
  }
  // Batching dimensions keep the order that pairs them with the other
  // operand's.
  for (int64_t dim : operand.batching)
    for (auto [i, dims] : llvm::enumerate(groups))
      if (dims.front() == dim)
        batching.push_back(i);

  operand.value = permuteAndReshape(operand.value, permutation, shape);
  operand.batching = batching;
  operand.contracting = contracting;
}

/// Merges dimensions where operands have blocks: a block along the contraction
/// lies in one dimension.
void Quantizer::mergeDims(Dot &dot) {
  auto hasBlocks = [](const OperandPlan &plan) {
    return plan.recipe.tile != Tiling::Tensor &&
           plan.recipe.tile != Tiling::Row;
  };
  auto isBlock = [](const OperandPlan &plan) {
    return plan.recipe.tile == Tiling::Block128;
  };
  if (!hasBlocks(dot.plan.lhs) && !hasBlocks(dot.plan.rhs))
    return;
  arrange(dot.lhs, isBlock(dot.plan.lhs));
  arrange(dot.rhs, isBlock(dot.plan.rhs));
}

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

void Quantizer::addOperand(Operand &operand, const OperandPlan &plan,
                           Operation *dot) {
  const OperandRecipe &recipe = plan.recipe;
  bool perTensor = recipe.tile == Tiling::Tensor;
  auto type = cast<RankedTensorType>(operand.value.getType());
  SmallVector<int64_t> tile = getTile(recipe.tile, type.getShape(),
                                      operand.batching, operand.contracting);
  // With one scale for the whole tensor other layouts share the payload.
  SmallVector<Value> chain = perTensor ? getLayoutChain(operand.value)
                                       : SmallVector<Value>{operand.value};
  auto it = llvm::find_if(groups, [&](const Group &group) {
    return group.root == chain.front() && group.recipe == recipe &&
           (perTensor || group.tile == tile);
  });
  operand.group = it - groups.begin();
  if (it == groups.end()) {
    Group &group = groups.emplace_back();
    group.recipe = recipe;
    group.root = chain.front();
    group.point = operand.value;
    group.tile = tile;
    if (perTensor)
      group.moveTo(getBeforeWindows(chain));
    group.isWeight = plan.isWeight;
    group.overRanks = plan.overRanks;
    group.copy = plan.copy;
    group.name = plan.name;
    group.dots.push_back(dot);
    return;
  }
  it->dots.push_back(dot);
  // The name must not depend on the order of the dots, which the backward pass
  // changes.
  it->name = std::min(it->name, plan.name);
  // A payload that the forward pass also reads is made there.
  if (plan.copy == SecondPayload::Saved)
    it->copy = SecondPayload::Saved;
  if (!perTensor)
    return;
  // Quantize the last value that both chains go through. Quantizing the root
  // instead would rearrange payloads although all uses share a layout op.
  SmallVector<Value> common = getLayoutChain(it->point);
  size_t length = 0;
  while (length < common.size() && length < chain.size() &&
         common[length] == chain[length])
    ++length;
  it->moveTo(common[length - 1]);
}

void Quantizer::add(const DotPlan &plan) {
  auto operandOf = [&](unsigned number) -> Operand {
    stablehlo::OperandDims dims =
        stablehlo::getOperandDims(stablehlo::DotGeneralOp(plan.dot), number);
    return {plan.dot->getOperand(number), llvm::to_vector(dims.batching),
            llvm::to_vector(dims.contracting)};
  };
  Dot dot{plan, operandOf(0), operandOf(1)};
  // A tile other than the whole tensor belongs to one layout.
  for (auto [operand, tile] : {std::pair(&dot.lhs, plan.lhs.recipe.tile),
                               std::pair(&dot.rhs, plan.rhs.recipe.tile)})
    if (tile != Tiling::Tensor)
      absorbTransposes(operand->value, operand->batching, operand->contracting);
  mergeDims(dot);
  addOperand(dot.lhs, plan.lhs, plan.dot);
  addOperand(dot.rhs, plan.rhs, plan.dot);
  Value weight = plan.lhs.isWeight   ? dot.lhs.value
                 : plan.rhs.isWeight ? dot.rhs.value
                                     : Value();
  LayerLoops::Evidence layer =
      LayerLoops::getEvidence(weight, plan.dot->getResult(0));
  layerLoops.add(layer);
  for (unsigned group : {dot.lhs.group, dot.rhs.group})
    groups[group].layer.add(layer);
  dots.push_back(std::move(dot));
}

//===----------------------------------------------------------------------===//
// Quantizing
//===----------------------------------------------------------------------===//

void fp8::setInsertionPointToQuantize(OpBuilder &builder, Value value) {
  builder.setInsertionPointAfterValue(value);
  auto arg = dyn_cast<BlockArgument>(value);
  if (!arg)
    return;
  Operation *first = nullptr;
  for (Operation *user : arg.getUsers()) {
    Operation *ancestor = arg.getOwner()->findAncestorOpInBlock(*user);
    if (ancestor && (!first || ancestor->isBeforeInBlock(first)))
      first = ancestor;
  }
  if (first)
    builder.setInsertionPoint(first);
}

/// Returns the first of the dots if they are all in one block; else null.
static Operation *getFirst(ArrayRef<Operation *> dots) {
  Operation *first = dots.front();
  for (Operation *dot : dots) {
    if (dot->getBlock() != first->getBlock())
      return nullptr;
    if (dot->isBeforeInBlock(first))
      first = dot;
  }
  return first;
}

/// Returns the amax for a quantization at the insertion point, which may move.
/// If `early`, this is the first point where the value can be quantized, and
/// one amax serves all later quantizations.
Value Quantizer::getAmax(Value value, ScaledType type, bool early,
                         Location loc) {
  Attribute key = builder.getDenseI64ArrayAttr(type.getTile());
  if (!early) {
    Value known = amaxes.lookup({value, key});
    return known ? known : AmaxOp::create(builder, loc, value, type);
  }
  Value &amax = amaxes[{value, key}];
  if (!amax)
    amax = AmaxOp::create(builder, loc, value, type);
  builder.setInsertionPointAfterValue(amax);
  return amax;
}

/// Returns the maximum of the amax over all ranks, computed once for all
/// readers.
Value Quantizer::getAmaxOfRanks(Value amax, StringRef name) {
  Value &largest = amaxesOfRanks[amax];
  if (!largest) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(amax);
    largest = reduceAmaxOverRanks(builder, amax, name);
  }
  return largest;
}

/// Whether `slice` reads one index of the first dimension and all other
/// dimensions whole.
static bool isLayerSlice(stablehlo::DynamicSliceOp slice) {
  ArrayRef<int64_t> stack =
      cast<RankedTensorType>(slice->getOperand(0).getType()).getShape();
  ArrayRef<int64_t> sizes = slice.getSliceSizes();
  return sizes.size() > 1 && sizes.front() == 1 &&
         sizes.drop_front() == stack.drop_front();
}

/// Returns the update that writes the stack that `slice` reads, in an earlier
/// loop; else null.
static stablehlo::DynamicUpdateSliceOp
getUpdate(stablehlo::DynamicSliceOp slice) {
  auto stack = dyn_cast<OpResult>(slice.getOperand());
  auto loop = stack ? dyn_cast<stablehlo::WhileOp>(stack.getOwner()) : nullptr;
  if (!loop || !isLayerSlice(slice))
    return nullptr;
  Operation *yield = loop.getBody().front().getTerminator();
  return yield->getOperand(stack.getResultNumber())
      .getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
}

/// Returns the amax of a tensor that an earlier loop has saved for this loop,
/// computed in the earlier loop: this loop then needs only the payload. None
/// for a stack of layers, each with its own amax, that a nested loop reads.
std::optional<DelayedScaling::Amax>
Quantizer::getSavedAmax(Value value, ArrayRef<LayerSlot> slots, bool early) {
  Value root = getLayoutChain(value).front();
  auto slice = root.getDefiningOp<stablehlo::DynamicSliceOp>();
  auto update = slice ? getUpdate(slice) : nullptr;
  if (!update || !early || slots.size() > 1)
    return std::nullopt;
  SmallVector<LayerSlot> written;
  if (!slots.empty()) {
    auto read = matchSlot(slice.getStartIndices()[0], update.getType());
    auto slot = matchSlot(update.getStartIndices()[0], update.getType());
    if (!read || !slot || !(*read == slots.front()))
      return std::nullopt;
    written.push_back(*slot);
  }
  // The tensor as the earlier loop quantizes it, if it does.
  Value saved = update.getUpdate();
  auto isSpread = [](Value value) {
    return value.getDefiningOp<stablehlo::BroadcastInDimOp>() &&
           cast<RankedTensorType>(value.getType()).getNumElements() ==
               cast<RankedTensorType>(
                   value.getDefiningOp()->getOperand(0).getType())
                   .getNumElements();
  };
  while (getLayoutSource(saved) || isSpread(saved))
    saved = isSpread(saved) ? saved.getDefiningOp()->getOperand(0)
                            : getLayoutSource(saved);
  for (const Group &group : groups)
    if (group.root == saved && group.recipe.tile == Tiling::Tensor &&
        group.copy == SecondPayload::Saved)
      saved = group.point;
  OpBuilder::InsertionGuard guard(builder);
  setInsertionPointToQuantize(builder, saved);
  auto type = cast<RankedTensorType>(saved.getType());
  auto scaled = ScaledType::getPerTensor(
      type.clone(Float8E4M3FNType::get(builder.getContext())));
  return DelayedScaling::Amax{
      getAmax(saved, scaled, /*early=*/true, saved.getLoc()), written};
}

/// Quantizes, at the insertion point, a tensor that is made in the block
/// `home`.
Value Quantizer::quantize(Value value, const Group &group,
                          ArrayRef<int64_t> tile, Block *home, bool early,
                          Location loc) {
  const OperandRecipe &recipe = group.recipe;
  auto type = cast<RankedTensorType>(value.getType());
  MLIRContext *context = builder.getContext();
  FloatType format = getFormatType(recipe.format, context);
  Type scaleType = Float32Type::get(context);
  if (recipe.tile == Tiling::MX)
    scaleType = Float8E8M0FNUType::get(context);
  auto scaled = ScaledType::get(RankedTensorType::get(type.getShape(), format),
                                tile, scaleType);
  auto rule = ScaleRuleAttr::get(context, recipe.scale);
  if (group.isWeight && recipe.scaling == Scaling::Delayed &&
      weightCopies == WeightCopyTime::State) {
    if (Value payload = copies.get(
            group.name, recipe, scaled, value, recipe.overflow,
            {scaled.getScaleTensorType(), rule, TypeAttr::get(format)}))
      return payload;
    mlir::emitWarning(loc)
        << "weight_copies: state: '" << group.name
        << "' is quantized where it is read, since it depends on more than the "
           "step's state";
  }
  Value amax = getAmax(value, scaled, early, loc);
  // (Delayed scaling reduces all its histories at once.)
  if (group.overRanks && recipe.scaling == Scaling::Current) {
    amax = getAmaxOfRanks(amax, group.name);
    if (early)
      builder.setInsertionPointAfterValue(amax);
  }
  auto scale = ComputeScaleOp::create(
      builder, loc, scaled.getScaleTensorType(), amax.getType(), amax, rule,
      builder.getI64IntegerAttr(recipe.margin), TypeAttr::get(format));
  DelayedScaling::Scale by{scale.getScale(), scale.getQuantizer()};
  // The slots depend on where the value is made: a value from outside a loop
  // over layers is one tensor, although a dot of every layer reads it.
  SmallVector<LayerSlot> slots = layerLoops.getSlots(home, group.layer);
  if (recipe.scaling == Scaling::Delayed)
    by = delayed.get(builder, group.name, slots, recipe, scale,
                     scaled.isPerTensor() ? getSavedAmax(value, slots, early)
                                          : std::nullopt);
  ++numQuantized;
  if (recipe.rounding == Rounding::NearestEven)
    return QuantizeOp::create(builder, loc, scaled, value, by.scale,
                              by.quantizer, Rounding::NearestEven,
                              recipe.overflow);
  // Equal tensors get equal random numbers, however they are scaled.
  auto tensor = tensors.try_emplace(value, tensors.size()).first->second;
  return QuantizeOp::create(builder, loc, scaled, value, by.scale, by.quantizer,
                            *seeds.get(builder.getInsertionBlock()),
                            Rounding::Stochastic, recipe.overflow,
                            builder.getI64IntegerAttr(tensor));
}

/// Returns the stack that a slice of weights is cut from. Skips barriers,
/// because weights do not change before the layer is recomputed.
static Value getStackOfWeights(stablehlo::DynamicSliceOp slice) {
  Value stack = slice->getOperand(0);
  while (stack.getDefiningOp<stablehlo::OptimizationBarrierOp>())
    stack = getLayoutSource(stack);
  return stack;
}

/// Matches `value` with a slice of weights that are stacked outside of a loop,
/// up to reshapes and conversions: the weights of one layer, in a loop over
/// layers. `conversions` are the types it is converted to, the last one first.
static stablehlo::DynamicSliceOp
getWeightSlice(Value value, SmallVectorImpl<Type> &conversions) {
  while (true) {
    if (auto reshape = value.getDefiningOp<stablehlo::ReshapeOp>()) {
      value = reshape->getOperand(0);
    } else if (auto convert = value.getDefiningOp<stablehlo::ConvertOp>()) {
      conversions.push_back(getElementTypeOrSelf(value.getType()));
      value = convert->getOperand(0);
    } else if (value.getDefiningOp<stablehlo::OptimizationBarrierOp>()) {
      value = getLayoutSource(value);
    } else {
      break;
    }
  }
  auto slice = value.getDefiningOp<stablehlo::DynamicSliceOp>();
  if (!slice || !isLayerSlice(slice) ||
      getStackOfWeights(slice).getParentBlock() == slice->getBlock())
    return nullptr;
  return slice;
}

/// Returns the quantized stack of all layers' weights, converted before to the
/// types in `conversions`, the last one first.
Value Quantizer::getQuantizedStack(Group &group, Value source,
                                   ArrayRef<Type> conversions) {
  RankedTensorType sourceType = tensorOf(source),
                   layerType = tensorOf(group.point);
  Location loc = source.getLoc();
  SmallVector<int64_t> shape{sourceType.getDimSize(0)}, tile{1};
  llvm::append_range(shape, layerType.getShape());
  llvm::append_range(tile, group.tile);
  auto type = RankedTensorType::get(shape, layerType.getElementType());

  auto known = llvm::find_if(stacks, [&](const Stack &stack) {
    return stack.source == source && stack.type == type &&
           stack.recipe == group.recipe &&
           cast<ScaledType>(stack.quantized.getType()).getTile() ==
               ArrayRef(tile);
  });
  if (known != stacks.end())
    return known->quantized;
  setInsertionPointToQuantize(builder, source);
  Value whole = source;
  if (sourceType.getShape() != ArrayRef(shape))
    whole = stablehlo::ReshapeOp::create(
        builder, loc, RankedTensorType::get(shape, sourceType.getElementType()),
        whole);
  for (Type element : llvm::reverse(conversions))
    whole = stablehlo::ConvertOp::create(
        builder, loc, RankedTensorType::get(shape, element), whole);
  Value quantized = quantize(whole, group, tile, source.getParentBlock(),
                             /*early=*/true, loc);
  stacks.push_back({source, type, group.recipe, quantized});
  return quantized;
}

/// Returns what `slice` cuts off its operand, from a tensor with the same
/// leading dimension.
static Value cutLike(OpBuilder &builder, stablehlo::DynamicSliceOp slice,
                     Value zero, Value from, RankedTensorType result) {
  Location loc = slice.getLoc();
  RankedTensorType type = tensorOf(from);
  SmallVector<int64_t> sizes(type.getShape());
  sizes.front() = 1;
  SmallVector<Value> starts(type.getRank(), zero);
  starts.front() = slice.getStartIndices().front();
  Value part = stablehlo::DynamicSliceOp::create(
      builder, loc, RankedTensorType::get(sizes, type.getElementType()), from,
      starts, builder.getDenseI64ArrayAttr(sizes));
  return stablehlo::ReshapeOp::create(builder, loc, result, part);
}

/// Quantizes all layers of a stack outside the loop, each as if it were alone,
/// and returns the layer of this iteration. The forward and the backward loop,
/// and all micro-batches around them, then read one payload.
Value Quantizer::quantizeStack(Group &group, stablehlo::DynamicSliceOp slice,
                               ArrayRef<Type> conversions) {
  Value quantized =
      getQuantizedStack(group, getStackOfWeights(slice), conversions);
  builder.setInsertionPointAfter(slice);
  Location loc = slice.getLoc();
  auto scaled = cast<ScaledType>(quantized.getType());
  auto unpacked = UnpackOp::create(builder, loc, scaled.getPayloadType(),
                                   scaled.getScaleTensorType(), quantized);
  Value zero =
      makeZeros(builder, loc, slice.getStartIndices().front().getType());
  auto result = ScaledType::get(
      RankedTensorType::get(shapeOf(group.point), scaled.getElementType()),
      group.tile, scaled.getScaleType());
  Value payload = cutLike(builder, slice, zero, unpacked.getPayload(),
                          result.getPayloadType());
  Value scale = cutLike(builder, slice, zero, unpacked.getScale(),
                        result.getScaleTensorType());
  return PackOp::create(builder, loc, result, payload, scale);
}

/// Quantizes a group right before the first dot that reads it, so that the
/// payload is not kept until then. Requantizes the forward pass's payload if
/// the group says so.
Value Quantizer::quantizeAtReader(Group &group, Operation *first) {
  Value value = group.point;
  builder.setInsertionPoint(first);
  if (group.copy == SecondPayload::Requantized) {
    auto forward = llvm::find_if(groups, [&](const Group &other) {
      return other.point == group.point && other.copy == SecondPayload::Saved &&
             other.quantized;
    });
    if (forward != groups.end())
      value = DequantizeOp::create(builder, value.getLoc(), value.getType(),
                                   forward->quantized);
  }
  Value quantized =
      quantize(value, group, group.tile, group.root.getParentBlock(),
               /*early=*/false, group.point.getLoc());
  quantized.getDefiningOp()->setAttr(FP8Dialect::kRecomputedAttrName,
                                     builder.getUnitAttr());
  return quantized;
}

Value Quantizer::getQuantized(Group &group) {
  if (group.quantized)
    return group.quantized;
  SmallVector<Type> conversions;
  stablehlo::DynamicSliceOp slice =
      group.isWeight ? getWeightSlice(group.point, conversions) : nullptr;
  Operation *first =
      group.copy == SecondPayload::Saved ? nullptr : getFirst(group.dots);
  if (slice) {
    group.quantized = quantizeStack(group, slice, conversions);
  } else if (first) {
    group.quantized = quantizeAtReader(group, first);
  } else {
    setInsertionPointToQuantize(builder, group.point);
    group.quantized =
        quantize(group.point, group, group.tile, group.root.getParentBlock(),
                 /*early=*/true, group.point.getLoc());
  }
  return group.quantized;
}

/// Sets the insertion point after `layout`, or after `source` if that is made
/// later: a payload that is made for its first reader is behind the layout ops
/// of the tensor.
static void setInsertionPointAfterLater(OpBuilder &builder, Operation *layout,
                                        Value source) {
  builder.setInsertionPointAfter(layout);
  Operation *made = source.getDefiningOp();
  Operation *beside =
      made ? layout->getBlock()->findAncestorOpInBlock(*made) : nullptr;
  if (beside && layout->isBeforeInBlock(beside))
    builder.setInsertionPointAfter(made);
}

/// Returns the payload of the group in the layout of `value`.
Value Quantizer::getView(Group &group, Value value) {
  if (value == group.point)
    return getQuantized(group);
  auto [it, inserted] = group.views.try_emplace(value);
  if (!inserted)
    return it->second;
  Value source = getView(group, getLayoutSource(value));
  Operation *layout = value.getDefiningOp();
  Value result = source;
  // Barriers order the high-precision values; the payload needs none.
  if (!isa<stablehlo::OptimizationBarrierOp>(layout)) {
    setInsertionPointAfterLater(builder, layout, source);
    auto scaled = cast<ScaledType>(source.getType());
    auto unpacked =
        UnpackOp::create(builder, layout->getLoc(), scaled.getPayloadType(),
                         scaled.getScaleTensorType(), source);
    IRMapping mapping;
    mapping.map(layout->getOperand(0), unpacked.getPayload());
    Operation *view = builder.clone(*layout, mapping);
    auto payload = RankedTensorType::get(
        cast<RankedTensorType>(value.getType()).getShape(),
        scaled.getElementType());
    view->getResult(0).setType(payload);
    result = PackOp::create(builder, layout->getLoc(),
                            ScaledType::getPerTensor(payload),
                            view->getResult(0), unpacked.getScale());
  }
  // The recursion may have invalidated `it`.
  group.views[value] = result;
  return result;
}

/// Returns the quantized operand. Transposes that the dot can express by its
/// dimension numbers are not repeated on the payload.
Value Quantizer::getScaled(Operand &operand) {
  Group &group = groups[operand.group];
  for (Value value = operand.value; Value source = getLayoutSource(value);
       value = source)
    layouts.insert(value.getDefiningOp());
  absorbTransposes(operand.value, operand.batching, operand.contracting,
                   group.point);
  return getView(group, operand.value);
}

Value Quantizer::rewriteDot(Dot &dot) {
  Location loc = dot.plan.dot.getLoc();
  builder.setInsertionPoint(dot.plan.dot);
  auto type = cast<RankedTensorType>(dot.plan.dot->getResult(0).getType());
  // Merged free dimensions are merged in the result as well.
  SmallVector<int64_t> shape;
  auto addDims = [&](const Operand &operand, bool batching) {
    auto scaled = cast<ScaledType>(operand.scaled.getType());
    SmallVector<int64_t> dims =
        batching ? operand.batching
                 : stablehlo::getFreeDims(scaled.getRank(), operand.batching,
                                          operand.contracting);
    for (int64_t dim : dims)
      shape.push_back(scaled.getShape()[dim]);
  };
  addDims(dot.lhs, true);
  addDims(dot.lhs, false);
  addDims(dot.rhs, false);
  auto merged = RankedTensorType::get(shape, type.getElementType());
  auto op = fp8::DotGeneralOp::create(
      builder, loc, merged, dot.lhs.scaled, dot.rhs.scaled, dot.lhs.batching,
      dot.rhs.batching, dot.lhs.contracting, dot.rhs.contracting);
  const AccumulatorRecipe &accumulator = dot.plan.accumulator;
  int64_t promote = accumulator.promote;
  if (accumulator.bits != 32) {
    op.setAccumulatorBits(accumulator.bits);
    // A narrow sum ends where a scale changes.
    if (promote == 0)
      promote = commonRun(dot.plan.lhs.recipe.tile, dot.plan.rhs.recipe.tile);
  }
  if (promote != 0)
    op.setPromoteEvery(promote);
  VerdictAttr verdict = getVerdict(dot.plan.dot);
  op->setAttr(FP8Dialect::kVerdictAttrName, verdict);
  if (nameTensors)
    op->setAttr(FP8Dialect::kTensorsAttrName,
                DotTensorsAttr::get(
                    builder.getContext(), verdict.getRole(), verdict.getLhs(),
                    verdict.getRhs(),
                    builder.getStringAttr(getTensorName(dot.plan.lhs.name)),
                    builder.getStringAttr(getTensorName(dot.plan.rhs.name))));
  Value result = op;
  if (merged != type)
    result = stablehlo::ReshapeOp::create(builder, loc, type, result);
  return result;
}

LogicalResult Quantizer::rewrite() {
  for (const Group &group : groups)
    if (group.recipe.rounding == Rounding::Stochastic)
      for (Operation *dot : group.dots)
        if (failed(seeds.get(dot->getBlock())))
          return failure();
  // Quantize all operands first: a dot's result may be a tensor that another
  // dot quantizes, so it is replaced only afterwards.
  for (Dot &dot : dots) {
    dot.lhs.scaled = getScaled(dot.lhs);
    dot.rhs.scaled = getScaled(dot.rhs);
  }
  for (Dot &dot : dots) {
    dot.plan.dot->getResult(0).replaceAllUsesWith(rewriteDot(dot));
    dot.plan.dot->erase();
  }
  TakenUpdate when;
  if (!delayed.empty()) {
    delayed.getSignature().apply();
    when = findTakenUpdate(function);
  }
  delayed.addResults(when);
  copies.makeNextPayloads(when);
  eraseUnread();
  return success();
}

/// Erases layout ops that only the dots read, because the payload has its own.
void Quantizer::eraseUnread() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::to_vector(layouts))
      if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, WindowsOp>(op) &&
          op->use_empty()) {
        layouts.remove(op);
        op->erase();
        changed = true;
      }
  }
}
