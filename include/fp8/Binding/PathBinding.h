//===- PathBinding.h - Finding tensors by tree path -------------*- C++ -*-===//
//
// What tree paths are, for everyone who reads one: their keys, patterns that
// match them, options that assign to them, and how they bind.
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
// The runtime binds initial values this way, and the compiler's analysis asks
// what the runtime will bind. So this is a library without LLVM and without the
// runtime, which both link.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_BINDING_PATHBINDING_H
#define FP8_BINDING_PATHBINDING_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8binding {

/// A tensor that has a path. Types are texts of the compiler (tensor<2xui32>)
/// or of the runtime (u32[2]), the same for the same type.
struct Leaf {
  std::string path;
  std::string type;
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

Binding bindByPath(const std::vector<Leaf> &targets,
                   const std::vector<Leaf> &sources);

/// A key of a tree path: "layers", and where it is written, ['layers'].
struct PathKey {
  std::string name;
  size_t begin, end;
};

/// The keys of a tree path in the spelling of JAX (p['layers'][0].w) or of a
/// file (layers.0.w, layers/0/w). Together they cover the path: a separator
/// belongs to the key behind it.
std::vector<PathKey> tokenizePath(std::string_view path);

/// The names of the keys of a tree path.
std::vector<std::string> splitPath(std::string_view path);

/// Whether `path` matches: `*` matches any text, `?` any character; brackets
/// match themselves.
bool matchesPath(std::string_view pattern, std::string_view path);

/// The places of the '=' that may separate the parts of `PATH=VALUE`: those in
/// no key in brackets, which may hold one.
std::vector<size_t> findSeparators(std::string_view text);

/// Splits `PATH=VALUE` at the last of these, as in
/// `state['a=b']=result[0]['a=b']`. Nothing if there is none or a part is
/// empty.
std::optional<std::pair<std::string_view, std::string_view>>
splitAssignment(std::string_view text);

/// The last key of a path if it says more than a position does: "lr", but not
/// "0", "arg0" or "result[0]"; else "".
std::string nameOf(const std::string &path);

} // namespace fp8binding

#endif // FP8_BINDING_PATHBINDING_H
