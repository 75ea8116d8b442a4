//===- SafeTensorsIndex.h - Sets of tensor files ----------------*- C++ -*-===//
//
// An index says in which file of its directory each tensor is, as that of a
// model on the Hugging Face hub does: {"metadata": {...}, "weight_map": {name:
// file}}. The set is there when the index is.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_SAFETENSORSINDEX_H
#define FP8_LIB_RUNTIME_SAFETENSORSINDEX_H

#include "SafeTensors.h"

namespace fp8::rt {

/// How the name of an index ends.
inline constexpr const char *indexSuffix = ".safetensors.index.json";
/// The metadata that an index and its files have in common, if we wrote them:
/// files of two sets do not mix.
inline constexpr const char *setKey = "set";

bool isSafeTensorsIndex(const std::string &path);

/// All tensors of the set, with the metadata of the index. An index and its
/// files must name the same tensors. The files are mapped: a rank pays for what
/// it takes.
TensorFile readSafeTensorsSet(const std::string &path);

/// Atomic. `files`: where each tensor is; `bytes`: of all tensors.
void writeSafeTensorsIndex(const std::string &path,
                           const std::map<std::string, std::string> &files,
                           int64_t bytes,
                           const std::map<std::string, std::string> &metadata);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SAFETENSORSINDEX_H
