//===- TensorType.cpp - Types and descriptions of tensors -----------------===//

#include "TensorType.h"

namespace fp8::rt {

namespace {
struct DtypeInfo {
  const char *name; // in safetensors
  const char *text; // in messages
  size_t size;
};
} // namespace

static const DtypeInfo dtypes[FP8_NUM_DTYPES] = {
    {"BOOL", "bool", 1},
    {"U8", "u8", 1},
    {"I8", "i8", 1},
    {"U16", "u16", 2},
    {"I16", "i16", 2},
    {"U32", "u32", 4},
    {"I32", "i32", 4},
    {"U64", "u64", 8},
    {"I64", "i64", 8},
    {"F8_E4M3", "f8e4m3fn", 1},
    {"F8_E5M2", "f8e5m2", 1},
    {"F16", "f16", 2},
    {"BF16", "bf16", 2},
    {"F32", "f32", 4},
    {"F64", "f64", 8},
    {"F8_E4M3FNUZ", "f8e4m3fnuz", 1},
    {"F8_E5M2FNUZ", "f8e5m2fnuz", 1},
    {"F8_E8M0", "f8e8m0fnu", 1},
    // Safetensors has no name for these (see `hasSafeTensorsName`).
    {"float8_e4m3", "f8e4m3", 1},
    {"float8_e3m4", "f8e3m4", 1},
    {"float8_e4m3b11fnuz", "f8e4m3b11fnuz", 1},
};

static bool isDtype(fp8_dtype dtype) {
  return static_cast<int>(dtype) >= 0 &&
         static_cast<int>(dtype) < FP8_NUM_DTYPES;
}

int64_t tensorBytes(fp8_dtype dtype, const int64_t *dims, int64_t rank) {
  if (!isDtype(dtype) || rank < 0 || (rank > 0 && !dims))
    return -1;
  int64_t bytes = dtypes[dtype].size;
  bool empty = false;
  for (int64_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return -1;
    if (dims[i] == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, dims[i], &bytes))
      return -1;
  }
  return empty ? 0 : bytes;
}

int64_t TensorType::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

std::string TensorType::text() const {
  std::string result = isDtype(dtype) ? dtypes[dtype].text : "?";
  result += '[';
  for (size_t i = 0; i < dims.size(); ++i)
    result += (i ? "," : "") + std::to_string(dims[i]);
  return result + ']';
}

bool isInteger(fp8_dtype dtype) {
  return dtype >= FP8_DTYPE_U8 && dtype <= FP8_DTYPE_I64;
}

bool isFloat(fp8_dtype dtype) {
  return dtype >= FP8_DTYPE_F8_E4M3FN && dtype < FP8_NUM_DTYPES;
}

bool hasSafeTensorsName(fp8_dtype dtype) { return dtype < FP8_DTYPE_F8_E4M3; }

} // namespace fp8::rt

//===----------------------------------------------------------------------===//
// C interface of this file
//===----------------------------------------------------------------------===//

size_t fp8_dtype_size(fp8_dtype dtype) {
  return fp8::rt::isDtype(dtype) ? fp8::rt::dtypes[dtype].size : 0;
}

const char *fp8_dtype_name(fp8_dtype dtype) {
  return fp8::rt::isDtype(dtype) ? fp8::rt::dtypes[dtype].name : nullptr;
}

const char *fp8_role_name(fp8_role role) {
  static constexpr const char *names[FP8_NUM_ROLES] = {
      "state", "frozen", "batch", "key", "constant"};
  return role >= 0 && role < FP8_NUM_ROLES ? names[role] : nullptr;
}

const char *fp8_kind_name(fp8_kind kind) {
  static constexpr const char *names[FP8_NUM_KINDS] = {
      "other",        "parameter",
      "moment1",      "moment2",
      "step",         "state",
      "loss",         "metric",
      "output",       "trace_quantization",
      "trace_update", "trace_alignment"};
  return kind >= 0 && kind < FP8_NUM_KINDS ? names[kind] : nullptr;
}

int64_t fp8_tensor_bytes(const fp8_tensor_info *info) {
  return info ? fp8::rt::tensorBytes(info->dtype, info->dims, info->rank) : -1;
}
