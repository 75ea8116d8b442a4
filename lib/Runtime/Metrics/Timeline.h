//===- Timeline.h - When each thread worked on which launch -----*- C++ -*-===//
//
// Records the last steps of a run as a trace for Perfetto and chrome://tracing:
// one track a thread, one slice a launch and thread. With several ranks there
// is also a track of the network, with one slice a transfer, and slices for
// waiting.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_METRICS_TIMELINE_H
#define FP8_LIB_RUNTIME_METRICS_TIMELINE_H

#include "../Step/ThreadPool.h"

#include <chrono>
#include <deque>
#include <string>

namespace fp8::rt {

class Timeline {
public:
  using Clock = std::chrono::steady_clock;

  /// The limit on slices. The newest steps are kept whole as long as their
  /// slices stay within it; a single step that has more is truncated.
  static constexpr size_t maxSlices = 1 << 16;

  explicit Timeline(int threads);

  void beginStep(int64_t number);
  void endStep();

  /// Calls pool.run and records what each thread did.
  void runTasks(ThreadPool &pool, fp8_kernel_fn fn, int64_t numTasks,
                void *const *operands, void *const *scratch);
  /// Adds the launch whose tasks have just run. The launching thread is busy
  /// with it from begin to end, other threads from their first task to their
  /// last.
  void addLaunch(int64_t launch, Clock::time_point begin,
                 Clock::time_point end);

  /// Adds collectives that travelled together, with the bytes sent to other
  /// ranks.
  void addTransfer(std::string name, size_t collectives, int64_t bytes,
                   Clock::time_point begin, Clock::time_point end);
  /// Adds a wait of the launching thread for collectives.
  void addWait(std::string name, Clock::time_point begin,
               Clock::time_point end);

  /// Returns the timeline in Chrome's trace event format.
  std::string json(const std::vector<std::string> &launchNames) const;

private:
  struct Slice {
    int32_t thread;
    int64_t launch, tasks;
    Clock::time_point begin, end;
    Clock::duration inTasks;
  };
  /// Collectives, on the network or waited for (then without bytes).
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
    int64_t left = 0; // slices left out
    size_t size() const { return slices.size() + transfers.size(); }
  };
  /// A thread's share of the current launch, in a cache line of its own.
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

#endif // FP8_LIB_RUNTIME_METRICS_TIMELINE_H
