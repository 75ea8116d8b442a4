//===- Accesses.h - Accesses of ops to memory -------------------*- C++ -*-===//
//
// Which memory a buffer lies in, and what an op reads and writes: for passes on
// schedules, and on kernels after bufferization. Tensors, before that, have no
// memory: a value is never overwritten.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_ACCESSES_H
#define FP8_KERNELS_ACCESSES_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::fp8 {

/// Returns the argument, allocation or constant that owns the memory of
/// `buffer`, which may be a view.
Value memoryOf(Value buffer);

/// Returns the byte of its source at which a view begins, if it is constant.
std::optional<int64_t> beginOf(ViewLikeOpInterface view);

/// An access of an op, or of the ops inside of it, to `memory` (see memoryOf).
struct MemoryAccess {
  Value memory;
  bool reads, writes;
};

/// Returns the accesses of `op` and of the ops inside of it, one for each
/// memory, in the order of the first access; nullopt if they are not known.
/// Views and allocations access nothing.
std::optional<SmallVector<MemoryAccess>> accessesOf(Operation *op);

/// Returns false if the owner of `operand` only reads this buffer.
bool mayWrite(OpOperand &operand);

/// Returns by how much `value`, an integer or index, grows per iteration of
/// each of `loops` while the other loops do not advance; nullopt if that is not
/// constant.
std::optional<SmallVector<int64_t>> stridesOf(Value value,
                                              ArrayRef<scf::ForOp> loops);
/// The same for the address of a buffer, in bytes.
std::optional<SmallVector<int64_t>> stridesOfBuffer(Value buffer,
                                                    ArrayRef<scf::ForOp> loops);

/// Returns true if `op` writes every element of operand `init`.
bool writesAll(linalg::LinalgOp op, OpOperand &init);

/// Returns how the body of a kernel accesses `argument`, a tensor or buffer.
Access accessOf(BlockArgument argument);

} // namespace mlir::fp8

#endif // FP8_KERNELS_ACCESSES_H
