//===- Binding.h - Binding tensors of the runtime by path -------*- C++ -*-===//
//
// fp8/Binding/PathBinding.h says how paths bind. This file binds the runtime's
// types and describes mismatches.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_BINDING_H
#define FP8_LIB_RUNTIME_STATE_BINDING_H

#include "../Support/TensorType.h"
#include "fp8/Binding/PathBinding.h"

namespace fp8::rt {

using fp8binding::Binding;
using fp8binding::splitPath;

/// The name and the type of a tensor of an executable or of a file.
struct NamedTensor {
  std::string name;
  TensorType type;
};

Binding bindByPath(const std::vector<NamedTensor> &targets,
                   const std::vector<NamedTensor> &sources);

/// Returns one message that lists missing, mis-shaped and extra tensors
/// together.
std::string describe(const Binding &binding, const std::string &title,
                     const std::vector<NamedTensor> &targets,
                     const std::vector<NamedTensor> &sources);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STATE_BINDING_H
