//===- SafeTensors.h - Tensor files -----------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SAFETENSORS_H
#define FP8_LIB_RUNTIME_SAFETENSORS_H

#include "Support.h"

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
  std::vector<FileContents> contents; // of the files, if it is a set of them

  const Tensor *find(const std::string &name) const;
};

/// Reads a safetensors file, or a set of them by its index. Everything that the
/// format demands is checked: sizes, types, offsets without overlap or hole,
/// unique names.
TensorFile readSafeTensors(const std::string &path);
/// The same of one file that nobody changes in place: what is not read of it
/// takes no memory.
TensorFile mapSafeTensors(const std::string &path);

/// Reads a .npy file as one tensor named "".
TensorFile readNpy(const std::string &path);

struct TensorToWrite {
  std::string name;
  TensorType type;
  const void *data;
};
/// Atomic. Tensors are ordered by element size, so that all are aligned.
void writeSafeTensors(const std::string &path,
                      std::vector<TensorToWrite> tensors,
                      std::map<std::string, std::string> metadata);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SAFETENSORS_H
