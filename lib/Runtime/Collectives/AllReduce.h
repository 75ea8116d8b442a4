//===- AllReduce.h - Reductions over ranks ----------------------*- C++ -*-===//
//
// Rank r reduces the r-th slice of every tensor: each rank sends every other
// its slice, sums what it receives in the order of the ranks, and sends the
// result to all. So all ranks hold the same bits, run after run.
//
// On an f8 wire both ways carry codes. The scale of the first is agreed on (the
// largest amax, rounded up to a power of two); the sum of N codes is rounded
// once more, after a multiplication by mu / N: with mu = 1 it cannot saturate.
// mu grows while it does not, and halves when it does (FP8-LM's automatic
// scaling).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ALLREDUCE_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ALLREDUCE_H

#include "Group.h"

namespace fp8::rt {

/// Elements one after another.
struct Slice {
  int64_t begin, count;
};

/// Who owns which slices of a shard: rank r those from element r on, up to the
/// one that element r + 1 is. The last element is their number.
using Owners = std::vector<int64_t>;

/// One reduction, and where its operands are.
struct Reduction {
  fp8_all_reduce what;
  int64_t number; // among the launches of its step
  const char *in;
  char *out;
  float *control; // mu and its steps; null on other wires
  /// The ranks that it goes to, or comes from; null: all.
  const Owners *owners = nullptr;

  bool isFromOwner() const { return what.reduction == FP8_REDUCE_OWNER; }
  bool isToOwner() const { return owners && !isFromOwner(); }
  /// What a rank owns of it.
  Slice owned(int64_t rank) const;
};

/// Why no runtime can do this; "" if this one can.
std::string findMistake(const fp8_all_reduce &what);

bool isFloat8(int64_t wire);
/// Bytes of an element, and of all elements, on the wire.
int64_t wireSize(const fp8_all_reduce &what);
int64_t wireBytes(const fp8_all_reduce &what);
/// Scales on an f8 wire, and the elements that share one.
int64_t numBlocks(const fp8_all_reduce &what);
int64_t blockElements(const fp8_all_reduce &what);

/// What a rank reduces, and what of the result it sends to all.
Slice sliceOf(const Reduction &reduction, int64_t rank, int64_t ranks);
Slice resultOf(const Reduction &reduction, int64_t rank, int64_t ranks);

/// `sent` bytes of a rank, shared out to the reductions of a bucket: to each
/// its own, and a share of what they have in common (scales, counts).
std::vector<int64_t> shareOut(int64_t sent,
                              const std::vector<Reduction> &bucket,
                              int64_t rank, int64_t ranks);

/// Does reductions together, as one bucket: a job of the group. Bits do not
/// depend on what travels together. Returns the bytes that each has sent.
std::vector<int64_t> allReduce(fp8_group &group,
                               const std::vector<Reduction> &bucket);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ALLREDUCE_H
