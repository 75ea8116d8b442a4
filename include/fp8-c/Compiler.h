/*===- Compiler.h - C interface of the compiler ---------------------------===*\
|*                                                                            *|
|* Compiles the files of a step as fp8-run does, either to functions that the *|
|* runtime (Runtime.h) runs in this process, or to a package. The library is  *|
|* libfp8_compiler; it needs LLVM and MLIR.                                   *|
|*                                                                            *|
|* Every function that can fail returns an fp8_status;                        *|
|* fp8_compiler_last_error() returns the message. Callers zero-initialize     *|
|* structures.                                                                *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FP8_C_COMPILER_H
#define FP8_C_COMPILER_H

#include "fp8-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions compiled for one run. */
typedef struct fp8_program fp8_program;

/* What to compile, and how; see fp8-run --help. NULL and 0 are the defaults. */
typedef struct fp8_compile_options {
  const char *step;   /* StableHLO, as JAX prints it; required               */
  const char *init;   /* INIT.mlir, or a safetensors file with the values    */
  const char *eval;   /* EVAL.mlir                                           */
  const char *recipe; /* a name or a .yaml file; NULL: none            */
  const char *const *set; /* KEY=VALUE: keys of the recipe                 */
  int64_t num_set;
  const char *const *roles; /* PATH=ROLE: arguments' roles                 */
  int64_t num_roles;
  const char *const *states; /* ARG=RESULT: which result replaces an argument */
  int64_t num_states;
  const char *loss;             /* which result is the loss                   */
  const char *entry;            /* the function of the files, if not the only
                                   public one                                 */
  const char *export_format;    /* f32, bf16 or f8E4M3FN: also compiles the
                                   functions that export weights             */
  const char *resume_directory; /* its newest checkpoint replaces init     */
  const char *dump_directory;   /* receives the IR after each stage        */
  int32_t fail_on_fallback; /* 1: a dot that cannot become FP8 is an error */
  int32_t trace;   /* 1: adds statistics of quantized tensors as results      */
  int32_t threads; /* of the compiler; 0: one a core                      */
  int32_t run_threads; /* for which the code is divided into tasks: its speed
                          depends on it, no result does; 0: one a core    */
  int32_t no_cache; /* 1: neither read nor write the cache                  */
  const char *target_cpu; /* as fp8-run --target-cpu; NULL: this machine's */
  /* As fp8-run --target: cpu, or nvptx:GPU (nvptx:sm_90a, ...), whose host is
     target_cpu; NULL: cpu. The two options after it are for GPUs alone. */
  const char *target;
  const char *gpu_image; /* cubin, ptx or bitcode; NULL: cubin, if ptxas is
                            found, else ptx                                  */
  int64_t gpu_expand;    /* the most launches of a loop that is expanded in
                            the step's graph; -1: none                       */
  /* 1: the step runs on several ranks, each with its own rows of the batch
     (fp8-run --data-parallel). The options below concern such steps alone. */
  int32_t data_parallel;
  int32_t zero;         /* 1: masters and moments are dealt to the ranks      */
  int32_t global_amax;  /* 1: current scales follow from all ranks' amaxes    */
  int32_t global_batch; /* the number of ranks that share the batch of the step;
                           0: each rank has a batch of that size             */
  const char *loss_reduction; /* mean or sum, needed if it cannot be proved */
  /* Receives errors, warnings and notes, one line each ("error:
     FILE:LINE:COLUMN: ..."); NULL: stderr. */
  fp8_message_fn diagnostic;
  void *user;
} fp8_compile_options;

/* Returns the message of this thread's last failure in this library; "" if
   there was none. */
FP8_CAPI const char *fp8_compiler_last_error(void);

/* Return the versions of the compiler and of LLVM, and a hash that identifies
   the build. */
FP8_CAPI const char *fp8_compiler_version(void);
FP8_CAPI const char *fp8_compiler_build(void);

/* Compiles. FP8_ERROR_INVALID: an option is wrong, or the files are invalid. */
FP8_CAPI fp8_status fp8_compile(const fp8_compile_options *options,
                                fp8_program **program);
/* Accepts NULL. Packages from fp8_program_load are destroyed too. */
FP8_CAPI void fp8_program_destroy(fp8_program *program);

/* Links the functions into this process, once, and returns them as a package,
   valid as long as the program. */
FP8_CAPI fp8_status fp8_program_load(fp8_program *program,
                                     const fp8_package **package);

/* Writes a package for fp8_package_open and fp8-train to a directory, which is
   created if missing. FP8_ERROR_IO: it cannot be written or linked. */
FP8_CAPI fp8_status fp8_program_emit(const fp8_program *program,
                                     const char *directory);

/* Runs passes on the text of a module, as fp8-opt does. pipeline: names of
   passes and pipelines, with options in braces, separated by commas:
   "fp8-import,fp8-quantize{recipe=coat}". *result is the text of the resulting
   module, with locations if locations is 1; free it with fp8_text_destroy.
   diagnostic (or, if NULL, stderr) receives errors, warnings and remarks, one
   line each. FP8_ERROR_INVALID: the module or the pipeline is malformed, or a
   pass fails. */
FP8_CAPI fp8_status fp8_run_passes(const char *module, const char *pipeline,
                                   int32_t locations, fp8_message_fn diagnostic,
                                   void *user, char **result);
FP8_CAPI void fp8_text_destroy(char *text);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_COMPILER_H */
