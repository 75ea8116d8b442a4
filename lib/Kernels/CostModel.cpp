//===- CostModel.cpp - Predicted time of a step on a machine --------------===//

#include "fp8/Kernels/CostModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

StringRef fp8::nameOf(Bound bound) {
  switch (bound) {
  case Bound::DotsF8:
    return "f8 dots";
  case Bound::Dots16:
    return "16-bit dots";
  case Bound::DotsF32:
    return "f32 dots";
  case Bound::Arithmetic:
    return "arithmetic";
  case Bound::Memory:
    return "memory";
  case Bound::Launch:
    return "launch";
  }
}

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

/// The overhead of a launch: a node of a CUDA graph that follows another one
/// (assumed), and on a CPU the wait of the tasks for the last task of the
/// launch before.
static constexpr double kNodeSeconds = 2e-6, kTasksSeconds = 5e-6;

/// The fractions of the peak rate that the CPU's dots of f8, of 16 bits and of
/// f32 reach in the steps of docs/CostModel.md. F8 is decoded to 16 bits on the
/// way. The tile registers of AMX wait for the packing of their operands.
static constexpr double kReachedF8 = 0.60, kReached16 = 0.75,
                        kReachedF32 = 0.80, kReachedTiles = 0.12;
/// Only tile registers multiply 16 bits so much faster than vectors f32.
static constexpr double kTilesBesideF32 = 4;

/// Returns a card with the rates of its data sheet: dense, with sums in f32, at
/// the boost clock. An FMA counts as two f32 operations but as one addition.
static Machine card(StringRef name, double f8, double f16, double f32,
                    double bytes) {
  return {name.str(), {f8, f16, f32}, f32 / 2, bytes, kNodeSeconds};
}

static llvm::Expected<Machine> measuredCPU(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(
        "expected limits=FILE, the cost.json of fp8-run --profile, but got '" +
        path + "': " + buffer.getError().message());
  llvm::Expected<llvm::json::Value> json =
      llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return llvm::createStringError("expected JSON in '" + path + "' but got: " +
                                   llvm::toString(json.takeError()));
  auto rate = [&](StringRef key) {
    const llvm::json::Object *root = json->getAsObject();
    const llvm::json::Object *limits =
        root ? root->getObject("limits") : nullptr;
    return (limits ? limits->getNumber(key) : std::nullopt).value_or(0);
  };
  double f32 = rate("f32_flops_per_second"), bytes = rate("bytes_per_second");
  double f16 = std::max(f32, rate("bf16_flops_per_second"));
  if (f32 <= 0 || bytes <= 0)
    return llvm::createStringError(
        "expected '" + path +
        "' to have the limits that fp8-run --profile measures");
  bool hasTiles = f16 > kTilesBesideF32 * f32;
  return Machine{"cpu",
                 {f16 * (hasTiles ? kReachedTiles : kReachedF8),
                  f16 * (hasTiles ? kReachedTiles : kReached16),
                  f32 * kReachedF32},
                 f32 / 2,
                 bytes,
                 kTasksSeconds};
}

llvm::Expected<Machine> fp8::machineOf(StringRef name, StringRef limitsPath) {
  if (name == "cpu")
    return measuredCPU(limitsPath);
  if (!limitsPath.empty())
    return llvm::createStringError("expected card=cpu with limits=" +
                                   limitsPath + " but got card=" + name);
  const Machine cards[] = {card("h100", 1979e12, 989e12, 67e12, 3.35e12),
                           card("h200", 1979e12, 989e12, 67e12, 4.8e12),
                           card("rtx4090", 330e12, 165e12, 82.6e12, 1.008e12),
                           card("rtx5090", 419e12, 209e12, 105e12, 1.792e12)};
  std::string names;
  for (const Machine &machine : cards) {
    if (name == machine.name)
      return machine;
    names += machine.name + ", ";
  }
  return llvm::createStringError("expected a card of " + names +
                                 "cpu but got '" + name + "'");
}

//===----------------------------------------------------------------------===//
// Prediction
//===----------------------------------------------------------------------===//

/// A kernel runs its different kinds of arithmetic one after another,
/// overlapped with its memory traffic.
static PredictedLaunch predict(const LaunchCost &launch,
                               const Machine &machine) {
  std::array<double, 4> computing;
  for (unsigned i = 0; i < 3; ++i)
    computing[i] = launch.cost.dotFlopsByType[i] / machine.dotFlops[i];
  computing[3] = launch.cost.operations / machine.operations;
  double arithmetic = std::accumulate(computing.begin(), computing.end(), 0.0);
  double memory = launch.cost.bytes / machine.bytes;
  PredictedLaunch predicted;
  predicted.launch = &launch;
  predicted.seconds = std::max(arithmetic, memory) + machine.launchSeconds;
  if (std::max(arithmetic, memory) < machine.launchSeconds)
    predicted.bound = Bound::Launch;
  else if (arithmetic > memory)
    predicted.bound = static_cast<Bound>(
        std::distance(computing.begin(), llvm::max_element(computing)));
  return predicted;
}

PredictedStep fp8::predict(const CostReport &report, const Machine &machine) {
  PredictedStep step;
  step.machine = machine;
  step.total = report.total();
  for (const LaunchCost &launch : report.launches) {
    PredictedLaunch predicted = ::predict(launch, machine);
    double seconds =
        predicted.seconds * static_cast<double>(launch.runs.value_or(1));
    step.seconds += seconds;
    step.secondsOf[static_cast<unsigned>(predicted.bound)] += seconds;
    step.launches.push_back(predicted);
  }
  return step;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printJSON(const Communication &communication,
                      llvm::json::OStream &json) {
  json.attributeObject("communication", [&] {
    json.attribute("network", communication.network.name);
    json.attribute("ranks", communication.network.ranks);
    json.attribute("bytes", static_cast<int64_t>(communication.bytes));
    if (communication.parameters > 0)
      json.attribute("bytes_per_parameter",
                     communication.bytes /
                         static_cast<double>(communication.parameters));
    json.attribute("seconds", communication.seconds);
    json.attribute("exposed_seconds", communication.exposed);
    json.attributeArray("collectives", [&] {
      for (const PredictedCollective &each : communication.collectives)
        json.object([&] {
          json.attribute("name", each.label);
          json.attribute("wire", each.wire);
          json.attribute("runs", each.runs);
          json.attribute("bytes", static_cast<int64_t>(each.bytes));
          json.attribute("seconds", each.seconds);
        });
    });
  });
}

void PredictedStep::printJSON(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  json.object([&] {
    json.attribute("card", machine.name);
    json.attribute("seconds", seconds);
    json.attribute("flops", static_cast<int64_t>(total.flops));
    json.attribute("dot_flops", static_cast<int64_t>(total.dotFlops));
    json.attribute("bytes", static_cast<int64_t>(total.bytes));
    json.attributeObject("seconds_by_bound", [&] {
      for (auto [i, part] : llvm::enumerate(secondsOf))
        json.attribute(nameOf(static_cast<Bound>(i)), part);
    });
    json.attributeArray("launches", [&] {
      for (const PredictedLaunch &predicted : launches)
        json.object([&] {
          const LaunchCost &launch = *predicted.launch;
          json.attribute("launch", launch.number);
          json.attribute("name", launch.label);
          json.attribute("runs", launch.runs ? llvm::json::Value(*launch.runs)
                                             : llvm::json::Value(nullptr));
          json.attribute("flops", static_cast<int64_t>(launch.cost.flops));
          json.attribute("bytes", static_cast<int64_t>(launch.cost.bytes));
          json.attribute("seconds", predicted.seconds);
          json.attribute("bound", nameOf(predicted.bound));
        });
    });
    if (communication)
      ::printJSON(*communication, json);
  });
  os << "\n";
}

/// Returns the first word of the launch's label, which tells its kind.
static StringRef kindOf(const LaunchCost &launch) {
  StringRef kind = StringRef(launch.label).split(' ').first;
  return kind.empty() ? "(no name)" : kind;
}

static void printTable(const Communication &communication, double computing,
                       llvm::raw_ostream &os) {
  os << llvm::format("%lld ranks on %s: a step of %.3f ms; a rank sends %.1f "
                     "MB",
                     static_cast<long long>(communication.network.ranks),
                     communication.network.name.c_str(),
                     1e3 * (computing + communication.exposed),
                     communication.bytes / 1e6);
  if (communication.parameters > 0)
    os << llvm::format(" (%.2f bytes a parameter)",
                       communication.bytes /
                           static_cast<double>(communication.parameters));
  os << llvm::format(" in %.3f ms, of which it waits for %.3f ms\n",
                     1e3 * communication.seconds, 1e3 * communication.exposed);
  struct Sum {
    double runs = 0, bytes = 0, seconds = 0;
  };
  std::map<std::string, Sum> wires;
  for (const PredictedCollective &each : communication.collectives) {
    Sum &wire = wires[each.wire];
    auto runs = static_cast<double>(each.runs);
    wire.runs += runs;
    wire.bytes += runs * each.bytes;
    wire.seconds += runs * each.seconds;
  }
  os << llvm::left_justify("wire", 24)
     << " collectives         MB         ms\n";
  for (auto &[name, wire] : wires)
    os << llvm::left_justify(name == "none" ? "as it is" : name, 24)
       << llvm::format("%12.0f %10.1f %10.3f\n", wire.runs, wire.bytes / 1e6,
                       1e3 * wire.seconds);
}

void PredictedStep::printTable(llvm::raw_ostream &os) const {
  os << llvm::format(
      "%s: a step of %.3f ms at its limits: %.1f GFLOP, of these %.1f "
      "of dots, %.1f MB\n",
      machine.name.c_str(), 1e3 * seconds, total.flops / 1e9,
      total.dotFlops / 1e9, total.bytes / 1e6);
  struct Kind {
    double runs = 0, seconds = 0;
    std::array<double, kBounds> secondsOf = {};
  };
  std::map<std::string, Kind> kinds;
  for (const PredictedLaunch &predicted : launches) {
    Kind &kind = kinds[kindOf(*predicted.launch).str()];
    auto runs = static_cast<double>(predicted.launch->runs.value_or(1));
    kind.runs += runs;
    kind.seconds += runs * predicted.seconds;
    kind.secondsOf[static_cast<unsigned>(predicted.bound)] +=
        runs * predicted.seconds;
  }
  auto row = [&](StringRef name, double runs, double part,
                 const std::array<double, kBounds> &by) {
    auto bound =
        static_cast<Bound>(std::distance(by.begin(), llvm::max_element(by)));
    os << llvm::left_justify(name, 24)
       << llvm::format("%9.0f %12.4f %6.1f %%  ", runs, 1e3 * part,
                       seconds > 0 ? 100 * part / seconds : 0.0)
       << nameOf(bound) << "\n";
  };
  os << llvm::left_justify("kernel", 24)
     << " launches   ms a step    time  bound by\n";
  std::vector<std::pair<std::string, Kind>> sorted(kinds.begin(), kinds.end());
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return std::pair(-a.second.seconds, a.first) <
           std::pair(-b.second.seconds, b.first);
  });
  double runs = 0;
  for (auto &[name, kind] : sorted) {
    row(name, kind.runs, kind.seconds, kind.secondsOf);
    runs += kind.runs;
  }
  row("in all", runs, seconds, secondsOf);
  if (communication)
    ::printTable(*communication, seconds, os);
}
