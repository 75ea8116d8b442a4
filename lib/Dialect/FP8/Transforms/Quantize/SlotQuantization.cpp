//===- SlotQuantization.cpp - How a slot's tensor is quantized ------------===//

#include "SlotQuantization.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether both indices are equal in every iteration.
static bool isSameIndex(Value a, Value b) {
  if (a == b)
    return true;
  auto first = stablehlo::matchAffineIndex(a),
       second = stablehlo::matchAffineIndex(b);
  return first && second && first->counter == second->counter &&
         first->scale == second->scale && first->offset == second->offset;
}

std::optional<SlotQuantization> SlotQuantization::match(QuantizeOp op,
                                                        Value index) {
  // Stochastic rounding depends on where it is computed.
  if (op->getNumOperands() != 3 || op->hasAttr(FP8Dialect::kRecomputedAttrName))
    return std::nullopt;
  SlotQuantization result(op, index);
  if (!result.add(op))
    return std::nullopt;
  return result;
}

bool SlotQuantization::contains(Operation *op) const {
  return llvm::is_contained(ops, op);
}

bool SlotQuantization::add(Operation *op) {
  if (contains(op))
    return true;
  if (!isa<QuantizeOp, AmaxOp, ComputeScaleOp, stablehlo::ReshapeOp,
           stablehlo::DynamicSliceOp, stablehlo::CompareOp, stablehlo::SelectOp,
           stablehlo::DivOp, stablehlo::ConvertOp, stablehlo::ConstantOp>(op))
    return false;
  std::vector<uintptr_t> operands;
  for (Value operand : op->getOperands())
    if (!addOperand(operand, operands))
      return false;
  auto note = [&](const void *pointer) {
    key.push_back(reinterpret_cast<uintptr_t>(pointer));
  };
  note(op->getName().getAsOpaquePointer());
  note(op->getDiscardableAttrDictionary().getAsOpaquePointer());
  note(op->getPropertiesAsAttribute().getAsOpaquePointer());
  for (Type type : op->getResultTypes())
    note(type.getAsOpaquePointer());
  llvm::append_range(key, operands);
  ops.push_back(op);
  return true;
}

bool SlotQuantization::addOperand(Value operand,
                                  std::vector<uintptr_t> &words) {
  enum : uintptr_t { Input, Slot, Outer, Result };
  Operation *def = operand.getDefiningOp();
  if (operand == input) {
    words.push_back(Input);
    return true;
  }
  if (isSameIndex(operand, index)) {
    if (!llvm::is_contained(indices, operand))
      indices.push_back(operand);
    words.push_back(Slot);
    return true;
  }
  // Constants may be in any block.
  if (def && (def->getBlock() == block || isa<stablehlo::ConstantOp>(def))) {
    if (!add(def))
      return false;
    words.push_back(Result);
    words.push_back(llvm::find(ops, def) - ops.begin());
    words.push_back(cast<OpResult>(operand).getResultNumber());
    return true;
  }
  if (operand.getParentBlock() == block)
    return false;
  outer.push_back(operand);
  words.push_back(Outer);
  words.push_back(reinterpret_cast<uintptr_t>(operand.getAsOpaquePointer()));
  return true;
}

Value SlotQuantization::clone(OpBuilder &builder, Value tensor,
                              Value slot) const {
  IRMapping mapping;
  mapping.map(input, tensor);
  for (Value index : indices) {
    Value mapped = slot;
    if (index.getType() != slot.getType())
      mapped = stablehlo::ConvertOp::create(builder, slot.getLoc(),
                                            index.getType(), slot);
    mapping.map(index, mapped);
  }
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  return mapping.lookup(ops.back()->getResult(0));
}
