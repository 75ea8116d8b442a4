//===- fp8-c/Dialect.h - The fp8 dialect for C and bindings -------*- C -*-===//
//
// The dialect's handle and its type, for programs that build IR through MLIR's
// C interface (mlir-c/IR.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_C_DIALECT_H
#define FP8_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(FP8, fp8);

/// The extent of a tile that is as large as its dimension: `*`.
int64_t fp8ScaledTypeGetWholeTile(void);

/// Whether the type is a `!fp8.scaled`.
bool fp8TypeIsAScaled(MlirType type);

/// The type id of `!fp8.scaled`.
MlirTypeID fp8ScaledTypeGetTypeID(void);

/// The type `!fp8.scaled<shape x element, tile = [..], scale = scaleType>`;
/// null, with a diagnostic at the location, where the parts do not fit each
/// other. `shape` and `tile` have `rank` elements.
MlirType fp8ScaledTypeGetChecked(MlirLocation location, intptr_t rank,
                                 const int64_t *shape, MlirType elementType,
                                 const int64_t *tile, MlirType scaleType);

/// The number of dimensions.
intptr_t fp8ScaledTypeGetRank(MlirType type);

/// The size of a dimension, and the extent of the tile along it.
int64_t fp8ScaledTypeGetDimSize(MlirType type, intptr_t dim);
int64_t fp8ScaledTypeGetTileSize(MlirType type, intptr_t dim);

/// The types of one element of the payload and of one scale.
MlirType fp8ScaledTypeGetElementType(MlirType type);
MlirType fp8ScaledTypeGetScaleType(MlirType type);

/// The ranked tensor types of the payload and of all scales.
MlirType fp8ScaledTypeGetPayloadTensorType(MlirType type);
MlirType fp8ScaledTypeGetScaleTensorType(MlirType type);

/// Whether one scale serves the whole tensor.
bool fp8ScaledTypeIsPerTensor(MlirType type);

#ifdef __cplusplus
}
#endif

#endif // FP8_C_DIALECT_H
