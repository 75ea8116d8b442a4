//===- Mpi.cpp - The MPI transport ----------------------------------------===//
//
// Compiled once against each installed MPI, as a plugin library of its own: the
// ABIs of Open MPI and MPICH differ.
//
//===----------------------------------------------------------------------===//

#include "fp8-c/Transport.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <unistd.h>
#include <vector>

namespace {

struct State {
  MPI_Comm ranks = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::vector<MPI_Request> requests;
  std::vector<int> peers;   // of the requests
  std::vector<int> indices; // of those that a test found complete
  char message[MPI_MAX_ERROR_STRING] = {};

  bool failed(int code) {
    if (code == MPI_SUCCESS)
      return false;
    int length = 0;
    if (MPI_Error_string(code, message, &length) != MPI_SUCCESS)
      std::snprintf(message, sizeof(message), "MPI's error %d", code);
    return true;
  }
};

/// A count in MPI is an int, so large messages are sent in parts.
constexpr int64_t largestPart = int64_t(1) << 30;

template <typename Post>
bool postAll(State &state, const fp8_message *messages, Post post) {
  for (int step = 1; step < state.size; ++step) {
    // Every rank begins with a different peer.
    int peer = (state.rank + step) % state.size;
    const fp8_message &message = messages[peer];
    for (int64_t at = 0; at < message.bytes; at += largestPart) {
      int count = static_cast<int>(std::min(largestPart, message.bytes - at));
      MPI_Request request;
      if (state.failed(post(static_cast<char *>(message.data) + at, count, peer,
                            &request)))
        return false;
      state.requests.push_back(request);
      state.peers.push_back(peer);
    }
  }
  return true;
}

int32_t start(void *opaque, const fp8_message *sends,
              const fp8_message *receives) {
  State &state = *static_cast<State *>(opaque);
  state.requests.clear();
  state.peers.clear();
  bool good =
      postAll(state, receives,
              [&](char *data, int count, int peer, MPI_Request *request) {
                return MPI_Irecv(data, count, MPI_BYTE, peer, 0, state.ranks,
                                 request);
              }) &&
      postAll(state, sends,
              [&](char *data, int count, int peer, MPI_Request *request) {
                return MPI_Isend(data, count, MPI_BYTE, peer, 0, state.ranks,
                                 request);
              });
  return good ? 0 : -1;
}

int32_t test(void *opaque, uint8_t *pending) {
  State &state = *static_cast<State *>(opaque);
  int count = static_cast<int>(state.requests.size()), done = 0;
  state.indices.resize(state.requests.size());
  if (state.failed(MPI_Testsome(count, state.requests.data(), &done,
                                state.indices.data(), MPI_STATUSES_IGNORE)))
    return -1;
  std::memset(pending, 0, state.size);
  bool isDone = true;
  for (int i = 0; i < count; ++i)
    if (state.requests[i] != MPI_REQUEST_NULL) {
      pending[state.peers[i]] = 1;
      isDone = false;
    }
  return isDone;
}

const char *error(void *opaque, int64_t *rank, int32_t *told) {
  *rank = -1;
  *told = 0;
  return static_cast<State *>(opaque)->message;
}

void abortAll(void *, const char *) {
  std::fflush(nullptr);
  // MPICH's launcher drops output that it has not forwarded yet when it ends
  // the ranks, including the error message.
  usleep(300000);
  // Abort MPI_COMM_WORLD, not our copy: with the copy MPICH ends only this
  // process.
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void close(void *opaque) {
  State *state = static_cast<State *>(opaque);
  MPI_Comm_free(&state->ranks);
  MPI_Finalize();
  delete state;
}

/// Extracts "Open MPI v4.1.4" from the version text, which may have many lines.
void readName(char *name, size_t size) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  text[std::strcspn(text, ",\n")] = '\0';
  std::replace(text, text + std::strlen(text), '\t', ' ');
  std::snprintf(name, size, "%s", text);
}

} // namespace

int32_t fp8_transport_open(const char *, double, fp8_transport *transport,
                           char *message, int64_t messageBytes) {
  auto fail = [&](const char *what) {
    std::snprintf(message, messageBytes, "%s", what);
    return -1;
  };
  int isInitialized = 0, threads = 0;
  MPI_Initialized(&isInitialized);
  if (isInitialized)
    return fail("expected MPI to be free for one group of ranks but it is in "
                "use already");
  // Two threads call MPI, one at a time.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads) !=
      MPI_SUCCESS)
    return fail("MPI cannot be initialized");
  if (threads < MPI_THREAD_SERIALIZED)
    return fail("expected an MPI that several threads may call, one after "
                "another (MPI_THREAD_SERIALIZED)");
  auto *state = new State;
  MPI_Comm_dup(MPI_COMM_WORLD, &state->ranks);
  MPI_Comm_set_errhandler(state->ranks, MPI_ERRORS_RETURN);
  MPI_Comm_rank(state->ranks, &state->rank);
  MPI_Comm_size(state->ranks, &state->size);
  transport->version = FP8_TRANSPORT_VERSION;
  readName(transport->name, sizeof(transport->name));
  transport->state = state;
  transport->rank = state->rank;
  transport->ranks = state->size;
  transport->start = start;
  transport->test = test;
  transport->error = error;
  transport->abort = abortAll;
  transport->close = close;
  return 0;
}
