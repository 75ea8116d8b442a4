//===- Module.cpp - The C interfaces as the Python module fp8._native -----===//
//
// A thin layer: objects own the handles of the C interfaces, and statuses
// become exceptions. The interface for Python users is in fp8/*.py. Everything
// that takes time releases the interpreter's lock.
//
//===----------------------------------------------------------------------===//

#include "fp8-c/Compiler.h"
#include "fp8-c/Runtime.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <unistd.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// A status that is not FP8_OK, with its message.
struct Failure : std::runtime_error {
  Failure(fp8_status status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  fp8_status status;
};

void check(fp8_status status) {
  if (status != FP8_OK)
    throw Failure(status, fp8_last_error());
}

/// Waits for the end of the process. When Python ends, it ends other threads
/// where they ask for its lock, by unwinding their stacks; in the frames of
/// nanobind and of the C interfaces that would abort the program.
[[noreturn]] void waitForEnd() {
  for (;;)
    pause();
}

/// Leaves Python's lock to others as long as it lives.
class Unlocked {
public:
  Unlocked() : state(PyEval_SaveThread()) {}
  Unlocked(const Unlocked &) = delete;
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state);
    } catch (...) {
      waitForEnd();
    }
  }

private:
  PyThreadState *state;
};

/// Has Python's lock as long as it lives.
class Locked {
public:
  Locked() {
    try {
      state = PyGILState_Ensure();
    } catch (...) {
      waitForEnd();
    }
  }
  Locked(const Locked &) = delete;
  ~Locked() { PyGILState_Release(state); }

private:
  PyGILState_STATE state;
};

/// fp8.RankError, created with the module.
PyObject *rankError;

PyObject *exceptionOf(fp8_status status) {
  switch (status) {
  case FP8_ERROR_RANK:
    return rankError;
  case FP8_ERROR_IO:
    return PyExc_OSError;
  case FP8_ERROR_INVALID:
  case FP8_ERROR_FORMAT:
  case FP8_ERROR_DATA:
  case FP8_ERROR_MISMATCH:
    return PyExc_ValueError;
  case FP8_ERROR_NONFINITE:
    return PyExc_FloatingPointError;
  case FP8_ERROR_MEMORY:
    return PyExc_MemoryError;
  case FP8_INTERRUPTED:
    return PyExc_KeyboardInterrupt;
  default:
    return PyExc_RuntimeError;
  }
}

void translate(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure &failure) {
    PyErr_SetString(exceptionOf(failure.status), failure.what());
  }
}

using Texts = std::vector<std::string>;

/// Returns a text for the C interfaces, which read it up to the first NUL.
const char *cText(const std::string &text) {
  if (text.find('\0') != std::string::npos)
    throw Failure(FP8_ERROR_INVALID,
                  std::string("expected a text without NUL but got one behind "
                              "'") +
                      text.c_str() + "'");
  return text.c_str();
}

std::vector<const char *> pointersTo(const Texts &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(cText(text));
  return pointers;
}

std::string orEmpty(const char *text) { return text ? text : ""; }

/// Sets the string to which `user` points.
void set(void *user, const char *text) {
  *static_cast<std::string *>(user) = text;
}

/// Appends a line to the `Texts` to which `user` points.
void keep(void *user, const char *text) {
  static_cast<Texts *>(user)->push_back(text);
}

/// Describes the whole of a tensor of which each rank has a part; other tensors
/// are returned as they are.
fp8_tensor_info wholeOf(fp8_tensor_info info) {
  if (info.whole_dims)
    info.dims = info.whole_dims;
  info.whole_dims = nullptr;
  return info;
}

/// A copy of an fp8_tensor_info that owns its data.
struct TensorInfo {
  explicit TensorInfo(const fp8_tensor_info &info)
      : name(info.name), dtype(orEmpty(fp8_dtype_name(info.dtype))),
        role(orEmpty(fp8_role_name(info.role))),
        kind(orEmpty(fp8_kind_name(info.kind))),
        shape(info.dims, info.dims + info.rank), bytes(fp8_tensor_bytes(&info)),
        stateArg(info.kind == FP8_KIND_STATE ? info.state_arg : -1),
        zeroInit(info.zero_init), ownBuffer(info.own_buffer),
        shard(info.shard) {
    const int64_t *whole = wholeOf(info).dims, *offset = info.part_offsets;
    wholeShape.assign(whole, whole + info.rank);
    for (int64_t i = 0; i < info.num_parts; ++i, offset += info.rank)
      parts.emplace_back(offset, offset + info.rank);
  }

  std::string name, dtype, role, kind;
  std::vector<int64_t> shape, wholeShape;
  /// The offset of each rank's part in the whole; empty if the tensor has no
  /// parts.
  std::vector<std::vector<int64_t>> parts;
  int64_t bytes;
  int32_t stateArg;
  bool zeroInit, ownBuffer;
  int64_t shard;
};

/// A function of a package, which must outlive it.
class Function {
public:
  explicit Function(const fp8_executable *handle) : handle(handle) {}

  const fp8_executable *handle;

  std::vector<TensorInfo> arguments() const {
    return infos(fp8_executable_num_arguments(handle), fp8_executable_argument);
  }
  std::vector<TensorInfo> results() const {
    return infos(fp8_executable_num_results(handle), fp8_executable_result);
  }
  bool isOnGPU() const { return fp8_executable_on_gpu(handle) != 0; }

private:
  std::vector<TensorInfo> infos(int64_t count,
                                decltype(fp8_executable_argument) get) const {
    std::vector<TensorInfo> found;
    for (int64_t i = 0; i < count; ++i) {
      fp8_tensor_info info;
      check(get(handle, i, &info));
      found.emplace_back(info);
    }
    return found;
  }
};

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
using ConstBytes =
    nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Processes that run steps together.
class Group {
public:
  Group(const std::optional<std::string> &transport, double timeout,
        int64_t bucketBytes) {
    fp8_group_options options = {};
    options.transport = transport ? cText(*transport) : nullptr;
    options.timeout = timeout;
    options.bucket_bytes = bucketBytes;
    fp8_status status;
    {
      Unlocked others;
      status = fp8_group_create(&options, &handle);
    }
    check(status);
    rank = fp8_group_rank(handle);
    size = fp8_group_size(handle);
  }
  Group(const Group &) = delete;
  ~Group() { close(); }

  /// Leaves the group. Its remaining steps run without a group from then on.
  void close() {
    for (fp8_step *step : steps)
      fp8_step_set_group(step, nullptr);
    steps.clear();
    fp8_group *left = std::exchange(handle, nullptr);
    Unlocked others;
    fp8_group_destroy(left);
  }

  bool isClosed() const { return !handle; }

  fp8_group *get() const {
    if (!handle)
      throw Failure(FP8_ERROR_INVALID,
                    "expected ranks that are together but their group is "
                    "closed");
    return handle;
  }

  void add(fp8_step *step) {
    check(fp8_step_set_group(step, get()));
    steps.insert(step);
  }
  void remove(fp8_step *step) { steps.erase(step); }

  std::vector<nb::bytes> gather(const nb::bytes &mine) const {
    std::vector<std::string> all;
    auto add = [](void *user, const void *data, int64_t bytes) {
      static_cast<std::vector<std::string> *>(user)->emplace_back(
          static_cast<const char *>(data), bytes);
    };
    fp8_group *group = get();
    fp8_status status;
    {
      Unlocked others;
      status = fp8_group_gather(group, mine.c_str(),
                                static_cast<int64_t>(mine.size()), add, &all);
    }
    check(status);
    std::vector<nb::bytes> result;
    for (const std::string &each : all)
      result.emplace_back(each.data(), each.size());
    return result;
  }

  bool claimFailure() const {
    Unlocked others;
    return fp8_group_claim_failure(handle);
  }
  void abort(const std::string &message) const {
    Unlocked others;
    fp8_group_abort(handle, message.c_str());
  }

  int64_t rank = 0, size = 1;

private:
  fp8_group *handle = nullptr;
  std::set<fp8_step *> steps;
};

/// A function with its memory.
class Step {
public:
  Step(const Function &function, int32_t threads) : executable(function) {
    check(fp8_step_create(function.handle, threads, &handle));
  }
  Step(const Step &) = delete;
  ~Step() {
    if (group)
      group->remove(handle);
    fp8_step_destroy(handle);
  }

  /// The group must outlive the step.
  void setGroup(Group &other) {
    other.add(handle);
    group = &other;
  }
  fp8_group *ranks() const { return group ? group->get() : nullptr; }

  /// Copy the shards and parts of other ranks to this one, and free the memory
  /// of other ranks' shards.
  void gather() {
    fp8_status status;
    {
      Unlocked others;
      status = fp8_step_gather(handle);
    }
    check(status);
  }
  void release() { check(fp8_step_release(handle)); }
  bool owns(int64_t shard) const { return fp8_owns(handle, shard); }

  void run() {
    ranks();
    fp8_status status;
    // A process that is forked meanwhile has a half-done run.
    isBroken = true;
    {
      Unlocked others;
      status = fp8_step_run(handle);
    }
    isBroken = status != FP8_OK;
    check(status);
    ++numRuns;
  }
  /// Returns whether the last run has failed, or is not over, which leaves a
  /// state of no step.
  bool broken() const { return isBroken; }
  /// Returns how many runs have ended well.
  int64_t runs() const { return numRuns; }

  /// Returns the bytes of an argument; they live as long as `owner`.
  Bytes argument(int64_t index, nb::handle owner) {
    fp8_tensor_info info;
    check(fp8_executable_argument(executable.handle, index, &info));
    return view(fp8_step_argument(handle, index), info, owner);
  }

  /// Returns the bytes of an argument that is only read.
  Bytes value(int64_t index, nb::handle owner) {
    fp8_tensor_info info;
    check(fp8_executable_argument(executable.handle, index, &info));
    return view(const_cast<void *>(fp8_step_value(handle, index)), info, owner);
  }

  /// Returns the bytes of the whole value if each rank has a part, until the
  /// next run.
  Bytes whole(int64_t index, nb::handle owner) {
    fp8_tensor_info info;
    check(fp8_executable_argument(executable.handle, index, &info));
    return view(const_cast<void *>(wholeData(index, info)), wholeOf(info),
                owner);
  }

  /// Sets an argument from a whole value, of which this rank takes its part.
  void setWhole(int64_t index, const ConstBytes &value) {
    fp8_tensor_info info;
    check(fp8_executable_argument(executable.handle, index, &info));
    fp8_tensor_info whole = wholeOf(info);
    if (static_cast<int64_t>(value.size()) != fp8_tensor_bytes(&whole))
      throw Failure(FP8_ERROR_INVALID,
                    std::string(info.name) + ": expected " +
                        std::to_string(fp8_tensor_bytes(&whole)) +
                        " bytes but got " + std::to_string(value.size()));
    if (value.size())
      check(fp8_step_set_whole(handle, index, value.data()));
  }

  Bytes result(int64_t index, nb::handle owner) {
    fp8_tensor_info info;
    check(fp8_executable_result(executable.handle, index, &info));
    return view(fp8_step_result(handle, index), info, owner);
  }

  nb::dict memory() const {
    fp8_memory memory;
    check(fp8_step_memory(handle, &memory));
    nb::dict dict;
    dict["arena_planned"] = memory.arena_planned;
    dict["arena_touched"] = memory.arena_touched;
    dict["arguments"] = memory.arguments;
    dict["results"] = memory.results;
    dict["constants"] = memory.constants;
    dict["scratch"] = memory.scratch;
    dict["peak_rss"] = memory.peak_rss;
    return dict;
  }

  /// Writes the state atomically to a file of tensors by path.
  void save(const std::string &path, const Texts &metadata) {
    std::vector<fp8_tensor_info> infos;
    std::vector<const void *> data;
    forEachState([&](int64_t index, const fp8_tensor_info &info) {
      infos.push_back(wholeOf(info));
      data.push_back(wholeData(index, info));
    });
    std::vector<const char *> texts = pointersTo(metadata);
    fp8_status status;
    {
      Unlocked others;
      status =
          fp8_tensors_save(cText(path), infos.data(), data.data(),
                           static_cast<int64_t>(infos.size()), texts.data(),
                           static_cast<int64_t>(texts.size() / 2));
    }
    check(status);
  }

  /// Does the same as a set of files, of which each rank writes what it owns.
  void saveSet(const std::string &index, const Texts &metadata) {
    std::vector<const char *> texts = pointersTo(metadata);
    fp8_status status;
    {
      Unlocked others;
      status = fp8_step_save_set(handle, cText(index), texts.data(),
                                 static_cast<int64_t>(texts.size() / 2));
    }
    check(status);
  }

  /// Reads the state from a file of `save` or a run's checkpoint; returns the
  /// step that the file records, or "". `recipe` is that of the step.
  std::string restore(const std::string &path, const std::string &recipe) {
    fp8_tensors *opened;
    check(fp8_tensors_load(cText(path), &opened));
    std::unique_ptr<fp8_tensors, void (*)(fp8_tensors *)> tensors(
        opened, fp8_tensors_destroy);
    fp8_status status = fp8_step_restore(handle, opened);
    if (status == FP8_ERROR_MISMATCH) {
      const char *written = fp8_tensors_metadata(opened, "recipe");
      throw Failure(status, path + ": " + fp8_last_error() +
                                (written && written != recipe
                                     ? "\n  It was written with another recipe."
                                     : ""));
    }
    check(status);
    return orEmpty(fp8_tensors_metadata(opened, "step"));
  }

  fp8_step *get() const { return handle; }

  /// Returns a line of trace.jsonl about the last run.
  std::string trace(int64_t number) {
    std::string line;
    check(fp8_step_trace(handle, number, set, &line));
    return line;
  }

  void setProfile(bool on) { fp8_step_set_profile(handle, on); }

  nb::list profile() const {
    int64_t count = 0;
    const fp8_launch_stat *stats = fp8_step_profile(handle, &count);
    nb::list rows;
    for (const fp8_launch_stat *stat = stats; stat != stats + count; ++stat) {
      nb::dict row;
      row["name"] = orEmpty(stat->name);
      row["tasks"] = stat->tasks;
      row["runs"] = stat->runs;
      row["seconds"] = stat->seconds;
      rows.append(row);
    }
    return rows;
  }

private:
  /// Calls `visit` for each argument that is state.
  template <typename Visit> void forEachState(Visit visit) const {
    for (int64_t i = 0; i < fp8_executable_num_arguments(executable.handle);
         ++i) {
      fp8_tensor_info info;
      check(fp8_executable_argument(executable.handle, i, &info));
      if (info.role == FP8_ROLE_STATE)
        visit(i, info);
    }
  }

  const void *wholeData(int64_t index, const fp8_tensor_info &info) const {
    const void *data = fp8_step_whole(handle, index);
    // An empty tensor may have no buffer.
    if (!data && fp8_tensor_bytes(&info))
      throw Failure(FP8_ERROR_INVALID, fp8_last_error());
    return data;
  }

  static Bytes view(void *data, const fp8_tensor_info &info, nb::handle owner) {
    size_t size = fp8_tensor_bytes(&info);
    // An empty tensor may have no buffer.
    static uint8_t none;
    return Bytes(data ? static_cast<uint8_t *>(data) : &none, {size}, owner);
  }

  Function executable;
  fp8_step *handle = nullptr;
  int64_t numRuns = 0;
  bool isBroken = false;
  Group *group = nullptr;
};

/// The data for an evaluation: text files, and arrays (path of the argument,
/// type, shape, bytes).
struct HeldOut {
  using Array =
      std::tuple<std::string, std::string, std::vector<int64_t>, Bytes>;
  Texts data, evalData;
  std::vector<Array> arrays;
  double holdout = 0.1;
  uint64_t seed = 0;
  int32_t threads = 0;
};

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

/// Functions by name; a program owns those of its package.
class Package {
public:
  explicit Package(const std::string &directory) {
    fp8_package *opened;
    fp8_status status;
    {
      Unlocked others;
      status = fp8_package_open(cText(directory), &opened);
    }
    check(status);
    handle = owned = opened;
  }
  explicit Package(const fp8_package *borrowed) : handle(borrowed) {}
  Package(const Package &) = delete;
  ~Package() { fp8_package_close(owned); }

  std::optional<Function> function(const std::string &name) const {
    if (const fp8_executable *found =
            fp8_package_function(handle, name.c_str()))
      return Function(found);
    return std::nullopt;
  }

  std::optional<std::string> text(const std::string &name) const {
    if (const char *found = fp8_package_text(handle, name.c_str()))
      return found;
    return std::nullopt;
  }

  /// Returns fp8_evaluate's line of JSON.
  std::string evaluate(const Step &step, const HeldOut &heldOut) const {
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

  void exportWeights(const Step &step, const std::string &directory,
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

private:
  const fp8_package *handle;
  fp8_package *owned = nullptr;
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

const char *orNull(const std::optional<std::string> &text) {
  return text ? cText(*text) : nullptr;
}

/// Compiles. Returns the program or None, the diagnostics, one line each, and
/// the error.
nb::tuple compile(const std::string &step, const std::string &recipe,
                  const Texts &set, const Texts &roles, const Texts &states,
                  const std::optional<std::string> &loss,
                  const std::optional<std::string> &entry,
                  const std::optional<std::string> &target,
                  const std::optional<std::string> &targetCPU,
                  const std::optional<std::string> &gpuImage,
                  const std::optional<std::string> &dumpDirectory,
                  const std::optional<std::string> &eval,
                  const std::optional<std::string> &exportFormat,
                  const std::optional<std::string> &lossReduction,
                  bool dataParallel, int zero, bool globalAmax, int globalBatch,
                  bool failOnFallback, bool trace, bool cache, int threads,
                  int runThreads) {
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
nb::tuple runPasses(const std::string &module, const std::string &pipeline,
                    bool locations) {
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

} // namespace

NB_MODULE(_native, m) {
  m.doc() = "The C interfaces of fp8's compiler and runtime.";
  // A view that is alive when Python ends keeps its buffers, as documented.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  rankError = PyErr_NewExceptionWithDoc(
      "fp8.RankError",
      "Another rank has failed, does not answer, or does something else than "
      "rank 0; the text names it.",
      PyExc_RuntimeError, nullptr);
  m.attr("RankError") = nb::handle(rankError);

  nb::class_<TensorInfo>(m, "TensorInfo")
      .def_ro("name", &TensorInfo::name)
      .def_ro("dtype", &TensorInfo::dtype)
      .def_prop_ro("shape",
                   [](const TensorInfo &info) {
                     return nb::tuple(nb::cast(info.shape));
                   })
      .def_prop_ro("whole_shape",
                   [](const TensorInfo &info) {
                     return nb::tuple(nb::cast(info.wholeShape));
                   })
      .def_ro("parts", &TensorInfo::parts)
      .def_ro("bytes", &TensorInfo::bytes)
      .def_ro("role", &TensorInfo::role)
      .def_ro("kind", &TensorInfo::kind)
      .def_ro("state_arg", &TensorInfo::stateArg)
      .def_ro("zero_init", &TensorInfo::zeroInit)
      .def_ro("own_buffer", &TensorInfo::ownBuffer)
      .def_ro("shard", &TensorInfo::shard);

  nb::class_<Function>(m, "Function")
      .def_prop_ro("arguments", &Function::arguments)
      .def_prop_ro("results", &Function::results)
      .def_prop_ro("on_gpu", &Function::isOnGPU);

  nb::class_<Group>(m, "Group")
      .def(nb::init<const std::optional<std::string> &, double, int64_t>(),
           "transport"_a = nb::none(), "timeout"_a = 0, "bucket_bytes"_a = 0)
      .def_ro("rank", &Group::rank)
      .def_ro("size", &Group::size)
      .def_prop_ro("closed", &Group::isClosed)
      .def("gather", &Group::gather, "value"_a)
      .def("claim_failure", &Group::claimFailure)
      .def("abort", &Group::abort, "message"_a)
      .def("close", &Group::close);

  nb::class_<Step>(m, "Step")
      .def(nb::init<const Function &, int32_t>(), "function"_a, "threads"_a = 0,
           nb::keep_alive<1, 2>())
      .def("run", &Step::run)
      .def_prop_ro("runs", &Step::runs)
      .def_prop_ro("broken", &Step::broken)
      .def("argument", &Step::argument, "index"_a, "owner"_a,
           nb::rv_policy::reference)
      .def("value", &Step::value, "index"_a, "owner"_a,
           nb::rv_policy::reference)
      .def("result", &Step::result, "index"_a, "owner"_a,
           nb::rv_policy::reference)
      .def("whole", &Step::whole, "index"_a, "owner"_a,
           nb::rv_policy::reference)
      .def("set_whole", &Step::setWhole, "index"_a, "value"_a)
      .def("save", &Step::save, "path"_a, "metadata"_a)
      .def("save_set", &Step::saveSet, "index"_a, "metadata"_a)
      .def("restore", &Step::restore, "path"_a, "recipe"_a)
      .def("trace", &Step::trace, "number"_a)
      .def("memory", &Step::memory)
      .def("set_profile", &Step::setProfile, "on"_a)
      .def("profile", &Step::profile)
      .def("set_group", &Step::setGroup, "group"_a, nb::keep_alive<1, 2>())
      .def("gather", &Step::gather)
      .def("release", &Step::release)
      .def("owns", &Step::owns, "shard"_a);

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
