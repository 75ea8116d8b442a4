//===- SafeTensorsIndex.h - Sets of tensor files ----------------*- C++ -*-===//
//
// An index says which file of its directory holds each tensor, as for a model
// on the Hugging Face hub: {"metadata": {...}, "weight_map": {name: file}}. A
// set exists once its index does.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_SAFETENSORSINDEX_H
#define FP8_LIB_RUNTIME_STATE_SAFETENSORSINDEX_H

#include "SafeTensors.h"

#include <set>

namespace fp8::rt {

/// The suffix of an index's name.
inline constexpr const char *indexSuffix = ".safetensors.index.json";
/// The metadata key whose value an index shares with its files, if we wrote
/// them: it keeps files of two sets apart.
inline constexpr const char *setKey = "set";

bool isSafeTensorsIndex(const std::string &path);

/// Reads all tensors of the set, with the metadata of the index. An index and
/// its files must name the same tensors. The files are mapped: a rank reads
/// only the tensors that it uses.
TensorFile readSafeTensorsSet(const std::string &path);

/// Returns the names of the files of the set; none if there is no valid index.
std::set<std::string> filesOfSafeTensorsSet(const std::string &path);

/// Writes atomically. `files`: the file of each tensor; `bytes`: the size of
/// all tensors.
void writeSafeTensorsIndex(const std::string &path,
                           const std::map<std::string, std::string> &files,
                           int64_t bytes,
                           const std::map<std::string, std::string> &metadata);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_SAFETENSORSINDEX_H
