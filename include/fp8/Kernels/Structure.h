//===- Structure.h - What kernels are made of -------------------*- C++ -*-===//
//
// Names of the attributes that kernel formation leaves for codegen, and the
// few questions about structured ops that several passes ask.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_STRUCTURE_H
#define FP8_KERNELS_STRUCTURE_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

inline constexpr llvm::StringLiteral kTaskDimsAttr =
    FP8Dialect::kTaskDimsAttrName;
inline constexpr llvm::StringLiteral kSweepAttr = FP8Dialect::kSweepAttrName;

/// The argument, allocation or constant in whose memory `buffer`, which may be
/// a view of it, lies.
Value memoryOf(Value buffer);

/// The symbol of `kernel`: a hash of what it computes, so that layers and steps
/// share it.
std::string nameOfContents(KernelOp kernel);

/// A function called `name`, where `builder` stands, that takes the body of
/// `op` (a kernel or a schedule): passes of upstream know functions alone. `op`
/// is left without a body.
func::FuncOp moveToFunction(OpBuilder &builder, FunctionOpInterface op,
                            StringRef name);

/// The bytes of a dense buffer; elements of less than a byte take a whole one.
int64_t byteSize(MemRefType type);

/// What a kernel does with `argument`, a tensor or buffer, as its body tells.
Access accessOf(BlockArgument argument);

/// Does `op` show a tensor in another shape?
bool isTensorView(Operation *op);

/// All loops are parallel.
bool allParallel(linalg::LinalgOp op);

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
