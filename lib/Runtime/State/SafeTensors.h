//===- SafeTensors.h - Tensor files -----------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STATE_SAFETENSORS_H
#define FP8_LIB_RUNTIME_STATE_SAFETENSORS_H

#include "../Support/Files.h"
#include "../Support/TensorType.h"

#include <map>
#include <unordered_map>

namespace fp8::rt {

/// The tensors of a file, in the order of their data.
struct TensorFile {
  struct Tensor {
    std::string name;
    TensorType type;
    const char *data;
  };
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::vector<FileContents> contents; // one for each file of a set

  const Tensor *find(const std::string &name) const;
};

/// Reads a safetensors file, or a set of them by its index. Checks everything
/// that the format demands: sizes, types, offsets without overlap or gap,
/// unique names.
TensorFile readSafeTensors(const std::string &path);
/// Does the same for one file that is never changed in place: pages that are
/// not read take no memory.
TensorFile mapSafeTensors(const std::string &path);

/// Reads a .npy file as one tensor named "".
TensorFile readNpy(const std::string &path);

/// Returns a caller's pairs of metadata: key, value, key, value, ...
std::map<std::string, std::string> metadataOf(const char *const *pairs,
                                              int64_t numPairs);

struct TensorToWrite {
  std::string name;
  TensorType type;
  const void *data;
};
/// Writes atomically. Tensors are sorted by element size, so that all are
/// aligned.
void writeSafeTensors(const std::string &path,
                      std::vector<TensorToWrite> tensors,
                      std::map<std::string, std::string> metadata);

} // namespace fp8::rt

struct fp8_tensors {
  fp8::rt::TensorFile file;
};

#endif // FP8_LIB_RUNTIME_STATE_SAFETENSORS_H
