//===- Cpu.cpp - Whether this CPU can run compiled code -------------------===//

#include "Cpu.h"
#include "Error.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// What compiled loops may use. (The builtin takes literals only.)
// clang-format off
#define FP8_CPU_FEATURES(X)                                                    \
  X("popcnt") X("sse3") X("ssse3") X("sse4.1") X("sse4.2") X("sse4a")          \
  X("avx") X("avx2") X("fma") X("fma4") X("f16c") X("xop") X("tbm") X("bmi")   \
  X("bmi2") X("lzcnt") X("movbe") X("gfni") X("avxvnni") X("avx512f")          \
  X("avx512bw") X("avx512cd") X("avx512dq") X("avx512vl") X("avx512ifma")      \
  X("avx512vbmi") X("avx512vbmi2") X("avx512vnni") X("avx512bitalg")           \
  X("avx512vpopcntdq") X("avx512bf16") X("avx512fp16")
// clang-format on

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
  auto check = [&](const char *feature, bool isThere,
                   const char *but = "this one has none") {
    if (!isThere && uses(feature))
      throw Error(FP8_ERROR_INVALID, str("expected a CPU with ", feature,
                                         ", which the code was compiled for (",
                                         cpu, "), but ", but));
  };
  __builtin_cpu_init();
#define FP8_CHECK(feature) check(feature, __builtin_cpu_supports(feature));
  FP8_CPU_FEATURES(FP8_CHECK)
#undef FP8_CHECK
  if (uses("amx-bf16"))
    check("amx-bf16", mayUseTiles(),
          "this one has none or the system denies this process the use of its "
          "tile registers");
#else
  (void)cpu, (void)features;
#endif
}

} // namespace fp8::rt
