//===- CublasLt.cpp - Dots by cuBLASLt ------------------------------------===//

#include "CublasLt.h"
#include "../Support/Error.h"

#include <dlfcn.h>

namespace fp8::rt::gpu {

using namespace cublaslt;

/// The alignment that the compiler guarantees for operands; buffers of the
/// arena have more.
static constexpr uint32_t operandAlignment = 16;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// Returns a handle of the first version that can be opened.
static void *openLibrary(const std::string &function) {
  std::string why;
  for (const char *name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
    why += str(why.empty() ? "" : "; ", dlerror());
  }
  throw Error(FP8_ERROR_INVALID,
              str("'", function,
                  "' leaves dots to cuBLASLt (it was compiled with the target "
                  "option 'cublaslt'), but the library cannot be opened: ",
                  why));
}

CublasLt::CublasLt(const std::string &function) {
  // Like the driver, the library is never closed.
  void *library = openLibrary(function);
  auto find = [&](const char *name) {
    return findFunction(library, name,
                        "expected cuBLASLt of CUDA 12 or 13 but it");
  };
#define FP8_CUBLASLT_FIND(name, arguments)                                     \
  name = reinterpret_cast<decltype(name)>(find(#name));
  FP8_CUBLASLT_FUNCTIONS(FP8_CUBLASLT_FIND)
#undef FP8_CUBLASLT_FIND
  cublasLtGetStatusName = reinterpret_cast<decltype(cublasLtGetStatusName)>(
      find("cublasLtGetStatusName"));
  check(cublasLtCreate(&handle), "begin");
}

const CublasLt &CublasLt::get(const std::string &function) {
  // If the constructor throws, the next call tries again.
  static const CublasLt library(function);
  return library;
}

void CublasLt::check(Status status, const std::string &what) const {
  if (status != Success)
    throw Error(FP8_ERROR_INTERNAL, str("cuBLASLt cannot ", what, ": ",
                                        cublasLtGetStatusName(status)));
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

static DataType typeOf(int32_t dtype) {
  switch (dtype) {
  case FP8_DTYPE_F8_E4M3FN:
    return Real8FE4M3;
  case FP8_DTYPE_F8_E5M2:
    return Real8FE5M2;
  case FP8_DTYPE_BF16:
    return Real16BF;
  case FP8_DTYPE_F16:
    return Real16F;
  case FP8_DTYPE_F32:
    return Real32F;
  default:
    throw Error(
        FP8_ERROR_INVALID,
        str("expected a dot of f8, bf16, f16 or f32 but got type ", dtype));
  }
}

LibraryDot::LibraryDot(const std::string &function,
                       const fp8_gpu_kernel &kernel)
    : library(CublasLt::get(function)), dot(*kernel.dot),
      name(str("dot '", kernel.name, "' of '", function, "' (", dot.rows, "x",
               dot.columns, "x", dot.depth, ")")) {
  try {
    int32_t expected = dot.scaled ? 6 : 4;
    if (kernel.num_operands != expected)
      throw Error(FP8_ERROR_INVALID,
                  str("expected ", expected, " operands of ", name, " but got ",
                      kernel.num_operands));
    describe();
    chooseAlgorithm();
  } catch (...) {
    destroy();
    throw;
  }
}

LibraryDot::~LibraryDot() { destroy(); }

void LibraryDot::destroy() {
  for (Layout layout : {a, b, d})
    if (layout)
      library.cublasLtMatrixLayoutDestroy(layout);
  if (desc)
    library.cublasLtMatmulDescDestroy(desc);
}

void LibraryDot::describe() {
  std::string what = str("describe ", name);
  auto set = [&](DescAttribute attribute, auto value) {
    library.check(library.cublasLtMatmulDescSetAttribute(desc, attribute,
                                                         &value, sizeof(value)),
                  what);
  };
  library.check(library.cublasLtMatmulDescCreate(&desc, Compute32F, Real32F),
                what);
  set(DescTransA, int32_t(dot.rhs_along_k ? OpT : OpN));
  set(DescTransB, int32_t(dot.lhs_along_k ? OpN : OpT));
  if (typeOf(dot.lhs) == Real8FE4M3 || typeOf(dot.lhs) == Real8FE5M2)
    set(DescFastAccum, int8_t(dot.fast_accumulation != 0));
  auto layout = [&](Layout &made, int32_t dtype, int64_t rows,
                    int64_t columns) {
    library.check(library.cublasLtMatrixLayoutCreate(&made, typeOf(dtype), rows,
                                                     columns, /*ld=*/rows),
                  what);
  };
  auto operand = [&](Layout &made, int32_t dtype, int64_t across, bool alongK) {
    layout(made, dtype, alongK ? dot.depth : across,
           alongK ? across : dot.depth);
  };
  operand(a, dot.rhs, dot.columns, dot.rhs_along_k);
  operand(b, dot.lhs, dot.rows, dot.lhs_along_k);
  layout(d, dot.result, dot.columns, dot.rows);
}

/// Chooses the first algorithm that the library proposes. It depends on the
/// library's version, the card and the dot, not on measurements.
void LibraryDot::chooseAlgorithm() {
  std::string what = str("find an algorithm for ", name);
  Preference preference = nullptr;
  library.check(library.cublasLtMatmulPreferenceCreate(&preference), what);
  auto set = [&](PreferenceAttribute attribute, auto value) {
    library.check(library.cublasLtMatmulPreferenceSetAttribute(
                      preference, attribute, &value, sizeof(value)),
                  what);
  };
  HeuristicResult result = {};
  int found = 0;
  Status status = Success;
  try {
    set(PreferenceMaxWorkspaceBytes, uint64_t(dot.workspace_bytes));
    for (PreferenceAttribute attribute :
         {PreferenceMinAlignmentA, PreferenceMinAlignmentB,
          PreferenceMinAlignmentC, PreferenceMinAlignmentD})
      set(attribute, operandAlignment);
    status = library.cublasLtMatmulAlgoGetHeuristic(
        library.handle, desc, a, b, d, d, preference, 1, &result, &found);
  } catch (...) {
    library.cublasLtMatmulPreferenceDestroy(preference);
    throw;
  }
  library.cublasLtMatmulPreferenceDestroy(preference);
  library.check(status, what);
  if (found == 0)
    throw Error(FP8_ERROR_INVALID, str("cuBLASLt has no algorithm for ", name));
  library.check(result.state, what);
  algorithm = result.algorithm;
}

void LibraryDot::run(cuda::Stream stream,
                     const std::vector<cuda::DevicePointer> &operands) const {
  auto at = [&](size_t number) {
    return reinterpret_cast<void *>(operands[number]);
  };
  std::string what = str("compute ", name);
  if (dot.scaled) {
    auto set = [&](DescAttribute attribute, const void *scale) {
      library.check(library.cublasLtMatmulDescSetAttribute(
                        desc, attribute, &scale, sizeof(scale)),
                    what);
    };
    set(DescAScalePointer, at(3));
    set(DescBScalePointer, at(2));
  }
  const float one = 1, zero = 0;
  size_t result = dot.scaled ? 4 : 2;
  library.check(
      library.cublasLtMatmul(library.handle, desc, &one, at(1), a, at(0), b,
                             &zero, at(result), d, at(result), d, &algorithm,
                             at(result + 1), dot.workspace_bytes, stream),
      what);
}

} // namespace fp8::rt::gpu
