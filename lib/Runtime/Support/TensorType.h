//===- TensorType.h - Types and descriptions of tensors ---------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_TENSORTYPE_H
#define FP8_LIB_RUNTIME_SUPPORT_TENSORTYPE_H

#include "fp8-c/Runtime.h"

#include <string>
#include <vector>

namespace fp8::rt {

struct TensorType {
  fp8_dtype dtype = FP8_DTYPE_F32;
  std::vector<int64_t> dims;

  bool operator==(const TensorType &other) const {
    return dtype == other.dtype && dims == other.dims;
  }
  bool operator!=(const TensorType &other) const { return !(*this == other); }
  int64_t elements() const;
  int64_t bytes() const { return elements() * fp8_dtype_size(dtype); }
  /// Returns the type as JAX prints it, "f32[8,128]".
  std::string text() const;
};

/// An argument, a result, or a tensor in a file.
struct TensorInfo {
  std::string name;
  TensorType type;
  fp8_kind kind = FP8_KIND_OTHER;
  fp8_role role = FP8_ROLE_STATE;
  int64_t vocabulary = -1;
  bool labels = false;
  int64_t stateArg = -1;
  bool ownBuffer = false;
  bool zeroInit = false;
  int64_t shard = 0;
  /// The slices of the shard along the leading dimension, each with an owner.
  int64_t slices = 1;
  /// If each rank has a part: the shape of the whole, and the offsets of the
  /// parts of ranks 0, 1, ..., one after another.
  std::vector<int64_t> whole, partOffsets;
  /// The blocks of the whole, along the dimension that is divided among parts,
  /// of which a part has as much as of any other.
  int64_t partBlocks = 1;

  bool isPart() const { return !whole.empty(); }
  bool isPartOfState() const { return isPart() && role == FP8_ROLE_STATE; }
  TensorType wholeType() const {
    return isPart() ? TensorType{type.dtype, whole} : type;
  }
  /// Returns the dimension that is divided among the parts, if it is one.
  size_t dividedDim() const {
    size_t dim = 0;
    while (dim + 1 < whole.size() && whole[dim] == type.dims[dim])
      ++dim;
    return dim;
  }
  int64_t numParts() const {
    return static_cast<int64_t>(partOffsets.size() / whole.size());
  }
  /// Returns the offset of a rank's part.
  std::vector<int64_t> partOffset(int64_t rank) const {
    auto begin = partOffsets.begin() + rank * whole.size();
    return {begin, begin + whole.size()};
  }
};

/// Returns the bytes, or -1 if a size is negative or the product overflows.
int64_t tensorBytes(fp8_dtype dtype, const int64_t *dims, int64_t rank);

bool isInteger(fp8_dtype dtype);
bool isFloat(fp8_dtype dtype);

/// Returns whether safetensors has a name for this type. Tensors of other types
/// are stored as bytes, and the metadata name the type.
bool hasSafeTensorsName(fp8_dtype dtype);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_TENSORTYPE_H
