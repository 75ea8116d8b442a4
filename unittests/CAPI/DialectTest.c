/*===- DialectTest.c - The type of the fp8 dialect from C -----------------===*/

#include "fp8-c/Dialect.h"

#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* The text that was printed or reported last. */
static char text[256];

static void append(MlirStringRef part, void *data) {
  (void)data;
  strncat(text, part.data, part.length);
}

static const char *print(MlirType type) {
  text[0] = 0;
  mlirTypePrint(type, append, NULL);
  return text;
}

static MlirLogicalResult remember(MlirDiagnostic diagnostic, void *data) {
  (void)data;
  text[0] = 0;
  mlirDiagnosticPrint(diagnostic, append, NULL);
  return mlirLogicalResultSuccess();
}

int main(void) {
  MlirContext context = mlirContextCreate();
  mlirDialectHandleRegisterDialect(mlirGetDialectHandle__fp8__(), context);
  CHECK(!mlirDialectIsNull(mlirContextGetOrLoadDialect(
      context, mlirStringRefCreateFromCString("fp8"))));

  MlirLocation location = mlirLocationUnknownGet(context);
  MlirType format = mlirFloat8E4M3FNTypeGet(context);
  MlirType f32 = mlirF32TypeGet(context);
  int64_t shape[2] = {64, 300}, blocks[2] = {1, 128};
  int64_t whole = fp8ScaledTypeGetWholeTile();
  int64_t all[2] = {whole, whole};

  MlirType type =
      fp8ScaledTypeGetChecked(location, 2, shape, format, blocks, f32);
  CHECK(fp8TypeIsAScaled(type));
  CHECK(mlirTypeIDEqual(mlirTypeGetTypeID(type), fp8ScaledTypeGetTypeID()));
  CHECK(!strcmp(print(type),
                "!fp8.scaled<64x300xf8E4M3FN, tile = [1, 128], scale = f32>"));
  CHECK(mlirTypeEqual(
      type, mlirTypeParseGet(context, mlirStringRefCreateFromCString(text))));
  CHECK(fp8ScaledTypeGetRank(type) == 2);
  CHECK(fp8ScaledTypeGetDimSize(type, 1) == 300);
  CHECK(fp8ScaledTypeGetTileSize(type, 1) == 128);
  CHECK(mlirTypeEqual(fp8ScaledTypeGetElementType(type), format));
  CHECK(mlirTypeEqual(fp8ScaledTypeGetScaleType(type), f32));
  CHECK(!fp8ScaledTypeIsPerTensor(type));
  CHECK(!strcmp(print(fp8ScaledTypeGetPayloadTensorType(type)),
                "tensor<64x300xf8E4M3FN>"));
  CHECK(!strcmp(print(fp8ScaledTypeGetScaleTensorType(type)),
                "tensor<64x3xf32>"));

  MlirType tensor =
      fp8ScaledTypeGetChecked(location, 2, shape, format, all, f32);
  CHECK(fp8ScaledTypeIsPerTensor(tensor));
  CHECK(!strcmp(print(fp8ScaledTypeGetScaleTensorType(tensor)), "tensor<f32>"));
  CHECK(!fp8TypeIsAScaled(f32));

  /* Inconsistent parts are an error that names the expected ones. */
  MlirDiagnosticHandlerID handler =
      mlirContextAttachDiagnosticHandler(context, remember, NULL, NULL);
  CHECK(mlirTypeIsNull(
      fp8ScaledTypeGetChecked(location, 2, shape, f32, blocks, f32)));
  CHECK(strstr(text, "expected a payload of f8E4M3FN"));
  mlirContextDetachDiagnosticHandler(context, handler);

  mlirContextDestroy(context);
  if (!failures)
    puts("all right");
  return failures != 0;
}
