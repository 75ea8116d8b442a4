//===- Compiler.cpp - C interface of the compiler -------------------------===//

#include "fp8-c/Compiler.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Binding/Texts.h"
#include "fp8/Compiler/BuildId.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Compiler/LoadedExecutable.h"
#include "fp8/Compiler/Package.h"
#include "fp8/Compiler/Program.h"
#include "fp8/Init.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <exception>
#include <new>

using namespace mlir;
using namespace mlir::fp8;

struct fp8_program {
  Executable executable;
  std::unique_ptr<LoadedExecutable> loaded;
};

static std::string &lastError() {
  thread_local std::string message;
  return message;
}

static fp8_status fail(fp8_status status, const llvm::Twine &message) {
  lastError() = message.str();
  return status;
}

/// Runs the body of a function of this interface: no exception leaves it. The
/// compiler throws none itself, but the standard library does.
template <typename F> static fp8_status guard(F &&body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(FP8_ERROR_MEMORY, "out of memory");
  } catch (const std::exception &error) {
    return fail(FP8_ERROR_INTERNAL, error.what());
  }
}

static std::string textOf(const char *text, const char *otherwise = "") {
  return text ? text : otherwise;
}

namespace {

/// Passes diagnostics on and keeps the first error.
class Listener {
public:
  Listener(fp8_message_fn message, void *user, MLIRContext &context)
      : message(message), user(user),
        handler(&context, [this](Diagnostic &diagnostic) {
          if (firstError.empty() &&
              diagnostic.getSeverity() == DiagnosticSeverity::Error)
            firstError = formatMessage(diagnostic);
          for (const std::string &line : formatDiagnostic(diagnostic))
            tell(line);
          return success();
        }) {}

  std::string firstError;

private:
  void tell(const std::string &line) {
    if (message)
      message(user, line.c_str());
    else
      llvm::errs() << line << "\n";
  }

  fp8_message_fn message;
  void *user;
  ScopedDiagnosticHandler handler;
};

} // namespace

/// `KEY=VALUE` texts as pairs; the first that is none as a mistake.
static std::string
readPairs(const char *what, const char *const *texts, int64_t count,
          SmallVectorImpl<std::pair<std::string, std::string>> &pairs) {
  if (std::string mistake =
          fp8binding::mistakeInTexts(what + std::string("s"), texts, count);
      !mistake.empty())
    return mistake;
  for (int64_t i = 0; i < count; ++i) {
    auto parts = fp8binding::splitAssignment(texts[i]);
    if (!parts)
      return ("expected " + llvm::Twine(what) + " KEY=VALUE but got '" +
              texts[i] + "'")
          .str();
    pairs.emplace_back(parts->first, parts->second);
  }
  return "";
}

/// What a step on several ranks is compiled with; a mistake, or "".
static std::string readRankOptions(const fp8_compile_options &options,
                                   CompileOptions &compile) {
  compile.dataParallel = options.data_parallel;
  compile.globalAmax = options.global_amax;
  compile.lossReduction = textOf(options.loss_reduction);
  if (options.zero < 0 || options.zero > 1)
    return "expected zero to be 0 or 1 (gradients and parameters are not "
           "dealt) but got " +
           std::to_string(options.zero);
  compile.zero = options.zero;
  if (options.global_batch < 0)
    return "expected global_batch to be a number of ranks but got " +
           std::to_string(options.global_batch);
  compile.globalBatch = options.global_batch;
  if (!options.data_parallel &&
      (compile.zero > 0 || compile.globalAmax || compile.globalBatch > 0 ||
       !compile.lossReduction.empty()))
    return "expected data_parallel with zero, global_amax, global_batch or "
           "loss_reduction";
  return "";
}

/// Where the kernels run; a mistake, or "".
static std::string readTarget(const fp8_compile_options &options,
                              CompileOptions &compile) {
  if (options.target_cpu)
    compile.targetCPU = options.target_cpu;
  std::string mistake = compile.setTarget(textOf(options.target, "cpu"));
  if (!mistake.empty())
    return mistake;
  compile.gpuImage = textOf(options.gpu_image);
  if (options.gpu_expand != 0)
    compile.gpuExpand = std::max<int64_t>(options.gpu_expand, 0);
  if (compile.targetGPU.empty() &&
      (!compile.gpuImage.empty() || options.gpu_expand != 0))
    return "expected a target nvptx:GPU with gpu_image or gpu_expand";
  return "";
}

/// The options for the compiler; a mistake, or "".
static std::string readOptions(const fp8_compile_options &options,
                               ProgramOptions &program) {
  if (!options.step || !*options.step)
    return "expected a step but got none";
  program.stepFile = options.step;
  program.initFile = textOf(options.init);
  program.evalFile = textOf(options.eval);
  program.resumeDirectory = textOf(options.resume_directory);
  CompileOptions &compile = program.compile;
  compile.recipe = textOf(options.recipe, "none");
  if (std::string mistake = fp8binding::mistakeInTexts(
          "settings of the recipe", options.set, options.num_set);
      !mistake.empty())
    return mistake;
  for (int64_t i = 0; i < options.num_set; ++i)
    compile.recipeOverrides.push_back(options.set[i]);
  compile.entry = textOf(options.entry);
  compile.signature.loss = textOf(options.loss);
  compile.dumpDir = textOf(options.dump_directory);
  compile.failOnFallback = options.fail_on_fallback;
  compile.trace = options.trace;
  if (std::string mistake = readTarget(options, compile); !mistake.empty())
    return mistake;
  if (std::string mistake = readRankOptions(options, compile); !mistake.empty())
    return mistake;
  if (options.threads < 0 || options.run_threads < 0)
    return "expected a number of threads but got less than 0";
  compile.threads = options.threads;
  compile.runThreads = options.run_threads;
  if (options.export_format) {
    compile.exportFormat = symbolizeExportFormat(options.export_format);
    if (!compile.exportFormat)
      return "expected an export format f32, bf16 or f8E4M3FN but got '" +
             textOf(options.export_format) + "'";
  }
  std::string mistake = readPairs("role", options.roles, options.num_roles,
                                  compile.signature.roles);
  if (!mistake.empty())
    return mistake;
  return readPairs("state", options.states, options.num_states,
                   compile.signature.states);
}

const char *fp8_compiler_last_error(void) { return lastError().c_str(); }

const char *fp8_compiler_version(void) { return getCompilerVersion().data(); }

const char *fp8_compiler_build(void) { return getCompilerBuildId().data(); }

static fp8_status compile(const fp8_compile_options *options,
                          fp8_program **program) {
  if (!options || !program)
    return fail(FP8_ERROR_INVALID, "expected options and a place for the "
                                   "program but got NULL");
  *program = nullptr;
  ProgramOptions read;
  std::string mistake = readOptions(*options, read);
  if (!mistake.empty())
    return fail(FP8_ERROR_INVALID, mistake);
  std::unique_ptr<Cache> cache;
  if (!options->no_cache) {
    auto opened = Cache::fromEnvironment();
    if (!opened)
      return fail(FP8_ERROR_INVALID, llvm::toString(opened.takeError()));
    cache = std::move(*opened);
  }
  read.compile.cache = cache.get();
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  Listener listener(options->diagnostic, options->user, context);
  FailureOr<Executable> executable = compileProgram(read, context);
  if (failed(executable))
    return fail(FP8_ERROR_INVALID, listener.firstError);
  *program = new fp8_program{std::move(*executable), nullptr};
  return FP8_OK;
}

fp8_status fp8_compile(const fp8_compile_options *options,
                       fp8_program **program) {
  return guard([&] { return compile(options, program); });
}

void fp8_program_destroy(fp8_program *program) { delete program; }

static fp8_status load(fp8_program *program, const fp8_package **package) {
  if (!program || !package)
    return fail(FP8_ERROR_INVALID, "expected a program and a place for the "
                                   "package but got NULL");
  *package = nullptr;
  if (!program->loaded) {
    if (llvm::Error error = LoadedExecutable::check(program->executable))
      return fail(FP8_ERROR_INVALID, llvm::toString(std::move(error)));
    auto loaded = LoadedExecutable::load(program->executable);
    if (!loaded)
      return fail(FP8_ERROR_INTERNAL, llvm::toString(loaded.takeError()));
    program->loaded = std::move(*loaded);
  }
  *package = program->loaded->package();
  return FP8_OK;
}

fp8_status fp8_program_load(fp8_program *program, const fp8_package **package) {
  return guard([&] { return load(program, package); });
}

fp8_status fp8_program_emit(const fp8_program *program, const char *directory) {
  if (!program || !directory)
    return fail(FP8_ERROR_INVALID,
                "expected a program and a directory but got NULL");
  return guard([&] {
    if (llvm::Error error = writePackage(program->executable, directory))
      return fail(FP8_ERROR_IO, llvm::toString(std::move(error)));
    return FP8_OK;
  });
}

/// Pass registration is global and happens once.
static void registerPassesOnce() {
  static bool once = (registerAllPasses(), true);
  (void)once;
}

static fp8_status runPasses(const char *module, const char *pipeline,
                            int32_t locations, fp8_message_fn diagnostic,
                            void *user, char **result) {
  if (!module || !pipeline || !result)
    return fail(FP8_ERROR_INVALID, "expected a module, a pipeline and a place "
                                   "for the result but got NULL");
  *result = nullptr;
  registerPassesOnce();
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  Listener listener(diagnostic, user, context);
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(module, &context);
  if (!parsed)
    return fail(FP8_ERROR_INVALID, listener.firstError);
  PassManager passes(&context, ModuleOp::getOperationName());
  std::string mistake;
  llvm::raw_string_ostream mistakes(mistake);
  if (failed(parsePassPipeline(pipeline, passes, mistakes)))
    return fail(FP8_ERROR_INVALID, StringRef(mistake).trim());
  if (failed(passes.run(*parsed)))
    return fail(FP8_ERROR_INVALID, listener.firstError);
  std::string text;
  llvm::raw_string_ostream os(text);
  parsed->print(os, OpPrintingFlags().enableDebugInfo(locations));
  *result = strdup(text.c_str());
  return *result ? FP8_OK : fail(FP8_ERROR_MEMORY, "out of memory");
}

fp8_status fp8_run_passes(const char *module, const char *pipeline,
                          int32_t locations, fp8_message_fn diagnostic,
                          void *user, char **result) {
  return guard([&] {
    return runPasses(module, pipeline, locations, diagnostic, user, result);
  });
}

void fp8_text_destroy(char *text) { free(text); }
