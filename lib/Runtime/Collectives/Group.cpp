//===- Group.cpp - Processes that run a step together ---------------------===//

#include "Group.h"
#include "../GPU/Driver.h"
#include "../Support/Clock.h"
#include "../Support/Error.h"
#include "Plugin.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <unistd.h>

using namespace fp8::rt;

//===----------------------------------------------------------------------===//
// Joining and leaving
//===----------------------------------------------------------------------===//

fp8_group::fp8_group()
    : transport{}, hasTransport(false), timeout(0), bucketLimit(0) {
  transport.ranks = 1;
  std::strcpy(transport.name, "one rank");
}

fp8_group::fp8_group(const fp8_transport &transport,
                     const fp8_group_options &options)
    : transport(transport), hasTransport(true),
      timeout(options.timeout > 0 ? options.timeout : 300),
      bucketLimit(options.bucket_bytes > 0 ? options.bucket_bytes : 1 << 20) {
  if (transport.version != FP8_TRANSPORT_VERSION)
    throw Error(FP8_ERROR_INVALID,
                str("expected a transport of version ", FP8_TRANSPORT_VERSION,
                    " but got one of version ", transport.version));
  if (transport.ranks < 1 || transport.rank < 0 ||
      transport.rank >= transport.ranks)
    throw Error(FP8_ERROR_INVALID,
                str("expected a rank below their number but got rank ",
                    transport.rank, " of ", transport.ranks));
  if (!transport.start || !transport.test || !transport.error ||
      !transport.abort || !transport.close)
    throw Error(FP8_ERROR_INVALID, "expected a transport with all functions "
                                   "but got NULL for one of them");
  try {
    startThread();
    findProcesses();
  } catch (...) {
    // The destructor does not run when a constructor throws.
    abort("");
    transport.close(transport.state);
    throw;
  }
}

void fp8_group::startThread() {
  // The group's thread must not handle signals.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

fp8_group::~fp8_group() {
  if (!hasTransport)
    return;
  if (failure && !isAborted)
    abort(failure->what());
  // Queued jobs still run: isCancelled is not set.
  {
    std::lock_guard<std::mutex> lock(mutex);
    isStopping = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
  transport.close(transport.state);
}

std::unique_ptr<fp8_group> fp8_group::open(const fp8_group_options &options) {
  std::optional<fp8_transport> transport =
      openTransport(options.transport ? options.transport : "",
                    options.timeout > 0 ? options.timeout : 300);
  if (!transport)
    return std::make_unique<fp8_group>();
  return std::make_unique<fp8_group>(*transport, options);
}

//===----------------------------------------------------------------------===//
// Jobs
//===----------------------------------------------------------------------===//

void fp8_group::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isStopping || !queue.empty(); });
    if (queue.empty())
      return;
    Job job = queue.front();
    queue.pop_front();
    std::optional<Error> problem = failure;
    lock.unlock();
    job->begin = Clock::now();
    // After a failure the ranks no longer agree on what is sent.
    if (!problem) {
      try {
        job->work();
      } catch (const Error &error) {
        problem = error;
      } catch (const std::bad_alloc &) {
        problem = Error(FP8_ERROR_MEMORY, "out of memory between the ranks");
      } catch (const std::exception &error) {
        problem = Error(FP8_ERROR_INTERNAL, error.what());
      }
    }
    lock.lock();
    job->work = nullptr;
    job->end = Clock::now();
    job->failure = problem;
    if (problem && !failure)
      failure = problem;
    job->isDone = true;
    changed.notify_all();
  }
}

/// Throws in a process that was forked, where nothing would ever answer.
void fp8_group::expectNotForked() const {
  if (hasTransport && isForked())
    throw Error(FP8_ERROR_RANK,
                str("expected process ", process, ", which is rank ", rank(),
                    ", but got process ", getpid(),
                    ", which was forked from it and is no rank"));
}

fp8_group::Job fp8_group::submit(std::function<void()> work) {
  expectNotForked();
  auto job = std::make_shared<GroupJob>();
  job->work = std::move(work);
  std::lock_guard<std::mutex> lock(mutex);
  if (!thread.joinable() || isStopping) {
    job->isDone = true;
    job->failure =
        failure ? *failure : Error(FP8_ERROR_RANK, "the ranks have parted");
    return job;
  }
  queue.push_back(job);
  changed.notify_all();
  return job;
}

void fp8_group::wait(const Job &job) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return job->isDone; });
  if (job->failure)
    throw Error(*job->failure);
}

std::shared_ptr<void> fp8_group::wait(const Job &job,
                                      const std::shared_ptr<void> &place) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return job->isDone || place; });
  if (job->failure)
    throw Error(*job->failure);
  return job->isDone ? nullptr : place;
}

void fp8_group::announce(std::shared_ptr<void> &place,
                         std::shared_ptr<void> value) {
  std::lock_guard<std::mutex> lock(mutex);
  place = std::move(value);
  changed.notify_all();
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

void fp8_group::fail(int64_t which, const std::string &message, bool told) {
  std::lock_guard<std::mutex> lock(mutex);
  isToldElsewhere = told;
  std::string text =
      which < 0 ? message : str("rank ", which, " of ", size(), ": ", message);
  throw Error(FP8_ERROR_RANK, text);
}

bool fp8_group::await(const std::function<bool()> &isDone,
                      const std::vector<uint8_t> &pending) {
  WaitedTime waited;
  double nextLook = 0.5;
  for (int64_t tries = 0; !isDone(); ++tries) {
    if (isCancelled)
      throw Error(FP8_ERROR_RANK, "this rank has ended");
    // Yield first: ranks may have more threads than the machine has cores.
    if (tries < 100) {
      sched_yield();
      continue;
    }
    usleep(tries < 1000 ? 50 : 200);
    double seconds = waited.seconds();
    if (seconds < nextLook)
      continue;
    nextLook = seconds + 0.5;
    for (int64_t other = 0; other < size(); ++other)
      if (pending[other] && isGone(other))
        fail(other, "its process has ended", false);
    if (seconds > timeout)
      return false;
  }
  return true;
}

std::string fp8_group::timeoutText() const {
  return str(
      "no answer for ", numberText(timeout),
      " s (--rank-timeout, or the timeout of fp8.Group, has more patience)");
}

void fp8_group::failTransport() {
  int64_t which = -1;
  int32_t told = 0;
  const char *message = transport.error(transport.state, &which, &told);
  fail(which < size() ? which : -1,
       message ? message : "the transport has failed and does not say why",
       told != 0);
}

void fp8_group::checkForAbort() {
  std::vector<uint8_t> pending(size(), 0);
  if (transport.test(transport.state, pending.data()) < 0)
    failTransport();
}

void fp8_group::failSilent(const std::string &what) {
  // Ranks that wait in the same way run the same gather.
  gatherNow("");
  fail(-1, str(what, ": ", timeoutText(), ", though all ranks are there"),
       false);
}

void fp8_group::exchange(const std::vector<fp8_message> &sends,
                         const std::vector<fp8_message> &receives) {
  if (size() == 1)
    return;
  if (transport.start(transport.state, sends.data(), receives.data()) != 0)
    failTransport();
  std::vector<uint8_t> pending(size(), 0);
  auto isDone = [&] {
    int32_t state = transport.test(transport.state, pending.data());
    if (state < 0)
      failTransport();
    return state > 0;
  };
  if (!await(isDone, pending)) {
    int64_t other =
        std::find(pending.begin(), pending.end(), 1) - pending.begin();
    fail(other < size() ? other : -1, timeoutText(), false);
  }
  for (int64_t other = 0; other < size(); ++other)
    if (other != rank())
      sent += sends[other].bytes;
}

std::vector<std::string> fp8_group::gatherNow(const std::string &mine) {
  std::vector<std::string> all(size());
  all[rank()] = mine;
  std::vector<int64_t> sizes(size(), 0);
  int64_t mySize = static_cast<int64_t>(mine.size());
  std::vector<fp8_message> sends(size()), receives(size());
  for (int64_t other = 0; other < size(); ++other) {
    sends[other] = {&mySize, sizeof(mySize)};
    receives[other] = {&sizes[other], sizeof(mySize)};
  }
  exchange(sends, receives);
  for (int64_t other = 0; other < size(); ++other) {
    if (other != rank())
      all[other].resize(sizes[other]);
    sends[other] = {const_cast<char *>(mine.data()), mySize};
    receives[other] = {all[other].data(),
                       static_cast<int64_t>(all[other].size())};
  }
  exchange(sends, receives);
  return all;
}

void fp8_group::beginRun() {
  expectNotForked();
  std::lock_guard<std::mutex> lock(mutex);
  ++runs;
  scales.clear();
}

void fp8_group::noteScale(const WireScale &scale) {
  std::lock_guard<std::mutex> lock(mutex);
  scales.push_back(scale);
}

std::vector<WireScale> fp8_group::wireScales() {
  std::lock_guard<std::mutex> lock(mutex);
  return scales;
}

void fp8_group::noteNonFinite(int64_t collective, int64_t rank,
                              const char *label) {
  std::lock_guard<std::mutex> lock(mutex);
  int64_t run = runs;
  if (!source || source->lastRun < run - 1)
    source = NonFiniteSource{run, run, collective, rank, label ? label : ""};
  source->lastRun = run;
}

/// Takes the first source that any rank has noted.
void fp8_group::agreeOnSource() {
  std::optional<NonFiniteSource> mine = nonFiniteSource();
  std::vector<std::string> all =
      gatherNow(mine ? str(mine->collective, ' ', mine->firstRun, ' ',
                           mine->rank, ' ', mine->label)
                     : "");
  std::optional<NonFiniteSource> first;
  for (const std::string &text : all) {
    if (text.empty())
      continue;
    NonFiniteSource next = {0, runs, 0, 0, ""};
    auto stream = classic<std::istringstream>(text);
    stream >> next.collective >> next.firstRun >> next.rank;
    stream.get();
    std::getline(stream, next.label);
    if (!first || next.collective < first->collective)
      first = next;
  }
  std::lock_guard<std::mutex> lock(mutex);
  source = first;
}

bool fp8_group::endRun(bool isInterrupted) {
  if (size() == 1)
    return isInterrupted;
  bool isAny = false;
  wait(submit([&] {
    bool hasSource = nonFiniteSource().has_value(), isAnySource = false;
    for (double each :
         gatherNow((isInterrupted ? 1 : 0) + (hasSource ? 2 : 0))) {
      isAny |= each == 1 || each == 3;
      isAnySource |= each >= 2;
    }
    if (isAnySource)
      agreeOnSource();
  }));
  return isAny;
}

std::optional<NonFiniteSource> fp8_group::nonFiniteSource() {
  std::lock_guard<std::mutex> lock(mutex);
  return source && source->lastRun == runs ? source : std::nullopt;
}

std::vector<std::string> fp8_group::gather(const std::string &mine) {
  if (size() == 1)
    return {mine};
  std::vector<std::string> all;
  wait(submit([&] { all = gatherNow(mine); }));
  return all;
}

std::vector<double> fp8_group::gatherNow(double mine) {
  std::vector<double> all(size());
  std::vector<fp8_message> sends(size()), receives(size());
  for (int64_t other = 0; other < size(); ++other) {
    sends[other] = {&mine, sizeof(mine)};
    receives[other] = {&all[other], sizeof(mine)};
  }
  exchange(sends, receives);
  all[rank()] = mine;
  return all;
}

std::vector<double> fp8_group::gather(double mine) {
  if (size() == 1)
    return {mine};
  std::vector<double> all;
  wait(submit([&] { all = gatherNow(mine); }));
  return all;
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

/// Returns what processes share if they can see each other's process ids.
static std::string placeOfProcess() {
  std::string boot;
  classic<std::ifstream>("/proc/sys/kernel/random/boot_id") >> boot;
  char space[128] = {};
  if (readlink("/proc/self/ns/pid", space, sizeof(space) - 1) < 0)
    return "";
  return boot.empty() ? "" : boot + " " + space;
}

/// Finds the ranks whose processes this one can see: it notices their end even
/// if the launcher does not.
void fp8_group::findProcesses() {
  nearProcesses.assign(size(), 0);
  allProcesses.assign(size(), 0);
  std::string place = placeOfProcess();
  std::vector<std::string> all = gather(str(getpid(), " ", place));
  for (int64_t other = 0; other < size(); ++other) {
    allProcesses[other] = std::strtoll(all[other].c_str(), nullptr, 10);
    size_t space = all[other].find(' ');
    if (other != rank() && !place.empty() && space != std::string::npos &&
        all[other].substr(space + 1) == place)
      nearProcesses[other] = allProcesses[other];
  }
  gpu::Device::choose(rank() - std::count(nearProcesses.begin(),
                                          nearProcesses.begin() + rank(), 0));
}

bool fp8_group::isGone(int64_t other) const {
  if (nearProcesses.empty() || nearProcesses[other] <= 0)
    return false;
  if (kill(static_cast<pid_t>(nearProcesses[other]), 0) != 0 && errno == ESRCH)
    return true;
  // The process has ended but was not reaped: state Z (or X), behind its name.
  auto file =
      classic<std::ifstream>(str("/proc/", nearProcesses[other], "/stat"));
  std::string line;
  std::getline(file, line);
  size_t end = line.rfind(')');
  return end != std::string::npos && end + 2 < line.size() &&
         (line[end + 2] == 'Z' || line[end + 2] == 'X');
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void fp8_group::stop() {
  isCancelled = true;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isStopping = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

/// Decides which rank reports a failure. All ranks that see it call this, and
/// higher ranks wait longer: the first one reports it, then ends the others.
bool fp8_group::claimFailure() {
  if (size() == 1)
    return true;
  stop();
  // Give the launcher a moment to end the other ranks.
  double patience =
      rank() == 0 ? 0
                  : 1 + 0.5 * static_cast<double>(std::min<int64_t>(rank(), 3));
  // Only `error` is asked: the buffers of the failed exchange may be gone, and
  // `test` would move bytes to and from them.
  for (WaitedTime waited; !isToldElsewhere;) {
    int32_t told = 0;
    int64_t which = -1;
    transport.error(transport.state, &which, &told);
    isToldElsewhere = told != 0;
    if (waited.seconds() >= patience)
      break;
    usleep(10000);
  }
  return !isToldElsewhere;
}

void fp8_group::abort(const std::string &message) {
  if (!hasTransport || isAborted)
    return;
  isAborted = true;
  stop();
  if (!failure)
    failure = Error(FP8_ERROR_RANK, message);
  transport.abort(transport.state, message.c_str());
}
