//===- Engine.h - Where collectives run -------------------------*- C++ -*-===//
//
// The default engine runs collectives on the CPU, with operands in host memory.
// Only the driver reaches the operands of a GPU: an engine of its own moves
// them to where they can be reduced.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ENGINE_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ENGINE_H

#include "AllReduce.h"
#include "Exchange.h"

#include <functional>

namespace fp8::rt {

/// Addresses of operands are addresses in the engine's memory.
class Engine {
public:
  virtual ~Engine() = default;

  /// A point in the step's work at which operands are complete.
  using Mark = std::shared_ptr<void>;
  /// Returns a mark behind all work that the step has enqueued so far; the
  /// step's thread calls it. The CPU works synchronously and needs no mark.
  virtual Mark mark() { return nullptr; }
  /// Lets all work that the step enqueues later begin when `mark` is reached;
  /// the step's thread calls it.
  virtual void follow(const Mark &) {}

  /// Takes a mark behind the work of a job that is enqueued but not done.
  using Announce = std::function<void(Mark)>;
  /// Jobs of the group. They begin when `mark` is reached and return when the
  /// results are in the engine's memory. They may announce that before.
  virtual std::vector<int64_t> reduce(fp8_group &group,
                                      const std::vector<Reduction> &bucket,
                                      const Mark &, const Announce &) {
    return allReduce(group, bucket);
  }
  virtual void exchange(fp8_group &group, const Exchange &exchange,
                        const Mark &, const Announce &) {
    runExchange(group, exchange);
  }
  /// Returns the bytes of host memory held in addition to the group's.
  virtual int64_t hostBytes() const { return 0; }
  /// Returns for people what transfers the data, if it is not the group's
  /// transport alone; else "".
  virtual std::string carrier() const { return ""; }
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ENGINE_H
