//===- Cuda.h - The part of NVIDIA's driver in use --------------*- C++ -*-===//
//
// Declares the part of the driver's interface that is used: names, constants
// and layouts of its ABI since version 12.4. The build does not need the
// toolkit's headers; if they are installed, a test compares them with this
// file.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_CUDA_H
#define FP8_LIB_RUNTIME_GPU_CUDA_H

#include <cstddef>
#include <cstdint>

namespace fp8::cuda {

using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;
using Event = struct EventHandle *;
using Graph = struct GraphHandle *;
using GraphNode = struct GraphNodeHandle *;
using GraphExec = struct GraphExecHandle *;
using ConditionalHandle = unsigned long long;

enum Status : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  IllegalInstruction = 715,
  MisalignedAddress = 716,
  LaunchFailed = 719,
  NotSupported = 801
};

enum DeviceAttribute : int {
  MultiprocessorCount = 16,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  SharedMemoryPerBlockOptin = 97
};

enum FunctionAttribute : int {
  StaticSharedBytes = 1,
  MaxDynamicSharedBytes = 8
};

enum JitOption : int { JitErrorLog = 5, JitErrorLogBytes = 6 };

enum CaptureMode : int {
  CaptureGlobal = 0,
  CaptureThreadLocal = 1,
  CaptureRelaxed = 2
};

enum NodeType : int {
  KernelNode = 0,
  MemcpyNode = 1,
  MemsetNode = 2,
  ChildGraphNode = 4,
  EmptyNode = 5,
  EventRecordNode = 7,
  ConditionalNode = 13
};

enum ConditionalType : int { If = 0, While = 1 };

enum MemoryType : int { HostMemory = 1, DeviceMemoryType = 2 };

constexpr unsigned streamNonBlocking = 1;
constexpr unsigned eventDisableTiming = 2;

struct KernelNodeParams {
  Function func;
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  void **parameters;
  void **extra;
  void *kernel;
  Context context;
};

struct MemsetNodeParams {
  DevicePointer target;
  size_t pitch;
  unsigned value;
  unsigned elementBytes;
  size_t width;
  size_t height;
  Context context;
};

struct MemcpyParams {
  size_t sourceX, sourceY, sourceZ, sourceLevel;
  MemoryType sourceType;
  const void *sourceHost;
  DevicePointer sourceDevice;
  void *sourceArray;
  void *reserved0;
  size_t sourcePitch, sourceHeight;
  size_t targetX, targetY, targetZ, targetLevel;
  MemoryType targetType;
  void *targetHost;
  DevicePointer targetDevice;
  void *targetArray;
  void *reserved1;
  size_t targetPitch, targetHeight;
  size_t width, height, depth;
};

struct MemcpyNodeParams {
  int flags, reserved;
  Context context;
  MemcpyParams copy;
};

/// The node owns a copy of the graph.
struct ChildGraphParams {
  Graph graph;
  int ownership;
};

struct ConditionalParams {
  ConditionalHandle handle;
  ConditionalType type;
  unsigned bodies; // their number
  Graph *graphs;   // the driver sets it to the bodies
  Context context;
};

struct EventRecordParams {
  Event event;
};

/// Unused bytes must be zero.
struct NodeParams {
  NodeType type;
  int reserved0[3];
  union {
    long long all[29];
    KernelNodeParams kernel;
    MemcpyNodeParams memcpy;
    MemsetNodeParams memset;
    ChildGraphParams child;
    ConditionalParams conditional;
    EventRecordParams eventRecord;
  };
  long long reserved1;
};

/// A tensor map: how TMA addresses a tensor. Its contents are opaque.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

enum TensorMapType : int {
  MapUInt8 = 0,
  MapUInt16 = 1,
  MapFloat16 = 6,
  MapFloat32 = 7,
  MapBFloat16 = 9
};

enum TensorMapInterleave : int { InterleaveNone = 0 };

enum TensorMapSwizzle : int {
  SwizzleNone = 0,
  Swizzle32Bytes = 1,
  Swizzle64Bytes = 2,
  Swizzle128Bytes = 3
};

/// The bytes that the L2 cache fetches for each access.
enum TensorMapPromotion : int { PromoteNone = 0, Promote128Bytes = 2 };

/// What elements outside of the tensor become.
enum TensorMapFill : int { FillZeros = 0, FillNaNs = 1 };

/// Every function in use: its name in libcuda.so.1, and its arguments.
#define FP8_CUDA_FUNCTIONS(X)                                                  \
  X(cuInit, (unsigned))                                                        \
  X(cuDriverGetVersion, (int *))                                               \
  X(cuGetErrorName, (Status, const char **))                                   \
  X(cuGetErrorString, (Status, const char **))                                 \
  X(cuDeviceGetCount, (int *))                                                 \
  X(cuDeviceGet, (Device *, int))                                              \
  X(cuDeviceGetName, (char *, int, Device))                                    \
  X(cuDeviceGetAttribute, (int *, DeviceAttribute, Device))                    \
  X(cuDevicePrimaryCtxRetain, (Context *, Device))                             \
  X(cuDevicePrimaryCtxRelease_v2, (Device))                                    \
  X(cuCtxSetCurrent, (Context))                                                \
  X(cuMemGetInfo_v2, (size_t *, size_t *))                                     \
  X(cuMemAlloc_v2, (DevicePointer *, size_t))                                  \
  X(cuMemFree_v2, (DevicePointer))                                             \
  X(cuMemHostAlloc, (void **, size_t, unsigned))                               \
  X(cuMemFreeHost, (void *))                                                   \
  X(cuMemcpyHtoDAsync_v2, (DevicePointer, const void *, size_t, Stream))       \
  X(cuMemcpyDtoHAsync_v2, (void *, DevicePointer, size_t, Stream))             \
  X(cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, size_t, Stream))      \
  X(cuMemsetD8Async, (DevicePointer, unsigned char, size_t, Stream))           \
  X(cuMemsetD16Async, (DevicePointer, unsigned short, size_t, Stream))         \
  X(cuMemsetD32Async, (DevicePointer, unsigned, size_t, Stream))               \
  X(cuStreamCreate, (Stream *, unsigned))                                      \
  X(cuStreamDestroy_v2, (Stream))                                              \
  X(cuStreamSynchronize, (Stream))                                             \
  X(cuStreamWaitEvent, (Stream, Event, unsigned))                              \
  X(cuStreamBeginCapture_v2, (Stream, CaptureMode))                            \
  X(cuStreamEndCapture, (Stream, Graph *))                                     \
  X(cuEventCreate, (Event *, unsigned))                                        \
  X(cuEventDestroy_v2, (Event))                                                \
  X(cuEventRecord, (Event, Stream))                                            \
  X(cuEventQuery, (Event))                                                     \
  X(cuEventSynchronize, (Event))                                               \
  X(cuEventElapsedTime, (float *, Event, Event))                               \
  X(cuModuleLoadDataEx,                                                        \
    (Module *, const void *, unsigned, JitOption *, void **))                  \
  X(cuModuleUnload, (Module))                                                  \
  X(cuModuleGetFunction, (Function *, Module, const char *))                   \
  X(cuFuncGetAttribute, (int *, FunctionAttribute, Function))                  \
  X(cuFuncSetAttribute, (Function, FunctionAttribute, int))                    \
  X(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned,         \
                     unsigned, unsigned, unsigned, Stream, void **, void **))  \
  X(cuGraphCreate, (Graph *, unsigned))                                        \
  X(cuGraphDestroy, (Graph))                                                   \
  X(cuGraphAddNode_v2, (GraphNode *, Graph, const GraphNode *, const void *,   \
                        size_t, NodeParams *))                                 \
  X(cuGraphConditionalHandleCreate,                                            \
    (ConditionalHandle *, Graph, Context, unsigned, unsigned))                 \
  X(cuGraphInstantiateWithFlags, (GraphExec *, Graph, unsigned long long))     \
  X(cuGraphExecDestroy, (GraphExec))                                           \
  X(cuGraphLaunch, (GraphExec, Stream))                                        \
  X(cuTensorMapEncodeTiled,                                                    \
    (TensorMap *, TensorMapType, uint32_t, void *, const uint64_t *,           \
     const uint64_t *, const uint32_t *, const uint32_t *,                     \
     TensorMapInterleave, TensorMapSwizzle, TensorMapPromotion,                \
     TensorMapFill))

// NOLINTBEGIN(readability-identifier-naming)
struct Functions {
#define FP8_CUDA_MEMBER(name, arguments) Status(*name) arguments = nullptr;
  FP8_CUDA_FUNCTIONS(FP8_CUDA_MEMBER)
#undef FP8_CUDA_MEMBER
};
// NOLINTEND(readability-identifier-naming)

} // namespace fp8::cuda

#endif // FP8_LIB_RUNTIME_GPU_CUDA_H
