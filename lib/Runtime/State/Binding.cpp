//===- Binding.cpp - Binding tensors of the runtime by path ---------------===//

#include "Binding.h"
#include "../Support/Text.h"

#include <algorithm>

namespace fp8::rt {

static std::vector<fp8binding::Leaf>
leavesOf(const std::vector<NamedTensor> &tensors) {
  std::vector<fp8binding::Leaf> leaves;
  for (const NamedTensor &tensor : tensors)
    leaves.push_back({tensor.name, tensor.type.text()});
  return leaves;
}

Binding bindByPath(const std::vector<NamedTensor> &targets,
                   const std::vector<NamedTensor> &sources) {
  return fp8binding::bindByPath(leavesOf(targets), leavesOf(sources));
}

std::string describe(const Binding &binding, const std::string &title,
                     const std::vector<NamedTensor> &targets,
                     const std::vector<NamedTensor> &sources) {
  constexpr size_t most = 12; // of each kind of mismatch
  std::string text = title;
  auto list = [&](size_t count, const char *what, auto &&line) {
    if (count == 0)
      return;
    text += str("\n  ", count, " ", what, ":");
    for (size_t i = 0; i < std::min(count, most); ++i)
      text += "\n    " + line(i);
    if (count > most)
      text += str("\n    ... and ", count - most, " more");
  };
  list(binding.missing.size(), "missing", [&](size_t i) {
    const NamedTensor &target = targets[binding.missing[i]];
    return target.name + " " + target.type.text();
  });
  list(binding.misshaped.size(), "of another type", [&](size_t i) {
    auto [target, source] = binding.misshaped[i];
    return str(targets[target].name, ": expected ", targets[target].type.text(),
               " but got ", sources[source].type.text(),
               sources[source].name == targets[target].name
                   ? ""
                   : str(" (", sources[source].name, ")"));
  });
  list(binding.extra.size(), "not wanted", [&](size_t i) {
    const NamedTensor &source = sources[binding.extra[i]];
    return source.name + " " + source.type.text();
  });
  return text;
}

} // namespace fp8::rt
