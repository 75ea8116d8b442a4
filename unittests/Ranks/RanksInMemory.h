//===- RanksInMemory.h - Many ranks in one process --------------*- C++ -*-===//

#ifndef FP8_UNITTESTS_RANKS_RANKSINMEMORY_H
#define FP8_UNITTESTS_RANKS_RANKSINMEMORY_H

#include "../Runtime/TestSupport.h"
#include "fp8-c/Transport.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace fp8::test {

/// The state that all ranks of a test share: messages not received yet.
struct World {
  explicit World(int64_t ranks) : inboxes(ranks) {
    for (Inbox &inbox : inboxes)
      inbox.messages.resize(ranks);
  }
  struct Inbox {
    std::mutex mutex;
    std::vector<std::deque<std::vector<char>>> messages; // by sender
  };
  std::deque<Inbox> inboxes;
  std::atomic<bool> isAborted{false};
};

/// A transport whose ranks are threads. It fails at exchange `failAt`.
struct MemoryRank {
  MemoryRank(World &world, int64_t rank) : world(world), rank(rank) {}
  World &world;
  int64_t rank;
  int64_t failAt = -1;
  int64_t exchanges = 0;
  std::vector<fp8_message> receives;
  std::vector<bool> isPending;
  const char *message = "";

  fp8_transport transport() {
    fp8_transport table = {};
    table.version = FP8_TRANSPORT_VERSION;
    std::strcpy(table.name, "memory");
    table.state = this;
    table.rank = rank;
    table.ranks = static_cast<int64_t>(world.inboxes.size());
    table.start = [](void *self, const fp8_message *sends,
                     const fp8_message *receives) {
      return static_cast<MemoryRank *>(self)->start(sends, receives);
    };
    table.test = [](void *self, uint8_t *pending) {
      return static_cast<MemoryRank *>(self)->test(pending);
    };
    table.error = [](void *self, int64_t *rank, int32_t *told) {
      auto *mine = static_cast<MemoryRank *>(self);
      *rank = -1;
      *told = mine->world.isAborted;
      return mine->message;
    };
    table.abort = [](void *self, const char *) {
      static_cast<MemoryRank *>(self)->world.isAborted = true;
    };
    table.close = [](void *self) { delete static_cast<MemoryRank *>(self); };
    return table;
  }

  int32_t start(const fp8_message *sends, const fp8_message *given) {
    int64_t ranks = static_cast<int64_t>(world.inboxes.size());
    if (exchanges++ == failAt) {
      message = "the transport fails on purpose";
      return -1;
    }
    receives.assign(given, given + ranks);
    isPending.assign(ranks, true);
    isPending[rank] = false;
    for (int64_t other = 0; other < ranks; ++other) {
      if (other == rank)
        continue;
      auto *data = static_cast<char *>(sends[other].data);
      World::Inbox &inbox = world.inboxes[other];
      std::lock_guard<std::mutex> lock(inbox.mutex);
      inbox.messages[rank].emplace_back(data, data + sends[other].bytes);
    }
    return 0;
  }

  int32_t test(uint8_t *pending) {
    if (world.isAborted) {
      message = "another rank has ended all";
      return -1;
    }
    bool isDone = true;
    World::Inbox &inbox = world.inboxes[rank];
    std::lock_guard<std::mutex> lock(inbox.mutex);
    for (size_t other = 0; other < isPending.size(); ++other) {
      auto &messages = inbox.messages[other];
      if (isPending[other] && !messages.empty()) {
        EXPECT_EQ(static_cast<int64_t>(messages.front().size()),
                  receives[other].bytes);
        if (!messages.front().empty())
          std::memcpy(receives[other].data, messages.front().data(),
                      messages.front().size());
        messages.pop_front();
        isPending[other] = false;
      }
      pending[other] = isPending[other];
      isDone &= !isPending[other];
    }
    return isDone;
  }
};

/// Calls body(group, rank) in a thread for each rank. The transport of rank
/// `failing` fails at exchange `failAt`.
inline void runRanks(int64_t ranks,
                     const std::function<void(fp8_group *, int64_t)> &body,
                     fp8_group_options options = {}, int64_t failing = -1,
                     int64_t failAt = -1) {
  World world(ranks);
  if (options.timeout == 0)
    options.timeout = 60;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto *memory = new MemoryRank(world, rank);
      if (rank == failing)
        memory->failAt = failAt;
      fp8_transport transport = memory->transport();
      fp8_group *group = nullptr;
      if (fp8_group_adopt(&transport, &options, &group) == FP8_OK)
        body(group, rank);
      fp8_group_destroy(group);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// A tensor to reduce, with the addresses of this rank's data.
struct ToReduce {
  fp8_all_reduce what;
  char *in;
  char *out;
  float *control = nullptr;
};

/// The settings of the entry below, for this thread.
struct ReduceWork {
  std::vector<ToReduce> tensors;
  bool isWaitedOneByOne = false;
};
inline thread_local ReduceWork *reduceWork;

/// Copies all tensors to the arena, reduces them there, and copies them back.
inline void reduceEntry(fp8_step *step) {
  std::vector<int64_t> places;
  int64_t next = 0;
  auto put = [&](const void *data, int64_t bytes) {
    places.push_back(next);
    std::memcpy(fp8_operand(step, next), data, bytes);
    next += (bytes + 63) / 64 * 64;
  };
  const std::vector<ToReduce> &tensors = reduceWork->tensors;
  for (const ToReduce &tensor : tensors) {
    int64_t bytes = tensor.what.elements *
                    fp8_dtype_size(static_cast<fp8_dtype>(tensor.what.dtype));
    put(tensor.in, bytes);
    // In place if the test says so.
    if (tensor.out == tensor.in)
      places.push_back(places.back());
    else
      put(tensor.out, bytes);
    const float zeros[2] = {};
    put(tensor.control ? tensor.control : zeros, 8);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    // Each is at an offset from one operand, as in a loop.
    const int64_t operands[3] = {0, 0, 0};
    const int64_t *offsets = places.data() + i * 3;
    fp8_all_reduce_start(step, 7 + static_cast<int64_t>(i), &tensors[i].what,
                         /*slice=*/-1, operands, offsets,
                         tensors[i].control ? 3 : 2);
    if (reduceWork->isWaitedOneByOne)
      fp8_wait(step, 7 + static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    fp8_wait(step, 7 + static_cast<int64_t>(i));
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto *base = static_cast<char *>(fp8_operand(step, 0));
    std::memcpy(
        tensors[i].out, base + places[i * 3 + 1],
        tensors[i].what.elements *
            fp8_dtype_size(static_cast<fp8_dtype>(tensors[i].what.dtype)));
    if (tensors[i].control)
      std::memcpy(tensors[i].control, base + places[i * 3 + 2], 8);
  }
}

/// Returns an executable with the entry above.
inline fp8_executable *buildReducer(int64_t arenaBytes) {
  Builder builder("reducer", reduceEntry);
  builder.desc.arena_bytes = arenaBytes;
  return builder.build();
}

/// Reduces on one rank; all ranks call this.
inline fp8_status reduceOn(fp8_group *group, ReduceWork work) {
  int64_t bytes = 4096;
  for (const ToReduce &tensor : work.tensors)
    bytes += tensor.what.elements * 16 + 256;
  Executable executable(buildReducer(bytes));
  fp8_step *step = nullptr;
  EXPECT_EQ(fp8_step_create(executable, 1, &step), FP8_OK);
  EXPECT_EQ(fp8_step_set_group(step, group), FP8_OK);
  reduceWork = &work;
  fp8_status status = fp8_step_run(step);
  fp8_step_destroy(step);
  return status;
}

inline fp8_all_reduce describe(fp8_reduction reduction, fp8_dtype dtype,
                               int64_t elements, fp8_wire wire = FP8_WIRE_EXACT,
                               int64_t block = 0) {
  return {"gradient w", reduction, wire, dtype, block, elements, 0};
}

/// Reduces the values of all ranks; returns the result of each rank.
template <typename T>
std::vector<std::vector<T>>
reduceAll(const fp8_all_reduce &what, std::vector<std::vector<T>> values,
          std::vector<std::array<float, 2>> *controls = nullptr,
          int64_t *bytesSent = nullptr) {
  auto ranks = static_cast<int64_t>(values.size());
  std::vector<std::array<float, 2>> own(ranks);
  std::vector<std::vector<T>> results(ranks, std::vector<T>(what.elements));
  bool isNarrow =
      what.wire == FP8_WIRE_F8_E4M3FN || what.wire == FP8_WIRE_F8_E5M2;
  runRanks(ranks, [&](fp8_group *group, int64_t rank) {
    float *control = (controls ? *controls : own)[rank].data();
    int64_t before = fp8_group_bytes_sent(group);
    ReduceWork work;
    work.tensors = {{what, reinterpret_cast<char *>(values[rank].data()),
                     reinterpret_cast<char *>(results[rank].data()),
                     isNarrow ? control : nullptr}};
    EXPECT_EQ(reduceOn(group, work), FP8_OK) << fp8_last_error();
    if (bytesSent && rank == 0)
      *bytesSent = fp8_group_bytes_sent(group) - before;
  });
  return results;
}

/// Student's t distribution with three degrees of freedom: heavy tails, like
/// those of gradients.
class Gradients {
public:
  explicit Gradients(unsigned seed) : engine(seed) {}
  float next() { return distribution(engine) * 1e-4f; }
  std::vector<float> tensor(int64_t elements) {
    std::vector<float> values(elements);
    for (float &value : values)
      value = next();
    return values;
  }

private:
  std::mt19937 engine;
  std::student_t_distribution<float> distribution{3};
};

} // namespace fp8::test

#endif // FP8_UNITTESTS_RANKS_RANKSINMEMORY_H
