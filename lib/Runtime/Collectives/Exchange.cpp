//===- Exchange.cpp - Parts that ranks of a group exchange ----------------===//

#include "Exchange.h"
#include "../Support/Elements.h"
#include "../Support/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fp8::rt {

static int64_t numEntries(const fp8_exchange &what) {
  return what.groups * what.group_size;
}

/// The first member of the group of a rank; null if it is in none.
static const int64_t *groupOf(const fp8_exchange &what, int64_t rank) {
  const int64_t *end = what.ranks + numEntries(what);
  const int64_t *found = std::find(what.ranks, end, rank);
  if (found == end)
    return nullptr;
  return found - (found - what.ranks) % what.group_size;
}

std::string findMistake(const fp8_exchange &what, int64_t rank, int64_t ranks) {
  if (what.kind < 0 || what.kind >= FP8_NUM_EXCHANGES || what.part_bytes < 0 ||
      what.groups < 0 || what.group_size < 1 || what.dtype < -1 ||
      what.dtype >= FP8_NUM_DTYPES ||
      (what.kind == FP8_EXCHANGE_PERMUTE && what.group_size != 2))
    return "a value is out of its enumeration";
  for (int64_t i = 0; i < numEntries(what); ++i)
    if (what.ranks[i] < 0 || what.ranks[i] >= ranks)
      return str("expected at least ", what.ranks[i] + 1,
                 " ranks, which the step was written for, but got ", ranks,
                 " (mpirun -n, with --data-parallel)");
  if (what.kind != FP8_EXCHANGE_PERMUTE && !groupOf(what, rank))
    return str("expected rank ", rank,
               " in one of the groups, but it is in none of them");
  return "";
}

int64_t inputBytes(const fp8_exchange &what) {
  return what.part_bytes *
         (what.kind == FP8_EXCHANGE_ALL_TO_ALL ? what.group_size : 1);
}

int64_t resultBytes(const fp8_exchange &what) {
  return what.part_bytes *
         (what.kind == FP8_EXCHANGE_PERMUTE ? 1 : what.group_size);
}

int64_t bytesToSend(const fp8_exchange &what, int64_t rank) {
  if (what.kind != FP8_EXCHANGE_PERMUTE)
    return what.part_bytes * (what.group_size - 1);
  int64_t bytes = 0;
  for (int64_t pair = 0; pair < what.groups; ++pair)
    if (what.ranks[2 * pair] == rank && what.ranks[2 * pair + 1] != rank)
      bytes += what.part_bytes;
  return bytes;
}

std::vector<Part> partsOf(const Exchange &exchange, int64_t rank) {
  const fp8_exchange &what = exchange.what;
  std::vector<Part> parts;
  auto partOf = [&](int64_t other) -> Part & {
    auto found =
        std::find_if(parts.begin(), parts.end(),
                     [&](const Part &part) { return part.rank == other; });
    if (found == parts.end())
      found = parts.insert(found, {other, nullptr, nullptr});
    return *found;
  };
  if (what.kind == FP8_EXCHANGE_PERMUTE) {
    for (int64_t pair = 0; pair < what.groups; ++pair) {
      int64_t source = what.ranks[2 * pair], target = what.ranks[2 * pair + 1];
      if (source == rank)
        partOf(target).from = exchange.in;
      if (target == rank)
        partOf(source).to = exchange.out;
    }
    return parts;
  }
  const int64_t *members = groupOf(what, rank);
  for (int64_t i = 0; i < what.group_size; ++i) {
    bool isWhole = what.kind == FP8_EXCHANGE_GATHER;
    parts.push_back({members[i],
                     exchange.in + (isWhole ? 0 : i * what.part_bytes),
                     exchange.out + i * what.part_bytes});
  }
  return parts;
}

int64_t elementsToCheck(const fp8_exchange &what,
                        const std::vector<Part> &parts) {
  bool sends = std::any_of(parts.begin(), parts.end(),
                           [](const Part &part) { return part.from; });
  if (!sends || what.dtype < 0)
    return 0;
  return inputBytes(what) / static_cast<int64_t>(fp8_dtype_size(
                                static_cast<fp8_dtype>(what.dtype)));
}

/// Notes that this rank sends a value that is not finite. An infinity is only
/// noted where it will be summed: elsewhere it may be what the step means.
static void noteWhatIsSent(fp8_group &group, const Exchange &exchange,
                           const std::vector<Part> &parts) {
  const fp8_exchange &what = exchange.what;
  int64_t number = group.countCollective();
  int64_t count = elementsToCheck(what, parts);
  if (count == 0)
    return;
  auto dtype = static_cast<fp8_dtype>(what.dtype);
  int64_t at = firstNonFinite(exchange.in, {dtype, {count}});
  while (at >= 0 && at < count && !what.summed &&
         !std::isnan(elementAsDouble(exchange.in, dtype, at)))
    ++at;
  if (at >= 0 && at < count)
    group.noteNonFinite(number, group.rank(), what.label);
}

void runExchange(fp8_group &group, const Exchange &exchange) {
  int64_t bytes = exchange.what.part_bytes;
  std::vector<fp8_message> sends(group.size()), receives(group.size());
  bool receivesAny = false;
  std::vector<Part> parts = partsOf(exchange, group.rank());
  noteWhatIsSent(group, exchange, parts);
  for (const Part &part : parts) {
    receivesAny |= part.to != nullptr;
    if (part.rank == group.rank()) {
      std::memcpy(part.to, part.from, bytes);
      continue;
    }
    if (part.from)
      sends[part.rank] = {const_cast<char *>(part.from), bytes};
    if (part.to)
      receives[part.rank] = {part.to, bytes};
  }
  // StableHLO has zeros where nobody sends.
  if (!receivesAny)
    std::memset(exchange.out, 0, bytes);
  group.exchange(sends, receives);
}

} // namespace fp8::rt
