//===- Limits.cpp - The limits of the machine -----------------------------===//
//
// Measures multiply-adds on registers only, and a copy that is larger than the
// caches near a core. The best of several runs counts: the others were
// disturbed.
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "../Step/ThreadPool.h"
#include "../Support/Cpu.h"
#include "../Support/Memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fp8::rt {

namespace {

// A dozen accumulators hide the latency of an addition on current x86 CPUs.
constexpr int kSums = 12;
constexpr int kRounds = 40000;

/// A kernel that multiplies and adds on registers only.
struct Arithmetic {
  fp8_kernel_fn fn;
  double flopsPerRound;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void fma512(int64_t, void *const *operands,
                                               void *) {
  __m512 sums[kSums], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  std::fill_n(sums, kSums, b);
  for (int round = 0; round < kRounds; ++round)
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(sum, a, b);
  float total = 0;
  for (const __m512 &sum : sums)
    total += _mm512_reduce_add_ps(sum);
  *static_cast<volatile float *>(operands[0]) = total;
}

__attribute__((target("avx512f,avx512bf16"))) void
dot512(int64_t, void *const *operands, void *) {
  __m512 sums[kSums];
  auto a = (__m512bh)_mm512_set1_epi32(0x3f803f80); // ones
  std::fill_n(sums, kSums, _mm512_setzero_ps());
  for (int round = 0; round < kRounds; ++round)
    for (__m512 &sum : sums)
      sum = _mm512_dpbf16_ps(sum, a, a);
  float total = 0;
  for (const __m512 &sum : sums)
    total += _mm512_reduce_add_ps(sum);
  *static_cast<volatile float *>(operands[0]) = total;
}

__attribute__((target("amx-tile,amx-bf16"))) void
tiles(int64_t, void *const *operands, void *) {
  // Palette 1, with 16 rows of 64 bytes in each of the eight registers.
  alignas(64) uint8_t configuration[64] = {1};
  for (int number = 0; number < 8; ++number) {
    configuration[16 + 2 * number] = 64;
    configuration[48 + number] = 16;
  }
  _tile_loadconfig(configuration);
  _tile_zero(0), _tile_zero(1), _tile_zero(2), _tile_zero(3);
  _tile_zero(4), _tile_zero(5), _tile_zero(6), _tile_zero(7);
  for (int round = 0; round < kRounds; ++round) {
    _tile_dpbf16ps(0, 4, 6), _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6), _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[256];
  _tile_stored(0, sums, 64);
  _tile_release();
  *static_cast<volatile float *>(operands[0]) = sums[0];
}

__attribute__((target("avx2,fma"))) void fma256(int64_t, void *const *operands,
                                                void *) {
  __m256 sums[kSums], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  std::fill_n(sums, kSums, b);
  for (int round = 0; round < kRounds; ++round)
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(sum, a, b);
  float total = 0;
  for (const __m256 &sum : sums)
    total += _mm256_cvtss_f32(sum);
  *static_cast<volatile float *>(operands[0]) = total;
}
#endif

void mulAdd(int64_t, void *const *operands, void *) {
  float sums[4 * kSums];
  std::fill_n(sums, 4 * kSums, 1e-3f);
  for (int round = 0; round < kRounds; ++round)
    for (float &sum : sums)
      sum = sum * 0.999f + 1e-3f;
  float total = 0;
  for (float sum : sums)
    total += sum;
  *static_cast<volatile float *>(operands[0]) = total;
}

Arithmetic bestOfF32() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    return {fma512, 2.0 * 16 * kSums};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {fma256, 2.0 * 8 * kSums};
#endif
  return {mulAdd, 2.0 * 4 * kSums};
}

Arithmetic bestOfBF16() {
#if defined(__x86_64__)
  if (mayUseTiles())
    return {tiles, 4 * 2.0 * 16 * 16 * 32};
  if (__builtin_cpu_supports("avx512bf16"))
    return {dot512, 2.0 * 32 * kSums};
#endif
  return {nullptr, 0};
}

constexpr int64_t kChunk = int64_t(1) << 20;

/// One chunk of a copy; the operands are target and source.
void copyChunk(int64_t task, void *const *operands, void *) {
  std::memcpy(static_cast<char *>(operands[0]) + task * kChunk,
              static_cast<char *>(operands[1]) + task * kChunk, kChunk);
}

/// Returns the shortest time of several runs of `tasks` tasks, in seconds.
double shortest(ThreadPool &pool, fp8_kernel_fn fn, int64_t tasks,
                void *const *operands) {
  std::vector<void *> scratch(pool.size(), nullptr);
  double best = 1e30;
  for (int run = 0; run < 5; ++run) {
    auto begin = std::chrono::steady_clock::now();
    pool.run(fn, tasks, operands, scratch.data());
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

} // namespace

fp8_limits measureLimits(int threads) {
  std::shared_ptr<ThreadPool> pool =
      ThreadPool::get(threads > 0 ? threads : ThreadPool::defaultThreads());
  std::unique_lock<std::mutex> lock = pool->use();
  fp8_limits limits = {};
  limits.threads = pool->size();
  float result = 0;
  void *operand = &result;
  auto flopsOf = [&](const Arithmetic &arithmetic) {
    if (!arithmetic.fn)
      return 0.0;
    // Several tasks a thread, so that one disturbed task does not decide.
    int64_t tasks = 4 * int64_t(limits.threads);
    return static_cast<double>(tasks) * kRounds * arithmetic.flopsPerRound /
           shortest(*pool, arithmetic.fn, tasks, &operand);
  };
  limits.f32_flops = flopsOf(bestOfF32());
  limits.bf16_flops = flopsOf(bestOfBF16());
  constexpr int64_t kBytes = int64_t(64) << 20;
  AlignedBuffer from = allocateAligned(kBytes), to = allocateAligned(kBytes);
  std::memset(from.get(), 1, kBytes);
  std::memset(to.get(), 1, kBytes);
  void *operands[] = {to.get(), from.get()};
  limits.bytes = 2.0 * static_cast<double>(kBytes) /
                 shortest(*pool, copyChunk, kBytes / kChunk, operands);
  return limits;
}

} // namespace fp8::rt
