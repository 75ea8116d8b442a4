//===- DriverGraphs.cpp - Graphs of the emulated driver -------------------===//

#include "Driver.h"

#include <algorithm>
#include <optional>

using fp8::emulator::Geometry;
using fp8::emulator::GraphPaths;
using fp8::emulator::GraphRaces;
using fp8::emulator::Touched;

Status cuGraphCreate(Graph *graph, unsigned) {
  FP8_ENTER_CONTEXT()
  *graph = new GraphHandle();
  device.handles.insert(*graph);
  return Success;
}

/// Removes the conditions and bodies of a graph.
static void forget(const GraphHandle &graph) {
  for (ConditionalHandle condition : graph.conditions)
    gpu().conditions.erase(condition);
  for (const auto &node : graph.nodes)
    if (node->body) {
      gpu().handles.erase(node->body.get());
      forget(*node->body);
    }
}

Status cuGraphDestroy(Graph graph) {
  FP8_ENTER_CONTEXT()
  if (graph && graph->parent)
    return InvalidValue; // Its node owns a body.
  if (!device.knows(graph))
    return InvalidHandle;
  if (graph->instance)
    return NotSupported; // A limit of the emulator, not of CUDA.
  device.handles.erase(graph);
  forget(*graph);
  delete graph;
  return Success;
}

static bool hasConditions(const GraphHandle &graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const auto &node) { return node->body != nullptr; });
}

static const GraphHandle &rootOf(const GraphHandle &graph) {
  return graph.parent ? rootOf(*graph.parent) : graph;
}

Status cuGraphConditionalHandleCreate(ConditionalHandle *handle, Graph graph,
                                      Context context, unsigned atLaunch,
                                      unsigned flags) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph) || context != &device.context || flags > 1)
    return InvalidValue;
  // Handles are never reused, so that stale ones are detected.
  static ConditionalHandle next = 0x7000;
  *handle = ++next;
  Condition &made = device.conditions[*handle];
  made.graph = graph;
  made.hasDefault = flags == 1;
  made.atLaunch = atLaunch;
  graph->conditions.push_back(*handle);
  return Success;
}

std::string fp8::emulator::driver::setCondition(uint64_t handle, uint32_t value,
                                                uint64_t thread) {
  Gpu &device = gpu();
  auto found = device.conditions.find(handle);
  if (found == device.conditions.end())
    return "expected the handle of a condition but got " +
           std::to_string(handle);
  Condition &condition = found->second;
  if (&rootOf(*condition.graph) != device.running)
    return "a condition is set outside of its graph";
  if (condition.launch == device.launches && condition.setter != thread)
    return "two threads of a launch set one condition";
  condition.launch = device.launches;
  condition.setter = thread;
  device.touch(handle, 1, /*isWrite=*/true);
  condition.isSet = true;
  condition.value = value;
  return "";
}

static Status runGraph(const GraphExecHandle &graph);

/// The number of iterations after which a loop counts as endless.
static constexpr uint64_t kMostIterations = uint64_t(1) << 22;

static Status runConditional(ConditionalHandle handle, ConditionalType type,
                             const GraphExecHandle &body) {
  Gpu &device = gpu();
  device.touch(handle, 1, /*isWrite=*/false);
  for (uint64_t iteration = 0;; ++iteration) {
    const Condition &condition = device.conditions.at(handle);
    if (!condition.isSet) {
      std::fprintf(stderr,
                   "GPU emulator: a %s node asks for a condition that "
                   "nothing has set since the graph was launched\n",
                   type == While ? "WHILE" : "IF");
      return LaunchFailed;
    }
    if (condition.value == 0 || (type == If && iteration == 1))
      return Success;
    if (iteration == kMostIterations) {
      std::fprintf(stderr, "GPU emulator: a WHILE node does not end\n");
      return LaunchTimeout;
    }
    ++(type == While ? device.counts.iterations : device.counts.branches);
    if (Status status = runGraph(body); status != Success)
      return status;
  }
}

static std::unique_ptr<GraphExecHandle> instantiate(const GraphHandle &graph) {
  auto executable = std::make_unique<GraphExecHandle>();
  std::map<const GraphNodeHandle *, size_t> numbers;
  for (const auto &node : graph.nodes) {
    numbers[node.get()] = executable->nodes.size();
    if (node->body) {
      std::shared_ptr<GraphExecHandle> body = instantiate(*node->body);
      executable->nodes.push_back(
          [body, handle = node->condition, type = node->type] {
            return runConditional(handle, type, *body);
          });
    } else {
      executable->nodes.push_back(node->run);
    }
    executable->names.push_back(node->name);
    if (node->event)
      executable->events.push_back(node->event);
    executable->before.emplace_back();
    for (const GraphNodeHandle *before : node->before)
      executable->before.back().push_back(numbers.at(before));
  }
  executable->paths = std::make_unique<GraphPaths>(executable->before);
  return executable;
}

/// Makes the function that runs a node, and its name. A body may only copy
/// device and pinned memory.
static Status makeRun(const NodeParams &params, bool isInBody,
                      GraphNodeHandle &node) {
  Gpu &device = gpu();
  std::function<Status()> &run = node.run;
  switch (params.type) {
  case KernelNode: {
    const KernelNodeParams &kernel = params.kernel;
    if (kernel.extra || kernel.kernel)
      return NotSupported;
    Launch launch;
    Geometry geometry{{kernel.gridX, kernel.gridY, kernel.gridZ},
                      {kernel.blockX, kernel.blockY, kernel.blockZ},
                      kernel.sharedBytes};
    Status status = prepare(kernel.func, geometry, kernel.parameters, launch);
    if (status == Success)
      node.name = "kernel '" + kernel.func->kernel->name() + "'";
    run = std::move(launch);
    return status;
  }
  case MemsetNode: {
    MemsetNodeParams set = params.memset;
    if (set.context != &device.context || set.height != 1 ||
        (set.elementBytes != 1 && set.elementBytes != 2 &&
         set.elementBytes != 4))
      return InvalidValue;
    node.name = "a memset";
    run = [set] {
      return fill(set.target, set.value, set.elementBytes, set.width);
    };
    return Success;
  }
  case MemcpyNode: {
    MemcpyParams copy = params.memcpy.copy;
    bool fromHost = copy.sourceType == HostMemory,
         toHost = copy.targetType == HostMemory;
    if (params.memcpy.context != &device.context || params.memcpy.flags != 0 ||
        copy.height != 1 || copy.depth != 1)
      return InvalidValue;
    if (isInBody && ((fromHost && !device.isPinned(copy.sourceHost)) ||
                     (toHost && !device.isPinned(copy.targetHost))))
      return InvalidValue;
    node.name = "a copy";
    run = [=] {
      if (fromHost)
        return copyToDevice(copy.targetDevice, copy.sourceHost, copy.width);
      if (toHost)
        return copyToHost(copy.targetHost, copy.sourceDevice, copy.width);
      return copyOnDevice(copy.targetDevice, copy.sourceDevice, copy.width);
    };
    return Success;
  }
  case ChildGraphNode: {
    Graph child = params.child.graph;
    if (!device.knows(child) || params.child.ownership != 0)
      return InvalidValue;
    if (hasConditions(*child))
      return NotSupported;
    // The child is copied when the node is made.
    std::shared_ptr<GraphExecHandle> copy = instantiate(*child);
    node.name = "a child graph";
    run = [copy] { return runGraph(*copy); };
    return Success;
  }
  case EventRecordNode: {
    Event event = params.eventRecord.event;
    if (isInBody || !device.knows(event))
      return InvalidValue;
    node.name = "an event";
    node.event = event;
    run = [event] {
      ++event->completed;
      return Success;
    };
    return Success;
  }
  case EmptyNode:
    run = [] { return Success; };
    return Success;
  case ConditionalNode:
    break;
  }
  return InvalidValue;
}

/// Makes the body of a conditional node of `graph`.
static Status makeBody(ConditionalParams &params, Graph graph,
                       GraphNodeHandle &node) {
  Gpu &device = gpu();
  auto found = device.conditions.find(params.handle);
  if (found == device.conditions.end() || found->second.graph != graph ||
      found->second.isUsed || params.context != &device.context ||
      params.bodies != 1 || (params.type != If && params.type != While))
    return InvalidValue;
  found->second.isUsed = true;
  node.name = params.type == If ? "a branch" : "a loop";
  node.condition = params.handle;
  node.type = params.type;
  node.body = std::make_unique<GraphHandle>();
  node.body->parent = graph;
  node.body->body = node.body.get();
  device.handles.insert(node.body.get());
  params.graphs = &node.body->body;
  return Success;
}

Status cuGraphAddNode_v2(GraphNode *result, Graph graph,
                         const GraphNode *before, const void *edges,
                         size_t count, NodeParams *params) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph) || (count && !before) || edges ||
      params->reserved1 != 0 || params->reserved0[0] != 0)
    return InvalidValue;
  // A graph with an instance must not change.
  if (rootOf(*graph).instance)
    return NotSupported;
  auto node = std::make_unique<GraphNodeHandle>();
  for (size_t i = 0; i < count; ++i) {
    if (!graph->known.count(before[i]))
      return InvalidValue;
    node->before.push_back(before[i]);
  }
  // Each node only once.
  if (std::set<GraphNode>(before, before + count).size() != count)
    return InvalidValue;
  Status status = params->type == ConditionalNode
                      ? makeBody(params->conditional, graph, *node)
                      : makeRun(*params, graph->parent != nullptr, *node);
  if (status != Success)
    return status;
  *result = node.get();
  graph->known.insert(node.get());
  graph->nodes.push_back(std::move(node));
  return Success;
}

/// Returns true if every condition of a graph and of its bodies has a node.
static bool areUsed(const GraphHandle &graph) {
  for (ConditionalHandle condition : graph.conditions)
    if (!gpu().conditions.at(condition).isUsed)
      return false;
  return std::all_of(
      graph.nodes.begin(), graph.nodes.end(),
      [](const auto &node) { return !node->body || areUsed(*node->body); });
}

Status cuGraphInstantiateWithFlags(GraphExec *result, Graph graph,
                                   unsigned long long) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph) || graph->parent)
    return InvalidHandle;
  // A graph with conditions has one instance at a time.
  if (!areUsed(*graph) || graph->instance)
    return InvalidValue;
  *result = instantiate(*graph).release();
  (*result)->graph = graph;
  if (hasConditions(*graph))
    graph->instance = *result;
  device.handles.insert(*result);
  return Success;
}

Status cuGraphExecDestroy(GraphExec executable) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(executable))
    return InvalidHandle;
  device.drainAll();
  if (device.knows(executable->graph) &&
      executable->graph->instance == executable)
    executable->graph->instance = nullptr;
  delete executable;
  return Success;
}

/// Takes the node that runs next from those that may.
static size_t takeNext(std::vector<size_t> &ready) {
  Gpu &device = gpu();
  auto pick = device.order == Order::Forward
                  ? std::min_element(ready.begin(), ready.end())
              : device.order == Order::Reverse
                  ? std::max_element(ready.begin(), ready.end())
                  : ready.begin() + device.random() % ready.size();
  size_t node = *pick;
  *pick = ready.back();
  ready.pop_back();
  return node;
}

/// Runs a node, and checks that no node without a path to it has accessed what
/// it accesses.
static Status runNode(const GraphExecHandle &graph, size_t node,
                      GraphRaces &races) {
  Gpu &device = gpu();
  Touched touched, *outer = device.touched;
  device.touched = &touched;
  device.memory->setTouching(true);
  Status status = graph.nodes[node]();
  device.memory->takeTouched(touched);
  device.touched = outer;
  device.memory->setTouching(outer != nullptr);
  if (outer)
    outer->add(touched);
  GraphRaces::Race race;
  if (status != Success || !races.add(node, touched, race))
    return status;
  std::fprintf(stderr,
               "GPU emulator: race between two nodes of a graph, %zu (%s) and "
               "%zu (%s): both access address 0x%" PRIx64
               ", one of them writes, and there is no path between them\n",
               race.first, graph.names[race.first].c_str(), race.second,
               graph.names[race.second].c_str(), race.address);
  return LaunchFailed;
}

namespace {
/// A run of a graph, in an order that respects the edges.
struct GraphRun {
  explicit GraphRun(const GraphExecHandle &graph)
      : graph(graph), missing(graph.nodes.size()), after(graph.nodes.size()),
        races(*graph.paths) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      missing[i] = graph.before[i].size();
      for (size_t before : graph.before[i])
        after[before].push_back(i);
      if (missing[i] == 0)
        ready.push_back(i);
    }
  }
  bool hasEnded() const { return ready.empty(); }
  Status runOne() {
    size_t node = takeNext(ready);
    Status status = runNode(graph, node, races);
    for (size_t next : after[node])
      if (--missing[next] == 0)
        ready.push_back(next);
    return status;
  }

  const GraphExecHandle &graph;
  std::vector<size_t> missing; // the number of nodes before that have not run
  std::vector<std::vector<size_t>> after;
  std::vector<size_t> ready;
  GraphRaces races;
};
} // namespace

static Status runGraph(const GraphExecHandle &graph) {
  GraphRun run(graph);
  while (!run.hasEnded())
    if (Status status = run.runOne(); status != Success)
      return status;
  return Success;
}

/// Resets conditions to their defaults, if they have one, before a launch.
static void resetConditions(const GraphHandle &graph) {
  for (ConditionalHandle handle : graph.conditions) {
    Condition &condition = gpu().conditions.at(handle);
    condition.isSet = condition.hasDefault;
    condition.value = condition.atLaunch;
  }
  for (const auto &node : graph.nodes)
    if (node->body)
      resetConditions(*node->body);
}

/// Runs one node of a launched graph.
static Status runNextNode(GraphExecHandle &executable, Stream stream,
                          std::optional<GraphRun> &run) {
  Gpu &device = gpu();
  bool hasConditions = device.knows(executable.graph) &&
                       executable.graph->instance == &executable;
  if (!run) {
    run.emplace(executable);
    if (hasConditions)
      resetConditions(*executable.graph);
  }
  Status status = Success;
  device.running = hasConditions ? executable.graph : nullptr;
  if (!run->hasEnded())
    status = run->runOne();
  device.running = nullptr;
  if (status == Success && !run->hasEnded())
    return Unfinished;
  --stream->graphs;
  return status;
}

Status cuGraphLaunch(GraphExec executable, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(executable) || !device.knows(stream))
    return InvalidHandle;
  ++device.counts.graphs;
  device.counts.overlaps += stream->graphs > 0;
  ++stream->graphs;
  for (Event event : executable->events) {
    event->stream = stream;
    ++event->recorded;
  }
  auto run = std::make_shared<std::optional<GraphRun>>();
  return device.enqueue(stream, [executable, stream, run] {
    return runNextNode(*executable, stream, *run);
  });
}
