//===- SlotQuantization.h - How the tensor of a slot is quantized -*- C++
//-*-===//
//
// A loop writes tensors into the slots of a stack, another one reads a slot and
// quantizes it. What the scale is computed from may be the tensor itself and
// the same slot of a state: relative to tensor and slot, the first loop can do
// it as well.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SLOTQUANTIZATION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SLOTQUANTIZATION_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/IR/Builders.h"

#include <optional>
#include <vector>

namespace mlir {
namespace fp8 {

class SlotQuantization {
public:
  SlotQuantization() = default;

  /// How `op` quantizes its tensor, which belongs to the slot at `index`; none
  /// if anything but the tensor and the slot has a part in it.
  static std::optional<SlotQuantization> match(QuantizeOp op, Value index);

  QuantizeOp getQuantize() const { return cast<QuantizeOp>(ops.back()); }
  /// Whether `op` is a part of it.
  bool contains(Operation *op) const;
  /// The values that it reads from outside of the loop.
  ArrayRef<Value> getOuterValues() const { return outer; }

  /// Whether both do the same, each with its tensor and its slot.
  bool operator==(const SlotQuantization &other) const {
    return key == other.key;
  }

  /// The same of another tensor and another slot.
  Value clone(OpBuilder &builder, Value tensor, Value slot) const;

private:
  SlotQuantization(QuantizeOp op, Value index)
      : input(op.getInput()), index(index), block(op->getBlock()) {}

  bool add(Operation *op);
  bool addOperand(Value operand, std::vector<uintptr_t> &words);

  Value input, index;
  Block *block = nullptr;
  SmallVector<Operation *> ops; // what the block computes, in order
  SmallVector<Value> indices;   // values equal to `index`
  SmallVector<Value> outer;
  std::vector<uintptr_t> key;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SLOTQUANTIZATION_H
