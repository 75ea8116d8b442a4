/*===- Runtime/GPUKernels.h - Kernels for an NVIDIA GPU -------------------===*/

#ifndef FP8_C_RUNTIME_GPUKERNELS_H
#define FP8_C_RUNTIME_GPUKERNELS_H

#include "fp8-c/Runtime/Status.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dot that cuBLASLt computes. Its operands are lhs, rhs, the scale of each if
   `scaled` (one f32), the result, and the workspace; all are dense and
   row-major. result[rows][columns] = lhs * rhs * scales, accumulated in f32. */
typedef struct fp8_gpu_dot {
  int64_t rows, columns, depth;
  int64_t workspace_bytes;
  int32_t lhs, rhs, result; /* fp8_dtype                                      */
  int32_t lhs_along_k;      /* lhs[rows][depth]; 0: lhs[depth][rows]          */
  int32_t rhs_along_k;      /* rhs[columns][depth]; 0: rhs[depth][columns]    */
  int32_t scaled;
  int32_t fast_accumulation; /* FP8: partial sums are not promoted to f32     */
} fp8_gpu_dot;

#define FP8_GPU_MAP_DIMS 5

/* How TMA addresses an operand of a kernel: the arguments of
   cuTensorMapEncodeTiled, the dimension whose elements are adjacent first.
   Elements outside of the tensor read as zeros. The runtime encodes it when the
   operand's address is known. */
typedef struct fp8_gpu_tensor_map {
  int32_t operand;                       /* its number                       */
  int32_t dtype;                         /* fp8_dtype                        */
  int32_t rank;                          /* 1 to FP8_GPU_MAP_DIMS            */
  int32_t swizzle;                       /* bytes: 0, 32, 64 or 128          */
  int64_t sizes[FP8_GPU_MAP_DIMS];       /* in elements                      */
  int64_t strides[FP8_GPU_MAP_DIMS - 1]; /* of each but the first, in bytes  */
  int32_t box[FP8_GPU_MAP_DIMS];         /* the elements that a copy brings  */
} fp8_gpu_tensor_map;

/* A kernel of a function for an NVIDIA GPU. Such a function passes the address
   of an fp8_gpu_kernel to fp8_launch as fn (nothing calls it as a function) and
   the number of blocks of the grid as num_tasks. */
typedef struct fp8_gpu_kernel {
  const char *name;    /* of the function in the image                       */
  const void *image;   /* cubin, PTX, or anything that the driver loads       */
  int64_t image_bytes; /* kernels may share an image                          */
  int32_t threads;     /* of a block                                         */
  int32_t shared_bytes;  /* dynamic shared memory of a block                  */
  int32_t num_operands;  /* its parameters: one pointer each, followed, with
                            scratch_bytes, by the address of scratch memory,
                            and by the tensor maps, 128 bytes each          */
  int32_t loops;         /* not 0: the addresses of operands depend on this many
                            loops that the GPU counts. Two kinds of parameters
                            follow the others: the address of the counters
                            (int64_t, the outermost first), and for each operand
                            one int64_t a loop: the bytes that its address moves
                            by in an iteration                                */
  int64_t scratch_bytes; /* of a block: global memory, not cleared           */
  const fp8_gpu_dot *dot; /* not NULL: cuBLASLt computes this dot; there is no
                             image, and the grid is one block                */
  int32_t takes_sets; /* not 0: for fp8_launch_sets. The only parameter is the
                         address of a table on the GPU with the addresses of
                         the operands, set by set; the y index of a block is
                         the number of its set                              */
  const fp8_gpu_tensor_map *maps;
  int64_t num_maps;
} fp8_gpu_kernel;

/* Opens the driver of an NVIDIA GPU. Fails, with one line that says why, if
   there is no driver or no GPU: functions for one cannot run here. */
FP8_CAPI fp8_status fp8_gpu_find(void);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_GPUKERNELS_H */
