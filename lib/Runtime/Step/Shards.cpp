//===- Shards.cpp - State that ranks own ----------------------------------===//

#include "Step.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace fp8::rt;

/// Deals the shards as FP8-LM's Algorithm 1 does: whole tensors, or the slices
/// of stacks, the largest first, each to the rank with the fewest bytes so far.
/// All slices of a stack have the same size, so each rank gets consecutive
/// ones, as many as it was dealt.
void fp8_step::dealShards() {
  auto sizeOf = [](const Shard &shard) { return shard.bytes / shard.slices; };
  std::vector<size_t> order(shards.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-sizeOf(shards[a]), a) < std::pair(-sizeOf(shards[b]), b);
  });
  std::vector<int64_t> load(numRanks());
  for (size_t number : order) {
    Shard &shard = shards[number];
    shard.owners.assign(numRanks() + 1, 0);
    for (int64_t slice = 0; slice < shard.slices; ++slice) {
      auto least = std::min_element(load.begin(), load.end());
      ++shard.owners[least - load.begin() + 1];
      *least += sizeOf(shard);
    }
    std::partial_sum(shard.owners.begin(), shard.owners.end(),
                     shard.owners.begin());
  }
}

Slice fp8_step::ownSlices(int64_t shard) const {
  if (shard < 1 || shard > static_cast<int64_t>(shards.size()))
    return {0, 0};
  const Shard &of = shards[shard - 1];
  if (of.owners.empty())
    return {0, of.slices};
  int64_t begin = of.owners[rank()];
  return {begin, of.owners[rank() + 1] - begin};
}

Slice fp8_step::bytesOf(const TensorInfo &tensor, int64_t rank) const {
  int64_t bytes = tensor.type.bytes();
  if (tensor.shard == 0 || !isDealt())
    return {0, bytes};
  const Owners &owners = shards[tensor.shard - 1].owners;
  int64_t size = bytes / tensor.slices;
  return {owners[rank] * size, (owners[rank + 1] - owners[rank]) * size};
}

int64_t fp8_step::ownerOf(int64_t shard) const {
  const Owners &owners = shards[shard - 1].owners;
  for (size_t rank = 0; rank + 1 < owners.size(); ++rank)
    if (owners[rank + 1] - owners[rank] == owners.back())
      return static_cast<int64_t>(rank);
  return owners.empty() ? 0 : -1;
}

int64_t fp8_step::shardBytesOf(int64_t rank) const {
  int64_t bytes = 0;
  for (const Shard &shard : shards)
    bytes += shard.owners.empty()
                 ? shard.bytes
                 : shard.bytes / shard.slices *
                       (shard.owners[rank + 1] - shard.owners[rank]);
  return bytes;
}

void fp8_step::gather(int64_t only) {
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    if (executable.arguments[i].isPartOfState())
      gatherPart(i, only);
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    if (executable.arguments[i].shard > 0)
      gatherShard(i, only);
}

void fp8_step::gatherShard(size_t i, int64_t only) {
  const TensorInfo &argument = executable.arguments[i];
  if (!isDealt() || (only >= 0 && ownerOf(argument.shard) == only))
    return;
  fp8_group &group = inFlight->ranks();
  char *data = this->argument(i);
  std::vector<fp8_message> sends(group.size()), receives(group.size());
  auto takes = [&](int64_t rank) { return only < 0 || only == rank; };
  auto ofRank = [&](int64_t rank) {
    Slice bytes = bytesOf(argument, rank);
    return fp8_message{data + bytes.begin, bytes.count};
  };
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank())
      continue;
    if (takes(rank))
      sends[rank] = ofRank(group.rank());
    if (takes(group.rank()))
      receives[rank] = ofRank(rank);
  }
  group.wait(group.submit([&] { group.exchange(sends, receives); }));
}
