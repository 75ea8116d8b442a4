//===- Packages.h - Functions by name ---------------------------*- C++ -*-===//

#ifndef FP8_PYTHON_BINDINGS_PACKAGES_H
#define FP8_PYTHON_BINDINGS_PACKAGES_H

#include "Steps.h"

namespace fp8::python {

/// The data for an evaluation: text files, and arrays (path of the argument,
/// type, shape, bytes).
struct HeldOut {
  using Array =
      std::tuple<std::string, std::string, std::vector<int64_t>, Bytes>;
  Texts data, evalData;
  std::vector<Array> arrays;
  double holdout = 0.1;
  uint64_t seed = 0;
  int32_t threads = 0;
};

/// Functions by name; a program owns those of its package.
class Package {
public:
  explicit Package(const std::string &directory);
  explicit Package(const fp8_package *borrowed) : handle(borrowed) {}
  Package(const Package &) = delete;
  ~Package() { fp8_package_close(owned); }

  std::optional<Function> function(const std::string &name) const;

  std::optional<std::string> text(const std::string &name) const;

  /// Returns fp8_evaluate's line of JSON.
  std::string evaluate(const Step &step, const HeldOut &heldOut) const;

  void exportWeights(const Step &step, const std::string &directory,
                     int64_t number, const HeldOut &heldOut) const;

private:
  const fp8_package *handle;
  fp8_package *owned = nullptr;
};

} // namespace fp8::python

#endif // FP8_PYTHON_BINDINGS_PACKAGES_H
