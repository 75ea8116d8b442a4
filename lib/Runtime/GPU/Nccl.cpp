//===- Nccl.cpp - NCCL, opened on first use -------------------------------===//

#include "Nccl.h"
#include "../Support/Error.h"

#include <dlfcn.h>

namespace fp8::rt::gpu {

Nccl::Nccl() {
  // The library is never closed: it has threads of its own.
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(FP8_ERROR_IO, dlerror());
  auto find = [&](const char *name) {
    return findFunction(library, name,
                        "expected NCCL 2.14 or later but libnccl.so.2");
  };
#define FP8_NCCL_FIND(name, arguments)                                         \
  name = reinterpret_cast<decltype(name)>(find(#name));
  FP8_NCCL_FUNCTIONS(FP8_NCCL_FIND)
#undef FP8_NCCL_FIND
  ncclGetErrorString = reinterpret_cast<decltype(ncclGetErrorString)>(
      find("ncclGetErrorString"));
  ncclGetLastError =
      reinterpret_cast<decltype(ncclGetLastError)>(find("ncclGetLastError"));
  int number = 0;
  nccl::Status status = ncclGetVersion(&number);
  if (status != nccl::Success)
    throw Error(FP8_ERROR_INTERNAL,
                textOf(status, "tell its version", nullptr));
  // Versions from 2.9 on are encoded as 10000, 100, 1.
  version = str(number / 10000, ".", number / 100 % 100, ".", number % 100);
}

const Nccl *Nccl::find(std::string *why) {
  try {
    // If the constructor throws, the next call tries again.
    static const Nccl library;
    return &library;
  } catch (const Error &error) {
    *why = error.what();
    return nullptr;
  }
}

std::string Nccl::textOf(nccl::Status status, const std::string &what,
                         nccl::Comm comm) const {
  const char *text = ncclGetErrorString(status);
  const char *last = ncclGetLastError(comm);
  return str("NCCL cannot ", what, ": ", text ? text : "unknown error",
             last && *last ? str(" (", last, ")") : "");
}

} // namespace fp8::rt::gpu
