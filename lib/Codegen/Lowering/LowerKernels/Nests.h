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
  /// Whether vectors start at multiples of `lanes`.
  bool startsAligned = false;
};

/// The parts of a tile in order: nests, and single fills, dots and loops.
using TileParts = SmallVector<std::variant<Nest, Operation *>>;

/// Joins the ops of a kernel's `body`, except the fills in `absorbed`, into
/// nests and chooses their vector loops. `tile` is the tile of the domain.
TileParts collectNests(Block &body, ArrayRef<int64_t> domain,
                       ArrayRef<int64_t> tile,
                       const llvm::SmallPtrSetImpl<Operation *> &absorbed);

/// Returns the loop of `op` for each domain loop; -1 for none.
SmallVector<int64_t> taskDims(Operation *op);

/// Returns the map of an operand with `loop mod size` replaced by the loop.
/// (The structured form uses the modulo where a tensor is larger than the
/// loop.)
AffineMap indexingMap(linalg::GenericOp op, OpOperand &operand);

/// How the address of an access changes when the vector loop advances by one.
enum class Stride { Invariant, Contiguous, Other };

/// Returns the stride of an access along loop `dim`. If `lanes` is more than 1,
/// vectors start at multiples of it, so that quotients by multiples of `lanes`
/// are the same for all lanes of a vector.
Stride strideOf(AffineMap map, unsigned dim, int64_t lanes);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_NESTS_H
