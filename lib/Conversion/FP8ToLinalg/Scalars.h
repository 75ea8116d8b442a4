//===- Scalars.h - Scalar arithmetic in bodies of generics ------*- C++ -*-===//
//
// Shared by the lowerings of the fp8 ops: a builder of scalar f32 and i32
// arithmetic, elementwise generics, and the map that finds an element's scale.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_SCALARS_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_SCALARS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir {
class RewritePatternSet;
class TypeConverter;
namespace fp8 {

/// Writes scalar f32 and i32 arithmetic for the body of a generic.
struct Body {
  OpBuilder &b;
  Location loc;

  Value f32(APFloat value) {
    return arith::ConstantOp::create(b, loc,
                                     b.getFloatAttr(b.getF32Type(), value));
  }
  Value f32(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value i32(int64_t value) {
    // Takes the low 32 bits, so that unsigned constants work, too.
    return arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value i64(uint64_t value) {
    return arith::ConstantOp::create(
        b, loc, b.getI64IntegerAttr(static_cast<int64_t>(value)));
  }
  Value infinity() { return f32(APFloat::getInf(APFloat::IEEEsingle())); }
  Value nan() { return f32(APFloat::getQNaN(APFloat::IEEEsingle())); }

  /// Converts a float of any width to f32.
  Value toF32(Value value) {
    if (value.getType().isF32())
      return value;
    return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  }
  /// Converts an f32 to a float of any width.
  Value fromF32(Value value, Type type) {
    if (type.isF32())
      return value;
    return arith::TruncFOp::create(b, loc, type, value);
  }
  Value cmp(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  Value cmp(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return arith::SelectOp::create(b, loc, condition, lhs, rhs);
  }
  template <typename OpTy> Value binary(Value lhs, Value rhs) {
    return OpTy::create(b, loc, lhs, rhs);
  }
  Value bits(Value value) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  }
  Value fromBits(Value value) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), value);
  }
};

/// Creates an elementwise generic over the shape of the results. Inputs are
/// read through `maps`; if the list is empty, through identity maps.
linalg::GenericOp
elementwise(OpBuilder &b, Location loc, ArrayRef<RankedTensorType> results,
            ValueRange inputs, ArrayRef<AffineMap> maps,
            function_ref<SmallVector<Value>(Body &, ValueRange)> body);

/// Returns the index of the scale of the element at `place`, for a tensor of
/// this shape and tile: `place floordiv tile`, and 0 along dimensions with one
/// scale.
SmallVector<AffineExpr> getScalePlace(ArrayRef<int64_t> shape,
                                      ArrayRef<int64_t> tile,
                                      ArrayRef<AffineExpr> place,
                                      MLIRContext *context);

/// Adds the patterns of the scaling ops, of rank ops, and of the dot.
void populateScalingPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns);
void populateRankPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populateWindowsPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns);
void populateDotPatterns(const TypeConverter &converter,
                         RewritePatternSet &patterns);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_SCALARS_H
