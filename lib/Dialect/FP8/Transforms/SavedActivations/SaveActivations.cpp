//===- SaveActivations.cpp - Which activations are saved ------------------===//
//
// The order of work:
// 1. Loops stack less (ThinStacks). LinearLayers finds the uses where the
//    backward pass reads values of the forward pass. Values that only quantized
//    dots read are saved as payloads.
// 2. A saved value that follows elementwise from others (the sigmoid of a gate
//    that is saved too, a norm's output) is recomputed where it is read. One
//    that is repeated (keys, for a group of queries) is saved before that.
// 3. The others are stored as the recipe says and restored where they are read.
//    Operands of comparisons for equality are not stored: the result of the
//    comparison is.
// 4. Ops whose results only the backward pass reads move there. Autodiff leaves
//    some of them in the forward pass (twice the input of a square), where
//    their results would be saved instead of their operands.
//
//===----------------------------------------------------------------------===//

#include "../EffectiveRecipe.h"
#include "../SmallTensors.h"
#include "Recomputation.h"
#include "RepeatedValues.h"
#include "SavedUses.h"
#include "SinkToBackward.h"
#include "StoredValues.h"
#include "ThinStacks.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
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

/// A slice that a loop reads: where it begins along each dimension, and its
/// sizes.
struct Part {
  Operation *reader;
  SmallVector<Value> starts;
  SmallVector<int64_t> sizes;
};

/// Lets the backward pass read what is saved, and compute the rest again.
class Saver {
public:
  Saver(func::FuncOp function, const LinearLayers &layers,
        const ComputeRecipe &compute)
      : function(function), layers(layers), stored(function, layers, compute),
        builder(function.getContext()) {}

  void run(llvm::function_ref<bool(Operation *)> isQuantized);

private:
  bool isDerivable(Value value);
  bool isRestoredFromBlocks(Value value);
  bool isAvailable(Value operand, Value result);
  bool isArgument(Value value) {
    return llvm::is_contained(function.getArguments(), value);
  }
  bool isExact(Value value);
  bool recomputes(Value value);
  Value derive(Value value, Operation *reader, IRMapping &known);
  bool hasParts(Value value);
  Value partOf(Value value, const Part &part);
  Part partOfOperand(Operation *op, Value operand, const Part &part);
  Value derivePart(Value value, const Part &part, IRMapping &known);
  void deriveInLoop(OpOperand &use, stablehlo::DynamicSliceOp slice);

  func::FuncOp function;
  const LinearLayers &layers;
  StoredValues stored;
  OpBuilder builder;
  llvm::SetVector<Value> saved;
  /// The number of ops that compute a value from saved ones; 0 if that is not
  /// possible.
  DenseMap<Value, unsigned> derivable;
};

} // namespace

/// Whether the backward pass has a value as the blocks that attention dots
/// read, which are not exact enough for other readers.
bool Saver::isRestoredFromBlocks(Value value) {
  Value repeated = getRepeated(value);
  return stored.isInBlocks(value) &&
         (saved.contains(value) || (repeated && saved.contains(repeated)));
}

/// Whether `operand` of the op that computes `result` is available in the
/// backward pass.
bool Saver::isAvailable(Value operand, Value result) {
  Operation *def = operand.getDefiningOp();
  if (isRestoredFromBlocks(operand))
    return keepsElements(result.getDefiningOp()) && stored.isInBlocks(result);
  return saved.contains(operand) || isArgument(operand) ||
         numElements(operand) * kSmallPart <= numElements(result) ||
         isa_and_nonnull<stablehlo::ConstantOp, stablehlo::IotaOp>(def) ||
         isDerivable(operand);
}

/// Whether the backward pass reads a value, or computes it again, without
/// anything that is rounded.
bool Saver::isExact(Value value) {
  if (saved.contains(value) && !stored.isKeptExact(value))
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

/// Whether `value` is computed again rather than read.
bool Saver::recomputes(Value value) {
  return isDerivable(value) && (!stored.isKeptExact(value) || isExact(value));
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
    result = stored.restore(value, reader, /*isStacked=*/false);
  }
  known.map(value, result);
  return result;
}

/// Whether slices of `value` can be recomputed from slices of what is saved.
bool Saver::hasParts(Value value) {
  if (!recomputes(value))
    return !saved.contains(value) || !stored.getForm(value);
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
    Value whole = saved.contains(value)
                      ? stored.store(value, /*isStacked=*/false)
                      : value;
    Value slice = partOf(whole, part);
    if (whole.getType() == value.getType())
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

/// Returns the value that is saved for a use: what the used value repeats, if a
/// loop does not read only a slice of it.
static Value getSaved(OpOperand &use) {
  Value value = use.get();
  if (isa<stablehlo::DynamicSliceOp>(use.getOwner()) &&
      getLoopAround(use.getOwner(), value))
    return value;
  Value repeated = getRepeated(value);
  return repeated ? repeated : value;
}

void Saver::run(llvm::function_ref<bool(Operation *)> isQuantized) {
  SmallVector<OpOperand *> uses;
  llvm::SetVector<OpOperand *> writes;
  for (OpOperand *use : layers.getSavedUses()) {
    // Arguments are there in any case.
    if (isArgument(use->get()) || feedsOnly(*use, isQuantized))
      continue;
    if (collectStackWrites(*use, layers, writes) || isComparedEqual(*use))
      continue;
    uses.push_back(use);
    Value value = getSaved(*use);
    saved.insert(value);
    stored.addUse(value, *use);
  }
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
    stored.addUse(write->get(), *write);
  for (OpOperand *write : writes)
    if (!feedsOnly(*write, isQuantized))
      write->set(
          stored.restore(write->get(), write->getOwner(), /*isStacked=*/true));
  sinkToBackward(function, layers);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether the recipe saves all values as the forward pass computes them.
static bool savesAsComputed(const ComputeRecipe &compute) {
  return compute.saved == ComputeFormat::F32 &&
         compute.attention != AttentionFormat::F8 &&
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
      auto isQuantized = [](Operation *op) {
        VerdictAttr verdict = getVerdict(op);
        return verdict && verdict.isFP8();
      };
      auto isPayload = [&](Value stack) {
        return feedsOnly(stack, isQuantized);
      };
      stackUnrepeated(function, isPayload);
      LinearLayers layers(function);
      thinStacks(function, isPayload);
      Saver(function, layers, recipe->compute).run(isQuantized);
    }
  }
};
} // namespace
