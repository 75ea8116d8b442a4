/*===- Runtime.h - C ABI of the fp8 runtime -------------------------------===*\
|*                                                                            *|
|* Everything that a compiled step needs at run time: buffers, launches,      *|
|* training, data, checkpoints, reports. The library (libfp8_runtime) holds   *|
|* no compiler: whoever compiled a step (a JIT, a package) describes it here  *|
|* as an fp8_executable.                                                      *|
|*                                                                            *|
|* Every function that can fail returns an fp8_status; fp8_last_error() has   *|
|* the message. Nothing aborts the process, no exception leaves the library.  *|
|* Structures that callers fill begin zeroed (`= {0}`): zero is the default.  *|
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

/* The version of what this header promises to compiled code: raised when code
   that was compiled before would no longer run. Packages carry it. */
#define FP8_ABI_VERSION 8

/* FP8_ABI_VERSION of the library. */
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
  FP8_INTERRUPTED = 9,     /* SIGINT or SIGTERM: checkpoint written, stopped */
  FP8_STOPPED = 10,        /* an alarm with the action stop: the same        */
  FP8_ERROR_RANK = 11      /* another rank failed, or does not fit this one  */
} fp8_status;

/* The message of this thread's last failure; "" before any. Valid until this
   thread's next call into the library. */
FP8_CAPI const char *fp8_last_error(void);

/* For example "out of memory"; never NULL. */
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
  FP8_ROLE_CONSTANT,  /* like frozen                                  */
  FP8_NUM_ROLES
} fp8_role;

/* fp8.kind, of state arguments (first five) and of results (the others). */
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
  /* Statistics for people, f64 with one row for each layer (see below). The
     name begins with "trace.quantization.", "trace.update.",
     "trace.alignment.". */
  FP8_KIND_TRACE_QUANTIZATION, /* a row has FP8_TRACE_QUANTIZATION_SIZE numbers
                                */
  FP8_KIND_TRACE_UPDATE,    /* FP8_TRACE_UPDATE_SIZE                        */
  FP8_KIND_TRACE_ALIGNMENT, /* FP8_TRACE_ALIGNMENT_SIZE                     */
  FP8_NUM_KINDS
} fp8_kind;

/* What a step tells of a tensor x that it quantizes, over all iterations:
   maxima and sums. */
typedef enum fp8_trace_quantization {
  FP8_TRACE_AMAX = 0, /* largest |x|                                         */
  FP8_TRACE_SCALE,    /* largest scale                                       */
  FP8_TRACE_MINUS_SCALE, /* minus the smallest one                            */
  FP8_TRACE_COUNT,     /* elements                                            */
  FP8_TRACE_UNDERFLOW, /* of them not zero, but quantized to zero             */
  FP8_TRACE_SATURATED, /* of them finite, but rounded from beyond the largest
                          code                                                */
  FP8_TRACE_SUM1,      /* sum of x                                            */
  FP8_TRACE_SUM2,      /* of x^2                                              */
  FP8_TRACE_SUM3,
  FP8_TRACE_SUM4,
  FP8_TRACE_ERROR, /* of (x - what the payload stands for)^2              */
  FP8_TRACE_QUANTIZATION_SIZE
} fp8_trace_quantization;

/* Of the update of a parameter with gradient g and second moment v. */
typedef enum fp8_trace_update {
  FP8_TRACE_UPDATE_COUNT = 0, /* elements       */
  FP8_TRACE_UPDATE_SUM,       /* sum of g^2 / v */
  FP8_TRACE_UPDATE_SIZE
} fp8_trace_update;

/* Of a gated unit with gate weights a and up weights b, channel by channel. */
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
  int64_t vocabulary; /* integer batch argument: its values stay below this;
                         0 or -1: not known                            */
  int32_t zero_init;  /* state that the compiler added (scales): begins as
                         zeros unless the initial file has a value       */
  int64_t shard;      /* state that ranks own: the number of its shard, from
                         1; 0: all ranks have it                          */
  int64_t slices;     /* of the shard, along its leading dimension, each of
                         which one rank owns; 0 or 1: it has one owner    */
  const int64_t *whole_dims; /* state of which each rank has a part, of sizes
                                dims: the rank sizes of the whole; NULL: none */
  const int64_t
      *part_offsets; /* where each rank's part begins in the whole:
                        rank numbers for rank 0, then for rank 1, ... */
  int64_t num_parts; /* ranks that the step was written for         */
  /* Results only. */
  int32_t state_arg;  /* kind STATE: the argument that this replaces,
                         else -1                                       */
  int32_t own_buffer; /* kind STATE: 0: written in place, to the buffer of
                         argument state_arg; 1: has a buffer of its own, which
                         changes places with the argument's after every run */
} fp8_tensor_info;

/* Bytes of one element; 0 if dtype is none. */
FP8_CAPI size_t fp8_dtype_size(fp8_dtype dtype);
/* safetensors' name of a dtype ("F32", "F8_E4M3", ...); NULL if none. */
FP8_CAPI const char *fp8_dtype_name(fp8_dtype dtype);
/* Their names as the compiler spells them ("state", "moment1"); NULL if none.
 */
FP8_CAPI const char *fp8_role_name(fp8_role role);
FP8_CAPI const char *fp8_kind_name(fp8_kind kind);
/* Bytes of the whole tensor; -1 if its type is not valid. */
FP8_CAPI int64_t fp8_tensor_bytes(const fp8_tensor_info *info);

/*===----------------------------------------------------------------------===*\
|* Executables                                                                *|
\*===----------------------------------------------------------------------===*/

/* An executable with its memory: one training state, or one function call. */
typedef struct fp8_step fp8_step;
/* A compiled function. Immutable; many steps may share it. */
typedef struct fp8_executable fp8_executable;

/* One task of a launch. scratch: scratch_bytes of this thread's own, 64-byte
   aligned, not cleared. */
typedef void (*fp8_kernel_fn)(int64_t task, void *const *operands,
                              void *scratch);

/* The compiled function: launches kernels one after another. */
typedef void (*fp8_entry_fn)(fp8_step *step);

/* Called by generated code only. Runs fn for tasks 0 .. num_tasks-1, in any
   order and on any thread, and returns when all have ended. launch: its number
   among the launches of the entry function (a loop makes one many times).
   Operand code c >= 0: that byte offset in the arena. c < 0: external buffer
   number ~c: the arguments, then the results that don't live in an argument's
   buffer (see own_buffer), in order, then the constants. offsets: NULL, or
   bytes to add to each operand's address: the part of a stack that this
   iteration of a loop works on. */
FP8_CAPI void fp8_launch(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                         int64_t num_tasks, const int64_t *operands,
                         const int64_t *offsets, int64_t num_operands);

/* Called by generated code only. The same for what owners of a shard run: those
   tasks that work on slices of this rank. Tasks are numbered along the slices,
   as many for each. Those of a copy that do not divide so (of one number a
   slice, say) all run, if this rank has any slice. */
FP8_CAPI void fp8_launch_owned(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                               int64_t num_tasks, const int64_t *operands,
                               const int64_t *offsets, int64_t num_operands,
                               int64_t shard);

/* Called by generated code only: the address behind one operand code. Not for a
   GPU, whose memory has no addresses on the host. */
FP8_CAPI void *fp8_operand(fp8_step *step, int64_t operand);

/* How the values of all ranks become one. */
typedef enum fp8_reduction {
  FP8_REDUCE_SUM = 0,
  FP8_REDUCE_MEAN,  /* the sum divided by the number of ranks; floats only */
  FP8_REDUCE_MAX,   /* NaN wins */
  FP8_REDUCE_MIN,   /* NaN wins */
  FP8_REDUCE_OWNER, /* what the owner of the shard holds: bytes of any type,
                       which it sends to all */
  FP8_NUM_REDUCTIONS
} fp8_reduction;

/* What travels between ranks: the values as they are, or narrowed ones (sums
   and means of floats only). Whatever travels is summed in f32 (f64 in f64,
   integers as integers), in the order of the ranks. */
typedef enum fp8_wire {
  FP8_WIRE_EXACT = 0,
  FP8_WIRE_BF16,
  FP8_WIRE_F8_E4M3FN,
  FP8_WIRE_F8_E5M2,
  FP8_NUM_WIRES
} fp8_wire;

/* A reduction over all ranks; constant, beside the code that starts it. */
typedef struct fp8_all_reduce {
  const char *label; /* for profiles and errors: "gradient params['w']" */
  int64_t reduction; /* fp8_reduction                                   */
  int64_t wire;      /* fp8_wire                                        */
  int64_t dtype;     /* fp8_dtype of operands 0 and 1                   */
  int64_t block;     /* elements that share a scale on an f8 wire, one after
                        another; 0: the whole tensor                    */
  int64_t elements;
  int64_t shard; /* to its owners alone, to each its slices (operand 1 keeps
                    what it holds of the others, or has anything there), or
                    FP8_REDUCE_OWNER: from them; 0: to all */
} fp8_all_reduce;

/* Called by generated code only. Begins to reduce operand 0 (read) into operand
   1 (written; it may be the same place) over all ranks of the step's group.
   With an f8 wire operand 2 is f32[2], read and written: mu, by which FP8-LM
   scales sums, and the steps since it changed; zeros are a new one. operands,
   offsets: as for fp8_launch. number: counted like a launch's, in one
   numbering. Returns at once; the operands are the collective's until fp8_wait.
   All ranks make the same calls in the same order. */
FP8_CAPI void fp8_all_reduce_start(fp8_step *step, int64_t number,
                                   const fp8_all_reduce *what,
                                   const int64_t *operands,
                                   const int64_t *offsets,
                                   int64_t num_operands);

/* What goes where between the ranks of a group. */
typedef enum fp8_exchange_kind {
  FP8_EXCHANGE_ALL_TO_ALL = 0, /* part j to the j-th member, whose part for this
                                  rank is then part j */
  FP8_EXCHANGE_GATHER = 1,     /* the operand to all members: part j is the
                                  j-th member's                                */
  FP8_EXCHANGE_PERMUTE = 2,    /* the operand from the first to the second rank
                                  of each group; zeros where nothing arrives   */
  FP8_NUM_EXCHANGES = 3
} fp8_exchange_kind;

/* An exchange of parts, in which values stay as they are; constant, beside the
   code that starts it. */
typedef struct fp8_exchange {
  const char *label;    /* for profiles and errors                       */
  int64_t kind;         /* fp8_exchange_kind                             */
  int64_t part_bytes;   /* of what goes from one rank to another         */
  int64_t groups;       /* their number                                  */
  int64_t group_size;   /* 2 for FP8_EXCHANGE_PERMUTE: source and target */
  const int64_t *ranks; /* of the first group, the second, ...; a rank is in
                           one group, or the target of one pair          */
} fp8_exchange;

/* Called by generated code only. Begins to exchange operand 0 (read) for
   operand 1 (written, elsewhere). Otherwise as fp8_all_reduce_start: all ranks
   make the same call, those too that send nothing. */
FP8_CAPI void fp8_exchange_start(fp8_step *step, int64_t number,
                                 const fp8_exchange *what,
                                 const int64_t *operands,
                                 const int64_t *offsets, int64_t num_operands);

/* Called by generated code only: waits for collective `number` (for all of this
   number, where a loop has started several). */
FP8_CAPI void fp8_wait(fp8_step *step, int64_t number);

/* Called by generated code only: this process among those that run the step
   together, 0 <= rank < ranks; 0 and 1 where it runs alone. */
FP8_CAPI int64_t fp8_rank(fp8_step *step);
FP8_CAPI int64_t fp8_num_ranks(fp8_step *step);

/* How many slices of a shard of the state this rank owns; generated code asks,
   too. They are dealt to the ranks of the step's group, the largest first, each
   to the rank that has the fewest bytes so far; a rank's slices of a shard are
   neighbours, those of rank 0 come first. */
FP8_CAPI int64_t fp8_owns(fp8_step *step, int64_t shard);

/* A dot that cuBLASLt computes. Its operands are lhs, rhs, with `scaled` the
   scale of each (one f32), the result, and the workspace; all of them dense and
   row-major. result[rows][columns] = lhs * rhs * scales, added up in f32. */
typedef struct fp8_gpu_dot {
  int64_t rows, columns, depth;
  int64_t workspace_bytes;
  int32_t lhs, rhs, result; /* fp8_dtype                                      */
  int32_t lhs_along_k;      /* lhs[rows][depth]; 0: lhs[depth][rows]          */
  int32_t rhs_along_k;      /* rhs[columns][depth]; 0: rhs[depth][columns]    */
  int32_t scaled;
  int32_t fast_accumulation; /* FP8: sums are not promoted on the way         */
} fp8_gpu_dot;

/* A kernel of a function for an NVIDIA GPU. To fp8_launch such a function
   passes the address of one of these as fn (it calls none), and as num_tasks
   the blocks of the grid. */
typedef struct fp8_gpu_kernel {
  const char *name;     /* of the function in the image                       */
  const void *image;    /* cubin, or PTX, or what else the driver loads       */
  int64_t image_bytes;  /* kernels may share an image                         */
  int32_t threads;      /* of a block                                         */
  int32_t shared_bytes; /* dynamic shared memory of a block                  */
  int32_t num_operands; /* its parameters: one pointer each, and behind them,
                           with scratch_bytes, the address of scratch memory */
  int32_t loops;        /* not 0: operands move in this many loops that the GPU
                           counts. Behind its other parameters it has the
                           address of their counters (int64_t, the outermost
                           first), then for each operand one int64_t a loop: the
                           bytes that it moves by in an iteration            */
  int64_t scratch_bytes;  /* of a block: global memory, not cleared           */
  const fp8_gpu_dot *dot; /* not NULL: cuBLASLt computes it; there is no image,
                             and the grid is one block                       */
} fp8_gpu_kernel;

/* Called by generated code for a GPU only: copies the bytes (at most 64) that
   lie offset bytes after an operand to the host; valid until the next call. */
FP8_CAPI const void *fp8_read(fp8_step *step, int64_t operand, int64_t offset,
                              int64_t bytes);
/* The other way: a scalar of 1, 2, 4 or 8 bytes. */
FP8_CAPI void fp8_write(fp8_step *step, int64_t operand, int64_t offset,
                        int64_t bytes, const void *value);

/* Control flow that a GPU decides itself, called by generated code. The step is
   a graph: a loop or branch is a node of it with a graph of its own as body,
   which runs as long as, or if, a handle is not 0, and kernels of the graph set
   the handle. The entry runs each body once, in the first iteration of its
   loops, and the runtime writes it down. Where launches are told one by one (a
   profile, FP8_GPU_CHECK) the entry runs bodies as often as the GPU has to, and
   the host reads conditions and waits for them.

   Collectives are calls of the host, which no such body may have.

   Counted loops that are open have numbers from 0, the outermost first, and
   `strides` one number for each: the bytes by which an address moves in every
   iteration (NULL: by none). There are at most FP8_GPU_LOOPS. `kernel` is one
   of the step's, run by one thread, whose parameters have 8 bytes each. */
#define FP8_GPU_LOOPS 4

/* Begins a loop of `trips` iterations, which fp8_end ends; returns how many of
   them the entry is to run. kernel(int64_t *counter, bool next, int64_t trips,
   handle) sets the counter to 0 or to the next number, and the handle to
   whether that is less than trips. */
FP8_CAPI int64_t fp8_loop(fp8_step *step, const fp8_gpu_kernel *kernel,
                          int64_t trips);

/* Condition number `condition` becomes the integer of 1, 2, 4 or 8 bytes that
   lies there now. kernel(int64_t *condition, const void *from, bytes, counters,
   FP8_GPU_LOOPS strides). */
FP8_CAPI void fp8_keep(fp8_step *step, const fp8_gpu_kernel *kernel,
                       int64_t condition, int64_t operand, int64_t offset,
                       const int64_t *strides, int64_t bytes);

/* Begins a branch that is taken if low <= condition <= high, or, with
   `inverted`, if not. Returns whether the entry is to run it; only then fp8_end
   ends it. kernel(const int64_t *condition, low, high, inverted, handle) sets
   the handle. */
FP8_CAPI int64_t fp8_branch(fp8_step *step, const fp8_gpu_kernel *kernel,
                            int64_t condition, int64_t low, int64_t high,
                            int64_t inverted);

/* Asks whether the body of loop `loop` (a number of its own in the step) runs
   (again), by a condition as above, before each of its iterations. */
FP8_CAPI int64_t fp8_while(fp8_step *step, const fp8_gpu_kernel *kernel,
                           int64_t loop, int64_t condition, int64_t low,
                           int64_t high, int64_t inverted);
FP8_CAPI void fp8_end(fp8_step *step);

/* fp8_launch of a kernel whose operands move: strides[operand][loop], with as
   many loops as the kernel has. */
FP8_CAPI void fp8_launch_moving(fp8_step *step, int64_t launch,
                                const fp8_gpu_kernel *kernel, int64_t blocks,
                                const int64_t *operands, const int64_t *offsets,
                                const int64_t *strides, int64_t num_operands);

/* fp8_write of an integer that is `value` in the first iteration and grows by
   value_strides in those of the loops around. kernel(void *to, bytes, counters,
   FP8_GPU_LOOPS strides, value, FP8_GPU_LOOPS value_strides). */
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
  int64_t scratch_bytes; /* per thread; on a GPU of all blocks of a launch */
  /* Optional: names of the launches, by number. */
  const char *const *launch_names;
  int64_t num_launches;
  /* For a GPU: the kernels that entry launches. They and their images have to
     outlive the executable. */
  const fp8_gpu_kernel *const *gpu_kernels;
  int64_t num_gpu_kernels;
} fp8_executable_desc;

/* Copies the description (see fp8_constant); code and borrowed constants must
   outlive the executable. */
FP8_CAPI fp8_status fp8_executable_create(const fp8_executable_desc *desc,
                                          fp8_executable **executable);
/* NULL is fine; its steps must be gone. */
FP8_CAPI void fp8_executable_destroy(fp8_executable *executable);

/* threads: 0: as many as the process may use cores; 1: everything runs in the
   calling thread. All buffers begin zeroed. */
FP8_CAPI fp8_status fp8_step_create(const fp8_executable *executable,
                                    int32_t threads, fp8_step **step);
FP8_CAPI void fp8_step_destroy(fp8_step *step);

/* Runs the function once; in-place state is replaced. On a GPU it may still be
   running when this returns; what went wrong is then told by a later call. */
FP8_CAPI fp8_status fp8_step_run(fp8_step *step);

/* On a GPU, begins to bring what was written to arguments of the roles batch
   and key there, beside a run that goes on: so the next batch can be written
   and staged while a step runs. fp8_step_run does it where nobody has. On a CPU
   it does nothing. Errors are the GPU's. */
FP8_CAPI fp8_status fp8_step_stage(fp8_step *step);

/* The buffer of an argument or result, 64-byte aligned; NULL if there is no
   such one, or if it cannot be copied from the GPU (fp8_last_error). With
   own_buffer it changes with every run, and on a GPU it is a copy: ask again
   after every run, and before an argument is written. */
FP8_CAPI void *fp8_step_argument(fp8_step *step, int64_t index);
FP8_CAPI void *fp8_step_result(fp8_step *step, int64_t index);

typedef struct fp8_memory {
  int64_t arena_planned;  /* the executable's arena_bytes                  */
  int64_t arena_reserved; /* address space taken for it                    */
  int64_t arena_touched;  /* of that, resident now (whole pages)           */
  int64_t arguments;      /* bytes of argument buffers, without the shards of
                             other ranks                                   */
  int64_t results;        /* bytes of results' own buffers, likewise       */
  int64_t constants;
  int64_t scratch;  /* all threads                                          */
  int64_t peak_rss; /* of the process (VmHWM)                              */
  int64_t shards;   /* of the arguments' bytes, those of shards that this rank
                       owns                                                */
  int64_t arguments_touched; /* of arguments and results, resident now     */
  int64_t reductions; /* the most that reductions over ranks held in buffers
                         of their own, beside it                           */
} fp8_memory;

FP8_CAPI fp8_status fp8_step_memory(const fp8_step *step, fp8_memory *memory);

/* Text for people, in whole lines, or lines that begin with '\r' (live). */
typedef void (*fp8_message_fn)(void *user, const char *text);

/* Time spent in each launch, summed over the runs since it was turned on. */
typedef struct fp8_launch_stat {
  const char *name; /* from launch_names, or ""            */
  int64_t tasks;    /* of the last one                     */
  int64_t runs;     /* a loop makes several in every run   */
  double seconds;
} fp8_launch_stat;

FP8_CAPI void fp8_step_set_profile(fp8_step *step, int32_t on);
/* Valid until the next run. */
FP8_CAPI const fp8_launch_stat *fp8_step_profile(const fp8_step *step,
                                                 int64_t *count);

/* What a machine can do at most, as far as a short measurement (about 0.1 s)
   finds out: the limits that a profile is compared with. */
typedef struct fp8_limits {
  int32_t threads;
  double f32_flops;  /* a second: fused multiply-adds of f32, two each       */
  double bf16_flops; /* the same of the bf16 dot product; 0: there is none   */
  double bytes;      /* a second, read and written in copying 64 MiB         */
} fp8_limits;

/* threads: as in fp8_step_create. No step should run meanwhile. */
FP8_CAPI fp8_status fp8_measure_limits(int32_t threads, fp8_limits *limits);

/* Tells message what the last run of a traced step computed of what it
   quantizes (results of kinds FP8_KIND_TRACE_*): one line of JSON as in
   trace.jsonl, {"step": number, "tensors": {...}}. FP8_ERROR_INVALID: the step
   was compiled without. */
FP8_CAPI fp8_status fp8_step_trace(fp8_step *step, int64_t number,
                                   fp8_message_fn message, void *user);

/*===----------------------------------------------------------------------===*\
|* Ranks                                                                      *|
\*===----------------------------------------------------------------------===*/

/* Processes that run a step together. */
typedef struct fp8_group fp8_group;

typedef struct fp8_group_options {
  /* NULL: the MPI whose launcher has started this process; without one the
     group has one rank. Else the file of a plugin (see Transport.h), with its
     arguments behind a colon, if it takes any. */
  const char *transport;
  double timeout; /* seconds until a rank that does not answer has failed; 0:
                     300 */
  int64_t bucket_bytes; /* reductions that are started one after another travel
                           together up to so many bytes; 0: 1 MiB */
} fp8_group_options;

/* Joins the other ranks. options: or NULL. */
FP8_CAPI fp8_status fp8_group_create(const fp8_group_options *options,
                                     fp8_group **group);
/* Leaves; its steps must be gone. NULL is fine. Where all ranks are through
   each of them calls this. */
FP8_CAPI void fp8_group_destroy(fp8_group *group);
FP8_CAPI int64_t fp8_group_rank(const fp8_group *group);
FP8_CAPI int64_t fp8_group_size(const fp8_group *group);
/* Bytes that this rank has sent to others so far. */
FP8_CAPI int64_t fp8_group_bytes_sent(const fp8_group *group);

/* Returns when all ranks have called it. */
FP8_CAPI fp8_status fp8_group_barrier(fp8_group *group);

/* Bytes, valid during the call. */
typedef void (*fp8_bytes_fn)(void *user, const void *data, int64_t bytes);

/* Tells receive what each rank has given, one after another by rank: any number
   of bytes each. All ranks call it. */
FP8_CAPI fp8_status fp8_group_gather(fp8_group *group, const void *data,
                                     int64_t bytes, fp8_bytes_fn receive,
                                     void *user);

/* After a failure of this rank or of a call: whether this process is the one to
   tell the user. Waits a moment for ranks that come first (0 does not wait). */
FP8_CAPI int32_t fp8_group_claim_failure(fp8_group *group);
/* Ends all ranks. Under MPI that ends this process too: the launcher kills
   it. */
FP8_CAPI void fp8_group_abort(fp8_group *group, const char *message);

/* The group whose ranks run the step together; NULL: this process alone. Every
   rank has the same executable. */
FP8_CAPI fp8_status fp8_step_set_group(fp8_step *step, fp8_group *group);
/* Brings what other ranks have of the state to this one, shards that they own
   and their parts: before it is read or written down. All ranks call it. */
FP8_CAPI fp8_status fp8_step_gather(fp8_step *step);
/* The whole value of an argument: of one of which each rank has a part, what
   fp8_step_gather has brought, until the next run; else the argument itself.
   NULL if it was not gathered. */
FP8_CAPI const void *fp8_step_whole(fp8_step *step, int64_t index);
/* Sets an argument from a whole value: of one of which each rank has a part,
   this rank's is cut off. The step has its group by then. */
FP8_CAPI fp8_status fp8_step_set_whole(fp8_step *step, int64_t index,
                                       const void *value);
/* Gives the memory of other ranks' shards back, until they are gathered again;
   what they held is gone. */
FP8_CAPI fp8_status fp8_step_release(fp8_step *step);

/* One reduction of a step over its ranks, summed over the runs since profiling
   was turned on (fp8_step_set_profile). */
typedef struct fp8_collective_stat {
  const char *label;
  int64_t number; /* among launches                              */
  int64_t runs;
  int64_t bytes;  /* sent by this rank                           */
  double seconds; /* that it took, beside the step               */
  double waited;  /* that the step did nothing but wait for it; those that
                     travel together share both times by size       */
} fp8_collective_stat;

/* Valid until the next run. */
FP8_CAPI const fp8_collective_stat *fp8_step_collectives(const fp8_step *step,
                                                         int64_t *count);

/*===----------------------------------------------------------------------===*\
|* Packages                                                                   *|
\*===----------------------------------------------------------------------===*/

/* Compiled functions by name ("step", "init", "eval", ...) and texts about
   them. A package is opened from a directory that fp8-run --emit-package wrote,
   or put together by whoever compiled the functions. */
typedef struct fp8_package fp8_package;

/* Opens the package in a directory: loads its code, which has to be for this
   machine and for FP8_ABI_VERSION. Several may be open at once, the same one
   too. FP8_ERROR_IO: a file cannot be read; FP8_ERROR_FORMAT: a file is not as
   it was written, or of another version. */
FP8_CAPI fp8_status fp8_package_open(const char *directory,
                                     fp8_package **package);
/* An error if this CPU cannot run code for `cpu` with `features` (LLVM's names,
   '+' each, by commas). Asks the system for registers that a process has none
   of before (AMX), so it comes before such code is run; fp8_package_open calls
   it. */
FP8_CAPI fp8_status fp8_check_cpu(const char *cpu, const char *features);

/* An empty package, to be filled by the two functions below. */
FP8_CAPI fp8_status fp8_package_create(fp8_package **package);
/* Adds a function of its own name, desc->name (see fp8_executable_create). */
FP8_CAPI fp8_status fp8_package_add(fp8_package *package,
                                    const fp8_executable_desc *desc);
/* Sets a text; NULL removes it. */
FP8_CAPI fp8_status fp8_package_set_text(fp8_package *package, const char *name,
                                         const char *text);
/* NULL is fine; its functions go too, so their steps must be gone. */
FP8_CAPI void fp8_package_close(fp8_package *package);

/* A function, valid as long as the package; NULL if there is none of the name.
   A package for training has "step" and, as far as they were given or needed,
   "init", "eval", "store" and "load" (see fp8_train_options), "export",
   "import" and "check" (fp8_export's encode, decode and eval; the result
   FP8_LOGITS_NAME of the last is its logits). */
#define FP8_LOGITS_NAME "fp8.logits"
FP8_CAPI const fp8_executable *fp8_package_function(const fp8_package *package,
                                                    const char *name);
/* A text, valid until it is set again; NULL if there is none: "fingerprint" and
   "verdicts.json", "memory.json", "export.json" as in fp8_train_options and
   fp8_export, "recipe.yaml" (the effective recipe), "preset.yaml" (the preset
   of its name, if there is one), "cost.json" (arithmetic and traffic of each
   launch, see docs/Runtime.md), "signature.json" (the
   user's arguments and results, and what replaces what), and for people
   "summary.txt", "verdicts.txt", "memory.txt" and "state.txt" (state that the
   step returns as it came, a path a line). */
FP8_CAPI const char *fp8_package_text(const fp8_package *package,
                                      const char *name);

/* What the library of a package in a directory exports, under the name
   fp8_package_v<FP8_ABI_VERSION>. For compilers and fp8_package_open. */
typedef struct fp8_package_code {
  const char *function;
  fp8_entry_fn entry;
  const fp8_constant *constants;
  int64_t num_constants;
  const fp8_gpu_kernel *const *gpu_kernels;
  int64_t num_gpu_kernels;
} fp8_package_code;

typedef struct fp8_package_library {
  int64_t abi; /* FP8_ABI_VERSION */
  const fp8_package_code *functions;
  int64_t num_functions;
  /* Where the library keeps its pointers to fp8_launch, fp8_operand, fp8_read,
     fp8_write, fp8_all_reduce_start, fp8_wait, fp8_rank, fp8_num_ranks,
     fp8_owns, fp8_exchange_start, fp8_loop, fp8_keep, fp8_branch, fp8_while,
     fp8_end, fp8_launch_moving, fp8_write_moving and fp8_launch_owned: set
     before a function is called. */
  void (**launch)(fp8_step *, int64_t, fp8_kernel_fn, int64_t, const int64_t *,
                  const int64_t *, int64_t);
  void *(**operand)(fp8_step *, int64_t);
  const void *(**read)(fp8_step *, int64_t, int64_t, int64_t);
  void (**write)(fp8_step *, int64_t, int64_t, int64_t, const void *);
  void (**all_reduce_start)(fp8_step *, int64_t, const fp8_all_reduce *,
                            const int64_t *, const int64_t *, int64_t);
  void (**wait)(fp8_step *, int64_t);
  int64_t (**rank)(fp8_step *);
  int64_t (**num_ranks)(fp8_step *);
  int64_t (**owns)(fp8_step *, int64_t);
  void (**exchange_start)(fp8_step *, int64_t, const fp8_exchange *,
                          const int64_t *, const int64_t *, int64_t);
  int64_t (**loop)(fp8_step *, const fp8_gpu_kernel *, int64_t);
  void (**keep)(fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t, int64_t,
                const int64_t *, int64_t);
  int64_t (**branch)(fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t,
                     int64_t, int64_t);
  int64_t (**while_body)(fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t,
                         int64_t, int64_t, int64_t);
  void (**end)(fp8_step *);
  void (**launch_moving)(fp8_step *, int64_t, const fp8_gpu_kernel *, int64_t,
                         const int64_t *, const int64_t *, const int64_t *,
                         int64_t);
  void (**write_moving)(fp8_step *, const fp8_gpu_kernel *, int64_t, int64_t,
                        const int64_t *, int64_t, int64_t, const int64_t *);
  void (**launch_owned)(fp8_step *, int64_t, fp8_kernel_fn, int64_t,
                        const int64_t *, const int64_t *, int64_t, int64_t);
} fp8_package_library;

/* The arguments and results of a function; FP8_ERROR_INVALID if there is no
   such one. What info points to is valid as long as the executable. */
FP8_CAPI int64_t fp8_executable_num_arguments(const fp8_executable *executable);
FP8_CAPI int64_t fp8_executable_num_results(const fp8_executable *executable);
FP8_CAPI fp8_status fp8_executable_argument(const fp8_executable *executable,
                                            int64_t index,
                                            fp8_tensor_info *info);
FP8_CAPI fp8_status fp8_executable_result(const fp8_executable *executable,
                                          int64_t index, fp8_tensor_info *info);

/*===----------------------------------------------------------------------===*\
|* Tensor files (safetensors)                                                 *|
\*===----------------------------------------------------------------------===*/

/* The tensors of one file, or of a set of files, in memory. */
typedef struct fp8_tensors fp8_tensors;

/* path: of a file, or of a set's index (.safetensors.index.json), whose files
   stay as they are while it is loaded. */
FP8_CAPI fp8_status fp8_tensors_load(const char *path, fp8_tensors **tensors);
FP8_CAPI void fp8_tensors_destroy(fp8_tensors *tensors);
FP8_CAPI int64_t fp8_tensors_count(const fp8_tensors *tensors);
/* info and data stay valid as long as tensors; either may be NULL. */
FP8_CAPI fp8_status fp8_tensors_get(const fp8_tensors *tensors, int64_t index,
                                    fp8_tensor_info *info, const void **data);
/* A value of the file's metadata; NULL if there is none. */
FP8_CAPI const char *fp8_tensors_metadata(const fp8_tensors *tensors,
                                          const char *key);
/* Atomic: path holds the old or the new contents, whatever happens. metadata:
   num_metadata pairs of strings (key, value, key, value, ...). */
FP8_CAPI fp8_status fp8_tensors_save(const char *path,
                                     const fp8_tensor_info *infos,
                                     const void *const *data, int64_t count,
                                     const char *const *metadata,
                                     int64_t num_metadata);

/* The newest whole checkpoint in a directory, in one file or several; NULL if
   it holds none. */
FP8_CAPI fp8_status fp8_checkpoint_load(const char *directory,
                                        fp8_tensors **tensors);

/* One side of fp8_bind_by_path. types: any text, the same for the same type. */
typedef struct fp8_paths {
  const char *const *names;
  const char *const *types;
  int64_t count;
} fp8_paths;

/* Finds the sources that targets take their initial values from, as fp8_train
   does: bound[i] is the source of target i, or -1. */
FP8_CAPI fp8_status fp8_bind_by_path(const fp8_paths *targets,
                                     const fp8_paths *sources, int64_t *bound);

/*===----------------------------------------------------------------------===*\
|* Running once                                                               *|
\*===----------------------------------------------------------------------===*/

/* Runs executable once with the arguments in file inputs (NULL: it takes none)
   and writes all results to file outputs. Tensors are named by tree path; see
   docs/Runtime.md. */
FP8_CAPI fp8_status fp8_run_once(const fp8_executable *executable,
                                 const char *inputs, const char *outputs,
                                 int32_t threads);

/*===----------------------------------------------------------------------===*\
|* Training                                                                   *|
\*===----------------------------------------------------------------------===*/

/* Feeds a batch argument from an array. An array is a list of rows; an argument
   of a row's shape takes one in every step, one with more leading dimensions as
   many as these count (f32[8,16] from [steps,8,16], or from [examples,16], 8 in
   a step). All arrays go through their rows together, epoch after epoch; those
   of scalar arguments follow the step instead. */
typedef struct fp8_batch_source {
  const char *path;   /* the argument */
  const char *file;   /* .safetensors or .npy */
  const char *tensor; /* safetensors: the tensor's name; NULL: the only one, or
                         the one named as the argument */
  /* With file NULL: the array itself, which has to live as long as the call. */
  const fp8_tensor_info *info; /* its type; the name says nothing */
  const void *data;
} fp8_batch_source;

typedef enum fp8_alarm_action {
  FP8_ALARM_WARN = 0, /* say so                              */
  FP8_ALARM_STOP,     /* write a checkpoint and end          */
  FP8_ALARM_SKIP      /* leave the state as before the step  */
} fp8_alarm_action;

/* A rule about a metric, see docs/Runtime.md. */
typedef struct fp8_alarm {
  char metric[256];
  char tensors[256]; /* pattern of tree paths; "": all                     */
  int32_t below;     /* 1: <, 0: >                                         */
  double threshold;  /* a number, or a factor of the median                */
  int64_t median_of; /* steps; 0: the threshold is a number                */
  fp8_alarm_action action;
  int32_t needs_trace; /* 1: the metric is one that only a traced step has */
} fp8_alarm;

/* Reads a rule as fp8_train does. */
FP8_CAPI fp8_status fp8_alarm_parse(const char *text, fp8_alarm *alarm);

/* Rules about a step's metrics, and what they remember of earlier steps: for
   callers with a loop of their own. */
typedef struct fp8_alarms fp8_alarms;

/* Reads rules about the loss, the metrics and the trace of a step, which has to
   outlive them. FP8_ERROR_INVALID: a rule is malformed, or fits nothing. */
FP8_CAPI fp8_status fp8_alarms_create(const fp8_executable *step,
                                      const char *const *rules,
                                      int64_t num_rules, fp8_alarms **alarms);
/* NULL is fine. */
FP8_CAPI void fp8_alarms_destroy(fp8_alarms *alarms);
/* Whether a rule may ask for a step not to be taken: then its caller has to
   keep the state from before. */
FP8_CAPI int32_t fp8_alarms_may_skip(const fp8_alarms *alarms);
/* Checks what the last run of the step computed, the step of this number. Tells
   message (or NULL) each alarm, as fp8_train logs it; *skip and *stop become 1
   if a rule says so, else 0. Every step is to be checked, once. */
FP8_CAPI fp8_status fp8_alarms_check(fp8_alarms *alarms, fp8_step *step,
                                     int64_t number, fp8_message_fn message,
                                     void *user, int32_t *skip, int32_t *stop);

/* Writes the parameters, when training has ended, for other programs to read:
   directory/model.safetensors and directory/export.json. */
typedef struct fp8_export {
  const char *directory; /* created if missing */
  /* Takes tensors of the user's tree, or arguments of the step, by name and
     type. Its results of kind OUTPUT are what model.safetensors holds; scalars
     of kind METRIC go into export.json. */
  const fp8_executable *encode;
  /* Or NULL. Takes what encode returns and returns tensors of the user's tree:
     what the file says of them. */
  const fp8_executable *decode;
  /* Or NULL: an evaluation as in fp8_train_options, fed like that one, that is
     run on what decode returns and on the model: both losses are reported. */
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
  int32_t shuffle; /* 1: the rows of batches in an order drawn for each epoch */
  double holdout;  /* fraction of each data file; 0: 0.1; < 0: none    */
  const char *out_dir; /* created if missing                               */
  const char *fingerprint; /* of module, recipe and compiler; or NULL        */
  uint64_t seed;
  int64_t steps;            /* in total, those before a resume included      */
  int64_t checkpoint_every; /* 0: at the end only                            */
  int64_t keep_checkpoints; /* the newest so many stay; 0: all               */
  int64_t eval_every;       /* 0: at the end only (with eval)                */
  int64_t log_every;        /* lines where stdout is no terminal; 0: 10      */
  int32_t threads;          /* see fp8_step_create                           */
  int32_t resume;           /* from the newest valid checkpoint in out_dir   */
  int32_t overwrite;        /* 1: an earlier run's files in out_dir may go;
                               0: they are an error (without resume)         */
  int32_t no_signals;       /* 1: leave SIGINT and SIGTERM alone             */
  int32_t live;    /* progress line: 1 live ('\r'), -1 lines, 0 by isatty(1) */
  int32_t quiet;   /* 1: no messages but warnings, those on stderr  */
  int32_t profile; /* 1: time every launch and say so; profile.json,
                      timeline.json                         */
  fp8_message_fn message; /* NULL: stdout                                  */
  void *user;
  const char *verdicts;      /* text of verdicts.json, written when training
                                starts; or NULL                              */
  const char *memory_plan;   /* JSON of what the compiler planned, a part of
                                memory.json; or NULL                         */
  const char *const *alarms; /* rules, evaluated after every step        */
  int64_t num_alarms;
  int32_t trace;       /* 1: trace.jsonl, of the statistics of a traced step */
  int64_t trace_every; /* a line every so many steps; 0: 1                   */
  /* Both, or NULL both: the step stores some of its state otherwise than the
     user has it (FP8 payloads and scales, say).
     store takes state as the user has it and returns arguments of the step, by
     name and type; its arguments have the paths of the user's tree. load takes
     arguments of the step and returns what the user has: arguments of store,
     by name and type. What store takes and load does not return is an argument
     of the step too, of the same type: store reads it only.
     store runs once, on the initial values; load runs for each evaluation.
     Checkpoints hold the step's arguments. */
  const fp8_executable *store;
  const fp8_executable *load;
  /* Or NULL. With resume, a run that has nothing left to train needs no data
     for an export. */
  const fp8_export *export_weights;
  const char *recipe; /* text of recipe.yaml, written when training starts; or
                         NULL */
  const char *preset; /* of preset.yaml: the preset of the recipe's name; or
                         NULL */
  const char *cost;   /* JSON of what the compiler counted; with profile,
                         cost.json holds it and the machine's limits; or NULL */
  /* Or NULL. Ranks that train together, each with rows of its own: all call
     fp8_train with the same options. Rank 0 alone writes files and tells
     message anything. */
  fp8_group *group;
  int32_t sharded_checkpoints; /* with group, 1: each rank writes a share of
                                  the state to a file of its own; so it does
                                  anyway where state is dealt (shard)       */
} fp8_train_options;

/* Fills in what a package has for a run: functions, fingerprint, recipe,
   verdicts and memory plan; with exported (or NULL) the functions and the
   manifest of an export too. The rest stays as it is. Valid as long as the
   package. FP8_ERROR_INVALID: the package has no step, or nothing to export
   with. */
FP8_CAPI fp8_status fp8_package_options(const fp8_package *package,
                                        fp8_train_options *options,
                                        fp8_export *exported);

typedef struct fp8_train_summary {
  int64_t first_step; /* 0, or where it resumed */
  int64_t last_step;  /* steps in the state now */
  double first_loss;  /* of the run, log before a resume included */
  double last_loss;
  double mean_loss_10; /* over the last 10 (20) steps */
  double mean_loss_20;
  double heldout_loss;      /* NaN without eval */
  double tokens_per_second; /* median           */
  double step_seconds;      /* median           */
  int64_t tokens_per_step;
  fp8_memory memory;     /* of the step */
  char checkpoint[1024]; /* the last one's path, or "" */
} fp8_train_summary;

/* Trains until steps, SIGINT/SIGTERM, a non-finite value or an error; out_dir
   gets log.csv, log.jsonl, loss.svg, memory.json,
   checkpoint-<step>.safetensors, or several files and
   checkpoint-<step>.safetensors.index.json. summary (or NULL) is filled as far
   as it came, whatever the status. */
FP8_CAPI fp8_status fp8_train(const fp8_train_options *options,
                              fp8_train_summary *summary);

/* Evaluates the state of a step on held-out data as fp8_train does, and leaves
   it as it is. step: of options->step, or of an executable of the same
   arguments. Of the options these count: step, eval, store, load, data_files,
   eval_files, holdout, eval_batches, init and init_file (for arguments of eval
   that are no state of the step), seed, threads, no_signals, and group, whose
   ranks then all call this, with all of the state (fp8_step_gather), and
   evaluate some of the batches each. Tells message one line of JSON:
   {"heldout_loss": 1.5, "heldout_metrics": {PATH: ...}, "batches": 8}, without
   "heldout_metrics" if eval has no others; null is a value that is not finite.
   FP8_INTERRUPTED: by SIGINT or SIGTERM, of one rank alone. */
FP8_CAPI fp8_status fp8_evaluate(const fp8_train_options *options,
                                 fp8_step *step, fp8_message_fn message,
                                 void *user);

/* Writes the weights of a step's state as fp8_train does at its end, to
   options->export_weights->directory. number: which step export.json says that
   they are of. The held-out losses are computed if export_weights->eval is
   given and the options say what on, which is as for fp8_evaluate. */
FP8_CAPI fp8_status fp8_export_weights(const fp8_train_options *options,
                                       fp8_step *step, int64_t number);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_H */
