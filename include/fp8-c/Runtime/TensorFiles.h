/*===- Runtime/TensorFiles.h - Files in the format safetensors ------------===*/

#ifndef FP8_C_RUNTIME_TENSORFILES_H
#define FP8_C_RUNTIME_TENSORFILES_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_TENSORFILES_H */
