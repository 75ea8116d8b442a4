//===- CApi.cpp - The C interface -----------------------------------------===//

#include "GPU/Driver.h"
#include "Metrics/Alarm.h"
#include "Metrics/EvaluateState.h"
#include "Metrics/Limits.h"
#include "Package.h"
#include "State/Checkpoint.h"
#include "State/StateSet.h"
#include "Step/ScalarResults.h"
#include "Step/Step.h"
#include "Support/Cpu.h"
#include "Train/RunFiles.h"
#include "Train/Train.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace fp8::rt;

template <typename T> static T &required(T *pointer, const char *what) {
  if (!pointer)
    throw Error(FP8_ERROR_INVALID, str("expected ", what, " but got NULL"));
  return *pointer;
}

static void checkThreads(int32_t threads) {
  if (threads < 0 || threads > 4096)
    throw Error(FP8_ERROR_INVALID,
                str("expected 0 to 4096 threads but got ", threads));
}

int32_t fp8_abi_version(void) { return FP8_ABI_VERSION; }

fp8_status fp8_executable_create(const fp8_executable_desc *desc,
                                 fp8_executable **executable) {
  return guard([&] {
    required(executable, "a place for the executable") = nullptr;
    *executable = new fp8_executable(required(desc, "a description"));
  });
}

void fp8_executable_destroy(fp8_executable *executable) { delete executable; }

fp8_status fp8_step_create(const fp8_executable *executable, int32_t threads,
                           fp8_step **step) {
  return guard([&] {
    required(step, "a place for the step") = nullptr;
    checkThreads(threads);
    *step = new fp8_step(required(executable, "an executable"), threads);
  });
}

void fp8_step_destroy(fp8_step *step) { delete step; }

fp8_status fp8_step_stage(fp8_step *step) {
  return guard([&] { required(step, "a step").stage(); });
}

fp8_status fp8_step_run(fp8_step *step) {
  return guard([&] { required(step, "a step").run(); });
}

static bool hasArgument(const fp8_step &step, int64_t index) {
  return index >= 0 &&
         index < static_cast<int64_t>(step.executable.arguments.size());
}

void *fp8_step_argument(fp8_step *step, int64_t index) {
  if (!step || !hasArgument(*step, index))
    return nullptr;
  void *address = nullptr;
  guard([&] { address = step->argument(index); });
  return address;
}

const void *fp8_step_value(fp8_step *step, int64_t index) {
  if (!step || !hasArgument(*step, index))
    return nullptr;
  const void *address = nullptr;
  guard([&] { address = step->value(index); });
  return address;
}

void *fp8_step_result(fp8_step *step, int64_t index) {
  if (!step || index < 0 ||
      index >= static_cast<int64_t>(step->executable.results.size()))
    return nullptr;
  void *address = nullptr;
  guard([&] { address = const_cast<char *>(step->result(index)); });
  return address;
}

fp8_status fp8_step_memory(const fp8_step *step, fp8_memory *memory) {
  return guard([&] {
    required(step, "a step").memory(required(memory, "a place for the sizes"));
  });
}

void fp8_step_set_profile(fp8_step *step, int32_t on) {
  if (!step)
    return;
  step->profiling = on != 0;
  step->clearProfile();
}

const fp8_launch_stat *fp8_step_profile(const fp8_step *step, int64_t *count) {
  if (count)
    *count = step ? static_cast<int64_t>(step->profile.size()) : 0;
  return step ? step->profile.data() : nullptr;
}

const fp8_collective_stat *fp8_step_collectives(const fp8_step *step,
                                                int64_t *count) {
  if (count)
    *count = step ? static_cast<int64_t>(step->collectives().size()) : 0;
  return step ? step->collectives().data() : nullptr;
}

fp8_status fp8_group_create(const fp8_group_options *options,
                            fp8_group **group) {
  return guard([&] {
    required(group, "a place for the group") = nullptr;
    *group =
        fp8_group::open(options ? *options : fp8_group_options{}).release();
  });
}

fp8_status fp8_group_adopt(const fp8_transport *transport,
                           const fp8_group_options *options,
                           fp8_group **group) {
  return guard([&] {
    required(group, "a place for the group") = nullptr;
    *group = new fp8_group(required(transport, "a transport"),
                           options ? *options : fp8_group_options{});
  });
}

void fp8_group_destroy(fp8_group *group) {
  // In a process that was forked it lives on: its thread is not there to end.
  if (group && !group->isForked())
    delete group;
}

int64_t fp8_group_rank(const fp8_group *group) {
  return group ? group->rank() : 0;
}

int64_t fp8_group_size(const fp8_group *group) {
  return group ? group->size() : 1;
}

int64_t fp8_group_bytes_sent(const fp8_group *group) {
  return group ? group->bytesSent() : 0;
}

fp8_status fp8_group_barrier(fp8_group *group) {
  return guard([&] {
    if (group)
      group->gather(0.0);
  });
}

fp8_status fp8_group_gather(fp8_group *group, const void *data, int64_t bytes,
                            fp8_bytes_fn receive, void *user) {
  return guard([&] {
    if (!receive || bytes < 0 || (bytes > 0 && !data))
      throw Error(FP8_ERROR_INVALID,
                  "expected bytes and a function that receives those of all");
    std::string mine(static_cast<const char *>(data), bytes);
    for (const std::string &each :
         group ? group->gather(mine) : std::vector<std::string>{mine})
      receive(user, each.data(), static_cast<int64_t>(each.size()));
  });
}

int32_t fp8_group_claim_failure(fp8_group *group) {
  return !group || group->claimFailure();
}

void fp8_group_abort(fp8_group *group, const char *message) {
  if (group && !group->isForked())
    group->abort(message ? message : "");
}

fp8_status fp8_step_gather(fp8_step *step) {
  return guard([&] { required(step, "a step").gather(); });
}

const void *fp8_step_whole(fp8_step *step, int64_t index) {
  if (!step || !hasArgument(*step, index))
    return nullptr;
  const void *address = nullptr;
  guard([&] { address = step->whole(index); });
  return address;
}

fp8_status fp8_step_set_whole(fp8_step *step, int64_t index,
                              const void *value) {
  return guard([&] {
    fp8_step &valid = required(step, "a step");
    if (!hasArgument(valid, index))
      throw Error(FP8_ERROR_INVALID,
                  str("expected the index of an argument below ",
                      valid.executable.arguments.size(), " but got ", index));
    valid.setWhole(index, value);
  });
}

fp8_status fp8_step_restore(fp8_step *step, const fp8_tensors *tensors) {
  return guard([&] {
    fp8_step &valid = required(step, "a step");
    restoreState(required(tensors, "tensors").file, valid);
  });
}

fp8_status fp8_step_release(fp8_step *step) {
  return guard([&] { required(step, "a step").drop(); });
}

/// Returns the stem of a set whose index is `path`.
static std::string stemOfIndex(const char *path) {
  if (!path || !isSafeTensorsIndex(path))
    throw Error(FP8_ERROR_INVALID,
                str("expected the path of an index, FILE", indexSuffix,
                    ", but got '", path ? path : "", "'"));
  return std::string(path, std::strlen(path) - std::strlen(indexSuffix));
}

fp8_status fp8_step_save_set(fp8_step *step, const char *path,
                             const char *const *metadata, int64_t numMetadata) {
  return guard([&] {
    fp8_step &valid = required(step, "a step");
    StateSet set = {stemOfIndex(path), {}, metadataOf(metadata, numMetadata)};
    for (size_t i = 0; i < valid.executable.arguments.size(); ++i)
      if (valid.executable.arguments[i].role == FP8_ROLE_STATE)
        set.arguments.push_back(i);
    if (fp8_group *group = valid.group())
      return writeStateSet(set, valid, *group);
    fp8_group alone;
    writeStateSet(set, valid, alone);
  });
}

fp8_status fp8_step_set_group(fp8_step *step, fp8_group *group) {
  return guard([&] { required(step, "a step").setGroup(group); });
}

fp8_status fp8_step_trace(fp8_step *step, int64_t number,
                          fp8_message_fn message, void *user) {
  return guard([&] {
    Trace trace(required(step, "a step").executable.results);
    if (trace.empty())
      throw Error(FP8_ERROR_INVALID,
                  "expected a step with a trace but got one without: nothing "
                  "in it is quantized, or it was compiled without it");
    trace.read(*step);
    required(message,
             "a function for the line")(user, trace.jsonLine(number).c_str());
  });
}

/// Describes one tensor of a function as fp8_tensor_info does.
static void describeTensor(const std::vector<TensorInfo> &tensors,
                           int64_t index, const char *what,
                           fp8_tensor_info &info) {
  if (index < 0 || index >= static_cast<int64_t>(tensors.size()))
    throw Error(FP8_ERROR_INVALID,
                str("expected the index of ", what, " below ", tensors.size(),
                    " but got ", index));
  const TensorInfo &tensor = tensors[index];
  info = fp8_tensor_info{};
  info.name = tensor.name.c_str();
  info.dtype = tensor.type.dtype;
  info.rank = static_cast<int32_t>(tensor.type.dims.size());
  info.dims = tensor.type.dims.data();
  info.kind = tensor.kind;
  info.role = tensor.role;
  info.vocabulary = tensor.vocabulary;
  info.labels = tensor.labels;
  info.zero_init = tensor.zeroInit;
  info.shard = tensor.shard;
  info.slices = tensor.slices;
  if (tensor.isPart()) {
    info.whole_dims = tensor.whole.data();
    info.part_offsets = tensor.partOffsets.data();
    info.num_parts = tensor.numParts();
    info.part_blocks = tensor.partBlocks;
  }
  info.state_arg = static_cast<int32_t>(tensor.stateArg);
  info.own_buffer = tensor.ownBuffer;
}

int64_t fp8_executable_num_arguments(const fp8_executable *executable) {
  return executable ? static_cast<int64_t>(executable->arguments.size()) : 0;
}

int64_t fp8_executable_num_results(const fp8_executable *executable) {
  return executable ? static_cast<int64_t>(executable->results.size()) : 0;
}

int32_t fp8_executable_on_gpu(const fp8_executable *executable) {
  return executable && !executable->gpuKernels.empty();
}

fp8_status fp8_executable_argument(const fp8_executable *executable,
                                   int64_t index, fp8_tensor_info *info) {
  return guard([&] {
    describeTensor(required(executable, "an executable").arguments, index,
                   "an argument", required(info, "a place for the argument"));
  });
}

fp8_status fp8_executable_result(const fp8_executable *executable,
                                 int64_t index, fp8_tensor_info *info) {
  return guard([&] {
    describeTensor(required(executable, "an executable").results, index,
                   "a result", required(info, "a place for the result"));
  });
}

fp8_status fp8_package_open(const char *directory, fp8_package **package) {
  return guard([&] {
    required(package, "a place for the package") = nullptr;
    *package = new fp8_package(&required(directory, "a directory"));
  });
}

fp8_status fp8_check_cpu(const char *cpu, const char *features) {
  return guard([&] {
    checkCpu(&required(cpu, "a CPU"), &required(features, "features"));
  });
}

fp8_status fp8_package_create(fp8_package **package) {
  return guard([&] {
    // (The right side of an assignment is evaluated first, and would leak.)
    fp8_package *&place = required(package, "a place for the package");
    place = new fp8_package();
  });
}

fp8_status fp8_package_add(fp8_package *package,
                           const fp8_executable_desc *desc) {
  return guard([&] {
    required(package, "a package").add(required(desc, "a description"));
  });
}

fp8_status fp8_package_set_text(fp8_package *package, const char *name,
                                const char *text) {
  return guard([&] {
    std::map<std::string, std::string> &texts =
        required(package, "a package").texts;
    std::string key = &required(name, "the name of a text");
    if (text)
      texts[key] = text;
    else
      texts.erase(key);
  });
}

void fp8_package_close(fp8_package *package) { delete package; }

const fp8_executable *fp8_package_function(const fp8_package *package,
                                           const char *name) {
  return package && name ? package->function(name) : nullptr;
}

const char *fp8_package_text(const fp8_package *package, const char *name) {
  return package && name ? package->text(name) : nullptr;
}

fp8_status fp8_package_options(const fp8_package *package,
                               fp8_train_options *options,
                               fp8_export *exported) {
  return guard([&] {
    required(package, "a package").fill(required(options, "options"), exported);
  });
}

fp8_status fp8_gpu_find(void) {
  return guard([] { gpu::Driver::get(); });
}

fp8_status fp8_run_once(const fp8_executable *executable, const char *inputs,
                        const char *outputs, int32_t threads) {
  return guard([&] {
    checkThreads(threads);
    runOnce(required(executable, "an executable"), inputs,
            &required(outputs, "an output file"), threads);
  });
}

fp8_status fp8_alarm_parse(const char *text, fp8_alarm *alarm) {
  return guard([&] {
    AlarmRule rule = parseAlarm(&required(text, "a rule"));
    fp8_alarm &out = required(alarm, "a place for the rule");
    out = fp8_alarm{};
    auto copy = [&](const std::string &from, char (&to)[256]) {
      if (from.size() >= sizeof(to))
        throw Error(FP8_ERROR_INVALID,
                    str("alarm '", rule.text, "': expected names of at most ",
                        sizeof(to) - 1, " characters but got '", from, "'"));
      from.copy(to, from.size());
    };
    copy(rule.metric, out.metric);
    copy(rule.tensors, out.tensors);
    out.below = rule.below;
    out.threshold = rule.threshold;
    out.median_of = rule.medianOf;
    out.action = rule.action;
    out.needs_trace = needsTrace(rule);
  });
}

/// The rules with the scalars and the trace that they read.
struct fp8_alarms {
  fp8_alarms(const fp8_executable &step, const char *const *rules,
             int64_t numRules)
      : results(step.results), scalars(step), trace(step.results),
        alarms(rules, numRules, scalars.names(step), trace) {}

  /// Throws unless the step has the results that the rules are about.
  void checkStep(const fp8_step &step) const {
    const std::vector<TensorInfo> &its = step.executable.results;
    auto isSame = [](const TensorInfo &a, const TensorInfo &b) {
      return a.name == b.name && a.type == b.type && a.kind == b.kind;
    };
    if (!std::equal(results.begin(), results.end(), its.begin(), its.end(),
                    isSame))
      throw Error(FP8_ERROR_INVALID, "expected a step of the results that the "
                                     "alarms were created for but got one of "
                                     "others");
  }

  std::vector<TensorInfo> results;
  ScalarResults scalars;
  Trace trace;
  Alarms alarms;
};

fp8_status fp8_alarms_create(const fp8_executable *step,
                             const char *const *rules, int64_t num_rules,
                             fp8_alarms **alarms) {
  return guard([&] {
    required(alarms, "a place for the alarms") = nullptr;
    *alarms =
        new fp8_alarms(required(step, "a step executable"), rules, num_rules);
  });
}

void fp8_alarms_destroy(fp8_alarms *alarms) { delete alarms; }

int32_t fp8_alarms_may_skip(const fp8_alarms *alarms) {
  return alarms && alarms->alarms.maySkip();
}

fp8_status fp8_alarms_check(fp8_alarms *alarms, fp8_step *step, int64_t number,
                            fp8_message_fn message, void *user, int32_t *skip,
                            int32_t *stop) {
  return guard([&] {
    fp8_alarms &rules = required(alarms, "alarms");
    fp8_step &checked = required(step, "a step");
    rules.checkStep(checked);
    rules.trace.read(checked);
    AlarmVerdict verdict =
        rules.alarms.check(number, rules.scalars.values(checked));
    if (message)
      for (const std::string &line : verdict.all())
        message(user, line.c_str());
    required(skip, "a place for skip") = verdict.skip.has_value();
    required(stop, "a place for stop") = verdict.stop.has_value();
  });
}

fp8_status fp8_measure_limits(int32_t threads, fp8_limits *limits) {
  return guard([&] {
    checkThreads(threads);
    required(limits, "a place for the limits") = measureLimits(threads);
  });
}

fp8_status fp8_evaluate(const fp8_train_options *options, fp8_step *step,
                        fp8_message_fn message, void *user) {
  return guard([&] {
    checkThreads(required(options, "options").threads);
    std::string line = evaluateState(*options, required(step, "a step"));
    required(message, "a function for the line")(user, line.c_str());
  });
}

fp8_status fp8_export_weights(const fp8_train_options *options, fp8_step *step,
                              int64_t number) {
  return guard([&] {
    checkThreads(required(options, "options").threads);
    exportState(*options, required(step, "a step"), number);
  });
}

fp8_status fp8_check_files(const fp8_train_options *options) {
  return guard([&] { checkFiles(required(options, "options")); });
}

fp8_status fp8_check_batches(const fp8_train_options *options,
                             const fp8_tensor_info *arguments, int64_t count,
                             int32_t isEvaluation) {
  return guard([&] {
    checkBatches(required(options, "options"),
                 copyInfos(arguments, count, "argument"), isEvaluation != 0);
  });
}

fp8_status fp8_train(const fp8_train_options *options,
                     fp8_train_summary *summary) {
  fp8_train_summary local;
  fp8_train_summary &out = summary ? *summary : local;
  out = fp8_train_summary();
  double none = std::numeric_limits<double>::quiet_NaN();
  out.first_loss = out.last_loss = out.mean_loss_10 = out.mean_loss_20 =
      out.heldout_loss = none;
  return guard([&] {
    checkThreads(required(options, "options").threads);
    train(*options, out);
  });
}
