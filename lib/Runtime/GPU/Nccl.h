//===- Nccl.h - NCCL, opened on first use -----------------------*- C++ -*-===//
//
// Declares the part of NCCL's interface that is used: names, constants and
// layouts of its ABI since version 2.14. If its header is installed, a test
// compares it with this file.
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

/// The settings of a communicator. NCCL uses defaults for fields that versions
/// newer than `version` have appended.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0; // calls return at once, so that waits can be aborted
};

/// Every function in use that returns a status: its exported name and its
/// arguments.
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

/// The library, opened once per process on first use.
struct Nccl : nccl::Functions {
  /// Returns null if there is no usable library; *why is then the reason.
  static const Nccl *find(std::string *why);

  /// Returns "cannot ...: unhandled system error (last error)".
  std::string textOf(nccl::Status status, const std::string &what,
                     nccl::Comm comm) const;
  std::string version; // "2.32.3"

private:
  Nccl();
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_NCCL_H
