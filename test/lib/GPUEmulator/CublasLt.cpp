//===- CublasLt.cpp - A libcublasLt.so for the emulated driver ------------===//
//
// The functions of cuBLASLt that the runtime uses, on the emulator's memory.
// They enforce the rules of the documentation (cuBLAS, "cublasLtMatmul()", and
// the comments of cublasLt.h): the sizes of attributes; combinations of types;
// for FP8, A transposed, B not, and sizes in multiples of 16; addresses aligned
// as the preference says; scales in device memory; an algorithm that the
// heuristic returned for this dot, with a workspace of the size that it gave. A
// call that breaks a rule fails with a message on stderr.
//
// Products are summed in f64 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "Formats.h"

#include "GPU/CublasLt.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

namespace cuda = fp8::cuda;
using namespace fp8::cublaslt;
using fp8::cuda::DevicePointer;
using fp8::cuda::Stream;
using fp8::emulator::decode;
using fp8::emulator::encode;
using fp8::emulator::Format;

#define FP8_CUBLASLT_DECLARE(name, arguments)                                  \
  extern "C" __attribute__((visibility("default"))) Status name arguments;
FP8_CUBLASLT_FUNCTIONS(FP8_CUBLASLT_DECLARE)
#undef FP8_CUBLASLT_DECLARE
extern "C" __attribute__((visibility("default")))
const char *cublasLtGetStatusName(Status status);

// Functions of the emulated driver.
extern "C" fp8::cuda::Status cuLaunchHostFunc(Stream, void (*)(void *), void *);
extern "C" bool fp8_emulator_access(DevicePointer, size_t, bool);

struct fp8::cublaslt::HandleHandle {};

struct fp8::cublaslt::DescHandle {
  ComputeType compute;
  DataType scale;
  std::map<int, uint64_t> attributes;
  uint64_t get(DescAttribute attribute) const {
    auto found = attributes.find(attribute);
    return found == attributes.end() ? 0 : found->second;
  }
};

struct fp8::cublaslt::LayoutHandle {
  DataType type;
  uint64_t rows, columns;
  int64_t ld;
};

struct fp8::cublaslt::PreferenceHandle {
  // The default alignment of each buffer is 256, as documented.
  std::map<int, uint64_t> attributes = {{PreferenceMinAlignmentA, 256},
                                        {PreferenceMinAlignmentB, 256},
                                        {PreferenceMinAlignmentC, 256},
                                        {PreferenceMinAlignmentD, 256}};
};

namespace {

Status refuse(Status status, const char *why) {
  std::fprintf(stderr, "cuBLASLt emulator: %s\n", why);
  return status;
}

/// Reads the value of an attribute, whose size must be `expected`.
Status read(std::map<int, uint64_t> &attributes, int attribute,
            const void *value, size_t given, size_t expected) {
  if (!value || given != expected)
    return refuse(InvalidValue, "an attribute of another size");
  uint64_t bits = 0;
  std::memcpy(&bits, value, given);
  attributes[attribute] = bits;
  return Success;
}

Format formatOf(DataType type) {
  switch (type) {
  case Real8FE4M3:
    return Format::E4M3;
  case Real8FE5M2:
    return Format::E5M2;
  case Real16F:
    return Format::F16;
  case Real16BF:
    return Format::BF16;
  case Real32F:
    return Format::F32;
  }
  std::abort();
}

size_t bytesOf(DataType type) { return bitsOf(formatOf(type)) / 8; }
bool isFP8(DataType type) { return bytesOf(type) == 1; }

struct Matrix {
  LayoutHandle layout;
  DevicePointer address;
  bool transposed;

  size_t bytes() const {
    return (layout.ld * (layout.columns - 1) + layout.rows) *
           bytesOf(layout.type);
  }
  uint64_t rows() const { return transposed ? layout.columns : layout.rows; }
  uint64_t columns() const { return transposed ? layout.rows : layout.columns; }
  char *at(uint64_t row, uint64_t column) const {
    if (transposed)
      std::swap(row, column);
    return reinterpret_cast<char *>(address) +
           (column * layout.ld + row) * bytesOf(layout.type);
  }
  double get(uint64_t row, uint64_t column) const {
    uint32_t bits = 0;
    std::memcpy(&bits, at(row, column), bytesOf(layout.type));
    return decode(formatOf(layout.type), bits);
  }
  std::vector<double> row(uint64_t row) const {
    std::vector<double> values(columns());
    for (uint64_t column = 0; column < columns(); ++column)
      values[column] = get(row, column);
    return values;
  }
};

/// The arguments of a call.
struct Dot {
  Matrix a, b, d;
  float alpha;
  DevicePointer scales[2];
  DevicePointer workspace;
  size_t workspaceBytes;

  void run() const;
};

/// Checks an access to memory. Work of a stream cannot return an error here, so
/// an invalid access ends the process, and with it the test.
void expectAccess(DevicePointer address, size_t bytes, bool writes) {
  if (fp8_emulator_access(address, bytes, writes))
    return;
  std::fprintf(stderr, "cuBLASLt emulator: %zu bytes that cannot be %s\n",
               bytes, writes ? "written" : "read");
  std::abort();
}

void Dot::run() const {
  for (const Matrix *operand : {&a, &b})
    expectAccess(operand->address, operand->bytes(), false);
  expectAccess(d.address, d.bytes(), true);
  double factor = alpha;
  for (DevicePointer scale : scales)
    if (scale) {
      expectAccess(scale, 4, false);
      factor *= *reinterpret_cast<const float *>(scale);
    }
  // The contents of the workspace are unspecified afterwards.
  if (workspaceBytes) {
    expectAccess(workspace, workspaceBytes, true);
    std::memset(reinterpret_cast<void *>(workspace), 0xa5, workspaceBytes);
  }
  Format format = formatOf(d.layout.type);
  Matrix turned = {b.layout, b.address, !b.transposed};
  std::vector<std::vector<double>> columns;
  for (uint64_t j = 0; j < d.columns(); ++j)
    columns.push_back(turned.row(j));
  for (uint64_t i = 0; i < d.rows(); ++i) {
    std::vector<double> row = a.row(i);
    for (uint64_t j = 0; j < d.columns(); ++j) {
      double sum =
          std::inner_product(row.begin(), row.end(), columns[j].begin(), 0.0);
      uint32_t bits = encode(format, sum * factor, /*saturate=*/false);
      std::memcpy(d.at(i, j), &bits, bytesOf(d.layout.type));
    }
  }
}

/// The largest workspace that an algorithm uses. A larger one would only be
/// slow to check.
constexpr uint64_t mostWorkspace = 8192;

/// Returns an algorithm that identifies the dot.
Algorithm nameOf(const DescHandle &desc, const LayoutHandle &a,
                 const LayoutHandle &b, const LayoutHandle &d,
                 uint64_t workspace, uint64_t alignment) {
  uint64_t form = desc.get(DescTransA) | desc.get(DescTransB) << 1 |
                  desc.get(DescFastAccum) << 2;
  return {{form, uint64_t(a.type) << 32 | b.type, uint64_t(d.type), a.rows,
           a.columns, b.columns, workspace, alignment}};
}

/// Checks whether the library supports a dot.
Status supports(const DescHandle &desc, const Matrix &a, const Matrix &b,
                const LayoutHandle &c, const LayoutHandle &d) {
  if (desc.compute != Compute32F || desc.scale != Real32F)
    return refuse(NotSupported, "sums or scales of another type than f32");
  for (const LayoutHandle *layout : {&a.layout, &b.layout, &c, &d})
    if (layout->ld < int64_t(layout->rows))
      return refuse(InvalidValue, "a leading dimension below the rows");
  if (a.columns() != b.rows() || a.rows() != d.rows ||
      b.columns() != d.columns || c.rows != d.rows || c.columns != d.columns)
    return refuse(InvalidValue, "matrices of other sizes");
  DataType lhs = a.layout.type, rhs = b.layout.type;
  bool hasScales = desc.get(DescAScalePointer) || desc.get(DescBScalePointer);
  if (c.type != d.type)
    return refuse(NotSupported, "C of another type than D");
  if (!isFP8(lhs) || !isFP8(rhs)) {
    if (lhs != rhs || (lhs != Real16BF && lhs != Real16F) ||
        (d.type != Real32F && d.type != lhs))
      return refuse(NotSupported, "types that do not go together");
    if (hasScales || desc.get(DescFastAccum))
      return refuse(InvalidValue,
                    "scales or fast sums of another type than f8");
    return Success;
  }
  if (lhs == Real8FE5M2 && rhs == Real8FE5M2)
    return refuse(NotSupported, "both operands in E5M2");
  if (d.type != Real32F && d.type != Real16BF && d.type != Real16F)
    return refuse(NotSupported, "types that do not go together");
  if (!a.transposed || b.transposed)
    return refuse(NotSupported, "FP8 where not A alone is transposed");
  for (const LayoutHandle *layout : {&a.layout, &b.layout, &d})
    if (layout->rows % 16 || layout->columns % 16 ||
        layout->ld * bytesOf(layout->type) % 16)
      return refuse(NotSupported, "FP8 of sizes that are no multiples of 16");
  return Success;
}

} // namespace

const char *cublasLtGetStatusName(Status status) {
  switch (status) {
  case Success:
    return "CUBLAS_STATUS_SUCCESS";
  case InvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case NotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

Status cublasLtCreate(Handle *handle) {
  *handle = new HandleHandle();
  return Success;
}

Status cublasLtMatmulDescCreate(Desc *desc, ComputeType compute,
                                DataType scale) {
  *desc = new DescHandle{compute, scale, {}};
  return Success;
}

Status cublasLtMatmulDescDestroy(Desc desc) {
  delete desc;
  return Success;
}

Status cublasLtMatmulDescSetAttribute(Desc desc, DescAttribute attribute,
                                      const void *value, size_t bytes) {
  bool isPointer =
      attribute == DescAScalePointer || attribute == DescBScalePointer;
  return read(desc->attributes, attribute, value, bytes,
              isPointer                    ? 8
              : attribute == DescFastAccum ? 1
                                           : 4);
}

Status cublasLtMatrixLayoutCreate(Layout *layout, DataType type, uint64_t rows,
                                  uint64_t columns, int64_t ld) {
  *layout = new LayoutHandle{type, rows, columns, ld};
  return Success;
}

Status cublasLtMatrixLayoutDestroy(Layout layout) {
  delete layout;
  return Success;
}

Status cublasLtMatmulPreferenceCreate(Preference *preference) {
  *preference = new PreferenceHandle();
  return Success;
}

Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  delete preference;
  return Success;
}

Status cublasLtMatmulPreferenceSetAttribute(Preference preference,
                                            PreferenceAttribute attribute,
                                            const void *value, size_t bytes) {
  return read(preference->attributes, attribute, value, bytes,
              attribute == PreferenceMaxWorkspaceBytes ? 8 : 4);
}

Status cublasLtMatmulAlgoGetHeuristic(Handle, Desc desc, Layout a, Layout b,
                                      Layout c, Layout d, Preference preference,
                                      int asked, HeuristicResult *results,
                                      int *found) {
  *found = 0;
  Matrix lhs{*a, 0, desc->get(DescTransA) == OpT},
      rhs{*b, 0, desc->get(DescTransB) == OpT};
  Status status = supports(*desc, lhs, rhs, *c, *d);
  if (status != Success || asked < 1)
    return status;
  uint64_t alignment = 256;
  for (int attribute = PreferenceMinAlignmentA;
       attribute <= PreferenceMinAlignmentD; ++attribute)
    alignment = std::min(alignment, preference->attributes[attribute]);
  uint64_t workspace = std::min(
      mostWorkspace, preference->attributes[PreferenceMaxWorkspaceBytes]);
  *results = {};
  results->algorithm = nameOf(*desc, *a, *b, *d, workspace, alignment);
  results->workspaceBytes = workspace;
  results->state = Success;
  *found = 1;
  return Success;
}

Status cublasLtMatmul(Handle, Desc desc, const void *alpha, const void *aData,
                      Layout a, const void *bData, Layout b, const void *beta,
                      const void *cData, Layout c, void *dData, Layout d,
                      const Algorithm *algorithm, void *workspace,
                      size_t workspaceBytes, Stream stream) {
  auto addressOf = [](const void *data) {
    return reinterpret_cast<DevicePointer>(data);
  };
  Dot dot{{*a, addressOf(aData), desc->get(DescTransA) == OpT},
          {*b, addressOf(bData), desc->get(DescTransB) == OpT},
          {*d, addressOf(dData), false},
          *static_cast<const float *>(alpha),
          {desc->get(DescAScalePointer), desc->get(DescBScalePointer)},
          addressOf(workspace),
          algorithm->data[6]};
  Status status = supports(*desc, dot.a, dot.b, *c, *d);
  if (status != Success)
    return status;
  if (*static_cast<const float *>(beta) != 0 || cData != dData)
    return refuse(NotSupported, "C that is added (the emulator alone)");
  uint64_t alignment = algorithm->data[7], planned = algorithm->data[6];
  Algorithm expected = nameOf(*desc, *a, *b, *d, planned, alignment);
  if (std::memcmp(&expected, algorithm, sizeof(expected)) != 0)
    return refuse(InvalidValue, "an algorithm for another dot");
  for (DevicePointer address :
       {dot.a.address, dot.b.address, dot.d.address, dot.workspace})
    if (address % alignment)
      return refuse(InvalidValue, "an address that is not as aligned as said");
  if (workspaceBytes < planned)
    return refuse(InvalidValue, "a workspace that is too small");
  fp8::cuda::Status given = cuLaunchHostFunc(
      stream, [](void *data) { static_cast<const Dot *>(data)->run(); },
      // A graph may run it repeatedly, so it is never freed.
      new Dot(dot));
  return given == fp8::cuda::Success ? Success : ExecutionFailed;
}
