//===- SavePayloads.cpp - What a loop saves for the backward pass ---------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
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

/// How a tensor is quantized from its own amax.
struct Quantization {
  AmaxOp amax;
  ComputeScaleOp scale;
  QuantizeOp quantize;

  /// Of `op` itself; none if something else has a part in it.
  static std::optional<Quantization> match(QuantizeOp op) {
    auto scale = op.getScale().getDefiningOp<ComputeScaleOp>();
    if (!scale || op->getNumOperands() != 3 ||
        op->getOperand(2) != scale->getResult(1) ||
        op->hasAttr(FP8Dialect::kRecomputedAttrName))
      return std::nullopt;
    auto amax = scale->getOperand(0).getDefiningOp<AmaxOp>();
    if (!amax || amax.getInput() != op.getInput())
      return std::nullopt;
    return Quantization{amax, scale, op};
  }

  bool operator==(const Quantization &other) const {
    auto same = [](Operation *a, Operation *b) {
      return a->getAttrDictionary() == b->getAttrDictionary() &&
             a->getPropertiesAsAttribute() == b->getPropertiesAsAttribute() &&
             a->getResultTypes() == b->getResultTypes();
    };
    return same(amax, other.amax) && same(scale, other.scale) &&
           same(quantize, other.quantize);
  }

  /// The same of another tensor.
  Value of(OpBuilder &builder, Value input) const {
    IRMapping mapping;
    mapping.map(quantize->getOperand(0), input);
    builder.clone(*amax, mapping);
    builder.clone(*scale, mapping);
    return builder.clone(*quantize, mapping)->getResult(0);
  }
};

/// One read of a stack: its slot, and what becomes of it.
struct Read {
  DynamicSliceOp slice;
  Quantization quantization;
};

/// A stack that a loop writes slot by slot, and that is read to be quantized
/// only.
struct Stack {
  unsigned carry;
  DynamicUpdateSliceOp update;
  SmallVector<Read> reads;
  SmallVector<Quantization> kinds; // the different ones among them
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

std::optional<Stack> matchStack(WhileOp loop, unsigned carry) {
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
  Stack stack{carry, update, {}, {}};
  for (Operation *user : result.getUsers()) {
    auto slice = dyn_cast<DynamicSliceOp>(user);
    if (!slice || !isSlot(slice.getType().getShape(), type.getShape()))
      return std::nullopt;
    Value slot = slice;
    while (slot.hasOneUse() && isa<stablehlo::ReshapeOp>(*slot.user_begin()))
      slot = slot.user_begin()->getResult(0);
    for (Operation *reader : slot.getUsers()) {
      if (isa<AmaxOp>(reader))
        continue;
      auto quantize = dyn_cast<QuantizeOp>(reader);
      std::optional<Quantization> kind;
      if (quantize)
        kind = Quantization::match(quantize);
      if (!kind)
        return std::nullopt;
      stack.reads.push_back({slice, *kind});
      if (!llvm::is_contained(stack.kinds, *kind))
        stack.kinds.push_back(*kind);
    }
  }
  // Several payloads may take more than what they are made from.
  if (stack.kinds.empty() ||
      stack.kinds.size() * 8 >= type.getElementTypeBitWidth())
    return std::nullopt;
  return stack;
}

/// The loop with carries of its own for payloads and scales.
class LoopRewriter {
public:
  explicit LoopRewriter(WhileOp loop) : loop(loop), builder(loop) {}

  bool run() {
    SmallVector<Stack> stacks;
    for (unsigned i = 0; i < loop->getNumResults(); ++i)
      if (std::optional<Stack> stack = matchStack(loop, i))
        stacks.push_back(*stack);
    if (stacks.empty())
      return false;
    for (const Stack &stack : stacks)
      for (const Quantization &kind : stack.kinds)
        save(stack, kind);
    rebuild();
    for (const Saved &entry : saved)
      for (const Read &read : entry.stack->reads)
        if (read.quantization == entry.kind)
          load(entry, read);
    return true;
  }

private:
  struct Saved {
    const Stack *stack;
    Quantization kind;
    unsigned payload; // carry; the next one holds the scales
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
    inits.push_back(stablehlo::ConstantOp::create(
        before, loc,
        DenseElementsAttr::get(newType,
                               before.getZeroAttr(newType.getElementType()))));
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
    auto type = cast<RankedTensorType>(original[0].getType());
    SmallVector<Value> starts{original[0]};
    if (rank > 1)
      starts.append(rank - 1,
                    stablehlo::ConstantOp::create(
                        builder, loc,
                        DenseElementsAttr::get(
                            type, builder.getZeroAttr(type.getElementType())))
                        .getResult());
    return starts;
  }

  void save(const Stack &stack, const Quantization &kind) {
    DynamicUpdateSliceOp update = stack.update;
    QuantizeOp quantize = kind.quantize;
    Location loc = quantize.getLoc();
    builder.setInsertionPoint(update);
    auto type = cast<RankedTensorType>(quantize.getInput().getType());
    Value input =
        reshapeBack(builder, loc, update.getUpdate(), type.getShape());
    auto scaled = cast<ScaledType>(quantize.getType());
    auto unpack =
        UnpackOp::create(builder, loc, scaled.getPayloadType(),
                         scaled.getScaleTensorType(), kind.of(builder, input));
    saved.push_back(
        {&stack, kind,
         static_cast<unsigned>(loop->getNumOperands() + inits.size())});
    addCarry(update, unpack.getPayload());
    addCarry(update, unpack.getScale());
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

  void load(const Saved &entry, const Read &read) {
    DynamicSliceOp slice = read.slice;
    QuantizeOp quantize = read.quantization.quantize;
    Location loc = quantize.getLoc();
    builder.setInsertionPoint(quantize);
    auto slot = [&](unsigned carry) -> Value {
      Value stack = loop->getResult(carry);
      auto type = cast<RankedTensorType>(stack.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = 1;
      Value part = DynamicSliceOp::create(
          builder, loc, type.clone(shape), stack,
          startIndices(loc, slice.getStartIndices(), type.getRank()),
          builder.getDenseI64ArrayAttr(shape));
      return reshape(builder, loc, part, type.getShape().drop_front());
    };
    Value payload = slot(entry.payload), scale = slot(entry.payload + 1);
    quantize.replaceAllUsesWith(
        PackOp::create(builder, loc, quantize.getType(), payload, scale)
            .getResult());
    quantize.erase();
  }

  WhileOp loop;
  OpBuilder builder;
  SmallVector<Value> inits;
  SmallVector<Saved> saved;
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
