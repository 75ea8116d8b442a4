//===- PrintJSON.cpp - A memory report as JSON ----------------------------===//

#include "Categories.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

static std::string keyOf(StringRef name) {
  std::string key = name.lower();
  llvm::replace(key, ' ', '_');
  return key;
}

namespace {

/// Prints the attributes of a report's object one after another.
class JSONPrinter {
public:
  JSONPrinter(const MemoryReport &report, llvm::raw_ostream &os)
      : report(report), json(os, /*IndentSize=*/2) {}

  void print(double budget);

private:
  void printNumber(StringRef name, std::optional<double> value);
  void printSize(StringRef name, const KnownSize &value);
  void printCategories(StringRef name,
                       llvm::function_ref<int64_t(MemoryCategory)> bytesOf,
                       llvm::function_ref<void()> more = nullptr);
  std::optional<double> inUnits(std::optional<double> bytes);
  void printBytes();
  void printLayers();
  void printArena();
  void printLargest(const std::string &name, const KnownSize &value,
                    double budget, bool ofLayers);
  void printBudget(double budget);
  void printState();
  void printBuffers();

  const MemoryReport &report;
  llvm::json::OStream json;
};

} // namespace

void JSONPrinter::printNumber(StringRef name, std::optional<double> value) {
  json.attribute(name, value ? llvm::json::Value(*value)
                             : llvm::json::Value(nullptr));
}

void JSONPrinter::printSize(StringRef name, const KnownSize &value) {
  json.attribute(name, value.value ? llvm::json::Value(*value.value)
                                   : llvm::json::Value(nullptr));
  json.attribute((name + "_why").str(), value.why);
}

void JSONPrinter::printCategories(
    StringRef name, llvm::function_ref<int64_t(MemoryCategory)> bytesOf,
    llvm::function_ref<void()> more) {
  json.attributeObject(name, [&] {
    for (MemoryCategory category : kMemoryCategories)
      json.attribute(keyOf(stringify(category)), bytesOf(category));
    if (more)
      more();
  });
}

std::optional<double> JSONPrinter::inUnits(std::optional<double> bytes) {
  if (!bytes || !report.unit())
    return std::nullopt;
  return *bytes / *report.unit();
}

void JSONPrinter::printBytes() {
  json.attributeObject("state_bytes", [&] {
    for (StateCategory category : kStateCategories)
      json.attribute(keyOf(stringify(category)), report.stateBytes(category));
  });
  json.attribute("input_bytes", report.inputBytes);
  json.attribute("result_bytes", report.resultBytes);
  json.attribute("constant_bytes", report.constantBytes);
  json.attribute("arena_bytes", report.arenaBytes);
  if (report.scratchBytes)
    json.attribute("scratch_bytes_per_thread", *report.scratchBytes);
  json.attribute("total_bytes", report.totalBytes());
}

void JSONPrinter::printLayers() {
  printSize("tokens", report.tokens);
  printSize("width", report.width);
  printSize("layers", report.layers);
  printNumber("unit_bytes", report.unit());
  printNumber("saved_bytes_per_layer", report.savedPerLayer);
  printNumber("attention_bytes_per_layer", report.attentionPerLayer);
  printNumber("wgrad_copy_bytes_per_layer", report.wgradCopiesPerLayer);
  if (report.turn)
    json.attribute("wgrad_copy_bytes_at_turn", report.wgradCopyBytes());
  printNumber("saved_units_per_layer", inUnits(report.savedPerLayer));
  printNumber("attention_units_per_layer", inUnits(report.attentionPerLayer));
}

void JSONPrinter::printArena() {
  printCategories("most_bytes", [&](MemoryCategory category) {
    return report.mostBytes(category);
  });
  if (report.turn)
    printCategories("bytes_at_turn", [&](MemoryCategory category) {
      return report.bytesAt(*report.turn, category);
    });
  printCategories(
      "bytes_at_peak",
      [&](MemoryCategory category) {
        return report.bytesAt(report.peak, category);
      },
      [&] {
        json.attribute("between_buffers", report.arenaBytes - report.peakBytes);
      });
}

void JSONPrinter::printLargest(const std::string &name, const KnownSize &value,
                               double budget, bool ofLayers) {
  std::optional<double> factor, count;
  if (value.value) {
    factor = report.largestFactor(budget, ofLayers);
    count = std::floor(*value.value * *factor);
  }
  printNumber("largest_" + name, count);
  printNumber(name + "_factor", factor);
}

void JSONPrinter::printBudget(double budget) {
  json.attributeObject("budget", [&] {
    json.attribute("bytes", budget);
    json.attribute("fits", report.totalBytes() <= budget);
    printLargest("tokens", report.tokens, budget, /*ofLayers=*/false);
    printLargest("layers", report.layers, budget, /*ofLayers=*/true);
  });
}

void JSONPrinter::printState() {
  json.attributeArray("state", [&] {
    for (const PlannedState &entry : report.state)
      json.object([&] {
        json.attribute("path", entry.path);
        json.attribute("type", entry.type);
        json.attribute("category", keyOf(stringify(entry.category)));
        json.attribute("bytes", entry.bytes);
        if (entry.shard > 0) {
          json.attribute("shard", entry.shard);
          json.attribute("slices", entry.slices);
        }
        if (!entry.wholeReason.empty())
          json.attribute("whole_reason", entry.wholeReason);
      });
  });
}

void JSONPrinter::printBuffers() {
  auto isAlive = [](const PlannedBuffer &buffer, unsigned position) {
    return buffer.begin <= position && position <= buffer.end;
  };
  json.attributeArray("buffers", [&] {
    for (const PlannedBuffer &buffer : report.buffers)
      json.object([&] {
        json.attribute("type", buffer.type);
        json.attribute("category", keyOf(stringify(buffer.category)));
        json.attribute("bytes", buffer.bytes);
        json.attribute("begin", static_cast<int64_t>(buffer.begin));
        json.attribute("end", static_cast<int64_t>(buffer.end));
        json.attribute("at_turn", report.turn && isAlive(buffer, *report.turn));
        json.attribute("at_peak", isAlive(buffer, report.peak));
        json.attribute("token_share", buffer.tokenShare);
        json.attribute("layer_share", buffer.layerShare);
        json.attribute("wgrad_copy", buffer.isWgradCopy);
        json.attribute("location", buffer.location);
      });
  });
}

void JSONPrinter::print(double budget) {
  json.object([&] {
    json.attribute("function", report.function);
    json.attribute("parameters", report.numParameters());
    printBytes();
    printLayers();
    printArena();
    if (budget > 0)
      printBudget(budget);
    printState();
    printBuffers();
  });
}

void MemoryReport::printJSON(llvm::raw_ostream &os, double budget) const {
  JSONPrinter(*this, os).print(budget);
  os << "\n";
}
