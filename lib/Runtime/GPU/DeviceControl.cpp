//===- DeviceControl.cpp - Control flow on the GPU ------------------------===//
//
// While the entry is recorded, a loop or branch becomes a conditional node,
// whose body the entry runs once. Otherwise the host reads the conditions, and
// the entry runs bodies as often as the GPU would.
//
//===----------------------------------------------------------------------===//

#include "../Step/Step.h"
#include "DeviceStep.h"

namespace fp8::rt::gpu {

/// The number of conditions in one allocation.
static constexpr int64_t conditionsTogether = 512;

DeviceStep::DeviceMemory::DeviceMemory(const Driver &driver, int64_t bytes,
                                       cuda::Stream stream)
    : driver(driver) {
  driver.check(driver.cuMemAlloc_v2(&address, bytes), "allocate memory");
  driver.check(driver.cuMemsetD8Async(address, 0, bytes, stream),
               "clear memory");
}

DeviceStep::DeviceMemory::~DeviceMemory() { driver.cuMemFree_v2(address); }

/// Returns the address of the counter of open counted loop number `level`.
cuda::DevicePointer DeviceStep::counter(int64_t level) {
  constexpr int64_t bytes = sizeof(int64_t);
  if (!counters)
    counters =
        std::make_unique<DeviceMemory>(driver, FP8_GPU_LOOPS * bytes, stream);
  return counters->address + level * bytes;
}

cuda::DevicePointer DeviceStep::conditionAddress(int64_t condition) {
  constexpr int64_t bytes = sizeof(int64_t);
  auto block = static_cast<size_t>(condition / conditionsTogether);
  if (block >= conditions.size())
    conditions.resize(block + 1);
  if (!conditions[block])
    conditions[block] = std::make_unique<DeviceMemory>(
        driver, conditionsTogether * bytes, stream);
  return conditions[block]->address + condition % conditionsTogether * bytes;
}

/// Returns the value of a condition, reading it from the GPU if the host does
/// not know it.
int64_t DeviceStep::conditionValue(int64_t condition) {
  auto [known, isNew] = keptValues.try_emplace(condition, 0);
  if (isNew) {
    direct->copyToHost(&known->second, conditionAddress(condition),
                       sizeof(int64_t));
    waitFor(str("read a condition of '", executable.name, "'"));
  }
  return known->second;
}

bool DeviceStep::isConditionTrue(int64_t condition, int64_t low, int64_t high,
                                 bool inverted) {
  int64_t value = conditionValue(condition);
  return (low <= value && value <= high) != inverted;
}

int64_t DeviceStep::levelsOpen() const {
  int64_t levels = 0;
  for (const Open &one : open)
    levels += one.isNode && one.counts;
  return levels;
}

/// Launches a kernel that sets a handle, a counter or a condition.
void DeviceStep::control(const fp8_gpu_kernel *kernel,
                         const std::vector<int64_t> &parameters) {
  const LoadedKernel &loaded =
      find(kernel, static_cast<int64_t>(parameters.size()));
  graph().launch(loaded, 1, {parameters.begin(), parameters.end()});
}

/// Appends a stride for each loop that may be open.
static void append(std::vector<int64_t> &parameters, const int64_t *strides,
                   int64_t levels) {
  for (int64_t level = 0; level < FP8_GPU_LOOPS; ++level)
    parameters.push_back(strides && level < levels ? strides[level] : 0);
}

int64_t DeviceStep::beginLoop(const fp8_gpu_kernel *kernel, int64_t trips) {
  Open loop;
  attempt([&] {
    if (!isRecordedFor(kernel) || trips <= 0)
      return;
    loop.counts = kernel;
    loop.trips = trips;
    loop.level = levelsOpen();
    if (loop.level >= FP8_GPU_LOOPS)
      throw Error(FP8_ERROR_INTERNAL,
                  str("expected at most ", FP8_GPU_LOOPS,
                      " loops in one another that the GPU counts, in '",
                      executable.name, "'"));
    loop.handle = graph().makeHandle();
    control(kernel, {static_cast<int64_t>(counter(loop.level)), /*next=*/0,
                     trips, static_cast<int64_t>(loop.handle)});
    graph().open(cuda::While, loop.handle);
    loop.isNode = true;
  });
  open.push_back(loop);
  return failure ? 0 : loop.isNode ? 1 : trips;
}

void DeviceStep::keep(const fp8_gpu_kernel *kernel, int64_t condition,
                      int64_t operand, int64_t offset, const int64_t *strides,
                      int64_t bytes) {
  attempt([&] {
    if (condition < 0 || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
      throw Error(
          FP8_ERROR_INTERNAL,
          str("expected a condition of 1, 2, 4 or 8 bytes but got ", bytes));
    if (!isRecordedFor(kernel)) {
      if (isRecording)
        runDirectly();
      int64_t value = 0;
      direct->copyToHost(&value, resolve(operand, -1) + offset, bytes);
      waitFor(str("read a condition of '", executable.name, "'"));
      int64_t shift = 64 - 8 * bytes;
      keptValues[condition] =
          static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
      return;
    }
    std::vector<int64_t> parameters = {
        static_cast<int64_t>(conditionAddress(condition)),
        static_cast<int64_t>(resolve(operand, -1) + offset), bytes,
        static_cast<int64_t>(counter(0))};
    append(parameters, strides, levelsOpen());
    control(kernel, parameters);
    keptValues.erase(condition);
  });
}

int64_t DeviceStep::beginBranch(const fp8_gpu_kernel *kernel, int64_t condition,
                                int64_t low, int64_t high, bool inverted) {
  bool isTaken = false;
  attempt([&] {
    Open branch;
    if (isRecordedFor(kernel)) {
      branch.handle = graph().makeHandle();
      control(kernel, {static_cast<int64_t>(conditionAddress(condition)), low,
                       high, inverted, static_cast<int64_t>(branch.handle)});
      graph().open(cuda::If, branch.handle);
      branch.isNode = isTaken = true;
    } else {
      isTaken = isConditionTrue(condition, low, high, inverted);
    }
    if (isTaken)
      open.push_back(branch);
  });
  return isTaken;
}

int64_t DeviceStep::testWhile(const fp8_gpu_kernel *kernel, int64_t loop,
                              int64_t condition, int64_t low, int64_t high,
                              bool inverted) {
  bool runs = false;
  attempt([&] {
    if (!isRecordedFor(kernel)) {
      runs = isConditionTrue(condition, low, high, inverted);
      return;
    }
    // The entry calls this before the loop and at the end of its body.
    runs = open.empty() || open.back().loop != loop;
    Open entered;
    entered.isNode = true;
    entered.loop = loop;
    entered.handle = runs ? graph().makeHandle() : open.back().handle;
    control(kernel, {static_cast<int64_t>(conditionAddress(condition)), low,
                     high, inverted, static_cast<int64_t>(entered.handle)});
    if (runs) {
      graph().open(cuda::While, entered.handle);
      open.push_back(entered);
    } else {
      graph().close();
      open.pop_back();
    }
  });
  return runs && !failure;
}

void DeviceStep::end() {
  attempt([&] {
    if (open.empty())
      throw Error(FP8_ERROR_INTERNAL, str("'", executable.name,
                                          "' ends a loop or branch that it "
                                          "has not begun"));
    Open ended = open.back();
    open.pop_back();
    if (!ended.isNode)
      return;
    // Everything in the body reads the counter.
    if (ended.counts) {
      order(-1, nullptr, 0);
      control(ended.counts,
              {static_cast<int64_t>(counter(ended.level)), /*next=*/1,
               ended.trips, static_cast<int64_t>(ended.handle)});
    }
    graph().close();
  });
}

void DeviceStep::order(int64_t node, const int64_t *after, int64_t count) {
  if (failure || !isRecording)
    return;
  nextNode = node;
  if (!program.empty() && program.back().graph)
    program.back().graph->order(node, after, count);
}

void DeviceStep::writeMoving(const fp8_gpu_kernel *kernel, int64_t operand,
                             int64_t offset, const int64_t *strides,
                             int64_t bytes, int64_t value,
                             const int64_t *valueStrides) {
  if (!isRecordedFor(kernel))
    return write(operand, offset, bytes, &value);
  attempt([&] {
    std::vector<int64_t> parameters = {
        static_cast<int64_t>(resolve(operand, -1) + offset), bytes,
        static_cast<int64_t>(counter(0))};
    append(parameters, strides, levelsOpen());
    parameters.push_back(value);
    append(parameters, valueStrides, levelsOpen());
    control(kernel, parameters);
  });
}

} // namespace fp8::rt::gpu
