//===- FP8CollectiveOps.cpp - What ranks compute together -----------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static bool isF8(Wire wire) {
  return wire == Wire::F8E4M3FN || wire == Wire::F8E5M2;
}

/// What all_reduce and its beginning on buffers have in common.
template <typename OpT> static LogicalResult verifyReduction(OpT op) {
  auto type = cast<ShapedType>(op.getInput().getType());
  Type element = type.getElementType();
  Reduction reduction = op.getReduction();
  std::optional<int64_t> shard;
  if (op.getShard())
    shard = static_cast<int64_t>(*op.getShard());
  if (shard && *shard < 1)
    return op.emitOpError("expected shards to be counted from 1 but got ")
           << *shard;
  if (reduction == Reduction::Owner) {
    // Bytes are passed on as they are.
    if (!shard)
      return op.emitOpError("expected the shard whose owner has the values");
    if (op.getWire() != Wire::None || op.getMu() || op.getBlock())
      return op.emitOpError("expected wire 'none' for an owner's values");
    return success();
  }
  bool isFloat =
      element.isF16() || element.isBF16() || element.isF32() || element.isF64();
  if (!isFloat && !(element.isInteger() && !element.isInteger(1)))
    return op.emitOpError("expected floats of 16 or more bits, or integers, "
                          "but got ")
           << element;
  if (reduction == Reduction::Mean && !isFloat)
    return op.emitOpError("expected floats where a mean is taken but got ")
           << element;
  bool isSum = reduction == Reduction::Sum || reduction == Reduction::Mean;
  if (op.getWire() != Wire::None && (!isSum || !isFloat))
    return op.emitOpError("expected wire 'none' for anything but sums and "
                          "means of floats but got '")
           << stringifyWire(op.getWire()) << "'";
  if (isF8(op.getWire()) != static_cast<bool>(op.getMu()))
    return op.emitOpError(isF8(op.getWire())
                              ? "expected mu where the wire is f8 but got none"
                              : "expected no mu where the wire is not f8");
  if (op.getMu()) {
    auto mu = cast<ShapedType>(op.getMu().getType());
    if (!mu.getElementType().isF32() || mu.getShape() != ArrayRef<int64_t>{2})
      return op.emitOpError("expected mu to be two numbers of f32 but got ")
             << mu;
  }
  if (std::optional<uint64_t> block = op.getBlock()) {
    if (!isF8(op.getWire()))
      return op.emitOpError("expected no block where the wire is not f8");
    if (static_cast<int64_t>(*block) <= 0)
      return op.emitOpError("expected a block of one or more elements but got ")
             << static_cast<int64_t>(*block);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// AllReduceOp
//===----------------------------------------------------------------------===//

void AllReduceOp::build(OpBuilder &builder, OperationState &state,
                        Reduction reduction, Value input, StringAttr label,
                        IntegerAttr shard) {
  build(builder, state, input.getType(), /*new_mu=*/Type(), reduction, input,
        /*mu=*/Value(), Wire::None, /*block=*/IntegerAttr(), shard, label);
}

LogicalResult AllReduceOp::verify() {
  if (static_cast<bool>(getMu()) != static_cast<bool>(getNewMu()))
    return emitOpError("expected a new mu where there is one");
  if (getMu() && getMu().getType() != getNewMu().getType())
    return emitOpError("expected the new mu to be ")
           << getMu().getType() << " but got " << getNewMu().getType();
  return verifyReduction(*this);
}

//===----------------------------------------------------------------------===//
// StartAllReduceOp and WaitOp
//===----------------------------------------------------------------------===//

void StartAllReduceOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getInputMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getResultMutable());
  for (OpOperand &mu : getMuMutable()) {
    effects.emplace_back(MemoryEffects::Read::get(), &mu);
    effects.emplace_back(MemoryEffects::Write::get(), &mu);
  }
}

/// One wait, in the block of the start.
LogicalResult StartAllReduceOp::verify() {
  if (!getHandle().hasOneUse())
    return emitOpError("expected one fp8.wait for its handle");
  auto wait = dyn_cast<WaitOp>(*getHandle().user_begin());
  if (!wait || wait->getBlock() != (*this)->getBlock())
    return emitOpError("expected one fp8.wait for its handle, in its block");
  if (std::optional<int64_t> number = getNumber(); number && *number < 0)
    return emitOpError("expected a number that is not negative but got ")
           << *number;
  return verifyReduction(*this);
}

/// Until here the input is read and the rest written.
void WaitOp::getEffects(Effects &effects) {
  for (OpOperand &buffer : getBuffersMutable()) {
    bool isInput = buffer.getOperandNumber() == 1;
    if (isInput)
      effects.emplace_back(MemoryEffects::Read::get(), &buffer);
    else
      effects.emplace_back(MemoryEffects::Write::get(), &buffer);
  }
}

LogicalResult WaitOp::verify() {
  auto start = getHandle().getDefiningOp<StartAllReduceOp>();
  if (!start)
    return emitOpError("expected the handle of a collective");
  if (getBuffers() != start->getOperands())
    return emitOpError("expected the buffers of the collective, in its order");
  return success();
}
