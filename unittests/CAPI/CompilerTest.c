/*===- CompilerTest.c - The C interface of the compiler -------------------===*\
|*                                                                            *|
|* Compiles the step in the given file, runs it in this process, emits a      *|
|* package to the given directory, runs that, and compares the results.       *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#define _GNU_SOURCE /* dl_iterate_phdr */

#include "fp8-c/Compiler.h"

#include <link.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

static void check(int condition, const char *what) {
  if (condition)
    return;
  fprintf(stderr, "FAIL: %s (%s; %s)\n", what, fp8_compiler_last_error(),
          fp8_last_error());
  ++failures;
}

static void keep(void *user, const char *text) {
  snprintf((char *)user, 256, "%s", text);
}

/* Returns the loss after two steps. */
static float run(const fp8_package *package) {
  const fp8_executable *executable = fp8_package_function(package, "step");
  fp8_step *step = NULL;
  fp8_tensor_info info;
  float loss = NAN;
  check(fp8_step_create(executable, 1, &step) == FP8_OK, "step");
  if (!step)
    return loss;
  check(fp8_executable_num_arguments(executable) == 2, "arguments");
  check(fp8_executable_argument(executable, 1, &info) == FP8_OK &&
            info.role == FP8_ROLE_BATCH,
        "batch");
  ((float *)fp8_step_argument(step, 0))[0] = 3;
  ((float *)fp8_step_argument(step, 1))[0] = 2;
  for (int i = 0; i < 2; ++i)
    check(fp8_step_run(step) == FP8_OK, "run");
  for (int64_t i = 0; i < fp8_executable_num_results(executable); ++i)
    if (fp8_executable_result(executable, i, &info) == FP8_OK &&
        info.kind == FP8_KIND_LOSS)
      loss = *(float *)fp8_step_result(step, i);
  fp8_step_destroy(step);
  return loss;
}

/* Tests passes on text. */
static void runPasses(void) {
  const char *module = "func.func @f() -> i32 { %a = arith.constant 1 : i32 "
                       "%b = arith.addi %a, %a : i32 return %b : i32 }";
  char message[256] = "";
  char *text = NULL;
  check(fp8_run_passes(module, "canonicalize", 0, keep, message, &text) ==
                FP8_OK &&
            text && strstr(text, "arith.constant 2") && !strstr(text, "loc("),
        "passes");
  fp8_text_destroy(text);
  check(fp8_run_passes(module, "canonicalize", 1, keep, message, &text) ==
                FP8_OK &&
            text && strstr(text, "loc("),
        "locations");
  fp8_text_destroy(text);
  check(fp8_run_passes("func.func @f(", "", 0, keep, message, &text) ==
                FP8_ERROR_INVALID &&
            !text && strstr(message, "error: "),
        "no module");
  check(fp8_run_passes(module, "none-such", 0, keep, message, &text) ==
                FP8_ERROR_INVALID &&
            strstr(fp8_compiler_last_error(), "'none-such'"),
        "no pass");
  check(fp8_run_passes(module, "fp8-codegen", 0, keep, message, NULL) ==
            FP8_ERROR_INVALID,
        "no place");
}

/* Compiles for a GPU, which needs none, into DIRECTORY.gpu. */
static void checkGPU(const fp8_compile_options *base, const char *directory) {
  fp8_compile_options options = *base;
  fp8_program *program = NULL;
  char name[4096];
  options.target = "cuda";
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID &&
            !strcmp(fp8_compiler_last_error(),
                    "expected a target of cpu or nvptx:GPU (nvptx:sm_89, "
                    "nvptx:sm_90a, nvptx:sm_100a, nvptx:sm_120a) but got "
                    "'cuda'"),
        "kind of target");
  options.target = "nvptx:sm_1";
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID &&
            strstr(fp8_compiler_last_error(), "'sm_1'"),
        "GPU");
  options.target = NULL;
  options.gpu_image = "ptx";
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID &&
            !strcmp(fp8_compiler_last_error(),
                    "expected a target nvptx:GPU with gpu_image or "
                    "gpu_expand"),
        "image without a GPU");
  options.target = "nvptx:sm_90a";
  options.gpu_expand = -1;
  check(fp8_compile(&options, &program) == FP8_OK, "compile for a GPU");
  snprintf(name, sizeof(name), "%s.gpu", directory);
  check(program && fp8_program_emit(program, name) == FP8_OK, "emit for a GPU");
  fp8_program_destroy(program);
}

/* Counts libraries that are loaded by another path than their own. */
static int countAlias(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  *(int *)count += strstr(info->dlpi_name, "/./package.so") != NULL;
  return 0;
}

/* A package that is emitted again is another file, but a closed one leaves its
   path free. */
static void reopen(const fp8_program *program, const char *directory) {
  fp8_package *opened = NULL;
  char file[4096], kept[4096];
  int aliases = 0;
  snprintf(file, sizeof(file), "%s/package.so", directory);
  snprintf(kept, sizeof(kept), "%s/kept.so", directory);
  remove(kept);
  check(fp8_package_open(directory, &opened) == FP8_OK, "open once");
  fp8_package_close(opened);
  /* With a second name, its number is not given to the new file. */
  check(link(file, kept) == 0, "link");
  check(fp8_program_emit(program, directory) == FP8_OK, "emit again");
  check(fp8_package_open(directory, &opened) == FP8_OK, "open again");
  dl_iterate_phdr(countAlias, &aliases);
  check(aliases == 0, "a path of its own");
  fp8_package_close(opened);
  remove(kept);
}

int main(int argc, char **argv) {
  fp8_compile_options options = {0};
  fp8_program *program = NULL;
  const fp8_package *package = NULL;
  fp8_package *opened = NULL;
  char message[256] = "";
  const char *roles[1] = {"x=batch"}, *none[1] = {NULL};
  if (argc != 3)
    return 2;
  check(strncmp(fp8_compiler_version(), "fp8 ", 4) == 0, "version");
  check(strlen(fp8_compiler_build()) == 32, "build");
  runPasses();

  options.diagnostic = keep;
  options.user = message;
  options.no_cache = 1;
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID && !program &&
            !strcmp(fp8_compiler_last_error(), "expected a step but got none"),
        "no step");
  options.step = "/none.mlir";
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID && !program &&
            !strcmp(fp8_compiler_last_error(),
                    "cannot read '/none.mlir': No such file or directory") &&
            !strcmp(message, "error: cannot read '/none.mlir': No such file or "
                             "directory"),
        "no file");
  options.step = argv[1];
  options.num_set = 1;
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID &&
            !strcmp(fp8_compiler_last_error(),
                    "expected 1 settings of the recipe but got NULL for "
                    "number 0"),
        "no list of settings");
  options.num_set = 0;
  options.states = none;
  options.num_states = 1;
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID, "no state");
  options.num_states = -1;
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID, "few states");
  options.num_states = 0;
  options.roles = none;
  options.num_roles = 1;
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID, "no role");
  options.roles = roles;
  options.export_format = "f64";
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID, "format");
  options.export_format = NULL;
  options.target_cpu = "pentium-of-1993";
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID &&
            strstr(fp8_compiler_last_error(), "'pentium-of-1993'"),
        "target");
#if defined(__x86_64__)
  /* No CPU of today has its instructions. */
  options.target_cpu = "bdver4";
  check(fp8_compile(&options, &program) == FP8_OK, "old target");
  check(fp8_program_load(program, &package) == FP8_ERROR_INVALID && !package &&
            strstr(fp8_compiler_last_error(), "bdver4"),
        "code for another CPU");
  fp8_program_destroy(program);
  program = NULL;
#endif
  options.target_cpu = NULL;
  options.zero = 1;
  check(fp8_compile(&options, &program) == FP8_ERROR_INVALID &&
            !strcmp(fp8_compiler_last_error(),
                    "expected data_parallel with zero, global_amax, "
                    "global_batch or loss_reduction"),
        "zero without ranks");
  options.zero = 0;

  checkGPU(&options, argv[2]);
  check(fp8_compile(&options, &program) == FP8_OK, "compile");
  if (!program)
    return 1;
  check(fp8_program_load(program, &package) == FP8_OK, "load");
  check(fp8_program_emit(program, argv[2]) == FP8_OK, "emit");
  check(fp8_package_open(argv[2], &opened) == FP8_OK, "open");
  if (package && opened) {
    check(fp8_package_text(opened, "signature.json") != NULL, "signature");
    /* w goes 3, 3 - 2 * 0.5 = 2; the loss is w * x before the update. */
    check(run(package) == 4, "in this process");
    check(run(opened) == 4, "as a package");
    check(!strcmp(fp8_package_text(package, "fingerprint"),
                  fp8_package_text(opened, "fingerprint")),
          "fingerprint");
  }
  fp8_package_close(opened);
  reopen(program, argv[2]);
  fp8_program_destroy(program);
  return failures != 0;
}
