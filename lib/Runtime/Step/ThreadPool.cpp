//===- ThreadPool.cpp - Launching tasks with little latency ---------------===//

#include "ThreadPool.h"
#include "../Support/Clock.h"
#include "../Support/Error.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <linux/futex.h>
#include <map>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fp8::rt {

/// How long an idle thread polls for the next launch before it sleeps. Launches
/// of one step usually follow each other within this time.
static constexpr std::chrono::microseconds watchTime(200);

static inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t),
              "futex needs a plain word");

static void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

static void futexWake(std::atomic<uint32_t> &word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// The low half of the ticket while a launch is being described.
static constexpr uint64_t closed = UINT32_MAX;

int ThreadPool::defaultThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// The pools of the process.
struct ThreadPool::Shared {
  /// Lives on while the process ends: other threads may still create steps.
  static Shared &get() {
    static Shared &shared = *[] {
      pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                     [] { get().beginInChild(); });
      return new Shared;
    }();
    return shared;
  }

  void beginInChild() {
    for (auto &[threads, known] : pools)
      if (std::shared_ptr<ThreadPool> pool = known.lock())
        pool->forget();
    mutex.unlock();
  }

  std::mutex mutex;
  std::map<int, std::weak_ptr<ThreadPool>> pools;
};

std::shared_ptr<ThreadPool> ThreadPool::get(int threads) {
  Shared &shared = Shared::get();
  std::lock_guard<std::mutex> lock(shared.mutex);
  std::shared_ptr<ThreadPool> pool = shared.pools[threads].lock();
  if (!pool) {
    pool = std::make_shared<ThreadPool>(threads);
    shared.pools[threads] = pool;
  }
  return pool;
}

ThreadPool::ThreadPool(int threads)
    : ticket(closed), crowded(threads > defaultThreads()),
      numThreads(std::max(threads, 1)) {
  start();
}

ThreadPool::~ThreadPool() { stop(); }

/// Starts the workers.
void ThreadPool::start() {
  // Workers must not handle signals: they inherit a full mask.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    for (int i = 1; i < numThreads; ++i)
      workers.emplace_back([this, i] { work(i); });
  } catch (const std::system_error &error) {
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    stop();
    throw Error(FP8_ERROR_MEMORY,
                str("cannot start ", numThreads, " threads: ", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

/// Ends the workers.
void ThreadPool::stop() {
  stopping = true;
  wakeCount.fetch_add(1);
  futexWake(wakeCount, INT_MAX);
  for (std::thread &worker : workers)
    worker.join();
  workers.clear();
  stopping = false;
}

/// Makes the pool of a forked process one whose workers have not started: the
/// only thread there is that which forked. What the others held stays as it is,
/// for it can neither be joined nor unlocked.
void ThreadPool::forget() {
  new (&workers) std::vector<std::thread>;
  new (&inUse) std::mutex;
  ticket = closed;
  sleepers = 0;
  stopping = false;
}

std::unique_lock<std::mutex> ThreadPool::use() {
  if (numThreads == 1)
    return {};
  std::unique_lock<std::mutex> lock(inUse);
  if (workers.empty())
    start();
  return lock;
}

bool ThreadPool::hasTasks() const {
  uint64_t now = ticket.load(std::memory_order_seq_cst);
  return (now & closed) != closed &&
         static_cast<int64_t>(now & closed) <
             taskCount.load(std::memory_order_acquire);
}

bool ThreadPool::runTasks(int index) {
  bool any = false;
  int64_t finished = 0;
  uint64_t now = ticket.load(std::memory_order_acquire);
  while ((now & closed) != closed) {
    int64_t task = static_cast<int64_t>(now & closed);
    // These may already belong to the next launch. Then the ticket was closed
    // before they were written, and the claim below fails.
    int64_t count = taskCount.load(std::memory_order_acquire);
    fp8_kernel_fn fn = kernel.load(std::memory_order_acquire);
    void *const *operands = operandList.load(std::memory_order_acquire);
    void *const *scratch = scratchList.load(std::memory_order_acquire);
    if (task >= count)
      break;
    if (!ticket.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    fn(task, operands, scratch[index]);
    any = true;
    ++finished;
    // Publish before looking for more tasks: the launch may be waiting for this
    // one.
    tasksDone.fetch_add(finished, std::memory_order_release);
    finished = 0;
    now = ticket.load(std::memory_order_acquire);
  }
  return any;
}

void ThreadPool::work(int index) {
  while (!stopping.load(std::memory_order_acquire)) {
    if (runTasks(index))
      continue;
    if (!crowded) {
      bool found = false;
      Clock::time_point until = Clock::now() + watchTime;
      do {
        for (int i = 0; i < 64 && !found; ++i) {
          pause();
          found = hasTasks() || stopping.load(std::memory_order_relaxed);
        }
      } while (!found && Clock::now() < until);
      if (found)
        continue;
    }
    // A launch publishes its ticket, then looks for sleepers; a worker
    // registers as a sleeper, then looks for a ticket: one of the two sees the
    // other.
    uint32_t seen = wakeCount.load(std::memory_order_seq_cst);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!hasTasks() && !stopping.load(std::memory_order_seq_cst))
      futexWait(wakeCount, seen);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void ThreadPool::run(fp8_kernel_fn fn, int64_t numTasks, void *const *operands,
                     void *const *scratch) {
  // The ticket counts tasks in 32 bits; no real launch has that many.
  if (workers.empty() || numTasks == 1 ||
      numTasks >= static_cast<int64_t>(closed)) {
    for (int64_t task = 0; task < numTasks; ++task)
      fn(task, operands, scratch[0]);
    return;
  }
  if (numTasks <= 0)
    return;

  uint64_t epoch = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
  ticket.store(epoch << 32 | closed, std::memory_order_seq_cst);
  tasksDone.store(0, std::memory_order_relaxed);
  taskCount.store(numTasks, std::memory_order_release);
  kernel.store(fn, std::memory_order_release);
  operandList.store(operands, std::memory_order_release);
  scratchList.store(scratch, std::memory_order_release);
  ticket.store(epoch << 32, std::memory_order_seq_cst);

  if (sleepers.load(std::memory_order_seq_cst) > 0) {
    wakeCount.fetch_add(1, std::memory_order_seq_cst);
    futexWake(wakeCount, static_cast<int>(std::min<int64_t>(
                             numTasks - 1, static_cast<int64_t>(size()))));
  }

  runTasks(0);

  // At most one task a thread is still running.
  int spins = 0;
  while (tasksDone.load(std::memory_order_acquire) != numTasks) {
    if (crowded || ++spins > 4096)
      sched_yield();
    else
      pause();
  }
}

} // namespace fp8::rt
