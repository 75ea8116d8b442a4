//===- DriverModules.cpp - Modules and tensor maps of the emulated driver -===//

#include "Driver.h"
#include "TensorMap.h"

#include <cstring>

using fp8::emulator::bitcodeBytes;
using fp8::emulator::Geometry;
using fp8::emulator::Kernel;

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

static void writeLog(unsigned count, JitOption *options, void **values,
                     const std::string &text) {
  char *log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == JitErrorLog)
      log = static_cast<char *>(values[i]);
    if (options[i] == JitErrorLogBytes)
      bytes = reinterpret_cast<size_t>(values[i]);
  }
  if (log && bytes)
    std::snprintf(log, bytes, "%s", text.c_str());
}

Status cuModuleLoadDataEx(Module *result, const void *image, unsigned count,
                          JitOption *options, void **values) {
  FP8_ENTER_CONTEXT()
  const char *data = static_cast<const char *>(image);
  size_t bytes = bitcodeBytes(data);
  if (bytes == 0) {
    bytes = std::strlen(data);
    if (std::string_view(data, bytes).find("target triple") ==
        std::string_view::npos) {
      writeLog(count, options, values,
               "the GPU emulator loads LLVM IR for nvptx64, but this image is "
               "machine code or PTX");
      return NoBinaryForGpu;
    }
  }
  std::string error;
  auto loaded = fp8::emulator::Module::load(data, bytes, error);
  if (!loaded) {
    writeLog(count, options, values, error);
    return InvalidImage;
  }
  *result = new ModuleHandle{std::move(loaded), {}};
  device.handles.insert(*result);
  return Success;
}

Status cuModuleUnload(Module module) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(module))
    return InvalidHandle;
  device.drainAll();
  for (const auto &[name, function] : module->functions)
    device.handles.erase(function.get());
  delete module;
  return Success;
}

Status cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(module))
    return InvalidHandle;
  Kernel *kernel = module->module->find(name);
  if (!kernel)
    return NotFound;
  std::unique_ptr<FunctionHandle> &found = module->functions[name];
  if (!found)
    found = std::make_unique<FunctionHandle>(FunctionHandle{kernel, 0});
  device.handles.insert(found.get());
  *function = found.get();
  return Success;
}

Status cuFuncGetAttribute(int *value, FunctionAttribute attribute,
                          Function function) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(function))
    return InvalidHandle;
  *value = static_cast<int>(attribute == StaticSharedBytes
                                ? function->kernel->staticShared()
                                : function->dynamicShared);
  return Success;
}

Status cuFuncSetAttribute(Function function, FunctionAttribute attribute,
                          int value) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(function))
    return InvalidHandle;
  if (attribute != MaxDynamicSharedBytes || value < 0 ||
      value + function->kernel->staticShared() > kSharedLimit)
    return InvalidValue;
  function->dynamicShared = value;
  return Success;
}

Status cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, Stream stream,
                      void **parameters, void **extra) {
  FP8_ENTER_CONTEXT()
  if (extra)
    return NotSupported;
  Launch launch;
  Geometry geometry{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared};
  Status status = prepare(function, geometry, parameters, launch);
  ++device.counts.kernels;
  return status == Success ? device.enqueue(stream, std::move(launch)) : status;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Returns the bytes of an element; 0 for types that the emulator lacks.
static unsigned bytesOf(TensorMapType type) {
  switch (type) {
  case MapUInt8:
    return 1;
  case MapUInt16:
  case MapFloat16:
  case MapBFloat16:
    return 2;
  case MapFloat32:
    return 4;
  }
  return 0;
}

Status cuTensorMapEncodeTiled(TensorMap *map, TensorMapType type, uint32_t rank,
                              void *address, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps,
                              TensorMapInterleave interleave,
                              TensorMapSwizzle swizzle,
                              TensorMapPromotion promotion,
                              TensorMapFill fill) {
  FP8_ENTER_CONTEXT()
  using Described = fp8::emulator::TensorMap;
  Described described;
  described.elementBytes = bytesOf(type);
  // The emulator copies whole elements side by side; others are an error here
  // even where a card has them.
  if (device.capability < 90 || reinterpret_cast<uint64_t>(map) % 64 != 0 ||
      described.elementBytes == 0 || rank == 0 || rank > Described::kMostDims ||
      interleave != InterleaveNone || swizzle < SwizzleNone ||
      swizzle > Swizzle128Bytes || promotion < PromoteNone || promotion > 3 ||
      fill != FillZeros)
    return InvalidValue;
  described.rank = rank;
  described.address = reinterpret_cast<uint64_t>(address);
  described.swizzle = swizzle == SwizzleNone ? 0 : 16u << swizzle;
  std::copy(sizes, sizes + rank, described.sizes);
  std::copy(strides, strides + rank - 1, described.strides);
  std::copy(box, box + rank, described.box);
  for (uint32_t i = 1; i < rank; ++i)
    if (steps[i] != 1)
      return InvalidValue;
  if (std::string why = described.invalid(); !why.empty()) {
    std::fprintf(stderr, "GPU emulator: cuTensorMapEncodeTiled: %s\n",
                 why.c_str());
    return InvalidValue;
  }
  std::memset(map, 0, sizeof(*map));
  std::memcpy(map, &described, sizeof(described));
  return Success;
}
