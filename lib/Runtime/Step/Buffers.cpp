//===- Buffers.cpp - The memory of a step ---------------------------------===//

#include "../GPU/DeviceStep.h"
#include "Step.h"

#include <algorithm>
#include <unistd.h>

using namespace fp8::rt;

static const int64_t pageSize = sysconf(_SC_PAGESIZE);

/// Returns the bytes from the beginning of a tensor to that of the next one.
/// Large tensors begin at different places of a page: a CPU that compares the
/// low 12 bits of addresses lets a load wait for a store to the same place of
/// another tensor, and lines of such tensors compete for the same sets of its
/// caches. Adam on four arrays of 256 MiB takes 2.5 times as long then.
static int64_t distanceToNext(int64_t bytes) {
  constexpr int64_t kLarge = 1 << 20, kStagger = 4096 + 256;
  return alignUp(bytes) + (bytes >= kLarge ? kStagger : 0);
}

/// Returns the bytes that `bytes` of a tensor take in its shard. Slices are
/// contiguous, so only tensors without slices are padded.
static int64_t bytesInShard(const TensorInfo &tensor, int64_t bytes) {
  return tensor.slices > 1 ? bytes : alignUp(bytes);
}

/// Finds the bytes and the number of slices of each shard.
void fp8_step::measureShards() {
  for (const TensorInfo &argument : executable.arguments) {
    if (argument.shard == 0)
      continue;
    shards.resize(
        std::max<size_t>(shards.size(), static_cast<size_t>(argument.shard)));
    Shard &shard = shards[argument.shard - 1];
    if (shard.bytes > 0 && shard.slices != argument.slices)
      throw Error(FP8_ERROR_INVALID,
                  str("argument '", argument.name, "': expected ", shard.slices,
                      " slices of shard ", argument.shard, " but got ",
                      argument.slices));
    shard.slices = argument.slices;
    shard.bytes += bytesInShard(argument, argument.type.bytes());
  }
}

/// Allocates arguments and results: first what all ranks have, then every shard
/// on pages of its own, so that other ranks' shards take no memory.
void fp8_step::placeBuffers() {
  std::vector<const TensorInfo *> tensors;
  for (const TensorInfo &argument : executable.arguments)
    tensors.push_back(&argument);
  for (size_t i = 0; i < executable.results.size(); ++i) {
    bool isOwn = executable.ownsBuffer(i);
    resultSlots.push_back(isOwn ? tensors.size()
                                : executable.results[i].stateArg);
    if (isOwn)
      tensors.push_back(&executable.results[i]);
  }
  std::vector<std::vector<size_t>> members(shards.size() + 1);
  for (size_t i = 0; i < tensors.size(); ++i)
    members[tensors[i]->shard].push_back(i);
  std::vector<int64_t> offsets(tensors.size());
  int64_t next = 0;
  for (const std::vector<size_t> &shard : members) {
    for (size_t i : shard) {
      offsets[i] = next;
      next += distanceToNext(tensors[i]->type.bytes());
    }
    if (!shards.empty())
      next = alignUp(next, pageSize);
  }
  buffers = Mapping(device ? 0 : next + 64);
  for (int64_t offset : offsets)
    externals.push_back(device ? buffers.data() : buffers.data() + offset);
}

void fp8_step::drop() {
  wholes.clear();
  if (device)
    return; // It is a single allocation.
  auto dropOthers = [&](const TensorInfo &tensor, size_t slot) {
    Slice own = ownBytes(tensor);
    const char *data = static_cast<char *>(externals[slot]);
    int64_t bytes = alignUp(tensor.type.bytes()), end = own.begin + own.count;
    if (own.count == 0)
      return buffers.release(data, bytes);
    buffers.release(data, own.begin);
    if (end < tensor.type.bytes())
      buffers.release(data + end, bytes - end);
  };
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    dropOthers(executable.arguments[i], i);
  for (size_t i = 0; i < executable.results.size(); ++i)
    if (executable.ownsBuffer(i))
      dropOthers(executable.results[i], resultSlots[i]);
}

void fp8_step::memory(fp8_memory &out) const {
  out.arena_planned = executable.arenaBytes;
  out.arena_reserved = device ? executable.arenaBytes : arena.reserved();
  out.arena_touched = device ? executable.arenaBytes : arena.touched();
  out.arguments = argumentBytes;
  out.results = resultBytes;
  out.shards = 0;
  out.reductions = inFlight ? inFlight->hostBytes() : 0;
  // A GPU holds other ranks' shards, too.
  auto ownIn = [&](const TensorInfo &tensor) {
    return bytesInShard(tensor, ownBytes(tensor).count);
  };
  for (const TensorInfo &argument : executable.arguments) {
    if (argument.shard == 0)
      continue;
    out.shards += ownIn(argument);
    if (!device)
      out.arguments -= alignUp(argument.type.bytes()) - ownIn(argument);
  }
  for (size_t i = 0; i < executable.results.size() && !device; ++i)
    if (const TensorInfo &result = executable.results[i];
        executable.ownsBuffer(i) && result.shard > 0)
      out.results -= alignUp(result.type.bytes()) - ownIn(result);
  out.arguments_touched =
      device ? out.arguments + out.results : buffers.touched();
  out.constants = executable.constantBytes;
  out.scratch = device
                    ? executable.scratchBytes
                    : alignUp(std::max<int64_t>(executable.scratchBytes, 1)) *
                          static_cast<int64_t>(scratch.size());
  out.peak_rss = peakRss();
}
