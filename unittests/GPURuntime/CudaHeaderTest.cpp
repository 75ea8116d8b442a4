//===- CudaHeaderTest.cpp - Cuda.h and the toolkit's header ---------------===//

#include <cuda.h>

#include "GPU/Cuda.h"
#include "gtest/gtest.h"

#include <array>

namespace ours = fp8::cuda;

namespace {

template <typename Result, typename... Arguments>
constexpr auto sizesOf(Result (*)(Arguments...)) {
  return std::array<size_t, sizeof...(Arguments)>{sizeof(Arguments)...};
}

/// Returns whether both have the same number of arguments, of the same sizes.
template <typename Ours, typename Theirs>
constexpr bool haveOneForm(Ours *, Theirs *) {
  constexpr auto mine = sizesOf(static_cast<Ours *>(nullptr));
  constexpr auto its = sizesOf(static_cast<Theirs *>(nullptr));
  if (mine.size() != its.size())
    return false;
  for (size_t i = 0; i < mine.size() && i < its.size(); ++i)
    if (mine[i] != its[i])
      return false;
  return true;
}

} // namespace

// Since CUDA 13 the header declares this function under another name; the
// library exports both.
#undef cuEventElapsedTime
extern "C" CUresult cuEventElapsedTime(float *, CUevent, CUevent);

#define FP8_COMPARE(name, arguments)                                           \
  static_assert(haveOneForm(static_cast<ours::Status(*) arguments>(nullptr),   \
                            static_cast<decltype(&::name)>(nullptr)),          \
                #name);
namespace fp8::cuda {
FP8_CUDA_FUNCTIONS(FP8_COMPARE)
}

TEST(CudaHeader, NumbersAreTheDrivers) {
  EXPECT_EQ(int(ours::Success), CUDA_SUCCESS);
  EXPECT_EQ(int(ours::InvalidValue), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(int(ours::OutOfMemory), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(int(ours::NotInitialized), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(int(ours::NoDevice), CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(int(ours::InvalidDevice), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(int(ours::InvalidImage), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(int(ours::InvalidContext), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(int(ours::NoBinaryForGpu), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(int(ours::InvalidHandle), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(int(ours::NotFound), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(int(ours::NotReady), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(int(ours::IllegalAddress), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(int(ours::LaunchOutOfResources),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(int(ours::LaunchTimeout), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(int(ours::IllegalInstruction), CUDA_ERROR_ILLEGAL_INSTRUCTION);
  EXPECT_EQ(int(ours::MisalignedAddress), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(int(ours::LaunchFailed), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(int(ours::NotSupported), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(int(ours::MultiprocessorCount),
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(int(ours::CapabilityMajor),
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(int(ours::CapabilityMinor),
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(int(ours::SharedMemoryPerBlockOptin),
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(int(ours::StaticSharedBytes), CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  EXPECT_EQ(int(ours::MaxDynamicSharedBytes),
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(int(ours::JitErrorLog), CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(int(ours::JitErrorLogBytes), CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_EQ(int(ours::KernelNode), CU_GRAPH_NODE_TYPE_KERNEL);
  EXPECT_EQ(int(ours::MemcpyNode), CU_GRAPH_NODE_TYPE_MEMCPY);
  EXPECT_EQ(int(ours::MemsetNode), CU_GRAPH_NODE_TYPE_MEMSET);
  EXPECT_EQ(int(ours::ChildGraphNode), CU_GRAPH_NODE_TYPE_GRAPH);
  EXPECT_EQ(int(ours::EmptyNode), CU_GRAPH_NODE_TYPE_EMPTY);
  EXPECT_EQ(int(ours::EventRecordNode), CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  EXPECT_EQ(int(ours::ConditionalNode), CU_GRAPH_NODE_TYPE_CONDITIONAL);
  EXPECT_EQ(int(ours::If), CU_GRAPH_COND_TYPE_IF);
  EXPECT_EQ(int(ours::While), CU_GRAPH_COND_TYPE_WHILE);
  EXPECT_EQ(int(ours::HostMemory), CU_MEMORYTYPE_HOST);
  EXPECT_EQ(int(ours::DeviceMemoryType), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(ours::streamNonBlocking, unsigned(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(ours::eventDisableTiming, unsigned(CU_EVENT_DISABLE_TIMING));
}

TEST(CudaHeader, NumbersOfTensorMapsAreTheDrivers) {
  EXPECT_EQ(int(ours::MapUInt8), CU_TENSOR_MAP_DATA_TYPE_UINT8);
  EXPECT_EQ(int(ours::MapUInt16), CU_TENSOR_MAP_DATA_TYPE_UINT16);
  EXPECT_EQ(int(ours::MapFloat16), CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_EQ(int(ours::MapFloat32), CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  EXPECT_EQ(int(ours::MapBFloat16), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(int(ours::InterleaveNone), CU_TENSOR_MAP_INTERLEAVE_NONE);
  EXPECT_EQ(int(ours::SwizzleNone), CU_TENSOR_MAP_SWIZZLE_NONE);
  EXPECT_EQ(int(ours::Swizzle32Bytes), CU_TENSOR_MAP_SWIZZLE_32B);
  EXPECT_EQ(int(ours::Swizzle64Bytes), CU_TENSOR_MAP_SWIZZLE_64B);
  EXPECT_EQ(int(ours::Swizzle128Bytes), CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(int(ours::PromoteNone), CU_TENSOR_MAP_L2_PROMOTION_NONE);
  EXPECT_EQ(int(ours::Promote128Bytes), CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  EXPECT_EQ(int(ours::FillZeros), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  EXPECT_EQ(int(ours::FillNaNs),
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
}

TEST(CudaHeader, StructuresAreTheDrivers) {
  EXPECT_EQ(sizeof(ours::TensorMap), sizeof(CUtensorMap));
  EXPECT_EQ(sizeof(ours::KernelNodeParams), sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
  EXPECT_EQ(offsetof(ours::KernelNodeParams, blockZ),
            offsetof(CUDA_KERNEL_NODE_PARAMS_v3, blockDimZ));
  EXPECT_EQ(offsetof(ours::KernelNodeParams, parameters),
            offsetof(CUDA_KERNEL_NODE_PARAMS_v3, kernelParams));
  EXPECT_EQ(offsetof(ours::KernelNodeParams, context),
            offsetof(CUDA_KERNEL_NODE_PARAMS_v3, ctx));
  EXPECT_EQ(sizeof(ours::MemsetNodeParams), sizeof(CUDA_MEMSET_NODE_PARAMS_v2));
  EXPECT_EQ(offsetof(ours::MemsetNodeParams, elementBytes),
            offsetof(CUDA_MEMSET_NODE_PARAMS_v2, elementSize));
  EXPECT_EQ(offsetof(ours::MemsetNodeParams, width),
            offsetof(CUDA_MEMSET_NODE_PARAMS_v2, width));
  EXPECT_EQ(sizeof(ours::MemcpyParams), sizeof(CUDA_MEMCPY3D));
  EXPECT_EQ(offsetof(ours::MemcpyParams, sourceDevice),
            offsetof(CUDA_MEMCPY3D, srcDevice));
  EXPECT_EQ(offsetof(ours::MemcpyParams, targetType),
            offsetof(CUDA_MEMCPY3D, dstMemoryType));
  EXPECT_EQ(offsetof(ours::MemcpyParams, targetDevice),
            offsetof(CUDA_MEMCPY3D, dstDevice));
  EXPECT_EQ(offsetof(ours::MemcpyParams, width),
            offsetof(CUDA_MEMCPY3D, WidthInBytes));
  EXPECT_EQ(sizeof(ours::MemcpyNodeParams), sizeof(CUDA_MEMCPY_NODE_PARAMS));
  EXPECT_EQ(offsetof(ours::MemcpyNodeParams, copy),
            offsetof(CUDA_MEMCPY_NODE_PARAMS, copyParams));
  EXPECT_EQ(sizeof(ours::ConditionalParams),
            sizeof(CUDA_CONDITIONAL_NODE_PARAMS));
  EXPECT_EQ(offsetof(ours::ConditionalParams, graphs),
            offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out));
  EXPECT_EQ(sizeof(ours::EventRecordParams),
            sizeof(CUDA_EVENT_RECORD_NODE_PARAMS));
  EXPECT_EQ(offsetof(ours::NodeParams, eventRecord),
            offsetof(CUgraphNodeParams, eventRecord));
  EXPECT_EQ(sizeof(ours::NodeParams), sizeof(CUgraphNodeParams));
  EXPECT_EQ(offsetof(ours::NodeParams, conditional),
            offsetof(CUgraphNodeParams, conditional));
  EXPECT_EQ(offsetof(ours::NodeParams, reserved1),
            offsetof(CUgraphNodeParams, reserved2));
}
