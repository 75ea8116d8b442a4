//===- Interrupt.h - Stopping a run by a signal -----------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_INTERRUPT_H
#define FP8_LIB_RUNTIME_SUPPORT_INTERRUPT_H

#include <csignal>
#include <cstdint>

namespace fp8::rt {

/// While it lives, the first SIGINT or SIGTERM only asks the runs to stop, and
/// a second one has its usual effect. SIGHUP asks too, unless it is ignored.
/// Files that grow too large and closed pipes are errors, not signals. Scopes
/// may overlap in any way.
class SignalScope {
public:
  /// stops: whether SIGINT, SIGTERM and SIGHUP concern this run.
  explicit SignalScope(bool stops);
  ~SignalScope();
  SignalScope(const SignalScope &) = delete;
  SignalScope &operator=(const SignalScope &) = delete;

  /// Returns whether a signal has asked the run to stop.
  bool isInterrupted() const;

private:
  bool stops;
  int64_t before; // signals received before it began
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_INTERRUPT_H
