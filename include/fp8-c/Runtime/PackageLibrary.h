/*===- Runtime/PackageLibrary.h - What the library of a package has -------===*/

#ifndef FP8_C_RUNTIME_PACKAGELIBRARY_H
#define FP8_C_RUNTIME_PACKAGELIBRARY_H

#include "fp8-c/Runtime/GPUControl.h"
#include "fp8-c/Runtime/GeneratedCode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The field of a package's manifest with its CRC-32. */
#define FP8_MANIFEST_SUM "manifest_crc32"

/* What the library of a package in a directory exports under the name
   fp8_package_v<FP8_ABI_VERSION>. Only compilers and fp8_package_open use it.
   */
typedef struct fp8_package_code {
  const char *function;
  fp8_entry_fn entry;
  const fp8_constant *constants;
  int64_t num_constants;
  const fp8_gpu_kernel *const *gpu_kernels;
  int64_t num_gpu_kernels;
} fp8_package_code;

/* FUNCTION(result, field, function, parameters) for each function that
   generated code calls, in the order of the fields below. Another function or
   another order needs another FP8_ABI_VERSION. */
#define FP8_CALLED_FUNCTIONS(FUNCTION)                                         \
  FUNCTION(void, launch, fp8_launch,                                           \
           (fp8_step *, int64_t, fp8_kernel_fn, int64_t, const int64_t *,      \
            const int64_t *, int64_t))                                         \
  FUNCTION(void *, operand, fp8_operand, (fp8_step *, int64_t))                \
  FUNCTION(const void *, read, fp8_read,                                       \
           (fp8_step *, int64_t, int64_t, int64_t))                            \
  FUNCTION(void, write, fp8_write,                                             \
           (fp8_step *, int64_t, int64_t, int64_t, const void *))              \
  FUNCTION(void, all_reduce_start, fp8_all_reduce_start,                       \
           (fp8_step *, int64_t, const fp8_all_reduce *, int64_t,              \
            const int64_t *, const int64_t *, int64_t))                        \
  FUNCTION(void, wait, fp8_wait, (fp8_step *, int64_t))                        \
  FUNCTION(int64_t, rank, fp8_rank, (fp8_step *))                              \
  FUNCTION(int64_t, num_ranks, fp8_num_ranks, (fp8_step *))                    \
  FUNCTION(int64_t, owns, fp8_owns, (fp8_step *, int64_t))                     \
  FUNCTION(void, exchange_start, fp8_exchange_start,                           \
           (fp8_step *, int64_t, const fp8_exchange *, const int64_t *,        \
            const int64_t *, int64_t))                                         \
  FUNCTION(int64_t, loop, fp8_loop,                                            \
           (fp8_step *, const fp8_gpu_kernel *, int64_t))                      \
  FUNCTION(void, keep, fp8_keep,                                               \
           (fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t, int64_t,     \
            const int64_t *, int64_t))                                         \
  FUNCTION(int64_t, branch, fp8_branch,                                        \
           (fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t, int64_t,     \
            int64_t))                                                          \
  FUNCTION(int64_t, while_body, fp8_while,                                     \
           (fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t, int64_t,     \
            int64_t, int64_t))                                                 \
  FUNCTION(void, end, fp8_end, (fp8_step *))                                   \
  FUNCTION(void, launch_moving, fp8_launch_moving,                             \
           (fp8_step *, int64_t, const fp8_gpu_kernel *, int64_t,              \
            const int64_t *, const int64_t *, const int64_t *, int64_t))       \
  FUNCTION(void, write_moving, fp8_write_moving,                               \
           (fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t,              \
            const int64_t *, int64_t, int64_t, const int64_t *))               \
  FUNCTION(void, launch_owned, fp8_launch_owned,                               \
           (fp8_step *, int64_t, fp8_kernel_fn, int64_t, const int64_t *,      \
            const int64_t *, int64_t, int64_t))                                \
  FUNCTION(void, launch_sets, fp8_launch_sets,                                 \
           (fp8_step *, int64_t, fp8_kernel_fn, int64_t, const int64_t *,      \
            const int64_t *, int64_t, int64_t))                                \
  FUNCTION(void, order, fp8_order,                                             \
           (fp8_step *, int64_t, const int64_t *, int64_t))                    \
  FUNCTION(void, fetch, fp8_fetch, (fp8_step *, int64_t))

typedef struct fp8_package_library {
  int64_t abi; /* FP8_ABI_VERSION */
  const fp8_package_code *functions;
  int64_t num_functions;
  /* The addresses of the library's pointers to these functions, which are set
     before any function of the library is called. */
#define FP8_POINTER(result, field, function, parameters)                       \
  result(**field) parameters;
  FP8_CALLED_FUNCTIONS(FP8_POINTER)
#undef FP8_POINTER
} fp8_package_library;

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_PACKAGELIBRARY_H */
