//===- Cpu.h - Whether this CPU can run compiled code -----------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_CPU_H
#define FP8_LIB_RUNTIME_CPU_H

#include <string>

namespace fp8::rt {

/// Whether this process may use the tile registers of AMX. Linux is asked for
/// them, as every process has to before it touches one.
bool mayUseTiles();

/// Throws an error if this CPU lacks one of `features`, which are LLVM's names,
/// `+` each, by commas, of code for the CPU `cpu`; code with others would end
/// the process.
void checkCpu(const std::string &cpu, const std::string &features);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_CPU_H
