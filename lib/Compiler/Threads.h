//===- Threads.h - Work on several threads ----------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_THREADS_H
#define FP8_LIB_COMPILER_THREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Threading.h"

#include <thread>
#include <vector>

namespace mlir::fp8 {

/// Returns `threads`, or if that is 0, the cores that this process may use.
inline unsigned countThreads(unsigned threads) {
  return llvm::hardware_concurrency(threads).compute_thread_count();
}

/// Calls `work` on `threads` threads (0: one per core), one of which is the
/// caller, and waits for all of them.
inline void runOnThreads(unsigned threads, llvm::function_ref<void()> work) {
  threads = countThreads(threads);
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_THREADS_H
