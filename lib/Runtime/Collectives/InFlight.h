//===- InFlight.h - Reductions that a step has started ----------*- C++ -*-===//
//
// What a step starts goes into a bucket. The bucket leaves when it is full or
// when the step waits for something in it: both follow from the calls alone, so
// all ranks make the same buckets.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H
#define FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H

#include "AllReduce.h"

#include <map>

namespace fp8::rt {

class InFlight {
public:
  explicit InFlight(fp8_group &group) : group(group) {}

  fp8_group &ranks() const { return group; }
  void start(const Reduction &reduction);
  /// Wait for all of this number, or for everything. Throw what went wrong.
  void wait(int64_t number);
  void finish();
  /// Waits until nothing is under way any more, whatever happens to it.
  void abandon();

  const std::vector<fp8_collective_stat> &profile() const { return stats; }
  void clearProfile() { stats.clear(); }

private:
  struct Bucket {
    std::vector<Reduction> reductions;
    std::vector<int64_t> bytesSent;
    int64_t bytes = 0;  // on the wire
    fp8_group::Job job; // none: still open
  };
  void leave();
  void waitFor(const std::shared_ptr<Bucket> &bucket, size_t index);

  fp8_group &group;
  std::shared_ptr<Bucket> open;
  /// By number: the buckets, and the place in each.
  std::map<int64_t, std::vector<std::pair<std::shared_ptr<Bucket>, size_t>>>
      started;
  std::vector<fp8_collective_stat> stats;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H
