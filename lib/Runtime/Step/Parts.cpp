//===- Parts.cpp - State in parts -----------------------------------------===//
//
// A step in shard_map takes its rank's part of such an argument. Everything
// else (initial values, checkpoints, evaluations, exports) works on whole
// tensors: parts are cut from them, and gathered from the ranks while they are
// being read.
//
//===----------------------------------------------------------------------===//

#include "Step.h"

#include <algorithm>
#include <cstring>

using namespace fp8::rt;

bool fp8_step::hasParts() const {
  return std::any_of(
      executable.arguments.begin(), executable.arguments.end(),
      [](const TensorInfo &info) { return info.isPartOfState(); });
}

void fp8_step::checkNumRanks() const {
  if (executable.numRanks > 0 && executable.numRanks != numRanks())
    throw Error(FP8_ERROR_INVALID,
                str("expected ", executable.numRanks,
                    " ranks, which the step was written for, but got ",
                    numRanks()));
}

/// Splits a dimension into blocks, which become a dimension of their own.
static std::vector<int64_t> splitBlocks(std::vector<int64_t> dims, size_t dim,
                                        int64_t blocks) {
  dims[dim] /= blocks;
  dims.insert(dims.begin() + dim, blocks);
  return dims;
}

/// Calls `copy` for each row of a part along the last dimension, with the row's
/// offsets in the whole and in the part, and its length, all in bytes.
template <typename F>
static void forEachRow(const TensorInfo &info, int64_t rank, F copy) {
  int64_t size = static_cast<int64_t>(fp8_dtype_size(info.type.dtype));
  size_t dim = info.dividedDim();
  std::vector<int64_t> dims = splitBlocks(info.type.dims, dim, info.partBlocks);
  std::vector<int64_t> whole = splitBlocks(info.whole, dim, info.partBlocks);
  std::vector<int64_t> offset = info.partOffset(rank);
  offset.insert(offset.begin() + dim, 0);
  std::vector<int64_t> place(offset.size());
  int64_t bytes = dims.back() * size;
  int64_t rows = bytes ? info.type.bytes() / bytes : 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = 0;
    for (size_t i = 0; i < place.size(); ++i)
      at = at * whole[i] + offset[i] + place[i];
    copy(at * size, row * bytes, bytes);
    for (size_t i = place.size() - 1; i-- > 0;) {
      if (++place[i] < dims[i])
        break;
      place[i] = 0;
    }
  }
}

void fp8_step::setWhole(size_t i, const Value &value) {
  const TensorInfo &info = executable.arguments[i];
  if (!value || !info.isPart())
    return set(i, value);
  checkNumRanks();
  const char *whole = static_cast<const char *>(value.bytes());
  char *part = argument(i);
  forEachRow(info, rank(), [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(part + to, whole + from, bytes);
  });
}

void fp8_step::setOwned(size_t i, const void *value) {
  const TensorInfo &info = executable.arguments[i];
  if (info.shard == 0)
    return setWhole(i, value);
  Slice own = ownBytes(info);
  std::memcpy(argument(i) + own.begin,
              static_cast<const char *>(value) + own.begin, own.count);
}

Value fp8_step::wholeValue(size_t i) {
  if (!executable.arguments[i].isPart())
    return Value::argument(*this, i);
  auto found = wholes.find(i);
  if (found == wholes.end())
    throw Error(FP8_ERROR_INVALID,
                str("expected '", executable.arguments[i].name,
                    "', of which each rank has a part, to be gathered"));
  return {found->second.get()};
}

int64_t fp8_step::partOf(size_t i, int64_t rank) const {
  const TensorInfo &info = executable.arguments[i];
  if (!info.isPart())
    return 0;
  int64_t first = 0;
  while (info.partOffset(first) != info.partOffset(rank))
    ++first;
  return first;
}

void fp8_step::gatherPart(size_t i, int64_t only) {
  const TensorInfo &info = executable.arguments[i];
  checkNumRanks();
  fp8_group &group = inFlight->ranks();
  int64_t bytes = info.type.bytes(), me = group.rank();
  bool isTaker = only < 0 || only == me;
  const char *mine = value(i);
  // Each part comes from the lowest rank that has it.
  std::vector<AlignedBuffer> parts(group.size());
  std::vector<fp8_message> sends(group.size()), receives(group.size());
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank == me)
      continue;
    if (partOf(i, me) == me && (only < 0 || only == rank))
      sends[rank] = {const_cast<char *>(mine), bytes};
    if (isTaker && partOf(i, rank) == rank) {
      parts[rank] = allocateAligned(bytes);
      receives[rank] = {parts[rank].get(), bytes};
    }
  }
  group.wait(group.submit([&] { group.exchange(sends, receives); }));
  if (!isTaker)
    return;
  AlignedBuffer &whole = wholes[i];
  whole = allocateAligned(info.wholeType().bytes());
  auto paste = [&](int64_t rank, const char *part) {
    forEachRow(info, rank, [&](int64_t to, int64_t from, int64_t bytes) {
      std::memcpy(whole.get() + to, part + from, bytes);
    });
  };
  paste(me, mine);
  for (int64_t rank = 0; rank < group.size(); ++rank)
    if (parts[rank])
      paste(rank, parts[rank].get());
}
