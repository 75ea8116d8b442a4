//===- AllReduce.cpp - Reductions over ranks ------------------------------===//

#include "AllReduce.h"
#include "../Support/Elements.h"
#include "../Support/TensorType.h"
#include "../Support/Text.h"
#include "Arithmetic.h"
#include "ElementArithmetic.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// Valid reductions
//===----------------------------------------------------------------------===//

bool isFloat8(int64_t wire) {
  return wire == FP8_WIRE_F8_E4M3FN || wire == FP8_WIRE_F8_E5M2;
}

std::string findMistake(const fp8_all_reduce &what) {
  if (what.dtype < 0 || what.dtype >= FP8_NUM_DTYPES || what.reduction < 0 ||
      what.reduction >= FP8_NUM_REDUCTIONS || what.wire < 0 ||
      what.wire >= FP8_NUM_WIRES || what.elements < 0 || what.block < 0 ||
      what.shard < 0)
    return "a value is out of its enumeration";
  auto dtype = static_cast<fp8_dtype>(what.dtype);
  if (what.reduction == FP8_REDUCE_OWNER) {
    if (what.shard == 0 || what.wire != FP8_WIRE_EXACT)
      return "expected a shard and an exact wire for an owner's values";
    return "";
  }
  if (!hasReduction(dtype))
    return str("expected f32, f64, f16, bf16, f8e4m3fn, f8e5m2, an integer or "
               "bool but got ",
               TensorType{dtype, {}}.text());
  if (what.reduction == FP8_REDUCE_MEAN && !isFloat(dtype))
    return "expected floats for a mean but got integers";
  if (what.wire == FP8_WIRE_EXACT)
    return "";
  if (what.reduction != FP8_REDUCE_SUM && what.reduction != FP8_REDUCE_MEAN)
    return "expected a sum or a mean on a narrow wire but got a maximum or "
           "minimum";
  if (dtype != FP8_DTYPE_F32 && dtype != FP8_DTYPE_BF16 &&
      dtype != FP8_DTYPE_F16)
    return str("expected f32, bf16 or f16 on a narrow wire but got ",
               TensorType{dtype, {}}.text());
  return "";
}

int64_t wireSize(const fp8_all_reduce &what) {
  if (what.wire == FP8_WIRE_EXACT)
    return static_cast<int64_t>(
        fp8_dtype_size(static_cast<fp8_dtype>(what.dtype)));
  return what.wire == FP8_WIRE_BF16 ? 2 : 1;
}

int64_t wireBytes(const fp8_all_reduce &what) {
  return what.elements * wireSize(what);
}

int64_t numBlocks(const fp8_all_reduce &what) {
  if (!isFloat8(what.wire))
    return 0;
  return what.block ? (what.elements + what.block - 1) / what.block : 1;
}

int64_t blockElements(const fp8_all_reduce &what) {
  return what.block ? what.block : std::max<int64_t>(what.elements, 1);
}

Slice Reduction::owned(int64_t rank) const {
  int64_t begin = (*owners)[rank], end = (*owners)[rank + 1];
  if (slice >= 0 && owners->back() > 1)
    return {0, slice >= begin && slice < end ? what.elements : 0};
  int64_t size = what.elements / owners->back();
  return {begin * size, (end - begin) * size};
}

Slice sliceOf(const Reduction &reduction, int64_t rank, int64_t ranks) {
  int64_t elements = reduction.what.elements;
  if (reduction.isFromOwner())
    return {0, 0};
  if (reduction.owners)
    return reduction.owned(rank);
  int64_t share = (elements + ranks - 1) / ranks;
  int64_t begin = std::min(elements, rank * share);
  return {begin, std::min(elements, begin + share) - begin};
}

Slice resultOf(const Reduction &reduction, int64_t rank, int64_t ranks) {
  if (!reduction.owners)
    return sliceOf(reduction, rank, ranks);
  return reduction.isFromOwner() ? reduction.owned(rank) : Slice{0, 0};
}

void noteScale(fp8_group &group, const Reduction &reduction, const float *mu,
               int64_t saturated) {
  const fp8_all_reduce &what = reduction.what;
  double share = static_cast<double>(saturated) /
                 static_cast<double>(std::max<int64_t>(what.elements, 1));
  group.noteScale(
      {what.label ? what.label : "", reduction.slice, mu[0], mu[1], share});
}

//===----------------------------------------------------------------------===//
// One tensor of a bucket
//===----------------------------------------------------------------------===//

namespace {

/// The number of elements processed at a time, which fit the L1 cache.
constexpr int64_t chunkSize = 2048;

/// A reduction with its state on the wire.
struct Tensor {
  Tensor(const Reduction &reduction, int64_t ranks)
      : reduction(reduction), what(reduction.what),
        dtype(static_cast<fp8_dtype>(what.dtype)), ranks(ranks),
        size(wireSize(what)) {}

  Slice slice(int64_t rank) const { return sliceOf(reduction, rank, ranks); }
  int64_t bytes(int64_t rank) const { return slice(rank).count * size; }
  Slice result(int64_t rank) const { return resultOf(reduction, rank, ranks); }
  int64_t resultBytes(int64_t rank) const { return result(rank).count * size; }
  bool isFromOwner() const { return reduction.isFromOwner(); }
  bool isToOwner() const { return reduction.isToOwner(); }
  bool isMean() const { return what.reduction == FP8_REDUCE_MEAN; }

  // Scales on an f8 wire.
  int64_t numBlocks() const { return rt::numBlocks(what); }
  void findAmaxes(float *amaxes) const;
  void setScales(const float *amaxes);
  float mu() const { return muOf(reduction.control, ranks); }

  /// Writes a slice of the operand to the wire.
  void encode(Slice slice, char *wire) const;
  /// Reduces the pieces of a slice from all ranks, and writes the result to the
  /// wire.
  void reduce(Slice slice, const std::vector<const char *> &pieces, char *wire);
  /// Reads a slice of the result from the wire.
  void decode(Slice slice, const char *wire) const;
  /// If the reduced slice on the wire has a value that is not finite, returns
  /// the first rank whose piece has one; -1 if there is none.
  int64_t findNonFinite(Slice slice, const std::vector<const char *> &pieces,
                        const char *wire) const;

  const Reduction &reduction;
  const fp8_all_reduce &what;
  fp8_dtype dtype;
  int64_t ranks, size;
  std::vector<int> exponents; // of scales, by block
  int64_t saturated = 0;      // codes of the result; finally of all ranks
  int64_t number = 0;         // among all collectives

private:
  template <typename Body> void inBlocks(Slice slice, Body body) const;
  template <typename Format> void encodeAs(Slice slice, char *wire) const;
  template <typename Format>
  void reduceAs(Slice slice, const std::vector<const char *> &pieces,
                char *wire);
  template <typename Format> void decodeAs(Slice slice, const char *wire) const;
  void reduceBFloat16(Slice slice, const std::vector<const char *> &pieces,
                      char *wire) const;
};

} // namespace

//===----------------------------------------------------------------------===//
// Scales and mu
//===----------------------------------------------------------------------===//

/// Calls body(begin, count, block) for each part of a slice within one block
/// and one chunk.
template <typename Body> void Tensor::inBlocks(Slice slice, Body body) const {
  int64_t end = slice.begin + slice.count, length = blockElements(what);
  for (int64_t begin = slice.begin; begin < end;) {
    int64_t block = begin / length;
    int64_t count =
        std::min({end - begin, (block + 1) * length - begin, chunkSize});
    body(begin, count, block);
    begin += count;
  }
}

/// Computes the amax of the finite elements of each block; the others have
/// codes of their own.
void Tensor::findAmaxes(float *amaxes) const {
  std::fill_n(amaxes, numBlocks(), 0.0f);
  float values[chunkSize];
  inBlocks({0, what.elements},
           [&](int64_t begin, int64_t count, int64_t block) {
             loadFloats(dtype, reduction.in, begin, count, values);
             uint32_t largest = 0;
             for (int64_t i = 0; i < count; ++i) {
               uint32_t bits = bitsOf(values[i]) & 0x7fffffff;
               bits = bits < 0x7f800000 ? bits : 0;
               largest = std::max(largest, bits);
             }
             amaxes[block] = std::max(amaxes[block], floatOf(largest));
           });
}

void Tensor::setScales(const float *amaxes) {
  float max = what.wire == FP8_WIRE_F8_E4M3FN ? E4M3FN::max : E5M2::max;
  exponents.resize(numBlocks());
  for (size_t i = 0; i < exponents.size(); ++i)
    exponents[i] = scaleExponent(amaxes[i], max);
}

//===----------------------------------------------------------------------===//
// Encoding and decoding
//===----------------------------------------------------------------------===//

/// Returns the values of all codes.
template <typename Format> static const std::array<float, 256> &float8Values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all;
    for (int code = 0; code < 256; ++code)
      all[code] = decodeFloat8<Format>(static_cast<uint8_t>(code));
    return all;
  }();
  return values;
}

template <typename Format>
void Tensor::encodeAs(Slice slice, char *wire) const {
  float values[chunkSize];
  int64_t ignored = 0;
  inBlocks(slice, [&](int64_t begin, int64_t count, int64_t block) {
    loadFloats(dtype, reduction.in, begin, count, values);
    float factor = powerOfTwo(-exponents[block]);
    auto *codes = reinterpret_cast<uint8_t *>(wire + begin - slice.begin);
    for (int64_t i = 0; i < count; ++i)
      codes[i] = encodeFloat8<Format>(values[i] * factor, ignored);
  });
}

void Tensor::encode(Slice slice, char *wire) const {
  switch (what.wire) {
  case FP8_WIRE_F8_E4M3FN:
    return encodeAs<E4M3FN>(slice, wire);
  case FP8_WIRE_F8_E5M2:
    return encodeAs<E5M2>(slice, wire);
  case FP8_WIRE_BF16:
    return convertToBFloat16(dtype, reduction.in, slice.begin, slice.count,
                             wire);
  default:
    if (slice.count > 0)
      std::memcpy(wire, reduction.in + slice.begin * size, slice.count * size);
  }
}

template <typename Format>
void Tensor::reduceAs(Slice slice, const std::vector<const char *> &pieces,
                      char *wire) {
  const std::array<float, 256> &valueOf = float8Values<Format>();
  float factor = mu() / static_cast<float>(ranks);
  float sums[chunkSize];
  // All ranks have the same scale: codes are summed, and the result has it too.
  for (int64_t begin = 0; begin < slice.count; begin += chunkSize) {
    int64_t count = std::min(chunkSize, slice.count - begin);
    for (size_t rank = 0; rank < pieces.size(); ++rank) {
      auto *codes = reinterpret_cast<const uint8_t *>(pieces[rank]) + begin;
      if (rank == 0)
        for (int64_t i = 0; i < count; ++i)
          sums[i] = valueOf[codes[i]];
      else
        for (int64_t i = 0; i < count; ++i)
          sums[i] += valueOf[codes[i]];
    }
    auto *codes = reinterpret_cast<uint8_t *>(wire) + begin;
    for (int64_t i = 0; i < count; ++i)
      codes[i] = encodeFloat8<Format>(sums[i] * factor, saturated);
  }
}

void Tensor::reduceBFloat16(Slice slice,
                            const std::vector<const char *> &pieces,
                            char *wire) const {
  float sums[chunkSize], values[chunkSize];
  for (int64_t begin = 0; begin < slice.count; begin += chunkSize) {
    int64_t count = std::min(chunkSize, slice.count - begin);
    loadFloats(FP8_DTYPE_BF16, pieces[0], begin, count, sums);
    for (size_t rank = 1; rank < pieces.size(); ++rank) {
      loadFloats(FP8_DTYPE_BF16, pieces[rank], begin, count, values);
      for (int64_t i = 0; i < count; ++i)
        sums[i] += values[i];
    }
    for (int64_t i = 0; isMean() && i < count; ++i)
      sums[i] /= static_cast<float>(ranks);
    storeFloats(FP8_DTYPE_BF16, wire, begin, count, sums);
  }
}

void Tensor::reduce(Slice slice, const std::vector<const char *> &pieces,
                    char *wire) {
  switch (what.wire) {
  case FP8_WIRE_F8_E4M3FN:
    return reduceAs<E4M3FN>(slice, pieces, wire);
  case FP8_WIRE_F8_E5M2:
    return reduceAs<E5M2>(slice, pieces, wire);
  case FP8_WIRE_BF16:
    return reduceBFloat16(slice, pieces, wire);
  default:
    reduceExactly(dtype, static_cast<fp8_reduction>(what.reduction),
                  slice.count, pieces, wire);
  }
}

template <typename Format>
void Tensor::decodeAs(Slice slice, const char *wire) const {
  const std::array<float, 256> &valueOf = float8Values<Format>();
  float factor = (isMean() ? 1.0f : static_cast<float>(ranks)) / mu();
  float values[chunkSize];
  inBlocks(slice, [&](int64_t begin, int64_t count, int64_t block) {
    auto *codes = reinterpret_cast<const uint8_t *>(wire + begin - slice.begin);
    float scale = powerOfTwo(exponents[block]);
    for (int64_t i = 0; i < count; ++i)
      values[i] = valueOf[codes[i]] * scale * factor;
    storeFloats(dtype, reduction.out, begin, count, values);
  });
}

void Tensor::decode(Slice slice, const char *wire) const {
  switch (what.wire) {
  case FP8_WIRE_F8_E4M3FN:
    return decodeAs<E4M3FN>(slice, wire);
  case FP8_WIRE_F8_E5M2:
    return decodeAs<E5M2>(slice, wire);
  case FP8_WIRE_BF16:
    return convertFromBFloat16(dtype, reduction.out, slice.begin, slice.count,
                               wire);
  default:
    if (slice.count > 0)
      std::memcpy(reduction.out + slice.begin * size, wire, slice.count * size);
  }
}

int64_t Tensor::findNonFinite(Slice slice,
                              const std::vector<const char *> &pieces,
                              const char *wire) const {
  bool isSum = what.reduction == FP8_REDUCE_SUM || isMean();
  TensorType type{static_cast<fp8_dtype>(wireType(what.wire, what.dtype)),
                  {slice.count}};
  if (!isSum || firstNonFinite(wire, type) < 0)
    return -1;
  for (size_t rank = 0; rank < pieces.size(); ++rank)
    if (firstNonFinite(pieces[rank], type) >= 0)
      return static_cast<int64_t>(rank);
  return -1; // The sum is too large.
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

namespace {

class Bucket {
public:
  Bucket(fp8_group &group, const std::vector<Reduction> &reductions);
  void run();

private:
  using Buffers = std::vector<std::vector<char>>; // by rank
  void agreeOnScales();
  std::vector<float> largest(std::vector<float> values);
  Buffers encode();
  std::vector<char> reduce(const Buffers &received);
  void distribute(const std::vector<char> &mine);
  void adaptScale(const Tensor &tensor);
  void decode(int64_t rank, const char *wire);
  void exchange(const Buffers &sends, Buffers &receives);
  int64_t bytesOf(int64_t rank) const;
  int64_t resultBytesOf(int64_t rank) const;
  int64_t bufferBytes() const;

  fp8_group &group;
  std::vector<Tensor> tensors;
  std::vector<char> own; // this rank's piece of its own slice
};

} // namespace

Bucket::Bucket(fp8_group &group, const std::vector<Reduction> &reductions)
    : group(group) {
  for (const Reduction &reduction : reductions) {
    tensors.emplace_back(reduction, group.size());
    tensors.back().number = group.countCollective();
  }
}

/// Returns the bytes of the slices that a rank reduces.
int64_t Bucket::bytesOf(int64_t rank) const {
  int64_t bytes = 0;
  for (const Tensor &tensor : tensors)
    bytes += tensor.bytes(rank);
  return bytes;
}

/// Returns the bytes that a rank sends to all.
int64_t Bucket::resultBytesOf(int64_t rank) const {
  int64_t bytes = static_cast<int64_t>(tensors.size() * sizeof(int64_t));
  for (const Tensor &tensor : tensors)
    bytes += tensor.resultBytes(rank);
  return bytes;
}

/// Returns the most bytes held at a time: the pieces received for this rank's
/// slices, and either the pieces sent before or the results after.
int64_t Bucket::bufferBytes() const {
  int64_t sent = 0, results = 0;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    sent += bytesOf(rank);
    results += resultBytesOf(rank);
  }
  int64_t mine = bytesOf(group.rank());
  return mine * (group.size() - 1) + std::max(sent, mine + results);
}

void Bucket::exchange(const Buffers &sends, Buffers &receives) {
  std::vector<fp8_message> out, in;
  for (const std::vector<char> &buffer : sends)
    out.push_back({const_cast<char *>(buffer.data()),
                   static_cast<int64_t>(buffer.size())});
  for (std::vector<char> &buffer : receives)
    in.push_back({buffer.data(), static_cast<int64_t>(buffer.size())});
  group.exchange(out, in);
}

/// Returns the maximum of each value over the ranks. Few values are sent to all
/// ranks at once; many are reduced in slices, as the tensors are.
std::vector<float> Bucket::largest(std::vector<float> values) {
  constexpr int64_t fewBytes = 4096;
  int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
  if (bytes * group.size() > fewBytes) {
    Reduction reduction = {};
    reduction.what.reduction = FP8_REDUCE_MAX;
    reduction.what.dtype = FP8_DTYPE_F32;
    reduction.what.elements = static_cast<int64_t>(values.size());
    reduction.in = reinterpret_cast<char *>(values.data());
    reduction.out = reinterpret_cast<char *>(values.data());
    allReduce(group, {reduction});
    return values;
  }
  std::vector<std::vector<float>> theirs(group.size());
  std::vector<fp8_message> sends, receives;
  for (std::vector<float> &each : theirs) {
    each.resize(values.size());
    sends.push_back({values.data(), bytes});
    receives.push_back({each.data(), bytes});
  }
  group.exchange(sends, receives);
  for (int64_t rank = 0; rank < group.size(); ++rank)
    for (size_t i = 0; i < values.size() && rank != group.rank(); ++i)
      values[i] = std::max(values[i], theirs[rank][i]);
  return values;
}

void Bucket::agreeOnScales() {
  size_t count = 0;
  for (const Tensor &tensor : tensors)
    count += tensor.numBlocks();
  if (count == 0)
    return;
  std::vector<float> amaxes(count);
  float *next = amaxes.data();
  for (const Tensor &tensor : tensors) {
    if (tensor.numBlocks() > 0)
      tensor.findAmaxes(next);
    next += tensor.numBlocks();
  }
  amaxes = largest(std::move(amaxes));
  next = amaxes.data();
  for (Tensor &tensor : tensors) {
    tensor.setScales(next);
    next += tensor.numBlocks();
  }
}

Bucket::Buffers Bucket::encode() {
  Buffers sends(group.size());
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    sends[rank].resize(bytesOf(rank));
    char *next = sends[rank].data();
    for (const Tensor &tensor : tensors) {
      tensor.encode(tensor.slice(rank), next);
      next += tensor.bytes(rank);
    }
  }
  own = std::move(sends[group.rank()]);
  sends[group.rank()].clear();
  return sends;
}

/// Returns what this rank sends to all: results, followed by the number of
/// saturated codes of each tensor.
std::vector<char> Bucket::reduce(const Buffers &received) {
  std::vector<char> results(resultBytesOf(group.rank())), kept;
  char *counts = results.data() + results.size() -
                 static_cast<int64_t>(tensors.size() * sizeof(int64_t));
  std::vector<const char *> pieces;
  for (int64_t rank = 0; rank < group.size(); ++rank)
    pieces.push_back(rank == group.rank() ? own.data() : received[rank].data());
  char *next = results.data();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor &tensor = tensors[i];
    Slice slice = tensor.slice(group.rank());
    int64_t size = tensor.bytes(group.rank());
    int64_t nonFinite = -1;
    if (tensor.isFromOwner()) {
      tensor.encode(tensor.result(group.rank()), next);
    } else if (tensor.isToOwner()) {
      kept.resize(size);
      tensor.reduce(slice, pieces, kept.data());
      nonFinite = tensor.findNonFinite(slice, pieces, kept.data());
      tensor.decode(slice, kept.data());
    } else {
      tensor.reduce(slice, pieces, next);
      nonFinite = tensor.findNonFinite(slice, pieces, next);
    }
    next += tensor.resultBytes(group.rank());
    for (const char *&piece : pieces)
      piece += size;
    if (nonFinite >= 0)
      group.noteNonFinite(tensor.number, nonFinite, tensor.what.label);
    std::memcpy(counts + i * sizeof(int64_t), &tensor.saturated,
                sizeof(int64_t));
    tensor.saturated = 0;
  }
  return results;
}

void Bucket::decode(int64_t rank, const char *wire) {
  for (const Tensor &tensor : tensors) {
    tensor.decode(tensor.result(rank), wire);
    wire += tensor.resultBytes(rank);
  }
  for (Tensor &tensor : tensors) {
    int64_t saturated;
    std::memcpy(&saturated, wire, sizeof(saturated));
    tensor.saturated += saturated;
    wire += sizeof(saturated);
  }
}

/// Updates mu, and notes how the tensor has travelled.
void Bucket::adaptScale(const Tensor &tensor) {
  float *control = tensor.reduction.control;
  updateMu(control, tensor.saturated, tensor.what.elements, tensor.ranks);
  noteScale(group, tensor.reduction, control, tensor.saturated);
}

void Bucket::distribute(const std::vector<char> &mine) {
  Buffers theirs(group.size());
  std::vector<fp8_message> sends, receives;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank())
      theirs[rank].resize(resultBytesOf(rank));
    sends.push_back(
        {const_cast<char *>(mine.data()), static_cast<int64_t>(mine.size())});
    receives.push_back(
        {theirs[rank].data(), static_cast<int64_t>(theirs[rank].size())});
  }
  group.exchange(sends, receives);
  for (int64_t rank = 0; rank < group.size(); ++rank)
    decode(rank, rank == group.rank() ? mine.data() : theirs[rank].data());
  for (const Tensor &tensor : tensors)
    if (isFloat8(tensor.what.wire))
      adaptScale(tensor);
}

void Bucket::run() {
  agreeOnScales();
  group.noteBuffers(bufferBytes());
  {
    Buffers received(group.size());
    for (int64_t rank = 0; rank < group.size(); ++rank)
      if (rank != group.rank())
        received[rank].resize(bytesOf(group.rank()));
    exchange(encode(), received);
    distribute(reduce(received));
  }
}

/// Returns the bytes that a rank sends to the others for one reduction.
static int64_t bytesSent(const Reduction &reduction, int64_t rank,
                         int64_t ranks) {
  int64_t elements = (ranks - 1) * resultOf(reduction, rank, ranks).count;
  for (int64_t other = 0; other < ranks; ++other)
    if (other != rank)
      elements += sliceOf(reduction, other, ranks).count;
  return elements * wireSize(reduction.what);
}

std::vector<int64_t> splitSentBytes(int64_t sent,
                                    const std::vector<Reduction> &bucket,
                                    int64_t rank, int64_t ranks) {
  std::vector<int64_t> bytes;
  int64_t common = sent;
  for (const Reduction &each : bucket) {
    bytes.push_back(bytesSent(each, rank, ranks));
    common -= bytes.back();
  }
  auto count = static_cast<int64_t>(bucket.size());
  for (int64_t i = 0; i < count; ++i)
    bytes[i] += common / count + (i < common % count);
  return bytes;
}

std::vector<int64_t> allReduce(fp8_group &group,
                               const std::vector<Reduction> &bucket) {
  int64_t before = group.bytesSent();
  Bucket(group, bucket).run();
  return splitSentBytes(group.bytesSent() - before, bucket, group.rank(),
                        group.size());
}

} // namespace fp8::rt
