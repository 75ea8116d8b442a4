//===- Launches.cpp - Running kernels on operands -------------------------===//

#include "../GPU/DeviceStep.h"
#include "Step.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace fp8::rt;

void *fp8_step::resolve(int64_t operand, int64_t launch) {
  if (operand >= 0) {
    if (operand <= executable.arenaBytes)
      return arena.data() + operand;
  } else if (~operand < static_cast<int64_t>(externals.size())) {
    return externals[~operand];
  }
  failure =
      str("launch ", launch, " of '", executable.name, "' has operand code ",
          operand, " but the arena has ", executable.arenaBytes,
          " bytes and there are ", externals.size(), " external buffers");
  return nullptr;
}

void fp8_step::launch(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                      const int64_t *operands, const int64_t *offsets,
                      int64_t numOperands) {
  if (device)
    return device->launch(launch, reinterpret_cast<const fp8_gpu_kernel *>(fn),
                          numTasks, operands, offsets, /*strides=*/nullptr,
                          numOperands);
  launchTasks(launch, fn, 0, numTasks, operands, offsets, numOperands);
}

void fp8_step::launchOwned(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                           const int64_t *operands, const int64_t *offsets,
                           int64_t numOperands, int64_t shard) {
  Slice own = ownSlices(shard);
  if (own.count == 0)
    return;
  // A GPU runs the tasks of other owners, too: it holds their memory.
  int64_t slices = shards[shard - 1].slices;
  if (device || numTasks % slices != 0)
    return this->launch(launch, fn, numTasks, operands, offsets, numOperands);
  int64_t each = numTasks / slices;
  launchTasks(launch, fn, own.begin * each, own.count * each, operands, offsets,
              numOperands);
}

namespace {
/// Runs tasks whose numbers do not start at 0: adds `first` to the number.
struct ShiftedTasks {
  fp8_kernel_fn fn;
  int64_t first;
  void *const *operands;

  static void run(int64_t task, void *const *shifted, void *scratch) {
    const auto *of = static_cast<const ShiftedTasks *>(*shifted);
    of->fn(of->first + task, of->operands, scratch);
  }
};
} // namespace

/// Resolves operands into `operandStorage`; returns false after a failure.
bool fp8_step::resolveAll(int64_t launch, const int64_t *operands,
                          const int64_t *offsets, int64_t numOperands) {
  if (!failure.empty())
    return false; // Later launches would read unwritten memory.
  if (static_cast<int64_t>(operandStorage.size()) < numOperands)
    operandStorage.resize(numOperands);
  for (int64_t i = 0; i < numOperands; ++i) {
    void *base = resolve(operands[i], launch);
    if (!base)
      return false;
    operandStorage[i] = static_cast<char *>(base) + (offsets ? offsets[i] : 0);
  }
  return true;
}

void fp8_step::runTasks(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                        void *const *operands) {
  if (profiling)
    launchTimed(launch, fn, numTasks, operands);
  else
    pool->run(fn, numTasks, operands, scratch.data());
}

void fp8_step::launchTasks(int64_t launch, fp8_kernel_fn fn, int64_t first,
                           int64_t numTasks, const int64_t *operands,
                           const int64_t *offsets, int64_t numOperands) {
  if (!resolveAll(launch, operands, offsets, numOperands))
    return;
  void *const *resolved = operandStorage.data();
  ShiftedTasks shifted{fn, first, resolved};
  void *shiftedTasks[] = {&shifted};
  if (first > 0) {
    fn = &ShiftedTasks::run;
    resolved = shiftedTasks;
  }
  runTasks(launch, fn, numTasks, resolved);
}

namespace {
/// Runs the tasks of all sets of operands; a task of this launch is `together`
/// of them, which follow one another.
struct TasksOfSets {
  fp8_kernel_fn fn;
  int64_t tasks; // of a set
  int64_t sets;
  int64_t together;
  int64_t numOperands; // of a set
  void *const *operands;

  int64_t count() const { return (tasks * sets + together - 1) / together; }

  static void run(int64_t number, void *const *self, void *scratch) {
    const auto *of = static_cast<const TasksOfSets *>(*self);
    int64_t end = std::min((number + 1) * of->together, of->tasks * of->sets);
    for (int64_t task = number * of->together; task < end; ++task)
      of->fn(task % of->tasks,
             of->operands + task / of->tasks * of->numOperands, scratch);
  }
};
} // namespace

void fp8_step::launchSets(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                          const int64_t *operands, const int64_t *offsets,
                          int64_t numOperands, int64_t numSets) {
  if (numSets == 1)
    return this->launch(launch, fn, numTasks, operands, offsets, numOperands);
  if (device)
    return device->launchSets(
        launch, reinterpret_cast<const fp8_gpu_kernel *>(fn), numTasks,
        operands, offsets, numOperands, numSets);
  if (numTasks <= 0 || numSets <= 0 ||
      !resolveAll(launch, operands, offsets, numOperands * numSets))
    return;
  // A kernel of one task is often done before another thread has begun with the
  // next one. How tasks are put together changes no bits.
  constexpr int64_t smallTasks = 8, tasksPerThread = 4;
  int64_t together =
      numTasks > 1 ? 1
                   : std::max<int64_t>(smallTasks,
                                       numSets / (tasksPerThread * threads()));
  TasksOfSets all{fn,       numTasks,    numSets,
                  together, numOperands, operandStorage.data()};
  void *self = &all;
  runTasks(launch, &TasksOfSets::run, all.count(), &self);
}

void fp8_step::launchTimed(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                           void *const *operands) {
  auto start = std::chrono::steady_clock::now();
  if (timeline)
    timeline->runTasks(*pool, fn, numTasks, operands, scratch.data());
  else
    pool->run(fn, numTasks, operands, scratch.data());
  auto end = std::chrono::steady_clock::now();
  if (timeline)
    timeline->addLaunch(launch, start, end);
  executable.addRun(profile, launch, numTasks, end - start);
}

void *fp8_step::operand(int64_t code) {
  if (device) {
    failure = str("'", executable.name,
                  "' is for a GPU but asks for an address of the host");
    return nothing();
  }
  void *address = failure.empty() ? resolve(code, -1) : nullptr;
  return address ? address : nothing();
}

/// Returns memory for the scalars of a step that has failed, as large as any
/// buffer, for there is an offset into it. It reads as zeros, so that loops
/// end.
void *fp8_step::nothing() {
  if (!zeros.data()) {
    int64_t bytes = std::max<int64_t>(executable.arenaBytes, 64);
    for (const auto *tensors : {&executable.arguments, &executable.results})
      for (const TensorInfo &tensor : *tensors)
        bytes = std::max(bytes, tensor.type.bytes());
    zeros = Mapping(bytes);
  }
  zeros.release(zeros.data(), zeros.reserved());
  return zeros.data();
}

const void *fp8_step::read(int64_t code, int64_t offset, int64_t bytes) {
  return device ? device->read(code, offset, bytes)
                : static_cast<char *>(operand(code)) + offset;
}

void fp8_step::write(int64_t code, int64_t offset, int64_t bytes,
                     const void *value) {
  if (device)
    device->write(code, offset, bytes, value);
  else
    std::memcpy(static_cast<char *>(operand(code)) + offset, value, bytes);
}
