/*===- Runtime/Executable.h - Compiled functions --------------------------===*/

#ifndef FP8_C_RUNTIME_EXECUTABLE_H
#define FP8_C_RUNTIME_EXECUTABLE_H

#include "fp8-c/Runtime/GPUKernels.h"
#include "fp8-c/Runtime/Tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An executable with its memory: one training state, or one function call. */
typedef struct fp8_step fp8_step;
/* A compiled function. Immutable; many steps may share it. */
typedef struct fp8_executable fp8_executable;

/* Runs one task of a launch. scratch points to scratch_bytes that belong to the
   calling thread, 64-byte aligned, not cleared. */
typedef void (*fp8_kernel_fn)(int64_t task, void *const *operands,
                              void *scratch);

/* The compiled function: makes its launches one after another. */
typedef void (*fp8_entry_fn)(fp8_step *step);

typedef struct fp8_constant {
  const void *data; /* borrowed if 64-byte aligned, else copied */
  int64_t bytes;
} fp8_constant;

typedef struct fp8_executable_desc {
  const char *name; /* for messages: "step", "init", "eval", ... */
  fp8_entry_fn entry;
  const fp8_tensor_info *arguments;
  int64_t num_arguments;
  const fp8_tensor_info *results;
  int64_t num_results;
  const fp8_constant *constants;
  int64_t num_constants;
  int64_t arena_bytes;
  int64_t scratch_bytes; /* per thread; on a GPU for all blocks of a launch */
  /* Optional: the names of the launches, by number. */
  const char *const *launch_names;
  int64_t num_launches;
  /* For a GPU: the kernels that entry launches. They and their images must
     outlive the executable. */
  const fp8_gpu_kernel *const *gpu_kernels;
  int64_t num_gpu_kernels;
} fp8_executable_desc;

/* Copies the description (see fp8_constant); code and borrowed constants must
   outlive the executable. */
FP8_CAPI fp8_status fp8_executable_create(const fp8_executable_desc *desc,
                                          fp8_executable **executable);
/* Accepts NULL. The steps of the executable must be destroyed first. */
FP8_CAPI void fp8_executable_destroy(fp8_executable *executable);

/* Describe the arguments and results of a function; FP8_ERROR_INVALID if the
   index is out of range. What info points to is valid as long as the
   executable. */
FP8_CAPI int64_t fp8_executable_num_arguments(const fp8_executable *executable);
FP8_CAPI int64_t fp8_executable_num_results(const fp8_executable *executable);
/* Returns 1 if a GPU runs the function, else 0. Buffers of its steps have to be
   asked for anew in each step (see fp8_step_argument). */
FP8_CAPI int32_t fp8_executable_on_gpu(const fp8_executable *executable);
FP8_CAPI fp8_status fp8_executable_argument(const fp8_executable *executable,
                                            int64_t index,
                                            fp8_tensor_info *info);
FP8_CAPI fp8_status fp8_executable_result(const fp8_executable *executable,
                                          int64_t index, fp8_tensor_info *info);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_EXECUTABLE_H */
