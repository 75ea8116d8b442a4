//===- fp8-run.cpp - Compile a step and train, or run a function once -----===//
//
// A thin user of the compiler (JIT) and of the runtime's C ABI.
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Compiler.h"
#include "fp8/Compiler/InitialValues.h"
#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Init.h"
#include "fp8/Support/Recipe.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/xxhash.h"
#include <list>

using namespace mlir;
using namespace mlir::fp8;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("fp8-run options");

int usageError(const llvm::Twine &message) {
  llvm::errs() << "fp8-run: error: " << message << "\n";
  return 2;
}

/// A number, with mistakes told in our words and not in LLVM's.
template <typename T> class Number : public cl::opt<std::string> {
public:
  template <typename... Ms>
  Number(const char *name, T initial, const Ms &...modifiers)
      : opt(StringRef(name), cl::cat(category), modifiers...), value(initial) {
    if (ValueStr.empty())
      setValueStr("N");
  }
  operator T() const { return value; }

private:
  bool handleOccurrence(unsigned, StringRef, StringRef text) override {
    bool isWrong;
    if constexpr (std::is_floating_point_v<T>)
      isWrong = text.getAsDouble(value);
    else
      isWrong = text.getAsInteger(10, value);
    if (isWrong)
      usageError("expected --" + ArgStr + " to be a " +
                 (std::is_floating_point_v<T> ? "number"
                  : std::is_signed_v<T>       ? "whole number"
                                              : "whole number, 0 or more,") +
                 " but got '" + text + "'");
    return isWrong;
  }

  T value;
};

/// Made in main, after LLVM's own options (some have the same names) are gone.
struct Options {
  // Required, but said in words of our own.
  cl::list<std::string> files{cl::Positional, cl::desc("STEP.mlir"),
                              cl::cat(category)};
  std::string stepFile;
  cl::opt<std::string> initFile{
      "init",
      cl::desc("Initial values: a function (.mlir) or a safetensors "
               "file, by tree path"),
      cl::value_desc("INIT.mlir|W.safetensors"), cl::cat(category)};
  cl::list<std::string> dataFiles{
      "data",
      cl::desc("Training text (bytes), or token files: .u16, "
               ".npy, .safetensors"),
      cl::value_desc("FILE"), cl::cat(category)};
  cl::list<std::string> evalData{"eval-data",
                                 cl::desc("Held-out text instead of the end of "
                                          "each data file"),
                                 cl::value_desc("FILE"), cl::cat(category)};
  cl::list<std::string> batches{
      "batch",
      cl::desc("Feed a batch argument from an array (.safetensors, .npy) whose "
               "leading dimension is the step, or the example"),
      cl::value_desc("PATH=FILE[:TENSOR]"), cl::cat(category)};
  cl::list<std::string> evalBatches{
      "eval-batch", cl::desc("Feed an argument of --eval from an array"),
      cl::value_desc("PATH=FILE[:TENSOR]"), cl::cat(category)};
  cl::opt<bool> shuffle{"shuffle",
                        cl::desc("Go through the rows of --batch in an order "
                                 "drawn from the seed for every epoch"),
                        cl::cat(category)};
  cl::opt<std::string> recipe{
      "recipe", cl::init("none"), cl::desc("Recipe: a name or a .yaml file"),
      cl::value_desc("NAME|FILE.yaml"), cl::cat(category)};
  cl::list<std::string> set{
      "set",
      cl::desc("Set a key of the recipe, e.g. forward.activation.format"),
      cl::value_desc("KEY=VALUE"), cl::cat(category)};
  cl::opt<bool> printRecipe{
      "print-recipe",
      cl::desc("Print the effective recipe, defaults and all, and stop"),
      cl::cat(category)};
  Number<int64_t> steps{"steps", 0,
                        cl::desc("Train until this step (in all, those before "
                                 "a resume included)")};
  cl::opt<std::string> outDir{"out", cl::init("out"),
                              cl::desc("Directory of log, picture, reports and "
                                       "checkpoints"),
                              cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<bool> resume{"resume",
                       cl::desc("Continue from the newest checkpoint "
                                "in --out"),
                       cl::cat(category)};
  cl::opt<bool> overwrite{"overwrite",
                          cl::desc("Replace an earlier run in --out"),
                          cl::cat(category)};
  cl::opt<std::string> evalFile{"eval",
                                cl::desc("Function that gives the loss "
                                         "(and metrics) on held-out data"),
                                cl::value_desc("EVAL.mlir"), cl::cat(category)};
  Number<int64_t> evalEvery{"eval-every", 0,
                            cl::desc("Evaluate every N steps (0: at the end)"),
                            cl::value_desc("N")};
  Number<int64_t> checkpointEvery{"checkpoint-every", 0,
                                  cl::desc("Write a checkpoint every N steps "
                                           "(0: at the end)"),
                                  cl::value_desc("N")};
  Number<int64_t> logEvery{"log-every", 0,
                           cl::desc("Progress line every N steps when the "
                                    "output is no terminal"),
                           cl::value_desc("N")};
  Number<double> holdout{"holdout", 0.1,
                         cl::desc("Fraction at the end of each data file that "
                                  "is held out")};
  Number<uint64_t> seed{
      "seed", 0, cl::desc("Seed of the initializer and of the data order")};
  Number<int32_t> threads{"threads", 0, cl::desc("Threads (0: one a core)")};
  cl::opt<bool> failOnFallback{
      "fail-on-fallback",
      cl::desc("Fail if a dot that the recipe quantizes "
               "cannot be converted"),
      cl::cat(category)};
  cl::opt<bool> showVerdicts{"verdicts",
                             cl::desc("Print the verdict of every dot"),
                             cl::cat(category)};
  cl::opt<bool> explain{
      "explain-signature",
      cl::desc("Print every argument's role and why, and stop"),
      cl::cat(category)};
  cl::list<std::string> roles{"role", cl::desc("Overrule an argument's role"),
                              cl::value_desc("PATH=ROLE"), cl::cat(category)};
  cl::list<std::string> states{"state",
                               cl::desc("Overrule which result replaces an "
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
  cl::opt<std::string> dumpIR{"dump-ir",
                              cl::desc("Write the IR after each stage here"),
                              cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<bool> profile{"profile", cl::desc("Time every launch: profile.json"),
                        cl::cat(category)};
  cl::opt<bool> trace{"trace",
                      cl::desc("Write statistics of every quantized tensor to "
                               "trace.jsonl"),
                      cl::cat(category)};
  Number<int64_t> traceEvery{"trace-every", 0,
                             cl::desc("Trace every N steps (0: every step)"),
                             cl::value_desc("N")};
  cl::list<std::string> alarms{
      "alarm",
      cl::desc("React to a metric: warn, stop, or skip the step (see "
               "docs/Runtime.md)"),
      cl::value_desc("METRIC[@TENSORS] > VALUE : ACTION"), cl::cat(category)};
  cl::opt<std::string> exportDir{
      "export-weights",
      cl::desc("Write the trained parameters for other programs: "
               "model.safetensors, export.json"),
      cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> exportFormat{
      "export-format", cl::init("f32"),
      cl::desc("What --export-weights writes: f32, bf16, or f8E4M3FN with "
               "scales (bf16 where no linear layer multiplies)"),
      cl::value_desc("f32|bf16|f8E4M3FN"), cl::cat(category)};
  cl::opt<bool> quiet{"quiet", cl::desc("No progress"), cl::cat(category)};
};
Options *flags;

/// `--data A B` means `--data A --data B`; so for --eval-data. The last file of
/// such a list is the step if it ends in .mlir and no other is given.
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
  // With the option before it.
  if (!hasStep && lastOfList)
    arguments.erase(arguments.begin() + lastOfList - 1);
  return arguments;
}

/// What LLVM says about the command line, as one line of ours.
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

/// `file:line:column` behind names, call sites and fusions.
std::optional<FileLineColLoc> fileLocation(Location loc) {
  return loc->findInstanceOf<FileLineColLoc>()
             ? std::optional(loc->findInstanceOf<FileLineColLoc>())
             : std::nullopt;
}

void printDiagnostic(Diagnostic &diagnostic) {
  auto print = [](Diagnostic &d, StringRef kind) {
    llvm::errs() << "fp8-run: " << kind << ": ";
    if (auto at = fileLocation(d.getLocation()))
      llvm::errs() << at->getFilename().strref() << ":" << at->getLine() << ":"
                   << at->getColumn() << ": ";
    llvm::errs() << d << "\n";
  };
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    print(diagnostic, "error");
    break;
  case DiagnosticSeverity::Warning:
    print(diagnostic, "warning");
    break;
  default:
    return;
  }
  for (Diagnostic &note : diagnostic.getNotes())
    if (note.getSeverity() == DiagnosticSeverity::Note &&
        !llvm::StringRef(note.str()).starts_with("see current operation"))
      print(note, "note");
}

/// Splits `KEY=VALUE` options.
LogicalResult
splitPairs(const cl::list<std::string> &list,
           SmallVectorImpl<std::pair<std::string, std::string>> &pairs) {
  for (const std::string &text : list) {
    // Paths may hold '=' only inside quotes, so the last one separates.
    auto [key, value] = StringRef(text).rsplit('=');
    if (key.empty() || value.empty()) {
      usageError("expected --" + list.ArgStr + " KEY=VALUE but got '" + text +
                 "'");
      return failure();
    }
    pairs.push_back({key.str(), value.str()});
  }
  return success();
}

/// Parses a file that is read once: its fingerprint is of these very bytes.
OwningOpRef<ModuleOp> parseFile(StringRef file, MLIRContext &context,
                                std::string *fingerprint) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer) {
    emitError(UnknownLoc::get(&context))
        << "cannot read '" << file << "': " << buffer.getError().message();
    return nullptr;
  }
  if (fingerprint)
    *fingerprint = llvm::utohexstr(llvm::xxh3_64bits((*buffer)->getBuffer()));
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

/// Whether a rule asks for a metric of the trace, or the user for all of them.
bool isTraced() {
  return flags->trace ||
         llvm::any_of(flags->alarms, [](const std::string &rule) {
           fp8_alarm alarm;
           return fp8_alarm_parse(rule.c_str(), &alarm) == FP8_OK &&
                  alarm.needs_trace;
         });
}

FailureOr<Executable> compileFile(StringRef file, StringRef name,
                                  MLIRContext &context,
                                  const SignatureOptions &signature,
                                  FunctionKind kind,
                                  std::string *fingerprint = nullptr) {
  OwningOpRef<ModuleOp> module = parseFile(file, context, fingerprint);
  if (!module)
    return failure();
  CompileOptions options;
  options.name = name.str();
  options.entry = flags->entry;
  bool isPlain = name == "init" || name == "check";
  options.recipe = isPlain ? std::string("none") : flags->recipe.getValue();
  if (!isPlain)
    options.recipeOverrides.assign(flags->set.begin(), flags->set.end());
  options.failOnFallback = flags->failOnFallback && name == "step";
  options.trace = name == "step" && isTraced();
  if (name == "step" && !flags->exportDir.empty())
    options.exportFormat = symbolizeExportFormat(flags->exportFormat);
  options.returnLogits = name == "check";
  options.signature = signature;
  options.signature.functionKind = kind;
  options.threads = flags->threads;
  options.dumpDir = flags->dumpIR;
  auto compiled = compile(*module, options);
  if (succeeded(compiled) && !flags->quiet) {
    const CompileStats &stats = compiled->find(name)->stats;
    llvm::outs() << llvm::format(
        "compiled %s in %.2f s: %lld launches of %lld kernels (import %.2f, "
        "fp8 %.2f, structure %.2f, kernels %.2f, codegen %.2f, llvm %.2f)\n",
        options.name.c_str(), stats.totalSeconds(),
        static_cast<long long>(stats.launches),
        static_cast<long long>(stats.kernels), stats.importSeconds,
        stats.fp8Seconds, stats.structureSeconds, stats.kernelsSeconds,
        stats.codegenSeconds, stats.llvmSeconds);
    llvm::outs().flush();
  }
  return compiled;
}

/// A pairing that leaves state as it is may be a mistake: it is said before the
/// first step.
void printUnchangedState(StringRef text) {
  constexpr size_t kShown = 6;
  SmallVector<StringRef> paths;
  text.split(paths, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (paths.empty())
    return;
  llvm::outs() << "state that the step returns as it came: ";
  llvm::interleaveComma(ArrayRef(paths).take_front(kShown), llvm::outs());
  if (paths.size() > kShown)
    llvm::outs() << " and " << paths.size() - kShown << " more";
  llvm::outs() << "\n";
}

/// Links what was compiled; an error is told.
std::unique_ptr<LoadedExecutable> load(Executable executable) {
  auto loaded = LoadedExecutable::load(std::move(executable));
  if (loaded)
    return std::move(*loaded);
  llvm::errs() << "fp8-run: error: code generation failed: "
               << llvm::toString(loaded.takeError()) << "\n";
  return nullptr;
}

int exitCode(fp8_status status) {
  if (status == FP8_OK)
    return 0;
  if (const char *message = fp8_last_error(); *message)
    llvm::errs() << "fp8-run: error: " << message << "\n";
  if (status == FP8_INTERRUPTED)
    return 130;
  if (status == FP8_STOPPED)
    return 4;
  return status == FP8_ERROR_NONFINITE ? 3 : 1;
}

int printRecipe(MLIRContext &context) {
  FailureOr<Recipe> recipe = loadRecipe(
      flags->recipe, &context,
      SmallVector<std::string>(flags->set.begin(), flags->set.end()));
  if (failed(recipe))
    return 1;
  recipe->print(llvm::outs());
  return 0;
}

bool initIsModule() { return StringRef(flags->initFile).ends_with(".mlir"); }

/// An export of what is trained already: no steps are to be done.
bool isExportAlone() {
  return flags->resume && !flags->exportDir.empty() && flags->steps == 0;
}

/// What the run begins with, as far as files tell: the checkpoint that it goes
/// on from, else the file of --init. `step` is that of the checkpoint.
LogicalResult readInitialFile(MLIRContext &context, SignatureOptions &signature,
                              int64_t *step = nullptr) {
  fp8_tensors *tensors = nullptr;
  fp8_status status = FP8_OK;
  if (flags->resume)
    status = fp8_checkpoint_load(flags->outDir.c_str(), &tensors);
  if (status == FP8_OK && !tensors && !flags->initFile.empty() &&
      !initIsModule())
    status = fp8_tensors_load(flags->initFile.c_str(), &tensors);
  if (exitCode(status) != 0)
    return failure();
  signature.initialValues = leavesOf(tensors, context);
  const char *text = fp8_tensors_metadata(tensors, "step");
  if (step && text)
    (void)StringRef(text).getAsInteger(10, *step);
  fp8_tensors_destroy(tensors);
  return success();
}

int explainSignature(MLIRContext &context, SignatureOptions signature) {
  if (failed(readInitialFile(context, signature)))
    return 1;
  if (signature.initialValues.empty() && initIsModule()) {
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
  OwningOpRef<ModuleOp> module = parseModule(flags->stepFile, context);
  if (!module)
    return 1;
  CompileOptions options;
  options.entry = flags->entry;
  options.signature = signature;
  if (failed(importModule(*module, options)))
    return 1;
  for (auto func : module->getOps<func::FuncOp>())
    if (func.isPublic() &&
        failed(printSignature(func, llvm::outs(), signature.initialValues)))
      return 1;
  return 0;
}

int runOnce(MLIRContext &context, const SignatureOptions &signature) {
  if (flags->outputs.empty())
    return usageError("expected --outputs OUT.safetensors with --entry");
  auto compiled = compileFile(flags->stepFile, "function", context, signature,
                              FunctionKind::Function);
  if (failed(compiled))
    return 1;
  std::unique_ptr<LoadedExecutable> loaded = load(std::move(*compiled));
  if (!loaded)
    return 1;
  return exitCode(
      fp8_run_once(loaded->function("function"),
                   flags->inputs.empty() ? nullptr : flags->inputs.c_str(),
                   flags->outputs.c_str(), flags->threads));
}

/// `PATH=FILE[:TENSOR]` options, and the strings that they point to.
struct BatchSources {
  SmallVector<std::pair<std::string, std::string>> pairs;
  std::list<std::string> strings;
  std::vector<fp8_batch_source> sources;

  LogicalResult parse(const cl::list<std::string> &list) {
    if (failed(splitPairs(list, pairs)))
      return failure();
    auto keep = [&](StringRef text) {
      return strings.emplace_back(text.str()).c_str();
    };
    for (auto &[path, value] : pairs) {
      // File names may hold colons too: the longest name that exists is one.
      StringRef file = value, tensor;
      while (!llvm::sys::fs::exists(file) && file.contains(':'))
        file = file.rsplit(':').first;
      if (!llvm::sys::fs::exists(file))
        file = StringRef(value).split(':').first;
      if (file.size() < value.size())
        tensor = StringRef(value).substr(file.size() + 1);
      sources.push_back(
          {keep(path), keep(file), tensor.empty() ? nullptr : keep(tensor)});
    }
    return success();
  }
};

int train(MLIRContext &context, SignatureOptions signature) {
  if (flags->steps < 0 || (flags->steps == 0 && !isExportAlone()))
    return usageError("expected --steps N with N > 0");
  if (!symbolizeExportFormat(flags->exportFormat))
    return usageError("expected --export-format to be f32, bf16 or f8E4M3FN "
                      "but got '" +
                      flags->exportFormat + "'");
  if (flags->exportFormat.getNumOccurrences() && flags->exportDir.empty())
    return usageError("expected --export-weights DIR with --export-format");
  for (auto *option : {&flags->evalEvery, &flags->checkpointEvery,
                       &flags->logEvery, &flags->traceEvery})
    if (*option < 0)
      return usageError("expected --" + option->ArgStr +
                        " N with N >= 0 but got " +
                        llvm::Twine(int64_t(*option)));
  if (!(flags->holdout >= 0 && flags->holdout < 1))
    return usageError("expected --holdout to be at least 0 and below 1");
  if (flags->evalFile.empty() &&
      (!flags->evalData.empty() || !flags->evalBatches.empty()))
    return usageError(
        "expected --eval EVAL.mlir with " +
        llvm::Twine(flags->evalData.empty() ? "--eval-batch" : "--eval-data"));
  if (flags->shuffle && flags->batches.empty())
    return usageError("expected --batch PATH=FILE with --shuffle (text is read "
                      "in random order anyway)");
  if (flags->traceEvery > 0 && !flags->trace)
    return usageError("expected --trace with --trace-every");
  for (const std::string &rule : flags->alarms) {
    fp8_alarm alarm;
    if (fp8_alarm_parse(rule.c_str(), &alarm) != FP8_OK)
      return usageError(fp8_last_error());
  }
  if (flags->resume && flags->overwrite)
    return usageError("expected --resume or --overwrite but got both");
  if (flags->initFile.empty() && !flags->resume)
    return usageError("expected --init INIT.mlir or --init W.safetensors");
  if (flags->dataFiles.empty() && flags->batches.empty() && !isExportAlone())
    return usageError("expected --data FILE... or --batch PATH=FILE");
  BatchSources batches, evalBatches;
  if (failed(batches.parse(flags->batches)) ||
      failed(evalBatches.parse(flags->evalBatches)))
    return 2;
  // What is fed is data, whatever it may look like.
  for (auto &[path, file] : batches.pairs)
    if (llvm::none_of(signature.roles, [&, &path = path](auto &role) {
          return role.first == path;
        }))
      signature.roles.push_back({path, "batch"});
  int64_t steps = flags->steps;
  if (failed(readInitialFile(context, signature,
                             isExportAlone() ? &steps : nullptr)))
    return 1;
  Executable all;
  std::string fingerprint;
  auto add = [&](StringRef file, StringRef name,
                 const SignatureOptions &signature, FunctionKind kind) {
    auto compiled =
        compileFile(file, name, context, signature, kind,
                    kind == FunctionKind::Step ? &fingerprint : nullptr);
    if (failed(compiled))
      return failure();
    if (kind == FunctionKind::Step)
      std::swap(all, *compiled);
    all.merge(std::move(*compiled));
    return success();
  };
  if (initIsModule()) {
    if (failed(add(flags->initFile, "init", {}, FunctionKind::Function)))
      return 1;
    if (signature.initialValues.empty())
      signature.initialValues = leavesOf(*all.find("init"), context);
  }
  if (failed(add(flags->stepFile, "step", signature, FunctionKind::Step)))
    return 1;
  if (!flags->evalFile.empty() &&
      failed(add(flags->evalFile, "eval", {}, FunctionKind::Function)))
    return 1;
  // Whoever loads the weights computes as the model says, not as the recipe.
  if (!flags->evalFile.empty() && !flags->exportDir.empty() &&
      failed(add(flags->evalFile, "check", {}, FunctionKind::Function)))
    return 1;
  std::unique_ptr<LoadedExecutable> loaded = load(std::move(all));
  if (!loaded)
    return 1;
  const Executable &description = loaded->description();
  if (flags->showVerdicts)
    llvm::outs() << description.text("verdicts.txt");
  else if (!flags->quiet)
    llvm::outs() << description.text("summary.txt");
  if (!flags->quiet) {
    printUnchangedState(description.text("state.txt"));
    llvm::outs() << description.text("memory.txt");
  }
  llvm::outs().flush();

  std::vector<const char *> data, heldOut;
  for (const std::string &file : flags->dataFiles)
    data.push_back(file.c_str());
  for (const std::string &file : flags->evalData)
    heldOut.push_back(file.c_str());
  fp8_train_options options = {};
  options.step = loaded->function("step");
  options.init = loaded->function("init");
  options.eval = loaded->function("eval");
  options.store = loaded->function("store");
  options.load = loaded->function("load");
  options.init_file = initIsModule() || flags->initFile.empty()
                          ? nullptr
                          : flags->initFile.c_str();
  options.data_files = data.data();
  options.num_data_files = data.size();
  options.eval_files = heldOut.data();
  options.num_eval_files = heldOut.size();
  options.batches = batches.sources.data();
  options.num_batches = batches.sources.size();
  options.eval_batches = evalBatches.sources.data();
  options.num_eval_batches = evalBatches.sources.size();
  options.shuffle = flags->shuffle;
  options.holdout = flags->holdout > 0 ? flags->holdout : -1;
  options.out_dir = flags->outDir.c_str();
  fingerprint += "/" + flags->recipe.getValue();
  for (const std::string &assignment : flags->set)
    fingerprint += "/" + assignment;
  options.fingerprint = fingerprint.c_str();
  options.seed = flags->seed;
  options.steps = steps;
  options.checkpoint_every = flags->checkpointEvery;
  options.eval_every = flags->evalEvery;
  options.log_every = flags->logEvery;
  options.threads = flags->threads;
  options.resume = flags->resume;
  options.overwrite = flags->overwrite;
  options.quiet = flags->quiet;
  options.profile = flags->profile;
  options.verdicts = description.text("verdicts.json").data();
  options.memory_plan = description.text("memory.json").data();
  std::vector<const char *> alarms;
  for (const std::string &rule : flags->alarms)
    alarms.push_back(rule.c_str());
  options.alarms = alarms.data();
  options.num_alarms = alarms.size();
  options.trace = flags->trace;
  options.trace_every = flags->traceEvery;
  fp8_export exported = {};
  if (!flags->exportDir.empty()) {
    exported.directory = flags->exportDir.c_str();
    exported.encode = loaded->function("export");
    exported.decode = loaded->function("import");
    exported.manifest = description.text("export.json").data();
    if (const ExecutableFunction *check = description.find("check")) {
      exported.eval = loaded->function("check");
      if (llvm::any_of(check->results, [](const TensorDescription &result) {
            return result.name == kLogitsPath;
          }))
        exported.logits = kLogitsPath.data();
    }
    options.export_weights = &exported;
  }
  return exitCode(fp8_train(&options, nullptr));
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // The tool speaks of its own options alone.
  SmallVector<cl::Option *> inherited;
  for (auto &entry : cl::getRegisteredOptions())
    inherited.push_back(entry.second);
  for (cl::Option *option : inherited)
    if (option->ArgStr != "help" && option->ArgStr != "version")
      option->removeArgument();
  Options parsed;
  flags = &parsed;
  cl::HideUnrelatedOptions(category);
  std::vector<std::string> arguments = repeatListOptions(argc, argv);
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string parseErrors;
  llvm::raw_string_ostream parseErrorStream(parseErrors);
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << "fp8-run, with LLVM " LLVM_VERSION_STRING "\n";
  });
  bool isParsed = cl::ParseCommandLineOptions(
      pointers.size(), pointers.data(),
      "Compiles a JAX training step (StableHLO) and trains with it.\n\n"
      "  fp8-run STEP.mlir --init INIT.mlir --data TEXT... --recipe tensorwise "
      "--steps N --out DIR\n"
      "  fp8-run FILE.mlir --entry F --inputs IN.safetensors --outputs "
      "OUT.safetensors\n"
      "  fp8-run STEP.mlir --explain-signature\n",
      &parseErrorStream);
  if (!isParsed)
    return commandLineError(parseErrors);
  DialectRegistry registry;
  fp8::registerAllDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    printDiagnostic(diagnostic);
    return success();
  });
  if (flags->printRecipe)
    return printRecipe(context);
  if (flags->files.size() != 1)
    return usageError(flags->files.empty()
                          ? "expected STEP.mlir (see --help)"
                          : "expected one STEP.mlir but got '" +
                                llvm::join(flags->files, "', '") +
                                "' (see --help)");
  flags->stepFile = flags->files.front();
  if (flags->threads < 0 || flags->threads > 4096)
    return usageError("expected --threads to be 0 to 4096 but got " +
                      llvm::Twine(int32_t(flags->threads)));

  SignatureOptions signature;
  signature.loss = flags->lossPath;
  if (failed(splitPairs(flags->roles, signature.roles)) ||
      failed(splitPairs(flags->states, signature.states)))
    return 2;
  if (flags->explain)
    return explainSignature(context, signature);
  if (!flags->entry.empty())
    return runOnce(context, signature);
  return train(context, signature);
}
