//===- SlotQuantization.h - How a slot's tensor is quantized ----*- C++ -*-===//
//
// A loop writes tensors into the slots of a stack, and another loop reads a
// slot and quantizes it. If the scale follows from the tensor and from the same
// slot of a state alone, the first loop can quantize as well.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_SLOTQUANTIZATION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_SLOTQUANTIZATION_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/IR/Builders.h"

#include <optional>
#include <vector>

namespace mlir {
namespace fp8 {

class SlotQuantization {
public:
  SlotQuantization() = default;

  /// Matches how `op` quantizes its tensor, which belongs to the slot at
  /// `index`. None if the result depends on anything but the tensor and the
  /// slot.
  static std::optional<SlotQuantization> match(QuantizeOp op, Value index);

  QuantizeOp getQuantize() const { return cast<QuantizeOp>(ops.back()); }
  /// Whether `op` is part of the quantization.
  bool contains(Operation *op) const;
  /// Returns the values that it reads from outside the loop.
  ArrayRef<Value> getOuterValues() const { return outer; }

  /// Whether both quantize alike, each with its own tensor and slot.
  bool operator==(const SlotQuantization &other) const {
    return key == other.key;
  }

  /// Clones the quantization for another tensor and another slot.
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

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_SLOTQUANTIZATION_H
