//===- Structure.h - Queries of kernels -------------------------*- C++ -*-===//
//
// Queries on structured ops that several passes share.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_STRUCTURE_H
#define FP8_KERNELS_STRUCTURE_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// The elements of a line of the cache, as f32, and the fewest lines next to
/// each other that columns of a large value should have.
inline constexpr int64_t kLineElements = 16, kColumnLines = 8;

/// Returns the symbol of `kernel`: a hash of what it computes, so that layers
/// and steps share equal kernels.
std::string nameOfContents(KernelOp kernel);

/// Checks that a kernel divides into its slices and has only buffers and, in
/// its body, ops that codegen lowers.
LogicalResult verifyBody(KernelOp kernel);

/// Checks that all launches are of kernels, as they are until `fp8-codegen`
/// makes functions of these.
LogicalResult verifyLaunches(ModuleOp module);

/// Creates a function called `name` at the insertion point of `builder` and
/// moves the body of `op`, a kernel or a schedule, into it: upstream passes
/// only know functions. `op` is left without a body.
func::FuncOp moveToFunction(OpBuilder &builder, FunctionOpInterface op,
                            StringRef name);

/// Buffers of the arena begin at multiples of this. It is the size of a cache
/// line, so that tasks that write adjacent buffers do not share one.
constexpr int64_t kArenaAlignment = 64;

/// Return the bytes and the number of elements of a tensor; 0 for other values.
int64_t bytesOf(Value value);
int64_t elementsOf(Value value);

/// Returns true if `op` only reshapes a tensor.
bool isTensorView(Operation *op);

/// Returns true if all loops are parallel.
bool allParallel(linalg::LinalgOp op);

/// Returns the position in `map`'s results that is exactly loop `dim`; nullopt
/// if there is none or if another result uses that loop.
std::optional<unsigned> plainPosition(AffineMap map, unsigned dim);

/// Creates an op whose result has, for each element of a tensor, what `body`
/// makes of it, of type `element`; without a body, a copy.
linalg::GenericOp
createElementwise(OpBuilder &builder, Location loc, Value value, Type element,
                  function_ref<Value(OpBuilder &, Location, Value)> body = {});

/// Returns true if all that `op` does is to copy elements of its only input.
bool isCopy(linalg::GenericOp op);

/// Returns true if all that `op` does is to copy an FP8 payload to an argument
/// of its kernel, in an order of dimensions in which another one is contiguous,
/// and if no other structured op of the kernel accesses that argument.
bool isTranspose(linalg::GenericOp op);

/// Sets the indexing map of an operand of a `linalg.generic`.
void setIndexingMap(OpOperand &operand, AffineMap map);

/// Returns the number of iterations of all loops.
int64_t iterationVolume(linalg::LinalgOp op);

/// Returns the op in a reduction's body that combines an element with the
/// running value of output `index`, if it is associative and commutative up to
/// rounding and has a neutral element, and if it is the only use of the running
/// value. Returns null otherwise.
Operation *reductionCombiner(linalg::GenericOp op, unsigned index);

} // namespace mlir::fp8

#endif // FP8_KERNELS_STRUCTURE_H
