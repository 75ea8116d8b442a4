//===- FP8Types.h - Types of the fp8 dialect --------------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8TYPES_H
#define FP8_DIALECT_FP8_IR_FP8TYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Types.h"

#define GET_TYPEDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Types.h.inc"

namespace mlir {
namespace fp8 {

/// Whether a type is one of the FP8 formats: f8E4M3FN, f8E5M2,
/// f8E4M3, f8E4M3FNUZ or f8E5M2FNUZ.
bool isFormat(Type type);

/// Whether a type may be the payload of a scaled tensor: an FP8 format, or f16
/// for arrays that are stored with a scale.
bool isPayload(Type type);

/// Returns the largest finite value of a float type, e.g. 448 for f8E4M3FN.
double getLargestFinite(FloatType format);

/// Returns the exponent of the largest finite value: 8 for f8E4M3FN, 15 for
/// f8E5M2.
int getLargestExponent(FloatType format);

/// Returns the shape of the scales of a tensor with this tile (see ScaledType).
SmallVector<int64_t> getScaleShape(ArrayRef<int64_t> shape,
                                   ArrayRef<int64_t> tile);

/// Returns the f32 tensor type of the quantizer of a scaled tensor.
RankedTensorType getQuantizerType(ScaledType type);

} // namespace fp8
} // namespace mlir

#endif // FP8_DIALECT_FP8_IR_FP8TYPES_H
