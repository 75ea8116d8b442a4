//===- Packages.cpp - Functions by name, and alarms -----------------------===//

#include "Packages.h"

#include "Module.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>

using namespace fp8;
using namespace fp8::python;

namespace {
/// Lets Python handle the signals that arrive during a call without its lock:
/// the program's handlers run as they would between two lines of it. What one
/// of them raises ends the call.
class Signals {
public:
  /// Called without the lock; returns whether to end.
  static int32_t check(void *self) {
    return static_cast<Signals *>(self)->hasRaised();
  }
  /// Raises what a handler has raised.
  void raise() const {
    if (raised)
      throw *raised;
  }

private:
  bool hasRaised() {
    // Another thread may keep the lock for milliseconds.
    constexpr std::chrono::milliseconds pause(50);
    auto now = std::chrono::steady_clock::now();
    if (now < next)
      return false;
    next = now + pause;
    Locked mine;
    if (PyErr_CheckSignals() != 0)
      raised.emplace();
    return raised.has_value();
  }

  std::chrono::steady_clock::time_point next;
  std::optional<nb::python_error> raised;
};

/// The options for an evaluation, with ownership of what they point to.
class EvaluationOptions {
public:
  explicit EvaluationOptions(const HeldOut &heldOut)
      : data(pointersTo(heldOut.data)), evalData(pointersTo(heldOut.evalData)),
        infos(heldOut.arrays.size()) {
    options.data_files = data.data();
    options.num_data_files = static_cast<int64_t>(data.size());
    options.eval_files = evalData.data();
    options.num_eval_files = static_cast<int64_t>(evalData.size());
    for (size_t i = 0; i < infos.size(); ++i)
      add(heldOut.arrays[i], infos[i]);
    options.eval_batches = batches.data();
    options.num_eval_batches = static_cast<int64_t>(batches.size());
    options.holdout = heldOut.holdout == 0 ? -1 : heldOut.holdout;
    options.seed = heldOut.seed;
    options.threads = heldOut.threads;
    options.no_signals = true;
    options.stop = Signals::check;
    options.user = &signals;
  }
  EvaluationOptions(const EvaluationOptions &) = delete;

  fp8_train_options options = {};
  Signals signals;

private:
  void add(const HeldOut::Array &array, fp8_tensor_info &info) {
    const auto &[path, dtype, shape, bytes] = array;
    int known = 0;
    while (known < FP8_NUM_DTYPES &&
           dtype != orEmpty(fp8_dtype_name(static_cast<fp8_dtype>(known))))
      ++known;
    info.dtype = static_cast<fp8_dtype>(known);
    info.rank = static_cast<int32_t>(shape.size());
    info.dims = shape.data();
    if (fp8_tensor_bytes(&info) != static_cast<int64_t>(bytes.size()))
      throw Failure(FP8_ERROR_INVALID,
                    path + ": expected an array of the bytes of its type");
    fp8_batch_source source = {};
    source.path = path.c_str();
    source.info = &info;
    source.data = bytes.data();
    batches.push_back(source);
  }

  std::vector<const char *> data, evalData;
  std::vector<fp8_tensor_info> infos;
  std::vector<fp8_batch_source> batches;
};

/// Rules about a step's metrics.
class Alarms {
public:
  Alarms(const Function &step, const Texts &rules) {
    std::vector<const char *> texts = pointersTo(rules);
    check(fp8_alarms_create(step.handle, texts.data(),
                            static_cast<int64_t>(texts.size()), &handle));
  }
  Alarms(const Alarms &) = delete;
  ~Alarms() { fp8_alarms_destroy(handle); }

  bool maySkip() const { return fp8_alarms_may_skip(handle); }
  /// Returns the messages about the step's last run, and whether to skip its
  /// update and to stop.
  nb::tuple checkStep(const Step &step, int64_t number) {
    Texts lines;
    int32_t skip = 0, stop = 0;
    check(fp8_alarms_check(handle, step.get(), number, keep, &lines, &skip,
                           &stop));
    return nb::make_tuple(lines, skip != 0, stop != 0);
  }

private:
  fp8_alarms *handle = nullptr;
};
} // namespace

Package::Package(const std::string &directory) {
  fp8_package *opened;
  fp8_status status;
  {
    Unlocked others;
    status = fp8_package_open(cText(directory), &opened);
  }
  check(status);
  handle = owned = opened;
}

std::optional<Function> Package::function(const std::string &name) const {
  if (const fp8_executable *found = fp8_package_function(handle, name.c_str()))
    return Function(found);
  return std::nullopt;
}

std::optional<std::string> Package::text(const std::string &name) const {
  if (const char *found = fp8_package_text(handle, name.c_str()))
    return found;
  return std::nullopt;
}

std::string Package::evaluate(const Step &step, const HeldOut &heldOut) const {
  EvaluationOptions given(heldOut);
  check(fp8_package_options(handle, &given.options, nullptr));
  given.options.group = step.ranks();
  std::string line;
  fp8_status status;
  {
    Unlocked others;
    status = fp8_evaluate(&given.options, step.get(), set, &line);
  }
  given.signals.raise();
  check(status);
  return line;
}

void Package::exportWeights(const Step &step, const std::string &directory,
                            int64_t number, const HeldOut &heldOut) const {
  EvaluationOptions given(heldOut);
  fp8_export exported = {};
  check(fp8_package_options(handle, &given.options, &exported));
  exported.directory = cText(directory);
  given.options.export_weights = &exported;
  fp8_status status;
  {
    Unlocked others;
    status = fp8_export_weights(&given.options, step.get(), number);
  }
  given.signals.raise();
  check(status);
}

void python::definePackages(nb::module_ &m) {
  nb::class_<Package>(m, "Package")
      .def(nb::init<const std::string &>(), "directory"_a)
      .def("function", &Package::function, "name"_a, nb::keep_alive<0, 1>())
      .def("text", &Package::text, "name"_a)
      .def("evaluate", &Package::evaluate, "step"_a, "held_out"_a)
      .def("export_weights", &Package::exportWeights, "step"_a, "directory"_a,
           "number"_a, "held_out"_a);

  nb::class_<HeldOut>(m, "HeldOut")
      .def(nb::init<>())
      .def_rw("data", &HeldOut::data)
      .def_rw("eval_data", &HeldOut::evalData)
      .def_rw("arrays", &HeldOut::arrays)
      .def_rw("holdout", &HeldOut::holdout)
      .def_rw("seed", &HeldOut::seed)
      .def_rw("threads", &HeldOut::threads);

  nb::class_<Alarms>(m, "Alarms")
      .def(nb::init<const Function &, const Texts &>(), "step"_a, "rules"_a,
           nb::keep_alive<1, 2>())
      .def_prop_ro("may_skip", &Alarms::maySkip)
      .def("check", &Alarms::checkStep, "step"_a, "number"_a);
}
