//===- NcclCollectives.h - Collectives from GPU to GPU ----------*- C++ -*-===//
//
// Implements AllReduce.cpp and Exchange.cpp with NCCL messages between the
// memories of GPUs and kernels in between (CollectiveKernels.cpp). Every rank
// reduces its slice in rank order, so the bits are the CPU's.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_NCCLCOLLECTIVES_H
#define FP8_LIB_RUNTIME_GPU_NCCLCOLLECTIVES_H

#include "../Collectives/Engine.h"
#include "Nccl.h"

namespace fp8::rt::gpu {

class NcclCollectives {
public:
  /// A job of the group, which all ranks run. The kernels are loaded as LLVM IR
  /// if `takesIR` (an emulated GPU), else as PTX.
  NcclCollectives(const Device &device, const Nccl &nccl, fp8_group &group,
                  bool takesIR);
  ~NcclCollectives();
  NcclCollectives(const NcclCollectives &) = delete;
  NcclCollectives &operator=(const NcclCollectives &) = delete;

  /// Jobs of the group, whose work is enqueued on this stream. They call
  /// `enqueued` once all of it is, and return when it is done.
  cuda::Stream workStream() const { return stream; }
  std::vector<int64_t> reduce(const std::vector<Reduction> &bucket,
                              const std::function<void()> &enqueued);
  void exchange(const Exchange &exchange,
                const std::function<void()> &enqueued);

private:
  struct Kernels {
    cuda::Module module = nullptr;
    cuda::Function amax, scales, encode, reduce, decode, update;
  };
  /// A reduction with its addresses on the GPU.
  struct Tensor;
  class Workspace;

  void check(nccl::Status status, const std::string &what);
  void waitFor(const std::function<bool()> &isDone);
  void settle(const std::string &what);
  void beginMessages();
  void endMessages();
  void send(cuda::DevicePointer from, int64_t bytes, int64_t rank);
  void receive(cuda::DevicePointer to, int64_t bytes, int64_t rank);
  void copy(cuda::DevicePointer to, cuda::DevicePointer from, int64_t bytes);
  void clear(cuda::DevicePointer at, int64_t bytes);
  template <typename... Arguments>
  void launch(cuda::Function function, int64_t threads, Arguments... arguments);
  void loadKernels(bool takesIR);
  void open();
  void waitForGPU(const std::function<void()> &enqueued);
  void abort();
  std::vector<Tensor> placeAll(const std::vector<Reduction> &bucket,
                               Tensor &amaxes, Tensor &saturated);
  void agreeOnScales(std::vector<Tensor> &tensors, Tensor &amaxes);
  void reduceSlices(const std::vector<Tensor> &tensors);
  void updateMus(std::vector<Tensor> &tensors, Tensor &saturated);

  const Device &device;
  const Driver &driver;
  const Nccl &nccl;
  fp8_group &group;
  cuda::Stream stream = nullptr;
  cuda::Event finished = nullptr;
  Kernels kernels;
  cuda::DevicePointer memory = 0;
  int64_t memoryBytes = 0;
  nccl::Comm comm = nullptr;
  int64_t sent = 0;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_NCCLCOLLECTIVES_H
