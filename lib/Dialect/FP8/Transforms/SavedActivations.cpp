//===- SavedActivations.cpp - Which activations are saved -----------------===//
//
// The order of work:
// 1. Loops stack less (ThinStacks). LinearLayers finds the uses where the
//    backward pass reads values of the forward pass. Values that only quantized
//    dots read are saved as payloads.
// 2. A saved value that follows elementwise from others (the sigmoid of a gate
//    that is saved too, a norm's output) is recomputed where it is read.
// 3. The others are stored as the recipe says and restored where they are read.
//    Operands of comparisons for equality are not stored: the result of the
//    comparison is.
// 4. Ops whose results only the backward pass reads move there. Autodiff leaves
//    some of them in the forward pass (twice the input of a square), where
//    their results would be saved instead of their operands.
//
//===----------------------------------------------------------------------===//

#include "SavedActivations.h"

#include "ComputeType.h"
#include "EffectiveRecipe.h"
#include "Quantizer.h"
#include "SmallTensors.h"
#include "ThinStacks.h"

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/Barriers.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8SAVEACTIVATIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The number of elements that share a scale (COAT).
constexpr int64_t kGroup = 16;

int64_t numElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 0;
}

bool isLayout(Operation *op) {
  return isa<stablehlo::ReshapeOp, stablehlo::TransposeOp,
             stablehlo::OptimizationBarrierOp>(op);
}

/// Returns the result of a layout op that corresponds to this operand.
Value getLayoutResult(OpOperand &use) {
  Operation *user = use.getOwner();
  return user->getResult(user->getNumResults() == 1 ? 0
                                                    : use.getOperandNumber());
}

/// Whether an op rounds its operand to fewer bits: its result is then the value
/// to save.
bool isNarrowing(Operation *op) {
  return isa<stablehlo::ConvertOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType())
                 .getIntOrFloatBitWidth() <
             getElementTypeOrSelf(op->getOperand(0).getType())
                 .getIntOrFloatBitWidth();
}

/// Whether an op compares two floats for equality, such as a maximum with an
/// operand of it. If one of them were rounded, or recomputed from a rounded
/// value, they would never be equal.
bool comparesEqual(Operation *op) {
  auto compare = dyn_cast<stablehlo::CompareOp>(op);
  return compare &&
         isa<FloatType>(getElementTypeOrSelf(compare.getLhs().getType())) &&
         llvm::is_contained({stablehlo::ComparisonDirection::EQ,
                             stablehlo::ComparisonDirection::NE},
                            compare.getComparisonDirection());
}

/// Whether `use`, directly or in another layout, is compared for equality.
bool isComparedEqual(OpOperand &use) {
  Operation *user = use.getOwner();
  if (comparesEqual(user))
    return true;
  return (isLayout(user) || isa<stablehlo::BroadcastInDimOp>(user)) &&
         llvm::any_of(getLayoutResult(use).getUses(), isComparedEqual);
}

/// Returns the stack that a loop writes `use` to, slot by slot, as the loop's
/// result; null if there is none.
Value getStack(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(user))
    return user->hasOneUse() ? getStack(*user->use_begin()) : Value();
  auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(user);
  if (!update || use.getOperandNumber() != 1 || !update->hasOneUse())
    return nullptr;
  OpOperand &next = *update->use_begin();
  auto loop = dyn_cast<stablehlo::WhileOp>(next.getOwner()->getParentOp());
  if (!loop || !isa<stablehlo::ReturnOp>(next.getOwner()))
    return nullptr;
  return loop->getResult(next.getOperandNumber());
}

/// Whether only quantized dots read a value, directly, in another layout or
/// from a stack.
bool feedsQuantizedDots(Value value,
                        llvm::function_ref<bool(Operation *)> isQuantized);

bool feedsQuantizedDots(OpOperand &use,
                        llvm::function_ref<bool(Operation *)> isQuantized) {
  Operation *user = use.getOwner();
  if (isQuantized(user))
    return true;
  if (Value stack = getStack(use))
    return feedsQuantizedDots(stack, isQuantized);
  if (isa<stablehlo::DynamicSliceOp>(user) && use.getOperandNumber() == 0)
    return feedsQuantizedDots(user->getResult(0), isQuantized);
  return isLayout(user) &&
         feedsQuantizedDots(getLayoutResult(use), isQuantized);
}

bool feedsQuantizedDots(Value value,
                        llvm::function_ref<bool(Operation *)> isQuantized) {
  return !value.use_empty() &&
         llvm::all_of(value.getUses(), [&](OpOperand &use) {
           return feedsQuantizedDots(use, isQuantized);
         });
}

/// Returns the number of elements of the largest operand of a dot that `use`
/// is, directly, in another layout or type, or by way of a stack; 0 if there is
/// none.
int64_t getLargestOperand(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<stablehlo::DotGeneralOp>(user))
    return numElements(use.get());
  Value next = getStack(use);
  bool isSlice =
      isa<stablehlo::DynamicSliceOp>(user) && use.getOperandNumber() == 0;
  if (!next && (isSlice || isLayout(user) || isa<stablehlo::ConvertOp>(user)))
    next = getLayoutResult(use);
  int64_t largest = 0;
  if (next)
    for (OpOperand &nextUse : next.getUses())
      largest = std::max(largest, getLargestOperand(nextUse));
  return largest;
}

/// Collects the uses where a loop writes values computed from `use` to stacks
/// for the backward pass. Returns false if there are none.
bool collectStackWrites(OpOperand &use, const LinearLayers &layers,
                        llvm::SetVector<OpOperand *> &writes) {
  if (getStack(use)) {
    writes.insert(&use);
    return true;
  }
  Operation *user = use.getOwner();
  if (!user->getParentOfType<stablehlo::WhileOp>() ||
      user->getNumResults() != 1 || layers.isForward(user) ||
      !(stablehlo::worksByElement(user) ||
        isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
            stablehlo::TransposeOp>(user)))
    return false;
  bool found = false;
  for (OpOperand &next : user->getUses())
    found |= collectStackWrites(next, layers, writes);
  return found;
}

/// Whether `isFound` is true for a value that `value` is computed from element
/// by element, or for itself. Looks through ops of which `passes` is true.
bool anySource(Value value, llvm::function_ref<bool(Operation *)> passes,
               llvm::function_ref<bool(Value)> isFound) {
  llvm::SetVector<Value> sources;
  sources.insert(stablehlo::skipBarriers(value));
  for (size_t i = 0; i < sources.size(); ++i) {
    if (isFound(sources[i]))
      return true;
    Operation *op = sources[i].getDefiningOp();
    if (op && (stablehlo::worksByElement(op) || isLayout(op) || passes(op)))
      for (Value operand : op->getOperands())
        sources.insert(stablehlo::skipBarriers(operand));
  }
  return false;
}

/// Whether `value` is the result of a dot, scaled, masked or in another layout.
bool comesFromDot(Value value) {
  return anySource(
      value, [](Operation *) { return false; },
      [&](Value source) {
        return source.getDefiningOp<stablehlo::DotGeneralOp>() &&
               numElements(source) == numElements(value);
      });
}

/// Whether an exponential reads `value`, or what is computed from it element by
/// element.
bool feedsExponential(Value value) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      if (isa<stablehlo::ExpOp>(user))
        return true;
      if (stablehlo::worksByElement(user) || isLayout(user))
        values.insert(getLayoutResult(use));
    }
  return false;
}

/// Whether `use` is a bias of scores, which the backward pass computes again:
/// the exponential makes the absolute error of a score the relative error of a
/// weight, and sums of rows belong to the exact scores.
bool isAddedToScores(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(user)) {
    Value other = user->getOperand(1 - use.getOperandNumber());
    return other != use.get() && comesFromDot(other) &&
           feedsExponential(user->getResult(0));
  }
  return (isLayout(user) || isa<stablehlo::BroadcastInDimOp>(user)) &&
         llvm::any_of(getLayoutResult(use).getUses(), isAddedToScores);
}

/// Whether a constant has a finite number that would be infinite in bf16.
bool exceedsBF16(DenseFPElementsAttr numbers) {
  return llvm::any_of(numbers.getValues<APFloat>(), [](APFloat number) {
    bool losesInfo, isFinite = number.isFinite();
    number.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
    return isFinite && !number.isFinite();
  });
}

/// Whether `value` follows from such a constant: masks add the lowest number of
/// f32.
bool mayExceedBF16(Value value) {
  return anySource(
      value, [](Operation *op) { return isa<stablehlo::BroadcastInDimOp>(op); },
      [](Value source) {
        DenseFPElementsAttr numbers;
        return matchPattern(source, m_Constant(&numbers)) &&
               exceedsBF16(numbers);
      });
}

/// A slice that a loop reads: where it begins along each dimension, and its
/// sizes.
struct Part {
  Operation *reader;
  SmallVector<Value> starts;
  SmallVector<int64_t> sizes;
};

class Saver {
public:
  Saver(func::FuncOp function, const LinearLayers &layers,
        const ComputeRecipe &compute)
      : function(function), layers(layers), compute(compute),
        builder(function.getContext()), rounder(function.getContext()) {}

  void run(llvm::function_ref<bool(Operation *)> isQuantized);

private:
  void findLargestOperand();
  void findNorms();
  void findGatedUnits();
  void addUnary(Value value, DenseSet<Value> &values);
  bool isDerivable(Value value);
  bool isAvailable(Value operand, Value result);
  bool isArgument(Value value) {
    return llvm::is_contained(function.getArguments(), value);
  }
  bool isExact(Value value);
  Value inRangeOfBF16(Value value);
  std::optional<SavedFormat> getForm(Value value) const;
  Value store(Value value, bool isStacked);
  Value restore(Value value, Operation *reader, bool isStacked);
  Value addBarrier(Value narrow);
  Value derive(Value value, Operation *reader, IRMapping &known);
  bool recomputes(Value value);
  bool hasParts(Value value);
  Value derivePart(Value value, const Part &part, IRMapping &known);
  Value partOf(Value value, const Part &part);
  Part partOfOperand(Operation *op, Value operand, const Part &part);
  void deriveInLoop(OpOperand &use, stablehlo::DynamicSliceOp slice);
  void sink();

  func::FuncOp function;
  const LinearLayers &layers;
  const ComputeRecipe &compute;
  OpBuilder builder;
  Rounder rounder;
  llvm::SetVector<Value> saved;
  /// Saved values that are stored as they are: biases of scores.
  DenseSet<Value> exact;
  /// The inputs of norms and of gated units, with the values related to them.
  DenseSet<Value> ofNorms, ofGatedUnits;
  /// The number of ops that compute a value from saved ones; 0 if that is not
  /// possible.
  DenseMap<Value, unsigned> derivable;
  DenseMap<Value, Value> payloads, barriers, clampedValues;
  /// The number of elements of the largest saved operand of a dot.
  int64_t largestOperand = 0;
};

} // namespace

/// Returns the operand of an elementwise op that is about as large as its
/// result, if there is exactly one.
static Value getOnlyLargeOperand(Operation *op) {
  Value only;
  for (Value operand : op->getOperands()) {
    Value source = operand;
    while (Operation *def = source.getDefiningOp()) {
      if (!isa<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
               stablehlo::ReshapeOp>(def))
        break;
      source = def->getOperand(0);
    }
    if (numElements(source) * kSmallPart <= numElements(op->getResult(0)) ||
        source.getDefiningOp<stablehlo::ConstantOp>())
      continue;
    if (only && only != operand)
      return nullptr;
    only = operand;
  }
  return only;
}

/// Adds a value and those related to it by elementwise ops whose other operands
/// are small: values it is computed from, and values computed from it.
void Saver::addUnary(Value value, DenseSet<Value> &values) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!values.insert(next).second)
      continue;
    Operation *def = next.getDefiningOp();
    if (def &&
        (stablehlo::worksByElement(def) || isa<stablehlo::ReshapeOp>(def)))
      if (Value operand = getOnlyLargeOperand(def))
        worklist.push_back(operand);
    for (Operation *user : next.getUsers())
      if ((stablehlo::worksByElement(user) ||
           isa<stablehlo::ReshapeOp>(user)) &&
          getOnlyLargeOperand(user) == next)
        worklist.push_back(user->getResult(0));
  }
}

/// Finds norms, which take the root of a sum over a function of their input.
/// Collects the input and the values that are computed from it row by row.
void Saver::findNorms() {
  function.walk([&](Operation *root) {
    if (!isa<stablehlo::RsqrtOp, stablehlo::SqrtOp, stablehlo::PowOp>(root) ||
        !layers.isForward(root))
      return;
    // Walk from the root back to the sum, while tensors are no larger than the
    // root.
    SmallVector<Value> worklist(root->getOperands().take_front(1));
    DenseSet<Value> seen;
    int64_t size = numElements(root->getResult(0));
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      Operation *def = value.getDefiningOp();
      if (!def || !seen.insert(value).second || numElements(value) > size)
        continue;
      if (auto reduce = dyn_cast<stablehlo::ReduceOp>(def)) {
        for (Value input :
             def->getOperands().take_front(def->getNumOperands() / 2))
          if (numElements(input) >= kSmallPart * size)
            addUnary(input, ofNorms);
        continue;
      }
      if (stablehlo::worksByElement(def) ||
          isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(def))
        llvm::append_range(worklist, def->getOperands());
    }
  });
}

void Saver::findGatedUnits() {
  for (const GatedUnit &unit : fp8::findGatedUnits(function, layers))
    if (unit.isProven()) {
      addUnary(unit.gate, ofGatedUnits);
      addUnary(unit.linear, ofGatedUnits);
    }
}

/// Whether `operand` of the op that computes `result` is available in the
/// backward pass.
bool Saver::isAvailable(Value operand, Value result) {
  Operation *def = operand.getDefiningOp();
  return saved.contains(operand) || isArgument(operand) ||
         numElements(operand) * kSmallPart <= numElements(result) ||
         isa_and_nonnull<stablehlo::ConstantOp, stablehlo::IotaOp>(def) ||
         isDerivable(operand);
}

/// Whether the backward pass reads a value, or computes it again, without
/// anything that is rounded.
bool Saver::isExact(Value value) {
  if (saved.contains(value) && !exact.contains(value))
    return false;
  return !isDerivable(value) ||
         llvm::all_of(value.getDefiningOp()->getOperands(),
                      [&](Value operand) { return isExact(operand); });
}

bool Saver::isDerivable(Value value) {
  auto [it, isNew] = derivable.try_emplace(value, 0);
  if (!isNew)
    return it->second > 0;
  Operation *def = value.getDefiningOp();
  if (!def || !isRecomputable(def))
    return false;
  unsigned ops = 1;
  for (Value operand : def->getOperands()) {
    if (!isAvailable(operand, value))
      return false;
    ops += derivable.lookup(operand);
  }
  if (ops > kMaxRecomputed)
    return false;
  derivable[value] = ops;
  return true;
}

/// Returns the f8 format that a value is saved in; none if it is not quantized.
std::optional<SavedFormat> Saver::getForm(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  // The mask of a rectifier, which is no float, also follows from the norm's
  // input.
  if (!isa<FloatType>(type.getElementType()))
    return std::nullopt;
  // Rows shorter than a group would have too many scales.
  if (type.getRank() > 0 && type.getShape().back() >= kGroup) {
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
Value Saver::addBarrier(Value narrow) {
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

/// Returns a value with the nearest numbers that bf16 has for those beyond its
/// range.
Value Saver::inRangeOfBF16(Value value) {
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

/// Returns what is saved of a value: the value, or a narrower form of it.
Value Saver::store(Value value, bool isStacked) {
  auto type = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  if (std::optional<SavedFormat> form = getForm(value)) {
    Value &payload = payloads[value];
    if (!payload) {
      setInsertionPointToQuantize(builder, value);
      Type format = *form == SavedFormat::F8E4M3FN
                        ? Type(builder.getType<Float8E4M3FNType>())
                        : Type(builder.getType<Float8E5M2Type>());
      SmallVector<int64_t> tile(type.getRank(), 1);
      tile.back() = kGroup;
      auto scaled =
          ScaledType::get(RankedTensorType::get(type.getShape(), format), tile,
                          builder.getF32Type());
      auto amax = AmaxOp::create(builder, loc, value, scaled);
      auto scale =
          ComputeScaleOp::create(builder, loc, amax, ScaleRule::Exact, format);
      payload = QuantizeOp::create(builder, loc, scaled, value,
                                   scale.getScale(), scale.getQuantizer());
    }
    return isStacked ? payload : addBarrier(payload);
  }
  // Sums of rows take little memory, and many values are computed from each.
  if (type.getNumElements() * kSmallPart <= largestOperand)
    return value;
  if (compute.saved != ComputeFormat::BF16 || !type.getElementType().isF32() ||
      exact.contains(value))
    return isStacked || isa<BlockArgument>(value) ? value : addBarrier(value);
  Value narrow =
      rounder.get(mayExceedBF16(value) ? inRangeOfBF16(value) : value);
  return isStacked || isa<BlockArgument>(narrow) ? narrow : addBarrier(narrow);
}

/// Makes the value that `reader` reads instead of a saved one.
Value Saver::restore(Value value, Operation *reader, bool isStacked) {
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

/// Whether `value` is computed again rather than read.
bool Saver::recomputes(Value value) {
  return isDerivable(value) && (!exact.contains(value) || isExact(value));
}

/// Recomputes `value` in front of `reader`.
Value Saver::derive(Value value, Operation *reader, IRMapping &known) {
  if (Value copy = known.lookupOrNull(value))
    return copy;
  Operation *def = value.getDefiningOp();
  Value result = value;
  if (recomputes(value)) {
    IRMapping operands;
    for (Value operand : def->getOperands())
      operands.map(operand, derive(operand, reader, known));
    builder.setInsertionPoint(reader);
    result = builder.clone(*def, operands)->getResult(0);
  } else if (saved.contains(value)) {
    result = restore(value, reader, /*isStacked=*/false);
  }
  known.map(value, result);
  return result;
}

/// Whether slices of `value` can be recomputed from slices of what is saved.
bool Saver::hasParts(Value value) {
  if (!recomputes(value))
    return !saved.contains(value) || !getForm(value);
  Operation *def = value.getDefiningOp();
  return !isa<stablehlo::ReshapeOp>(def) &&
         llvm::all_of(def->getOperands(),
                      [&](Value operand) { return hasParts(operand); });
}

Value Saver::partOf(Value value, const Part &part) {
  builder.setInsertionPoint(part.reader);
  auto type = tensorOf(value).clone(part.sizes);
  if (Value splat = resizeSplat(builder, value.getLoc(), value, type))
    return splat;
  return stablehlo::DynamicSliceOp::create(builder, value.getLoc(), type, value,
                                           part.starts, part.sizes);
}

/// Returns the part of an operand that `part` of the op's result reads.
Part Saver::partOfOperand(Operation *op, Value operand, const Part &part) {
  Part from = part;
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    for (auto [to, dim] : llvm::enumerate(transpose.getPermutation())) {
      from.starts[dim] = part.starts[to];
      from.sizes[dim] = part.sizes[to];
    }
  } else if (auto spread = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    from.starts.clear();
    from.sizes.clear();
    builder.setInsertionPoint(part.reader);
    for (auto [dim, size] : llvm::zip(spread.getBroadcastDimensions(),
                                      tensorOf(operand).getShape())) {
      Value start = part.starts[dim];
      from.starts.push_back(
          size == 1 ? makeZeros(builder, op->getLoc(), start.getType())
                    : start);
      from.sizes.push_back(size == 1 ? 1 : part.sizes[dim]);
    }
  }
  return from;
}

/// Recomputes a slice of `value`, from slices.
Value Saver::derivePart(Value value, const Part &part, IRMapping &known) {
  if (tensorOf(value).getRank() == 0)
    return derive(value, part.reader, known);
  if (!recomputes(value)) {
    Value stored =
        saved.contains(value) ? store(value, /*isStacked=*/false) : value;
    Value slice = partOf(stored, part);
    if (stored.getType() == value.getType())
      return slice;
    return stablehlo::ConvertOp::create(builder, value.getLoc(), slice,
                                        tensorOf(value).getElementType());
  }
  Operation *def = value.getDefiningOp();
  IRMapping operands;
  for (Value operand : def->getOperands())
    operands.map(operand,
                 derivePart(operand, partOfOperand(def, operand, part), known));
  builder.setInsertionPoint(part.reader);
  Operation *copy = builder.clone(*def, operands);
  copy->getResult(0).setType(tensorOf(value).clone(part.sizes));
  return copy->getResult(0);
}

/// Returns the outermost loop around `op` that `value` is computed outside of;
/// null if there is none.
static Operation *getLoopAround(Operation *op, Value value) {
  Operation *around = value.getParentBlock()->findAncestorOpInBlock(*op);
  return isa_and_nonnull<stablehlo::WhileOp>(around) ? around : nullptr;
}

/// A loop over time reads a slice of a saved value in each iteration: only this
/// slice is restored and recomputed there, or if that is not possible all of
/// the value in front of the loop.
void Saver::deriveInLoop(OpOperand &use, stablehlo::DynamicSliceOp slice) {
  Value value = use.get();
  IRMapping known;
  if (!hasParts(value))
    return use.set(derive(value, getLoopAround(slice, value), known));
  Part part = {slice, SmallVector<Value>(slice.getStartIndices()),
               SmallVector<int64_t>(slice.getSliceSizes())};
  slice.getResult().replaceAllUsesWith(derivePart(value, part, known));
  slice.erase();
}

namespace {
/// The order of the ops of a block while some of them move. (The block itself
/// numbers all of its ops again at the first comparison after each move.)
class OpOrder {
public:
  explicit OpOrder(Block &block) : block(block) { number(); }

  bool isBefore(Operation *a, Operation *b) const {
    return numbers.lookup(a) < numbers.lookup(b);
  }

  void moveBefore(Operation *op, Operation *next) {
    op->moveBefore(next);
    Operation *previous = op->getPrevNode();
    uint64_t low = previous ? numbers.lookup(previous) : 0;
    uint64_t middle = low + (numbers.lookup(next) - low) / 2;
    if (middle == low)
      number();
    else
      numbers[op] = middle;
  }

private:
  /// Numbers all ops with room for others between them.
  void number() {
    uint64_t last = 0;
    for (Operation &op : block)
      numbers[&op] = last += kStride;
  }

  static constexpr uint64_t kStride = uint64_t(1) << 32;
  Block &block;
  DenseMap<Operation *, uint64_t> numbers;
};
} // namespace

/// Moves ops whose results only the backward pass reads out of the forward
/// pass, each to its first reader.
void Saver::sink() {
  function.walk([&](Block *block) {
    Operation *last = nullptr;
    for (Operation &op : *block)
      if (layers.isForward(&op))
        last = &op;
    if (!last)
      return;
    SmallVector<Operation *> ops;
    for (Operation &op : llvm::make_range(block->begin(), last->getIterator()))
      if (!layers.isForward(&op) && !op.use_empty() &&
          isMemoryEffectFree(&op) && !isNarrowing(&op) && !comparesEqual(&op) &&
          (stablehlo::worksByElement(&op) ||
           isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
               stablehlo::TransposeOp, DequantizeOp>(op)))
        ops.push_back(&op);
    if (ops.empty())
      return;
    OpOrder order(*block);
    for (Operation *op : llvm::reverse(ops)) {
      Operation *first = nullptr;
      for (Operation *user : op->getUsers()) {
        Operation *ancestor = block->findAncestorOpInBlock(*user);
        if (!first || order.isBefore(ancestor, first))
          first = ancestor;
      }
      order.moveBefore(op, first);
    }
  });
}

/// Finds out how large the activations of the layers are. Other saved values
/// say nothing of that: logits may be a hundred times larger.
void Saver::findLargestOperand() {
  for (OpOperand *use : layers.getSavedUses())
    largestOperand = std::max(largestOperand, getLargestOperand(*use));
}

void Saver::run(llvm::function_ref<bool(Operation *)> isQuantized) {
  thinStacks(function, [&](Value stack) {
    return feedsQuantizedDots(stack, isQuantized);
  });
  SmallVector<OpOperand *> uses;
  llvm::SetVector<OpOperand *> writes;
  for (OpOperand *use : layers.getSavedUses()) {
    // Arguments are there in any case.
    if (isArgument(use->get()) || feedsQuantizedDots(*use, isQuantized))
      continue;
    if (collectStackWrites(*use, layers, writes) || isComparedEqual(*use))
      continue;
    uses.push_back(use);
    saved.insert(use->get());
    if (isAddedToScores(*use))
      exact.insert(use->get());
  }
  findLargestOperand();
  if (compute.savedNorms != SavedFormat::Same)
    findNorms();
  if (compute.savedGated != SavedFormat::Same)
    findGatedUnits();
  for (OpOperand *use : uses) {
    auto slice = dyn_cast<stablehlo::DynamicSliceOp>(use->getOwner());
    if (slice && use->getOperandNumber() == 0 &&
        getLoopAround(slice, use->get())) {
      deriveInLoop(*use, slice);
      continue;
    }
    IRMapping known;
    use->set(derive(use->get(), use->getOwner(), known));
  }
  // Values of stacks are computed where they are written.
  for (OpOperand *write : writes)
    if (!feedsQuantizedDots(*write, isQuantized))
      write->set(restore(write->get(), write->getOwner(), /*isStacked=*/true));
  sink();
}

/// Whether a comparison of rounded operands may come out in another way than
/// that of the values. Only a constant bound keeps (nearly) all of them on its
/// sides.
static bool dependsOnRounding(Operation *op) {
  auto compare = dyn_cast<stablehlo::CompareOp>(op);
  if (!compare ||
      !isa<FloatType>(getElementTypeOrSelf(compare.getLhs().getType())))
    return false;
  return comparesEqual(op) || llvm::none_of(op->getOperands(), [](Value value) {
           while (auto spread =
                      value.getDefiningOp<stablehlo::BroadcastInDimOp>())
             value = spread.getOperand();
           return matchPattern(value, m_Constant());
         });
}

bool fp8::isRecomputable(Operation *op) {
  return op->getNumResults() == 1 && isMemoryEffectFree(op) &&
         !dependsOnRounding(op) &&
         (stablehlo::worksByElement(op) ||
          isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
              stablehlo::TransposeOp>(op));
}

unsigned fp8::countRecomputedOps(Value value, DenseMap<Value, unsigned> &counts,
                                 function_ref<unsigned(Value)> limitOf,
                                 function_ref<bool(Value)> isRead) {
  auto [it, isNew] = counts.try_emplace(value, 0);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  unsigned limit = op ? limitOf(value) : 0;
  if (limit == 0)
    return 0;
  unsigned count = 1;
  for (Value operand : op->getOperands()) {
    if (isRead(operand))
      continue;
    unsigned more = countRecomputedOps(operand, counts, limitOf, isRead);
    if (more == 0)
      return 0;
    count += more;
  }
  return counts[value] = count <= limit ? count : 0;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether the recipe saves all values as the forward pass computes them.
static bool savesAsComputed(const ComputeRecipe &compute) {
  return compute.saved == ComputeFormat::F32 &&
         compute.savedNorms == SavedFormat::Same &&
         compute.savedGated == SavedFormat::Same;
}

/// Checks that dots are not yet quantized: what is saved depends on which dots
/// will read payloads.
static LogicalResult verifyNotQuantized(ModuleOp module) {
  WalkResult result = module.walk([](fp8::DotGeneralOp dot) {
    if (!getVerdict(dot))
      return WalkResult::advance();
    dot.emitOpError() << "expected activations to be saved before dots are "
                         "quantized; run fp8-quantize-dots later";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct SaveActivations : fp8::impl::FP8SaveActivationsBase<SaveActivations> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getEffectiveRecipe(module);
    if (failed(recipe) || failed(verifyDecided(module)) ||
        failed(verifyNotQuantized(module)))
      return signalPassFailure();
    if (savesAsComputed(recipe->compute))
      return markAllAnalysesPreserved();
    for (auto function : module.getOps<func::FuncOp>()) {
      LinearLayers layers(function);
      Saver(function, layers, recipe->compute).run([](Operation *op) {
        VerdictAttr verdict = getVerdict(op);
        return verdict && verdict.isFP8();
      });
    }
  }
};
} // namespace
