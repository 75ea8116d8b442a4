//===- RunStage.cpp - One stage of a compilation --------------------------===//

#include "RunStage.h"
#include "Stopwatch.h"
#include "fp8/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fp8;

LogicalResult fp8::runStage(ModuleOp module, const CompileOptions &options,
                            StringRef stage, double &seconds,
                            function_ref<void(OpPassManager &)> build,
                            StageInput input) {
  Stopwatch watch;
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  build(pm);
  labelInternalErrors(pm, stage, input);
  LogicalResult result = pm.run(module);
  if (succeeded(result))
    result = verifyStage(module, stage);
  seconds += watch.seconds();
  if (options.dumpDir.empty() || failed(result))
    return result;
  SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, options.name + "-" + stage + ".mlir");
  // If the directory could not be created, opening the file reports it.
  (void)llvm::sys::fs::create_directories(options.dumpDir);
  if (llvm::Error error =
          writeFile(path, [&](raw_ostream &os) { module.print(os); }))
    return emitError(module.getLoc()) << llvm::toString(std::move(error));
  return success();
}
