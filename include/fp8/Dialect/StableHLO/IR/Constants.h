//===- Constants.h - Constants that repeat one element ----------*- C++ -*-===//
//
// A reader of constants says what it looks through: nothing, or
// `getSplat(skipBroadcasts(value))`, or `getSplat(skipSpread(value))`.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_CONSTANTS_H
#define FP8_DIALECT_STABLEHLO_IR_CONSTANTS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include <optional>

namespace mlir::stablehlo {

/// Returns what `value` is before it is broadcast.
Value skipBroadcasts(Value value);

/// Returns what `value` is before it is broadcast, converted or reshaped.
Value skipSpread(Value value);

/// Returns the element that a constant repeats; null if its elements differ, or
/// if `value` is no constant.
Attribute getSplat(Value value);

/// Returns this element as a number: true is 1, and unsigned integers are not
/// negative.
std::optional<double> getSplatNumber(Value value);

/// Whether `value` is a constant of zeros, of which -0 is one.
bool isZeros(Value value);

/// Makes a constant of `type` that repeats an element.
Value makeSplat(OpBuilder &builder, Location loc, Type type, Attribute element);

/// Makes a constant of `type` whose elements all equal `value`.
Value integerConstant(OpBuilder &builder, Location loc, Type type,
                      int64_t value);

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_CONSTANTS_H
