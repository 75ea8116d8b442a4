//===- SavePayloads.cpp - Which payloads a loop saves ---------------------===//

#include "../LayerStacks.h"
#include "../SmallTensors.h"
#include "SlotQuantization.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FP8SAVEPAYLOADS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using stablehlo::DynamicSliceOp;
using stablehlo::DynamicUpdateSliceOp;
using stablehlo::WhileOp;

namespace {

/// One read of a stack, and how the slot is quantized.
struct Read {
  DynamicSliceOp slice;
  SlotQuantization quantization;
};

/// A stack that is read only to be quantized, or that holds values restored
/// from a narrower form.
struct Stack : LayerStack {
  explicit Stack(LayerStack stack) : LayerStack(std::move(stack)) {}

  SmallVector<Read> reads;
  SmallVector<SlotQuantization> kinds; // the distinct ones
  Operation *restored = nullptr;       // the convert or fp8.dequantize
};

/// Returns `value` in shape `shape`. If it is a reshape of a tensor of that
/// shape, returns that tensor, so that its quantization is recognized.
Value reshapeBack(OpBuilder &builder, Location loc, Value value,
                  ArrayRef<int64_t> shape) {
  Value source = stablehlo::getReshapeSource(value);
  if (source && tensorOf(source).getShape() == shape)
    return source;
  return makeReshape(builder, loc, value, shape);
}

/// Returns the op that restores `value`, a slot of shape `slot`, from a
/// narrower form: a convert or fp8.dequantize.
Operation *getRestored(Value value, ArrayRef<int64_t> slot) {
  value = stablehlo::stripReshapes(value);
  Operation *def = value.getDefiningOp();
  auto type = cast<RankedTensorType>(value.getType());
  if (!def || type.getShape() != slot)
    return nullptr;
  if (isa<DequantizeOp>(def))
    return def;
  if (!isa<stablehlo::ConvertOp>(def))
    return nullptr;
  auto narrow = cast<RankedTensorType>(def->getOperand(0).getType());
  bool isNarrower =
      isa<FloatType>(narrow.getElementType()) &&
      isa<FloatType>(type.getElementType()) &&
      narrow.getElementTypeBitWidth() < type.getElementTypeBitWidth();
  return isNarrower ? def : nullptr;
}

/// Adds how one slot of the stack that `loop` writes is quantized. Fails if the
/// slot has other uses, or is quantized in a way that the loop cannot repeat.
LogicalResult matchRead(WhileOp loop, DynamicSliceOp slice, Stack &stack) {
  Value slot = slice;
  while (slot.hasOneUse() && isa<stablehlo::ReshapeOp>(*slot.user_begin()))
    slot = slot.user_begin()->getResult(0);
  SmallVector<SlotQuantization> kinds;
  for (Operation *reader : slot.getUsers()) {
    if (isa<AmaxOp>(reader))
      continue;
    auto quantize = dyn_cast<QuantizeOp>(reader);
    if (!quantize)
      return failure();
    std::optional<SlotQuantization> kind =
        SlotQuantization::match(quantize, slice.getStartIndices()[0]);
    if (!kind || !llvm::all_of(kind->getOuterValues(), [&](Value value) {
          return isVisible(value, loop);
        }))
      return failure();
    kinds.push_back(*kind);
  }
  // Another reader of the amax needs the tensor.
  auto isPart = [&](Operation *op) {
    return llvm::any_of(
        kinds, [&](const SlotQuantization &kind) { return kind.contains(op); });
  };
  for (Operation *reader : slot.getUsers())
    if (isa<AmaxOp>(reader) && !llvm::all_of(reader->getUsers(), isPart))
      return failure();
  for (SlotQuantization &kind : kinds) {
    if (!llvm::is_contained(stack.kinds, kind))
      stack.kinds.push_back(kind);
    stack.reads.push_back({slice, std::move(kind)});
  }
  return success();
}

/// Matches a stack that is read only to be quantized.
std::optional<Stack> matchQuantized(WhileOp loop, unsigned carry) {
  std::optional<LayerStack> written = matchLayerStack(loop, carry);
  if (!written)
    return std::nullopt;
  Stack stack(*written);
  for (DynamicSliceOp slice : stack.slices)
    if (failed(matchRead(loop, slice, stack)))
      return std::nullopt;
  // Several payloads may take more memory than the tensor they are made from.
  auto type = cast<RankedTensorType>(loop->getResult(carry).getType());
  if (stack.kinds.empty() ||
      stack.kinds.size() * 8 >= type.getElementTypeBitWidth())
    return std::nullopt;
  return stack;
}

/// Matches a stack that holds values restored from a narrower form.
std::optional<Stack> matchRestored(WhileOp loop, unsigned carry) {
  std::optional<LayerStack> written = matchLayerStack(loop, carry);
  if (!written || written->slices.empty())
    return std::nullopt;
  Stack stack(*written);
  stack.restored =
      getRestored(stack.update.getUpdate(),
                  tensorOf(loop->getResult(carry)).getShape().drop_front());
  if (!stack.restored)
    return std::nullopt;
  return stack;
}

/// Replaces a loop by one with additional carries for payloads and scales.
class LoopRewriter {
public:
  explicit LoopRewriter(WhileOp loop)
      : loop(loop), builder(loop->getContext()) {}

  bool run() {
    std::vector<Stack> stacks;
    for (unsigned i = 0; i < loop->getNumResults(); ++i)
      if (std::optional<Stack> stack = matchQuantized(loop, i))
        stacks.push_back(*stack);
      else if (std::optional<Stack> narrow = matchRestored(loop, i))
        stacks.push_back(*narrow);
    if (stacks.empty())
      return false;
    for (const Stack &stack : stacks) {
      if (stack.restored)
        saveNarrow(stack);
      for (const SlotQuantization &kind : stack.kinds)
        save(stack, kind);
    }
    for (const Saved &entry : saved) {
      if (entry.stack->restored)
        for (DynamicSliceOp slice : entry.stack->slices)
          loadNarrow(entry, slice);
      for (const Read &read : entry.stack->reads)
        if (read.quantization == entry.kind)
          load(entry, read);
    }
    return true;
  }

private:
  struct Saved {
    const Stack *stack;
    SlotQuantization kind;
    unsigned payload; // carry; the next one holds the scales, if there are any
  };

  /// Returns the tensor as the loop quantizes it, for its own dots or from now
  /// on.
  Value getQuantized(DynamicUpdateSliceOp update,
                     const SlotQuantization &kind) {
    QuantizeOp quantize = kind.getQuantize();
    auto type = cast<RankedTensorType>(quantize.getInput().getType());
    Value input = reshapeBack(builder, quantize.getLoc(), update.getUpdate(),
                              type.getShape());
    Value slot = update.getStartIndices()[0];
    for (Operation *user : input.getUsers()) {
      auto known = dyn_cast<QuantizeOp>(user);
      if (!known || known->getBlock() != update->getBlock() ||
          !known->isBeforeInBlock(update))
        continue;
      std::optional<SlotQuantization> same =
          SlotQuantization::match(known, slot);
      if (same && *same == kind)
        return known;
    }
    return kind.clone(builder, input, slot);
  }

  void save(const Stack &stack, const SlotQuantization &kind) {
    DynamicUpdateSliceOp update = stack.update;
    QuantizeOp quantize = kind.getQuantize();
    builder.setInsertionPoint(update);
    auto scaled = cast<ScaledType>(quantize.getType());
    auto unpack = UnpackOp::create(
        builder, quantize.getLoc(), scaled.getPayloadType(),
        scaled.getScaleTensorType(), getQuantized(update, kind));
    saved.push_back({&stack, kind, loop->getNumResults()});
    loop = addParallelStacks(loop, update, unpack->getResults());
  }

  /// Saves the operand of `stack.restored`.
  void saveNarrow(const Stack &stack) {
    Value narrow = stack.restored->getOperand(0);
    saved.push_back({&stack, {}, loop->getNumResults()});
    SmallVector<Value> parts{narrow};
    if (auto scaled = dyn_cast<ScaledType>(narrow.getType())) {
      builder.setInsertionPoint(stack.update);
      parts = UnpackOp::create(builder, stack.restored->getLoc(),
                               scaled.getPayloadType(),
                               scaled.getScaleTensorType(), narrow)
                  ->getResults();
    }
    loop = addParallelStacks(loop, stack.update, parts);
  }

  void loadNarrow(const Saved &entry, DynamicSliceOp slice) {
    Location loc = slice.getLoc();
    Operation *restored = entry.stack->restored;
    builder.setInsertionPoint(slice);
    Value narrow =
        readParallelSlot(builder, slice, loop->getResult(entry.payload));
    Type type = restored->getResult(0).getType();
    Value value;
    if (auto scaled = dyn_cast<ScaledType>(restored->getOperand(0).getType())) {
      narrow = PackOp::create(
          builder, loc, scaled, narrow,
          readParallelSlot(builder, slice, loop->getResult(entry.payload + 1)));
      value = DequantizeOp::create(builder, loc, type, narrow);
    } else {
      value = stablehlo::ConvertOp::create(builder, loc, type, narrow);
    }
    slice.replaceAllUsesWith(
        makeReshape(builder, loc, value, slice.getType().getShape()));
    slice.erase();
  }

  void load(const Saved &entry, const Read &read) {
    DynamicSliceOp slice = read.slice;
    QuantizeOp quantize = read.quantization.getQuantize();
    Location loc = quantize.getLoc();
    builder.setInsertionPoint(quantize);
    Value payload =
              readParallelSlot(builder, slice, loop->getResult(entry.payload)),
          scale = readParallelSlot(builder, slice,
                                   loop->getResult(entry.payload + 1));
    quantize.replaceAllUsesWith(
        PackOp::create(builder, loc, quantize.getType(), payload, scale)
            .getResult());
    quantize.erase();
  }

  WhileOp loop;
  OpBuilder builder;
  std::vector<Saved> saved;
};

class FP8SavePayloads : public fp8::impl::FP8SavePayloadsBase<FP8SavePayloads> {
public:
  void runOnOperation() override {
    SmallVector<WhileOp> loops;
    getOperation().walk([&](WhileOp loop) { loops.push_back(loop); });
    bool changed = false;
    for (WhileOp loop : loops)
      changed |= LoopRewriter(loop).run();
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
