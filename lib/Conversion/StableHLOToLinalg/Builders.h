//===- Builders.h - What lowerings build with -------------------*- C++ -*-===//
//
// Structured ops on tensors, and loop nests where the places of elements depend
// on data. `type` is always that of the result.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_STABLEHLOTOLINALG_BUILDERS_H
#define FP8_LIB_CONVERSION_STABLEHLOTOLINALG_BUILDERS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace mlir::fp8 {

using BodyBuilder = function_ref<void(OpBuilder &, Location, ValueRange)>;

//===----------------------------------------------------------------------===//
// Types, loops and maps
//===----------------------------------------------------------------------===//

RankedTensorType tensorType(Value value);

/// The type of a value after conversion.
RankedTensorType convertedType(Value value);

SmallVector<utils::IteratorType> iterators(unsigned parallel,
                                           unsigned reduction = 0);

AffineMap identityMap(OpBuilder &b, unsigned rank);

/// The first `count` of `loops` loops. (getMajorSubMap gives a null map for 0.)
AffineMap leadingDims(Builder &b, unsigned loops, unsigned count);

/// The last `count` of `loops` loops.
AffineMap trailingDims(Builder &b, unsigned loops, unsigned count);

/// The place of the `extent` iterations of loop `dim` in a dimension of a
/// tensor. linalg takes a bare loop for one that runs over the whole dimension,
/// so that one over its first part is written `dim mod size`, the same number.
AffineExpr placeOf(Builder &b, unsigned dim, int64_t extent, int64_t size,
                   int64_t offset, int64_t step = 1);

/// All elements of rank-0 tensors, whatever the loops.
AffineMap scalarMap(OpBuilder &b, unsigned loops);

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value emptyTensor(OpBuilder &b, Location loc, RankedTensorType type);

linalg::GenericOp generic(OpBuilder &b, Location loc, ValueRange inputs,
                          ValueRange outputs, ArrayRef<AffineMap> maps,
                          ArrayRef<utils::IteratorType> loops,
                          BodyBuilder body);

/// A generic over all elements of a new tensor.
Value elementwise(OpBuilder &b, Location loc, RankedTensorType type,
                  ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                  function_ref<Value(OpBuilder &, Location, ValueRange)> body);

/// Copies `input`, read through `map`, into a new tensor.
Value copyThrough(OpBuilder &b, Location loc, Value input, AffineMap map,
                  RankedTensorType type);

/// Copies `input` into the part of `destination` that `map` names.
Value place(OpBuilder &b, Location loc, Value input, Value destination,
            AffineMap map);

/// The element of a constant with one value, or null.
TypedAttr splatElement(Value tensor);

Value splatConstant(OpBuilder &b, Location loc, RankedTensorType type,
                    TypedAttr element);

/// A tensor that has the value of a rank-0 tensor everywhere, to be written to.
Value filled(OpBuilder &b, Location loc, RankedTensorType type, Value scalar);

Value filledWithZero(OpBuilder &b, Location loc, RankedTensorType type);

/// Element by element conversion to another float type.
Value convertFloats(OpBuilder &b, Location loc, Value tensor, Type element);

/// A tensor that a loop carries element by element: bf16 as its bits, since
/// LLVM rounds vectors of bf16 that it keeps in registers by calls.
Value asCarried(OpBuilder &b, Location loc, Value tensor);

/// Elements of type `element` from what a loop carried.
Value fromCarried(OpBuilder &b, Location loc, Value tensor, Type element);

/// Edge and interior padding, amounts as in stablehlo.pad.
Value padded(OpBuilder &b, Location loc, Value input, Value scalar,
             RankedTensorType type, ArrayRef<int64_t> low,
             ArrayRef<int64_t> interior);

/// Reshapes through the coarsest shape that both shapes refine.
Value reshaped(OpBuilder &b, Location loc, Value input, RankedTensorType type);

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

SmallVector<int64_t> orOnes(std::optional<ArrayRef<int64_t>> values,
                            unsigned rank);

/// Low and high padding of each dimension.
SmallVector<std::pair<int64_t, int64_t>>
paddings(std::optional<DenseIntElementsAttr> attr, unsigned rank);

/// `input` with edges of `pad` and holes of `dilation - 1` between elements.
Value dilated(OpBuilder &b, Location loc, Value input, Value scalar,
              ArrayRef<std::pair<int64_t, int64_t>> pad,
              ArrayRef<int64_t> dilation);

//===----------------------------------------------------------------------===//
// Single elements
//===----------------------------------------------------------------------===//

Value constantIndex(OpBuilder &b, Location loc, int64_t value);

/// The sum of two indices of which one may be null, for 0.
Value addIndex(OpBuilder &b, Location loc, Value l, Value r);

/// The bits of a scalar as another type; nothing if it has the type.
Value bitcastTo(OpBuilder &b, Location loc, Value value, Type type);

/// An integer element as an index; `type` says whether it has a sign.
Value toIndex(OpBuilder &b, Location loc, Value value, Type type);

Value clampIndex(OpBuilder &b, Location loc, Value index, int64_t high);

/// Builds a nest of loops over `extents` that carries `inits`, the code of one
/// kernel. The body gets the loop indices and the carried values, and returns
/// the new ones.
SmallVector<Value> loopNest(
    OpBuilder &b, Location loc, ArrayRef<int64_t> extents, ValueRange inits,
    SmallVector<Value> &indices,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)> body);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_STABLEHLOTOLINALG_BUILDERS_H
