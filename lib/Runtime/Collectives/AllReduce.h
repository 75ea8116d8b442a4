//===- AllReduce.h - Reductions over ranks ----------------------*- C++ -*-===//
//
// Rank r reduces the r-th slice of every tensor: each rank sends every other
// rank its slice, sums what it receives in rank order, and sends the result to
// all. So all ranks hold the same bits, in every run.
//
// On an f8 wire both transfers carry f8 codes. The ranks agree on the scale of
// the first (the largest amax, rounded up to a power of two). The sum of N
// codes is multiplied by mu / N and rounded once more: with mu = 1 it cannot
// saturate. mu grows while no code saturates, and halves when codes do
// (FP8-LM's automatic scaling).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ALLREDUCE_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ALLREDUCE_H

#include "Group.h"

namespace fp8::rt {

/// A range of consecutive elements.
struct Slice {
  int64_t begin, count;
};

/// The owners of the slices of a shard: rank r owns slices [owners[r],
/// owners[r + 1]). The last element is the number of slices.
using Owners = std::vector<int64_t>;

/// A reduction with the addresses of its operands.
struct Reduction {
  fp8_all_reduce what;
  int64_t number; // in the numbering of its step's launches
  const char *in;
  char *out;
  float *control; // mu and its age in steps, on f8 wires; else null
  /// The ranks that get or send the result; null: all ranks get it.
  const Owners *owners = nullptr;
  /// The slice of the shard, or of a stack, that the operands are; -1: all.
  int64_t slice = -1;

  bool isFromOwner() const { return what.reduction == FP8_REDUCE_OWNER; }
  bool isToOwner() const { return owners && !isFromOwner(); }
  /// Returns the elements that a rank owns. There must be owners.
  Slice owned(int64_t rank) const;
};

/// Returns why the reduction is invalid; "" if it is valid.
std::string findMistake(const fp8_all_reduce &what);

bool isFloat8(int64_t wire);
/// Return the bytes of one element, and of all elements, on the wire.
int64_t wireSize(const fp8_all_reduce &what);
int64_t wireBytes(const fp8_all_reduce &what);
/// Return the number of scales on an f8 wire, and the elements that share one.
int64_t numBlocks(const fp8_all_reduce &what);
int64_t blockElements(const fp8_all_reduce &what);

/// Return the slice that a rank reduces, and the slice of the result that it
/// sends to all.
Slice sliceOf(const Reduction &reduction, int64_t rank, int64_t ranks);
Slice resultOf(const Reduction &reduction, int64_t rank, int64_t ranks);

/// For jobs: notes how a sum on an f8 wire has travelled: the next sum's mu and
/// age, and how many codes of all ranks have saturated.
void noteScale(fp8_group &group, const Reduction &reduction, const float *mu,
               int64_t saturated);

/// Splits the `sent` bytes of a rank over the reductions of a bucket: each gets
/// its own bytes, and a share of the common ones (scales, counts).
std::vector<int64_t> splitSentBytes(int64_t sent,
                                    const std::vector<Reduction> &bucket,
                                    int64_t rank, int64_t ranks);

/// Runs the reductions of a bucket together, in a job of the group. Bits do not
/// depend on the bucket. Returns the bytes that this rank has sent for each
/// reduction.
std::vector<int64_t> allReduce(fp8_group &group,
                               const std::vector<Reduction> &bucket);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ALLREDUCE_H
