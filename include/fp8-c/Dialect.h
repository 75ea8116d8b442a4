//===- fp8-c/Dialect.h - The fp8 dialect for C and bindings -------*- C -*-===//
//
// Declares the dialect's handle and its type for programs that build IR through
// MLIR's C interface (mlir-c/IR.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_C_DIALECT_H
#define FP8_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(FP8, fp8);

/// Returns the extent that stands for a whole dimension in a tile: `*`.
int64_t fp8ScaledTypeGetWholeTile(void);

/// Returns whether the type is a `!fp8.scaled`.
bool fp8TypeIsAScaled(MlirType type);

/// Returns the type id of `!fp8.scaled`.
MlirTypeID fp8ScaledTypeGetTypeID(void);

/// Returns the type `!fp8.scaled<shape x element, tile = [..], scale =
/// scaleType>`, or null with a diagnostic at the location if the parts are
/// inconsistent. `shape` and `tile` have `rank` elements.
MlirType fp8ScaledTypeGetChecked(MlirLocation location, intptr_t rank,
                                 const int64_t *shape, MlirType elementType,
                                 const int64_t *tile, MlirType scaleType);

/// Returns the number of dimensions.
intptr_t fp8ScaledTypeGetRank(MlirType type);

/// Return the size of a dimension, and the extent of the tile along it.
int64_t fp8ScaledTypeGetDimSize(MlirType type, intptr_t dim);
int64_t fp8ScaledTypeGetTileSize(MlirType type, intptr_t dim);

/// Return the types of one element of the payload and of one scale.
MlirType fp8ScaledTypeGetElementType(MlirType type);
MlirType fp8ScaledTypeGetScaleType(MlirType type);

/// Return the ranked tensor types of the payload and of the scales.
MlirType fp8ScaledTypeGetPayloadTensorType(MlirType type);
MlirType fp8ScaledTypeGetScaleTensorType(MlirType type);

/// Returns whether the whole tensor has a single scale.
bool fp8ScaledTypeIsPerTensor(MlirType type);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_DIALECT_H
