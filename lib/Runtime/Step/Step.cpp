//===- Step.cpp - A step of an executable ---------------------------------===//

#include "Step.h"
#include "../GPU/DeviceStep.h"

#include <algorithm>
#include <limits>
#include <utility>

using namespace fp8::rt;

/// Returns the bytes to reserve for the arena of a step on the CPU. Even an
/// empty one needs an address, for empty tensors.
static int64_t reservedForArena(const fp8_executable &executable) {
  constexpr int64_t kMore = 64;
  return std::min(executable.arenaBytes,
                  std::numeric_limits<int64_t>::max() - kMore) +
         kMore;
}

fp8_step::fp8_step(const fp8_executable &executable, int threads)
    : executable(executable),
      pool(ThreadPool::get(!executable.gpuKernels.empty() ? 1
                           : threads > 0 ? threads
                                         : ThreadPool::defaultThreads())),
      arena(executable.gpuKernels.empty() ? reservedForArena(executable) : 0) {
  for (const TensorInfo &argument : executable.arguments)
    argumentBytes += alignUp(argument.type.bytes());
  for (size_t i = 0; i < executable.results.size(); ++i)
    if (executable.ownsBuffer(i))
      resultBytes += alignUp(executable.results[i].type.bytes());
  if (!executable.gpuKernels.empty())
    device = std::make_unique<gpu::DeviceStep>(executable);
  measureShards();
  placeBuffers();
  for (const void *constant : executable.constants)
    externals.push_back(const_cast<void *>(constant));

  for (int i = 0; i < pool->size() && !device; ++i) {
    scratchMemory.push_back(allocateAligned(executable.scratchBytes));
    scratch.push_back(scratchMemory.back().get());
  }
}

fp8_step::~fp8_step() = default;

bool fp8_step::hasFailed() const {
  return device ? device->hasFailed() : !failure.empty();
}

void fp8_step::fail(const Error &error) {
  if (device)
    return device->fail(error);
  failure = error.what();
  failureStatus = error.status;
}

void fp8_step::setGroup(fp8_group *group) {
  inFlight.reset();
  for (Shard &shard : shards)
    shard.owners.clear();
  if (device)
    device->dropRecording();
  if (!group)
    return;
  inFlight.emplace(*group, makeEngine());
  if (numRanks() > 1)
    dealShards();
}

void fp8_step::clearProfile() {
  profile.clear();
  if (inFlight)
    inFlight->clearProfile();
}

void fp8_step::stage() {
  if (device)
    device->stage();
}

void fp8_step::run() {
  checkNumRanks();
  if (inFlight)
    inFlight->ranks().beginRun();
  if (device)
    return runOnDevice();
  std::unique_lock<std::mutex> lock = pool->use();
  wholes.clear();
  failure.clear();
  failureStatus = FP8_ERROR_INTERNAL;
  if (inFlight)
    inFlight->timeline = profiling ? timeline.get() : nullptr;
  executable.entry(this);
  if (inFlight && failure.empty())
    inFlight->waitForAll();
  if (!failure.empty()) {
    if (inFlight)
      inFlight->abandon();
    throw Error(failureStatus, failure);
  }
  for (size_t i = 0; i < executable.results.size(); ++i) {
    const TensorInfo &result = executable.results[i];
    if (result.stateArg >= 0 && result.ownBuffer)
      std::swap(externals[result.stateArg], externals[resultSlots[i]]);
  }
}

void fp8_step::runOnDevice() {
  device->profiling = profiling;
  device->profile = &profile;
  try {
    device->run(*this);
    if (inFlight)
      inFlight->waitForAll();
  } catch (const Error &) {
    if (inFlight)
      inFlight->abandon();
    throw;
  }
}
