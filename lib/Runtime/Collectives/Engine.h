//===- Engine.h - Who carries out collectives -------------------*- C++ -*-===//
//
// The CPU does it with operands in its own memory. Those of a GPU lie in
// memory that only the GPU's driver reaches: an engine of its own brings them
// where they can be reduced.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ENGINE_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ENGINE_H

#include "AllReduce.h"
#include "Exchange.h"

namespace fp8::rt {

/// Addresses of operands are those of the engine's memory.
class Engine {
public:
  virtual ~Engine() = default;

  /// The place in the step's work where operands are complete.
  using Mark = std::shared_ptr<void>;
  /// Of all that the step has been told to do so far. The step's thread calls
  /// it; the CPU does at once what it is told, and needs no mark.
  virtual Mark mark() { return nullptr; }

  /// Jobs of the group, which begin when `mark` is reached and return when
  /// results lie in the engine's memory.
  virtual std::vector<int64_t>
  reduce(fp8_group &group, const std::vector<Reduction> &bucket, const Mark &) {
    return allReduce(group, bucket);
  }
  virtual void exchange(fp8_group &group, const Exchange &exchange,
                        const Mark &) {
    runExchange(group, exchange);
  }
  /// Bytes of host memory that it holds beside the group's.
  virtual int64_t hostBytes() const { return 0; }
  /// Who carries what travels, for people, where that is not the group's
  /// transport alone; else "".
  virtual std::string carrier() const { return ""; }
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ENGINE_H
