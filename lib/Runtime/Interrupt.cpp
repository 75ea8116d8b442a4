//===- Interrupt.cpp - Stopping a run by a signal -------------------------===//

#include "Interrupt.h"

namespace fp8::rt {

static volatile std::sig_atomic_t interrupted = 0;

extern "C" {
static void onInterrupt(int) { interrupted = 1; }
}

bool isInterrupted() { return interrupted != 0; }

SignalScope::SignalScope(bool active) : active(active) {
  interrupted = 0;
  if (!active)
    return;
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, &oldInt);
  sigaction(SIGTERM, &action, &oldTerm);
  // Writing beyond the limit on file sizes must be an error, not kill the
  // process.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, &oldFileSize);
  // Ctrl-C also ends the program that the output is piped to. Lines for it are
  // lost then, but no checkpoint.
  sigaction(SIGPIPE, &action, &oldPipe);
}

SignalScope::~SignalScope() {
  if (!active)
    return;
  sigaction(SIGINT, &oldInt, nullptr);
  sigaction(SIGTERM, &oldTerm, nullptr);
  sigaction(SIGXFSZ, &oldFileSize, nullptr);
  sigaction(SIGPIPE, &oldPipe, nullptr);
}

} // namespace fp8::rt
