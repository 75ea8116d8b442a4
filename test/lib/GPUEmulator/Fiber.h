//===- Fiber.h - Stacks that take turns -------------------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_FIBER_H
#define FP8_TEST_LIB_GPUEMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace fp8::emulator {

/// A point at which execution can be suspended and resumed.
class Context {
public:
  /// Suspends execution in this context and resumes it in `to`.
  void switchTo(Context &to);

  /// Makes the next switch to this context call `function`, which must not
  /// return, on the stack [low, low + bytes).
  void begin(char *low, size_t bytes, void (*function)());

private:
#if defined(__x86_64__)
  void *stackPointer = nullptr;
#else
  ucontext_t context;
#endif
};

/// A stack with an unmapped page below it.
class Stack {
public:
  Stack();
  ~Stack();
  Stack(const Stack &) = delete;
  Stack &operator=(const Stack &) = delete;
  char *low() const { return memory + guard; }
  static constexpr size_t bytes = 256 << 10;
  bool contains(uint64_t address, uint64_t size) const {
    uint64_t begin = reinterpret_cast<uint64_t>(low());
    return address >= begin && size <= bytes && address - begin <= bytes - size;
  }

private:
  static constexpr size_t guard = 4096;
  char *memory;
};

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_FIBER_H
