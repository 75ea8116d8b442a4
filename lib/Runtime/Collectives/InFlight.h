//===- InFlight.h - Collectives that a step has started ---------*- C++ -*-===//
//
// Reductions that a step starts are collected in a bucket. The bucket is sent
// when it is full or when the step waits for one of its members: both depend
// only on the calls, so all ranks form the same buckets. An exchange of parts
// travels alone, since its operands are large or needed soon; it also sends the
// open bucket first.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H
#define FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H

#include "../Metrics/Timeline.h"
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
  /// Lets the step's later work follow all collectives of this number. Waits
  /// until they are done or, unless `onHost`, until they are enqueued on a GPU.
  /// Throws their errors, as far as they are known.
  void wait(int64_t number, bool onHost = true);
  /// Waits until all collectives are done. Throws their errors.
  void waitForAll();
  /// Waits until nothing is in flight, ignoring errors.
  void abandon();

  const std::vector<fp8_collective_stat> &profile() const { return stats; }
  void clearProfile() { stats.clear(); }
  std::string carrier() const { return engine->carrier(); }
  int64_t hostBytes() const {
    return group.bufferBytes() + engine->hostBytes();
  }
  /// If not null, transfers and waits of the next run are recorded here.
  Timeline *timeline = nullptr;

private:
  /// The entry of a collective in profiles.
  struct Member {
    int64_t number;
    const char *label;
    int64_t bytes; // on the wire
  };
  struct Bucket {
    std::vector<Member> members;
    std::vector<Reduction> reductions; // empty, or one for each member
    std::vector<int64_t> bytesSent;
    int64_t bytes = 0;    // on the wire
    fp8_group::Job job;   // null: still open
    bool isNoted = false; // in the timeline
    /// Set once its work is enqueued on the GPU.
    std::shared_ptr<void> mark;
  };
  /// A collective: its bucket, and its index there.
  using Started = std::pair<std::shared_ptr<Bucket>, size_t>;
  void sendBucket();
  void add(const std::shared_ptr<Bucket> &bucket, const Member &member);
  bool follow(const Started &one);
  void waitFor(const Started &one);
  fp8_collective_stat &statOf(const Member &member);
  void note(Bucket &bucket, Timeline::Clock::time_point begin,
            Timeline::Clock::time_point end);

  fp8_group &group;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<Bucket> open;
  std::map<int64_t, std::vector<Started>> started; // by number
  /// Those that later work on the GPU follows but that may not be done.
  std::vector<Started> followed;
  std::vector<fp8_collective_stat> stats;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_INFLIGHT_H
