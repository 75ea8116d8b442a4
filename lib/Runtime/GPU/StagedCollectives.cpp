//===- StagedCollectives.cpp - Collectives through the host ---------------===//

#include "StagedCollectives.h"
#include "../Support/Memory.h"
#include "../Support/Text.h"

namespace fp8::rt::gpu {

StagedCollectives::StagedCollectives(const Device &device, cuda::Stream work)
    : device(device), driver(device.driver), work(work) {
  driver.check(driver.cuStreamCreate(&copies, cuda::streamNonBlocking),
               "make a stream");
}

StagedCollectives::~StagedCollectives() {
  driver.cuCtxSetCurrent(device.context);
  driver.cuStreamSynchronize(copies);
  for (cuda::Event event : allEvents)
    driver.cuEventDestroy_v2(event);
  driver.cuStreamDestroy_v2(copies);
  if (staging)
    driver.cuMemFreeHost(staging);
}

Engine::Mark StagedCollectives::markOf(cuda::Stream stream) {
  cuda::Event event = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (freeEvents.empty()) {
      driver.check(driver.cuEventCreate(&event, cuda::eventDisableTiming),
                   "make an event");
      allEvents.push_back(event);
    } else {
      event = freeEvents.back();
      freeEvents.pop_back();
    }
  }
  Mark mark(static_cast<void *>(event), [this](void *done) {
    std::lock_guard<std::mutex> lock(mutex);
    freeEvents.push_back(static_cast<cuda::Event>(done));
  });
  driver.check(driver.cuEventRecord(event, stream), "order a collective");
  return mark;
}

void StagedCollectives::follow(cuda::Stream stream, const Mark &mark) {
  driver.check(
      driver.cuStreamWaitEvent(stream, static_cast<cuda::Event>(mark.get()), 0),
      "order a collective");
}

/// Waits for the operands, in the group's thread.
void StagedCollectives::begin(const Mark &mark) {
  device.makeCurrent();
  driver.check(driver.cuEventSynchronize(static_cast<cuda::Event>(mark.get())),
               "compute what ranks reduce");
}

/// Assigns each part its place in the staging memory, which grows as needed.
void StagedCollectives::place(std::vector<Staged> &parts) {
  int64_t bytes = 0;
  for (const Staged &part : parts)
    bytes += alignUp(part.bytes);
  if (bytes > stagedBytes) {
    if (staging)
      driver.check(driver.cuMemFreeHost(staging), "free memory of the host");
    staging = nullptr;
    stagedBytes = 0;
    void *memory = nullptr;
    driver.check(driver.cuMemHostAlloc(&memory, bytes, 0),
                 str("pin ", bytesText(bytes), " of host memory"));
    staging = static_cast<char *>(memory);
    stagedBytes = bytes;
  }
  char *next = staging;
  for (Staged &part : parts) {
    part.host = next;
    next += alignUp(part.bytes);
  }
}

void StagedCollectives::fetch(const std::vector<Staged> &parts) {
  for (const Staged &part : parts)
    if (part.isFetched && part.bytes > 0)
      driver.check(driver.cuMemcpyDtoHAsync_v2(part.host, part.device,
                                               part.bytes, copies),
                   "copy what ranks reduce");
  driver.check(driver.cuStreamSynchronize(copies), "copy what ranks reduce");
}

/// The step's work continues only after this has returned, so no event is
/// needed.
void StagedCollectives::deliver(const std::vector<Staged> &parts) {
  for (const Staged &part : parts)
    if (part.isDelivered && part.bytes > 0)
      driver.check(driver.cuMemcpyHtoDAsync_v2(part.device, part.host,
                                               part.bytes, copies),
                   "copy what ranks have reduced");
  driver.check(driver.cuStreamSynchronize(copies),
               "copy what ranks have reduced");
}

std::vector<int64_t>
StagedCollectives::reduce(fp8_group &group,
                          const std::vector<Reduction> &bucket,
                          const Mark &mark, const Announce &) {
  begin(mark);
  // The operand and the result share memory, as the reduction allows. With an
  // owner, only one side has an operand or a result.
  std::vector<Staged> operands, results, controls;
  std::vector<int64_t> begins;
  for (const Reduction &each : bucket) {
    int64_t bytes = each.what.elements *
                    fp8_dtype_size(static_cast<fp8_dtype>(each.what.dtype));
    bool isOwner = each.owners && each.owned(group.rank()).count > 0;
    operands.push_back({nullptr, addressOf(each.in), bytes,
                        /*isFetched=*/!each.isFromOwner() || isOwner,
                        /*isDelivered=*/false});
    // An owner gets only the elements that it owns.
    Slice taken = each.isToOwner() ? each.owned(group.rank())
                                   : Slice{0, each.what.elements};
    int64_t size = fp8_dtype_size(static_cast<fp8_dtype>(each.what.dtype));
    begins.push_back(taken.begin * size);
    results.push_back({nullptr, addressOf(each.out) + begins.back(),
                       taken.count * size, /*isFetched=*/false,
                       /*isDelivered=*/true});
    int64_t controlBytes = each.control ? 2 * sizeof(float) : 0;
    controls.push_back({nullptr, addressOf(each.control), controlBytes,
                        /*isFetched=*/true, /*isDelivered=*/true});
  }
  std::vector<Staged> parts = operands;
  parts.insert(parts.end(), controls.begin(), controls.end());
  place(parts);
  fetch(parts);
  std::vector<Reduction> staged = bucket;
  for (size_t i = 0; i < bucket.size(); ++i) {
    staged[i].in = staged[i].out = parts[i].host;
    results[i].host = parts[i].host + begins[i];
    controls[i].host = parts[bucket.size() + i].host;
    if (bucket[i].control)
      staged[i].control = reinterpret_cast<float *>(controls[i].host);
  }
  std::vector<int64_t> sent = allReduce(group, staged);
  results.insert(results.end(), controls.begin(), controls.end());
  deliver(results);
  return sent;
}

void StagedCollectives::exchange(fp8_group &group, const Exchange &exchange,
                                 const Mark &mark, const Announce &) {
  begin(mark);
  std::vector<Staged> parts = {
      {nullptr, addressOf(exchange.in), inputBytes(exchange.what),
       /*isFetched=*/true, /*isDelivered=*/false},
      {nullptr, addressOf(exchange.out), resultBytes(exchange.what),
       /*isFetched=*/false, /*isDelivered=*/true}};
  place(parts);
  fetch(parts);
  Exchange staged = exchange;
  staged.in = parts[0].host;
  staged.out = parts[1].host;
  runExchange(group, staged);
  deliver(parts);
}

} // namespace fp8::rt::gpu
