//===- Structure.h - What kernels are made of -------------------*- C++ -*-===//
//
// Names of the attributes that kernel formation leaves for codegen, and the
// few questions about structured ops that several passes ask.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_STRUCTURE_H
#define FP8_KERNELS_STRUCTURE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Function attribute (DenseI64ArrayAttr): extents of the loops that all ops of
/// a kernel share. Its presence marks a function as a kernel.
inline constexpr llvm::StringLiteral kDomainAttr = "fp8.domain";
/// Function attribute (DenseI64ArrayAttr): tile size per domain loop.
inline constexpr llvm::StringLiteral kTileAttr = "fp8.tile";
/// Op attribute (DenseI64ArrayAttr): the op's loop for each domain loop.
inline constexpr llvm::StringLiteral kTaskDimsAttr = "fp8.task_dims";
/// Op attribute (IntegerAttr): computed again for a sweep of that number; it is
/// not to be in one kernel with what computed it first.
inline constexpr llvm::StringLiteral kSweepAttr = "fp8.sweep";
/// Function attribute (UnitAttr): a kernel that copies its first argument to
/// its second.
inline constexpr llvm::StringLiteral kCopyAttr = "fp8.copy";
/// Function attribute (IntegerAttr): bytes of the arena of a schedule.
inline constexpr llvm::StringLiteral kArenaBytesAttr = "fp8.arena_bytes";

/// Does `op` of a schedule show a buffer, or a part of it, in another shape?
bool isBufferView(Operation *op);

/// The buffer that views of it lead to.
Value rootOf(Value buffer);

/// Does `op` show a tensor in another shape?
bool isTensorView(Operation *op);

/// All loops are parallel.
bool allParallel(linalg::LinalgOp op);

/// A dot: a contraction with row and column loops, so that packing pays.
/// Contractions without either are ordinary reductions.
bool isDot(linalg::GenericOp op);

/// The position in `map`'s results that is exactly loop `dim` while no other
/// result uses that loop; nullopt if there is none.
std::optional<unsigned> plainPosition(AffineMap map, unsigned dim);

/// Number of iterations of all loops.
int64_t iterationVolume(linalg::LinalgOp op);

/// The op in a reduction's body that combines an element with the running
/// value of output `index` (which it uses once), if it is associative and
/// commutative up to rounding and has a neutral element; null otherwise.
Operation *reductionCombiner(linalg::GenericOp op, unsigned index);

} // namespace mlir::fp8

#endif // FP8_KERNELS_STRUCTURE_H
