//===- Work.h - Ordered work for a GPU --------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_WORK_H
#define FP8_LIB_RUNTIME_GPU_WORK_H

#include "Modules.h"

#include <set>
#include <unordered_map>

namespace fp8::rt::gpu {

/// The blocks of a launch.
struct Grid {
  Grid(unsigned blocks, unsigned sets = 1) : blocks(blocks), sets(sets) {}

  unsigned blocks;
  unsigned sets; ///< of operands, each with this many blocks
};

/// Ordered work for one GPU: recorded node by node as a graph, or enqueued on a
/// stream at once.
class Work {
public:
  virtual ~Work() = default;
  /// Parameters have 8 bytes each; most are addresses. The kernel's tensor maps
  /// are made of them.
  virtual void launch(const LoadedKernel &kernel, Grid grid,
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
  void launch(const LoadedKernel &kernel, Grid grid,
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

/// Work that is recorded as a graph: the step's, with the bodies of its
/// conditional nodes. `order` says which nodes the next work follows. Without
/// an order it follows all before it in its graph, and all later work follows
/// it.
class GraphWork : public Work {
public:
  /// Library calls are captured from `stream`, which does not run them.
  GraphWork(const Device &device, cuda::Stream stream);
  ~GraphWork() override;
  void launch(const LoadedKernel &kernel, Grid grid,
              const std::vector<cuda::DevicePointer> &parameters) override;
  void fill(cuda::DevicePointer target, const void *value,
            int64_t bytes) override;
  void copyToHost(void *target, cuda::DevicePointer source,
                  int64_t bytes) override;
  void copy(cuda::DevicePointer target, cuda::DevicePointer source,
            int64_t bytes) override;

  /// The next work is that of node `node` and follows the nodes `after`
  /// (fp8_order). -1: it has no order.
  void order(int64_t node, const int64_t *after, int64_t count);
  /// Lets all later work follow all earlier work of the innermost graph.
  void join();

  /// Records an event in every run.
  void record(cuda::Event event);

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

  using Nodes = std::set<cuda::GraphNode>;
  /// A graph under construction.
  struct Level {
    cuda::Graph graph = nullptr;
    Nodes ends; // that nothing follows yet
    /// Follows all before it; the rest describes what comes after.
    cuda::GraphNode barrier = nullptr;
    /// By number, what the followers of a node have to follow.
    std::unordered_map<int64_t, Nodes> known;
    int64_t number = -1; // of the next work
    Nodes before;        // what it follows
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
