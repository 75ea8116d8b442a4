/* Trains with a package, in plain C and without the fp8 compiler:
 *
 *   fp8-run STEP.mlir --init INIT.mlir --recipe tensorwise --emit-package DIR
 *   cc -I include train.c -L build/lib -lfp8_runtime -Wl,-rpath,build/lib
 *   ./a.out DIR TEXT OUT STEPS
 */

#include "fp8-c/Runtime.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(fp8_status status, fp8_package *package) {
  fprintf(stderr, "error: %s: %s\n", fp8_status_name(status), fp8_last_error());
  fp8_package_close(package);
  return 1;
}

int main(int argc, char **argv) {
  fp8_package *package = NULL;
  fp8_train_options options = {0};
  fp8_train_summary summary;
  fp8_status status;
  const char *files[1];
  if (argc != 5) {
    fprintf(stderr, "usage: %s PACKAGE TEXT OUT STEPS\n", argv[0]);
    return 2;
  }
  status = fp8_package_open(argv[1], &package);
  if (status == FP8_OK)
    status = fp8_package_options(package, &options, NULL);
  if (status != FP8_OK)
    return fail(status, package);
  files[0] = argv[2];
  options.data_files = files;
  options.num_data_files = 1;
  options.out_dir = argv[3];
  options.steps = atoi(argv[4]);
  options.overwrite = 1;
  status = fp8_train(&options, &summary);
  if (status != FP8_OK)
    return fail(status, package);
  printf("loss %.9g -> %.9g\n", summary.first_loss, summary.last_loss);
  fp8_package_close(package);
  return 0;
}
