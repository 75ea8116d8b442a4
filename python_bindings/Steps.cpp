//===- Steps.cpp - Functions with their memory, and ranks -----------------===//

#include "Steps.h"

#include "Module.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

using namespace fp8;
using namespace fp8::python;

/// Describes the whole of a tensor of which each rank has a part; other tensors
/// are returned as they are.
static fp8_tensor_info wholeOf(fp8_tensor_info info) {
  if (info.whole_dims)
    info.dims = info.whole_dims;
  info.whole_dims = nullptr;
  return info;
}

TensorInfo::TensorInfo(const fp8_tensor_info &info)
    : name(info.name), dtype(orEmpty(fp8_dtype_name(info.dtype))),
      role(orEmpty(fp8_role_name(info.role))),
      kind(orEmpty(fp8_kind_name(info.kind))),
      shape(info.dims, info.dims + info.rank), bytes(fp8_tensor_bytes(&info)),
      stateArg(info.kind == FP8_KIND_STATE ? info.state_arg : -1),
      zeroInit(info.zero_init), ownBuffer(info.own_buffer), shard(info.shard) {
  const int64_t *whole = wholeOf(info).dims, *offset = info.part_offsets;
  wholeShape.assign(whole, whole + info.rank);
  for (int64_t i = 0; i < info.num_parts; ++i, offset += info.rank)
    parts.emplace_back(offset, offset + info.rank);
}

std::vector<TensorInfo> Function::arguments() const {
  return infos(fp8_executable_num_arguments(handle), fp8_executable_argument);
}

std::vector<TensorInfo> Function::results() const {
  return infos(fp8_executable_num_results(handle), fp8_executable_result);
}

std::vector<TensorInfo>
Function::infos(int64_t count, decltype(fp8_executable_argument) get) const {
  std::vector<TensorInfo> found;
  for (int64_t i = 0; i < count; ++i) {
    fp8_tensor_info info;
    check(get(handle, i, &info));
    found.emplace_back(info);
  }
  return found;
}

Group::Group(const std::optional<std::string> &transport, double timeout,
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

void Group::close() {
  for (fp8_step *step : steps)
    fp8_step_set_group(step, nullptr);
  steps.clear();
  fp8_group *left = std::exchange(handle, nullptr);
  Unlocked others;
  fp8_group_destroy(left);
}

fp8_group *Group::get() const {
  if (!handle)
    throw Failure(FP8_ERROR_INVALID,
                  "expected ranks that are together but their group is "
                  "closed");
  return handle;
}

void Group::add(fp8_step *step) {
  check(fp8_step_set_group(step, get()));
  steps.insert(step);
}

std::vector<nb::bytes> Group::gather(const nb::bytes &mine) const {
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

bool Group::claimFailure() const {
  Unlocked others;
  return fp8_group_claim_failure(handle);
}

void Group::abort(const std::string &message) const {
  Unlocked others;
  fp8_group_abort(handle, message.c_str());
}

Step::Step(const Function &function, int32_t threads) : executable(function) {
  check(fp8_step_create(function.handle, threads, &handle));
}

Step::~Step() {
  if (group)
    group->remove(handle);
  fp8_step_destroy(handle);
}

void Step::setGroup(Group &other) {
  other.add(handle);
  group = &other;
}

void Step::gather() {
  fp8_status status;
  {
    Unlocked others;
    status = fp8_step_gather(handle);
  }
  check(status);
}

void Step::run() {
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

Bytes Step::argument(int64_t index, nb::handle owner) {
  fp8_tensor_info info;
  check(fp8_executable_argument(executable.handle, index, &info));
  return view(fp8_step_argument(handle, index), info, owner);
}

Bytes Step::value(int64_t index, nb::handle owner) {
  fp8_tensor_info info;
  check(fp8_executable_argument(executable.handle, index, &info));
  return view(const_cast<void *>(fp8_step_value(handle, index)), info, owner);
}

Bytes Step::whole(int64_t index, nb::handle owner) {
  fp8_tensor_info info;
  check(fp8_executable_argument(executable.handle, index, &info));
  return view(const_cast<void *>(wholeData(index, info)), wholeOf(info), owner);
}

void Step::setWhole(int64_t index, const ConstBytes &value) {
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

Bytes Step::result(int64_t index, nb::handle owner) {
  fp8_tensor_info info;
  check(fp8_executable_result(executable.handle, index, &info));
  return view(fp8_step_result(handle, index), info, owner);
}

nb::dict Step::memory() const {
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

void Step::save(const std::string &path, const Texts &metadata) {
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
    status = fp8_tensors_save(cText(path), infos.data(), data.data(),
                              static_cast<int64_t>(infos.size()), texts.data(),
                              static_cast<int64_t>(texts.size() / 2));
  }
  check(status);
}

void Step::saveSet(const std::string &index, const Texts &metadata) {
  std::vector<const char *> texts = pointersTo(metadata);
  fp8_status status;
  {
    Unlocked others;
    status = fp8_step_save_set(handle, cText(index), texts.data(),
                               static_cast<int64_t>(texts.size() / 2));
  }
  check(status);
}

std::string Step::restore(const std::string &path, const std::string &recipe) {
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

std::string Step::trace(int64_t number) {
  std::string line;
  check(fp8_step_trace(handle, number, set, &line));
  return line;
}

nb::list Step::profile() const {
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

const void *Step::wholeData(int64_t index, const fp8_tensor_info &info) const {
  const void *data = fp8_step_whole(handle, index);
  // An empty tensor may have no buffer.
  if (!data && fp8_tensor_bytes(&info))
    throw Failure(FP8_ERROR_INVALID, fp8_last_error());
  return data;
}

Bytes Step::view(void *data, const fp8_tensor_info &info, nb::handle owner) {
  size_t size = fp8_tensor_bytes(&info);
  // An empty tensor may have no buffer.
  static uint8_t none;
  return Bytes(data ? static_cast<uint8_t *>(data) : &none, {size}, owner);
}

void python::defineSteps(nb::module_ &m) {
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
}
