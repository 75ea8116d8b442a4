//===- InitialValues.cpp - What a run begins with -------------------------===//

#include "fp8/Compiler/InitialValues.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::fp8;

static Type elementTypeOf(fp8_dtype dtype, MLIRContext &context) {
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

SmallVector<TreeLeaf> fp8::leavesOf(const fp8_tensors *tensors,
                                    MLIRContext &context) {
  SmallVector<TreeLeaf> leaves;
  for (int64_t i = 0, e = fp8_tensors_count(tensors); i < e; ++i) {
    fp8_tensor_info info;
    if (fp8_tensors_get(tensors, i, &info, nullptr) != FP8_OK)
      continue;
    ArrayRef<int64_t> shape(info.dims, info.rank);
    leaves.push_back(
        {info.name,
         RankedTensorType::get(shape, elementTypeOf(info.dtype, context))});
  }
  return leaves;
}

SmallVector<TreeLeaf> fp8::leavesOf(const Signature &initializer) {
  SmallVector<TreeLeaf> leaves;
  for (const SignatureResult &result : initializer.results)
    leaves.push_back({result.path, result.type});
  return leaves;
}
