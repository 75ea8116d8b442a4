//===- LaunchArguments.cpp - The arguments of a launch --------------------===//

#include "LaunchArguments.h"
#include "../Support/Text.h"

#include <algorithm>

namespace fp8::rt::gpu {

/// Returns the driver's type for elements. FP8 is copied as bytes.
static cuda::TensorMapType mapTypeOf(int32_t dtype) {
  switch (dtype) {
  case FP8_DTYPE_BF16:
    return cuda::MapBFloat16;
  case FP8_DTYPE_F16:
    return cuda::MapFloat16;
  case FP8_DTYPE_F32:
    return cuda::MapFloat32;
  default:
    return cuda::MapUInt8;
  }
}

static cuda::TensorMapSwizzle swizzleOf(int32_t bytes) {
  return bytes == 128  ? cuda::Swizzle128Bytes
         : bytes == 64 ? cuda::Swizzle64Bytes
         : bytes == 32 ? cuda::Swizzle32Bytes
                       : cuda::SwizzleNone;
}

/// Encodes the tensor map of an operand at `address`.
static cuda::TensorMap encode(const Driver &driver,
                              const fp8_gpu_kernel &kernel,
                              const fp8_gpu_tensor_map &map,
                              cuda::DevicePointer address) {
  cuda::TensorMap encoded;
  uint64_t sizes[FP8_GPU_MAP_DIMS] = {}, strides[FP8_GPU_MAP_DIMS - 1] = {};
  uint32_t box[FP8_GPU_MAP_DIMS] = {}, steps[FP8_GPU_MAP_DIMS];
  std::copy(map.sizes, map.sizes + FP8_GPU_MAP_DIMS, sizes);
  std::copy(map.strides, map.strides + FP8_GPU_MAP_DIMS - 1, strides);
  std::copy(map.box, map.box + FP8_GPU_MAP_DIMS, box);
  std::fill(steps, steps + FP8_GPU_MAP_DIMS, 1);
  driver.check(driver.cuTensorMapEncodeTiled(
                   &encoded, mapTypeOf(map.dtype), map.rank,
                   reinterpret_cast<void *>(address), sizes, strides, box,
                   steps, cuda::InterleaveNone, swizzleOf(map.swizzle),
                   cuda::Promote128Bytes, cuda::FillZeros),
               str("make a tensor map of operand ", map.operand, " of kernel '",
                   kernel.name, "', which lies at address ", address));
  return encoded;
}

LaunchArguments::LaunchArguments(
    const Driver &driver, const fp8_gpu_kernel &kernel,
    const std::vector<cuda::DevicePointer> &parameters) {
  for (const cuda::DevicePointer &parameter : parameters)
    addresses.push_back(const_cast<cuda::DevicePointer *>(&parameter));
  for (int64_t i = 0; i < kernel.num_maps; ++i)
    maps.push_back(encode(driver, kernel, kernel.maps[i],
                          parameters[kernel.maps[i].operand]));
  std::vector<void *> ofMaps;
  for (cuda::TensorMap &map : maps)
    ofMaps.push_back(&map);
  // They follow the operands and the address of scratch memory.
  int64_t before = kernel.num_operands + (kernel.scratch_bytes > 0);
  if (!ofMaps.empty())
    addresses.insert(addresses.begin() + before, ofMaps.begin(), ofMaps.end());
}

} // namespace fp8::rt::gpu
