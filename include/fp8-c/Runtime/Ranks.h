/*===- Runtime/Ranks.h - Processes that run a step together ---------------===*/

#ifndef FP8_C_RUNTIME_RANKS_H
#define FP8_C_RUNTIME_RANKS_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_RANKS_H */
