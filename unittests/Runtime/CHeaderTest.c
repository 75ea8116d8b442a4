/*===- CHeaderTest.c - Runtime.h is a C header ----------------------------===*\
|*                                                                            *|
|* Compiled as C: a complete use of the ABI, called from LaunchTest.cpp.      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "fp8-c/Runtime.h"
#include "fp8-c/Transport.h"

#include <string.h>

static void addOne(int64_t task, void *const *operands, void *scratch) {
  const float *in = operands[0];
  float *out = operands[1];
  (void)scratch;
  out[task] = in[task] + 1;
}

static void entry(fp8_step *step) {
  const int64_t operands[2] = {~(int64_t)0, ~(int64_t)1};
  fp8_launch(step, 0, addOne, 4, operands, NULL, 2);
}

int fp8RunFromC(void) {
  const int64_t dims[1] = {4};
  fp8_tensor_info in, out;
  fp8_executable_desc desc;
  fp8_executable *executable;
  fp8_step *step;
  float *x;
  int i, good = 1;
  memset(&in, 0, sizeof(in));
  memset(&desc, 0, sizeof(desc));
  in.name = "x";
  in.dtype = FP8_DTYPE_F32;
  in.rank = 1;
  in.dims = dims;
  in.role = FP8_ROLE_FROZEN;
  out = in;
  out.name = "y";
  out.kind = FP8_KIND_OUTPUT;
  out.state_arg = -1;
  desc.name = "c";
  desc.entry = entry;
  desc.arguments = &in;
  desc.num_arguments = 1;
  desc.results = &out;
  desc.num_results = 1;
  if (fp8_executable_create(&desc, &executable) != FP8_OK)
    return 0;
  if (fp8_step_create(executable, 2, &step) != FP8_OK)
    return 0;
  x = fp8_step_argument(step, 0);
  for (i = 0; i < 4; ++i)
    x[i] = (float)i;
  good = fp8_step_run(step) == FP8_OK;
  x = fp8_step_result(step, 0);
  for (i = 0; i < 4; ++i)
    good = good && x[i] == (float)(i + 1);
  fp8_step_destroy(step);
  fp8_executable_destroy(executable);
  return good;
}
