//===- Compile.cpp - Compilation, and single passes -----------------------===//

#include "Module.h"
#include "Packages.h"

#include "fp8-c/Compiler.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

using namespace fp8;
using namespace fp8::python;

namespace {
/// The result of one compilation.
class Program {
public:
  explicit Program(fp8_program *handle) : handle(handle) {}
  Program(const Program &) = delete;
  ~Program() { fp8_program_destroy(handle); }

  std::unique_ptr<Package> load() {
    const fp8_package *package;
    fp8_status status;
    {
      Unlocked others;
      status = fp8_program_load(handle, &package);
    }
    if (status != FP8_OK)
      throw Failure(status, fp8_compiler_last_error());
    return std::make_unique<Package>(package);
  }

  void emit(const std::string &directory) const {
    fp8_status status;
    {
      Unlocked others;
      status = fp8_program_emit(handle, cText(directory));
    }
    if (status != FP8_OK)
      throw Failure(status, fp8_compiler_last_error());
  }

private:
  fp8_program *handle;
};
} // namespace

static const char *orNull(const std::optional<std::string> &text) {
  return text ? cText(*text) : nullptr;
}

/// Compiles. Returns the program or None, the diagnostics, one line each, and
/// the error.
static nb::tuple compile(const std::string &step, const std::string &recipe,
                         const Texts &set, const Texts &roles,
                         const Texts &states,
                         const std::optional<std::string> &loss,
                         const std::optional<std::string> &entry,
                         const std::optional<std::string> &target,
                         const std::optional<std::string> &targetCPU,
                         const std::optional<std::string> &gpuImage,
                         const std::optional<std::string> &dumpDirectory,
                         const std::optional<std::string> &eval,
                         const std::optional<std::string> &exportFormat,
                         const std::optional<std::string> &lossReduction,
                         bool dataParallel, int zero, bool globalAmax,
                         int globalBatch, bool failOnFallback, bool trace,
                         bool cache, int threads, int runThreads) {
  std::vector<const char *> setTexts = pointersTo(set),
                            roleTexts = pointersTo(roles),
                            stateTexts = pointersTo(states);
  Texts lines;
  fp8_compile_options options = {};
  options.step = cText(step);
  options.recipe = cText(recipe);
  options.set = setTexts.data();
  options.num_set = static_cast<int64_t>(setTexts.size());
  options.roles = roleTexts.data();
  options.num_roles = static_cast<int64_t>(roleTexts.size());
  options.states = stateTexts.data();
  options.num_states = static_cast<int64_t>(stateTexts.size());
  options.loss = orNull(loss);
  options.entry = orNull(entry);
  options.target = orNull(target);
  options.target_cpu = orNull(targetCPU);
  options.gpu_image = orNull(gpuImage);
  options.dump_directory = orNull(dumpDirectory);
  options.eval = orNull(eval);
  options.export_format = orNull(exportFormat);
  options.loss_reduction = orNull(lossReduction);
  options.data_parallel = dataParallel;
  options.zero = zero;
  options.global_amax = globalAmax;
  options.global_batch = globalBatch;
  options.fail_on_fallback = failOnFallback;
  options.trace = trace;
  options.no_cache = !cache;
  options.threads = threads;
  options.run_threads = runThreads;
  options.diagnostic = keep;
  options.user = &lines;
  fp8_program *program = nullptr;
  fp8_status status;
  {
    Unlocked others;
    status = fp8_compile(&options, &program);
  }
  if (status == FP8_OK)
    return nb::make_tuple(std::make_unique<Program>(program), lines, "");
  return nb::make_tuple(nb::none(), lines, orEmpty(fp8_compiler_last_error()));
}

/// Runs passes. Returns the text of the result or None, the diagnostics, and
/// the error.
static nb::tuple runPasses(const std::string &module,
                           const std::string &pipeline, bool locations) {
  Texts lines;
  char *result = nullptr;
  fp8_status status;
  {
    Unlocked others;
    status = fp8_run_passes(cText(module), cText(pipeline), locations, keep,
                            &lines, &result);
  }
  if (status != FP8_OK)
    return nb::make_tuple(nb::none(), lines,
                          orEmpty(fp8_compiler_last_error()));
  std::unique_ptr<char, void (*)(char *)> text(result, fp8_text_destroy);
  return nb::make_tuple(std::string(text.get()), lines, "");
}

void python::defineCompiler(nb::module_ &m) {
  nb::class_<Program>(m, "Program")
      .def("load", &Program::load, nb::keep_alive<0, 1>())
      .def("emit", &Program::emit, "directory"_a);

  m.def("compile", &compile, "step"_a, nb::kw_only(), "recipe"_a = "none",
        "set"_a = Texts(), "roles"_a = Texts(), "states"_a = Texts(),
        "loss"_a = nb::none(), "entry"_a = nb::none(), "target"_a = nb::none(),
        "target_cpu"_a = nb::none(), "gpu_image"_a = nb::none(),
        "dump_directory"_a = nb::none(), "eval"_a = nb::none(),
        "export_format"_a = nb::none(), "loss_reduction"_a = nb::none(),
        "data_parallel"_a = false, "zero"_a = 0, "global_amax"_a = false,
        "global_batch"_a = 0, "fail_on_fallback"_a = false, "trace"_a = false,
        "cache"_a = true, "threads"_a = 0, "run_threads"_a = 0);
  m.def("run_passes", &runPasses, "module"_a, "pipeline"_a,
        "locations"_a = false);
  m.def("version", [] { return std::string(fp8_compiler_version()); });
}
