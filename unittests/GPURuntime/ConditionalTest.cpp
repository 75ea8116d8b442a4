//===- ConditionalTest.cpp - Rules of conditional nodes -------------------===//
//
// Tests which graphs with conditions the emulated driver accepts.
//
//===----------------------------------------------------------------------===//

#include "GPU/Cuda.h"
#include "gtest/gtest.h"

#include <cstring>
#include <dlfcn.h>
#include <map>

using namespace fp8::cuda;

namespace {

/// down: --n, and repeats while n is not 0. set: sets the handle to a number.
const char *const image = R"(
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @cudaGraphSetConditional(i64, i32)
define ptx_kernel void @down(ptr %n, i64 %handle) {
  %v = load i32, ptr %n, align 4
  %w = sub i32 %v, 1
  store i32 %w, ptr %n, align 4
  call void @cudaGraphSetConditional(i64 %handle, i32 %w)
  ret void
}
define ptx_kernel void @set(i64 %handle, i64 %value) {
  %v = trunc i64 %value to i32
  call void @cudaGraphSetConditional(i64 %handle, i32 %v)
  ret void
}
)";

class Conditional : public testing::Test {
protected:
  void SetUp() override {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
#define FP8_FIND(name, arguments)                                              \
  cuda.name = reinterpret_cast<decltype(cuda.name)>(dlsym(library, #name));    \
  ASSERT_NE(cuda.name, nullptr);
    FP8_CUDA_FUNCTIONS(FP8_FIND)
#undef FP8_FIND
    ASSERT_EQ(cuda.cuInit(0), Success);
    ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), Success);
    ASSERT_EQ(cuda.cuCtxSetCurrent(context), Success);
    ASSERT_EQ(cuda.cuStreamCreate(&stream, 1), Success);
    Module module = nullptr;
    ASSERT_EQ(cuda.cuModuleLoadDataEx(&module, image, 0, nullptr, nullptr),
              Success);
    ASSERT_EQ(cuda.cuModuleGetFunction(&down, module, "down"), Success);
    ASSERT_EQ(cuda.cuModuleGetFunction(&set, module, "set"), Success);
    ASSERT_EQ(cuda.cuMemAlloc_v2(&memory, 64), Success);
    ASSERT_EQ(cuda.cuMemsetD32Async(memory, 5, 16, stream), Success);
    graph = makeGraph();
  }

  Graph makeGraph() {
    Graph made = nullptr;
    EXPECT_EQ(cuda.cuGraphCreate(&made, 0), Success);
    return made;
  }
  ConditionalHandle makeHandle(Graph graph, unsigned atLaunch = 0,
                               unsigned flags = 0) {
    ConditionalHandle handle = 0;
    EXPECT_EQ(cuda.cuGraphConditionalHandleCreate(&handle, graph, context,
                                                  atLaunch, flags),
              Success);
    return handle;
  }
  Status add(Graph to, NodeParams &params) {
    GraphNode &last = lasts[to];
    GraphNode node = nullptr;
    Status status = cuda.cuGraphAddNode_v2(&node, to, last ? &last : nullptr,
                                           nullptr, last ? 1 : 0, &params);
    if (status == Success)
      last = node;
    return status;
  }
  Status addCondition(Graph to, ConditionalHandle handle, ConditionalType type,
                      Graph *body = nullptr, unsigned bodies = 1) {
    NodeParams params = {};
    params.type = ConditionalNode;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.bodies = bodies;
    params.conditional.context = context;
    Status status = add(to, params);
    if (status == Success && body)
      *body = params.conditional.graphs[0];
    return status;
  }
  Status addKernel(Graph to, Function function, uint64_t first, uint64_t second,
                   unsigned threads = 1) {
    void *parameters[] = {&first, &second};
    NodeParams params = {};
    params.type = KernelNode;
    params.kernel.func = function;
    params.kernel.gridX = params.kernel.gridY = params.kernel.gridZ = 1;
    params.kernel.blockX = threads;
    params.kernel.blockY = params.kernel.blockZ = 1;
    params.kernel.parameters = parameters;
    return add(to, params);
  }
  Status run(Graph graph, int times = 1) {
    GraphExec instance = nullptr;
    Status status = cuda.cuGraphInstantiateWithFlags(&instance, graph, 0);
    for (int i = 0; i < times && status == Success; ++i)
      status = cuda.cuGraphLaunch(instance, stream);
    return status == Success ? cuda.cuStreamSynchronize(stream) : status;
  }
  int32_t number() {
    int32_t value = 0;
    EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(&value, memory, 4, stream), Success);
    return value;
  }

  Functions cuda;
  Context context = nullptr;
  Stream stream = nullptr;
  Function down = nullptr, set = nullptr;
  DevicePointer memory = 0;
  Graph graph = nullptr;
  std::map<Graph, GraphNode> lasts;
};

} // namespace

TEST_F(Conditional, ALoopRunsWhileItsConditionHolds) {
  ConditionalHandle handle = makeHandle(graph, 1, /*flags=*/1);
  Graph body = nullptr;
  ASSERT_EQ(addCondition(graph, handle, While, &body), Success);
  ASSERT_EQ(addKernel(body, down, memory, handle), Success);
  ASSERT_EQ(run(graph), Success);
  EXPECT_EQ(number(), 0);
}

TEST_F(Conditional, TheDefaultIsThereAtEveryLaunch) {
  // A branch whose body sets its condition to false.
  ConditionalHandle handle = makeHandle(graph, 7, /*flags=*/1);
  Graph body = nullptr;
  ASSERT_EQ(addCondition(graph, handle, If, &body), Success);
  ConditionalHandle inner = makeHandle(body, 0, /*flags=*/1);
  ASSERT_EQ(addKernel(body, down, memory, inner), Success);
  ASSERT_EQ(addKernel(body, set, handle, 0), Success);
  ASSERT_EQ(addCondition(body, inner, If), Success);
  ASSERT_EQ(run(graph, /*times=*/3), Success);
  EXPECT_EQ(number(), 2);
}

TEST_F(Conditional, AHandleIsOfOneNodeOfItsGraph) {
  ConditionalHandle handle = makeHandle(graph);
  Graph body = nullptr;
  EXPECT_EQ(addCondition(graph, handle, While, &body, /*bodies=*/2),
            InvalidValue);
  EXPECT_EQ(addCondition(graph, handle + 1, While), InvalidValue);
  ASSERT_EQ(addCondition(graph, handle, While, &body), Success);
  EXPECT_EQ(addCondition(graph, handle, If), InvalidValue);
  Graph other = makeGraph();
  EXPECT_EQ(addCondition(other, makeHandle(graph), If), InvalidValue);
  EXPECT_EQ(cuda.cuGraphDestroy(body), InvalidValue);
}

TEST_F(Conditional, AHandleWithoutANodeFails) {
  makeHandle(graph);
  EXPECT_EQ(run(graph), InvalidValue);
}

TEST_F(Conditional, AGraphHasOneInstanceAndIsNoChild) {
  ASSERT_EQ(addCondition(graph, makeHandle(graph, 0, 1), If), Success);
  GraphExec first = nullptr, second = nullptr;
  ASSERT_EQ(cuda.cuGraphInstantiateWithFlags(&first, graph, 0), Success);
  EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&second, graph, 0), InvalidValue);
  ASSERT_EQ(cuda.cuGraphExecDestroy(first), Success);
  EXPECT_EQ(cuda.cuGraphInstantiateWithFlags(&second, graph, 0), Success);
  NodeParams params = {};
  params.type = ChildGraphNode;
  params.child.graph = graph;
  EXPECT_EQ(add(makeGraph(), params), NotSupported);
}

TEST_F(Conditional, ABodyCopiesDeviceAndPinnedMemory) {
  Graph body = nullptr;
  ASSERT_EQ(addCondition(graph, makeHandle(graph, 1, 1), If, &body), Success);
  int32_t pageable = 0;
  void *pinned = nullptr;
  ASSERT_EQ(cuda.cuMemHostAlloc(&pinned, 64, 0), Success);
  NodeParams params = {};
  params.type = MemcpyNode;
  params.memcpy.context = context;
  params.memcpy.copy.sourceType = DeviceMemoryType;
  params.memcpy.copy.sourceDevice = memory;
  params.memcpy.copy.targetType = HostMemory;
  params.memcpy.copy.targetHost = &pageable;
  params.memcpy.copy.width = 4;
  params.memcpy.copy.height = params.memcpy.copy.depth = 1;
  EXPECT_EQ(add(body, params), InvalidValue);
  params.memcpy.copy.targetHost = pinned;
  EXPECT_EQ(add(body, params), Success);
  ASSERT_EQ(run(graph), Success);
  int32_t value = 0;
  std::memcpy(&value, pinned, 4);
  EXPECT_EQ(value, 5);
}

// Each of these tests leaves the device unusable, so it runs in its own
// process.

TEST_F(Conditional, FaultWhereNothingHasSetIt) {
  ASSERT_EQ(addCondition(graph, makeHandle(graph), While), Success);
  EXPECT_EQ(run(graph), LaunchFailed);
}

TEST_F(Conditional, FaultWhereItIsSetOutsideOfItsGraph) {
  ConditionalHandle handle = makeHandle(graph, 0, 1);
  ASSERT_EQ(addCondition(graph, handle, If), Success);
  Graph other = makeGraph();
  ASSERT_EQ(addKernel(other, set, handle, 1), Success);
  EXPECT_EQ(run(other), IllegalInstruction);
}

TEST_F(Conditional, FaultWhereTwoThreadsSetIt) {
  ConditionalHandle handle = makeHandle(graph, 0, 1);
  ASSERT_EQ(addKernel(graph, set, handle, 1, /*threads=*/2), Success);
  ASSERT_EQ(addCondition(graph, handle, If), Success);
  EXPECT_EQ(run(graph), IllegalInstruction);
}

TEST_F(Conditional, FaultWhereALoopDoesNotEnd) {
  ASSERT_EQ(addCondition(graph, makeHandle(graph, 1, 1), While), Success);
  EXPECT_EQ(run(graph), LaunchTimeout);
}
