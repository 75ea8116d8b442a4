//===- InFlight.h - Collectives that a step has started ---------*- C++ -*-===//
//
// What a step starts goes into a bucket. The bucket leaves when it is full or
// when the step waits for something in it: both follow from the calls alone, so
// all ranks make the same buckets. An exchange of parts closes the bucket that
// is open, and travels alone: its operands are large, or needed soon.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H
#define FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H

#include "Engine.h"

#include <map>

namespace fp8::rt {

class InFlight {
public:
  InFlight(fp8_group &group, std::unique_ptr<Engine> engine)
      : group(group), engine(std::move(engine)) {}

  fp8_group &ranks() const { return group; }
  void start(const Reduction &reduction);
  void start(const Exchange &exchange);
  /// Wait for all of this number, or for everything. Throw what went wrong.
  void wait(int64_t number);
  void waitForAll();
  /// Waits until nothing is under way any more, whatever happens to it.
  void abandon();

  const std::vector<fp8_collective_stat> &profile() const { return stats; }
  void clearProfile() { stats.clear(); }
  std::string carrier() const { return engine->carrier(); }
  int64_t hostBytes() const {
    return group.bufferBytes() + engine->hostBytes();
  }

private:
  /// What profiles say of a collective.
  struct Member {
    int64_t number;
    const char *label;
    int64_t bytes; // on the wire
  };
  struct Bucket {
    std::vector<Member> members;
    std::vector<Reduction> reductions; // none, or one for each member
    std::vector<int64_t> bytesSent;
    int64_t bytes = 0;  // on the wire
    fp8_group::Job job; // none: still open
  };
  void leave();
  void add(const std::shared_ptr<Bucket> &bucket, const Member &member);
  void waitFor(const std::shared_ptr<Bucket> &bucket, size_t index);

  fp8_group &group;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<Bucket> open;
  /// By number: the buckets, and the place in each.
  std::map<int64_t, std::vector<std::pair<std::shared_ptr<Bucket>, size_t>>>
      started;
  std::vector<fp8_collective_stat> stats;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H
