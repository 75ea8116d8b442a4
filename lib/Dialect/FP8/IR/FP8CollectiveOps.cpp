//===- FP8CollectiveOps.cpp - Collectives of ranks ------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Shapes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static bool isF8(Wire wire) {
  return wire == Wire::F8E4M3FN || wire == Wire::F8E5M2;
}

/// Checks that the owner's bytes are sent unchanged.
template <typename OpT> static LogicalResult verifyOwner(OpT op) {
  if (!op.getShard())
    return op.emitOpError("expected the shard whose owner has the values");
  if (op.getWire() != Wire::None || op.getMu() || op.getBlock())
    return op.emitOpError("expected wire 'none' for an owner's values");
  return success();
}

/// Checks that the elements can be reduced, and sent as the wire says.
template <typename OpT> static LogicalResult verifyElements(OpT op) {
  Type element = getElementTypeOrSelf(op.getInput().getType());
  Reduction reduction = op.getReduction();
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
  return success();
}

/// Checks the shape of mu, which f8 wires have.
template <typename OpT> static LogicalResult verifyMu(OpT op) {
  if (!op.getMu())
    return success();
  auto mu = cast<ShapedType>(op.getMu().getType());
  SmallVector<int64_t> shape;
  if (op.getSlices())
    shape.push_back(static_cast<int64_t>(*op.getSlices()));
  shape.push_back(2);
  if (!mu.getElementType().isF32() || mu.getShape() != ArrayRef(shape))
    return op.emitOpError("expected mu to be two numbers of f32")
           << (op.getSlices() ? " for each slice" : "") << " but got " << mu;
  return success();
}

template <typename OpT> static LogicalResult verifyBlock(OpT op) {
  std::optional<uint64_t> block = op.getBlock();
  if (!block)
    return success();
  if (!isF8(op.getWire()))
    return op.emitOpError("expected no block where the wire is not f8");
  if (static_cast<int64_t>(*block) <= 0)
    return op.emitOpError("expected a block of one or more elements but got ")
           << static_cast<int64_t>(*block);
  return success();
}

/// Checks what all_reduce and start_all_reduce have in common.
template <typename OpT> static LogicalResult verifyReduction(OpT op) {
  std::optional<uint64_t> shard = op.getShard();
  if (shard && static_cast<int64_t>(*shard) < 1)
    return op.emitOpError("expected shards to be counted from 1 but got ")
           << static_cast<int64_t>(*shard);
  if (op.getReduction() == Reduction::Owner)
    return verifyOwner(op);
  if (failed(verifyElements(op)))
    return failure();
  if (isF8(op.getWire()) != static_cast<bool>(op.getMu()))
    return op.emitOpError(isF8(op.getWire())
                              ? "expected mu where the wire is f8 but got none"
                              : "expected no mu where the wire is not f8");
  auto type = cast<ShapedType>(op.getInput().getType());
  if (op.getSlices() &&
      (type.getRank() == 0 || type.getDimSize(0) < 1 ||
       type.getDimSize(0) != static_cast<int64_t>(*op.getSlices())))
    return op.emitOpError("expected slices of size 1 along the leading "
                          "dimension of ")
           << type << " but got " << *op.getSlices() << " slices";
  if (failed(verifyMu(op)))
    return failure();
  return verifyBlock(op);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

template <typename OpT> static int64_t wireBytesOf(OpT reduce) {
  auto type = cast<ShapedType>(reduce.getInput().getType());
  int64_t elements = type.getNumElements();
  if (reduce.getWire() == Wire::None)
    return byteSize(type);
  if (reduce.getWire() == Wire::BF16)
    return 2 * elements;
  // Each slice travels as a tensor of its own, with one scale or with one for
  // each block.
  auto slices = static_cast<int64_t>(reduce.getSlices().value_or(1));
  int64_t scales = slices;
  if (std::optional<uint64_t> block = reduce.getBlock())
    scales *= static_cast<int64_t>(llvm::divideCeil(elements / slices, *block));
  return elements + 4 * scales;
}

int64_t fp8::getWireBytes(AllReduceOp op) { return wireBytesOf(op); }
int64_t fp8::getWireBytes(StartAllReduceOp op) { return wireBytesOf(op); }

template <typename OpT> static int64_t sentBytesOf(OpT exchange) {
  int64_t bytes = byteSize(cast<ShapedType>(exchange.getInput().getType()));
  int64_t size = exchange.getRanks().getType().getDimSize(1);
  switch (exchange.getKind()) {
  case ExchangeKind::AllToAll:
    return bytes / size * (size - 1);
  case ExchangeKind::Gather:
    return bytes * (size - 1);
  case ExchangeKind::Permute:
    return bytes;
  }
  return bytes;
}

int64_t fp8::getSentBytes(ExchangeOp op) { return sentBytesOf(op); }
int64_t fp8::getSentBytes(StartExchangeOp op) { return sentBytesOf(op); }

//===----------------------------------------------------------------------===//
// AllReduceOp
//===----------------------------------------------------------------------===//

void AllReduceOp::build(OpBuilder &builder, OperationState &state,
                        Reduction reduction, Value input, StringAttr label,
                        IntegerAttr shard) {
  build(builder, state, input.getType(), /*new_mu=*/Type(), reduction, input,
        /*mu=*/Value(), Wire::None, /*block=*/IntegerAttr(), shard,
        /*slices=*/IntegerAttr(), label);
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
// ExchangeOp and StartExchangeOp
//===----------------------------------------------------------------------===//

/// Checks that the rows of `ranks` are disjoint groups, or pairs.
static LogicalResult verifyRanks(Operation *op, ExchangeKind kind,
                                 DenseIntElementsAttr ranks) {
  ShapedType type = ranks.getType();
  bool isPermute = kind == ExchangeKind::Permute;
  if (type.getRank() != 2 || type.getDimSize(1) == 0 ||
      (isPermute && type.getDimSize(1) != 2))
    return op->emitOpError("expected ranks to be ")
           << (isPermute ? "pairs of a source and a target"
                         : "rows of one or more ranks")
           << " but got " << type;
  llvm::SmallDenseSet<int64_t> seen;
  for (auto [index, rank] : llvm::enumerate(ranks.getValues<int64_t>())) {
    if (rank < 0)
      return op->emitOpError("expected ranks from 0 up but got ") << rank;
    // A source may send to several targets.
    if (isPermute && index % 2 == 0)
      continue;
    if (!seen.insert(rank).second)
      return op->emitOpError("expected a rank ")
             << (isPermute ? "to be a target once" : "in one group")
             << " but got " << rank << " twice";
  }
  return success();
}

/// Checks what exchange and start_exchange have in common.
template <typename OpT> static LogicalResult verifyExchange(OpT op) {
  DenseIntElementsAttr ranks = op.getRanks();
  if (failed(verifyRanks(op, op.getKind(), ranks)))
    return failure();
  auto input = cast<ShapedType>(op.getInput().getType());
  auto result = cast<ShapedType>(op.getResult().getType());
  Type element = input.getElementType();
  if (!element.isIntOrFloat() ||
      (element.getIntOrFloatBitWidth() % 8 && !element.isInteger(1)))
    return op.emitOpError("expected elements of whole bytes but got ")
           << element;
  int64_t size = ranks.getType().getDimSize(1);
  if (op.getKind() == ExchangeKind::AllToAll &&
      (input.getRank() == 0 || input.getDimSize(0) != size))
    return op.emitOpError("expected a part for each of ")
           << size << " ranks along dimension 0 but got " << input;
  SmallVector<int64_t> shape(input.getShape());
  if (op.getKind() == ExchangeKind::Gather)
    shape.insert(shape.begin(), size);
  if (result.getShape() != ArrayRef<int64_t>(shape) ||
      result.getElementType() != element)
    return op.emitOpError("expected a result of shape [")
           << llvm::interleaved(shape) << "] and type " << element
           << " but got " << result;
  return success();
}

LogicalResult ExchangeOp::verify() { return verifyExchange(*this); }

//===----------------------------------------------------------------------===//
// RowIotaOp and RowStateOp
//===----------------------------------------------------------------------===//

LogicalResult RowIotaOp::verify() {
  auto type = cast<ShapedType>(getType());
  auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= type.getRank())
    return emitOpError("expected a dimension below ")
           << type.getRank() << " but got " << dim;
  if (!type.getElementType().isIntOrFloat())
    return emitOpError("expected numbers but got ") << type;
  return success();
}

LogicalResult RowStateOp::verify() {
  auto type = cast<ShapedType>(getType());
  if (type.getRank() != 1 || type.getDimSize(0) < 2 ||
      !type.getElementType().isUnsignedInteger(64))
    return emitOpError("expected a state of two or more ui64 but got ") << type;
  if (static_cast<int64_t>(getBlocks()) < 0)
    return emitOpError("expected blocks that are not negative but got ")
           << static_cast<int64_t>(getBlocks());
  return success();
}

//===----------------------------------------------------------------------===//
// StartAllReduceOp, StartExchangeOp and WaitOp
//===----------------------------------------------------------------------===//

void StartAllReduceOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getInputMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getResultMutable());
  for (OpOperand &mu : getMuMutable()) {
    effects.emplace_back(MemoryEffects::Read::get(), &mu);
    effects.emplace_back(MemoryEffects::Write::get(), &mu);
  }
}

template <typename OpT> static LogicalResult verifyNumber(OpT op) {
  if (std::optional<int64_t> number = op.getNumber(); number && *number < 0)
    return op.emitOpError("expected a number that is not negative but got ")
           << *number;
  return success();
}

/// Checks that there is one wait, in the block of the start.
template <typename OpT> static LogicalResult verifyStart(OpT op) {
  if (!op.getHandle().hasOneUse())
    return op.emitOpError("expected one fp8.wait for its handle");
  auto wait = dyn_cast<WaitOp>(*op.getHandle().user_begin());
  if (!wait || wait->getBlock() != op->getBlock())
    return op.emitOpError("expected one fp8.wait for its handle, in its block");
  return verifyNumber(op);
}

/// Checks a start that a wait behind a loop ends.
static LogicalResult verifyInLoop(StartAllReduceOp op) {
  auto all = op.getCollectives().getDefiningOp<CollectivesOp>();
  if (!all)
    return op.emitOpError("expected the handle of fp8.collectives");
  // A loop that was unrolled has copies.
  for (Operation *user : all->getUsers())
    if (auto other = dyn_cast<StartAllReduceOp>(user);
        other && other.getNumber() != op.getNumber())
      return op.emitOpError("expected one number for all of its collectives");
  if (!op.getSlice())
    return op.emitOpError("expected the index of a slice");
  if (!op.getHandle().use_empty())
    return op.emitOpError("expected the wait to have the handle of "
                          "fp8.collectives");
  return verifyNumber(op);
}

LogicalResult StartAllReduceOp::verify() {
  if (getSlice() && getSlices())
    return emitOpError("expected one slice but got several");
  if (failed(getCollectives() ? verifyInLoop(*this) : verifyStart(*this)))
    return failure();
  return verifyReduction(*this);
}

void StartExchangeOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getInputMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getResultMutable());
}

LogicalResult StartExchangeOp::verify() {
  if (getInput() == getResult())
    return emitOpError("expected another buffer for what comes in");
  return failure(failed(verifyStart(*this)) || failed(verifyExchange(*this)));
}

/// A wait ends the access to the buffers: the input is read, the others are
/// written.
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
  Operation *start = getHandle().getDefiningOp();
  if (isa_and_present<CollectivesOp>(start))
    return success();
  if (!isa_and_present<StartAllReduceOp, StartExchangeOp>(start))
    return emitOpError("expected the handle of a collective");
  auto reduction = dyn_cast<StartAllReduceOp>(start);
  if (getBuffers() !=
      (reduction ? reduction.getBuffers() : OperandRange(start->getOperands())))
    return emitOpError("expected the buffers of the collective, in its order");
  return success();
}
