//===- Nests.h - Structured ops that share a loop nest ----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_NESTS_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_NESTS_H

#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <variant>

namespace mlir::fp8::lowering {

/// Structured ops with equal loops that become one loop nest.
struct Nest {
  SmallVector<linalg::GenericOp> ops;
  SmallVector<int64_t> extents;   // whole
  llvm::SmallBitVector reduction; // loops that some op reduces over
  std::optional<unsigned> vectorLoop;
  int64_t lanes = 1;
  /// Vectors start at multiples of `lanes`.
  bool startsAligned = false;
};

/// What a tile is made of, in order: nests, and fills, dots and loops alone.
using TileParts = SmallVector<std::variant<Nest, Operation *>>;

/// Joins the ops of a kernel's `body`, without the fills in `absorbed`, to
/// nests that have their vector loop. The domain is cut into tiles.
TileParts collectNests(Block &body, ArrayRef<int64_t> domain,
                       ArrayRef<int64_t> tile,
                       const llvm::SmallPtrSetImpl<Operation *> &absorbed);

/// The loops of `op` that the domain cuts, by domain loop.
SmallVector<int64_t> taskDims(Operation *op);

/// The map of an operand with `loop mod size` (which the structured form uses
/// where a tensor is larger than the loop) read as what it is: the loop.
AffineMap indexingMap(linalg::GenericOp op, OpOperand &operand);

/// How an access moves when the vector loop advances by one.
enum class Stride { Invariant, Contiguous, Other };

/// Vectors start at multiples of `lanes`, if that is more than 1: quotients by
/// multiples of that are the same for all of their lanes.
Stride strideOf(AffineMap map, unsigned dim, int64_t lanes);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_NESTS_H
