//===- CublasLt.h - Dots by cuBLASLt ----------------------------*- C++ -*-===//
//
// Declares the part of cuBLASLt's interface that is used, and opens the library
// when the first function with such a dot is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_CUBLASLT_H
#define FP8_LIB_RUNTIME_GPU_CUBLASLT_H

#include "Driver.h"
#include "fp8-c/Runtime.h"

#include <vector>

namespace fp8::cublaslt {

using Handle = struct HandleHandle *;
using Desc = struct DescHandle *;
using Layout = struct LayoutHandle *;
using Preference = struct PreferenceHandle *;

enum Status : int {
  Success = 0,
  NotInitialized = 1,
  AllocFailed = 3,
  InvalidValue = 7,
  ArchMismatch = 8,
  ExecutionFailed = 13,
  InternalError = 14,
  NotSupported = 15
};

enum DataType : int {
  Real32F = 0,
  Real16F = 2,
  Real16BF = 14,
  Real8FE4M3 = 28,
  Real8FE5M2 = 29
};

enum ComputeType : int { Compute32F = 68 };

enum Operation : int { OpN = 0, OpT = 1 };

enum DescAttribute : int {
  DescTransA = 3,
  DescTransB = 4,
  DescAScalePointer = 17,
  DescBScalePointer = 18,
  DescFastAccum = 25
};

enum PreferenceAttribute : int {
  PreferenceMaxWorkspaceBytes = 1,
  PreferenceMinAlignmentA = 5,
  PreferenceMinAlignmentB = 6,
  PreferenceMinAlignmentC = 7,
  PreferenceMinAlignmentD = 8
};

struct Algorithm {
  uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float waves;
  int reserved[4];
};

/// Every function in use that returns a status: its exported name and its
/// arguments.
#define FP8_CUBLASLT_FUNCTIONS(X)                                              \
  X(cublasLtCreate, (Handle *))                                                \
  X(cublasLtMatmulDescCreate, (Desc *, ComputeType, DataType))                 \
  X(cublasLtMatmulDescDestroy, (Desc))                                         \
  X(cublasLtMatmulDescSetAttribute,                                            \
    (Desc, DescAttribute, const void *, size_t))                               \
  X(cublasLtMatrixLayoutCreate,                                                \
    (Layout *, DataType, uint64_t, uint64_t, int64_t))                         \
  X(cublasLtMatrixLayoutDestroy, (Layout))                                     \
  X(cublasLtMatmulPreferenceCreate, (Preference *))                            \
  X(cublasLtMatmulPreferenceDestroy, (Preference))                             \
  X(cublasLtMatmulPreferenceSetAttribute,                                      \
    (Preference, PreferenceAttribute, const void *, size_t))                   \
  X(cublasLtMatmulAlgoGetHeuristic,                                            \
    (Handle, Desc, Layout, Layout, Layout, Layout, Preference, int,            \
     HeuristicResult *, int *))                                                \
  X(cublasLtMatmul,                                                            \
    (Handle, Desc, const void *, const void *, Layout, const void *, Layout,   \
     const void *, const void *, Layout, void *, Layout, const Algorithm *,    \
     void *, size_t, cuda::Stream))

// NOLINTBEGIN(readability-identifier-naming)
struct Functions {
#define FP8_CUBLASLT_MEMBER(name, arguments) Status(*name) arguments = nullptr;
  FP8_CUBLASLT_FUNCTIONS(FP8_CUBLASLT_MEMBER)
#undef FP8_CUBLASLT_MEMBER
  const char *(*cublasLtGetStatusName)(Status) = nullptr;
};
// NOLINTEND(readability-identifier-naming)

} // namespace fp8::cublaslt

namespace fp8::rt::gpu {

/// The library, opened once per process on first use.
struct CublasLt : cublaslt::Functions {
  /// Returns the library; throws if `function` needs it and there is none.
  static const CublasLt &get(const std::string &function);

  /// Throws the library's error unless `status` is success.
  void check(cublaslt::Status status, const std::string &what) const;

  cublaslt::Handle handle = nullptr;

private:
  explicit CublasLt(const std::string &function);
};

/// A dot with its descriptors and its algorithm.
class LibraryDot {
public:
  LibraryDot(const std::string &function, const fp8_gpu_kernel &kernel);
  ~LibraryDot();
  LibraryDot(const LibraryDot &) = delete;
  LibraryDot &operator=(const LibraryDot &) = delete;

  /// Enqueues the dot on `stream`; the operands are in fp8_gpu_dot's order.
  void run(cuda::Stream stream,
           const std::vector<cuda::DevicePointer> &operands) const;

private:
  void describe();
  void chooseAlgorithm();
  void destroy();

  const CublasLt &library;
  const fp8_gpu_dot &dot;
  std::string name;
  cublaslt::Desc desc = nullptr;
  // The library's matrices are column-major, so it computes the transposed
  // result: its A is our rhs.
  cublaslt::Layout a = nullptr, b = nullptr, d = nullptr;
  cublaslt::Algorithm algorithm = {};
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_CUBLASLT_H
