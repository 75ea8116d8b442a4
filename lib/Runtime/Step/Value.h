//===- Value.h - What an argument of a step is set to -----------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STEP_VALUE_H
#define FP8_LIB_RUNTIME_STEP_VALUE_H

#include <cstddef>

struct fp8_step;

namespace fp8::rt {

/// The value that an argument of a step takes: bytes on the host, or an
/// argument or result of another step. If both steps run on a GPU, the value
/// stays there.
class Value {
public:
  /// Bytes on the host. Without any the value is empty, which is false.
  Value(const void *bytes = nullptr) : host(bytes) {}
  static Value argument(fp8_step &step, size_t i);
  static Value result(fp8_step &step, size_t i);

  explicit operator bool() const { return host || step; }
  /// Returns the bytes on the host, to which a GPU's are copied. They are valid
  /// until the step runs again.
  const void *bytes() const;

private:
  friend ::fp8_step;
  Value(fp8_step &step, size_t buffer) : step(&step), buffer(buffer) {}

  const void *host = nullptr;
  fp8_step *step = nullptr;
  size_t buffer = 0; // the number of its external buffer
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_STEP_VALUE_H
