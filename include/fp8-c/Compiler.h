/*===- Compiler.h - C interface of the compiler ---------------------------===*\
|*                                                                            *|
|* Compiles the files of a step as fp8-run does, to functions that the        *|
|* runtime (Runtime.h) runs in this process, or to a package. The library is  *|
|* libfp8_compiler; it needs LLVM and MLIR.                                   *|
|*                                                                            *|
|* Every function that can fail returns an fp8_status;                        *|
|* fp8_compiler_last_error() has the message. Structures begin zeroed.        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FP8_C_COMPILER_H
#define FP8_C_COMPILER_H

#include "fp8-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions that were compiled for one run. */
typedef struct fp8_program fp8_program;

/* What is to be compiled, and how; see fp8-run --help. NULL and 0 are the
   defaults. */
typedef struct fp8_compile_options {
  const char *step;   /* StableHLO, as JAX prints it; required               */
  const char *init;   /* INIT.mlir, or a safetensors file with the values    */
  const char *eval;   /* EVAL.mlir                                           */
  const char *recipe; /* a name or a .yaml file; NULL: none            */
  const char *const *set; /* KEY=VALUE: keys of the recipe                 */
  int64_t num_set;
  const char *const *roles; /* PATH=ROLE: arguments' roles                 */
  int64_t num_roles;
  const char *const *states; /* ARG=RESULT: which result replaces it       */
  int64_t num_states;
  const char *loss;             /* which result is the loss                   */
  const char *entry;            /* the function of the files, if not the only
                                   public one                                 */
  const char *export_format;    /* f32, bf16, f8E4M3FN: functions to export
                                   weights are made too                       */
  const char *resume_directory; /* its newest checkpoint stands for init   */
  const char *dump_directory;   /* the IR after each stage goes here       */
  int32_t fail_on_fallback; /* 1: a dot that cannot become FP8 is an error */
  int32_t trace;    /* 1: statistics of what is quantized are results      */
  int32_t threads;  /* of the compiler; 0: one a core                      */
  int32_t no_cache; /* 1: neither read what was compiled before nor keep it */
  const char *target_cpu; /* as fp8-run --target-cpu; NULL: this machine's */
  /* 1: the step runs on several ranks, each with rows of its own (fp8-run
     --data-parallel). The others are about such steps alone. */
  int32_t data_parallel;
  int32_t zero;        /* 1: masters and moments are dealt to the ranks      */
  int32_t global_amax; /* 1: current scales follow from all ranks' amaxes    */
  const char *loss_reduction; /* mean or sum, where it cannot be proved      */
  /* Errors, warnings and notes, a line each ("error: FILE:LINE:COLUMN: ...");
     NULL: stderr. */
  fp8_message_fn diagnostic;
  void *user;
} fp8_compile_options;

/* The message of this thread's last failure here; "" before any. */
FP8_CAPI const char *fp8_compiler_last_error(void);

/* Version of compiler and LLVM, and a hash of the build that tells it from
   others. */
FP8_CAPI const char *fp8_compiler_version(void);
FP8_CAPI const char *fp8_compiler_build(void);

/* Compiles. FP8_ERROR_INVALID: an option is wrong, or what the files say. */
FP8_CAPI fp8_status fp8_compile(const fp8_compile_options *options,
                                fp8_program **program);
/* NULL is fine. Packages that fp8_program_load gave go too. */
FP8_CAPI void fp8_program_destroy(fp8_program *program);

/* Links the functions in this process, once, and returns them as a package,
   valid as long as the program. */
FP8_CAPI fp8_status fp8_program_load(fp8_program *program,
                                     const fp8_package **package);

/* Writes a package for fp8_package_open and fp8-train to a directory, which is
   made if it is missing. FP8_ERROR_IO: it cannot be written or linked. */
FP8_CAPI fp8_status fp8_program_emit(const fp8_program *program,
                                     const char *directory);

/* Runs passes over a module, a text, as fp8-opt does. pipeline: passes and
   pipelines by name, with options in braces, separated by commas:
   "fp8-import,fp8-quantize{recipe=coat}". *result is the module's text after
   them, with locations if locations is 1, for fp8_text_destroy. Errors,
   warnings and remarks go to diagnostic (or NULL: stderr), a line each.
   FP8_ERROR_INVALID: the text is no module, the pipeline none, or a pass fails.
 */
FP8_CAPI fp8_status fp8_run_passes(const char *module, const char *pipeline,
                                   int32_t locations, fp8_message_fn diagnostic,
                                   void *user, char **result);
FP8_CAPI void fp8_text_destroy(char *text);

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_COMPILER_H */
