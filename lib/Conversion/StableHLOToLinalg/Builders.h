//===- Builders.h - Builders for lowerings ----------------------*- C++ -*-===//
//
// Builders of structured ops on tensors, and of loop nests for element
// positions that depend on data. `type` is always the type of the result.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_STABLEHLOTOLINALG_BUILDERS_H
#define FP8_LIB_CONVERSION_STABLEHLOTOLINALG_BUILDERS_H

#include "../Tensors.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace mlir::fp8 {

using BodyBuilder = function_ref<void(OpBuilder &, Location, ValueRange)>;

//===----------------------------------------------------------------------===//
// Types, loops and maps
//===----------------------------------------------------------------------===//

RankedTensorType tensorType(Value value);

/// Returns the type of a value after conversion.
RankedTensorType convertedType(Value value);

SmallVector<utils::IteratorType> iterators(unsigned parallel,
                                           unsigned reduction = 0);

/// Returns the first `count` of `loops` loops. (getMajorSubMap returns a null
/// map for 0.)
AffineMap leadingDims(Builder &b, unsigned loops, unsigned count);

/// Returns the index of loop `dim`, which has `extent` iterations, in a
/// dimension of a tensor of the given size. linalg assumes that a bare loop
/// runs over the whole dimension, so a loop over its first part is written as
/// the equal `dim mod size`.
AffineExpr placeOf(Builder &b, unsigned dim, int64_t extent, int64_t size,
                   int64_t offset, int64_t step = 1);

/// Returns the map of a rank-0 tensor for any number of loops.
AffineMap scalarMap(OpBuilder &b, unsigned loops);

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

linalg::GenericOp generic(OpBuilder &b, Location loc, ValueRange inputs,
                          ValueRange outputs, ArrayRef<AffineMap> maps,
                          ArrayRef<utils::IteratorType> loops,
                          BodyBuilder body);

/// Creates a generic over all elements of a new tensor.
Value elementwise(OpBuilder &b, Location loc, RankedTensorType type,
                  ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                  function_ref<Value(OpBuilder &, Location, ValueRange)> body);

/// Copies `input`, read through `map`, into a new tensor.
Value copyThrough(OpBuilder &b, Location loc, Value input, AffineMap map,
                  RankedTensorType type);

/// Copies `input` into the part of `destination` that `map` selects.
Value place(OpBuilder &b, Location loc, Value input, Value destination,
            AffineMap map);

/// Returns the element of a splat constant, or null.
TypedAttr splatElement(Value tensor);

Value splatConstant(OpBuilder &b, Location loc, RankedTensorType type,
                    TypedAttr element);

/// Creates a writable tensor filled with the value of a rank-0 tensor.
Value filled(OpBuilder &b, Location loc, RankedTensorType type, Value scalar);

/// Converts each element to another float type.
Value convertFloats(OpBuilder &b, Location loc, Value tensor, Type element);

/// Prepares a tensor to be carried by an element-wise loop: bf16 becomes its
/// bits, because LLVM rounds bf16 vectors in registers by calls.
Value asCarried(OpBuilder &b, Location loc, Value tensor);

/// Returns elements of type `element` from a tensor that a loop carried.
Value fromCarried(OpBuilder &b, Location loc, Value tensor, Type element);

/// Adds edge and interior padding, with amounts as in stablehlo.pad.
Value padded(OpBuilder &b, Location loc, Value input, Value scalar,
             RankedTensorType type, ArrayRef<int64_t> low,
             ArrayRef<int64_t> interior);

/// Reshapes through the coarsest shape that both shapes refine.
Value reshaped(OpBuilder &b, Location loc, Value input, RankedTensorType type);

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Pads `input` with edges of `pad` and holes of `dilation - 1` between
/// elements.
Value dilated(OpBuilder &b, Location loc, Value input, Value scalar,
              ArrayRef<std::pair<int64_t, int64_t>> pad,
              ArrayRef<int64_t> dilation);

//===----------------------------------------------------------------------===//
// Single elements
//===----------------------------------------------------------------------===//

Value constantIndex(OpBuilder &b, Location loc, int64_t value);

/// Returns the sum of two indices; null stands for 0.
Value addIndex(OpBuilder &b, Location loc, Value l, Value r);

/// Bitcasts a scalar to `type`, unless it has that type.
Value bitcastTo(OpBuilder &b, Location loc, Value value, Type type);

/// Converts an integer element to an index; `type` determines its signedness.
Value toIndex(OpBuilder &b, Location loc, Value value, Type type);

Value clampIndex(OpBuilder &b, Location loc, Value index, int64_t high);

/// Builds a nest of loops over `extents` that carries `inits` and becomes one
/// kernel. The body gets the loop indices and the carried values, and returns
/// the new values.
SmallVector<Value> loopNest(
    OpBuilder &b, Location loc, ArrayRef<int64_t> extents, ValueRange inits,
    SmallVector<Value> &indices,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)> body);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_STABLEHLOTOLINALG_BUILDERS_H
