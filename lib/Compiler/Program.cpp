//===- Program.cpp - Compilation of a whole program -----------------------===//

#include "fp8/Compiler/Program.h"
#include "SourceFile.h"
#include "Stopwatch.h"
#include "Threads.h"
#include "fp8/Codegen/GPUObject/Object.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Compiler/InitialValues.h"
#include "fp8/Support/Recipe.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Records the warnings that are emitted during its lifetime; they are shown,
/// too.
class WarningRecorder {
public:
  explicit WarningRecorder(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
            record(diagnostic);
          return failure(); // pass it to the next handler
        }) {}

  std::vector<CompilerWarning> warnings;

private:
  void record(Diagnostic &diagnostic) {
    CompilerWarning warning;
    if (auto at = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
      warning.file = at.getFilename().str();
      warning.line = at.getLine();
      warning.column = at.getColumn();
    }
    warning.text = diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      warning.notes.push_back(note.str());
    warnings.push_back(std::move(warning));
  }

  ScopedDiagnosticHandler handler;
};

/// Emits a warning again that was recorded when the function was compiled.
void repeat(const CompilerWarning &warning, MLIRContext &context) {
  Location loc = UnknownLoc::get(&context);
  if (!warning.file.empty())
    loc = FileLineColLoc::get(&context, warning.file, warning.line,
                              warning.column);
  InFlightDiagnostic diagnostic = emitWarning(loc) << warning.text;
  for (const std::string &note : warning.notes)
    diagnostic.attachNote(loc) << note;
}

std::string printed(const Recipe &recipe) {
  std::string text;
  llvm::raw_string_ostream os(text);
  recipe.print(os);
  return text;
}

struct RecipeTexts {
  std::string name;
  std::string effective; ///< With defaults and overrides.
  std::string preset;    ///< The preset of the same name; "" if there is none.
};

FailureOr<RecipeTexts> recipeTexts(const CompileOptions &options,
                                   MLIRContext &context) {
  FailureOr<Recipe> recipe =
      loadRecipe(options.recipe, &context, options.recipeOverrides);
  if (failed(recipe))
    return failure();
  RecipeTexts texts{recipe->name, printed(*recipe), ""};
  if (llvm::is_contained(getRecipeNames(), recipe->name)) {
    FailureOr<Recipe> preset = loadRecipe(recipe->name, &context);
    if (failed(preset))
      return failure();
    texts.preset = printed(*preset);
  }
  return texts;
}

/// Returns the key of everything that the compiled function depends on.
std::string cacheKeyOf(const SourceFile &source, const std::string &recipe,
                       const CompileOptions &options,
                       const CodeTarget &target) {
  CacheKey key;
  key.add(getCompilerBuildId());
  key.add(target.triple).add(target.cpu).add(target.features);
  key.add(source.text()).add(recipe);
  key.add(options.name).add(options.entry);
  key.add(options.optimize);
  key.add(options.targetGPU.empty() ? countThreads(options.runThreads) : 0);
  key.add(options.targetGPU).add(options.gpuImage).add(options.gpuExpand);
  // Without the assembler, no cubins can be made.
  key.add(options.targetGPU.empty() ? "" : findPtxas());
  key.add(options.dataParallel).add(options.lossReduction).add(options.zero);
  key.add(options.globalAmax).add(options.globalBatch);
  key.add(options.failOnFallback)
      .add(options.hasData)
      .add(options.trace)
      .add(options.returnLogits);
  key.add(options.exportFormat ? stringifyExportFormat(*options.exportFormat)
                               : "");
  const SignatureOptions &signature = options.signature;
  key.add(static_cast<int64_t>(signature.functionKind)).add(signature.loss);
  auto addPairs = [&](ArrayRef<std::pair<std::string, std::string>> pairs) {
    key.add(static_cast<int64_t>(pairs.size()));
    for (const auto &[first, second] : pairs)
      key.add(first).add(second);
  };
  addPairs(signature.roles);
  addPairs(signature.states);
  for (const TreeLeaf &leaf : signature.initialValues) {
    std::string type;
    llvm::raw_string_ostream os(type);
    leaf.type.print(os);
    key.add(leaf.path).add(type);
  }
  return key.digest();
}

/// Returns the entry of the cache if it exists and is valid.
std::optional<Executable> readEntry(const Cache &cache, StringRef name) {
  std::unique_ptr<llvm::MemoryBuffer> bytes = cache.read(name);
  if (!bytes)
    return std::nullopt;
  llvm::Expected<Executable> executable =
      Executable::parse(name, bytes->getBuffer());
  if (executable)
    return std::move(*executable);
  // A damaged entry is compiled again.
  llvm::consumeError(executable.takeError());
  cache.remove(name);
  return std::nullopt;
}

void writeEntry(const Cache &cache, StringRef name,
                const Executable &executable) {
  llvm::Expected<std::string> bytes = executable.serialize(name);
  if (!bytes) {
    llvm::consumeError(bytes.takeError());
    return;
  }
  cache.write(name, *bytes);
  cache.prune();
}

/// Returns the kind of arithmetic in dots: processors of one kind compute the
/// same bits (docs/Runtime.md).
std::string arithmeticOf(const CompileOptions &options, MLIRContext &context) {
  if (!options.targetGPU.empty())
    return "of " + options.targetGPU;
  llvm::Expected<CPUTargetAttr> target =
      makeCPUTarget(&context, options.targetCPU);
  if (!target) {
    llvm::consumeError(target.takeError());
    return "unknown";
  }
  TargetInfo info = TargetInfo::of(*target);
  return info.hasAMXBF16      ? "with tiles of bf16"
         : info.hasAVX512BF16 ? "with dots of bf16"
         : info.hasFMA        ? "with FMA"
                              : "without FMA";
}

/// Returns the text that identifies a run.
std::string fingerprintOf(const SourceFile &source, const RecipeTexts &recipe,
                          StringRef arithmetic) {
  auto shorten = [](StringRef digest) { return digest.take_front(16).str(); };
  return "module " + shorten(source.digest()) + ", recipe " + recipe.name +
         " " + shorten(CacheKey().add(recipe.effective).digest()) +
         ", compiler " + FP8_VERSION " " + shorten(getCompilerBuildId()) +
         ", arithmetic " + arithmetic.str();
}

} // namespace

std::string fp8::formatMessage(Diagnostic &diagnostic) {
  std::string line;
  llvm::raw_string_ostream os(line);
  if (auto at = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    os << at.getFilename().strref() << ":" << at.getLine() << ":"
       << at.getColumn() << ": ";
  os << diagnostic;
  return line;
}

static std::string formatLine(StringRef kind, Diagnostic &diagnostic) {
  return (kind + ": " + formatMessage(diagnostic)).str();
}

SmallVector<std::string> fp8::formatDiagnostic(Diagnostic &diagnostic) {
  SmallVector<std::string> lines;
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
    lines.push_back(formatLine("error", diagnostic));
  else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
    lines.push_back(formatLine("warning", diagnostic));
  else
    return lines;
  for (Diagnostic &note : diagnostic.getNotes())
    if (note.getSeverity() == DiagnosticSeverity::Note &&
        !StringRef(note.str()).starts_with("see current operation"))
      lines.push_back(formatLine("note", note));
  return lines;
}

bool fp8::isInitializer(StringRef file) { return file.ends_with(".mlir"); }

FailureOr<Executable>
fp8::compileFile(StringRef file, const CompileOptions &options,
                 MLIRContext &context,
                 const std::function<void(const CompiledNotice &)> &notice) {
  Stopwatch watch;
  FailureOr<SourceFile> source = SourceFile::read(file, context);
  if (failed(source))
    return failure();
  FailureOr<RecipeTexts> recipe = recipeTexts(options, context);
  if (failed(recipe))
    return failure();
  auto tell = [&](const Executable &executable, bool isFromCache) {
    if (notice)
      notice({options.name, executable.find(options.name)->stats, isFromCache,
              watch.seconds()});
  };
  // To dump the IR, the stages have to run.
  const Cache *cache = options.dumpDir.empty() ? options.cache : nullptr;
  std::string entry;
  if (cache) {
    auto target = findTarget(options.targetCPU);
    if (!target)
      return emitError(UnknownLoc::get(&context))
             << llvm::toString(target.takeError());
    entry = "function_" +
            cacheKeyOf(*source, recipe->effective, options, *target) + ".a";
    if (std::optional<Executable> executable = readEntry(*cache, entry)) {
      for (const CompilerWarning &warning : executable->warnings)
        repeat(warning, context);
      tell(*executable, /*isFromCache=*/true);
      return std::move(*executable);
    }
  }
  WarningRecorder recorder(context);
  OwningOpRef<ModuleOp> module = source->parse(context);
  if (!module)
    return failure();
  FailureOr<Executable> executable = compile(*module, options);
  if (failed(executable))
    return failure();
  executable->texts["recipe.yaml"] = recipe->effective;
  if (!recipe->preset.empty())
    executable->texts["preset.yaml"] = recipe->preset;
  executable->fingerprint =
      fingerprintOf(*source, *recipe, arithmeticOf(options, context));
  executable->warnings = std::move(recorder.warnings);
  if (cache)
    writeEntry(*cache, entry, *executable);
  tell(*executable, /*isFromCache=*/false);
  return executable;
}

FailureOr<SmallVector<TreeLeaf>>
fp8::readInitialValues(StringRef resumeDirectory, StringRef initFile,
                       MLIRContext &context) {
  fp8_tensors *tensors = nullptr;
  auto destroy = llvm::scope_exit([&] { fp8_tensors_destroy(tensors); });
  fp8_status status = FP8_OK;
  if (!resumeDirectory.empty())
    status = fp8_checkpoint_load(resumeDirectory.str().c_str(), &tensors);
  if (status == FP8_OK && !tensors && !initFile.empty() &&
      !isInitializer(initFile))
    status = fp8_tensors_load(initFile.str().c_str(), &tensors);
  if (status != FP8_OK)
    return emitError(UnknownLoc::get(&context)) << fp8_last_error();
  return leavesOf(tensors, context);
}

/// Returns the options for a function besides the step: those of the user about
/// the step do not apply.
static CompileOptions optionsForOther(const CompileOptions &step,
                                      StringRef name, bool hasRecipe) {
  CompileOptions other = step;
  other.name = name.str();
  if (!hasRecipe) {
    other.recipe = "none";
    other.recipeOverrides.clear();
  }
  other.signature = SignatureOptions();
  other.signature.functionKind = FunctionKind::Function;
  other.failOnFallback = false;
  other.hasData = true;
  other.dataParallel = false;
  other.lossReduction.clear();
  other.zero = 0;
  other.globalAmax = false;
  other.globalBatch = 0;
  other.trace = false;
  other.returnLogits = name == "check";
  other.checkArguments = nullptr;
  other.exportFormat = std::nullopt;
  return other;
}

/// Imports the evaluation to check its arguments. A pipe can be read only once,
/// when it is compiled.
static LogicalResult checkEvaluation(const ProgramOptions &options,
                                     MLIRContext &context) {
  StringRef file = options.evalFile;
  if (!options.checkEvaluation || !llvm::sys::fs::is_regular_file(file))
    return success();
  // Its warnings are shown when it is compiled.
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  FailureOr<SourceFile> source = SourceFile::read(file, context);
  if (failed(source))
    return failure();
  OwningOpRef<ModuleOp> module = source->parse(context);
  if (!module)
    return failure();
  FailureOr<std::vector<TensorDescription>> arguments = importArguments(
      *module, optionsForOther(options.compile, "eval", /*hasRecipe=*/true));
  if (failed(arguments))
    return failure();
  return options.checkEvaluation(*arguments);
}

FailureOr<Executable> fp8::compileProgram(const ProgramOptions &options,
                                          MLIRContext &context) {
  CompileOptions step = options.compile;
  step.name = "step";
  step.signature.functionKind = FunctionKind::Step;
  FailureOr<SmallVector<TreeLeaf>> values =
      readInitialValues(options.resumeDirectory, options.initFile, context);
  if (failed(values))
    return failure();
  step.signature.initialValues = std::move(*values);
  step.checkArguments = [&](ArrayRef<TensorDescription> arguments) {
    const CheckArguments &check = options.compile.checkArguments;
    return failure((check && failed(check(arguments))) ||
                   failed(checkEvaluation(options, context)));
  };

  auto compileOther = [&](StringRef file, StringRef name, bool hasRecipe) {
    return compileFile(file, optionsForOther(options.compile, name, hasRecipe),
                       context, options.notice);
  };
  std::vector<Executable> others;
  if (isInitializer(options.initFile)) {
    FailureOr<Executable> init =
        compileOther(options.initFile, "init", /*hasRecipe=*/false);
    if (failed(init))
      return failure();
    if (step.signature.initialValues.empty())
      step.signature.initialValues = leavesOf(*init->find("init"), context);
    others.push_back(std::move(*init));
  }
  FailureOr<Executable> program =
      compileFile(options.stepFile, step, context, options.notice);
  if (failed(program))
    return failure();
  auto addEvaluation = [&](StringRef name, bool hasRecipe) -> LogicalResult {
    FailureOr<Executable> eval =
        compileOther(options.evalFile, name, hasRecipe);
    if (succeeded(eval))
      others.push_back(std::move(*eval));
    return eval;
  };
  if (!options.evalFile.empty() &&
      failed(addEvaluation("eval", /*hasRecipe=*/true)))
    return failure();
  // Exported weights are used by models that compute without the recipe.
  if (!options.evalFile.empty() && options.compile.exportFormat &&
      failed(addEvaluation("check", /*hasRecipe=*/false)))
    return failure();
  for (Executable &other : others)
    program->merge(std::move(other));
  return program;
}
