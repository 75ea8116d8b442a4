//===- Group.h - Processes that run a step together -------------*- C++ -*-===//
//
// A group owns a transport and a thread. All communication with other ranks is
// a job of that thread. Jobs run in the order of submission, which is the same
// on all ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_GROUP_H
#define FP8_LIB_RUNTIME_COLLECTIVES_GROUP_H

#include "fp8-c/Transport.h"

#include "../Support/Error.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>

namespace fp8::rt {

/// Where the first value that is not finite came from, in consecutive runs that
/// all had such values.
struct NonFiniteSource {
  int64_t firstRun, lastRun; // by number
  int64_t collective;        // by number: all ranks count the same ones
  int64_t rank;              // which sent it
  std::string label;         // of the collective
};

/// How a sum has travelled on an f8 wire.
struct WireScale {
  std::string label;
  int64_t slice;     // of a stack, or -1
  double mu, age;    // the next sum's
  double saturation; // fraction of the codes of this sum
};

/// A job of the group's thread.
struct GroupJob {
  std::function<void()> work;
  // Guarded by the group's mutex.
  bool isDone = false;
  std::optional<Error> failure;
  std::chrono::steady_clock::time_point begin, end; // of the work
};

} // namespace fp8::rt

struct fp8_group {
  /// Creates a group of one rank.
  fp8_group();
  fp8_group(const fp8_transport &transport, const fp8_group_options &options);
  ~fp8_group();

  /// Joins the ranks that the options describe.
  static std::unique_ptr<fp8_group> open(const fp8_group_options &options);

  int64_t rank() const { return transport.rank; }
  int64_t size() const { return transport.ranks; }
  std::string name() const { return transport.name; }
  /// Returns the process ids of the ranks, each valid on its own machine.
  const std::vector<int64_t> &processes() const { return allProcesses; }
  int64_t bucketBytes() const { return bucketLimit; }
  int64_t bytesSent() const { return sent; }
  /// Returns the most bytes that a job has held in buffers of its own.
  int64_t bufferBytes() const { return largestBuffers; }
  void noteBuffers(int64_t bytes) {
    largestBuffers = std::max<int64_t>(largestBuffers, bytes);
  }

  using Job = std::shared_ptr<fp8::rt::GroupJob>;
  Job submit(std::function<void()> work);
  /// Waits for a job and throws its error.
  void wait(const Job &job);
  /// Waits until a job is done, and throws its error, or until it has announced
  /// something in `place`. Returns that, or null if the job is done.
  std::shared_ptr<void> wait(const Job &job,
                             const std::shared_ptr<void> &place);
  /// For jobs: sets `place`.
  void announce(std::shared_ptr<void> &place, std::shared_ptr<void> value);

  /// For jobs: sends a message to every other rank, and receives one from each.
  void exchange(const std::vector<fp8_message> &sends,
                const std::vector<fp8_message> &receives);
  /// For jobs: polls `isDone`, and throws if the process of a rank in `pending`
  /// has ended. Returns false after the timeout.
  bool await(const std::function<bool()> &isDone,
             const std::vector<uint8_t> &pending);
  /// For jobs, between two exchanges: throws if another rank has asked all to
  /// end.
  void checkForAbort();
  /// For jobs that have waited in vain for messages that the transport does not
  /// carry: throws, and names the rank that does not answer.
  [[noreturn]] void failSilent(const std::string &what);
  /// Throws an error about a rank (-1: about none in particular). told: that
  /// rank has reported it itself.
  [[noreturn]] void fail(int64_t rank, const std::string &message, bool told);
  /// Does the same as gather, for jobs.
  std::vector<std::string> gatherNow(const std::string &mine);
  void noteSent(int64_t bytes) { sent += bytes; }
  /// For jobs: counts a collective, which all ranks take part in, and returns
  /// its number.
  int64_t countCollective() { return collectives++; }
  /// For jobs: notes that a rank has sent a value that is not finite. One rank
  /// that knows of it is enough: endRun tells the others.
  void noteNonFinite(int64_t collective, int64_t rank, const char *label);

  /// For jobs: notes how a sum of the last run has travelled.
  void noteScale(const fp8::rt::WireScale &scale);
  /// Returns what was noted, in the order of the run.
  std::vector<fp8::rt::WireScale> wireScales();

  /// Counts the runs of steps.
  void beginRun();
  int64_t numRuns() const { return runs; }
  /// Brings together what the ranks know of the last run. Returns true if any
  /// rank was interrupted. Blocks.
  bool endRun(bool isInterrupted);
  /// Returns where values that are not finite in the last run come from, as far
  /// as what ranks have sent shows it.
  std::optional<fp8::rt::NonFiniteSource> nonFiniteSource();

  /// Returns what each rank has passed, by rank. Blocks.
  std::vector<std::string> gather(const std::string &mine);
  /// Does the same for one number from each rank.
  std::vector<double> gather(double mine);

  bool claimFailure();
  void abort(const std::string &message);

  /// Returns whether this process was forked from the one that has joined the
  /// group. It has no thread of the group, whose connections are the other's.
  bool isForked() const { return process != getpid(); }

private:
  void expectNotForked() const;
  void run();
  void stop();
  [[noreturn]] void failTransport();
  std::vector<double> gatherNow(double mine);
  void agreeOnSource();
  std::string timeoutText() const;
  void startThread();
  void findProcesses();
  /// Returns whether the process of a rank has ended, as far as this one can
  /// tell.
  bool isGone(int64_t rank) const;

  fp8_transport transport;
  bool hasTransport; // else it is a group of one rank
  double timeout;
  int64_t bucketLimit;
  std::atomic<int64_t> sent{0}, largestBuffers{0}, runs{0};
  int64_t collectives = 0; // of the thread
  std::vector<int64_t> allProcesses;
  std::vector<int64_t>
      nearProcesses; // of ranks that this process can see, else 0

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> queue;
  std::optional<fp8::rt::NonFiniteSource> source;
  std::vector<fp8::rt::WireScale> scales; // of the last run
  std::optional<fp8::rt::Error> failure;  // the first one
  bool isToldElsewhere = false;           // the rank that failed reports it
  bool isStopping = false, isAborted = false;
  std::atomic<bool> isCancelled{false};
  std::thread thread;
  const pid_t process = getpid();
};

#endif // FP8_LIB_RUNTIME_COLLECTIVES_GROUP_H
