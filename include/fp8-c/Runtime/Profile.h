/*===- Runtime/Profile.h - The times of launches, and their limits --------===*/

#ifndef FP8_C_RUNTIME_PROFILE_H
#define FP8_C_RUNTIME_PROFILE_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The time spent in each launch, summed over all runs since profiling was
   turned on. */
typedef struct fp8_launch_stat {
  const char *name; /* from launch_names, or ""            */
  int64_t tasks;    /* of the last run                     */
  int64_t runs;     /* several in each step, in a loop     */
  double seconds;
} fp8_launch_stat;

/* Turns the timing of launches on, from zero, or off (on is 0): from the next
   run. */
FP8_CAPI void fp8_step_set_profile(fp8_step *step, int32_t on);
/* Returns one entry for each launch, valid until the next run. */
FP8_CAPI const fp8_launch_stat *fp8_step_profile(const fp8_step *step,
                                                 int64_t *count);

/* The limits that a profile is compared with: a machine's best rates, as far as
   a short measurement (about 0.1 s) finds them. */
typedef struct fp8_limits {
  int32_t threads;
  double f32_flops; /* a second: fused multiply-adds of f32, counted as two   */
  double bf16_flops; /* a second: the bf16 dot product, likewise; 0: no such */
  double bytes; /* a second, read plus written, when copying 64 MiB          */
} fp8_limits;

/* threads: as for fp8_step_create. No step should run meanwhile. */
FP8_CAPI fp8_status fp8_measure_limits(int32_t threads, fp8_limits *limits);

/* A reduction of a step over its ranks, summed over the runs since profiling
   was turned on (fp8_step_set_profile). */
typedef struct fp8_collective_stat {
  const char *label;
  int64_t number; /* among launches                              */
  int64_t runs;
  int64_t bytes;  /* sent by this rank                           */
  double seconds; /* its duration, overlapped with the step      */
  double waited;  /* the time that the step was blocked waiting for it;
                     collectives that travel together share both by size */
} fp8_collective_stat;

/* Returns one entry for each collective, valid until the next run. */
FP8_CAPI const fp8_collective_stat *fp8_step_collectives(const fp8_step *step,
                                                         int64_t *count);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_PROFILE_H */
