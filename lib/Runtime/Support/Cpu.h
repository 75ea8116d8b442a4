//===- Cpu.h - Whether this CPU can run compiled code -----------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_CPU_H
#define FP8_LIB_RUNTIME_SUPPORT_CPU_H

#include <string>

namespace fp8::rt {

/// Returns whether this process may use the tile registers of AMX. Requests
/// them from Linux, as every process must before it uses one.
bool mayUseTiles();

/// Throws if this CPU lacks one of `features` of code for the CPU `cpu`: LLVM's
/// names, each with a `+`, separated by commas. Code that uses a missing
/// feature would kill the process.
void checkCpu(const std::string &cpu, const std::string &features);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_CPU_H
