//===- CompileOptions.cpp - What fp8-run asks the compiler for ------------===//

#include "CompileOptions.h"
#include "fp8/Compiler/InitialValues.h"

#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fp8;

/// Prints one line for each function that is ready.
static void printNotice(const CompiledNotice &notice) {
  const CompileStats &stats = notice.stats;
  auto count = [](int64_t number) { return static_cast<long long>(number); };
  std::string name = notice.name.str();
  if (notice.isFromCache) {
    llvm::outs() << llvm::format(
        "read %s from the cache in %.2f s: %lld launches of %lld kernels\n",
        name.c_str(), notice.seconds, count(stats.launches),
        count(stats.kernels));
  } else {
    llvm::outs() << llvm::format(
        "compiled %s in %.2f s: %lld launches of %lld kernels (import %.2f, "
        "fp8 %.2f, structure %.2f, kernels %.2f, codegen %.2f, llvm %.2f)",
        name.c_str(), stats.totalSeconds(), count(stats.launches),
        count(stats.kernels), stats.importSeconds, stats.fp8Seconds,
        stats.structureSeconds, stats.kernelsSeconds, stats.codegenSeconds,
        stats.llvmSeconds);
    if (stats.cachedKernels > 0)
      llvm::outs() << "; " << stats.cachedKernels
                   << " kernels were in the cache";
    llvm::outs() << "\n";
  }
  llvm::outs().flush();
}

std::function<void(const CompiledNotice &)>
fp8::makeNotice(const Options &flags) {
  if (flags.run.quiet)
    return nullptr;
  return printNotice;
}

/// Returns true if the user asks for the trace or an alarm needs a metric of
/// it.
static bool isTraced(const fp8run::RunOptions &run) {
  return run.trace || llvm::any_of(run.alarms, [](const std::string &rule) {
           fp8_alarm alarm;
           return fp8_alarm_parse(rule.c_str(), &alarm) == FP8_OK &&
                  alarm.needs_trace;
         });
}

fp8run::RunOptions fp8::makeRunOptions(const Options &flags) {
  fp8run::RunOptions run = flags.run;
  run.program = "fp8-run";
  run.hasInit = isInitializer(flags.initFile);
  run.hasEval = !flags.evalFile.empty();
  if (!run.hasInit)
    run.initFile = flags.initFile;
  run.stepFile = flags.stepFile;
  return run;
}

void fp8::addBatches(const fp8run::RunOptions &run,
                     SignatureOptions &signature) {
  for (const std::string &path : run.batchPaths())
    if (llvm::none_of(signature.roles,
                      [&](auto &role) { return role.first == path; }))
      signature.roles.push_back({path, "batch"});
}

CompileOptions fp8::makeCompileOptions(const Options &flags,
                                       const SignatureOptions &signature,
                                       const Cache *cache) {
  CompileOptions options;
  options.entry = flags.entry;
  options.failOnFallback = flags.failOnFallback;
  options.recipe = flags.recipeName();
  options.recipeOverrides.assign(flags.set.begin(), flags.set.end());
  options.signature = signature;
  options.threads = options.runThreads = flags.run.threads;
  options.optimize = !flags.noOptimize;
  options.targetCPU = flags.targetCPU;
  options.setTarget(flags.target); // parseCommandLine has checked it.
  options.gpuImage = flags.gpuImage;
  options.gpuExpand = flags.gpuExpand;
  options.dumpDir = flags.dumpIR;
  options.cache = cache;
  return options;
}

ProgramOptions fp8::makeProgramOptions(const Options &flags,
                                       const fp8run::RunOptions &run,
                                       SignatureOptions signature,
                                       const Cache *cache) {
  addBatches(run, signature);
  ProgramOptions program;
  program.stepFile = flags.stepFile;
  program.initFile = flags.initFile;
  program.evalFile = flags.evalFile;
  program.compile = makeCompileOptions(flags, signature, cache);
  program.compile.dataParallel = flags.run.dataParallel;
  program.compile.lossReduction = flags.lossReduction;
  program.compile.zero = flags.run.zero;
  program.compile.globalAmax = flags.run.globalAmax;
  program.compile.globalBatch = flags.run.globalBatch;
  program.compile.trace = isTraced(flags.run);
  if (!flags.run.exportDir.empty())
    program.compile.exportFormat = symbolizeExportFormat(flags.exportFormat);
  if (flags.run.resume)
    program.resumeDirectory = flags.run.outDir;
  program.notice = makeNotice(flags);
  return program;
}
