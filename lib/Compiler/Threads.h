//===- Threads.h - Work on several threads ----------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_THREADS_H
#define FP8_LIB_COMPILER_THREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace mlir::fp8 {

/// Calls `work` on `threads` threads (0: one per core), one of which is the
/// caller, and waits for all of them.
inline void runOnThreads(unsigned threads, llvm::function_ref<void()> work) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_THREADS_H
