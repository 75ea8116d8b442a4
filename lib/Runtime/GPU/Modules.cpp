//===- Modules.cpp - The kernels of a function on the GPU -----------------===//

#include "Modules.h"
#include "../Support/Error.h"

#include <cstring>

namespace fp8::rt::gpu {

Modules::Modules(const std::string &function,
                 const std::vector<const fp8_gpu_kernel *> &kernels)
    : device(Device::get()) {
  device.makeCurrent();
  try {
    for (const fp8_gpu_kernel *kernel : kernels) {
      const Driver &driver = device.driver;
      LoadedKernel &added = loaded[kernel];
      added.kernel = kernel;
      if (kernel->dot) {
        added.dot = std::make_unique<LibraryDot>(function, *kernel);
        continue;
      }
      driver.check(driver.cuModuleGetFunction(&added.function, load(*kernel),
                                              kernel->name),
                   str("find kernel '", kernel->name, "' of '", function,
                       "' in its image"));
      // More than 48 KiB of shared memory must be requested.
      if (kernel->shared_bytes > 0)
        driver.check(driver.cuFuncSetAttribute(added.function,
                                               cuda::MaxDynamicSharedBytes,
                                               kernel->shared_bytes),
                     str("give kernel '", kernel->name, "' of '", function,
                         "' ", kernel->shared_bytes,
                         " bytes of shared memory a block; ", device.name,
                         " has ", device.sharedBytes));
    }
  } catch (...) {
    unload();
    throw;
  }
}

Modules::~Modules() { unload(); }

void Modules::unload() {
  for (const auto &[image, module] : modules)
    device.driver.cuModuleUnload(module);
  modules.clear();
}

cuda::Module Modules::load(const fp8_gpu_kernel &kernel) {
  if (auto found = modules.find(kernel.image); found != modules.end())
    return found->second;
  // The driver takes no length: a text image must end with a 0.
  std::vector<char> image(kernel.image_bytes + 16, 0);
  std::memcpy(image.data(), kernel.image, kernel.image_bytes);
  std::string log;
  cuda::Module module = nullptr;
  cuda::Status status = device.driver.loadModule(image.data(), module, log);
  if (status != cuda::Success)
    throw Error(FP8_ERROR_INVALID,
                str("the GPU cannot load kernel '", kernel.name, "': ",
                    device.driver.textOf(status), "; it is ", device.name,
                    " (compute capability ", device.capability / 10, ".",
                    device.capability % 10, ")", log.empty() ? "" : ": ", log));
  modules[kernel.image] = module;
  return module;
}

} // namespace fp8::rt::gpu
