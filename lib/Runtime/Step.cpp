//===- Step.cpp - Executables and their memory ----------------------------===//

#include "Step.h"
#include "GPU/DeviceStep.h"
#include "Trace.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <unistd.h>

using namespace fp8::rt;

//===----------------------------------------------------------------------===//
// Executable
//===----------------------------------------------------------------------===//

/// Copies the description of an argument of which each rank has a part; checks
/// that the parts lie inside the whole.
static void copyPart(const fp8_tensor_info &info, TensorInfo &copy) {
  if (!info.whole_dims || info.kind == FP8_KIND_STATE)
    return;
  copy.whole.assign(info.whole_dims, info.whole_dims + info.rank);
  bool isIn = info.rank > 0 && info.num_parts > 0 && info.part_offsets;
  for (int64_t i = 0; isIn && i < info.num_parts * info.rank; ++i) {
    int64_t offset = info.part_offsets[i], dim = i % info.rank;
    isIn = offset >= 0 && offset + info.dims[dim] <= copy.whole[dim];
    copy.partOffsets.push_back(offset);
  }
  if (!isIn)
    throw Error(FP8_ERROR_INVALID,
                str("argument '", info.name, "': expected parts of ",
                    copy.wholeType().text(),
                    " but got some that are not in it"));
}

/// Copies the number of slices of an argument's shard. Throws if its rows do
/// not divide into the slices.
static void copySlices(const fp8_tensor_info &info, TensorInfo &copy) {
  if (copy.shard == 0 || info.slices <= 1)
    return;
  copy.slices = info.slices;
  if (info.rank == 0 || info.dims[0] % info.slices != 0)
    throw Error(FP8_ERROR_INVALID,
                str("argument '", info.name, "': expected rows for ",
                    info.slices, " slices of shard ", info.shard, " but got ",
                    copy.type.text()));
}

static std::vector<TensorInfo> copyInfos(const fp8_tensor_info *infos,
                                         int64_t count, const char *what) {
  if (count < 0 || (count > 0 && !infos))
    throw Error(FP8_ERROR_INVALID, str("expected ", what, "s but got none"));
  std::vector<TensorInfo> result;
  std::set<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    const fp8_tensor_info &info = infos[i];
    if (!info.name || !names.insert(info.name).second)
      throw Error(FP8_ERROR_INVALID,
                  str("expected a unique name for ", what, " ", i, " but got ",
                      info.name ? str("'", info.name, "' again") : "none"));
    if (fp8_tensor_bytes(&info) < 0)
      throw Error(FP8_ERROR_INVALID,
                  str(what, " '", info.name, "' has no valid type"));
    TensorInfo copy;
    copy.name = info.name;
    copy.type.dtype = info.dtype;
    copy.type.dims.assign(info.dims, info.dims + info.rank);
    copy.kind = info.kind;
    copy.role = info.role;
    copy.vocabulary = info.vocabulary > 0 ? info.vocabulary : -1;
    copy.stateArg = info.kind == FP8_KIND_STATE ? info.state_arg : -1;
    copy.ownBuffer = info.own_buffer != 0;
    copy.zeroInit = info.zero_init != 0;
    copy.shard = info.kind == FP8_KIND_STATE ? 0 : info.shard;
    if (copy.shard < 0 || copy.shard > count)
      throw Error(FP8_ERROR_INVALID,
                  str(what, " '", info.name, "': expected a shard of 1 to ",
                      count, ", or 0, but got ", copy.shard));
    copySlices(info, copy);
    copyPart(info, copy);
    result.push_back(std::move(copy));
  }
  return result;
}

fp8_executable::fp8_executable(const fp8_executable_desc &desc)
    : name(desc.name ? desc.name : "function"), entry(desc.entry),
      arguments(copyInfos(desc.arguments, desc.num_arguments, "argument")),
      results(copyInfos(desc.results, desc.num_results, "result")),
      arenaBytes(desc.arena_bytes), scratchBytes(desc.scratch_bytes) {
  if (!entry)
    throw Error(FP8_ERROR_INVALID,
                str("executable '", name, "' has no entry function"));
  if (arenaBytes < 0 || scratchBytes < 0)
    throw Error(FP8_ERROR_INVALID,
                str("executable '", name, "' has a negative memory size"));
  pairState();
  copyConstants(desc);
  if (desc.launch_names)
    for (int64_t i = 0; i < desc.num_launches; ++i)
      launchNames.push_back(desc.launch_names[i] ? desc.launch_names[i] : "");
  copyKernels(desc);
}

void fp8_executable::pairState() {
  std::set<int64_t> replaced;
  for (const TensorInfo &result : results) {
    if (result.kind != FP8_KIND_STATE)
      continue;
    if (result.stateArg < 0 ||
        result.stateArg >= static_cast<int64_t>(arguments.size()) ||
        !replaced.insert(result.stateArg).second)
      throw Error(FP8_ERROR_INVALID,
                  str("result '", result.name,
                      "' is state but replaces no argument of its own"));
    const TensorInfo &argument = arguments[result.stateArg];
    if (argument.type != result.type)
      throw Error(FP8_ERROR_INVALID,
                  str("state result '", result.name, "': expected the type ",
                      argument.type.text(), " of argument '", argument.name,
                      "' but got ", result.type.text()));
  }
  // A result's buffer is swapped with its argument's, so both have one shard.
  for (TensorInfo &result : results)
    if (result.stateArg >= 0) {
      result.shard = arguments[result.stateArg].shard;
      result.slices = arguments[result.stateArg].slices;
    }
}

void fp8_executable::copyConstants(const fp8_executable_desc &desc) {
  if (desc.num_constants < 0 || (desc.num_constants > 0 && !desc.constants))
    throw Error(FP8_ERROR_INVALID, "expected constants but got none");
  for (int64_t i = 0; i < desc.num_constants; ++i) {
    const fp8_constant &constant = desc.constants[i];
    if (constant.bytes < 0 || (constant.bytes > 0 && !constant.data))
      throw Error(FP8_ERROR_INVALID, str("constant ", i, " has no data"));
    constantBytes += constant.bytes;
    constantSizes.push_back(constant.bytes);
    if (reinterpret_cast<uintptr_t>(constant.data) % 64 == 0 && constant.data) {
      constants.push_back(constant.data);
      continue;
    }
    // Generated code relies on the alignment.
    AlignedBuffer copy = allocateAligned(constant.bytes);
    if (constant.bytes)
      std::memcpy(copy.get(), constant.data, constant.bytes);
    constants.push_back(copy.get());
    constantCopies.push_back(std::move(copy));
  }
}

void fp8_executable::copyKernels(const fp8_executable_desc &desc) {
  if (desc.num_gpu_kernels < 0 || (desc.num_gpu_kernels && !desc.gpu_kernels))
    throw Error(FP8_ERROR_INVALID, "expected kernels for a GPU but got none");
  for (int64_t i = 0; i < desc.num_gpu_kernels; ++i) {
    const fp8_gpu_kernel *kernel = desc.gpu_kernels[i];
    bool hasImage = kernel && kernel->image && kernel->image_bytes > 0;
    if (!kernel || !kernel->name || !(hasImage || kernel->dot) ||
        kernel->threads <= 0 || kernel->shared_bytes < 0)
      throw Error(FP8_ERROR_INVALID,
                  str("kernel ", i, " of '", name,
                      "' has no name, no image or no threads"));
    for (int64_t map = 0; map < kernel->num_maps; ++map)
      if (!kernel->maps || kernel->maps[map].operand < 0 ||
          kernel->maps[map].operand >= kernel->num_operands ||
          kernel->maps[map].rank < 1 ||
          kernel->maps[map].rank > FP8_GPU_MAP_DIMS)
        throw Error(FP8_ERROR_INVALID,
                    str("tensor map ", map, " of kernel '", kernel->name,
                        "' has no operand, or not 1 to ", FP8_GPU_MAP_DIMS,
                        " dimensions"));
    gpuKernels.push_back(kernel);
  }
}

std::shared_ptr<gpu::Modules> fp8_executable::modules() const {
  std::lock_guard<std::mutex> lock(modulesMutex);
  std::shared_ptr<gpu::Modules> modules = loadedModules.lock();
  if (!modules) {
    modules = std::make_shared<gpu::Modules>(name, gpuKernels);
    loadedModules = modules;
  }
  return modules;
}

//===----------------------------------------------------------------------===//
// Step
//===----------------------------------------------------------------------===//

static const int64_t pageSize = sysconf(_SC_PAGESIZE);

/// Returns the bytes from the beginning of a tensor to that of the next one.
/// Large tensors begin at different places of a page: a CPU that compares the
/// low 12 bits of addresses lets a load wait for a store to the same place of
/// another tensor, and lines of such tensors compete for the same sets of its
/// caches. Adam on four arrays of 256 MiB takes 2.5 times as long then.
static int64_t distanceToNext(int64_t bytes) {
  constexpr int64_t kLarge = 1 << 20, kStagger = 4096 + 256;
  return alignUp(bytes) + (bytes >= kLarge ? kStagger : 0);
}

/// Returns the bytes that `bytes` of a tensor take in its shard. Slices are
/// contiguous, so only tensors without slices are padded.
static int64_t bytesInShard(const TensorInfo &tensor, int64_t bytes) {
  return tensor.slices > 1 ? bytes : alignUp(bytes);
}

/// Returns the bytes to reserve for the arena of a step on the CPU. Even an
/// empty one needs an address, for empty tensors.
static int64_t reservedForArena(const fp8_executable &executable) {
  constexpr int64_t kMore = 64;
  return std::min(executable.arenaBytes,
                  std::numeric_limits<int64_t>::max() - kMore) +
         kMore;
}

fp8_step::fp8_step(const fp8_executable &executable, int threads)
    : executable(executable),
      pool(ThreadPool::get(!executable.gpuKernels.empty() ? 1
                           : threads > 0 ? threads
                                         : ThreadPool::defaultThreads())),
      arena(executable.gpuKernels.empty() ? reservedForArena(executable) : 0) {
  for (const TensorInfo &argument : executable.arguments)
    argumentBytes += alignUp(argument.type.bytes());
  for (size_t i = 0; i < executable.results.size(); ++i)
    if (executable.ownsBuffer(i))
      resultBytes += alignUp(executable.results[i].type.bytes());
  if (!executable.gpuKernels.empty())
    device = std::make_unique<gpu::DeviceStep>(executable);
  placeBuffers();
  for (const void *constant : executable.constants)
    externals.push_back(const_cast<void *>(constant));

  for (int i = 0; i < pool->size() && !device; ++i) {
    scratchMemory.push_back(allocateAligned(executable.scratchBytes));
    scratch.push_back(scratchMemory.back().get());
  }
}

fp8_step::~fp8_step() = default;

/// Allocates arguments and results: first what all ranks have, then every shard
/// on pages of its own, so that other ranks' shards take no memory.
void fp8_step::placeBuffers() {
  std::vector<const TensorInfo *> tensors;
  for (const TensorInfo &argument : executable.arguments)
    tensors.push_back(&argument);
  for (size_t i = 0; i < executable.results.size(); ++i) {
    bool isOwn = executable.ownsBuffer(i);
    resultSlots.push_back(isOwn ? tensors.size()
                                : executable.results[i].stateArg);
    if (isOwn)
      tensors.push_back(&executable.results[i]);
  }
  for (const TensorInfo &argument : executable.arguments) {
    if (argument.shard == 0)
      continue;
    shards.resize(
        std::max<size_t>(shards.size(), static_cast<size_t>(argument.shard)));
    Shard &shard = shards[argument.shard - 1];
    if (shard.bytes > 0 && shard.slices != argument.slices)
      throw Error(FP8_ERROR_INVALID,
                  str("argument '", argument.name, "': expected ", shard.slices,
                      " slices of shard ", argument.shard, " but got ",
                      argument.slices));
    shard.slices = argument.slices;
    shard.bytes += bytesInShard(argument, argument.type.bytes());
  }
  std::vector<int64_t> offsets(tensors.size());
  int64_t next = 0;
  std::vector<std::vector<size_t>> members(shards.size() + 1);
  for (size_t i = 0; i < tensors.size(); ++i)
    members[tensors[i]->shard].push_back(i);
  for (const std::vector<size_t> &shard : members) {
    for (size_t i : shard) {
      offsets[i] = next;
      next += distanceToNext(tensors[i]->type.bytes());
    }
    if (!shards.empty())
      next = (next + pageSize - 1) / pageSize * pageSize;
  }
  buffers = Mapping(device ? 0 : next + 64);
  for (int64_t offset : offsets)
    externals.push_back(device ? buffers.data() : buffers.data() + offset);
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

/// Deals the shards as FP8-LM's Algorithm 1 does: whole tensors, or the slices
/// of stacks, the largest first, each to the rank with the fewest bytes so far.
/// All slices of a stack have the same size, so each rank gets consecutive
/// ones, as many as it was dealt.
static void dealShards(std::vector<Shard> &shards, int64_t ranks) {
  auto sizeOf = [](const Shard &shard) { return shard.bytes / shard.slices; };
  std::vector<size_t> order(shards.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-sizeOf(shards[a]), a) < std::pair(-sizeOf(shards[b]), b);
  });
  std::vector<int64_t> load(ranks);
  for (size_t number : order) {
    Shard &shard = shards[number];
    shard.owners.assign(ranks + 1, 0);
    for (int64_t slice = 0; slice < shard.slices; ++slice) {
      auto least = std::min_element(load.begin(), load.end());
      ++shard.owners[least - load.begin() + 1];
      *least += sizeOf(shard);
    }
    std::partial_sum(shard.owners.begin(), shard.owners.end(),
                     shard.owners.begin());
  }
}

Slice fp8_step::ownSlices(int64_t shard) const {
  if (shard < 1 || shard > static_cast<int64_t>(shards.size()))
    return {0, 0};
  const Shard &of = shards[shard - 1];
  if (of.owners.empty())
    return {0, of.slices};
  int64_t begin = of.owners[rank()];
  return {begin, of.owners[rank() + 1] - begin};
}

Slice fp8_step::bytesOf(const TensorInfo &tensor, int64_t rank) const {
  int64_t bytes = tensor.type.bytes();
  if (tensor.shard == 0 || !isDealt())
    return {0, bytes};
  const Owners &owners = shards[tensor.shard - 1].owners;
  int64_t size = bytes / tensor.slices;
  return {owners[rank] * size, (owners[rank + 1] - owners[rank]) * size};
}

int64_t fp8_step::ownerOf(int64_t shard) const {
  const Owners &owners = shards[shard - 1].owners;
  for (size_t rank = 0; rank + 1 < owners.size(); ++rank)
    if (owners[rank + 1] - owners[rank] == owners.back())
      return static_cast<int64_t>(rank);
  return owners.empty() ? 0 : -1;
}

int64_t fp8_step::shardBytesOf(int64_t rank) const {
  int64_t bytes = 0;
  for (const Shard &shard : shards)
    bytes += shard.owners.empty()
                 ? shard.bytes
                 : shard.bytes / shard.slices *
                       (shard.owners[rank + 1] - shard.owners[rank]);
  return bytes;
}

void fp8_step::gather(int64_t only) {
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    if (executable.arguments[i].isPart())
      gatherPart(i, only);
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    if (executable.arguments[i].shard > 0)
      gatherShard(i, only);
}

void fp8_step::gatherShard(size_t i, int64_t only) {
  const TensorInfo &argument = executable.arguments[i];
  if (!isDealt() || (only >= 0 && ownerOf(argument.shard) == only))
    return;
  fp8_group &group = inFlight->ranks();
  char *data = this->argument(i);
  std::vector<fp8_message> sends(group.size()), receives(group.size());
  auto takes = [&](int64_t rank) { return only < 0 || only == rank; };
  auto ofRank = [&](int64_t rank) {
    Slice bytes = bytesOf(argument, rank);
    return fp8_message{data + bytes.begin, bytes.count};
  };
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank())
      continue;
    if (takes(rank))
      sends[rank] = ofRank(group.rank());
    if (takes(group.rank()))
      receives[rank] = ofRank(rank);
  }
  group.wait(group.submit([&] { group.exchange(sends, receives); }));
}

void fp8_step::drop() {
  wholes.clear();
  if (device)
    return; // It is a single allocation.
  auto dropOthers = [&](const TensorInfo &tensor, size_t slot) {
    Slice own = ownBytes(tensor);
    const char *data = static_cast<char *>(externals[slot]);
    int64_t bytes = alignUp(tensor.type.bytes()), end = own.begin + own.count;
    if (own.count == 0)
      return buffers.release(data, bytes);
    buffers.release(data, own.begin);
    if (end < tensor.type.bytes())
      buffers.release(data + end, bytes - end);
  };
  for (size_t i = 0; i < executable.arguments.size(); ++i)
    dropOthers(executable.arguments[i], i);
  for (size_t i = 0; i < executable.results.size(); ++i)
    if (executable.ownsBuffer(i))
      dropOthers(executable.results[i], resultSlots[i]);
}

char *fp8_step::external(size_t number) {
  return static_cast<char *>(device ? device->buffer(number)
                                    : externals[number]);
}

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

void fp8_executable::addRun(std::vector<fp8_launch_stat> &profile,
                            int64_t launch, int64_t tasks,
                            std::chrono::duration<double> time) const {
  auto index = static_cast<size_t>(launch);
  if (index >= profile.size())
    profile.resize(index + 1);
  fp8_launch_stat &stat = profile[index];
  stat.name = index < launchNames.size() ? launchNames[index].c_str() : "";
  stat.tasks = tasks;
  ++stat.runs;
  stat.seconds += time.count();
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

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

bool fp8_step::hasFailed() const {
  return device ? device->hasFailed() : !failure.empty();
}

void fp8_step::failCollective(int64_t number, const char *label,
                              const std::string &mistake) {
  fail(Error(FP8_ERROR_INTERNAL,
             str("collective ", number, " of '", executable.name, "' (",
                 label ? label : "", "): ", mistake)));
}

void fp8_step::fail(const Error &error) {
  if (device)
    return device->fail(error);
  failure = error.what();
  failureStatus = error.status;
}

std::vector<char *> fp8_step::addressesOf(const int64_t *operands,
                                          const int64_t *offsets,
                                          int64_t numOperands, int64_t number) {
  std::vector<char *> addresses;
  for (int64_t i = 0; i < numOperands; ++i) {
    int64_t offset = offsets ? offsets[i] : 0;
    char *base = device ? reinterpret_cast<char *>(
                              device->addressOf(operands[i], offset, number))
                        : static_cast<char *>(resolve(operands[i], number));
    if (!base)
      return {};
    addresses.push_back(device ? base : base + offset);
  }
  return addresses;
}

void fp8_step::copy(char *target, const char *source, int64_t bytes) {
  if (device)
    device->copy(reinterpret_cast<fp8::cuda::DevicePointer>(target),
                 reinterpret_cast<fp8::cuda::DevicePointer>(source), bytes);
  else
    std::memmove(target, source, bytes);
}

void fp8_step::call(std::function<void()> what) {
  if (device)
    device->call(std::move(what));
  else
    what();
}

std::unique_ptr<Engine> fp8_step::makeEngine() {
  return device ? device->makeEngine() : std::make_unique<Engine>();
}

/// Describes what is wrong with the shard of a reduction; "" if nothing is.
std::string fp8_step::findMistakeInShard(const fp8_all_reduce &what,
                                         int64_t slice) const {
  if (what.shard == 0)
    return "";
  if (what.shard > static_cast<int64_t>(shards.size()))
    return str("expected a shard of at most ", shards.size(), " but got ",
               what.shard);
  int64_t slices = shards[what.shard - 1].slices;
  if (slice >= slices && slices > 1)
    return str("expected a slice below ", slices, " but got ", slice);
  if (slice < 0 && what.elements % slices != 0)
    return str("expected elements for ", slices, " slices but got ",
               what.elements);
  return "";
}

void fp8_step::startAllReduce(int64_t number, const fp8_all_reduce &what,
                              int64_t slice, const int64_t *operands,
                              const int64_t *offsets, int64_t numOperands) {
  if (hasFailed())
    return;
  bool isNarrow =
      what.wire == FP8_WIRE_F8_E4M3FN || what.wire == FP8_WIRE_F8_E5M2;
  std::string mistake = findMistake(what);
  if (mistake.empty())
    mistake = findMistakeInShard(what, slice);
  if (mistake.empty() && numOperands != (isNarrow ? 3 : 2))
    mistake =
        str("expected ", isNarrow ? 3 : 2, " operands but got ", numOperands);
  if (!mistake.empty())
    return failCollective(number, what.label, mistake);
  std::vector<char *> addresses =
      addressesOf(operands, offsets, numOperands, number);
  if (addresses.empty())
    return;
  // With one rank the operand is the result.
  if (numRanks() == 1)
    return copy(addresses[1], addresses[0],
                what.elements *
                    fp8_dtype_size(static_cast<fp8_dtype>(what.dtype)));
  Reduction reduction{what,
                      number,
                      addresses[0],
                      addresses[1],
                      isNarrow ? reinterpret_cast<float *>(addresses[2])
                               : nullptr,
                      what.shard ? &shards[what.shard - 1].owners : nullptr,
                      slice};
  call([this, reduction] { inFlight->start(reduction); });
}

void fp8_step::startExchange(int64_t number, const fp8_exchange &what,
                             const int64_t *operands, const int64_t *offsets,
                             int64_t numOperands) {
  if (hasFailed())
    return;
  std::string mistake = findMistake(what, rank(), numRanks());
  if (mistake.empty() && numOperands != 2)
    mistake = str("expected 2 operands but got ", numOperands);
  if (!mistake.empty())
    return failCollective(number, what.label, mistake);
  std::vector<char *> addresses =
      addressesOf(operands, offsets, numOperands, number);
  if (addresses.empty())
    return;
  Exchange exchange{what, number, addresses[0], addresses[1]};
  if (!inFlight) {
    alone = std::make_unique<fp8_group>();
    inFlight.emplace(*alone, makeEngine());
  }
  call([this, exchange] { inFlight->start(exchange); });
}

void fp8_step::wait(int64_t number) {
  if (inFlight && !hasFailed())
    call([this, number] {
      inFlight->wait(number, /*onHost=*/!device || !device->isReplaying());
    });
}

void fp8_step::setGroup(fp8_group *group) {
  inFlight.reset();
  for (Shard &shard : shards)
    shard.owners.clear();
  if (device)
    device->dropRecording();
  if (!group)
    return;
  inFlight.emplace(*group, makeEngine());
  if (numRanks() > 1)
    dealShards(shards, numRanks());
}

const std::vector<fp8_collective_stat> &fp8_step::collectives() const {
  static const std::vector<fp8_collective_stat> none;
  return inFlight ? inFlight->profile() : none;
}

void fp8_step::clearProfile() {
  profile.clear();
  if (inFlight)
    inFlight->clearProfile();
}

void fp8_step::stage() {
  if (device)
    device->stage();
}

void fp8_step::run() {
  if (inFlight)
    inFlight->ranks().beginRun();
  if (device)
    return runOnDevice();
  // A pool of one thread is only the caller and needs no lock: steps of several
  // ranks in one process wait for each other.
  std::unique_lock<std::mutex> lock(pool->inUse, std::defer_lock);
  if (pool->size() > 1)
    lock.lock();
  wholes.clear();
  failure.clear();
  failureStatus = FP8_ERROR_INTERNAL;
  if (inFlight)
    inFlight->timeline = profiling ? timeline.get() : nullptr;
  executable.entry(this);
  if (inFlight && failure.empty())
    inFlight->waitForAll();
  if (!failure.empty()) {
    if (inFlight)
      inFlight->abandon();
    throw Error(failureStatus, failure);
  }
  for (size_t i = 0; i < executable.results.size(); ++i) {
    const TensorInfo &result = executable.results[i];
    if (result.stateArg >= 0 && result.ownBuffer)
      std::swap(externals[result.stateArg], externals[resultSlots[i]]);
  }
}

void fp8_step::runOnDevice() {
  device->profiling = profiling;
  device->profile = &profile;
  try {
    device->run(*this);
    if (inFlight)
      inFlight->waitForAll();
  } catch (const Error &) {
    if (inFlight)
      inFlight->abandon();
    throw;
  }
}

void fp8_step::memory(fp8_memory &out) const {
  out.arena_planned = executable.arenaBytes;
  out.arena_reserved = device ? executable.arenaBytes : arena.reserved();
  out.arena_touched = device ? executable.arenaBytes : arena.touched();
  out.arguments = argumentBytes;
  out.results = resultBytes;
  out.shards = 0;
  out.reductions = inFlight ? inFlight->hostBytes() : 0;
  // A GPU holds other ranks' shards, too.
  auto ownIn = [&](const TensorInfo &tensor) {
    return bytesInShard(tensor, ownBytes(tensor).count);
  };
  for (const TensorInfo &argument : executable.arguments) {
    if (argument.shard == 0)
      continue;
    out.shards += ownIn(argument);
    if (!device)
      out.arguments -= alignUp(argument.type.bytes()) - ownIn(argument);
  }
  for (size_t i = 0; i < executable.results.size() && !device; ++i)
    if (const TensorInfo &result = executable.results[i];
        executable.ownsBuffer(i) && result.shard > 0)
      out.results -= alignUp(result.type.bytes()) - ownIn(result);
  out.arguments_touched =
      device ? out.arguments + out.results : buffers.touched();
  out.constants = executable.constantBytes;
  out.scratch = device
                    ? executable.scratchBytes
                    : alignUp(std::max<int64_t>(executable.scratchBytes, 1)) *
                          static_cast<int64_t>(scratch.size());
  out.peak_rss = peakRss();
}

//===----------------------------------------------------------------------===//
// Entry points for generated code
//===----------------------------------------------------------------------===//

void fp8_launch(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                int64_t num_tasks, const int64_t *operands,
                const int64_t *offsets, int64_t num_operands) {
  step->attempt([&] {
    step->launch(launch, fn, num_tasks, operands, offsets, num_operands);
  });
}

void fp8_launch_owned(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                      int64_t num_tasks, const int64_t *operands,
                      const int64_t *offsets, int64_t num_operands,
                      int64_t shard) {
  step->attempt([&] {
    step->launchOwned(launch, fn, num_tasks, operands, offsets, num_operands,
                      shard);
  });
}

void fp8_launch_sets(fp8_step *step, int64_t launch, fp8_kernel_fn fn,
                     int64_t num_tasks, const int64_t *operands,
                     const int64_t *offsets, int64_t num_operands,
                     int64_t num_sets) {
  step->attempt([&] {
    step->launchSets(launch, fn, num_tasks, operands, offsets, num_operands,
                     num_sets);
  });
}

void *fp8_operand(fp8_step *step, int64_t operand) {
  void *address = nullptr;
  step->attempt([&] { address = step->operand(operand); });
  return address;
}

const void *fp8_read(fp8_step *step, int64_t operand, int64_t offset,
                     int64_t bytes) {
  static const int64_t zero = 0;
  const void *value = &zero;
  step->attempt([&] { value = step->read(operand, offset, bytes); });
  return value;
}

void fp8_write(fp8_step *step, int64_t operand, int64_t offset, int64_t bytes,
               const void *value) {
  step->attempt([&] { step->write(operand, offset, bytes, value); });
}

// Control flow that a GPU decides; only code for a GPU calls these.

int64_t fp8_loop(fp8_step *step, const fp8_gpu_kernel *kernel, int64_t trips) {
  int64_t count = 0;
  step->attempt([&] { count = step->onGPU().beginLoop(kernel, trips); });
  return count;
}

void fp8_keep(fp8_step *step, const fp8_gpu_kernel *kernel, int64_t condition,
              int64_t operand, int64_t offset, const int64_t *strides,
              int64_t bytes) {
  step->attempt([&] {
    step->onGPU().keep(kernel, condition, operand, offset, strides, bytes);
  });
}

int64_t fp8_branch(fp8_step *step, const fp8_gpu_kernel *kernel,
                   int64_t condition, int64_t low, int64_t high,
                   int64_t inverted) {
  int64_t isTaken = 0;
  step->attempt([&] {
    isTaken =
        step->onGPU().beginBranch(kernel, condition, low, high, inverted != 0);
  });
  return isTaken;
}

int64_t fp8_while(fp8_step *step, const fp8_gpu_kernel *kernel, int64_t loop,
                  int64_t condition, int64_t low, int64_t high,
                  int64_t inverted) {
  int64_t runs = 0;
  step->attempt([&] {
    runs = step->onGPU().testWhile(kernel, loop, condition, low, high,
                                   inverted != 0);
  });
  return runs;
}

void fp8_end(fp8_step *step) {
  step->attempt([&] { step->onGPU().end(); });
}

void fp8_fetch(fp8_step *step, int64_t operand) {
  step->attempt([&] { step->onGPU().fetch(operand); });
}

void fp8_order(fp8_step *step, int64_t node, const int64_t *after,
               int64_t count) {
  step->attempt([&] { step->onGPU().order(node, after, count); });
}

void fp8_launch_moving(fp8_step *step, int64_t launch,
                       const fp8_gpu_kernel *kernel, int64_t blocks,
                       const int64_t *operands, const int64_t *offsets,
                       const int64_t *strides, int64_t num_operands) {
  step->attempt([&] {
    step->onGPU().launch(launch, kernel, blocks, operands, offsets, strides,
                         num_operands);
  });
}

void fp8_write_moving(fp8_step *step, const fp8_gpu_kernel *kernel,
                      int64_t operand, int64_t offset, const int64_t *strides,
                      int64_t bytes, int64_t value,
                      const int64_t *value_strides) {
  step->attempt([&] {
    step->onGPU().writeMoving(kernel, operand, offset, strides, bytes, value,
                              value_strides);
  });
}

void fp8_all_reduce_start(fp8_step *step, int64_t number,
                          const fp8_all_reduce *what, int64_t slice,
                          const int64_t *operands, const int64_t *offsets,
                          int64_t num_operands) {
  step->attempt([&] {
    step->startAllReduce(number, *what, slice, operands, offsets, num_operands);
  });
}

void fp8_exchange_start(fp8_step *step, int64_t number,
                        const fp8_exchange *what, const int64_t *operands,
                        const int64_t *offsets, int64_t num_operands) {
  step->attempt([&] {
    step->startExchange(number, *what, operands, offsets, num_operands);
  });
}

void fp8_wait(fp8_step *step, int64_t number) {
  step->attempt([&] { step->wait(number); });
}

int64_t fp8_rank(fp8_step *step) { return step->rank(); }

int64_t fp8_num_ranks(fp8_step *step) { return step->numRanks(); }

int64_t fp8_owns(fp8_step *step, int64_t shard) {
  return shard <= 0 ? 1 : step->ownSlices(shard).count;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

ScalarResults::ScalarResults(const fp8_executable &step) {
  bool hasLoss = false;
  const std::vector<TensorInfo> &all = step.results;
  for (size_t i = 0; i < all.size(); ++i) {
    bool isScalar = all[i].type.elements() == 1;
    if (all[i].kind == FP8_KIND_LOSS) {
      if (!isScalar || !isFloat(all[i].type.dtype))
        throw Error(FP8_ERROR_INVALID,
                    str("loss '", all[i].name,
                        "': expected a floating-point scalar but got ",
                        all[i].type.text()));
      if (hasLoss)
        throw Error(FP8_ERROR_INVALID, "expected one loss but got two");
      loss = i;
      hasLoss = true;
    } else if (all[i].stateArg < 0 && isScalar && !isTrace(all[i].kind)) {
      metrics.push_back(i);
    }
  }
  if (!hasLoss)
    throw Error(FP8_ERROR_INVALID, "the step has no loss");
}

std::vector<std::string>
ScalarResults::metricNames(const fp8_executable &step) const {
  std::vector<std::string> names;
  for (size_t i : metrics)
    names.push_back(step.results[i].name);
  return names;
}

std::vector<std::string>
ScalarResults::names(const fp8_executable &step) const {
  std::vector<std::string> names = metricNames(step);
  names.insert(names.begin(), step.results[loss].name);
  return names;
}

std::vector<double> ScalarResults::values(fp8_step &step) const {
  auto value = [&](size_t i) {
    return elementAsDouble(step.result(i),
                           step.executable.results[i].type.dtype, 0);
  };
  std::vector<double> all = {value(loss)};
  for (size_t i : metrics)
    all.push_back(value(i));
  return all;
}
