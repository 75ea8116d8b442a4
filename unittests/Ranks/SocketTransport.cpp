//===- SocketTransport.cpp - Ranks on one machine, with faults ------------===//
//
// A transport for tests: processes that find each other by sockets in a
// directory. It can be slow, stop answering, or end at a chosen exchange:
//   dir=DIR,rank=R,ranks=N[,delay=MS][,stall=K][,kill=K][,fail=K]
// delay: each exchange takes at least this many milliseconds.
// stall, kill, fail: the event at exchange K, counted from 0.
//
//===----------------------------------------------------------------------===//

#include "fp8-c/Transport.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Precedes every message; a length of abortMark announces a last message with
/// the reason why all ranks end.
struct Header {
  int64_t bytes;
};
constexpr int64_t abortMark = -1;
constexpr int64_t abortBytes = 1024;

/// The other end of a connection, with its transfers.
struct Peer {
  int socket = -1;
  bool isClosed = false;
  Header sendHeader, receiveHeader;
  fp8_message send{}, receive{};
  int64_t sent = 0, received = 0; // headers included
  int64_t sendTotal = 0, receiveTotal = 0;
  bool isPending() const { return sent < sendTotal || received < receiveTotal; }
};

struct State {
  int64_t rank = 0, ranks = 1;
  std::vector<Peer> peers;
  std::map<std::string, std::string> options;
  int64_t exchanges = 0;
  Clock::time_point begin;
  bool isUnderWay = false, isStalled = false;
  std::string message;
  int64_t failedRank = -1;
  bool told = false;

  int64_t number(const char *name, int64_t missing) const {
    auto found = options.find(name);
    return found == options.end() ? missing : std::atoll(found->second.c_str());
  }
  int32_t fail(int64_t which, const std::string &text, bool isTold = false) {
    failedRank = which;
    message = text;
    told = isTold;
    return -1;
  }
};

/// Returns the address of byte `at` of a message, which is its header followed
/// by its bytes.
char *placeOf(Header &header, const fp8_message &message, int64_t at,
              int64_t &left) {
  int64_t headerBytes = sizeof(Header);
  if (at < headerBytes) {
    left = headerBytes - at;
    return reinterpret_cast<char *>(&header) + at;
  }
  left = message.bytes - (at - headerBytes);
  return static_cast<char *>(message.data) + (at - headerBytes);
}

int32_t start(void *opaque, const fp8_message *sends,
              const fp8_message *receives) {
  State &state = *static_cast<State *>(opaque);
  int64_t exchange = state.exchanges++;
  if (exchange == state.number("kill", -1))
    raise(SIGKILL);
  if (exchange == state.number("fail", -1))
    return state.fail(-1, "the transport fails on purpose");
  state.isStalled = exchange == state.number("stall", -1);
  state.isUnderWay = true;
  state.begin = Clock::now();
  for (int64_t rank = 0; rank < state.ranks; ++rank) {
    Peer &peer = state.peers[rank];
    if (rank == state.rank)
      continue;
    peer.send = sends[rank];
    peer.receive = receives[rank];
    peer.sendHeader.bytes = sends[rank].bytes;
    peer.sent = peer.received = 0;
    peer.sendTotal = sizeof(Header) + sends[rank].bytes;
    peer.receiveTotal = sizeof(Header) + receives[rank].bytes;
  }
  return 0;
}

/// Reads the rest of a last message.
void readAbort(State &state, int64_t rank) {
  char text[abortBytes + 1] = {};
  int64_t size = 0;
  while (size < abortBytes) {
    pollfd ready{state.peers[rank].socket, POLLIN, 0};
    if (poll(&ready, 1, 1000) <= 0)
      break;
    ssize_t n = read(state.peers[rank].socket, text + size, abortBytes - size);
    if (n <= 0)
      break;
    size += n;
  }
  state.peers[rank].isClosed = true;
  state.fail(-1, text, true);
}

/// Moves as many bytes as possible; returns false after a failure.
bool advance(State &state, int64_t rank) {
  Peer &peer = state.peers[rank];
  while (peer.sent < peer.sendTotal) {
    int64_t left;
    char *data = placeOf(peer.sendHeader, peer.send, peer.sent, left);
    ssize_t n = send(peer.socket, data, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
      break; // its last message may have the reason
    if (n < 0)
      break;
    peer.sent += n;
  }
  while (peer.received < peer.receiveTotal) {
    int64_t left;
    char *data = placeOf(peer.receiveHeader, peer.receive, peer.received, left);
    ssize_t n = recv(peer.socket, data, left, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    if (n <= 0) {
      peer.isClosed = true;
      return state.fail(rank, "its process has ended") == 0;
    }
    peer.received += n;
    if (peer.received != sizeof(Header))
      continue;
    if (peer.receiveHeader.bytes == abortMark) {
      readAbort(state, rank);
      return false;
    }
    if (peer.receiveHeader.bytes != peer.receive.bytes)
      return state.fail(rank, "expected a message of " +
                                  std::to_string(peer.receive.bytes) +
                                  " bytes but got one of " +
                                  std::to_string(peer.receiveHeader.bytes)) ==
             0;
  }
  return true;
}

/// Reads what a failed exchange has left over, since a last message comes
/// behind it. Its buffers may be gone. Returns false if bytes are still to
/// come.
bool discardRest(Peer &peer) {
  char rest[4096];
  while (peer.received > 0 && peer.received < peer.receiveTotal) {
    int64_t left = std::min<int64_t>(peer.receiveTotal - peer.received,
                                     static_cast<int64_t>(sizeof(rest)));
    ssize_t n = recv(peer.socket, rest, left, MSG_DONTWAIT);
    if (n <= 0)
      return false;
    peer.received += n;
  }
  return true;
}

/// Looks, between exchanges or after one has failed, whether another rank has
/// sent a last message.
bool lookForAbort(State &state, bool hasFailed) {
  for (int64_t rank = 0; rank < state.ranks; ++rank) {
    Peer &peer = state.peers[rank];
    if (rank == state.rank || peer.isClosed)
      continue;
    while (!hasFailed || discardRest(peer)) {
      Header header = {};
      ssize_t n =
          recv(peer.socket, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK);
      if (n != sizeof(header))
        break;
      bool isLast = header.bytes == abortMark;
      if (!isLast && !hasFailed)
        break; // the message of the next exchange
      recv(peer.socket, &header, sizeof(header), MSG_DONTWAIT);
      if (isLast) {
        readAbort(state, rank);
        return true;
      }
      peer.received = n;
      peer.receiveTotal = n + header.bytes;
    }
  }
  return false;
}

int32_t test(void *opaque, uint8_t *pending) {
  State &state = *static_cast<State *>(opaque);
  if (!state.isUnderWay)
    return lookForAbort(state, /*hasFailed=*/false) ? -1 : 1;
  std::memset(pending, 0, state.ranks);
  if (state.isStalled)
    while (true)
      pause();
  bool isDone = true;
  for (int64_t rank = 0; rank < state.ranks; ++rank) {
    if (rank == state.rank)
      continue;
    if (!advance(state, rank))
      return -1;
    pending[rank] = state.peers[rank].isPending();
    isDone &= !pending[rank];
  }
  if (isDone && secondsSince(state.begin) * 1e3 < state.number("delay", 0))
    return 0;
  state.isUnderWay = !isDone;
  return isDone;
}

const char *error(void *opaque, int64_t *rank, int32_t *told) {
  State &state = *static_cast<State *>(opaque);
  if (!state.told)
    lookForAbort(state, /*hasFailed=*/true);
  *rank = state.failedRank;
  *told = state.told;
  return state.message.c_str();
}

void abortAll(void *opaque, const char *message) {
  State &state = *static_cast<State *>(opaque);
  std::vector<char> last(sizeof(Header) + abortBytes, 0);
  Header header{abortMark};
  std::memcpy(last.data(), &header, sizeof(header));
  std::snprintf(last.data() + sizeof(header), abortBytes, "%s", message);
  for (Peer &peer : state.peers)
    // In the middle of a message it would be taken for a part of it.
    if (peer.socket >= 0 && (peer.sent == 0 || peer.sent == peer.sendTotal))
      (void)!send(peer.socket, last.data(), last.size(),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
}

void close(void *opaque) {
  State *state = static_cast<State *>(opaque);
  for (Peer &peer : state->peers)
    if (peer.socket >= 0)
      ::close(peer.socket);
  delete state;
}

sockaddr_un addressOf(const State &state, int64_t rank) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/rank-%d",
                state.options.at("dir").c_str(), static_cast<int>(rank));
  return address;
}

/// Connects to the lower ranks and accepts the higher ones.
std::string connectAll(State &state, double timeout) {
  Clock::time_point begin = Clock::now();
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un mine = addressOf(state, state.rank);
  unlink(mine.sun_path);
  if (bind(listener, reinterpret_cast<sockaddr *>(&mine), sizeof(mine)) != 0 ||
      listen(listener, static_cast<int>(state.ranks)) != 0)
    return std::string("cannot listen at '") + mine.sun_path +
           "': " + std::strerror(errno);
  for (int64_t rank = 0; rank < state.rank; ++rank) {
    sockaddr_un address = addressOf(state, rank);
    int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (connect(peer, reinterpret_cast<sockaddr *>(&address),
                   sizeof(address)) != 0) {
      if (secondsSince(begin) > timeout)
        return "rank " + std::to_string(rank) + " did not start";
      usleep(1000);
    }
    int64_t who = state.rank;
    (void)!write(peer, &who, sizeof(who));
    state.peers[rank].socket = peer;
  }
  for (int64_t missing = state.ranks - state.rank - 1; missing > 0; --missing) {
    pollfd ready{listener, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(timeout * 1e3)) <= 0)
      return "a rank above " + std::to_string(state.rank) + " did not start";
    int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int64_t who = -1;
    if (read(peer, &who, sizeof(who)) != sizeof(who) || who <= state.rank ||
        who >= state.ranks)
      return "a rank does not say which it is";
    state.peers[who].socket = peer;
  }
  ::close(listener);
  return "";
}

} // namespace

int32_t fp8_transport_open(const char *arguments, double timeout,
                           fp8_transport *transport, char *message,
                           int64_t messageBytes) {
  auto *state = new State;
  std::string text = arguments;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    size_t equals = text.find('=', at);
    if (equals < end)
      state->options[text.substr(at, equals - at)] =
          text.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  state->rank = state->number("rank", 0);
  state->ranks = state->number("ranks", 1);
  state->peers.resize(state->ranks);
  std::string problem =
      state->options.count("dir")
          ? connectAll(*state, timeout)
          : "expected dir=DIR,rank=R,ranks=N but got '" + text + "'";
  if (!problem.empty()) {
    std::snprintf(message, messageBytes, "%s", problem.c_str());
    close(state);
    return -1;
  }
  *transport = {};
  transport->version = FP8_TRANSPORT_VERSION;
  std::strcpy(transport->name, "sockets of a test");
  transport->state = state;
  transport->rank = state->rank;
  transport->ranks = state->ranks;
  transport->start = start;
  transport->test = test;
  transport->error = error;
  transport->abort = abortAll;
  transport->close = close;
  return 0;
}
