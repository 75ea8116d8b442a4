/*===- Runtime/GeneratedCode.h - What compiled functions call -------------===*/

#ifndef FP8_C_RUNTIME_GENERATEDCODE_H
#define FP8_C_RUNTIME_GENERATEDCODE_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_GENERATEDCODE_H */
