//===- fp8-run.cpp - Compile a step and train, or run a function once -----===//
//
// A thin client of the compiler (JIT) and of the runtime's C ABI.
//
//===----------------------------------------------------------------------===//

#include "fp8/Binding/PathBinding.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Compiler/InitialValues.h"
#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Compiler/Package.h"
#include "fp8/Compiler/Program.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Init.h"
#include "fp8/Run/ExitCode.h"
#include "fp8/Run/OptionTable.h"
#include "fp8/Run/Process.h"
#include "fp8/Run/Ranks.h"
#include "fp8/Run/Train.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Support/Recipe.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"

#include <functional>
#include <memory>

using namespace mlir;
using namespace mlir::fp8;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("fp8-run options");

int usageError(const llvm::Twine &message) {
  llvm::errs() << "fp8-run: error: " << message << "\n";
  return 2;
}

/// Options of the table that both programs have, as LLVM's command line takes
/// them: one with a value, and a flag.
class ValueOption : public cl::opt<std::string> {
public:
  explicit ValueOption(const fp8run::Option &option)
      : opt(StringRef(option.name), cl::desc(option.help),
            cl::value_desc(option.value),
            option.isList ? cl::ZeroOrMore : cl::Optional, cl::cat(category)),
        option(option) {}

private:
  bool handleOccurrence(unsigned, StringRef, StringRef text) override {
    std::string mistake = option.set(text.str());
    if (!mistake.empty())
      usageError(mistake);
    return !mistake.empty();
  }

  const fp8run::Option &option;
};

class FlagOption : public cl::opt<bool> {
public:
  explicit FlagOption(const fp8run::Option &option)
      : opt(StringRef(option.name), cl::desc(option.help), cl::cat(category),
            cl::callback([&option](const bool &isOn) {
              option.set(isOn ? "true" : "false");
            })) {}
};

/// Constructed in main after LLVM's own options are removed (some have the same
/// names).
struct Options {
  Options();

  fp8run::RunOptions run;
  // LLVM's options of the table refer to it.
  std::vector<fp8run::Option> table = fp8run::runOptionTable(run);
  std::vector<std::unique_ptr<cl::Option>> ofTable;

  // Required, but main checks that, for its own error message.
  cl::list<std::string> files{cl::Positional, cl::desc("STEP.mlir"),
                              cl::cat(category)};
  std::string stepFile;
  cl::opt<std::string> initFile{
      "init",
      cl::desc("Initial values: a function (.mlir) or a safetensors "
               "file, by tree path"),
      cl::value_desc("INIT.mlir|W.safetensors"), cl::cat(category)};
  cl::opt<std::string> recipe{
      "recipe", cl::init("fp8"),
      cl::desc("Recipe: a name (default: fp8; with --entry none) or a .yaml "
               "file"),
      cl::value_desc("NAME|FILE.yaml"), cl::cat(category)};
  cl::list<std::string> set{
      "set",
      cl::desc("Set a key of the recipe, e.g. forward.activation.format"),
      cl::value_desc("KEY=VALUE"), cl::cat(category)};
  cl::opt<bool> printRecipe{
      "print-recipe",
      cl::desc("Print the effective recipe with its defaults, and stop"),
      cl::cat(category)};
  cl::opt<std::string> evalFile{"eval",
                                cl::desc("Function that gives the loss "
                                         "(and metrics) on held-out data"),
                                cl::value_desc("EVAL.mlir"), cl::cat(category)};
  cl::opt<std::string> targetCPU{
      "target-cpu", cl::init("native"),
      cl::desc("CPU to generate code for: native, or LLVM's name of it "
               "(x86-64-v3, znver4, ...)"),
      cl::value_desc("CPU"), cl::cat(category)};
  cl::opt<std::string> target{
      "target",
      cl::desc("Where kernels run: cpu, or nvptx: with an NVIDIA GPU "
               "(nvptx:sm_89, nvptx:sm_90a, nvptx:sm_100a, nvptx:sm_120a); "
               "with nvptx:sm_90a,cublaslt cuBLASLt computes large dots, with "
               "nvptx:sm_90a,cublaslt=all every dot that it supports"),
      cl::value_desc("TARGET"), cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> gpuImage{
      "gpu-image",
      cl::desc("Form of a GPU's kernels: cubin, ptx (the driver "
               "compiles it) or bitcode; default: cubin if CUDA's "
               "assembler is found, else ptx"),
      cl::value_desc("IMAGE"), cl::cat(category)};
  cl::opt<int64_t> gpuExpand{
      "gpu-expand",
      cl::desc(
          "On a GPU, loops of up to this many launches are expanded in the "
          "step's graph; the GPU counts the others"),
      cl::value_desc("LAUNCHES"), cl::init(2048), cl::cat(category)};
  cl::opt<bool> noOptimize{"no-optimize",
                           cl::desc("Skip LLVM's optimizations, for tests "
                                    "that compile more than they run"),
                           cl::Hidden, cl::cat(category)};
  cl::opt<bool> failOnFallback{
      "fail-on-fallback",
      cl::desc("Fail if a dot that the recipe quantizes "
               "cannot be converted"),
      cl::cat(category)};
  cl::opt<std::string> lossReduction{
      "loss-reduction",
      cl::desc(
          "With --data-parallel, if it cannot be proved: whether the loss is "
          "the mean or the sum over the rows of the batch"),
      cl::value_desc("mean|sum"), cl::cat(category)};
  cl::opt<unsigned, true> zero{
      "zero",
      cl::location(run.zero),
      cl::desc("With --data-parallel: 1 distributes masters "
               "and moments over the ranks, "
               "each of which updates its own (ZeRO-1)"),
      cl::value_desc("0|1"),
      cl::init(0),
      cl::cat(category)};
  cl::opt<bool, true> globalAmax{
      "global-amax", cl::location(run.globalAmax),
      cl::desc(
          "With --data-parallel: compute current scales from the amaxes of "
          "all ranks, not only of a rank's own rows"),
      cl::cat(category)};
  cl::opt<bool> explain{
      "explain-signature",
      cl::desc("Print every argument's role and why, and stop"),
      cl::cat(category)};
  cl::list<std::string> roles{"role", cl::desc("Override an argument's role"),
                              cl::value_desc("PATH=ROLE"), cl::cat(category)};
  cl::list<std::string> states{"state",
                               cl::desc("Override which result replaces an "
                                        "argument"),
                               cl::value_desc("ARG=RESULT"), cl::cat(category)};
  cl::opt<std::string> lossPath{"loss", cl::desc("Which result is the loss"),
                                cl::value_desc("PATH"), cl::cat(category)};
  cl::opt<std::string> entry{"entry",
                             cl::desc("Run this function once instead of "
                                      "training"),
                             cl::value_desc("FUNCTION"), cl::cat(category)};
  cl::opt<std::string> inputs{"inputs", cl::desc("Arguments of --entry"),
                              cl::value_desc("IN.safetensors"),
                              cl::cat(category)};
  cl::opt<std::string> outputs{"outputs", cl::desc("Results of --entry"),
                               cl::value_desc("OUT.safetensors"),
                               cl::cat(category)};
  cl::opt<std::string> dumpIR{
      "dump-ir", cl::desc("Write the IR after each stage to this directory"),
      cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> exportFormat{
      "export-format", cl::init("f32"),
      cl::desc("Format of --export-weights: f32, bf16, or f8E4M3FN with "
               "scales (bf16 for tensors outside of linear layers)"),
      cl::value_desc("f32|bf16|f8E4M3FN"), cl::cat(category)};
  cl::opt<std::string> packageDir{
      "emit-package",
      cl::desc("Write the compiled functions to a directory that fp8-train "
               "runs without a compiler, and stop (options of runs, such as "
               "--steps, do nothing)"),
      cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<bool> noCache{
      "no-cache", cl::desc("Compile everything, even if the cache has it"),
      cl::cat(category)};
};
Options *flags;

Options::Options() {
  for (const fp8run::Option &option : table)
    if (option.isFlag())
      ofTable.push_back(std::make_unique<FlagOption>(option));
    else
      ofTable.push_back(std::make_unique<ValueOption>(option));
}

/// Turns `--data A B` into `--data A --data B`; does the same for --eval-data.
/// The last file of such a list is the step if it ends in .mlir and no other
/// step is given.
std::vector<std::string> repeatListOptions(int argc, char **argv) {
  std::vector<std::string> arguments;
  std::string list;
  bool isValue = true, hasStep = false;
  size_t listed = 0, lastOfList = 0;
  for (int i = 0; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument.starts_with("-")) {
      StringRef name = argument.ltrim('-');
      list = name == "data" || name == "eval-data" ? argument.str() : "";
      listed = 0;
      if (list.empty())
        arguments.push_back(argument.str());
      auto it = cl::getRegisteredOptions().find(name);
      isValue = it != cl::getRegisteredOptions().end() &&
                it->second->getValueExpectedFlag() == cl::ValueRequired;
      continue;
    }
    hasStep |= list.empty() && !isValue;
    isValue = false;
    if (!list.empty())
      arguments.push_back(list);
    arguments.push_back(argument.str());
    if (!list.empty() && ++listed > 1 && argument.ends_with(".mlir"))
      lastOfList = arguments.size() - 1;
  }
  // Remove it with the option before it.
  if (!hasStep && lastOfList)
    arguments.erase(arguments.begin() + lastOfList - 1);
  return arguments;
}

/// Turns LLVM's message about the command line into one line in our words.
int commandLineError(StringRef text) {
  if (text.empty()) // a wrong value, which LLVM has reported itself
    return 2;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string message;
  for (StringRef line : lines) {
    line.consume_front("fp8-run: ");
    line = line.split("  Try: ").first.rtrim("!.");
    if (!message.empty() && !line.starts_with("Did you mean"))
      break;
    message += (message.empty() ? "" : "; ") + line.str();
  }
  if (!message.empty() && !llvm::isUpper(message[1]))
    message[0] = llvm::toLower(message[0]);
  return usageError(message + " (see --help)");
}

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

/// A function of --entry is usually not a step, so its default recipe is none.
std::string recipeName() {
  if (flags->recipe.getNumOccurrences() == 0 && !flags->entry.empty())
    return "none";
  return flags->recipe;
}

/// Returns true if the user asks for the trace or an alarm needs a metric of
/// it.
bool isTraced() {
  return flags->run.trace ||
         llvm::any_of(flags->run.alarms, [](const std::string &rule) {
           fp8_alarm alarm;
           return fp8_alarm_parse(rule.c_str(), &alarm) == FP8_OK &&
                  alarm.needs_trace;
         });
}

/// Prints one line for each function that is ready.
void printNotice(const CompiledNotice &notice) {
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

std::function<void(const CompiledNotice &)> makeNotice() {
  if (flags->run.quiet)
    return nullptr;
  return printNotice;
}

/// Reports an error that has no location in a file.
int fail(llvm::Error error) {
  llvm::errs() << "fp8-run: error: " << llvm::toString(std::move(error))
               << "\n";
  return 1;
}

int printRecipe(MLIRContext &context) {
  FailureOr<Recipe> recipe = loadRecipe(
      recipeName(), &context,
      SmallVector<std::string>(flags->set.begin(), flags->set.end()));
  if (failed(recipe))
    return 1;
  recipe->print(llvm::outs());
  return 0;
}

/// Imports the step as a run does. What cannot be trained is explained as a
/// function.
OwningOpRef<ModuleOp> importToExplain(MLIRContext &context,
                                      const SignatureOptions &signature) {
  auto import = [&](FunctionKind kind) -> OwningOpRef<ModuleOp> {
    OwningOpRef<ModuleOp> module = parseModule(flags->stepFile, context);
    CompileOptions options;
    options.entry = flags->entry;
    options.signature = signature;
    options.signature.functionKind = kind;
    if (module && failed(importModule(*module, options)))
      module = nullptr;
    return module;
  };
  if (flags->entry.empty()) {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    if (OwningOpRef<ModuleOp> step = import(FunctionKind::Step))
      return step;
  }
  return import(FunctionKind::Auto);
}

int explainSignature(MLIRContext &context, SignatureOptions signature) {
  FailureOr<SmallVector<TreeLeaf>> values =
      readInitialValues(flags->run.resume ? flags->run.outDir : std::string(),
                        flags->initFile, context);
  if (failed(values))
    return 1;
  signature.initialValues = std::move(*values);
  if (signature.initialValues.empty() && isInitializer(flags->initFile)) {
    OwningOpRef<ModuleOp> init = parseModule(flags->initFile, context);
    CompileOptions options;
    options.signature.functionKind = FunctionKind::Function;
    if (!init)
      return 1;
    FailureOr<Signature> found = importModule(*init, options);
    if (failed(found))
      return 1;
    signature.initialValues = leavesOf(*found);
  }
  OwningOpRef<ModuleOp> module = importToExplain(context, signature);
  if (!module)
    return 1;
  for (auto func : module->getOps<func::FuncOp>())
    if (func.isPublic() &&
        failed(printSignature(func, llvm::outs(), signature)))
      return 1;
  return 0;
}

/// Returns the options to compile the step, or the function of --entry.
CompileOptions makeCompileOptions(const SignatureOptions &signature,
                                  const Cache *cache) {
  CompileOptions options;
  options.entry = flags->entry;
  options.failOnFallback = flags->failOnFallback;
  options.recipe = recipeName();
  options.recipeOverrides.assign(flags->set.begin(), flags->set.end());
  options.signature = signature;
  options.threads = options.runThreads = flags->run.threads;
  options.optimize = !flags->noOptimize;
  options.targetCPU = flags->targetCPU;
  options.setTarget(flags->target); // parseCommandLine has checked it.
  options.gpuImage = flags->gpuImage;
  options.gpuExpand = flags->gpuExpand;
  options.dumpDir = flags->dumpIR;
  options.cache = cache;
  return options;
}

int runOnce(MLIRContext &context, const SignatureOptions &signature,
            const Cache *cache) {
  if (flags->outputs.empty())
    return usageError("expected --outputs OUT.safetensors with --entry");
  CompileOptions options = makeCompileOptions(signature, cache);
  options.name = "function";
  options.signature.functionKind = FunctionKind::Function;
  FailureOr<Executable> compiled =
      compileFile(flags->stepFile, options, context, makeNotice());
  if (failed(compiled))
    return 1;
  auto loaded = LoadedExecutable::load(std::move(*compiled));
  if (!loaded)
    return fail(loaded.takeError());
  return fp8run::exitCode(
      "fp8-run",
      fp8_run_once((*loaded)->function("function"),
                   flags->inputs.empty() ? nullptr : flags->inputs.c_str(),
                   flags->outputs.c_str(), flags->run.threads));
}

/// Returns the options of the run that do not concern the compiler.
fp8run::RunOptions makeRunOptions() {
  fp8run::RunOptions run = flags->run;
  run.program = "fp8-run";
  run.hasInit = isInitializer(flags->initFile);
  run.hasEval = !flags->evalFile.empty();
  if (!run.hasInit)
    run.initFile = flags->initFile;
  run.stepFile = flags->stepFile;
  return run;
}

/// Makes each argument that is fed from a file data, whatever it looks like.
void addBatches(const fp8run::RunOptions &run, SignatureOptions &signature) {
  for (const std::string &path : run.batchPaths())
    if (llvm::none_of(signature.roles,
                      [&](auto &role) { return role.first == path; }))
      signature.roles.push_back({path, "batch"});
}

/// Returns the options to compile the functions of the run or package.
ProgramOptions makeProgramOptions(const fp8run::RunOptions &run,
                                  SignatureOptions signature,
                                  const Cache *cache) {
  addBatches(run, signature);
  ProgramOptions program;
  program.stepFile = flags->stepFile;
  program.initFile = flags->initFile;
  program.evalFile = flags->evalFile;
  program.compile = makeCompileOptions(signature, cache);
  program.compile.dataParallel = flags->run.dataParallel;
  program.compile.lossReduction = flags->lossReduction;
  program.compile.zero = flags->run.zero;
  program.compile.globalAmax = flags->run.globalAmax;
  program.compile.trace = isTraced();
  if (!flags->run.exportDir.empty())
    program.compile.exportFormat = symbolizeExportFormat(flags->exportFormat);
  if (flags->run.resume)
    program.resumeDirectory = flags->run.outDir;
  program.notice = makeNotice();
  return program;
}

/// Returns a mistake in the options about exports; "" if there is none.
std::string findExportMistake() {
  if (!symbolizeExportFormat(flags->exportFormat))
    return "expected --export-format to be f32, bf16 or f8E4M3FN but got '" +
           flags->exportFormat + "'";
  if (flags->exportFormat.getNumOccurrences() && flags->run.exportDir.empty())
    return "expected --export-weights DIR with --export-format";
  return "";
}

/// Returns the first of the options that the command line gives, as a mistake
/// with another option; "" if it gives none.
std::string findGiven(ArrayRef<StringRef> names, StringRef other) {
  for (StringRef name : names)
    if (cl::getRegisteredOptions().lookup(name)->getNumOccurrences())
      return ("expected no --" + name + " with --" + other).str();
  return "";
}

/// Returns a mistake in options that --entry or --emit-package does nothing
/// with; "" if there is none.
std::string findOptionOfRuns() {
  if (!flags->packageDir.empty())
    if (std::string mistake = findGiven({"inputs", "outputs"}, "emit-package");
        !mistake.empty())
      return mistake;
  if (flags->entry.empty())
    return "";
  StringRef ofRuns[] = {"data",        "eval-data",      "shuffle",
                        "steps",       "overwrite",      "eval-every",
                        "holdout",     "log-every",      "checkpoint-every",
                        "trace-every", "no-checkpoints", "sharded-checkpoints",
                        "alarm",       "report",         "profile",
                        "verdicts",    "rank-timeout"};
  // Of a step that is emitted or explained, --entry is the name.
  StringRef ofSteps[] = {"init",         "eval",        "batch",
                         "eval-batch",   "resume",      "out",
                         "seed",         "trace",       "data-parallel",
                         "zero",         "global-amax", "export-weights",
                         "export-format"};
  std::string mistake = findGiven(ofRuns, "entry");
  bool isOnce = flags->packageDir.empty() && !flags->explain;
  return mistake.empty() && isOnce ? findGiven(ofSteps, "entry") : mistake;
}

/// Returns the first option that is given without its text, as a mistake; "" if
/// there is none.
std::string findEmptyOption() {
  for (const cl::opt<std::string> *option :
       {&flags->initFile, &flags->evalFile, &flags->lossPath,
        &flags->lossReduction, &flags->entry, &flags->inputs, &flags->outputs,
        &flags->dumpIR, &flags->packageDir})
    if (option->getNumOccurrences() && option->empty())
      return ("expected --" + option->ArgStr + " " + option->ValueStr +
              " but got ''")
          .str();
  return "";
}

/// Returns a mistake in options that do something only with others; "" if there
/// is none.
std::string findIdleOption() {
  auto needs = [](StringRef option, StringRef other) {
    return ("expected --" + other + " with --" + option).str();
  };
  bool isGPU = StringRef(flags->target).starts_with("nvptx:");
  if (flags->gpuImage.getNumOccurrences() && !isGPU)
    return needs("gpu-image", "target nvptx:GPU");
  if (flags->gpuExpand.getNumOccurrences() && !isGPU)
    return needs("gpu-expand", "target nvptx:GPU");
  if (!flags->lossReduction.empty() && !flags->run.dataParallel)
    return needs("loss-reduction", "data-parallel");
  if (flags->entry.empty() && !flags->inputs.empty())
    return needs("inputs", "entry");
  if (flags->entry.empty() && !flags->outputs.empty())
    return needs("outputs", "entry");
  return findOptionOfRuns();
}

int train(MLIRContext &context, const SignatureOptions &signature,
          const Cache *cache, fp8run::RunOptions &run, fp8run::Ranks &ranks) {
  for (const std::string &mistake : {run.findMistake(), findExportMistake()})
    if (!mistake.empty())
      return usageError(mistake);
  if (int status = ranks.join(run))
    return status;
  if (int status = ranks.waitForFirst())
    return status;
  FailureOr<Executable> program =
      compileProgram(makeProgramOptions(run, signature, cache), context);
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

int emitPackage(MLIRContext &context, const SignatureOptions &signature,
                const Cache *cache) {
  if (std::string mistake = findExportMistake(); !mistake.empty())
    return usageError(mistake);
  FailureOr<Executable> program = compileProgram(
      makeProgramOptions(makeRunOptions(), signature, cache), context);
  if (failed(program))
    return 1;
  if (llvm::Error error = writePackage(*program, flags->packageDir))
    return fail(std::move(error));
  if (flags->run.quiet)
    return 0;
  llvm::outs() << program->text("summary.txt") << "package   "
               << flags->packageDir << ": ";
  llvm::interleaveComma(
      program->functions, llvm::outs(),
      [](const ExecutableFunction &each) { llvm::outs() << each.name; });
  llvm::outs() << "\n";
  return 0;
}

/// Removes the options of the libraries, so that the tool only shows its own.
void removeInheritedOptions() {
  SmallVector<cl::Option *> inherited;
  for (auto &entry : cl::getRegisteredOptions())
    inherited.push_back(entry.second);
  for (cl::Option *option : inherited)
    if (option->ArgStr != "help" && option->ArgStr != "version")
      option->removeArgument();
}

/// Sets `flags`; returns 0, or the exit status of a mistake.
int parseCommandLine(int argc, char **argv) {
  std::vector<std::string> arguments = repeatListOptions(argc, argv);
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string parseErrors;
  llvm::raw_string_ostream parseErrorStream(parseErrors);
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "fp8-run, " << getCompilerVersion() << "\n";
  });
  bool isParsed = cl::ParseCommandLineOptions(
      pointers.size(), pointers.data(),
      "Compiles a JAX training step (StableHLO) and trains with it.\n\n"
      "  fp8-run STEP.mlir --init INIT.mlir --data TEXT... --recipe tensorwise "
      "--steps N --out DIR\n"
      "  fp8-run FILE.mlir --entry F --inputs IN.safetensors --outputs "
      "OUT.safetensors\n"
      "  fp8-run STEP.mlir ... --emit-package DIR\n"
      "  fp8-run STEP.mlir --explain-signature\n",
      &parseErrorStream);
  if (!isParsed)
    return commandLineError(parseErrors);
  std::string mistake = CompileOptions().setTarget(flags->target);
  if (mistake.empty())
    mistake = findEmptyOption();
  if (mistake.empty())
    mistake = findIdleOption();
  return mistake.empty() ? 0 : usageError(mistake);
}

/// Returns a mistake in the name of the GPU; "" if there is none.
std::string findTargetMistake(MLIRContext &context) {
  StringRef gpu = flags->target;
  if (!gpu.consume_front("nvptx:"))
    return "";
  context.loadDialect<FP8Dialect>();
  auto target = makeGPUTarget(&context, gpu);
  return target ? "" : llvm::toString(target.takeError());
}

/// On a machine without a GPU, a run for one goes to the CPU and says so. A
/// package may be for another machine.
void chooseTarget() {
  if (flags->target == "cpu" || fp8_gpu_find() == FP8_OK)
    return;
  llvm::errs() << "fp8-run: warning: " << fp8_last_error()
               << "; it is compiled for the CPU instead\n";
  flags->target.setValue("cpu");
}

/// Does what the command line asks for; returns the exit status.
int runCommand(MLIRContext &context) {
  if (flags->printRecipe)
    return printRecipe(context);
  if (flags->files.size() != 1)
    return usageError(flags->files.empty()
                          ? "expected STEP.mlir (see --help)"
                          : "expected one STEP.mlir but got '" +
                                llvm::join(flags->files, "', '") +
                                "' (see --help)");
  flags->stepFile = flags->files.front();
  if (std::string mistake = fp8run::findThreadsMistake(flags->run.threads);
      !mistake.empty())
    return usageError(mistake);
  if (std::string mistake = findTargetMistake(context); !mistake.empty())
    return usageError(mistake);

  SignatureOptions signature;
  signature.loss = flags->lossPath;
  if (failed(splitPairs(flags->roles, signature.roles)) ||
      failed(splitPairs(flags->states, signature.states)))
    return 2;
  if (flags->explain) {
    addBatches(makeRunOptions(), signature);
    return explainSignature(context, signature);
  }
  std::unique_ptr<Cache> cache;
  if (!flags->noCache) {
    auto opened = Cache::fromEnvironment();
    if (!opened)
      return fail(opened.takeError());
    cache = std::move(*opened);
  }
  if (!flags->packageDir.empty())
    return emitPackage(context, signature, cache.get());
  chooseTarget();
  if (!flags->entry.empty())
    return runOnce(context, signature, cache.get());
  fp8run::RunOptions run = makeRunOptions();
  fp8run::Ranks ranks;
  return ranks.leave(train(context, signature, cache.get(), run, ranks));
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  fp8run::prepareProcess();
  removeInheritedOptions();
  Options parsed;
  flags = &parsed;
  cl::HideUnrelatedOptions(category);
  if (int status = parseCommandLine(argc, argv))
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
  int status = finishStandardOutput("fp8-run", runCommand(context));
  return fp8run::finishOutput("fp8-run", status);
}
