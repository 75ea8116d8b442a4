//===- ElementTypes.cpp - Element types of the runtime --------------------===//

#include "fp8/Support/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::fp8;

fp8_dtype fp8::dtypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return FP8_DTYPE_BOOL;
    case 8:
      return isUnsigned ? FP8_DTYPE_U8 : FP8_DTYPE_I8;
    case 16:
      return isUnsigned ? FP8_DTYPE_U16 : FP8_DTYPE_I16;
    case 32:
      return isUnsigned ? FP8_DTYPE_U32 : FP8_DTYPE_I32;
    case 64:
      return isUnsigned ? FP8_DTYPE_U64 : FP8_DTYPE_I64;
    }
  }
  if (isa<Float8E4M3FNType>(type))
    return FP8_DTYPE_F8_E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return FP8_DTYPE_F8_E5M2;
  if (isa<Float8E4M3FNUZType>(type))
    return FP8_DTYPE_F8_E4M3FNUZ;
  if (isa<Float8E5M2FNUZType>(type))
    return FP8_DTYPE_F8_E5M2FNUZ;
  if (isa<Float8E8M0FNUType>(type))
    return FP8_DTYPE_F8_E8M0FNU;
  if (isa<Float8E4M3Type>(type))
    return FP8_DTYPE_F8_E4M3;
  if (isa<Float8E3M4Type>(type))
    return FP8_DTYPE_F8_E3M4;
  if (isa<Float8E4M3B11FNUZType>(type))
    return FP8_DTYPE_F8_E4M3B11FNUZ;
  if (type.isF16())
    return FP8_DTYPE_F16;
  if (type.isBF16())
    return FP8_DTYPE_BF16;
  if (type.isF32())
    return FP8_DTYPE_F32;
  if (type.isF64())
    return FP8_DTYPE_F64;
  return FP8_NUM_DTYPES;
}

Type fp8::elementTypeOf(fp8_dtype dtype, MLIRContext &context) {
  Builder builder(&context);
  auto integer = [&](unsigned width, bool isSigned) {
    return isSigned ? builder.getIntegerType(width)
                    : builder.getIntegerType(width, /*isSigned=*/false);
  };
  switch (dtype) {
  case FP8_DTYPE_BOOL:
    return builder.getI1Type();
  case FP8_DTYPE_U8:
    return integer(8, false);
  case FP8_DTYPE_I8:
    return integer(8, true);
  case FP8_DTYPE_U16:
    return integer(16, false);
  case FP8_DTYPE_I16:
    return integer(16, true);
  case FP8_DTYPE_U32:
    return integer(32, false);
  case FP8_DTYPE_I32:
    return integer(32, true);
  case FP8_DTYPE_U64:
    return integer(64, false);
  case FP8_DTYPE_I64:
    return integer(64, true);
  case FP8_DTYPE_F8_E4M3FN:
    return builder.getType<Float8E4M3FNType>();
  case FP8_DTYPE_F8_E5M2:
    return builder.getType<Float8E5M2Type>();
  case FP8_DTYPE_F8_E4M3FNUZ:
    return builder.getType<Float8E4M3FNUZType>();
  case FP8_DTYPE_F8_E5M2FNUZ:
    return builder.getType<Float8E5M2FNUZType>();
  case FP8_DTYPE_F8_E8M0FNU:
    return builder.getType<Float8E8M0FNUType>();
  case FP8_DTYPE_F8_E4M3:
    return builder.getType<Float8E4M3Type>();
  case FP8_DTYPE_F8_E3M4:
    return builder.getType<Float8E3M4Type>();
  case FP8_DTYPE_F8_E4M3B11FNUZ:
    return builder.getType<Float8E4M3B11FNUZType>();
  case FP8_DTYPE_F16:
    return builder.getF16Type();
  case FP8_DTYPE_BF16:
    return builder.getBF16Type();
  case FP8_DTYPE_F32:
    return builder.getF32Type();
  case FP8_DTYPE_F64:
    return builder.getF64Type();
  case FP8_NUM_DTYPES:
    break;
  }
  llvm_unreachable("unknown element type");
}
