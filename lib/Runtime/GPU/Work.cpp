//===- Work.cpp - Ordered work for a GPU ----------------------------------===//

#include "Work.h"
#include "../Support/Text.h"
#include "LaunchArguments.h"

#include <cstring>

namespace fp8::rt::gpu {

namespace {
/// A value in the form that memset takes.
struct Pattern {
  unsigned value = 0;
  unsigned elementBytes;
  size_t count = 1;
};
} // namespace

/// Splits a value into memset patterns: 8 bytes are two words, which are set
/// one by one.
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

void StreamWork::launch(const LoadedKernel &kernel, Grid grid,
                        const std::vector<cuda::DevicePointer> &parameters) {
  if (kernel.dot)
    return kernel.dot->run(stream, parameters);
  LaunchArguments arguments(driver, *kernel.kernel, parameters);
  driver.check(driver.cuLaunchKernel(kernel.function, grid.blocks, grid.sets, 1,
                                     kernel.kernel->threads, 1, 1,
                                     kernel.kernel->shared_bytes, stream,
                                     arguments.data(), nullptr),
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
  levels.emplace_back().graph = graph;
}

GraphWork::~GraphWork() {
  if (executable)
    driver.cuGraphExecDestroy(executable);
  driver.cuGraphDestroy(graph);
}

void GraphWork::order(int64_t node, const int64_t *after, int64_t count) {
  Level &level = levels.back();
  level.number = node;
  level.before.clear();
  // What is unknown came before the barrier.
  for (int64_t i = 0; i < count; ++i)
    if (auto found = level.known.find(after[i]); found != level.known.end())
      level.before.insert(found->second.begin(), found->second.end());
  if (node >= 0)
    level.known[node] = level.before;
}

void GraphWork::join() {
  Level &level = levels.back();
  order(-1, nullptr, 0);
  if (level.ends.size() > 1) {
    cuda::NodeParams params = {};
    params.type = cuda::EmptyNode;
    return add(params, "a place where work joins");
  }
  if (!level.ends.empty())
    level.barrier = *level.ends.begin();
  level.known.clear();
}

void GraphWork::add(cuda::NodeParams &params, const std::string &what) {
  Level &level = levels.back();
  Nodes before = level.number < 0 ? level.ends : level.before;
  if (before.empty() && level.barrier)
    before.insert(level.barrier);
  std::vector<cuda::GraphNode> list(before.begin(), before.end());
  cuda::GraphNode node = nullptr;
  driver.check(driver.cuGraphAddNode_v2(&node, level.graph, list.data(),
                                        /*edges=*/nullptr, list.size(),
                                        &params),
               str("add ", what, " to a graph"));
  ++count;
  for (cuda::GraphNode each : list)
    level.ends.erase(each);
  level.ends.insert(node);
  if (level.number < 0) {
    level.barrier = node;
    level.known.clear();
  } else {
    level.before = level.known[level.number] = {node};
  }
}

void GraphWork::launch(const LoadedKernel &kernel, Grid grid,
                       const std::vector<cuda::DevicePointer> &parameters) {
  if (kernel.dot)
    return addDot(kernel, parameters);
  LaunchArguments arguments(driver, *kernel.kernel, parameters);
  cuda::NodeParams params = {};
  params.type = cuda::KernelNode;
  params.kernel.func = kernel.function;
  params.kernel.gridX = grid.blocks;
  params.kernel.gridY = grid.sets;
  params.kernel.blockX = kernel.kernel->threads;
  params.kernel.gridZ = 1;
  params.kernel.blockY = params.kernel.blockZ = 1;
  params.kernel.sharedBytes = kernel.kernel->shared_bytes;
  params.kernel.parameters = arguments.data();
  add(params, str("kernel '", kernel.kernel->name, "'"));
}

/// Captures the library's calls as a graph, and adds it as a node.
void GraphWork::addDot(const LoadedKernel &kernel,
                       const std::vector<cuda::DevicePointer> &operands) {
  std::string dot = str("dot '", kernel.kernel->name, "'");
  // Relaxed mode, since the library may load its kernels meanwhile.
  driver.check(driver.cuStreamBeginCapture_v2(stream, cuda::CaptureRelaxed),
               str("write down ", dot));
  cuda::Graph captured = nullptr;
  try {
    kernel.dot->run(stream, operands);
    driver.check(driver.cuStreamEndCapture(stream, &captured),
                 str("write down ", dot));
    cuda::NodeParams params = {};
    params.type = cuda::ChildGraphNode;
    params.child.graph = captured;
    add(params, dot);
  } catch (...) {
    if (!captured)
      driver.cuStreamEndCapture(stream, &captured);
    if (captured)
      driver.cuGraphDestroy(captured);
    throw;
  }
  driver.cuGraphDestroy(captured);
}

void GraphWork::fill(cuda::DevicePointer target, const void *value,
                     int64_t bytes) {
  for (const Pattern &pattern : patternsOf(value, bytes)) {
    cuda::NodeParams params = {};
    params.type = cuda::MemsetNode;
    params.memset.target = target;
    params.memset.value = pattern.value;
    params.memset.elementBytes = pattern.elementBytes;
    params.memset.width = params.memset.height = 1;
    params.memset.context = context;
    add(params, "the write of a scalar");
    target += pattern.elementBytes;
  }
}

void GraphWork::addCopy(const cuda::MemcpyParams &copy) {
  cuda::NodeParams params = {};
  params.type = cuda::MemcpyNode;
  params.memcpy.context = context;
  params.memcpy.copy = copy;
  add(params, "a copy");
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

void GraphWork::record(cuda::Event event) {
  cuda::NodeParams params = {};
  params.type = cuda::EventRecordNode;
  params.eventRecord.event = event;
  add(params, "an event");
}

cuda::ConditionalHandle GraphWork::makeHandle() {
  cuda::ConditionalHandle handle = 0;
  // The handle has no launch value: for a nested loop it would be set only
  // once.
  driver.check(driver.cuGraphConditionalHandleCreate(
                   &handle, levels.back().graph, context, 0, 0),
               "make a condition of a graph");
  return handle;
}

void GraphWork::open(cuda::ConditionalType type,
                     cuda::ConditionalHandle handle) {
  cuda::NodeParams params = {};
  params.type = cuda::ConditionalNode;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.bodies = 1;
  params.conditional.context = context;
  add(params, type == cuda::While ? "a loop" : "a branch");
  levels.emplace_back().graph = params.conditional.graphs[0];
}

void GraphWork::run(cuda::Stream stream) {
  if (!executable)
    driver.check(driver.cuGraphInstantiateWithFlags(&executable, graph, 0),
                 str("make a graph of ", count, " nodes ready"));
  driver.check(driver.cuGraphLaunch(executable, stream), "launch a graph");
}

} // namespace fp8::rt::gpu
