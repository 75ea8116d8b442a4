//===- Binding.h - Finding tensors by tree path -----------------*- C++ -*-===//
//
// An initializer, a file and a step name the same tensor by paths whose ends
// agree: "p['layers'][0]['wq']" of the step is "result[0]['layers'][0]['wq']"
// of the initializer and may be "layers.0.wq" in a file.
//
// Paths are split into keys ("p", "layers", "0", "wq"). All targets with the
// same first key (one pytree argument) bind together: a prefix of the source's
// paths takes the place of that key, the one under which most of them are
// found with the right type; of equals, the one with the same name, then the
// shortest, then the first. So first moments, which have the parameters' paths
// and types, never pass for them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_BINDING_H
#define FP8_LIB_RUNTIME_BINDING_H

#include "Support.h"

namespace fp8::rt {

struct Named {
  std::string name;
  TensorType type;
};

struct Binding {
  /// For each target the source, or -1.
  std::vector<int64_t> sources;
  std::vector<int64_t> missing; // targets without a source
  /// Targets whose source has another type, with it.
  std::vector<std::pair<int64_t, int64_t>> misshaped;
  std::vector<int64_t> extra; // sources without a target

  bool complete() const { return missing.empty() && misshaped.empty(); }
};

Binding bindByPath(const std::vector<Named> &targets,
                   const std::vector<Named> &sources);

/// One message that lists missing, mis-shaped and extra tensors together.
std::string describe(const Binding &binding, const std::string &title,
                     const std::vector<Named> &targets,
                     const std::vector<Named> &sources);

/// The keys of a tree path.
std::vector<std::string> splitPath(const std::string &path);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_BINDING_H
