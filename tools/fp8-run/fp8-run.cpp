//===- fp8-run.cpp - Compile a step and train, or run a function once -----===//
//
// A thin client of the compiler (JIT) and of the runtime's C ABI.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "CompileOptions.h"
#include "ExplainSignature.h"
#include "Messages.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Compiler/InitialValues.h"
#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Compiler/Package.h"
#include "fp8/Compiler/Program.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Init.h"
#include "fp8/Run/ExitCode.h"
#include "fp8/Run/Process.h"
#include "fp8/Run/Ranks.h"
#include "fp8/Run/Train.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Support/Recipe.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Splits `KEY=VALUE` options.
LogicalResult
splitPairs(const cl::list<std::string> &list,
           SmallVectorImpl<std::pair<std::string, std::string>> &pairs) {
  for (const std::string &text : list) {
    auto parts = fp8binding::splitAssignment(text);
    if (!parts) {
      usageError("expected --" + list.ArgStr + " KEY=VALUE but got '" + text +
                 "'");
      return failure();
    }
    pairs.emplace_back(parts->first, parts->second);
  }
  return success();
}

int printRecipe(const Options &flags, MLIRContext &context) {
  FailureOr<Recipe> recipe =
      loadRecipe(flags.recipeName(), &context,
                 SmallVector<std::string>(flags.set.begin(), flags.set.end()));
  if (failed(recipe))
    return 1;
  recipe->print(llvm::outs());
  return 0;
}

int runOnce(const Options &flags, MLIRContext &context,
            const SignatureOptions &signature, const Cache *cache) {
  if (flags.outputs.empty())
    return usageError("expected --outputs OUT.safetensors with --entry");
  CompileOptions options = makeCompileOptions(flags, signature, cache);
  options.name = "function";
  options.signature.functionKind = FunctionKind::Function;
  FailureOr<Executable> compiled =
      compileFile(flags.stepFile, options, context, makeNotice(flags));
  if (failed(compiled))
    return 1;
  auto loaded = LoadedExecutable::load(std::move(*compiled));
  if (!loaded)
    return fail(loaded.takeError());
  return fp8run::exitCode(
      "fp8-run",
      fp8_run_once((*loaded)->function("function"),
                   flags.inputs.empty() ? nullptr : flags.inputs.c_str(),
                   flags.outputs.c_str(), flags.run.threads));
}

/// Returns a check of the arrays that are to feed the step or the evaluation.
CheckArguments makeCheck(const fp8run::RunOptions &run, MLIRContext &context,
                         bool isEvaluation) {
  return [&run, &context, isEvaluation](
             ArrayRef<TensorDescription> arguments) -> LogicalResult {
    std::vector<fp8_tensor_info> infos;
    for (const TensorDescription &argument : arguments)
      infos.push_back(infoOf(argument));
    std::string mistake = fp8run::findBatchMistake(run, infos, isEvaluation);
    if (mistake.empty())
      return success();
    return emitError(UnknownLoc::get(&context)) << mistake;
  };
}

int train(const Options &flags, MLIRContext &context,
          const SignatureOptions &signature, const Cache *cache,
          fp8run::RunOptions &run, fp8run::Ranks &ranks) {
  for (const std::string &mistake :
       {run.findMistake(), flags.findExportMistake()})
    if (!mistake.empty())
      return usageError(mistake);
  if (int status = ranks.join(run))
    return status;
  if (int status = fp8run::checkFiles(run))
    return status;
  if (int status = ranks.waitForFirst())
    return status;
  ProgramOptions options = makeProgramOptions(flags, run, signature, cache);
  options.compile.hasData = run.hasData() || run.isExportAlone();
  // A step in shard_map has other batches when it is compiled.
  if (!run.dataParallel) {
    if (!run.batches.empty())
      options.compile.checkArguments = makeCheck(run, context, false);
    if (!run.evalBatches.empty())
      options.checkEvaluation = makeCheck(run, context, true);
  }
  FailureOr<Executable> program = compileProgram(options, context);
  if (failed(program))
    return 1;
  if (int status = ranks.letOthersFollow())
    return status;
  auto loaded = LoadedExecutable::load(std::move(*program));
  if (!loaded)
    return fail(loaded.takeError());
  llvm::outs().flush();
  fp8run::printReports(run, (*loaded)->package());
  return fp8run::train(run, (*loaded)->package());
}

int emitPackage(const Options &flags, MLIRContext &context,
                const SignatureOptions &signature, const Cache *cache) {
  if (std::string mistake = flags.findExportMistake(); !mistake.empty())
    return usageError(mistake);
  FailureOr<Executable> program = compileProgram(
      makeProgramOptions(flags, makeRunOptions(flags), signature, cache),
      context);
  if (failed(program))
    return 1;
  if (llvm::Error error = writePackage(*program, flags.packageDir))
    return fail(std::move(error));
  if (flags.run.quiet)
    return 0;
  llvm::outs() << program->text("summary.txt") << "package   "
               << flags.packageDir << ": ";
  llvm::interleaveComma(
      program->functions, llvm::outs(),
      [](const ExecutableFunction &each) { llvm::outs() << each.name; });
  llvm::outs() << "\n";
  return 0;
}

/// Returns a mistake in the name of the GPU; "" if there is none.
std::string findTargetMistake(const Options &flags, MLIRContext &context) {
  StringRef gpu = flags.target;
  if (!gpu.consume_front("nvptx:"))
    return "";
  context.loadDialect<FP8Dialect>();
  auto target = makeGPUTarget(&context, gpu);
  return target ? "" : llvm::toString(target.takeError());
}

/// On a machine without a GPU, a run for one goes to the CPU and says so. A
/// package may be for another machine.
void chooseTarget(Options &flags) {
  if (flags.target == "cpu" || fp8_gpu_find() == FP8_OK)
    return;
  llvm::errs() << "fp8-run: warning: " << fp8_last_error()
               << "; it is compiled for the CPU instead\n";
  flags.target.setValue("cpu");
}

/// Returns a mistake that any use of a step can have; "" if there is none.
std::string findStepMistake(const Options &flags, MLIRContext &context) {
  if (flags.files.empty())
    return "expected STEP.mlir (see --help)";
  if (flags.files.size() > 1)
    return "expected one STEP.mlir but got '" +
           llvm::join(flags.files, "', '") + "' (see --help)";
  std::string mistake = fp8run::findThreadsMistake(flags.run.threads);
  return mistake.empty() ? findTargetMistake(flags, context) : mistake;
}

/// Reports a module that cannot be read, which is not opened: it may be a pipe.
llvm::Error checkModules(const Options &flags) {
  SmallVector<StringRef> files = {flags.stepFile};
  if (isInitializer(flags.initFile))
    files.push_back(flags.initFile);
  if (!flags.evalFile.empty())
    files.push_back(flags.evalFile);
  for (StringRef file : files)
    if (std::error_code code =
            llvm::sys::fs::access(file, llvm::sys::fs::AccessMode::Exist))
      return llvm::createStringError("cannot read '" + file +
                                     "': " + code.message());
  return llvm::Error::success();
}

/// Compiles, and does what the command line asks for with the result.
int compileAndRun(Options &flags, MLIRContext &context,
                  const SignatureOptions &signature) {
  std::unique_ptr<Cache> cache;
  if (!flags.noCache) {
    auto opened = Cache::fromEnvironment();
    if (!opened)
      return fail(opened.takeError());
    cache = std::move(*opened);
  }
  if (!flags.packageDir.empty())
    return emitPackage(flags, context, signature, cache.get());
  chooseTarget(flags);
  if (!flags.entry.empty())
    return runOnce(flags, context, signature, cache.get());
  fp8run::RunOptions run = makeRunOptions(flags);
  fp8run::Ranks ranks;
  return ranks.leave(train(flags, context, signature, cache.get(), run, ranks));
}

/// Does what the command line asks for; returns the exit status.
int runCommand(Options &flags, MLIRContext &context) {
  if (flags.printRecipe)
    return printRecipe(flags, context);
  if (std::string mistake = findStepMistake(flags, context); !mistake.empty())
    return usageError(mistake);
  flags.stepFile = flags.files.front();
  if (llvm::Error error = checkModules(flags))
    return fail(std::move(error));
  SignatureOptions signature;
  signature.loss = flags.lossPath;
  if (failed(splitPairs(flags.roles, signature.roles)) ||
      failed(splitPairs(flags.states, signature.states)))
    return 2;
  if (!flags.explain)
    return compileAndRun(flags, context, signature);
  addBatches(makeRunOptions(flags), signature);
  return explainSignature(flags, context, signature);
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  fp8run::prepareProcess();
  removeInheritedOptions();
  Options flags;
  cl::HideUnrelatedOptions(category);
  if (int status = parseCommandLine(argc, argv, flags))
    return status;
  DialectRegistry registry;
  fp8::registerAllDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    for (const std::string &line : formatDiagnostic(diagnostic))
      llvm::errs() << "fp8-run: " << line << "\n";
    return success();
  });
  // LLVM's stream and the C library's are two.
  int status = finishStandardOutput("fp8-run", runCommand(flags, context));
  return fp8run::finishOutput("fp8-run", status);
}
