/*===- Runtime.h - C ABI of the fp8 runtime -------------------------------===*\
|*                                                                            *|
|* Everything that a compiled step needs at run time: buffers, launches,      *|
|* training, data, checkpoints, reports. The library (libfp8_runtime)         *|
|* contains no compiler: whoever compiles a step (a JIT, a package) describes *|
|* it here as an fp8_executable.                                              *|
|*                                                                            *|
|* Every function that can fail returns an fp8_status; fp8_last_error()       *|
|* returns the message. No function aborts the process or throws. Callers     *|
|* zero-initialize the structures that they fill (`= {0}`): zero is the       *|
|* default.                                                                   *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FP8_C_RUNTIME_H
#define FP8_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FP8_CAPI __attribute__((visibility("default")))
#else
#define FP8_CAPI
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------===*\
|* Version                                                                    *|
\*===----------------------------------------------------------------------===*/

/* The version of the interface between this header and compiled code. It is
   raised when code compiled earlier would no longer run. Packages record it. */
#define FP8_ABI_VERSION 12

/* Returns the library's FP8_ABI_VERSION. */
FP8_CAPI int32_t fp8_abi_version(void);

/*===----------------------------------------------------------------------===*\
|* Status                                                                     *|
\*===----------------------------------------------------------------------===*/

typedef enum fp8_status {
  FP8_OK = 0,
  FP8_ERROR_INVALID = 1,   /* the caller broke the rules of this header      */
  FP8_ERROR_IO = 2,        /* a file or directory cannot be read or written  */
  FP8_ERROR_FORMAT = 3,    /* a file's contents are malformed                */
  FP8_ERROR_DATA = 4,      /* training data do not fit the step              */
  FP8_ERROR_MISMATCH = 5,  /* tensors by path do not fit the step            */
  FP8_ERROR_NONFINITE = 6, /* the loss or the state became NaN or infinite   */
  FP8_ERROR_MEMORY = 7,    /* out of memory                                  */
  FP8_ERROR_INTERNAL = 8,  /* a bug, of the compiler or of the runtime       */
  FP8_INTERRUPTED = 9,     /* SIGINT, SIGTERM or SIGHUP: checkpoint written */
  FP8_STOPPED = 10,        /* an alarm stopped training likewise             */
  FP8_ERROR_RANK = 11      /* another rank failed, or differs from this one  */
} fp8_status;

/* Returns the message of this thread's last failure, or "" if there was none.
   It is valid until this thread's next call into the library. */
FP8_CAPI const char *fp8_last_error(void);

/* Returns a name such as "out of memory"; never NULL. */
FP8_CAPI const char *fp8_status_name(fp8_status status);

/*===----------------------------------------------------------------------===*\
|* Tensors                                                                    *|
\*===----------------------------------------------------------------------===*/

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

/*===----------------------------------------------------------------------===*\
|* Executables                                                                *|
\*===----------------------------------------------------------------------===*/

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

/* Called by generated code only. Runs fn for tasks 0 .. num_tasks-1, in any
   order and on any thread, and returns when all have ended. launch is its
   number among the launches of the entry function (a launch in a loop runs many
   times). Operand code c >= 0 is a byte offset in the arena; c < 0 is external
   buffer number ~c: first the arguments, then the results with a buffer of
   their own (see own_buffer), then the constants. offsets is NULL, or holds
   bytes to add to each operand's address: the part of a stack that this
   iteration of a loop works on. */
FP8_CAPI void fp8_launch(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                         int64_t num_tasks, const int64_t *operands,
                         const int64_t *offsets, int64_t num_operands);

/* Called by generated code only. Like fp8_launch, but runs only the tasks for
   the slices of the shard that this rank owns. All slices have equally many
   tasks, and tasks are numbered slice by slice. If the number of tasks is not a
   multiple of the number of slices (a copy of one number per slice, say), a
   rank with at least one slice runs all tasks. */
FP8_CAPI void fp8_launch_owned(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                               int64_t num_tasks, const int64_t *operands,
                               const int64_t *offsets, int64_t num_operands,
                               int64_t shard);

/* Called by generated code only. Like fp8_launch for each of num_sets sets of
   num_operands operands, which follow one another in operands and offsets. The
   sets run in any order and at the same time. On a GPU, the kernel takes sets
   unless there is one, and offsets are the same in every call. */
FP8_CAPI void fp8_launch_sets(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                              int64_t num_tasks, const int64_t *operands,
                              const int64_t *offsets, int64_t num_operands,
                              int64_t num_sets);

/* Called by generated code only. Returns the address of an operand code. Not
   for a GPU, whose memory has no host addresses. */
FP8_CAPI void *fp8_operand(fp8_step *step, int64_t operand);

/* How a reduction combines the values of all ranks. */
typedef enum fp8_reduction {
  FP8_REDUCE_SUM = 0,
  FP8_REDUCE_MEAN,  /* the sum divided by the number of ranks; floats only */
  FP8_REDUCE_MAX,   /* NaN wins */
  FP8_REDUCE_MIN,   /* NaN wins */
  FP8_REDUCE_OWNER, /* the value of the shard's owner, which sends it to all
                       ranks: bytes of any type */
  FP8_NUM_REDUCTIONS
} fp8_reduction;

/* The format in which values travel between ranks: unchanged, or narrowed (sums
   and means of floats only). Every wire is summed in f32 (f64 in f64, integers
   as integers), in rank order. */
typedef enum fp8_wire {
  FP8_WIRE_EXACT = 0,
  FP8_WIRE_BF16,
  FP8_WIRE_F8_E4M3FN,
  FP8_WIRE_F8_E5M2,
  FP8_NUM_WIRES
} fp8_wire;

/* A reduction over all ranks. Constant data beside the code that starts it. */
typedef struct fp8_all_reduce {
  const char *label; /* for profiles and errors: "gradient params['w']" */
  int64_t reduction; /* fp8_reduction                                   */
  int64_t wire;      /* fp8_wire                                        */
  int64_t dtype;     /* fp8_dtype of operands 0 and 1                   */
  int64_t block;     /* consecutive elements that share a scale on an f8 wire;
                        0: the whole tensor                            */
  int64_t elements;
  int64_t shard; /* not 0: only the shard's owners get the result, each its
                    slices (the other elements of operand 1 are unspecified),
                    or, for FP8_REDUCE_OWNER, send it; 0: all ranks get it */
} fp8_all_reduce;

/* Called by generated code only. Starts to reduce operand 0 (read) into operand
   1 (written; may alias operand 0) over all ranks of the step's group. With an
   f8 wire, operand 2 is f32[2], read and written: mu, the factor by which
   FP8-LM scales sums, and the number of steps since it changed; zeros
   initialize it. operands and offsets are as for fp8_launch. number comes from
   the numbering of launches. Returns at once; the step must not touch the
   operands until fp8_wait. All ranks make the same calls in the same order.
   slice: -1, or the number of the shard's slice that the operands are (any
   number from 0 if there is no shard, or one without slices). */
FP8_CAPI void fp8_all_reduce_start(fp8_step *step, int64_t number,
                                   const fp8_all_reduce *what, int64_t slice,
                                   const int64_t *operands,
                                   const int64_t *offsets,
                                   int64_t num_operands);

/* How the ranks of a group exchange parts. */
typedef enum fp8_exchange_kind {
  FP8_EXCHANGE_ALL_TO_ALL = 0, /* part j goes to the j-th member, whose part for
                                  this rank becomes part j */
  FP8_EXCHANGE_GATHER = 1,     /* the operand goes to all members: part j is the
                                  j-th member's                                */
  FP8_EXCHANGE_PERMUTE = 2,    /* the operand goes from the first to the second
                                  rank of each group; ranks that receive nothing
                                  get zeros */
  FP8_NUM_EXCHANGES = 3
} fp8_exchange_kind;

/* An exchange of parts; it does not change values. Constant data beside the
   code that starts it. */
typedef struct fp8_exchange {
  const char *label;    /* for profiles and errors                       */
  int64_t kind;         /* fp8_exchange_kind                             */
  int64_t part_bytes;   /* that one rank sends to another                */
  int64_t groups;       /* number of groups                                  */
  int64_t group_size;   /* 2 for FP8_EXCHANGE_PERMUTE: source and target */
  const int64_t *ranks; /* of the first group, the second, ...; a rank is in
                           one group, or the target of one pair          */
  int64_t dtype;        /* fp8_dtype of the parts; -1: none of these     */
  int64_t summed;       /* not 0: parts are added, so that an infinity is
                           noted as NaN is                               */
} fp8_exchange;

/* Called by generated code only. Starts to exchange operand 0 (read) into
   operand 1 (written; must not alias operand 0). Otherwise like
   fp8_all_reduce_start: all ranks make the same call, including those that send
   nothing. */
FP8_CAPI void fp8_exchange_start(fp8_step *step, int64_t number,
                                 const fp8_exchange *what,
                                 const int64_t *operands,
                                 const int64_t *offsets, int64_t num_operands);

/* Called by generated code only. Waits for collective `number`; if a loop has
   started several of this number, for all of them. */
FP8_CAPI void fp8_wait(fp8_step *step, int64_t number);

/* Called by generated code only. Return this process's rank and the number of
   ranks that run the step together (0 and 1 if it runs alone); 0 <= rank <
   ranks. */
FP8_CAPI int64_t fp8_rank(fp8_step *step);
FP8_CAPI int64_t fp8_num_ranks(fp8_step *step);

/* Returns how many slices of a shard of the state this rank owns. Generated
   code calls it, too. Slices are dealt to the ranks of the step's group, the
   largest first, each to the rank that has the fewest bytes so far. A rank's
   slices of a shard are consecutive, in the order of the ranks. */
FP8_CAPI int64_t fp8_owns(fp8_step *step, int64_t shard);

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

/* A callback for text for people: whole lines, or progress lines that begin
   with '\r'. */
typedef void (*fp8_message_fn)(void *user, const char *text);

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

/* Passes message the statistics that the last run of a traced step computed
   (results of kinds FP8_KIND_TRACE_*): one line of JSON as in trace.jsonl,
   {"step": number, "tensors": {...}}. FP8_ERROR_INVALID: the step was compiled
   without tracing. */
FP8_CAPI fp8_status fp8_step_trace(fp8_step *step, int64_t number,
                                   fp8_message_fn message, void *user);

/*===----------------------------------------------------------------------===*\
|* Ranks                                                                      *|
\*===----------------------------------------------------------------------===*/

/* Processes that run a step together. */
typedef struct fp8_group fp8_group;

typedef struct fp8_group_options {
  /* NULL: the MPI whose launcher started this process, or a group of one rank
     if there is none. Otherwise the file of a plugin (see Transport.h),
     followed by a colon and its arguments, if it takes any. */
  const char *transport;
  double timeout; /* seconds without an answer after which a rank counts as
                     failed; 0: 300 */
  int64_t bucket_bytes; /* reductions started one after another travel together,
                           up to this many bytes; 0: 1 MiB */
} fp8_group_options;

/* Joins the other ranks. options may be NULL. */
FP8_CAPI fp8_status fp8_group_create(const fp8_group_options *options,
                                     fp8_group **group);
/* Leaves the group; its steps must be destroyed first. Accepts NULL. All ranks
   call it when all are done. */
FP8_CAPI void fp8_group_destroy(fp8_group *group);
FP8_CAPI int64_t fp8_group_rank(const fp8_group *group);
FP8_CAPI int64_t fp8_group_size(const fp8_group *group);
/* Returns the bytes that this rank has sent to others so far. */
FP8_CAPI int64_t fp8_group_bytes_sent(const fp8_group *group);

/* Returns when all ranks have called it. */
FP8_CAPI fp8_status fp8_group_barrier(fp8_group *group);

/* A callback that receives bytes, valid during the call. */
typedef void (*fp8_bytes_fn)(void *user, const void *data, int64_t bytes);

/* Calls receive with what each rank has passed, in rank order; the number of
   bytes may differ. All ranks call it. */
FP8_CAPI fp8_status fp8_group_gather(fp8_group *group, const void *data,
                                     int64_t bytes, fp8_bytes_fn receive,
                                     void *user);

/* Returns, after a failure of this rank or of a call, whether this process is
   the one to report it to the user. Waits a moment for ranks with precedence
   (rank 0 does not wait). */
FP8_CAPI int32_t fp8_group_claim_failure(fp8_group *group);
/* Ends all ranks. Under MPI this ends this process too: the launcher kills it.
 */
FP8_CAPI void fp8_group_abort(fp8_group *group, const char *message);

/* Sets the group whose ranks run the step together; NULL: this process runs it
   alone. Every rank has the same executable. */
FP8_CAPI fp8_status fp8_step_set_group(fp8_step *step, fp8_group *group);
/* Copies the state that only other ranks have (their shards and parts) to this
   rank, before the state is read or saved. All ranks call it. */
FP8_CAPI fp8_status fp8_step_gather(fp8_step *step);
/* Returns the whole value of an argument. If each rank has a part of it, that
   is the value that fp8_step_gather has assembled, valid until the next run, or
   NULL if it was not gathered; otherwise the argument itself. */
FP8_CAPI const void *fp8_step_whole(fp8_step *step, int64_t index);
/* Sets an argument from a whole value; if each rank has a part of it, this rank
   takes its own part. The step must have its group by then. */
FP8_CAPI fp8_status fp8_step_set_whole(fp8_step *step, int64_t index,
                                       const void *value);
/* Frees the memory of other ranks' shards until they are gathered again; their
   contents are lost. */
FP8_CAPI fp8_status fp8_step_release(fp8_step *step);

/* Writes the state of a step as a set of files and an index: each rank of the
   step's group writes what it owns, at the same time. All ranks call it;
   nothing has to be gathered before. The set is complete or absent: rank 0
   writes the index when all files are complete, and an earlier set of the same
   index stays complete until then. path: the index,
   FILE.safetensors.index.json, beside which the files lie. metadata: as for
   fp8_tensors_save. What a rank gathers for its file stays in its memory until
   fp8_step_release. */
FP8_CAPI fp8_status fp8_step_save_set(fp8_step *step, const char *path,
                                      const char *const *metadata,
                                      int64_t num_metadata);

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

/*===----------------------------------------------------------------------===*\
|* Packages                                                                   *|
\*===----------------------------------------------------------------------===*/

/* Compiled functions by name ("step", "init", "eval", ...) with texts about
   them. A package is opened from a directory that fp8-run --emit-package wrote,
   or assembled by whoever compiled the functions. */
typedef struct fp8_package fp8_package;

/* Opens the package in a directory and loads its code, which must be for this
   machine and for FP8_ABI_VERSION. Several packages may be open at once, and
   the same one several times. FP8_ERROR_IO: a file cannot be read;
   FP8_ERROR_FORMAT: a file is damaged or of another version. */
FP8_CAPI fp8_status fp8_package_open(const char *directory,
                                     fp8_package **package);
/* Fails if this CPU cannot run code for `cpu` with `features` (LLVM's names,
   each with a '+', separated by commas). It requests registers from the system
   that a process does not have by default (AMX), so it must be called before
   such code runs; fp8_package_open calls it. */
FP8_CAPI fp8_status fp8_check_cpu(const char *cpu, const char *features);

/* Creates an empty package for the two functions below to fill. */
FP8_CAPI fp8_status fp8_package_create(fp8_package **package);
/* Adds a function under its own name, desc->name (see fp8_executable_create).
 */
FP8_CAPI fp8_status fp8_package_add(fp8_package *package,
                                    const fp8_executable_desc *desc);
/* Sets a text; NULL removes it. */
FP8_CAPI fp8_status fp8_package_set_text(fp8_package *package, const char *name,
                                         const char *text);
/* Accepts NULL. Its functions are destroyed too, so their steps must be
   destroyed first. */
FP8_CAPI void fp8_package_close(fp8_package *package);

/* Returns a function, valid as long as the package; NULL if there is none of
   this name. A package for training has "step" and, if given or needed, "init",
   "eval", "store" and "load" (see fp8_train_options), and "export", "import"
   and "check" (fp8_export's encode, decode and eval; the result FP8_LOGITS_NAME
   of "check" is the logits). */
#define FP8_LOGITS_NAME "fp8.logits"
FP8_CAPI const fp8_executable *fp8_package_function(const fp8_package *package,
                                                    const char *name);
/* Returns a text, valid until it is set again; NULL if there is none. Names:
   "fingerprint", "verdicts.json", "memory.json" and "export.json" as in
   fp8_train_options and fp8_export, "recipe.yaml" (the effective recipe),
   "preset.yaml" (the preset of its name, if there is one), "cost.json"
   (arithmetic and traffic of each launch, see docs/Runtime.md),
   "signature.json" (the user's arguments and results, and which result replaces
   which argument), and for people "summary.txt", "verdicts.txt", "memory.txt"
   and "state.txt" (state that the step returns unchanged, one path a line). */
FP8_CAPI const char *fp8_package_text(const fp8_package *package,
                                      const char *name);

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

/*===----------------------------------------------------------------------===*\
|* Tensor files (safetensors)                                                 *|
\*===----------------------------------------------------------------------===*/

/* The tensors of a file or of a set of files, in memory. */
typedef struct fp8_tensors fp8_tensors;

/* path: a file, or the index of a set (.safetensors.index.json), whose files
   must not change while it is loaded. */
FP8_CAPI fp8_status fp8_tensors_load(const char *path, fp8_tensors **tensors);
FP8_CAPI void fp8_tensors_destroy(fp8_tensors *tensors);
FP8_CAPI int64_t fp8_tensors_count(const fp8_tensors *tensors);
/* info and data are valid as long as tensors; either may be NULL. */
FP8_CAPI fp8_status fp8_tensors_get(const fp8_tensors *tensors, int64_t index,
                                    fp8_tensor_info *info, const void **data);
/* Returns a value of the file's metadata; NULL if there is none. */
FP8_CAPI const char *fp8_tensors_metadata(const fp8_tensors *tensors,
                                          const char *key);
/* Writes atomically: path holds the old or the new contents, whatever happens.
   Names are in UTF-8. metadata: num_metadata pairs of strings (key, value,
   key, value, ...). */
FP8_CAPI fp8_status fp8_tensors_save(const char *path,
                                     const fp8_tensor_info *infos,
                                     const void *const *data, int64_t count,
                                     const char *const *metadata,
                                     int64_t num_metadata);

/* Sets all arguments that are state, like fp8_step_set_whole, from the tensors
   of their names. Tensors of the step's other arguments, and state that another
   recipe keeps for itself, are passed over: names fp8.* that the metadata
   `compiler_state` lists, one a line (without this key, all names fp8.*). If
   any other tensor is missing, of another type or not wanted, nothing is set,
   and the message of FP8_ERROR_MISMATCH lists all of them. */
FP8_CAPI fp8_status fp8_step_restore(fp8_step *step,
                                     const fp8_tensors *tensors);

/* Loads the newest complete checkpoint in a directory, in one file or several;
   NULL if there is none. */
FP8_CAPI fp8_status fp8_checkpoint_load(const char *directory,
                                        fp8_tensors **tensors);

/*===----------------------------------------------------------------------===*\
|* Running once                                                               *|
\*===----------------------------------------------------------------------===*/

/* Runs executable once with the arguments in file inputs (NULL if it takes
   none) and writes all results to file outputs. Tensors are named by tree path;
   see docs/Runtime.md. */
FP8_CAPI fp8_status fp8_run_once(const fp8_executable *executable,
                                 const char *inputs, const char *outputs,
                                 int32_t threads);

/*===----------------------------------------------------------------------===*\
|* Training                                                                   *|
\*===----------------------------------------------------------------------===*/

/* Feeds a batch argument from an array. An array is a list of rows. An argument
   with the shape of a row takes one row in every step; one with more leading
   dimensions takes as many rows as these count (f32[8,16] takes one row of
   [steps,8,16], or 8 rows of [examples,16]). All arrays advance through their
   rows together, epoch after epoch; arrays of scalar arguments are indexed by
   step instead. */
typedef struct fp8_batch_source {
  const char *path;   /* the argument */
  const char *file;   /* .safetensors or .npy */
  const char *tensor; /* safetensors: the tensor's name; NULL: the only one, or
                         the one with the argument's name */
  /* With file NULL: the array itself, which must live as long as the call. */
  const fp8_tensor_info *info; /* its type; the name is ignored   */
  const void *data;
} fp8_batch_source;

typedef enum fp8_alarm_action {
  FP8_ALARM_WARN = 0, /* say so                              */
  FP8_ALARM_STOP,     /* write a checkpoint and end          */
  FP8_ALARM_SKIP      /* discard the step's update           */
} fp8_alarm_action;

/* A rule about a metric, see docs/Runtime.md. */
typedef struct fp8_alarm {
  char metric[256];
  char tensors[256]; /* glob of tree paths; "": all                        */
  int32_t below;     /* 1: <, 0: >                                         */
  double threshold;  /* a number, or a factor of the median                */
  int64_t median_of; /* steps; 0: the threshold is a number                */
  fp8_alarm_action action;
  int32_t needs_trace; /* 1: only a traced step has the metric             */
} fp8_alarm;

/* Parses a rule as fp8_train does. */
FP8_CAPI fp8_status fp8_alarm_parse(const char *text, fp8_alarm *alarm);

/* Rules about a step's metrics with their memory of earlier steps, for callers
   with a training loop of their own. */
typedef struct fp8_alarms fp8_alarms;

/* Parses rules about the loss, the metrics and the trace of a step, which must
   outlive them. FP8_ERROR_INVALID: a rule is malformed or matches nothing. */
FP8_CAPI fp8_status fp8_alarms_create(const fp8_executable *step,
                                      const char *const *rules,
                                      int64_t num_rules, fp8_alarms **alarms);
/* Accepts NULL. */
FP8_CAPI void fp8_alarms_destroy(fp8_alarms *alarms);
/* Returns whether a rule may discard a step's update. If so, the caller must
   keep the state from before the step. */
FP8_CAPI int32_t fp8_alarms_may_skip(const fp8_alarms *alarms);
/* Checks the results of the step's last run, step `number`. Passes message (or
   NULL) each alarm, as fp8_train logs it; *skip and *stop become 1 if a rule
   says so, else 0. Call it exactly once for every step. */
FP8_CAPI fp8_status fp8_alarms_check(fp8_alarms *alarms, fp8_step *step,
                                     int64_t number, fp8_message_fn message,
                                     void *user, int32_t *skip, int32_t *stop);

/* Writes the parameters for other programs when training has ended:
   directory/model.safetensors and directory/export.json. */
typedef struct fp8_export {
  const char *directory; /* created if missing */
  /* Takes tensors of the user's tree, or arguments of the step, by name and
     type. model.safetensors holds its results of kind OUTPUT; export.json its
     scalars of kind METRIC. */
  const fp8_executable *encode;
  /* Or NULL. Takes what encode returns and returns tensors of the user's tree:
     the values that a reader of the file gets. */
  const fp8_executable *decode;
  /* Or NULL: an evaluation as in fp8_train_options, with the same data. It runs
     on what decode returns and on the model, and both losses are reported. */
  const fp8_executable *eval;
  /* Or NULL: the result of eval whose signal-to-noise ratio is reported. */
  const char *logits;
  const char *manifest; /* a JSON object for export.json; or NULL */
} fp8_export;

typedef struct fp8_train_options {
  const fp8_executable *step;
  const fp8_executable *init; /* or NULL                                    */
  const fp8_executable *eval; /* or NULL                                    */
  const char *init_file;      /* safetensors with the initial values; with init
                                 too, the file wins where both have a value */
  const char *const *data_files; /* text, or tokens: .u16, .npy, .safetensors */
  int64_t num_data_files;
  const char *const
      *eval_files; /* held-out text; none: the end of data_files */
  int64_t num_eval_files;
  const fp8_batch_source *batches;
  int64_t num_batches;
  const fp8_batch_source *eval_batches; /* the same for eval, read in order */
  int64_t num_eval_batches;
  int32_t shuffle; /* 1: the rows of batches in a random order for each epoch */
  double holdout;  /* fraction of each data file; 0: 0.1; < 0: none    */
  const char *out_dir; /* created if missing                               */
  const char *fingerprint; /* of module, recipe and compiler; or NULL        */
  uint64_t seed;
  int64_t steps;            /* in total, those before a resume included      */
  int64_t checkpoint_every; /* 0: at the end only; < 0: none, not even then  */
  int64_t keep_checkpoints; /* how many of the newest stay; 0: all           */
  int64_t eval_every;       /* 0: at the end only (with eval)                */
  int64_t log_every;        /* lines where stdout is no terminal; 0: 10      */
  int32_t threads;          /* see fp8_step_create                           */
  int32_t resume;           /* from the newest valid checkpoint in out_dir   */
  int32_t overwrite;        /* 1: files of an earlier run may be replaced;
                               0: they are an error (without resume)         */
  int32_t no_signals;       /* 1: leave SIGINT, SIGTERM and SIGHUP alone: they
                               do not stop this run, nor does it hide them
                               from other runs of the process                */
  int32_t live;    /* progress line: 1 live ('\r'), -1 lines, 0 by isatty(1) */
  int32_t quiet;   /* 1: no messages but warnings, those on stderr  */
  int32_t profile; /* 1: time every launch and report it; profile.json,
                      timeline.json                         */
  fp8_message_fn message; /* NULL: stdout                                  */
  void *user;
  const char *verdicts;      /* text of verdicts.json, written when training
                                starts; or NULL                              */
  const char *memory_plan;   /* JSON of the compiler's plan, a part of
                                memory.json; or NULL                         */
  const char *const *alarms; /* rules, evaluated after every step        */
  int64_t num_alarms;
  int32_t trace; /* 1: write trace.jsonl, the statistics of a traced step    */
  int64_t trace_every; /* steps between lines; 0: 1                          */
  /* Both or neither are NULL. Not NULL: the step stores some of its state in
     another form than the user's (for example as FP8 payloads and scales).
     store takes state in the user's form and returns arguments of the step, by
     name and type; its arguments have the paths of the user's tree. load takes
     arguments of the step and returns state in the user's form: arguments of
     store, by name and type. What store takes and load does not return is also
     an argument of the step, of the same type, which store only reads.
     store runs once, on the initial values; load runs for each evaluation.
     Checkpoints hold the step's arguments. */
  const fp8_executable *store;
  const fp8_executable *load;
  /* Or NULL. With resume, a run that has nothing left to train needs no data
     for an export. */
  const fp8_export *export_weights;
  const char *recipe; /* text of recipe.yaml, written when training starts; or
                         NULL */
  const char *preset; /* text of preset.yaml: the preset of the recipe's name;
                         or NULL */
  const char *cost;   /* JSON of the compiler's counts; with profile, cost.json
                         holds it and the machine's limits; or NULL */
  /* Or NULL. Ranks that train together, each with its own rows of the batch:
     all call fp8_train with the same options. Rank 0 alone writes files and
     calls message. */
  fp8_group *group;
  int32_t sharded_checkpoints; /* with group, 1: each rank writes a share of the
                                  state to its own file; that is always so if
                                  state is dealt to ranks (shard)           */
  const char *ranks; /* text of ranks.txt: ranks that train together have the
                        same first line; or NULL                            */
  /* Or NULL. fp8_evaluate and fp8_export_weights call it with user before each
     batch, unless ranks share the batches: they end with FP8_INTERRUPTED if it
     does not return 0. */
  int32_t (*stop)(void *user);
} fp8_train_options;

/* Fills in what a package has for a run: functions, fingerprint, recipe,
   verdicts and memory plan; if exported is not NULL, the functions and the
   manifest of an export too. Other fields stay as they are. The values are
   valid as long as the package. FP8_ERROR_INVALID: the package has no step, or
   no function to export with. */
FP8_CAPI fp8_status fp8_package_options(const fp8_package *package,
                                        fp8_train_options *options,
                                        fp8_export *exported);

typedef struct fp8_train_summary {
  int64_t first_step; /* 0, or where it resumed */
  int64_t last_step;  /* steps that the state has taken */
  double first_loss;  /* of the run, including the log before a resume */
  double last_loss;
  double mean_loss_10; /* over the last 10 (20) steps */
  double mean_loss_20;
  double heldout_loss;      /* NaN without eval */
  double tokens_per_second; /* median           */
  double step_seconds;      /* median           */
  int64_t tokens_per_step;
  fp8_memory memory;     /* of the step */
  char checkpoint[1024]; /* path of the last one, or "" */
} fp8_train_summary;

/* Trains until the last step, SIGINT, SIGTERM, SIGHUP (unless the process
   ignores it, as under nohup), a non-finite value or an error. Writes log.csv,
   log.jsonl, loss.svg, memory.json and checkpoint-<step>.safetensors to
   out_dir, or several checkpoint files with
   checkpoint-<step>.safetensors.index.json. summary (or NULL) is filled as far
   as training came, whatever the status. */
FP8_CAPI fp8_status fp8_train(const fp8_train_options *options,
                              fp8_train_summary *summary);

/* Reports what fp8_train would report about its files, for programs that have
   yet to compile the functions, which may be missing: an input that cannot be
   read; an out_dir that another run writes to or that holds a package; one with
   an earlier run, with neither resume nor overwrite; one without a checkpoint,
   with resume. Reads and writes no contents. All ranks that train together call
   this. */
FP8_CAPI fp8_status fp8_check_files(const fp8_train_options *options);
/* Reports what fp8_train would report about the arrays of options->batches (of
   eval_batches if is_evaluation is not 0), for programs that know the arguments
   of the step (of eval) but have yet to compile it. Reads the arrays. */
FP8_CAPI fp8_status fp8_check_batches(const fp8_train_options *options,
                                      const fp8_tensor_info *arguments,
                                      int64_t num_arguments,
                                      int32_t is_evaluation);

/* Evaluates the state of a step on held-out data as fp8_train does, without
   changing it. step: of options->step, or of an executable with the same
   arguments. It uses these options: step, eval, store, load, data_files,
   eval_files, holdout, eval_batches, init and init_file (for arguments of eval
   that are not state of the step), seed, threads, no_signals, stop with
   options->user, and group. The ranks of group all call this, each with all of
   the state (fp8_step_gather), and share the batches among them. Passes message
   one line of JSON: {"heldout_loss": 1.5, "heldout_metrics": {PATH: ...},
   "batches": 8}, without "heldout_metrics" if eval has no other metrics; null
   stands for a value that is not finite. FP8_INTERRUPTED: by a signal or by
   stop, of one rank alone. */
FP8_CAPI fp8_status fp8_evaluate(const fp8_train_options *options,
                                 fp8_step *step, fp8_message_fn message,
                                 void *user);

/* Writes the weights of a step's state as fp8_train does at its end, to
   options->export_weights->directory. export.json records `number` as the step
   of the weights. The held-out losses are computed if export_weights->eval is
   given and the options name data for it, as for fp8_evaluate. */
FP8_CAPI fp8_status fp8_export_weights(const fp8_train_options *options,
                                       fp8_step *step, int64_t number);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_H */
