//===- ThreadPool.h - Launching tasks with little latency -------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STEP_THREADPOOL_H
#define FP8_LIB_RUNTIME_STEP_THREADPOOL_H

#include "fp8-c/Runtime.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fp8::rt {

/// Threads that share the tasks of one launch after another. The caller takes
/// part, so a pool of one thread starts none.
///
/// A step makes hundreds of launches with tasks as short as 20 us, so a launch
/// must cost about a microsecond: idle threads poll for the next launch for a
/// short while before they sleep, and a launch never waits for a thread that
/// has not woken up yet (it only waits for tasks that have begun).
class ThreadPool {
public:
  /// Returns the pool of this size, which all steps with this number share.
  static std::shared_ptr<ThreadPool> get(int threads);
  /// Returns the number of cores that the process may use.
  static int defaultThreads();

  explicit ThreadPool(int threads);
  ~ThreadPool();

  int size() const { return numThreads; }

  /// Takes the pool for one user, such as a step that runs, until the lock is
  /// gone. A pool of one thread is only the caller and needs no lock: steps of
  /// several ranks in one process wait for each other.
  [[nodiscard]] std::unique_lock<std::mutex> use();

  /// Runs all tasks. Thread i of the pool passes scratch[i]. Callers must have
  /// called `use`.
  void run(fp8_kernel_fn fn, int64_t numTasks, void *const *operands,
           void *const *scratch);

private:
  struct Shared;
  void start();
  void stop();
  void forget();
  void work(int index);
  /// Claims and runs tasks until the launch has none left; returns false if it
  /// ran none.
  bool runTasks(int index);
  bool hasTasks() const;

  // The high half of `ticket` identifies a launch; the low half is the next
  // task. Claiming is a compare-and-swap of both, so no thread can claim a task
  // of one launch with the fields of another.
  alignas(64) std::atomic<uint64_t> ticket;
  alignas(64) std::atomic<fp8_kernel_fn> kernel{nullptr};
  std::atomic<int64_t> taskCount{0};
  std::atomic<void *const *> operandList{nullptr};
  std::atomic<void *const *> scratchList{nullptr};
  alignas(64) std::atomic<int64_t> tasksDone{0};
  alignas(64) std::atomic<uint32_t> wakeCount{0};
  std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  bool crowded; // more threads than cores: polling would steal time
  std::mutex inUse;
  const int numThreads;
  std::vector<std::thread> workers;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STEP_THREADPOOL_H
