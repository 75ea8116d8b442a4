//===- Interrupt.h - Stopping a run by a signal -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_INTERRUPT_H
#define FP8_LIB_RUNTIME_INTERRUPT_H

#include <csignal>

namespace fp8::rt {

/// Returns whether a signal has asked the run to stop.
bool isInterrupted();

/// While it lives, the first SIGINT or SIGTERM only asks the loop to stop; a
/// second one has its usual effect.
class SignalScope {
public:
  explicit SignalScope(bool active);
  ~SignalScope();

private:
  bool active;
  struct sigaction oldInt = {}, oldTerm = {}, oldFileSize = {}, oldPipe = {};
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_INTERRUPT_H
