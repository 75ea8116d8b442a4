//===- Timeline.h - When each thread worked on which launch -----*- C++ -*-===//
//
// The last steps of a run as a trace that Perfetto and chrome://tracing open:
// one track a thread, one slice a launch and thread; on several ranks a track
// of the network, one slice a message to all, and slices of waiting for them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TIMELINE_H
#define FP8_LIB_RUNTIME_TIMELINE_H

#include "ThreadPool.h"

#include <chrono>
#include <deque>
#include <string>

namespace fp8::rt {

class Timeline {
public:
  using Clock = std::chrono::steady_clock;

  /// Steps are kept whole, the newest ones, as far as they have no more slices
  /// than this together. A single step that has more is cut.
  static constexpr size_t maxSlices = 1 << 16;

  explicit Timeline(int threads);

  void beginStep(int64_t number);
  void endStep();

  /// What pool.run does, and notes what each thread had of it.
  void runTasks(ThreadPool &pool, fp8_kernel_fn fn, int64_t numTasks,
                void *const *operands, void *const *scratch);
  /// The launch whose tasks have just run. The thread that launches is busy
  /// with it from begin to end; the others from their first task to their last.
  void addLaunch(int64_t launch, Clock::time_point begin,
                 Clock::time_point end);

  /// Collectives that have travelled together, and sent bytes to other ranks.
  void addTransfer(std::string name, size_t collectives, int64_t bytes,
                   Clock::time_point begin, Clock::time_point end);
  /// The thread that launches has waited for some.
  void addWait(std::string name, Clock::time_point begin,
               Clock::time_point end);

  /// Chrome's trace event format.
  std::string json(const std::vector<std::string> &launchNames) const;

private:
  struct Slice {
    int32_t thread;
    int64_t launch, tasks;
    Clock::time_point begin, end;
    Clock::duration inTasks;
  };
  /// Of collectives: on the network, or waited for (no bytes).
  struct Transfer {
    std::string name;
    size_t collectives;
    int64_t bytes;
    Clock::time_point begin, end;
    bool isWait;
  };
  struct Step {
    int64_t number;
    Clock::time_point begin, end;
    std::vector<Slice> slices;
    std::vector<Transfer> transfers;
    int64_t left = 0; // slices that did not fit
    size_t size() const { return slices.size() + transfers.size(); }
  };
  /// What a thread had of the launch that runs; in a cache line of its own.
  struct alignas(64) ThreadTime {
    void *scratch;
    int64_t tasks;
    Clock::time_point begin, end;
    Clock::duration inTasks;
  };

  static void timedTask(int64_t task, void *const *operands, void *scratch);
  void add(Slice slice);
  void add(Transfer transfer);

  std::deque<Step> steps;
  size_t sliceCount = 0;
  std::vector<ThreadTime> times;
  std::vector<void *> timeAddresses;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TIMELINE_H
