//===- ElementArithmetic.cpp - Arithmetic on many element types -----------===//

#include "ElementArithmetic.h"
#include "Arithmetic.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace fp8::rt {

/// The number of elements processed at a time, which fit the L1 cache.
static constexpr int64_t chunkSize = 2048;

bool hasReduction(fp8_dtype dtype) {
  return dtype <= FP8_DTYPE_F64; // excludes the rarer f8 formats
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// Reads an element, which need not be aligned.
template <typename T> static T read(const char *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> static void write(char *data, int64_t index, T value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

void loadFloats(fp8_dtype dtype, const char *data, int64_t begin, int64_t count,
                float *values) {
  switch (dtype) {
  case FP8_DTYPE_BF16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = decodeBFloat16(read<uint16_t>(data, begin + i));
    return;
  case FP8_DTYPE_F16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(read<_Float16>(data, begin + i));
    return;
  case FP8_DTYPE_F8_E4M3FN:
    for (int64_t i = 0; i < count; ++i)
      values[i] = decodeFloat8<E4M3FN>(read<uint8_t>(data, begin + i));
    return;
  case FP8_DTYPE_F8_E5M2:
    for (int64_t i = 0; i < count; ++i)
      values[i] = decodeFloat8<E5M2>(read<uint8_t>(data, begin + i));
    return;
  default:
    std::memcpy(values, data + begin * sizeof(float), count * sizeof(float));
  }
}

void storeFloats(fp8_dtype dtype, char *data, int64_t begin, int64_t count,
                 const float *values) {
  int64_t ignored = 0;
  switch (dtype) {
  case FP8_DTYPE_BF16:
    for (int64_t i = 0; i < count; ++i)
      write(data, begin + i, encodeBFloat16(values[i]));
    return;
  case FP8_DTYPE_F16:
    for (int64_t i = 0; i < count; ++i)
      write(data, begin + i, static_cast<_Float16>(values[i]));
    return;
  case FP8_DTYPE_F8_E4M3FN:
    for (int64_t i = 0; i < count; ++i)
      write(data, begin + i, encodeFloat8<E4M3FN>(values[i], ignored));
    return;
  case FP8_DTYPE_F8_E5M2:
    for (int64_t i = 0; i < count; ++i)
      write(data, begin + i, encodeFloat8<E5M2>(values[i], ignored));
    return;
  default:
    std::memcpy(data + begin * sizeof(float), values, count * sizeof(float));
  }
}

void convertToBFloat16(fp8_dtype dtype, const char *data, int64_t begin,
                       int64_t count, char *wire) {
  float values[chunkSize];
  for (int64_t at = 0; at < count; at += chunkSize) {
    int64_t part = std::min(chunkSize, count - at);
    loadFloats(dtype, data, begin + at, part, values);
    storeFloats(FP8_DTYPE_BF16, wire, at, part, values);
  }
}

void convertFromBFloat16(fp8_dtype dtype, char *data, int64_t begin,
                         int64_t count, const char *wire) {
  float values[chunkSize];
  for (int64_t at = 0; at < count; at += chunkSize) {
    int64_t part = std::min(chunkSize, count - at);
    loadFloats(FP8_DTYPE_BF16, wire, at, part, values);
    storeFloats(dtype, data, begin + at, part, values);
  }
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

template <typename T>
static void reduceAs(fp8_reduction reduction, int64_t count,
                     const std::vector<const char *> &pieces, char *result) {
  T values[chunkSize];
  for (int64_t at = 0; at < count; at += chunkSize) {
    int64_t part = std::min(chunkSize, count - at);
    std::memcpy(values, pieces[0] + at * sizeof(T), part * sizeof(T));
    for (size_t rank = 1; rank < pieces.size(); ++rank)
      for (int64_t i = 0; i < part; ++i)
        values[i] =
            combine(reduction, values[i], read<T>(pieces[rank], at + i));
    if constexpr (std::is_floating_point_v<T>)
      for (int64_t i = 0; reduction == FP8_REDUCE_MEAN && i < part; ++i)
        values[i] /= static_cast<T>(pieces.size());
    std::memcpy(result + at * sizeof(T), values, part * sizeof(T));
  }
}

/// Reduces floats of less than 32 bits in f32 and rounds once.
static void reduceNarrow(fp8_dtype dtype, fp8_reduction reduction,
                         int64_t count, const std::vector<const char *> &pieces,
                         char *result) {
  float values[chunkSize], next[chunkSize];
  for (int64_t at = 0; at < count; at += chunkSize) {
    int64_t part = std::min(chunkSize, count - at);
    loadFloats(dtype, pieces[0], at, part, values);
    for (size_t rank = 1; rank < pieces.size(); ++rank) {
      loadFloats(dtype, pieces[rank], at, part, next);
      for (int64_t i = 0; i < part; ++i)
        values[i] = combine(reduction, values[i], next[i]);
    }
    for (int64_t i = 0; reduction == FP8_REDUCE_MEAN && i < part; ++i)
      values[i] /= static_cast<float>(pieces.size());
    storeFloats(dtype, result, at, part, values);
  }
}

/// Reduces bools: a minimum is "all", anything else "any".
static void reduceBools(fp8_reduction reduction, int64_t count,
                        const std::vector<const char *> &pieces, char *result) {
  for (int64_t i = 0; i < count; ++i) {
    bool any = false, all = true;
    for (const char *piece : pieces) {
      any |= piece[i] != 0;
      all &= piece[i] != 0;
    }
    result[i] = reduction == FP8_REDUCE_MIN ? all : any;
  }
}

void reduceExactly(fp8_dtype dtype, fp8_reduction reduction, int64_t count,
                   const std::vector<const char *> &pieces, char *result) {
  switch (dtype) {
  case FP8_DTYPE_BOOL:
    return reduceBools(reduction, count, pieces, result);
  case FP8_DTYPE_U8:
    return reduceAs<uint8_t>(reduction, count, pieces, result);
  case FP8_DTYPE_I8:
    return reduceAs<int8_t>(reduction, count, pieces, result);
  case FP8_DTYPE_U16:
    return reduceAs<uint16_t>(reduction, count, pieces, result);
  case FP8_DTYPE_I16:
    return reduceAs<int16_t>(reduction, count, pieces, result);
  case FP8_DTYPE_U32:
    return reduceAs<uint32_t>(reduction, count, pieces, result);
  case FP8_DTYPE_I32:
    return reduceAs<int32_t>(reduction, count, pieces, result);
  case FP8_DTYPE_U64:
    return reduceAs<uint64_t>(reduction, count, pieces, result);
  case FP8_DTYPE_I64:
    return reduceAs<int64_t>(reduction, count, pieces, result);
  case FP8_DTYPE_F32:
    return reduceAs<float>(reduction, count, pieces, result);
  case FP8_DTYPE_F64:
    return reduceAs<double>(reduction, count, pieces, result);
  default:
    reduceNarrow(dtype, reduction, count, pieces, result);
  }
}

} // namespace fp8::rt
