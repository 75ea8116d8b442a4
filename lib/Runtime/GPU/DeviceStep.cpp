//===- DeviceStep.cpp - A step on a GPU -----------------------------------===//

#include "DeviceStep.h"
#include "../Step/Step.h"
#include "RankCollectives.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fp8::rt::gpu {

// A step with more nodes runs kernel by kernel: a larger graph takes longer to
// build than it saves.
static constexpr int64_t maxNodes = 1 << 16;
/// The largest y dimension of a grid.
static constexpr int64_t maxSets = 65535;
/// Results up to this size are copied to the host in every run.
static constexpr int64_t fetchedBytes = 4096;
/// Larger results have no pinned mirror. Most are never copied: those of an
/// initializer are as large as the state.
static constexpr int64_t pinnedResultBytes = 1 << 20;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

DeviceStep::DeviceStep(const fp8_executable &executable)
    : executable(executable), device(Device::get()), driver(device.driver),
      checksLaunches(std::getenv("FP8_GPU_CHECK") != nullptr) {
  device.makeCurrent();
  modules = executable.modules();
  layOut();
  allocate();
  driver.check(driver.cuStreamCreate(&stream, cuda::streamNonBlocking),
               "make a stream");
  driver.check(driver.cuStreamCreate(&copies, cuda::streamNonBlocking),
               "make a stream");
  for (cuda::Event *event : {&uploaded, &taken, &arrived, &finished})
    driver.check(driver.cuEventCreate(event, cuda::eventDisableTiming),
                 "make an event");
  direct.emplace(device, stream);
  uploadConstants();
}

DeviceStep::~DeviceStep() {
  driver.cuCtxSetCurrent(device.context);
  for (cuda::Stream one : {copies, stream})
    if (one)
      driver.cuStreamSynchronize(one);
  program.clear();
  counters.reset();
  kept.reset();
  operandTables.clear();
  conditions.clear();
  for (cuda::Event event : {uploaded, taken, arrived, finished})
    if (event)
      driver.cuEventDestroy_v2(event);
  for (cuda::Stream one : {copies, stream})
    if (one)
      driver.cuStreamDestroy_v2(one);
  if (pinned)
    driver.cuMemFreeHost(pinned);
  if (memory)
    driver.cuMemFree_v2(memory);
}

/// Assigns offsets to the arena, the arguments, the results with their own
/// buffers, and the constants.
void DeviceStep::layOut() {
  totalBytes = alignUp(executable.arenaBytes + 1, deviceAlignment);
  auto add = [&](const TensorInfo &tensor, bool isArgument, bool isState) {
    Buffer buffer;
    buffer.place = totalBytes;
    buffer.bytes = tensor.type.bytes();
    buffer.mirror = nullptr;
    buffer.isArgument = isArgument;
    buffer.isState = isState;
    buffer.hostIsNewer = isArgument;
    buffer.isFetched = !isArgument && buffer.bytes <= fetchedBytes;
    totalBytes += alignUp(std::max<int64_t>(buffer.bytes, 1), deviceAlignment);
    bool isFed = isArgument && !isState &&
                 (tensor.role == FP8_ROLE_BATCH || tensor.role == FP8_ROLE_KEY);
    if (isFed && buffer.bytes > 0) {
      buffer.staging = totalBytes;
      totalBytes += alignUp(buffer.bytes, deviceAlignment);
    }
    buffer.isPinned =
        isFed || (!isArgument && buffer.bytes <= pinnedResultBytes);
    (buffer.isPinned ? pinnedBytes : mirrorBytes) +=
        alignUp(std::max<int64_t>(buffer.bytes, 1), deviceAlignment);
    buffers.push_back(buffer);
  };
  std::vector<bool> isState(executable.arguments.size());
  for (const TensorInfo &result : executable.results)
    if (result.stateArg >= 0)
      isState[result.stateArg] = true;
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    add(executable.arguments[i], /*isArgument=*/true, isState[i]);
  for (size_t i = 0; i < executable.results.size(); ++i) {
    if (!executable.ownsBuffer(i))
      continue;
    if (executable.results[i].stateArg >= 0)
      swaps.emplace_back(buffers.size(), executable.results[i].stateArg);
    add(executable.results[i], /*isArgument=*/false, /*isState=*/false);
  }
  for (int64_t bytes : executable.constantSizes) {
    constantPlaces.push_back(totalBytes);
    totalBytes += alignUp(std::max<int64_t>(bytes, 1), deviceAlignment);
  }
  scratchPlace = totalBytes;
  totalBytes += alignUp(executable.scratchBytes, deviceAlignment);
}

/// Throws if `what` needs more memory than is free, or if an allocation has
/// failed.
void DeviceStep::requireFree(const std::string &what, int64_t bytes,
                             bool hasFailed) const {
  size_t available = 0, total = 0;
  driver.check(driver.cuMemGetInfo_v2(&available, &total),
               "tell how much memory is free");
  if (!hasFailed && static_cast<size_t>(bytes) <= available)
    return;
  throw Error(FP8_ERROR_MEMORY,
              str(what, " needs ", bytesText(bytes), " of GPU memory, but ",
                  device.name, " has ",
                  bytesText(static_cast<int64_t>(available)), " free of ",
                  bytesText(static_cast<int64_t>(total))));
}

void DeviceStep::allocate() {
  std::string what = str("'", executable.name, "'");
  requireFree(what, totalBytes);
  cuda::Status status = driver.cuMemAlloc_v2(&memory, totalBytes);
  if (status == cuda::OutOfMemory)
    requireFree(what, totalBytes, /*hasFailed=*/true);
  driver.check(status, "allocate memory");

  mirrors = Mapping(mirrorBytes + 1);
  void *host = nullptr;
  driver.check(driver.cuMemHostAlloc(&host, pinnedBytes + deviceAlignment, 0),
               str("pin ", bytesText(pinnedBytes), " of host memory"));
  pinned = static_cast<char *>(host);
  std::memset(pinned, 0, pinnedBytes + deviceAlignment);
  char *nextPinned = pinned, *nextMirror = mirrors.data();
  for (Buffer &buffer : buffers) {
    char *&next = buffer.isPinned ? nextPinned : nextMirror;
    buffer.mirror = next;
    next += alignUp(std::max<int64_t>(buffer.bytes, 1), deviceAlignment);
  }
}

void DeviceStep::uploadConstants() {
  for (size_t i = 0; i < constantPlaces.size(); ++i)
    if (executable.constantSizes[i] > 0)
      driver.check(driver.cuMemcpyHtoDAsync_v2(
                       memory + constantPlaces[i], executable.constants[i],
                       executable.constantSizes[i], stream),
                   "copy the constants");
  // Results start as zeros, as on the CPU.
  for (Buffer &buffer : buffers)
    if (!buffer.isArgument && buffer.bytes > 0)
      driver.check(driver.cuMemsetD8Async(memory + buffer.place, 0,
                                          buffer.bytes, stream),
                   "clear a result");
  waitFor("copy the constants");
}

void DeviceStep::waitFor(const std::string &what) {
  driver.check(driver.cuStreamSynchronize(stream), what);
  isRunning = false;
}

const void *DeviceStep::value(size_t number) {
  device.makeCurrent();
  Buffer &buffer = buffers[number];
  std::string what = str("run '", executable.name, "'");
  if (buffer.staging >= 0) {
    // The mirror may be written while a run is in progress, but not during the
    // copy.
    if (isCopying)
      driver.check(driver.cuEventSynchronize(uploaded), what);
    isCopying = false;
  } else if (isRunning) {
    bool isComputed = buffer.deviceIsNewer || !buffer.isArgument;
    driver.check(driver.cuEventSynchronize(buffer.isEarly ? arrived
                                           : isComputed   ? finished
                                                          : taken),
                 what);
  }
  if (buffer.deviceIsNewer && !buffer.isFetched && buffer.bytes > 0) {
    direct->copyToHost(buffer.mirror, memory + buffer.place, buffer.bytes);
    waitFor(str("copy a result of '", executable.name, "'"));
  }
  buffer.deviceIsNewer = false;
  return buffer.mirror;
}

void *DeviceStep::argument(size_t number) {
  value(number);
  Buffer &buffer = buffers[number];
  buffer.hostIsNewer = true;
  return buffer.mirror;
}

void DeviceStep::take(size_t number, DeviceStep &from, size_t source) {
  device.makeCurrent();
  Buffer &to = buffers[number];
  const Buffer &other = from.buffers[source];
  if (to.bytes == 0)
    return;
  if (other.hostIsNewer || other.isStaged) {
    std::memcpy(argument(number), other.mirror, to.bytes);
    return;
  }
  std::string what = str("copy an argument of '", executable.name, "'");
  driver.check(driver.cuEventRecord(from.finished, from.stream), what);
  driver.check(driver.cuStreamWaitEvent(stream, from.finished, 0), what);
  direct->copy(memory + to.place, from.memory + other.place, to.bytes);
  driver.check(driver.cuEventRecord(taken, stream), what);
  driver.check(driver.cuStreamWaitEvent(from.stream, taken, 0), what);
  to.isStaged = to.hostIsNewer = false;
  to.deviceIsNewer = true;
}

void DeviceStep::clear(size_t number) {
  device.makeCurrent();
  Buffer &buffer = buffers[number];
  if (buffer.bytes > 0)
    driver.check(
        driver.cuMemsetD8Async(memory + buffer.place, 0, buffer.bytes, stream),
        "clear an argument");
  buffer.isStaged = buffer.hostIsNewer = false;
  buffer.deviceIsNewer = true;
}

cuda::DevicePointer DeviceStep::resolve(int64_t operand, int64_t launch) const {
  if (operand >= 0 && operand <= executable.arenaBytes)
    return memory + operand;
  if (operand < 0) {
    auto number = static_cast<size_t>(~operand);
    if (number < buffers.size())
      return memory + buffers[number].place;
    if (number - buffers.size() < constantPlaces.size())
      return memory + constantPlaces[number - buffers.size()];
  }
  throw Error(FP8_ERROR_INTERNAL,
              str("launch ", launch, " of '", executable.name,
                  "' has operand code ", operand, " but the arena has ",
                  executable.arenaBytes, " bytes and there are ",
                  buffers.size() + constantPlaces.size(), " external buffers"));
}

void DeviceStep::keep(const std::vector<size_t> &numbers) {
  device.makeCurrent();
  if (!kept) {
    int64_t bytes = 0;
    for (size_t number : numbers)
      bytes += alignUp(buffers[number].bytes, deviceAlignment);
    requireFree(
        str("a copy of the state of '", executable.name, "', to undo a step,"),
        bytes);
    kept = std::make_unique<DeviceMemory>(driver, std::max<int64_t>(bytes, 1),
                                          stream);
  }
  cuda::DevicePointer place = kept->address;
  for (size_t number : numbers) {
    Buffer &buffer = buffers[number];
    uploadArgument(buffer);
    if (buffer.bytes > 0)
      direct->copy(place, memory + buffer.place, buffer.bytes);
    place += alignUp(buffer.bytes, deviceAlignment);
  }
}

void DeviceStep::restore(const std::vector<size_t> &numbers) {
  device.makeCurrent();
  cuda::DevicePointer place = kept->address;
  for (size_t number : numbers) {
    Buffer &buffer = buffers[number];
    if (buffer.bytes > 0)
      direct->copy(memory + buffer.place, place, buffer.bytes);
    place += alignUp(buffer.bytes, deviceAlignment);
    buffer.hostIsNewer = false;
    buffer.deviceIsNewer = true;
  }
}

//===----------------------------------------------------------------------===//
// A run
//===----------------------------------------------------------------------===//

/// Copies an argument whose mirror is newer.
void DeviceStep::uploadArgument(Buffer &buffer) {
  if (buffer.hostIsNewer && buffer.bytes > 0)
    driver.check(driver.cuMemcpyHtoDAsync_v2(memory + buffer.place,
                                             buffer.mirror, buffer.bytes,
                                             stream),
                 "copy an argument");
  buffer.hostIsNewer = false;
}

void DeviceStep::stage() {
  device.makeCurrent();
  bool waits = false;
  for (Buffer &buffer : buffers) {
    if (buffer.staging < 0 || !buffer.hostIsNewer)
      continue;
    // The previous run may not have read the staging buffer yet.
    if (!waits)
      driver.check(driver.cuStreamWaitEvent(copies, taken, 0),
                   "order its copies");
    waits = true;
    driver.check(driver.cuMemcpyHtoDAsync_v2(memory + buffer.staging,
                                             buffer.mirror, buffer.bytes,
                                             copies),
                 "copy an argument");
    buffer.hostIsNewer = false;
    buffer.isStaged = true;
  }
  if (!waits)
    return;
  // Errors of earlier work are reported by the next call.
  driver.check(driver.cuEventRecord(uploaded, copies),
               str("run '", executable.name, "'"));
  isCopying = true;
}

void DeviceStep::upload() {
  stage();
  // The previous run reads the arguments until it ends; the stream keeps the
  // order.
  driver.check(driver.cuStreamWaitEvent(stream, uploaded, 0),
               "order its copies");
  for (Buffer &buffer : buffers) {
    if (buffer.isStaged)
      direct->copy(memory + buffer.place, memory + buffer.staging,
                   buffer.bytes);
    else if (buffer.isArgument)
      uploadArgument(buffer);
    buffer.isStaged = false;
  }
  driver.check(driver.cuEventRecord(taken, stream),
               str("run '", executable.name, "'"));
}

/// Records the event for early results.
void DeviceStep::recordArrival() {
  if (!isRecording)
    return driver.check(driver.cuEventRecord(arrived, stream),
                        str("run '", executable.name, "'"));
  order(INT64_MAX, earlyCopies.data(),
        static_cast<int64_t>(earlyCopies.size()));
  graph().record(arrived);
}

/// Records what every run does after its launches: swaps and the copies of
/// results that have not been copied before. They follow all launches, in any
/// order.
void DeviceStep::fetchResults() {
  if (!earlyCopies.empty())
    recordArrival();
  int64_t copies = 0;
  auto orderNext = [&] {
    if (copies == 0 && isRecording)
      graph().join();
    order(copies++, nullptr, 0);
  };
  for (const auto &[result, argument] : swaps) {
    orderNext();
    work().copy(memory + buffers[argument].place,
                memory + buffers[result].place, buffers[result].bytes);
  }
  for (Buffer &buffer : buffers) {
    if (!buffer.isFetched || buffer.isEarly || buffer.bytes == 0)
      continue;
    orderNext();
    work().copyToHost(buffer.mirror, memory + buffer.place, buffer.bytes);
  }
}

/// Returns the graph being recorded; a host call ends the previous one.
GraphWork &DeviceStep::graph() {
  if (program.empty() || !program.back().graph) {
    program.push_back({std::make_unique<GraphWork>(device, stream), nullptr});
    // Everything that comes before is in earlier graphs.
    program.back().graph->order(nextNode, nullptr, 0);
  }
  return *program.back().graph;
}

/// Returns where launches go now: the graph or the stream.
Work &DeviceStep::work() {
  return isRecording ? static_cast<Work &>(graph()) : *direct;
}

/// Returns whether recording is inside a loop or branch that the GPU decides.
bool DeviceStep::isInBody() const {
  return isRecording && !program.empty() && program.back().graph &&
         program.back().graph->isInBody();
}

int64_t DeviceStep::recordedNodes() const {
  int64_t nodes = 0;
  for (const Part &part : program)
    nodes += part.graph ? part.graph->nodes() : 0;
  return nodes;
}

void DeviceStep::replayAll() {
  for (Part &part : program)
    if (part.graph)
      part.graph->run(stream);
    else
      part.call();
}

/// Replays the recording.
void DeviceStep::replay() {
  replays = true;
  try {
    replayAll();
  } catch (...) {
    replays = false;
    throw;
  }
  replays = false;
}

/// From here on the entry's calls run immediately: it reads values from the
/// GPU, or makes too many launches for a graph.
void DeviceStep::runDirectly() {
  isDynamic = true;
  if (!isRecording)
    return;
  isRecording = false;
  replayAll();
  waitFor(str("run '", executable.name, "'"));
  program.clear();
}

void DeviceStep::run(fp8_step &step) {
  device.makeCurrent();
  upload();
  bool launchesOneByOne = isDynamic || profiling || checksLaunches;
  isRunning = true;
  if (!program.empty() && !launchesOneByOne) {
    replay();
  } else {
    failure.reset();
    open.clear();
    keptValues.clear();
    nextNode = -1;
    earlyCopies.clear();
    for (Buffer &buffer : buffers)
      buffer.isEarly = false;
    std::vector<Part> kept = std::move(program);
    program.clear();
    isRecording = !launchesOneByOne;
    executable.entry(&step);
    attempt([&] { fetchResults(); });
    bool isWhole = isRecording && !failure;
    isRecording = false;
    if (failure) {
      program.clear();
      throw Error(*failure);
    }
    if (isWhole)
      replay();
    if (launchesOneByOne)
      program = std::move(kept);
  }
  driver.check(driver.cuEventRecord(finished, stream),
               str("run '", executable.name, "'"));
  for (Buffer &buffer : buffers)
    if (buffer.isState || !buffer.isArgument)
      buffer.deviceIsNewer = true;
  if (checksLaunches)
    waitFor(str("run '", executable.name, "'"));
}

//===----------------------------------------------------------------------===//
// Calls by the entry
//===----------------------------------------------------------------------===//

std::string DeviceStep::labelOf(int64_t launch) const {
  auto index = static_cast<size_t>(launch);
  return str("launch ", launch,
             index < executable.launchNames.size()
                 ? str(" (", executable.launchNames[index], ")")
                 : "",
             " of '", executable.name, "'");
}

const LoadedKernel &DeviceStep::find(const fp8_gpu_kernel *kernel,
                                     int64_t operands) const {
  const LoadedKernel *loaded = modules->find(kernel);
  if (!loaded)
    throw Error(FP8_ERROR_INTERNAL,
                "expected a kernel of the executable but got another one");
  if (operands != kernel->num_operands)
    throw Error(FP8_ERROR_INTERNAL,
                str("expected ", kernel->num_operands, " operands of kernel '",
                    kernel->name, "' but got ", operands));
  return *loaded;
}

void DeviceStep::launch(int64_t launch, const fp8_gpu_kernel *kernel,
                        int64_t blocks, const int64_t *operands,
                        const int64_t *offsets, const int64_t *strides,
                        int64_t numOperands) {
  if (failure)
    return; // Later launches would read unwritten memory.
  // No exception may cross generated code.
  try {
    const LoadedKernel &loaded = find(kernel, numOperands);
    if (kernel->takes_sets)
      throw Error(FP8_ERROR_INTERNAL, str("expected a kernel for one set of "
                                          "operands but got '",
                                          kernel->name, "'"));
    if (blocks < 0 || blocks > INT32_MAX)
      throw Error(FP8_ERROR_INTERNAL,
                  str("expected at most 2^31 - 1 blocks but got ", blocks));
    if ((kernel->loops > 0) != (strides != nullptr) ||
        (strides && isRecordedFor(kernel) && kernel->loops != levelsOpen()))
      throw Error(FP8_ERROR_INTERNAL,
                  str("expected operands that move in ", kernel->loops,
                      " loops, as those of kernel '", kernel->name,
                      "' do, but the GPU counts ", levelsOpen()));
    if (blocks == 0)
      return;
    std::vector<cuda::DevicePointer> parameters(numOperands);
    for (int64_t i = 0; i < numOperands; ++i)
      parameters[i] = resolve(operands[i], launch) + (offsets ? offsets[i] : 0);
    if (kernel->scratch_bytes > 0) {
      if (kernel->scratch_bytes * blocks > executable.scratchBytes)
        throw Error(FP8_ERROR_INTERNAL,
                    str(labelOf(launch), " needs ",
                        kernel->scratch_bytes * blocks,
                        " bytes of scratch memory but there are ",
                        executable.scratchBytes));
      parameters.push_back(memory + scratchPlace);
    }
    if (isRecording && !isInBody() && recordedNodes() >= maxNodes)
      runDirectly();
    if (strides) {
      // If the host counts, the offsets are complete.
      bool moves = isRecordedFor(kernel);
      parameters.push_back(counter(0));
      for (int64_t i = 0; i < numOperands * kernel->loops; ++i)
        parameters.push_back(moves ? strides[i] : 0);
    }
    auto start = std::chrono::steady_clock::now();
    work().launch(loaded, static_cast<unsigned>(blocks), parameters);
    finishLaunch(launch, blocks, start);
  } catch (const Error &error) {
    failure = Error(error.status,
                    str(labelOf(launch), ": ", std::string(error.what())));
  }
}

/// Waits for a launch and notes its time, if asked for.
void DeviceStep::finishLaunch(int64_t launch, int64_t blocks,
                              std::chrono::steady_clock::time_point start) {
  if (checksLaunches || profiling)
    driver.check(driver.cuStreamSynchronize(stream),
                 str("run ", labelOf(launch)));
  if (profiling && profile)
    executable.addRun(*profile, launch, blocks,
                      std::chrono::steady_clock::now() - start);
}

/// Returns the address of a table on the GPU with the addresses of the operands
/// of a launch, which are the same in every run.
cuda::DevicePointer DeviceStep::operandTable(int64_t launch,
                                             const int64_t *operands,
                                             const int64_t *offsets,
                                             int64_t count) {
  std::unique_ptr<DeviceMemory> &table = operandTables[launch];
  if (table)
    return table->address;
  std::vector<cuda::DevicePointer> addresses;
  for (int64_t i = 0; i < count; ++i)
    addresses.push_back(resolve(operands[i], launch) +
                        (offsets ? offsets[i] : 0));
  auto bytes = static_cast<int64_t>(sizeof(cuda::DevicePointer)) * count;
  auto made = std::make_unique<DeviceMemory>(driver, bytes, stream);
  driver.check(driver.cuMemcpyHtoDAsync_v2(made->address, addresses.data(),
                                           bytes, stream),
               "copy the addresses of operands");
  // (The run goes on after this.)
  driver.check(driver.cuStreamSynchronize(stream),
               "copy the addresses of operands");
  table = std::move(made);
  return table->address;
}

void DeviceStep::launchSets(int64_t launch, const fp8_gpu_kernel *kernel,
                            int64_t blocks, const int64_t *operands,
                            const int64_t *offsets, int64_t numOperands,
                            int64_t numSets) {
  if (failure)
    return; // Later launches would read unwritten memory.
  // No exception may cross generated code.
  try {
    const LoadedKernel &loaded = find(kernel, numOperands);
    if (!kernel->takes_sets)
      throw Error(FP8_ERROR_INTERNAL, str("expected a kernel that takes sets "
                                          "of operands but got '",
                                          kernel->name, "'"));
    if (blocks < 0 || blocks > INT32_MAX)
      throw Error(FP8_ERROR_INTERNAL,
                  str("expected at most 2^31 - 1 blocks but got ", blocks));
    if (blocks == 0)
      return;
    cuda::DevicePointer table =
        operandTable(launch, operands, offsets, numOperands * numSets);
    if (isRecording && !isInBody() && recordedNodes() >= maxNodes)
      runDirectly();
    auto start = std::chrono::steady_clock::now();
    for (int64_t first = 0; first < numSets; first += maxSets) {
      Grid grid(static_cast<unsigned>(blocks),
                static_cast<unsigned>(std::min(numSets - first, maxSets)));
      work().launch(loaded, grid,
                    {table + first * numOperands * sizeof(table)});
    }
    finishLaunch(launch, blocks * numSets, start);
  } catch (const Error &error) {
    failure = Error(error.status,
                    str(labelOf(launch), ": ", std::string(error.what())));
  }
}

const void *DeviceStep::read(int64_t operand, int64_t offset, int64_t bytes) {
  // After a failure conditions read as zero, so that loops end.
  readValue.assign(static_cast<size_t>(std::max<int64_t>(bytes, 8)), 0);
  attempt([&] {
    runDirectly();
    direct->copyToHost(readValue.data(), resolve(operand, -1) + offset, bytes);
    waitFor(str("read a condition of '", executable.name, "'"));
  });
  if (failure)
    readValue.assign(readValue.size(), 0);
  return readValue.data();
}

void DeviceStep::write(int64_t operand, int64_t offset, int64_t bytes,
                       const void *value) {
  attempt([&] {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
      throw Error(
          FP8_ERROR_INTERNAL,
          str("expected a scalar of 1, 2, 4 or 8 bytes but got ", bytes));
    work().fill(resolve(operand, -1) + offset, value, bytes);
  });
}

void DeviceStep::fetch(int64_t operand) {
  attempt([&] {
    auto number = static_cast<size_t>(~operand);
    if (operand >= 0 || number >= buffers.size() || buffers[number].isArgument)
      throw Error(FP8_ERROR_INTERNAL,
                  str("expected a result of '", executable.name,
                      "' but got operand code ", operand));
    Buffer &buffer = buffers[number];
    if (!buffer.isFetched || buffer.bytes == 0)
      return;
    work().copyToHost(buffer.mirror, memory + buffer.place, buffer.bytes);
    buffer.isEarly = true;
    earlyCopies.push_back(nextNode);
  });
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

void DeviceStep::call(std::function<void()> what) {
  attempt([&] {
    if (isInBody())
      throw Error(FP8_ERROR_INTERNAL,
                  str("expected collectives outside of the loops and branches "
                      "that the GPU decides, in '",
                      executable.name, "'"));
    if (isRecording)
      program.push_back({nullptr, std::move(what)});
    else
      what();
  });
}

void DeviceStep::copy(cuda::DevicePointer target, cuda::DevicePointer source,
                      int64_t bytes) {
  if (bytes != 0 && target != source)
    attempt([&] { work().copy(target, source, bytes); });
}

cuda::DevicePointer DeviceStep::addressOf(int64_t operand, int64_t offset,
                                          int64_t number) {
  cuda::DevicePointer address = 0;
  attempt([&] { address = resolve(operand, number) + offset; });
  return address;
}

void DeviceStep::fail(const Error &error) {
  if (!failure)
    failure = error;
}

void DeviceStep::dropRecording() {
  device.makeCurrent();
  waitFor(str("run '", executable.name, "'"));
  program.clear();
}

/// Returns whether the image is LLVM IR, as bitcode or as text.
static bool isIR(const fp8_gpu_kernel &kernel) {
  std::string_view image(static_cast<const char *>(kernel.image),
                         kernel.image_bytes);
  return image.substr(0, 4) == "BC\xC0\xDE" ||
         image.find("target triple") != std::string_view::npos;
}

std::unique_ptr<Engine> DeviceStep::makeEngine() const {
  // The runtime's kernels must have the same form as the step's own.
  const fp8_gpu_kernel *kernel = nullptr;
  for (const fp8_gpu_kernel *each : executable.gpuKernels)
    if (each->image)
      kernel = each;
  return std::make_unique<RankCollectives>(device, stream,
                                           kernel && isIR(*kernel));
}

} // namespace fp8::rt::gpu
