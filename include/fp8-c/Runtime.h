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

/* For all callers. */
#include "fp8-c/Runtime/Executable.h" /* compiled functions                   */
#include "fp8-c/Runtime/Status.h"     /* version, failures, messages          */
#include "fp8-c/Runtime/Tensors.h"    /* the arguments and results of one     */

/* For callers with a training loop of their own. */
#include "fp8-c/Runtime/Alarms.h"      /* rules about the metrics of a step   */
#include "fp8-c/Runtime/Profile.h"     /* the times of launches               */
#include "fp8-c/Runtime/Ranks.h"       /* processes that run a step together  */
#include "fp8-c/Runtime/Step.h"        /* a function with its memory          */
#include "fp8-c/Runtime/TensorFiles.h" /* files, checkpoints                  */

/* For callers that let the runtime train. */
#include "fp8-c/Runtime/Package.h" /* functions from a directory              */
#include "fp8-c/Runtime/Train.h"   /* training, evaluations, exports          */

/* For compilers. */
#include "fp8-c/Runtime/GPUControl.h"     /* what functions for a GPU call    */
#include "fp8-c/Runtime/GPUKernels.h"     /* kernels for a GPU                */
#include "fp8-c/Runtime/GeneratedCode.h"  /* what compiled functions call     */
#include "fp8-c/Runtime/PackageLibrary.h" /* what a package's library has     */

#endif /* FP8_C_RUNTIME_H */
