//===- Fiber.cpp - Stacks that take turns ---------------------------------===//

#include "Fiber.h"

#include <cstdlib>
#include <sys/mman.h>

namespace fp8::emulator {

Stack::Stack() {
  void *mapped = mmap(nullptr, guard + bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    std::abort(); // Without stacks, nothing can be emulated.
  memory = static_cast<char *>(mapped);
  mprotect(memory, guard, PROT_NONE);
}

Stack::~Stack() { munmap(memory, guard + bytes); }

#if defined(__x86_64__)

// System V ABI: these registers are callee-saved. ucontext would also save the
// signal mask, which takes a system call.
asm(R"(
.text
.type fp8_emulator_switch, @function
fp8_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fp8_emulator_switch, . - fp8_emulator_switch
)");
extern "C" void fp8_emulator_switch(void **from, void **to);

void Context::switchTo(Context &to) {
  fp8_emulator_switch(&stackPointer, &to.stackPointer);
}

void Context::begin(char *low, size_t bytes, void (*function)()) {
  void **top = reinterpret_cast<void **>(low + bytes);
  // At a function's first instruction, the stack pointer is 8 below a multiple
  // of 16, as after a call.
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(function);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  stackPointer = top;
}

#else

void Context::switchTo(Context &to) { swapcontext(&context, &to.context); }

void Context::begin(char *low, size_t bytes, void (*function)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = low;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  makecontext(&context, function, 0);
}

#endif

} // namespace fp8::emulator
