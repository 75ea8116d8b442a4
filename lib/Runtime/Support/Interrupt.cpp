//===- Interrupt.cpp - Stopping a run by a signal -------------------------===//

#include "Interrupt.h"

#include <atomic>
#include <mutex>

namespace fp8::rt {

/// The signals so far that ask to stop.
static std::atomic<int64_t> received{0};
static_assert(std::atomic<int64_t>::is_always_lock_free,
              "a signal handler changes it");

extern "C" {
static void onInterrupt(int) { ++received; }
}

namespace {
/// A handler that scopes share: the first one saves the process's own, and the
/// last one restores it, for scopes of several threads do not nest.
class SharedHandler {
public:
  SharedHandler(int signal, void (*handler)(int), int flags,
                bool leavesIgnored = false)
      : signal(signal), handler(handler), flags(flags),
        leavesIgnored(leavesIgnored) {}

  void begin() {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (users++ == 0)
      sigaction(signal, nullptr, &old);
    // Also for later scopes: a signal may have reset the handler.
    if (!leavesIgnored || old.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
  void end() {
    if (--users == 0)
      sigaction(signal, &old, nullptr);
  }

private:
  int signal;
  void (*handler)(int);
  int flags;
  bool leavesIgnored; // by the process before
  int users = 0;
  struct sigaction old = {};
};

/// The handlers of the process.
struct Handlers {
  static constexpr int once = static_cast<int>(SA_RESTART | SA_RESETHAND);
  std::mutex mutex;
  SharedHandler interrupt{SIGINT, onInterrupt, once};
  SharedHandler terminate{SIGTERM, onInterrupt, once};
  // A terminal that is closed sends it, once or twice; nohup ignores it.
  SharedHandler hangUp{SIGHUP, onInterrupt, SA_RESTART, /*leavesIgnored=*/true};
  // Writing beyond the limit on file sizes must be an error, not kill the
  // process.
  SharedHandler fileSize{SIGXFSZ, SIG_IGN, 0};
  // Ctrl-C also ends the program that the output is piped to. Lines for it are
  // lost then, but no checkpoint.
  SharedHandler pipe{SIGPIPE, SIG_IGN, 0};

  static Handlers &get() {
    static Handlers handlers;
    return handlers;
  }
};
} // namespace

SignalScope::SignalScope(bool stops) : stops(stops), before(received) {
  Handlers &handlers = Handlers::get();
  std::lock_guard<std::mutex> lock(handlers.mutex);
  handlers.fileSize.begin();
  handlers.pipe.begin();
  if (!stops)
    return;
  handlers.interrupt.begin();
  handlers.terminate.begin();
  handlers.hangUp.begin();
}

SignalScope::~SignalScope() {
  Handlers &handlers = Handlers::get();
  std::lock_guard<std::mutex> lock(handlers.mutex);
  handlers.fileSize.end();
  handlers.pipe.end();
  if (!stops)
    return;
  handlers.interrupt.end();
  handlers.terminate.end();
  handlers.hangUp.end();
}

bool SignalScope::isInterrupted() const { return stops && received != before; }

} // namespace fp8::rt
