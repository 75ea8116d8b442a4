//===- Timeline.cpp - When each thread worked on which launch -------------===//

#include "Timeline.h"
#include "../Support/Text.h"

#include <algorithm>
#include <cstdio>

namespace fp8::rt {

Timeline::Timeline(int threads) : times(threads), timeAddresses(threads) {
  for (int i = 0; i < threads; ++i)
    timeAddresses[i] = &times[i];
}

void Timeline::beginStep(int64_t number) {
  Clock::time_point now = Clock::now();
  steps.push_back({number, now, now, {}, {}});
}

void Timeline::endStep() {
  steps.back().end = Clock::now();
  sliceCount += steps.back().size();
  while (sliceCount > maxSlices && steps.size() > 1) {
    sliceCount -= steps.front().size();
    steps.pop_front();
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Runs a task and measures its time. Its operands are the kernel and the
/// kernel's operands; its scratch memory is the thread's ThreadTime. So a step
/// that is not timed has no overhead, and the pool needs no knowledge of
/// timing.
void Timeline::timedTask(int64_t task, void *const *operands, void *scratch) {
  auto fn = reinterpret_cast<fp8_kernel_fn>(operands[0]);
  auto &time = *static_cast<ThreadTime *>(scratch);
  Clock::time_point begin = Clock::now();
  fn(task, static_cast<void *const *>(operands[1]), time.scratch);
  time.end = Clock::now();
  if (time.tasks++ == 0)
    time.begin = begin;
  time.inTasks += time.end - begin;
}

void Timeline::runTasks(ThreadPool &pool, fp8_kernel_fn fn, int64_t numTasks,
                        void *const *operands, void *const *scratch) {
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].scratch = scratch[i];
    times[i].tasks = 0;
    times[i].inTasks = {};
  }
  void *kernel[] = {reinterpret_cast<void *>(fn),
                    const_cast<void **>(operands)};
  pool.run(timedTask, numTasks, kernel, timeAddresses.data());
}

void Timeline::add(Slice slice) {
  Step &step = steps.back();
  if (step.size() < maxSlices)
    step.slices.push_back(slice);
  else
    ++step.left;
}

void Timeline::add(Transfer transfer) {
  if (steps.empty())
    return; // This run is outside of all steps.
  Step &step = steps.back();
  if (step.size() < maxSlices)
    step.transfers.push_back(std::move(transfer));
  else
    ++step.left;
}

void Timeline::addTransfer(std::string name, size_t collectives, int64_t bytes,
                           Clock::time_point begin, Clock::time_point end) {
  add({std::move(name), collectives, bytes, begin, end, /*isWait=*/false});
}

void Timeline::addWait(std::string name, Clock::time_point begin,
                       Clock::time_point end) {
  add({std::move(name), 0, 0, begin, end, /*isWait=*/true});
}

void Timeline::addLaunch(int64_t launch, Clock::time_point begin,
                         Clock::time_point end) {
  if (steps.empty())
    return; // This run is outside of all steps.
  add({0, launch, times[0].tasks, begin, end, times[0].inTasks});
  for (size_t i = 1; i < times.size(); ++i)
    if (const ThreadTime &time = times[i]; time.tasks > 0)
      add({static_cast<int32_t>(i), launch, time.tasks, time.begin, time.end,
           time.inTasks});
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

namespace {
/// Formats microseconds with three decimals, as the format requires.
std::string microseconds(Timeline::Clock::duration time) {
  auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  char text[32];
  std::snprintf(text, sizeof(text), "%lld.%03d",
                static_cast<long long>(ns) / 1000, static_cast<int>(ns % 1000));
  return text;
}
} // namespace

std::string Timeline::json(const std::vector<std::string> &launchNames) const {
  std::vector<std::string> names;
  for (const std::string &name : launchNames)
    names.push_back(jsonText(name));
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  text +=
      R"({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "fp8 step"}})";
  auto track = [&](int32_t number, const std::string &name) {
    text +=
        ",\n{\"ph\": \"M\", \"pid\": 1, \"tid\": " + std::to_string(number) +
        ", \"name\": \"thread_name\", \"args\": {\"name\": \"" + name + "\"}}";
  };
  auto network = static_cast<int32_t>(times.size());
  for (int32_t i = 0; i < network; ++i)
    track(i, "thread " + std::to_string(i) + (i ? "" : ", which launches"));
  if (std::any_of(steps.begin(), steps.end(),
                  [](const Step &step) { return !step.transfers.empty(); }))
    track(network, "network");
  auto event = [&](int32_t thread, const std::string &name,
                   const char *category, Clock::time_point begin,
                   Clock::time_point end, const std::string &args) {
    text +=
        ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": " + std::to_string(thread) +
        ", \"ts\": " + microseconds(begin - steps.front().begin) +
        ", \"dur\": " + microseconds(end - begin) + ", \"cat\": \"" + category +
        "\", \"name\": " + name + ", \"args\": {" + args + "}}";
  };
  for (const Step &step : steps) {
    event(0, jsonText("step " + std::to_string(step.number)), "step",
          step.begin, step.end,
          step.left ? "\"slices_left_out\": " + std::to_string(step.left) : "");
    for (const Slice &slice : step.slices) {
      auto index = static_cast<size_t>(slice.launch);
      event(slice.thread,
            index < names.size() ? names[index]
                                 : jsonText("launch " + std::to_string(index)),
            "launch", slice.begin, slice.end,
            "\"launch\": " + std::to_string(slice.launch) +
                ", \"tasks\": " + std::to_string(slice.tasks) +
                ", \"in_tasks_us\": " + microseconds(slice.inTasks));
    }
    for (const Transfer &each : step.transfers)
      if (each.isWait)
        event(0, jsonText("wait for " + each.name), "wait", each.begin,
              each.end, "");
      else
        event(network, jsonText(each.name), "network", each.begin, each.end,
              "\"collectives\": " + std::to_string(each.collectives) +
                  ", \"bytes\": " + std::to_string(each.bytes));
  }
  return text + "\n]}\n";
}

} // namespace fp8::rt
