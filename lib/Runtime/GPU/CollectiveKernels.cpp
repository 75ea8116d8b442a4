//===- CollectiveKernels.cpp - Reductions over ranks, on a GPU ------------===//
//
// The computations of Collectives/AllReduce.cpp, with the same functions in the
// same order, so that the bits are the same. The build compiles this file for
// NVIDIA GPUs with its own compiler: no toolkit is needed.
//
//===----------------------------------------------------------------------===//

#include "../Collectives/Arithmetic.h"

using namespace fp8::rt;

#define FP8_KERNEL extern "C" __attribute__((nvptx_kernel)) void

/// Returns the number of this thread in its grid.
static int64_t threadNumber() {
  return static_cast<int64_t>(__nvvm_read_ptx_sreg_ctaid_x()) *
             __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}

template <typename T> static T read(const char *data, int64_t index) {
  return reinterpret_cast<const T *>(data)[index];
}

template <typename T> static void write(char *data, int64_t index, T value) {
  reinterpret_cast<T *>(data)[index] = value;
}

static float loadFloat(int64_t dtype, const char *data, int64_t index) {
  switch (dtype) {
  case FP8_DTYPE_BF16:
    return decodeBFloat16(read<uint16_t>(data, index));
  case FP8_DTYPE_F16:
    return static_cast<float>(read<_Float16>(data, index));
  case FP8_DTYPE_F8_E4M3FN:
    return decodeFloat8<E4M3FN>(read<uint8_t>(data, index));
  case FP8_DTYPE_F8_E5M2:
    return decodeFloat8<E5M2>(read<uint8_t>(data, index));
  default:
    return read<float>(data, index);
  }
}

static void storeFloat(int64_t dtype, char *data, int64_t index, float value) {
  int64_t ignored = 0;
  switch (dtype) {
  case FP8_DTYPE_BF16:
    return write(data, index, encodeBFloat16(value));
  case FP8_DTYPE_F16:
    return write(data, index, static_cast<_Float16>(value));
  case FP8_DTYPE_F8_E4M3FN:
    return write(data, index, encodeFloat8<E4M3FN>(value, ignored));
  case FP8_DTYPE_F8_E5M2:
    return write(data, index, encodeFloat8<E5M2>(value, ignored));
  default:
    return write(data, index, value);
  }
}

/// Computes the largest magnitude of the finite elements of each block, as f32
/// bits; `amaxes` must be zeroed. A thread processes 64 elements.
FP8_KERNEL fp8_collective_amax(int64_t dtype, const char *in, int64_t elements,
                               int64_t blockElements, uint32_t *amaxes) {
  constexpr int64_t perThread = 64;
  int64_t begin = threadNumber() * perThread, end = begin + perThread;
  end = end < elements ? end : elements;
  while (begin < end) {
    int64_t block = begin / blockElements, last = (block + 1) * blockElements;
    last = last < end ? last : end;
    uint32_t largest = 0;
    for (; begin < last; ++begin) {
      uint32_t bits = bitsOf(loadFloat(dtype, in, begin)) & 0x7fffffff;
      bits = bits < 0x7f800000 ? bits : 0;
      largest = bits > largest ? bits : largest;
    }
    __atomic_fetch_max(amaxes + block, largest, __ATOMIC_RELAXED);
  }
}

/// Computes the exponents of the scales from the amaxes of all ranks.
FP8_KERNEL fp8_collective_scales(int64_t wire, const float *amaxes,
                                 int64_t blocks, int32_t *exponents) {
  int64_t i = threadNumber();
  if (i < blocks)
    exponents[i] = scaleExponent(
        amaxes[i], wire == FP8_WIRE_F8_E4M3FN ? E4M3FN::max : E5M2::max);
}

/// Encodes elements for a narrower wire.
FP8_KERNEL fp8_collective_encode(int64_t wire, int64_t dtype, const char *in,
                                 int64_t elements, int64_t blockElements,
                                 const int32_t *exponents, char *out) {
  int64_t i = threadNumber(), ignored = 0;
  if (i >= elements)
    return;
  float value = loadFloat(dtype, in, i);
  if (wire == FP8_WIRE_BF16)
    return write(out, i, encodeBFloat16(value));
  value *= powerOfTwo(-exponents[i / blockElements]);
  write(out, i,
        wire == FP8_WIRE_F8_E4M3FN ? encodeFloat8<E4M3FN>(value, ignored)
                                   : encodeFloat8<E5M2>(value, ignored));
}

static bool isNonFinite(float value) {
  return (bitsOf(value) & 0x7f800000) == 0x7f800000;
}

/// Returns whether an element is NaN or, if `infinite`, an infinity.
static bool isBad(int64_t dtype, const char *data, int64_t i, bool infinite) {
  if (dtype == FP8_DTYPE_F64) {
    auto value = read<double>(data, i);
    return infinite ? !(__builtin_fabs(value) <= 1.7976931348623157e308)
                    : __builtin_isnan(value);
  }
  bool isFloat = dtype == FP8_DTYPE_F32 || dtype == FP8_DTYPE_BF16 ||
                 dtype == FP8_DTYPE_F16 || dtype == FP8_DTYPE_F8_E4M3FN ||
                 dtype == FP8_DTYPE_F8_E5M2;
  if (!isFloat)
    return false;
  float value = loadFloat(dtype, data, i);
  return infinite ? isNonFinite(value) : __builtin_isnan(value);
}

/// Sets `found` to 1 if an element is NaN or, if `infinite`, an infinity.
FP8_KERNEL fp8_collective_check(int64_t dtype, const char *in, int64_t elements,
                                int64_t infinite, uint64_t *found) {
  int64_t i = threadNumber();
  if (i < elements && isBad(dtype, in, i, infinite != 0))
    __atomic_fetch_max(found, uint64_t(1), __ATOMIC_RELAXED);
}

/// The pieces of one slice, `stride` bytes apart, in rank order.
namespace {
struct Pieces {
  const char *first;
  int64_t stride, ranks;
  const char *operator[](int64_t rank) const { return first + rank * stride; }
};
} // namespace

template <typename T>
static void reduceAs(int64_t reduction, const Pieces &pieces, int64_t i,
                     char *out) {
  T value = read<T>(pieces[0], i);
  for (int64_t rank = 1; rank < pieces.ranks; ++rank)
    value = combine(reduction, value, read<T>(pieces[rank], i));
  if (reduction == FP8_REDUCE_MEAN)
    value /= static_cast<T>(pieces.ranks);
  write(out, i, value);
}

static float reduceFloats(int64_t dtype, int64_t reduction,
                          const Pieces &pieces, int64_t i) {
  float value = loadFloat(dtype, pieces[0], i);
  for (int64_t rank = 1; rank < pieces.ranks; ++rank)
    value = combine(reduction, value, loadFloat(dtype, pieces[rank], i));
  if (reduction == FP8_REDUCE_MEAN)
    value /= static_cast<float>(pieces.ranks);
  return value;
}

static void reduceBools(int64_t reduction, const Pieces &pieces, int64_t i,
                        char *out) {
  bool any = false, all = true;
  for (int64_t rank = 0; rank < pieces.ranks; ++rank) {
    any |= pieces[rank][i] != 0;
    all &= pieces[rank][i] != 0;
  }
  out[i] = reduction == FP8_REDUCE_MIN ? all : any;
}

template <typename Format>
static void reduceCodes(const Pieces &pieces, int64_t i, float mu, char *out,
                        uint64_t *saturated) {
  float sum = decodeFloat8<Format>(read<uint8_t>(pieces[0], i));
  for (int64_t rank = 1; rank < pieces.ranks; ++rank)
    sum += decodeFloat8<Format>(read<uint8_t>(pieces[rank], i));
  int64_t beyond = 0;
  float factor = mu / static_cast<float>(pieces.ranks);
  write(out, i, encodeFloat8<Format>(sum * factor, beyond));
  if (beyond > 0)
    __atomic_fetch_add(saturated, static_cast<uint64_t>(beyond),
                       __ATOMIC_RELAXED);
}

/// If a reduced element is not finite, records the first rank whose piece is
/// not: `source` becomes the largest distance of such a rank from `ranks`.
static void noteSource(int64_t dtype, const Pieces &pieces, int64_t i,
                       const char *out, uint64_t *source) {
  if (!isBad(dtype, out, i, /*infinite=*/true))
    return;
  for (int64_t rank = 0; rank < pieces.ranks; ++rank)
    if (isBad(dtype, pieces[rank], i, /*infinite=*/true)) {
      __atomic_fetch_max(source, static_cast<uint64_t>(pieces.ranks - rank),
                         __ATOMIC_RELAXED);
      return;
    }
}

static void reduceElement(int64_t wire, int64_t dtype, int64_t reduction,
                          const Pieces &pieces, int64_t i, const float *control,
                          uint64_t *saturated, char *out) {
  int64_t ranks = pieces.ranks;
  switch (wire) {
  case FP8_WIRE_BF16:
    return storeFloat(FP8_DTYPE_BF16, out, i,
                      reduceFloats(FP8_DTYPE_BF16, reduction, pieces, i));
  case FP8_WIRE_F8_E4M3FN:
    return reduceCodes<E4M3FN>(pieces, i, muOf(control, ranks), out, saturated);
  case FP8_WIRE_F8_E5M2:
    return reduceCodes<E5M2>(pieces, i, muOf(control, ranks), out, saturated);
  default:
    break;
  }
  switch (dtype) {
  case FP8_DTYPE_BOOL:
    return reduceBools(reduction, pieces, i, out);
  case FP8_DTYPE_U8:
    return reduceAs<uint8_t>(reduction, pieces, i, out);
  case FP8_DTYPE_I8:
    return reduceAs<int8_t>(reduction, pieces, i, out);
  case FP8_DTYPE_U16:
    return reduceAs<uint16_t>(reduction, pieces, i, out);
  case FP8_DTYPE_I16:
    return reduceAs<int16_t>(reduction, pieces, i, out);
  case FP8_DTYPE_U32:
    return reduceAs<uint32_t>(reduction, pieces, i, out);
  case FP8_DTYPE_I32:
    return reduceAs<int32_t>(reduction, pieces, i, out);
  case FP8_DTYPE_U64:
    return reduceAs<uint64_t>(reduction, pieces, i, out);
  case FP8_DTYPE_I64:
    return reduceAs<int64_t>(reduction, pieces, i, out);
  case FP8_DTYPE_F64:
    return reduceAs<double>(reduction, pieces, i, out);
  default:
    return storeFloat(dtype, out, i, reduceFloats(dtype, reduction, pieces, i));
  }
}

/// Reduces the pieces of a slice of `count` elements from all ranks, and writes
/// the result in the wire's format.
FP8_KERNEL fp8_collective_reduce(int64_t wire, int64_t dtype, int64_t reduction,
                                 const char *first, int64_t stride,
                                 int64_t ranks, int64_t count,
                                 const float *control, uint64_t *saturated,
                                 uint64_t *source, char *out) {
  int64_t i = threadNumber();
  if (i >= count)
    return;
  Pieces pieces{first, stride, ranks};
  reduceElement(wire, dtype, reduction, pieces, i, control, saturated, out);
  if (reduction == FP8_REDUCE_SUM || reduction == FP8_REDUCE_MEAN)
    noteSource(wireType(wire, dtype), pieces, i, out, source);
}

/// Decodes results from a narrower wire.
FP8_KERNEL fp8_collective_decode(int64_t wire, int64_t dtype, int64_t reduction,
                                 const char *in, int64_t elements,
                                 int64_t blockElements,
                                 const int32_t *exponents, const float *control,
                                 int64_t ranks, char *out) {
  int64_t i = threadNumber();
  if (i >= elements)
    return;
  if (wire == FP8_WIRE_BF16)
    return storeFloat(dtype, out, i, decodeBFloat16(read<uint16_t>(in, i)));
  auto code = read<uint8_t>(in, i);
  float value = wire == FP8_WIRE_F8_E4M3FN ? decodeFloat8<E4M3FN>(code)
                                           : decodeFloat8<E5M2>(code);
  bool isMean = reduction == FP8_REDUCE_MEAN;
  float factor =
      (isMean ? 1.0f : static_cast<float>(ranks)) / muOf(control, ranks);
  value = value * powerOfTwo(exponents[i / blockElements]) * factor;
  storeFloat(dtype, out, i, value);
}

/// Updates mu, as the last kernel of a reduction, and copies it for the trace.
FP8_KERNEL fp8_collective_update(float *control, const int64_t *saturated,
                                 int64_t elements, int64_t ranks, float *copy) {
  if (threadNumber() != 0)
    return;
  updateMu(control, *saturated, elements, ranks);
  copy[0] = control[0];
  copy[1] = control[1];
}
