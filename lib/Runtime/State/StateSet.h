//===- StateSet.h - State in one file for each rank -------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STATE_STATESET_H
#define FP8_LIB_RUNTIME_STATE_STATESET_H

#include "../Step/Step.h"
#include "SafeTensors.h"
#include "SafeTensorsIndex.h"

namespace fp8::rt {

/// A set of files and its index, <stem>.safetensors.index.json.
struct StateSet {
  std::string stem;
  std::vector<size_t> arguments; // which the set holds
  std::map<std::string, std::string> metadata;

  std::string index() const { return stem + indexSuffix; }
};

/// Describes the whole value of an argument, which must be on this rank.
TensorToWrite tensorOf(fp8_step &step, size_t i);

/// Writes a set: each rank a file with what it owns, <stem>-00001-of-00003.
/// safetensors, then rank 0 the index. All ranks call it. If a rank fails, all
/// throw its message. A set with the same index is replaced, and is complete
/// until the new one is. What a rank gathers for its file stays until
/// fp8_step::drop.
void writeStateSet(const StateSet &set, fp8_step &step, fp8_group &group);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_STATESET_H
