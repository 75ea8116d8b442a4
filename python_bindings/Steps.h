//===- Steps.h - Functions with their memory, and ranks ---------*- C++ -*-===//

#ifndef FP8_PYTHON_BINDINGS_STEPS_H
#define FP8_PYTHON_BINDINGS_STEPS_H

#include "Support.h"

#include "fp8-c/Runtime.h"

#include <nanobind/ndarray.h>

#include <optional>
#include <set>

namespace fp8::python {

/// A copy of an fp8_tensor_info that owns its data.
struct TensorInfo {
  explicit TensorInfo(const fp8_tensor_info &info);

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

  std::vector<TensorInfo> arguments() const;
  std::vector<TensorInfo> results() const;
  bool isOnGPU() const { return fp8_executable_on_gpu(handle) != 0; }

private:
  std::vector<TensorInfo> infos(int64_t count,
                                decltype(fp8_executable_argument) get) const;
};

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
using ConstBytes =
    nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Processes that run steps together.
class Group {
public:
  Group(const std::optional<std::string> &transport, double timeout,
        int64_t bucketBytes);
  Group(const Group &) = delete;
  ~Group() { close(); }

  /// Leaves the group. Its remaining steps run without a group from then on.
  void close();

  bool isClosed() const { return !handle; }

  fp8_group *get() const;

  void add(fp8_step *step);
  void remove(fp8_step *step) { steps.erase(step); }

  std::vector<nb::bytes> gather(const nb::bytes &mine) const;

  bool claimFailure() const;
  void abort(const std::string &message) const;

  int64_t rank = 0, size = 1;

private:
  fp8_group *handle = nullptr;
  std::set<fp8_step *> steps;
};

/// A function with its memory.
class Step {
public:
  Step(const Function &function, int32_t threads);
  Step(const Step &) = delete;
  ~Step();

  /// The group must outlive the step.
  void setGroup(Group &other);
  fp8_group *ranks() const { return group ? group->get() : nullptr; }

  /// Copy the shards and parts of other ranks to this one, and free the memory
  /// of other ranks' shards.
  void gather();
  void release() { check(fp8_step_release(handle)); }
  bool owns(int64_t shard) const { return fp8_owns(handle, shard); }

  void run();
  /// Returns whether the last run has failed, or is not over, which leaves a
  /// state of no step.
  bool broken() const { return isBroken; }
  /// Returns how many runs have ended well.
  int64_t runs() const { return numRuns; }

  /// Returns the bytes of an argument; they live as long as `owner`.
  Bytes argument(int64_t index, nb::handle owner);

  /// Returns the bytes of an argument that is only read.
  Bytes value(int64_t index, nb::handle owner);

  /// Returns the bytes of the whole value if each rank has a part, until the
  /// next run.
  Bytes whole(int64_t index, nb::handle owner);

  /// Sets an argument from a whole value, of which this rank takes its part.
  void setWhole(int64_t index, const ConstBytes &value);

  Bytes result(int64_t index, nb::handle owner);

  nb::dict memory() const;

  /// Writes the state atomically to a file of tensors by path.
  void save(const std::string &path, const Texts &metadata);

  /// Does the same as a set of files, of which each rank writes what it owns.
  void saveSet(const std::string &index, const Texts &metadata);

  /// Reads the state from a file of `save` or a run's checkpoint; returns the
  /// step that the file records, or "". `recipe` is that of the step.
  std::string restore(const std::string &path, const std::string &recipe);

  fp8_step *get() const { return handle; }

  /// Returns a line of trace.jsonl about the last run.
  std::string trace(int64_t number);

  void setProfile(bool on) { fp8_step_set_profile(handle, on); }

  nb::list profile() const;

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

  const void *wholeData(int64_t index, const fp8_tensor_info &info) const;

  static Bytes view(void *data, const fp8_tensor_info &info, nb::handle owner);

  Function executable;
  fp8_step *handle = nullptr;
  int64_t numRuns = 0;
  bool isBroken = false;
  Group *group = nullptr;
};

} // namespace fp8::python

#endif // FP8_PYTHON_BINDINGS_STEPS_H
