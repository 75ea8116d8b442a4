//===- Work.h - Ordered work for a GPU --------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_WORK_H
#define FP8_LIB_RUNTIME_GPU_WORK_H

#include "Modules.h"

namespace fp8::rt::gpu {

/// Ordered work for one GPU: recorded node by node as a graph, or enqueued on a
/// stream at once.
class Work {
public:
  virtual ~Work() = default;
  /// Parameters have 8 bytes each; most are addresses. The kernel's tensor maps
  /// are made of them.
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

/// Work that is enqueued on a stream.
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

/// Work that is recorded as a graph. Every node follows the one before it in
/// its graph, which is the step's or the body of a conditional node.
class GraphWork : public Work {
public:
  /// Library calls are captured from `stream`, which does not run them.
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

  /// Makes a handle for one of the next conditional nodes.
  cuda::ConditionalHandle makeHandle();
  /// Begins the body of a conditional node.
  void open(cuda::ConditionalType type, cuda::ConditionalHandle handle);
  void close() { levels.pop_back(); }
  bool isInBody() const { return levels.size() > 1; }

  /// Returns the number of all nodes, including those of bodies.
  int64_t nodes() const { return count; }
  /// Runs the graph; nodes that are added after the first run are ignored.
  void run(cuda::Stream stream);

private:
  void addDot(const LoadedKernel &kernel,
              const std::vector<cuda::DevicePointer> &operands);
  void addCopy(const cuda::MemcpyParams &copy);
  void add(cuda::NodeParams &params, const std::string &what);

  /// A graph under construction.
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
