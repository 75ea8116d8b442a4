//===- CollectiveImages.h - CollectiveKernels.cpp, compiled -----*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_COLLECTIVEIMAGES_H
#define FP8_LIB_RUNTIME_GPU_COLLECTIVEIMAGES_H

namespace fp8::rt::gpu {

/// The kernels as PTX, which the driver compiles, and as LLVM IR, which an
/// emulated GPU runs; both end in a zero byte.
extern const char collectiveKernelsPTX[], collectiveKernelsIR[];

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_COLLECTIVEIMAGES_H
