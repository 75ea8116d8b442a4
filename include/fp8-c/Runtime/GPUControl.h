/*===- Runtime/GPUControl.h - What compiled functions for a GPU call ------===*/

#ifndef FP8_C_RUNTIME_GPUCONTROL_H
#define FP8_C_RUNTIME_GPUCONTROL_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called by generated code for a GPU only. Copies `bytes` bytes (at most 64) at
   byte `offset` of an operand to the host; the result is valid until the next
   call. */
FP8_CAPI const void *fp8_read(fp8_step *step, int64_t operand, int64_t offset,
                              int64_t bytes);
/* Called by generated code for a GPU only. Writes a scalar of 1, 2, 4 or 8
   bytes to byte `offset` of an operand. */
FP8_CAPI void fp8_write(fp8_step *step, int64_t operand, int64_t offset,
                        int64_t bytes, const void *value);

/* Control flow that the GPU decides, called by generated code. The step is a
   CUDA graph. A loop or branch is a node of it, and its body is a graph of its
   own that runs while, or if, a handle is not 0; kernels of the graph set the
   handle. The entry runs each body once, in the first iteration of its loops,
   and the runtime captures it. If launches are made one by one (for a profile
   or FP8_GPU_CHECK), the entry runs bodies as often as the GPU would, and the
   host reads conditions and waits for them.

   Collectives are host calls, so no such body may contain one.

   Work without an order (fp8_order) follows all work before it in its graph.

   Open counted loops are numbered from 0, the outermost first. `strides` has
   one value for each: the bytes by which an address moves in an iteration
   (NULL: it does not move). There are at most FP8_GPU_LOOPS. `kernel` is one of
   the step's kernels, run by one thread, whose parameters have 8 bytes each. */
#define FP8_GPU_LOOPS 4

/* Says what the work of the following calls, up to the next fp8_order of the
   same graph, follows: the nodes `after`, which have been named before. It
   becomes node `node`; several pieces of work follow one another. If no work
   comes (a launch for another rank), those that follow the node follow what it
   would have followed. -1: the work has no order. */
FP8_CAPI void fp8_order(fp8_step *step, int64_t node, const int64_t *after,
                        int64_t count);
/* Says that a result, given by its operand code, is complete once the nodes of
   the preceding fp8_order have ended. The host can have it from then on, while
   the rest of the step runs. */
FP8_CAPI void fp8_fetch(fp8_step *step, int64_t operand);

/* Begins a loop of `trips` iterations, which fp8_end ends; returns how many of
   them the entry is to run. kernel(int64_t *counter, bool next, int64_t trips,
   handle) sets the counter to 0, or increments it if `next`, and sets the
   handle to whether the counter is less than trips. */
FP8_CAPI int64_t fp8_loop(fp8_step *step, const fp8_gpu_kernel *kernel,
                          int64_t trips);

/* Sets condition number `condition` to the integer of 1, 2, 4 or 8 bytes now at
   byte `offset` of an operand. kernel(int64_t *condition, const void *from,
   bytes, counters, FP8_GPU_LOOPS strides). */
FP8_CAPI void fp8_keep(fp8_step *step, const fp8_gpu_kernel *kernel,
                       int64_t condition, int64_t operand, int64_t offset,
                       const int64_t *strides, int64_t bytes);

/* Begins a branch that is taken if low <= condition <= high or, with
   `inverted`, if not. Returns whether the entry is to run it; only then does
   fp8_end end it. kernel(const int64_t *condition, low, high, inverted, handle)
   sets the handle. */
FP8_CAPI int64_t fp8_branch(fp8_step *step, const fp8_gpu_kernel *kernel,
                            int64_t condition, int64_t low, int64_t high,
                            int64_t inverted);

/* Returns whether the entry is to run the body of loop `loop` (numbered within
   the step) once more. It is called before each iteration; the condition is as
   for fp8_branch. */
FP8_CAPI int64_t fp8_while(fp8_step *step, const fp8_gpu_kernel *kernel,
                           int64_t loop, int64_t condition, int64_t low,
                           int64_t high, int64_t inverted);
FP8_CAPI void fp8_end(fp8_step *step);

/* fp8_launch of a kernel whose operands' addresses move:
   strides[operand][loop], with as many loops as the kernel has. */
FP8_CAPI void fp8_launch_moving(fp8_step *step, int64_t launch,
                                const fp8_gpu_kernel *kernel, int64_t blocks,
                                const int64_t *operands, const int64_t *offsets,
                                const int64_t *strides, int64_t num_operands);

/* Writes an integer as fp8_write does: `value` in the first iteration, growing
   by value_strides in each iteration of the loops around it. kernel(void *to,
   bytes, counters, FP8_GPU_LOOPS strides, value, FP8_GPU_LOOPS value_strides).
   */
FP8_CAPI void fp8_write_moving(fp8_step *step, const fp8_gpu_kernel *kernel,
                               int64_t operand, int64_t offset,
                               const int64_t *strides, int64_t bytes,
                               int64_t value, const int64_t *value_strides);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_GPUCONTROL_H */
