//===- Dialect.cpp - C interface of the fp8 dialect -----------------------===//

#include "fp8-c/Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"

using namespace mlir;
using namespace mlir::fp8;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(FP8, fp8, mlir::fp8::FP8Dialect)

static ScaledType unwrapScaled(MlirType type) {
  return cast<ScaledType>(unwrap(type));
}

int64_t fp8ScaledTypeGetWholeTile(void) { return ScaledType::kWhole; }

bool fp8TypeIsAScaled(MlirType type) { return isa<ScaledType>(unwrap(type)); }

MlirTypeID fp8ScaledTypeGetTypeID(void) {
  return wrap(ScaledType::getTypeID());
}

MlirType fp8ScaledTypeGetChecked(MlirLocation location, intptr_t rank,
                                 const int64_t *shape, MlirType elementType,
                                 const int64_t *tile, MlirType scaleType) {
  Location loc = unwrap(location);
  return wrap(
      ScaledType::getChecked([&] { return emitError(loc); }, loc.getContext(),
                             llvm::ArrayRef(shape, rank), unwrap(elementType),
                             llvm::ArrayRef(tile, rank), unwrap(scaleType)));
}

intptr_t fp8ScaledTypeGetRank(MlirType type) {
  return unwrapScaled(type).getRank();
}

int64_t fp8ScaledTypeGetDimSize(MlirType type, intptr_t dim) {
  return unwrapScaled(type).getShape()[dim];
}

int64_t fp8ScaledTypeGetTileSize(MlirType type, intptr_t dim) {
  return unwrapScaled(type).getTile()[dim];
}

MlirType fp8ScaledTypeGetElementType(MlirType type) {
  return wrap(unwrapScaled(type).getElementType());
}

MlirType fp8ScaledTypeGetScaleType(MlirType type) {
  return wrap(unwrapScaled(type).getScaleType());
}

MlirType fp8ScaledTypeGetPayloadTensorType(MlirType type) {
  return wrap(Type(unwrapScaled(type).getPayloadType()));
}

MlirType fp8ScaledTypeGetScaleTensorType(MlirType type) {
  return wrap(Type(unwrapScaled(type).getScaleTensorType()));
}

bool fp8ScaledTypeIsPerTensor(MlirType type) {
  return unwrapScaled(type).isPerTensor();
}
