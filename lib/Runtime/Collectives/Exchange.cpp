//===- Exchange.cpp - Parts that ranks of a group exchange ----------------===//

#include "Exchange.h"

#include <algorithm>
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
      what.groups < 0 || what.group_size < 1 ||
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

namespace {
/// The messages of one exchange, by rank.
struct Messages {
  explicit Messages(fp8_group &group)
      : group(group), sends(group.size()), receives(group.size()) {}

  /// To `rank`; what goes to this rank itself is copied by what receives it.
  void send(int64_t rank, const char *data, int64_t bytes) {
    sends[rank] = {const_cast<char *>(data), bytes};
  }
  void receive(int64_t rank, char *data, int64_t bytes) {
    receives[rank] = {data, bytes};
  }
  void run() {
    const fp8_message &from = sends[group.rank()];
    const fp8_message &to = receives[group.rank()];
    if (to.bytes > 0)
      std::memcpy(to.data, from.data, to.bytes);
    sends[group.rank()] = receives[group.rank()] = {};
    group.exchange(sends, receives);
  }

  fp8_group &group;
  std::vector<fp8_message> sends, receives;
};
} // namespace

static void permute(const Exchange &exchange, fp8_group &group,
                    Messages &messages) {
  const fp8_exchange &what = exchange.what;
  bool receives = false;
  for (int64_t pair = 0; pair < what.groups; ++pair) {
    int64_t source = what.ranks[2 * pair], target = what.ranks[2 * pair + 1];
    if (source == group.rank())
      messages.send(target, exchange.in, what.part_bytes);
    if (target == group.rank()) {
      messages.receive(source, exchange.out, what.part_bytes);
      receives = true;
    }
  }
  // As StableHLO says: zeros where nobody sends.
  if (!receives)
    std::memset(exchange.out, 0, what.part_bytes);
}

void runExchange(fp8_group &group, const Exchange &exchange) {
  const fp8_exchange &what = exchange.what;
  Messages messages(group);
  if (what.kind == FP8_EXCHANGE_PERMUTE) {
    permute(exchange, group, messages);
    return messages.run();
  }
  const int64_t *members = groupOf(what, group.rank());
  for (int64_t i = 0; i < what.group_size; ++i) {
    bool isWhole = what.kind == FP8_EXCHANGE_GATHER;
    messages.send(members[i], exchange.in + (isWhole ? 0 : i * what.part_bytes),
                  what.part_bytes);
    messages.receive(members[i], exchange.out + i * what.part_bytes,
                     what.part_bytes);
  }
  messages.run();
}

} // namespace fp8::rt
