//===- StagedCollectives.h - Collectives through the host -------*- C++ -*-===//
//
// Operands are copied to pinned host memory, where the group processes them as
// it does on the CPU, and the results are copied back. So the bits are the
// CPU's, on any transport.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_STAGEDCOLLECTIVES_H
#define FP8_LIB_RUNTIME_GPU_STAGEDCOLLECTIVES_H

#include "../Collectives/Engine.h"
#include "Driver.h"

#include <mutex>

namespace fp8::rt::gpu {

class StagedCollectives : public Engine {
public:
  /// Serves a step whose work is enqueued on the stream `work`.
  StagedCollectives(const Device &device, cuda::Stream work);
  ~StagedCollectives() override;
  StagedCollectives(const StagedCollectives &) = delete;
  StagedCollectives &operator=(const StagedCollectives &) = delete;

  Mark mark() override { return markOf(work); }
  void follow(const Mark &mark) override { follow(work, mark); }
  std::vector<int64_t> reduce(fp8_group &group,
                              const std::vector<Reduction> &bucket,
                              const Mark &mark,
                              const Announce &announce) override;
  void exchange(fp8_group &group, const Exchange &exchange, const Mark &mark,
                const Announce &announce) override;
  int64_t hostBytes() const override { return stagedBytes; }

protected:
  /// Returns a mark behind all work of a stream.
  Mark markOf(cuda::Stream stream);
  /// Lets a stream wait for a mark.
  void follow(cuda::Stream stream, const Mark &mark);

private:
  void begin(const Mark &mark);

  /// A part of the staging memory, and its address on the GPU.
  struct Staged {
    char *host;
    cuda::DevicePointer device;
    int64_t bytes;
    bool isFetched, isDelivered;
  };
  void place(std::vector<Staged> &parts);
  void fetch(const std::vector<Staged> &parts);
  void deliver(const std::vector<Staged> &parts);

  const Device &device;
  const Driver &driver;
  cuda::Stream work, copies = nullptr;
  char *staging = nullptr; // pinned; one job uses it at a time
  std::atomic<int64_t> stagedBytes{0};
  /// Two threads create and release marks.
  std::mutex mutex;
  std::vector<cuda::Event> freeEvents, allEvents;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_STAGEDCOLLECTIVES_H
