/*===- Runtime/Step.h - A function with its memory ------------------------===*/

#ifndef FP8_C_RUNTIME_STEP_H
#define FP8_C_RUNTIME_STEP_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a step with zeroed buffers. threads: 0: one for each core that the
   process may use; 1: everything runs in the calling thread. */
FP8_CAPI fp8_status fp8_step_create(const fp8_executable *executable,
                                    int32_t threads, fp8_step **step);
FP8_CAPI void fp8_step_destroy(fp8_step *step);

/* Runs the function once and updates in-place state. On a GPU the run may still
   be going on when this returns; a later call then reports its errors. */
FP8_CAPI fp8_status fp8_step_run(fp8_step *step);

/* On a GPU, starts to copy what was written to arguments of the roles batch and
   key to the GPU, beside a run in progress, so the next batch can be written
   and staged while a step runs. fp8_step_run does it if nobody has. On a CPU it
   does nothing. Returns the GPU's errors. */
FP8_CAPI fp8_status fp8_step_stage(fp8_step *step);

/* Return the buffer of an argument or result, 64-byte aligned; NULL if there is
   none with this index or it cannot be copied from the GPU (see
   fp8_last_error). With own_buffer the pointer changes with every run, and on a
   GPU it is a copy: call this again after every run, and before writing to an
   argument. An argument that is only read is better asked for with
   fp8_step_value: the next run on a GPU copies the buffer of
   fp8_step_argument back. */
FP8_CAPI void *fp8_step_argument(fp8_step *step, int64_t index);
FP8_CAPI const void *fp8_step_value(fp8_step *step, int64_t index);
FP8_CAPI void *fp8_step_result(fp8_step *step, int64_t index);

typedef struct fp8_memory {
  int64_t arena_planned;  /* the executable's arena_bytes                  */
  int64_t arena_reserved; /* address space reserved for it                    */
  int64_t arena_touched;  /* resident part of it (whole pages)             */
  int64_t arguments;      /* bytes of argument buffers, without the shards of
                             other ranks                                   */
  int64_t results;        /* bytes of results' own buffers, likewise       */
  int64_t constants;
  int64_t scratch;  /* all threads                                          */
  int64_t peak_rss; /* of the process (VmHWM)                              */
  int64_t shards; /* part of `arguments`: the shards that this rank owns     */
  int64_t arguments_touched; /* resident part of arguments and results     */
  int64_t reductions; /* the most that reductions over ranks held in buffers
                         of their own, not part of the above               */
} fp8_memory;

/* Fills `memory`: what a step has planned and allocated, and what of it is
   resident now. */
FP8_CAPI fp8_status fp8_step_memory(const fp8_step *step, fp8_memory *memory);

/* Passes message the statistics that the last run of a traced step computed
   (results of kinds FP8_KIND_TRACE_*): one line of JSON as in trace.jsonl,
   {"step": number, "tensors": {...}}. FP8_ERROR_INVALID: the step was compiled
   without tracing. */
FP8_CAPI fp8_status fp8_step_trace(fp8_step *step, int64_t number,
                                   fp8_message_fn message, void *user);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_STEP_H */
