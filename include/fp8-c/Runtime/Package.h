/*===- Runtime/Package.h - Functions with texts about them ----------------===*/

#ifndef FP8_C_RUNTIME_PACKAGE_H
#define FP8_C_RUNTIME_PACKAGE_H

#include "fp8-c/Runtime/Executable.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* FP8_C_RUNTIME_PACKAGE_H */
