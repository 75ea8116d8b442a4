//===- Ranks.h - A program that is one of several ranks ---------*- C++ -*-===//

#ifndef FP8_RUN_RANKS_H
#define FP8_RUN_RANKS_H

#include "fp8/Run/RunOptions.h"

namespace fp8run {

/// The ranks that a program runs with, from its first line to its last: with
/// --data-parallel those that mpirun has started, else it alone.
class Ranks {
public:
  Ranks() = default;
  ~Ranks();
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;

  /// Joins the others, and tells the options who this one is. 0, or the exit
  /// status after a message.
  int join(RunOptions &run);

  /// Rank 0 compiles first, and the others find it in the cache: they wait
  /// before, rank 0 lets them go on after. 0, or the exit status.
  int waitForFirst();
  int letOthersFollow();

  /// The exit status of the program; a failure ends the other ranks too.
  int leave(int status);

private:
  int waitForAll();

  const RunOptions *run = nullptr;
  fp8_group *group = nullptr;
};

} // namespace fp8run

#endif // FP8_RUN_RANKS_H
