/*===- Runtime/Tensors.h - The arguments and results of a function --------===*/

#ifndef FP8_C_RUNTIME_TENSORS_H
#define FP8_C_RUNTIME_TENSORS_H

#include "fp8-c/Runtime/Status.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fp8_dtype {
  FP8_DTYPE_BOOL = 0, /* one byte, 0 or 1 */
  FP8_DTYPE_U8,
  FP8_DTYPE_I8,
  FP8_DTYPE_U16,
  FP8_DTYPE_I16,
  FP8_DTYPE_U32,
  FP8_DTYPE_I32,
  FP8_DTYPE_U64,
  FP8_DTYPE_I64,
  FP8_DTYPE_F8_E4M3FN,
  FP8_DTYPE_F8_E5M2,
  FP8_DTYPE_F16,
  FP8_DTYPE_BF16,
  FP8_DTYPE_F32,
  FP8_DTYPE_F64,
  FP8_DTYPE_F8_E4M3FNUZ,
  FP8_DTYPE_F8_E5M2FNUZ,
  FP8_DTYPE_F8_E8M0FNU,
  FP8_DTYPE_F8_E4M3, /* with infinities */
  FP8_DTYPE_F8_E3M4,
  FP8_DTYPE_F8_E4M3B11FNUZ,
  FP8_NUM_DTYPES
} fp8_dtype;

/* What an argument is (fp8.role). */
typedef enum fp8_role {
  FP8_ROLE_STATE = 0, /* replaced by a result in every step           */
  FP8_ROLE_FROZEN,    /* set once, by the initializer or a file       */
  FP8_ROLE_BATCH,     /* fed with new data in every step              */
  FP8_ROLE_KEY,       /* PRNG key that the step does not return       */
  FP8_ROLE_CONSTANT,  /* set once, like frozen                        */
  FP8_NUM_ROLES
} fp8_role;

/* The kind of a state argument (fp8.kind; the first five) or of a result (the
   others). */
typedef enum fp8_kind {
  FP8_KIND_OTHER = 0,
  FP8_KIND_PARAMETER,
  FP8_KIND_MOMENT1,
  FP8_KIND_MOMENT2,
  FP8_KIND_STEP,
  FP8_KIND_STATE,  /* result: the new value of argument state_arg         */
  FP8_KIND_LOSS,   /* result: a scalar, the loss                          */
  FP8_KIND_METRIC, /* result: a scalar, logged by path                    */
  FP8_KIND_OUTPUT, /* result: anything else                               */
  /* Statistics: f64, one row for each layer (see below). The name begins with
     "trace.quantization.", "trace.update." or "trace.alignment.". */
  FP8_KIND_TRACE_QUANTIZATION, /* a row has FP8_TRACE_QUANTIZATION_SIZE numbers
                                */
  FP8_KIND_TRACE_UPDATE,    /* FP8_TRACE_UPDATE_SIZE                        */
  FP8_KIND_TRACE_ALIGNMENT, /* FP8_TRACE_ALIGNMENT_SIZE                     */
  FP8_NUM_KINDS
} fp8_kind;

/* The statistics of a tensor x that a step quantizes: maxima and sums over all
   iterations. */
typedef enum fp8_trace_quantization {
  FP8_TRACE_AMAX = 0, /* largest |x|                                         */
  FP8_TRACE_SCALE,    /* largest scale                                       */
  FP8_TRACE_MINUS_SCALE, /* minus the smallest scale                          */
  FP8_TRACE_COUNT,     /* elements                                            */
  FP8_TRACE_UNDERFLOW, /* nonzero elements quantized to zero                  */
  FP8_TRACE_SATURATED, /* finite elements that saturated                      */
  FP8_TRACE_SUM1,      /* sum of x                                            */
  FP8_TRACE_SUM2, /* sum of x^2                                               */
  FP8_TRACE_SUM3,
  FP8_TRACE_SUM4,
  FP8_TRACE_ERROR, /* sum of (x - dequantized payload)^2                  */
  FP8_TRACE_QUANTIZATION_SIZE
} fp8_trace_quantization;

/* The statistics of the update of a parameter with gradient g and second moment
   v. */
typedef enum fp8_trace_update {
  FP8_TRACE_UPDATE_COUNT = 0, /* elements       */
  FP8_TRACE_UPDATE_SUM,       /* sum of g^2 / v */
  FP8_TRACE_UPDATE_SIZE
} fp8_trace_update;

/* The statistics of a gated unit with gate weights a and up weights b, over its
   channels. */
typedef enum fp8_trace_alignment {
  FP8_TRACE_ALIGNMENT_MAX = 0, /* largest |cos(a, b)| */
  FP8_TRACE_ALIGNMENT_COUNT,   /* channels            */
  FP8_TRACE_ALIGNMENT_SUM,     /* sum of |cos(a, b)|  */
  FP8_TRACE_ALIGNMENT_SIZE
} fp8_trace_alignment;

/* One argument or result. */
typedef struct fp8_tensor_info {
  const char *name; /* tree path, unique among arguments (results)     */
  fp8_dtype dtype;
  int32_t rank;
  const int64_t *dims; /* rank sizes; row-major, dense */
  fp8_kind kind;
  /* Arguments only. */
  fp8_role role;
  int64_t vocabulary; /* integer batch argument: its values are below this;
                         0 or -1: unknown                              */
  int32_t labels;     /* integer batch argument: its values only choose among
                         results of the model, as labels do in a loss   */
  int32_t zero_init;  /* state that the compiler added (scales): starts as
                         zeros unless the initial file has a value       */
  int64_t shard;      /* state that ranks own: the number of its shard, from
                         1; 0: all ranks have it                          */
  int64_t slices;     /* the slices of the shard along the leading dimension,
                         each with one owner; 0 or 1: one owner for all   */
  const int64_t *whole_dims; /* state, or a batch, of which each rank has a part
                                with shape dims: the shape of the whole; NULL:
                                no parts                                      */
  const int64_t
      *part_offsets;   /* where each rank's part begins in the whole: `rank`
                          offsets for rank 0, then for rank 1, ...       */
  int64_t num_parts;   /* ranks that the step was compiled for        */
  int64_t part_blocks; /* equal blocks of the whole along the dimension that
                          is divided, of each of which a part has as much, from
                          its offset in the first one on; 0 or 1: one block  */
  /* Results only. */
  int32_t state_arg;  /* kind STATE: the argument that it replaces,
                         else -1                                       */
  int32_t own_buffer; /* kind STATE: 0: written in place, to the buffer of
                         argument state_arg; 1: has a buffer of its own, which
                         is swapped with the argument's after every run     */
} fp8_tensor_info;

/* Returns the bytes of one element; 0 if dtype is invalid. */
FP8_CAPI size_t fp8_dtype_size(fp8_dtype dtype);
/* Returns the name of a dtype in safetensors ("F32", "F8_E4M3", ...); NULL if
   it has none. */
FP8_CAPI const char *fp8_dtype_name(fp8_dtype dtype);
/* Return the compiler's spelling of a role or kind ("state", "moment1"); NULL
   if it is invalid. */
FP8_CAPI const char *fp8_role_name(fp8_role role);
FP8_CAPI const char *fp8_kind_name(fp8_kind kind);
/* Returns the bytes of the whole tensor; -1 if its type is invalid. */
FP8_CAPI int64_t fp8_tensor_bytes(const fp8_tensor_info *info);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_TENSORS_H */
