//===- Executable.cpp - What a step runs ----------------------------------===//

#include "Executable.h"
#include "../GPU/Modules.h"
#include "../Support/Error.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace fp8::rt;

/// Copies the description of an argument of which each rank has a part; checks
/// that the parts lie inside the whole.
static void copyPart(const fp8_tensor_info &info, TensorInfo &copy) {
  if (!info.whole_dims || info.kind == FP8_KIND_STATE)
    return;
  copy.whole.assign(info.whole_dims, info.whole_dims + info.rank);
  copy.partBlocks = std::max<int64_t>(1, info.part_blocks);
  bool isIn = info.rank > 0 && info.num_parts > 0 && info.part_offsets &&
              info.dims[copy.dividedDim()] % copy.partBlocks == 0 &&
              copy.whole[copy.dividedDim()] % copy.partBlocks == 0;
  for (int64_t i = 0; isIn && i < info.num_parts * info.rank; ++i) {
    int64_t offset = info.part_offsets[i], dim = i % info.rank;
    int64_t blocks =
        dim == static_cast<int64_t>(copy.dividedDim()) ? copy.partBlocks : 1;
    isIn = offset >= 0 &&
           offset + info.dims[dim] / blocks <= copy.whole[dim] / blocks;
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

std::vector<TensorInfo> fp8::rt::copyInfos(const fp8_tensor_info *infos,
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
    copy.labels = info.labels != 0;
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
  countRanks();
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

void fp8_executable::countRanks() {
  for (const TensorInfo &argument : arguments) {
    if (!argument.isPart())
      continue;
    if (numRanks > 0 && argument.numParts() != numRanks)
      throw Error(FP8_ERROR_INVALID,
                  str("argument '", argument.name, "': expected parts for ",
                      numRanks, " ranks, as another has, but got ",
                      argument.numParts()));
    numRanks = argument.numParts();
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
