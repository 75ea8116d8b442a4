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
    cuda::Function amax, scales, encode, reduce, decode, update, check;
  };
  /// A reduction with its addresses on the GPU.
  struct Tensor;
  /// What the kernels report of each tensor of a bucket, in arrays one behind
  /// another: saturated codes, the rank with a value that is not finite (its
  /// distance from the number of ranks, or 0), and mu with its age.
  struct Reports {
    explicit Reports(int64_t tensors) : tensors(tensors) {}
    int64_t bytes() const { return tensors * 24; }
    int64_t tensors;
    cuda::DevicePointer at = 0;
    cuda::DevicePointer saturated(int64_t i) const { return at + i * 8; }
    cuda::DevicePointer source(int64_t i) const {
      return at + (tensors + i) * 8;
    }
    cuda::DevicePointer mu(int64_t i) const {
      return at + (2 * tensors + i) * 8;
    }
  };

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
  bool reserve(int64_t bytes);
  bool checkWhatIsSent(const Exchange &exchange,
                       const std::vector<Part> &parts);
  void fetchReports(const Reports &reports);
  void noteReports(const std::vector<Tensor> &tensors, const Reports &reports);
  std::vector<Tensor> placeAll(const std::vector<Reduction> &bucket,
                               Tensor &amaxes, Tensor &saturated,
                               Reports &reports);
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
  void *hostReports = nullptr; // pinned
  int64_t hostBytes = 0;
  nccl::Comm comm = nullptr;
  int64_t sent = 0;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_NCCLCOLLECTIVES_H
