//===- SavePayloads.cpp - What a loop saves for the backward pass ---------===//

#include "SlotQuantization.h"
#include "SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

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

/// One read of a stack: its slot, and what becomes of it.
struct Read {
  DynamicSliceOp slice;
  SlotQuantization quantization;
};

/// A stack that a loop writes slot by slot, and that is read to be quantized
/// only, or that holds what a narrower form is restored to.
struct Stack {
  unsigned carry;
  DynamicUpdateSliceOp update;
  SmallVector<Read> reads;
  SmallVector<SlotQuantization> kinds; // the different ones among them
  Operation *restored = nullptr;       // the convert or fp8.dequantize
  SmallVector<DynamicSliceOp> slices;
};

bool isSlot(ArrayRef<int64_t> part, ArrayRef<int64_t> stack) {
  return !part.empty() && part.front() == 1 &&
         part.drop_front() == stack.drop_front();
}

Value reshape(OpBuilder &builder, Location loc, Value value,
              ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return stablehlo::ReshapeOp::create(builder, loc, type.clone(shape), value);
}

/// The tensor of shape `shape` that `value` is a reshape of, if it is one, so
/// that its quantization is recognized as the one of that tensor.
Value reshapeBack(OpBuilder &builder, Location loc, Value value,
                  ArrayRef<int64_t> shape) {
  Operation *def = value.getDefiningOp();
  if (isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(def)) {
    auto type = cast<RankedTensorType>(def->getOperand(0).getType());
    auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(def);
    bool moves =
        broadcast && !llvm::is_sorted(broadcast.getBroadcastDimensions());
    if (type.getShape() == shape && !moves)
      return def->getOperand(0);
  }
  return reshape(builder, loc, value, shape);
}

/// The op that makes `value`, a slot of shape `slot`, from a narrower form of
/// it: a convert or fp8.dequantize.
Operation *getRestored(Value value, ArrayRef<int64_t> slot) {
  while (Operation *def = value.getDefiningOp()) {
    if (isa<stablehlo::ReshapeOp, stablehlo::BroadcastInDimOp>(def)) {
      value = def->getOperand(0);
      continue;
    }
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() != slot)
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
  return nullptr;
}

/// A stack that a loop writes slot by slot.
std::optional<Stack> matchWrites(WhileOp loop, unsigned carry) {
  Value result = loop->getResult(carry);
  auto type = cast<RankedTensorType>(result.getType());
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  auto update = body.getTerminator()
                    ->getOperand(carry)
                    .getDefiningOp<DynamicUpdateSliceOp>();
  if (!update || update.getOperand() != body.getArgument(carry) ||
      !body.getArgument(carry).hasOneUse() || !update->hasOneUse() ||
      !cond.getArgument(carry).use_empty() ||
      !isSlot(cast<RankedTensorType>(update.getUpdate().getType()).getShape(),
              type.getShape()) ||
      !matchPattern(loop->getOperand(carry), m_AnyZeroFloat()))
    return std::nullopt;
  Stack stack;
  stack.carry = carry;
  stack.update = update;
  for (Operation *user : result.getUsers()) {
    auto slice = dyn_cast<DynamicSliceOp>(user);
    if (!slice || !isSlot(slice.getType().getShape(), type.getShape()))
      return std::nullopt;
    stack.slices.push_back(slice);
  }
  return stack;
}

/// Whether the loop could read `value`.
bool isVisible(Value value, WhileOp loop) {
  Operation *ancestor = value.getParentBlock()->findAncestorOpInBlock(*loop);
  Operation *def = value.getDefiningOp();
  return ancestor && (!def || def->isBeforeInBlock(ancestor));
}

/// Adds what becomes of one slot of the stack that `loop` writes; fails if it
/// is not quantized only, or not in a way that the loop could.
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
  // What else reads the amax needs the tensor.
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

/// One that is read to be quantized only.
std::optional<Stack> matchQuantized(WhileOp loop, unsigned carry) {
  std::optional<Stack> stack = matchWrites(loop, carry);
  if (!stack)
    return std::nullopt;
  for (DynamicSliceOp slice : stack->slices)
    if (failed(matchRead(loop, slice, *stack)))
      return std::nullopt;
  // Several payloads may take more than what they are made from.
  auto type = cast<RankedTensorType>(loop->getResult(carry).getType());
  if (stack->kinds.empty() ||
      stack->kinds.size() * 8 >= type.getElementTypeBitWidth())
    return std::nullopt;
  return stack;
}

/// One that holds what a narrower form is restored to.
std::optional<Stack> matchRestored(WhileOp loop, unsigned carry) {
  std::optional<Stack> stack = matchWrites(loop, carry);
  if (!stack || stack->slices.empty())
    return std::nullopt;
  auto type = cast<RankedTensorType>(loop->getResult(carry).getType());
  stack->restored =
      getRestored(stack->update.getUpdate(), type.getShape().drop_front());
  if (!stack->restored)
    return std::nullopt;
  return stack;
}

/// The loop with carries of its own for payloads and scales.
class LoopRewriter {
public:
  explicit LoopRewriter(WhileOp loop) : loop(loop), builder(loop) {}

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
    rebuild();
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

  /// A carry of slots like `value`, which the body writes beside `update`.
  void addCarry(DynamicUpdateSliceOp update, Value value) {
    Location loc = update.getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    auto stackType = cast<RankedTensorType>(update.getType());
    SmallVector<int64_t> shape{stackType.getDimSize(0)}, slot{1};
    llvm::append_range(shape, type.getShape());
    llvm::append_range(slot, type.getShape());
    RankedTensorType newType = type.clone(shape);
    OpBuilder before(loop);
    inits.push_back(makeZeros(before, loc, newType));
    Block &body = loop.getBody().front();
    loop.getCond().front().addArgument(newType, loc);
    BlockArgument arg = body.addArgument(newType, loc);
    builder.setInsertionPoint(update);
    Value part = reshape(builder, loc, value, slot);
    auto next = DynamicUpdateSliceOp::create(
        builder, loc, newType, arg, part,
        startIndices(loc, update.getStartIndices(), newType.getRank()));
    Operation *terminator = body.getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), next.getResult());
  }

  /// The slot's index, and zeros.
  SmallVector<Value> startIndices(Location loc, ValueRange original,
                                  int64_t rank) {
    SmallVector<Value> starts{original[0]};
    if (rank > 1)
      starts.append(rank - 1, makeZeros(builder, loc, original[0].getType()));
    return starts;
  }

  /// The tensor as the loop quantizes it for its own dots, or as it now does.
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
    saved.push_back(
        {&stack, kind,
         static_cast<unsigned>(loop->getNumOperands() + inits.size())});
    addCarry(update, unpack.getPayload());
    addCarry(update, unpack.getScale());
  }

  /// Keeps what `stack.restored` restores.
  void saveNarrow(const Stack &stack) {
    Value narrow = stack.restored->getOperand(0);
    saved.push_back(
        {&stack,
         {},
         static_cast<unsigned>(loop->getNumOperands() + inits.size())});
    auto scaled = dyn_cast<ScaledType>(narrow.getType());
    if (!scaled)
      return addCarry(stack.update, narrow);
    builder.setInsertionPoint(stack.update);
    auto unpack = UnpackOp::create(builder, stack.restored->getLoc(),
                                   scaled.getPayloadType(),
                                   scaled.getScaleTensorType(), narrow);
    addCarry(stack.update, unpack.getPayload());
    addCarry(stack.update, unpack.getScale());
  }

  void rebuild() {
    SmallVector<Value> operands(loop->getOperands());
    llvm::append_range(operands, inits);
    builder.setInsertionPoint(loop);
    auto copy = WhileOp::create(builder, loop.getLoc(),
                                ValueRange(operands).getTypes(), operands);
    copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    copy.getCond().takeBody(loop.getCond());
    copy.getBody().takeBody(loop.getBody());
    loop->replaceAllUsesWith(
        copy->getResults().take_front(loop->getNumResults()));
    loop.erase();
    loop = copy;
  }

  /// The slot of a carry that `slice` reads of the stack it stands for.
  Value loadSlot(Location loc, unsigned carry, DynamicSliceOp slice) {
    Value stack = loop->getResult(carry);
    auto type = cast<RankedTensorType>(stack.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 1;
    Value part = DynamicSliceOp::create(
        builder, loc, type.clone(shape), stack,
        startIndices(loc, slice.getStartIndices(), type.getRank()),
        builder.getDenseI64ArrayAttr(shape));
    return reshape(builder, loc, part, type.getShape().drop_front());
  }

  void loadNarrow(const Saved &entry, DynamicSliceOp slice) {
    Location loc = slice.getLoc();
    Operation *restored = entry.stack->restored;
    builder.setInsertionPoint(slice);
    Value narrow = loadSlot(loc, entry.payload, slice);
    Type type = restored->getResult(0).getType();
    Value value;
    if (auto scaled = dyn_cast<ScaledType>(restored->getOperand(0).getType())) {
      narrow = PackOp::create(builder, loc, scaled, narrow,
                              loadSlot(loc, entry.payload + 1, slice));
      value = DequantizeOp::create(builder, loc, type, narrow);
    } else {
      value = stablehlo::ConvertOp::create(builder, loc, type, narrow);
    }
    slice.replaceAllUsesWith(
        reshape(builder, loc, value, slice.getType().getShape()));
    slice.erase();
  }

  void load(const Saved &entry, const Read &read) {
    DynamicSliceOp slice = read.slice;
    QuantizeOp quantize = read.quantization.getQuantize();
    Location loc = quantize.getLoc();
    builder.setInsertionPoint(quantize);
    Value payload = loadSlot(loc, entry.payload, slice),
          scale = loadSlot(loc, entry.payload + 1, slice);
    quantize.replaceAllUsesWith(
        PackOp::create(builder, loc, quantize.getType(), payload, scale)
            .getResult());
    quantize.erase();
  }

  WhileOp loop;
  OpBuilder builder;
  SmallVector<Value> inits;
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
