//===- RowDraws.cpp - Random numbers for a rank's own rows ----------------===//

#include "RowDraws.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

using namespace mlir;
using namespace mlir::fp8;

RowDraws::Key RowDraws::keyOf(Value value, ArrayRef<RowDim> rows) {
  Key key{value.getAsOpaquePointer(), {}};
  for (const RowDim &row : rows)
    llvm::append_values(key.second, row.dim, row.outer, row.size);
  return key;
}

/// Whether the rows take all of dimension `dim`.
static bool areAllOf(ArrayRef<RowDim> rows, int64_t dim,
                     ArrayRef<int64_t> shape) {
  return rows.size() == 1 && rows[0] == RowDim{dim, 1, shape[dim]};
}

static bool isUnsigned(Value value) {
  return getElementTypeOrSelf(value.getType()).isUnsignedInteger();
}

RowDraws::Class RowDraws::classify(Value value, ArrayRef<RowDim> rows) {
  auto [known, isNew] = classes.try_emplace(keyOf(value, rows), Class::Other);
  if (!isNew)
    return known->second;
  auto result = dyn_cast<OpResult>(value);
  // (Other entries may be added meanwhile: references into a map stay valid.)
  if (isSameForRows(value, rows))
    known->second = Class::Same;
  else if (result)
    known->second = classifyOp(result, rows);
  return known->second;
}

RowDraws::Class RowDraws::classifyOp(OpResult result, ArrayRef<RowDim> rows) {
  Operation *op = result.getOwner();
  ArrayRef<int64_t> shape = shapeOf(result);
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op))
    return areAllOf(rows, iota.getIotaDimension(), shape) ? Class::Position
                                                          : Class::Other;
  // The next state of one rank would let it draw what others have drawn.
  if (auto generator = dyn_cast<stablehlo::RngBitGeneratorOp>(op))
    return result == generator.getOutput() &&
                   generator.getOutputState().use_empty() &&
                   areAllOf(rows, 0, shape)
               ? Class::Random
               : Class::Other;
  auto origins = findRowOrigins(result, rows);
  if (!origins)
    return Class::Other;
  unsigned random = 0, position = 0;
  for (const RowOrigin &origin : *origins)
    switch (classify(origin.operand->get(), origin.rows)) {
    case Class::Same:
      break;
    case Class::Position:
      ++position;
      break;
    case Class::Random:
      ++random;
      break;
    case Class::Other:
      return Class::Other;
    }
  if (position == 0)
    return random > 0 ? Class::Random : Class::Same;
  // A round of threefry mixes its two words, one of which counts. Random bits
  // stay random, whatever is added to them.
  if (isUnsigned(result) &&
      ((isa<stablehlo::XorOp>(op) && (random > 0 || position > 1)) ||
       (isa<stablehlo::AddOp>(op) && random > 0)))
    return Class::Random;
  return op->getNumResults() == 1 ? Class::Position : Class::Other;
}

/// Counts rows from where the rank before ends. If the batch is a rank's own,
/// that is, behind other dimensions, where all their indices end, as if the
/// rank before had had a row for each.
Value RowDraws::countOnRank(OpBuilder &builder, stablehlo::IotaOp iota) {
  Location loc = iota.getLoc();
  RankedTensorType type = iota.getType();
  auto dim = static_cast<int64_t>(iota.getIotaDimension());
  int64_t before = llvm::product_of(type.getShape().take_front(dim));
  if (before == 1 || batch == BatchOf::AllRanks)
    return RowIotaOp::create(builder, loc, type, dim);
  int64_t rows = type.getDimSize(dim);
  Value all =
      RowIotaOp::create(builder, loc, type.clone({before * rows}), /*dim=*/0);
  Value own = stablehlo::SliceOp::create(
      builder, loc, type.clone({rows}), all, builder.getDenseI64ArrayAttr({0}),
      builder.getDenseI64ArrayAttr({rows}), builder.getDenseI64ArrayAttr({1}));
  return stablehlo::BroadcastInDimOp::create(
      builder, loc, type, own, builder.getDenseI64ArrayAttr({dim}));
}

/// Returns the value that counts the rows of all ranks, for one that counts
/// those of one device.
Value RowDraws::positionOnRank(Value value, ArrayRef<RowDim> rows) {
  if (classify(value, rows) != Class::Position)
    return value;
  auto [known, isNew] = positions.try_emplace(keyOf(value, rows));
  if (!isNew)
    return known->second;
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op))
    return known->second = countOnRank(builder, iota);
  SmallVector<Value> operands(op->getOperands());
  auto origins = *findRowOrigins(result, rows);
  for (const RowOrigin &origin : origins)
    operands[origin.operand->getOperandNumber()] =
        positionOnRank(origin.operand->get(), origin.rows);
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  return known->second = copy->getResult(0);
}

/// Returns the number of generator blocks that the bits of one rank use.
static int64_t blocksOf(stablehlo::RngBitGeneratorOp op) {
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  int64_t elements = type.getNumElements();
  if (op.getRngAlgorithm() == stablehlo::RngAlgorithm::THREE_FRY)
    return elements;
  return llvm::divideCeil(elements, type.getElementTypeBitWidth() > 32 ? 2 : 4);
}

bool RowDraws::draw(Value value, ArrayRef<RowDim> rows) {
  if (classify(value, rows) != Class::Random ||
      !drawn.insert(keyOf(value, rows)).second)
    return false;
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (auto generator = dyn_cast<stablehlo::RngBitGeneratorOp>(op)) {
    // The next state of the step is the same on all ranks.
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value state = RowStateOp::create(
        builder, op->getLoc(), generator.getInitialState().getType(),
        generator.getInitialState(), blocksOf(generator));
    auto own = cast<stablehlo::RngBitGeneratorOp>(builder.clone(*op));
    own->setOperand(0, state);
    generator.getOutput().replaceAllUsesWith(own.getOutput());
    return true;
  }
  // (List the origins first, because drawing changes operands.)
  auto origins = *findRowOrigins(result, rows);
  bool changed = false;
  for (const RowOrigin &origin : origins) {
    Value operand = origin.operand->get();
    if (classify(operand, origin.rows) == Class::Position) {
      origin.operand->set(positionOnRank(operand, origin.rows));
      changed = true;
    } else {
      changed |= draw(operand, origin.rows);
    }
  }
  return changed;
}
