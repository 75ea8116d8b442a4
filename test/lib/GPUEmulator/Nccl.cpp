//===- Nccl.cpp - A libnccl.so.2 for the emulated driver ------------------===//
//
// The functions of NCCL that the runtime uses (lib/Runtime/GPU), as documented,
// between threads or processes of one machine. Messages are files in a
// directory whose name is the unique id. Communicators are non-blocking: work
// is enqueued some calls of ncclCommGetAsyncError later. Undefined behaviour is
// an error: calls outside a group, receive buffers that overlap others,
// messages of a length that their receiver does not expect.
//
// FP8_EMULATOR_NCCL=RANK:WHAT[:N] makes one rank fail: `init` in its
// initialization, the others in its group N (default: any). `end` is an error
// of ncclGroupEnd, `late` an error that ncclCommGetAsyncError returns, `stall`
// never sends the messages, `kill` and `stop` send that signal to the process.
//
//===----------------------------------------------------------------------===//

#include "GPU/Nccl.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

using namespace fp8;
using nccl::Comm;
using nccl::Config;
using nccl::DataType;
using nccl::Status;
using nccl::UniqueId;

// Functions of the emulated driver.
extern "C" cuda::Status fp8_emulator_work(cuda::Stream stream,
                                          cuda::Status (*function)(void *),
                                          void *data);
extern "C" bool fp8_emulator_access(cuda::DevicePointer address, size_t bytes,
                                    bool writes);

namespace {

struct Message {
  char *data; // on the device
  size_t bytes;
  int peer;
  bool isSend, isDone;
  std::string file;
};

/// The messages of a group.
struct Work {
  std::shared_ptr<struct State> state;
  cuda::Stream stream;
  std::vector<Message> messages;
  bool isSent = false, isStalled = false;
};

struct State {
  std::string directory;
  int rank, ranks;
  std::map<int, int> sent, received; // messages by peer
  std::atomic<int> error{nccl::Success};
  std::atomic<bool> isAborted{false};
  std::shared_ptr<Work> waiting; // group to be enqueued
  int pollsLeft = 0;             // calls until then
  int groups = 0;
};

thread_local int depth = 0;
thread_local std::shared_ptr<Work> group;
thread_local std::string lastError;

Status fail(Status status, const std::string &text) {
  lastError = text;
  return status;
}

/// Returns true if FP8_EMULATOR_NCCL asks this rank to do `what` now.
bool isAsked(const State &state, const std::string &what) {
  const char *text = std::getenv("FP8_EMULATOR_NCCL");
  if (!text)
    return false;
  std::string asked = text;
  std::string mine = std::to_string(state.rank) + ":" + what;
  return asked == mine || asked == mine + ":" + std::to_string(state.groups);
}

std::string nameOf(const State &state, int source, int target, int number) {
  return state.directory + "/" + std::to_string(source) + "-" +
         std::to_string(target) + "-" + std::to_string(number);
}

void writeFile(const std::string &path, const char *data, size_t bytes) {
  {
    std::ofstream file(path + ".part", std::ios::binary);
    file.write(data, static_cast<std::streamsize>(bytes));
  }
  std::rename((path + ".part").c_str(), path.c_str());
}

bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

bool overlap(const Message &a, const Message &b) {
  return a.data < b.data + b.bytes && b.data < a.data + a.bytes;
}

/// Runs a group on its stream. Returns NotReady until all messages have
/// arrived.
cuda::Status run(Work &work) {
  State &state = *work.state;
  if (state.isAborted)
    return cuda::Success;
  if (work.isStalled)
    return cuda::NotReady;
  auto at = [](const Message &message) {
    return reinterpret_cast<cuda::DevicePointer>(message.data);
  };
  for (Message &message : work.messages) {
    if (work.isSent || !message.isSend)
      continue;
    if (!fp8_emulator_access(at(message), message.bytes, /*writes=*/false))
      return cuda::IllegalAddress;
    writeFile(message.file, message.data, message.bytes);
    message.isDone = true;
  }
  work.isSent = true;
  bool isDone = true;
  for (Message &message : work.messages) {
    if (!message.isDone && exists(message.file)) {
      std::ifstream file(message.file, std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(file), {}};
      if (bytes.size() != message.bytes ||
          !fp8_emulator_access(at(message), message.bytes, /*writes=*/true)) {
        std::fprintf(stderr,
                     "NCCL of tests: expected %zu bytes from rank %d but got "
                     "%zu, or no place for them\n",
                     message.bytes, message.peer, bytes.size());
        return cuda::IllegalAddress;
      }
      std::memcpy(message.data, bytes.data(), bytes.size());
      unlink(message.file.c_str());
      message.isDone = true;
    }
    isDone &= message.isDone;
  }
  return isDone ? cuda::Success : cuda::NotReady;
}

cuda::Status runWork(void *data) {
  auto *work = static_cast<std::shared_ptr<Work> *>(data);
  cuda::Status status = run(**work);
  if (status != cuda::NotReady)
    delete work;
  return status;
}

/// Returns true if every rank has written a file of this name.
bool haveAll(const State &state, const std::string &name) {
  for (int rank = 0; rank < state.ranks; ++rank)
    if (!exists(state.directory + "/" + name + std::to_string(rank)))
      return false;
  return true;
}

} // namespace

struct fp8::nccl::CommHandle {
  std::shared_ptr<State> state;
};

#define FP8_NCCL_DECLARE(name, arguments)                                      \
  extern "C" __attribute__((visibility("default"))) Status name arguments;
FP8_NCCL_FUNCTIONS(FP8_NCCL_DECLARE)
#undef FP8_NCCL_DECLARE
extern "C" __attribute__((visibility("default")))
const char *ncclGetErrorString(Status status) {
  switch (status) {
  case nccl::Success:
    return "no error";
  case nccl::SystemError:
    return "unhandled system error";
  case nccl::InvalidArgument:
    return "invalid argument";
  case nccl::InvalidUsage:
    return "invalid usage";
  case nccl::RemoteError:
    return "remote process exited or there was a network error";
  case nccl::InProgress:
    return "NCCL operation in progress";
  default:
    return "internal error";
  }
}

extern "C" __attribute__((visibility("default"))) const char *
ncclGetLastError(Comm) {
  return lastError.c_str();
}

Status ncclGetVersion(int *version) {
  *version = 22703;
  return nccl::Success;
}

Status ncclGetUniqueId(UniqueId *id) {
  const char *folder = std::getenv("TMPDIR");
  std::string directory =
      std::string(folder ? folder : "/tmp") + "/fp8-nccl-XXXXXX";
  if (directory.size() >= sizeof(id->bytes) || !mkdtemp(directory.data()))
    return fail(nccl::SystemError, "cannot make '" + directory + "'");
  std::memset(id->bytes, 0, sizeof(id->bytes));
  std::memcpy(id->bytes, directory.data(), directory.size());
  return nccl::Success;
}

Status ncclCommInitRankConfig(Comm *comm, int ranks, UniqueId id, int rank,
                              Config *config) {
  if (!config || config->size < sizeof(Config) || config->magic != 0xcafebeef ||
      config->version < 21400 || config->blocking != 0 || ranks < 1 ||
      rank < 0 || rank >= ranks)
    return fail(nccl::InvalidArgument, "a bad communicator");
  auto state = std::make_shared<State>();
  state->directory = id.bytes;
  state->rank = rank;
  state->ranks = ranks;
  if (isAsked(*state, "init"))
    return fail(nccl::SystemError, "no network");
  writeFile(state->directory + "/rank-" + std::to_string(rank), "", 0);
  *comm = new nccl::CommHandle{state};
  return nccl::InProgress;
}

Status ncclCommGetAsyncError(Comm comm, Status *status) {
  State &state = *comm->state;
  *status = static_cast<Status>(state.error.load());
  if (*status != nccl::Success)
    return nccl::Success;
  if (!haveAll(state, "rank-") || state.pollsLeft > 0) {
    --state.pollsLeft;
    *status = nccl::InProgress;
    return nccl::Success;
  }
  if (std::shared_ptr<Work> work = std::move(state.waiting)) {
    state.waiting = nullptr;
    cuda::Stream stream = work->stream;
    if (fp8_emulator_work(stream, runWork, new std::shared_ptr<Work>(work)) !=
        cuda::Success)
      *status = nccl::UnhandledCudaError;
  }
  return nccl::Success;
}

Status ncclGroupStart() {
  if (depth++ == 0)
    group = std::make_shared<Work>();
  return nccl::Success;
}

Status ncclGroupEnd() {
  if (depth == 0 || --depth > 0)
    return depth == 0 ? fail(nccl::InvalidUsage, "no group") : nccl::Success;
  std::shared_ptr<Work> work = std::move(group);
  if (!work->state)
    return nccl::Success; // An empty group.
  State &state = *work->state;
  if (state.waiting)
    return fail(nccl::InvalidUsage, "the group before is not enqueued");
  for (const Message &from : work->messages)
    for (const Message &to : work->messages)
      if (!to.isSend && &from != &to && overlap(from, to))
        return fail(nccl::InvalidUsage, "a part overlaps another one");
  if (isAsked(state, "kill"))
    raise(SIGKILL);
  if (isAsked(state, "stop"))
    raise(SIGSTOP);
  if (isAsked(state, "end"))
    return fail(nccl::SystemError, "the network fails on purpose");
  if (isAsked(state, "late")) {
    lastError = "the network fails later, on purpose";
    state.error = nccl::RemoteError;
  }
  work->isStalled = isAsked(state, "stall");
  ++state.groups;
  state.waiting = std::move(work);
  state.pollsLeft = 2;
  return nccl::InProgress;
}

static Status add(char *data, size_t bytes, DataType type, int peer, Comm comm,
                  cuda::Stream stream, bool isSend) {
  State &state = *comm->state;
  if (depth == 0)
    return fail(nccl::InvalidUsage, "a message outside of a group");
  if (type != nccl::Bytes || peer < 0 || peer >= state.ranks ||
      peer == state.rank || !haveAll(state, "rank-"))
    return fail(nccl::InvalidArgument, "a bad message");
  if (group->state && (group->state != comm->state || group->stream != stream))
    return fail(nccl::InvalidUsage, "messages of several streams");
  group->state = comm->state;
  group->stream = stream;
  std::string file =
      isSend ? nameOf(state, state.rank, peer, state.sent[peer]++)
             : nameOf(state, peer, state.rank, state.received[peer]++);
  group->messages.push_back({data, bytes, peer, isSend, false, file});
  return nccl::Success;
}

Status ncclSend(const void *data, size_t count, DataType type, int peer,
                Comm comm, cuda::Stream stream) {
  return add(static_cast<char *>(const_cast<void *>(data)), count, type, peer,
             comm, stream, true);
}

Status ncclRecv(void *data, size_t count, DataType type, int peer, Comm comm,
                cuda::Stream stream) {
  return add(static_cast<char *>(data), count, type, peer, comm, stream, false);
}

Status ncclCommAbort(Comm comm) {
  comm->state->isAborted = true;
  return ncclCommDestroy(comm);
}

/// Other ranks may still read messages of this one, so the last one removes the
/// directory.
Status ncclCommDestroy(Comm comm) {
  State &state = *comm->state;
  writeFile(state.directory + "/left-" + std::to_string(state.rank), "", 0);
  std::error_code ignored;
  if (haveAll(state, "left-"))
    std::filesystem::remove_all(state.directory, ignored);
  delete comm;
  return nccl::Success;
}
