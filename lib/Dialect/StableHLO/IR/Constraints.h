//===- Constraints.h - Constraints that several ops share -------*- C++ -*-===//
//
// Each returns failure after an error `expected X but got Y` on `op`.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_IR_CONSTRAINTS_H
#define FP8_LIB_DIALECT_STABLEHLO_IR_CONSTRAINTS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace stablehlo {

LogicalResult expectType(Operation *op, Type expected, Type actual,
                         const Twine &what);

LogicalResult expectSize(Operation *op, int64_t expected, int64_t actual,
                         const Twine &what);

/// Checks that all of `dims` are in [0, bound).
LogicalResult expectInRange(Operation *op, ArrayRef<int64_t> dims,
                            int64_t bound, const Twine &what);

LogicalResult expectUnique(Operation *op, ArrayRef<int64_t> dims,
                           const Twine &what);

LogicalResult expectSorted(Operation *op, ArrayRef<int64_t> dims,
                           const Twine &what);

/// "[0, 2]", as errors print dimensions.
std::string toString(ArrayRef<int64_t> dims);

/// Checks a reduction body over the element types of `inputs`: (E..., E...) ->
/// E...
LogicalResult expectReducer(Operation *op, Region &region, ValueRange inputs,
                            const Twine &what);

/// Checks that a region maps 0-d tensors of `arguments` element types to those
/// of `results`.
LogicalResult expectScalarRegion(Operation *op, Region &region,
                                 ArrayRef<Type> arguments,
                                 ArrayRef<Type> results, const Twine &what);

/// Checks that a region returns values of these types.
LogicalResult expectRegionResults(Operation *op, Region &region,
                                  TypeRange results, const Twine &what);

inline RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

inline Type getScalarType(Type element) {
  return RankedTensorType::get({}, element);
}

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_IR_CONSTRAINTS_H
