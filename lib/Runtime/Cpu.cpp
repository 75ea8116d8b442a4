//===- Cpu.cpp - Whether this CPU can run compiled code -------------------===//

#include "Cpu.h"
#include "Support.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fp8::rt {

/// Linux (Documentation/arch/x86/xstate.rst) grants the permission to all
/// threads of the process, or denies it if the CPU has no tiles.
bool mayUseTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

void checkCpu(const std::string &cpu, const std::string &features) {
#if defined(__x86_64__)
  std::string list = "," + features + ",";
  auto uses = [&](const char *feature) {
    return list.find(str(",+", feature, ",")) != std::string::npos;
  };
  auto check = [&](const char *feature, bool isThere) {
    if (!isThere && uses(feature))
      throw Error(FP8_ERROR_INVALID, str("expected a CPU with ", feature,
                                         ", which the code was compiled for (",
                                         cpu, "), but this one has none"));
  };
  __builtin_cpu_init();
  check("sse4.2", __builtin_cpu_supports("sse4.2"));
  check("avx", __builtin_cpu_supports("avx"));
  check("avx2", __builtin_cpu_supports("avx2"));
  check("fma", __builtin_cpu_supports("fma"));
  check("bmi2", __builtin_cpu_supports("bmi2"));
  check("avx512f", __builtin_cpu_supports("avx512f"));
  check("avx512bw", __builtin_cpu_supports("avx512bw"));
  check("avx512dq", __builtin_cpu_supports("avx512dq"));
  check("avx512vl", __builtin_cpu_supports("avx512vl"));
  check("avx512vbmi", __builtin_cpu_supports("avx512vbmi"));
  check("avx512bf16", __builtin_cpu_supports("avx512bf16"));
  if (uses("amx-bf16"))
    check("amx-bf16", mayUseTiles());
#else
  (void)cpu, (void)features;
#endif
}

} // namespace fp8::rt
