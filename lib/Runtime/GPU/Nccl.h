//===- Nccl.h - NVIDIA's library for messages between GPUs ------*- C++ -*-===//
//
// NCCL's interface as far as it is used: names, numbers and layouts of its ABI
// since version 2.14. Where its header is found, a test compares them with
// this.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_NCCL_H
#define FP8_LIB_RUNTIME_GPU_NCCL_H

#include "Driver.h"

namespace fp8::nccl {

using Comm = struct CommHandle *;

enum Status : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7
};

enum DataType : int { Bytes = 1 }; // ncclUint8

struct UniqueId {
  char bytes[128];
};

/// How to make a communicator: NCCL takes what was appended later to be at its
/// default where `size` and `version` are older.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0; // calls return at once, so that we can stop waiting
};

/// Every function that is used and returns a status: its name as the library
/// exports it, and its arguments.
#define FP8_NCCL_FUNCTIONS(X)                                                  \
  X(ncclGetVersion, (int *))                                                   \
  X(ncclGetUniqueId, (UniqueId *))                                             \
  X(ncclCommInitRankConfig, (Comm *, int, UniqueId, int, Config *))            \
  X(ncclCommGetAsyncError, (Comm, Status *))                                   \
  X(ncclCommDestroy, (Comm))                                                   \
  X(ncclCommAbort, (Comm))                                                     \
  X(ncclGroupStart, ())                                                        \
  X(ncclGroupEnd, ())                                                          \
  X(ncclSend, (const void *, size_t, DataType, int, Comm, cuda::Stream))       \
  X(ncclRecv, (void *, size_t, DataType, int, Comm, cuda::Stream))

// NOLINTBEGIN(readability-identifier-naming)
struct Functions {
#define FP8_NCCL_MEMBER(name, arguments) Status(*name) arguments = nullptr;
  FP8_NCCL_FUNCTIONS(FP8_NCCL_MEMBER)
#undef FP8_NCCL_MEMBER
  const char *(*ncclGetErrorString)(Status) = nullptr;
  const char *(*ncclGetLastError)(Comm) = nullptr;
};
// NOLINTEND(readability-identifier-naming)

} // namespace fp8::nccl

namespace fp8::rt::gpu {

/// The library, opened once for the process, on first use.
struct Nccl : nccl::Functions {
  /// Null where there is none that can be used; *why says why then.
  static const Nccl *find(std::string *why);

  /// "cannot ...: unhandled system error (what it last said)".
  std::string textOf(nccl::Status status, const std::string &what,
                     nccl::Comm comm) const;
  std::string version; // "2.32.3"

private:
  Nccl();
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_NCCL_H
