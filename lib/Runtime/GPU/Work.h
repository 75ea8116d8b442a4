//===- Work.h - What a GPU is told to do, in one order ----------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_WORK_H
#define FP8_LIB_RUNTIME_GPU_WORK_H

#include "Modules.h"

namespace fp8::rt::gpu {

/// Work for one GPU in one order: written down as a graph, node by node, or
/// told to a stream at once.
class Work {
public:
  virtual ~Work() = default;
  /// Parameters have 8 bytes each; most are addresses.
  virtual void launch(const LoadedKernel &kernel, unsigned blocks,
                      const std::vector<cuda::DevicePointer> &parameters) = 0;
  /// Sets `bytes` (1, 2, 4 or 8) bytes to those at `value`.
  virtual void fill(cuda::DevicePointer target, const void *value,
                    int64_t bytes) = 0;
  virtual void copyToHost(void *target, cuda::DevicePointer source,
                          int64_t bytes) = 0;
  virtual void copy(cuda::DevicePointer target, cuda::DevicePointer source,
                    int64_t bytes) = 0;
};

/// A stream's.
class StreamWork : public Work {
public:
  StreamWork(const Device &device, cuda::Stream stream)
      : driver(device.driver), stream(stream) {}
  void launch(const LoadedKernel &kernel, unsigned blocks,
              const std::vector<cuda::DevicePointer> &parameters) override;
  void fill(cuda::DevicePointer target, const void *value,
            int64_t bytes) override;
  void copyToHost(void *target, cuda::DevicePointer source,
                  int64_t bytes) override;
  void copy(cuda::DevicePointer target, cuda::DevicePointer source,
            int64_t bytes) override;

private:
  const Driver &driver;
  cuda::Stream stream;
};

/// A graph's. Every node comes after the one before it in its graph, which is
/// that of the step or the body of a conditional node.
class GraphWork : public Work {
public:
  /// Calls of a library are captured from `stream`, which runs none of them.
  GraphWork(const Device &device, cuda::Stream stream);
  ~GraphWork() override;
  void launch(const LoadedKernel &kernel, unsigned blocks,
              const std::vector<cuda::DevicePointer> &parameters) override;
  void fill(cuda::DevicePointer target, const void *value,
            int64_t bytes) override;
  void copyToHost(void *target, cuda::DevicePointer source,
                  int64_t bytes) override;
  void copy(cuda::DevicePointer target, cuda::DevicePointer source,
            int64_t bytes) override;

  /// A handle for one conditional node among those that come next.
  cuda::ConditionalHandle makeHandle();
  /// Begins the body of a conditional node.
  void open(cuda::ConditionalType type, cuda::ConditionalHandle handle);
  void close() { levels.pop_back(); }
  bool isInBody() const { return levels.size() > 1; }

  /// All of them, those of bodies too.
  int64_t nodes() const { return count; }
  /// Runs all of it; what is added after the first time is not run.
  void run(cuda::Stream stream);

private:
  void addDot(const LoadedKernel &kernel,
              const std::vector<cuda::DevicePointer> &operands);
  void addCopy(const cuda::MemcpyParams &copy);
  void add(cuda::NodeParams &params, const std::string &what);

  /// A graph that nodes are added to.
  struct Level {
    cuda::Graph graph = nullptr;
    cuda::GraphNode last = nullptr;
  };

  const Driver &driver;
  cuda::Context context;
  cuda::Stream stream;
  cuda::Graph graph = nullptr;
  cuda::GraphExec executable = nullptr;
  std::vector<Level> levels; // the innermost last
  int64_t count = 0;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_WORK_H
