//===- Work.cpp - What a GPU is told to do, one thing after another -------===//

#include "Work.h"

#include <cstring>

namespace fp8::rt::gpu {

/// The driver takes the address of each parameter.
static std::vector<void *>
addressesOf(const std::vector<cuda::DevicePointer> &operands) {
  std::vector<void *> addresses;
  for (const cuda::DevicePointer &operand : operands)
    addresses.push_back(const_cast<cuda::DevicePointer *>(&operand));
  return addresses;
}

namespace {
/// A value as memset takes it.
struct Pattern {
  unsigned value = 0;
  unsigned elementBytes;
  size_t count = 1;
};
} // namespace

/// 8 bytes are two words, which have to be set one by one if they differ.
static std::vector<Pattern> patternsOf(const void *value, int64_t bytes) {
  std::vector<Pattern> patterns;
  for (int64_t at = 0; at < bytes; at += 4) {
    Pattern pattern;
    pattern.elementBytes = static_cast<unsigned>(bytes < 4 ? bytes : 4);
    std::memcpy(&pattern.value, static_cast<const char *>(value) + at,
                pattern.elementBytes);
    patterns.push_back(pattern);
  }
  return patterns;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

void StreamWork::launch(const LoadedKernel &kernel, unsigned blocks,
                        const std::vector<cuda::DevicePointer> &operands) {
  if (kernel.dot)
    return kernel.dot->run(stream, operands);
  std::vector<void *> addresses = addressesOf(operands);
  driver.check(driver.cuLaunchKernel(kernel.function, blocks, 1, 1,
                                     kernel.kernel->threads, 1, 1,
                                     kernel.kernel->shared_bytes, stream,
                                     addresses.data(), nullptr),
               str("launch kernel '", kernel.kernel->name, "'"));
}

void StreamWork::fill(cuda::DevicePointer target, const void *value,
                      int64_t bytes) {
  for (const Pattern &pattern : patternsOf(value, bytes)) {
    cuda::Status status =
        pattern.elementBytes == 1
            ? driver.cuMemsetD8Async(target, pattern.value, 1, stream)
        : pattern.elementBytes == 2
            ? driver.cuMemsetD16Async(target, pattern.value, 1, stream)
            : driver.cuMemsetD32Async(target, pattern.value, 1, stream);
    driver.check(status, "write a scalar");
    target += pattern.elementBytes;
  }
}

void StreamWork::copyToHost(void *target, cuda::DevicePointer source,
                            int64_t bytes) {
  driver.check(driver.cuMemcpyDtoHAsync_v2(target, source, bytes, stream),
               "copy a result");
}

void StreamWork::copy(cuda::DevicePointer target, cuda::DevicePointer source,
                      int64_t bytes) {
  driver.check(driver.cuMemcpyDtoDAsync_v2(target, source, bytes, stream),
               "copy a buffer");
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

GraphWork::GraphWork(const Device &device, cuda::Stream stream)
    : driver(device.driver), context(device.context), stream(stream) {
  driver.check(driver.cuGraphCreate(&graph, 0), "make a graph");
}

GraphWork::~GraphWork() {
  if (executable)
    driver.cuGraphExecDestroy(executable);
  driver.cuGraphDestroy(graph);
}

void GraphWork::launch(const LoadedKernel &kernel, unsigned blocks,
                       const std::vector<cuda::DevicePointer> &operands) {
  if (kernel.dot)
    return addDot(kernel, operands);
  std::vector<void *> addresses = addressesOf(operands);
  cuda::KernelNodeParams params = {};
  params.func = kernel.function;
  params.gridX = blocks;
  params.blockX = kernel.kernel->threads;
  params.gridY = params.gridZ = params.blockY = params.blockZ = 1;
  params.sharedBytes = kernel.kernel->shared_bytes;
  params.parameters = addresses.data();
  cuda::GraphNode node = nullptr;
  driver.check(driver.cuGraphAddKernelNode_v2(&node, graph, before(),
                                              count ? 1 : 0, &params),
               str("add kernel '", kernel.kernel->name, "' to a graph"));
  added(node);
}

/// What the library tells a stream becomes a graph of its own, and that a node.
void GraphWork::addDot(const LoadedKernel &kernel,
                       const std::vector<cuda::DevicePointer> &operands) {
  std::string what = str("add dot '", kernel.kernel->name, "' to a graph");
  // Relaxed: the library may load its kernels on the way.
  driver.check(driver.cuStreamBeginCapture_v2(stream, cuda::CaptureRelaxed),
               what);
  cuda::Graph captured = nullptr;
  try {
    kernel.dot->run(stream, operands);
  } catch (...) {
    driver.cuStreamEndCapture(stream, &captured);
    if (captured)
      driver.cuGraphDestroy(captured);
    throw;
  }
  driver.check(driver.cuStreamEndCapture(stream, &captured), what);
  cuda::GraphNode node = nullptr;
  cuda::Status status = driver.cuGraphAddChildGraphNode(
      &node, graph, before(), count ? 1 : 0, captured);
  // The node has a copy.
  driver.cuGraphDestroy(captured);
  driver.check(status, what);
  added(node);
}

void GraphWork::fill(cuda::DevicePointer target, const void *value,
                     int64_t bytes) {
  for (const Pattern &pattern : patternsOf(value, bytes)) {
    cuda::MemsetNodeParams params = {};
    params.target = target;
    params.value = pattern.value;
    params.elementBytes = pattern.elementBytes;
    params.width = params.height = 1;
    cuda::GraphNode node = nullptr;
    driver.check(driver.cuGraphAddMemsetNode(&node, graph, before(),
                                             count ? 1 : 0, &params, context),
                 "add the write of a scalar to a graph");
    added(node);
    target += pattern.elementBytes;
  }
}

void GraphWork::addCopy(const cuda::MemcpyParams &params) {
  cuda::GraphNode node = nullptr;
  driver.check(driver.cuGraphAddMemcpyNode(&node, graph, before(),
                                           count ? 1 : 0, &params, context),
               "add a copy to a graph");
  added(node);
}

void GraphWork::copyToHost(void *target, cuda::DevicePointer source,
                           int64_t bytes) {
  cuda::MemcpyParams params = {};
  params.sourceType = cuda::DeviceMemoryType;
  params.sourceDevice = source;
  params.targetType = cuda::HostMemory;
  params.targetHost = target;
  params.width = bytes;
  params.height = params.depth = 1;
  addCopy(params);
}

void GraphWork::copy(cuda::DevicePointer target, cuda::DevicePointer source,
                     int64_t bytes) {
  cuda::MemcpyParams params = {};
  params.sourceType = params.targetType = cuda::DeviceMemoryType;
  params.sourceDevice = source;
  params.targetDevice = target;
  params.width = bytes;
  params.height = params.depth = 1;
  addCopy(params);
}

void GraphWork::run(cuda::Stream stream) {
  if (!executable)
    driver.check(driver.cuGraphInstantiateWithFlags(&executable, graph, 0),
                 str("make a graph of ", count, " nodes ready"));
  driver.check(driver.cuGraphLaunch(executable, stream), "launch a graph");
}

} // namespace fp8::rt::gpu
