//===- Communication.cpp - Predicted time of collectives ------------------===//

#include "fp8/Kernels/Communication.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Networks
//===----------------------------------------------------------------------===//

/// Parses `text` as a positive number.
static std::optional<double> numberOf(StringRef text) {
  double number = 0;
  if (text.getAsDouble(number) || number <= 0)
    return std::nullopt;
  return number;
}

llvm::Expected<Network> fp8::networkOf(StringRef name, int64_t ranks) {
  // Rates are those of the data sheets, in one direction; latencies are
  // assumed.
  const Network known[] = {{"nvlink4", ranks, 450e9, 2e-6},
                           {"nvlink5", ranks, 900e9, 2e-6},
                           {"infiniband-ndr", ranks, 50e9, 5e-6},
                           {"infiniband-hdr", ranks, 25e9, 5e-6},
                           {"ethernet-100g", ranks, 12.5e9, 20e-6}};
  std::string names;
  for (const Network &network : known) {
    if (name == network.name)
      return network;
    names += network.name + ", ";
  }
  auto [bytes, latency] = name.split(':');
  std::optional<double> rate = numberOf(bytes), delay = numberOf(latency);
  if (rate && delay)
    return Network{name.str(), ranks, *rate * 1e9, *delay * 1e-6};
  return llvm::createStringError("expected a network of " + names +
                                 "or GB/s:microseconds but got '" + name + "'");
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Each rank reduces a slice and sends the result to all: data travels two
/// ways. From or to the owner of a shard it travels one way.
static PredictedCollective costOf(StartAllReduceOp op, const Network &network) {
  auto ranks = static_cast<double>(network.ranks);
  double ways = op.getShard() ? 1 : 2;
  PredictedCollective cost;
  cost.label = op.getLabel().value_or("").str();
  cost.wire = stringifyWire(op.getWire()).str();
  cost.bytes =
      ways * static_cast<double>(getWireBytes(op)) * (ranks - 1) / ranks;
  cost.seconds = ways * network.latency + cost.bytes / network.bytes;
  return cost;
}

static PredictedCollective costOf(StartExchangeOp op, const Network &network) {
  PredictedCollective cost;
  cost.label = op.getLabel().value_or("").str();
  cost.wire = "none";
  cost.bytes = static_cast<double>(getSentBytes(op));
  cost.seconds = network.latency + cost.bytes / network.bytes;
  return cost;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

namespace {
/// Simulates a schedule with two clocks: one for launches and one for the
/// network, which runs one collective after another.
class Timeline {
public:
  Timeline(Communication &result,
           llvm::function_ref<double(LaunchOp)> secondsOf)
      : result(result), secondsOf(secondsOf) {}

  void visit(Block &block, int64_t times);
  /// The step waits for transfers that are still running at its end.
  void waitForNetwork() { result.exposed += std::max(0.0, network - now); }

private:
  void begin(Value handle, PredictedCollective cost, int64_t times);
  void wait(Value handle, int64_t times);
  void repeat(scf::ForOp loop, int64_t times);

  Communication &result;
  llvm::function_ref<double(LaunchOp)> secondsOf;
  double now = 0, network = 0;
  DenseMap<Value, double> arrivals;
};
} // namespace

void Timeline::begin(Value handle, PredictedCollective cost, int64_t times) {
  network = std::max(now, network) + cost.seconds;
  arrivals[handle] = network;
  cost.runs = times;
  result.bytes += static_cast<double>(times) * cost.bytes;
  result.seconds += static_cast<double>(times) * cost.seconds;
  result.collectives.push_back(std::move(cost));
}

void Timeline::wait(Value handle, int64_t times) {
  double delay = arrivals.lookup(handle) - now;
  if (delay <= 0)
    return;
  result.exposed += static_cast<double>(times) * delay;
  now += delay;
}

/// Returns the handle that the wait for a collective has.
static Value handleOf(StartAllReduceOp start) {
  return start.getCollectives() ? start.getCollectives() : start.getHandle();
}

static Value handleOf(StartExchangeOp start) { return start.getHandle(); }

/// Assumes that all iterations take as long as the first one.
void Timeline::repeat(scf::ForOp loop, int64_t times) {
  std::optional<llvm::APInt> count = loop.getStaticTripCount();
  int64_t turns = count ? count->getSExtValue() : 1;
  double before = now;
  visit(*loop.getBody(), times * turns);
  double others = static_cast<double>(turns - 1) * (now - before);
  now += others;
  network += others;
}

void Timeline::visit(Block &block, int64_t times) {
  for (Operation &op : block)
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](LaunchOp launch) { now += secondsOf(launch); })
        .Case<StartAllReduceOp, StartExchangeOp>([&](auto start) {
          begin(handleOf(start), costOf(start, result.network), times);
        })
        .Case([&](WaitOp wait) { this->wait(wait.getHandle(), times); })
        .Case([&](scf::ForOp loop) { repeat(loop, times); })
        .Default([&](Operation *other) {
          for (Region &region : other->getRegions())
            for (Block &inner : region)
              visit(inner, times);
        });
}

static int64_t countParameters(ScheduleOp schedule) {
  int64_t count = 0;
  for (BlockArgument arg : schedule.getBody().getArguments())
    if (argRoleOf(arg) == ArgRole::State &&
        stateKindOf(arg) == StateKind::Parameter)
      count += cast<MemRefType>(arg.getType()).getNumElements();
  return count;
}

Communication
fp8::predictCommunication(ModuleOp module, const Network &network,
                          llvm::function_ref<double(LaunchOp)> secondsOf) {
  Communication result;
  result.network = network;
  for (auto schedule : module.getOps<ScheduleOp>()) {
    Timeline timeline(result, secondsOf);
    timeline.visit(schedule.getBody().front(), 1);
    timeline.waitForNetwork();
    result.parameters += countParameters(schedule);
  }
  return result;
}
