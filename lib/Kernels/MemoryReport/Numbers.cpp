//===- Numbers.cpp - Sums and predictions of a memory report --------------===//

#include "fp8/Kernels/MemoryReport.h"

using namespace mlir;
using namespace mlir::fp8;

StringRef fp8::stringify(MemoryCategory category) {
  switch (category) {
  case MemoryCategory::SavedActivation:
    return "saved activations";
  case MemoryCategory::Attention:
    return "attention matrix";
  case MemoryCategory::Gradient:
    return "gradients";
  case MemoryCategory::FP8Weight:
    return "FP8 weight copies";
  case MemoryCategory::OtherWeight:
    return "other weight copies";
  case MemoryCategory::Table:
    return "tables";
  case MemoryCategory::Temporary:
    return "temporaries";
  }
  llvm_unreachable("unknown category");
}

StringRef fp8::stringify(StateCategory category) {
  switch (category) {
  case StateCategory::Master:
    return "master";
  case StateCategory::Moment1:
    return "moment1";
  case StateCategory::Moment2:
    return "moment2";
  case StateCategory::Scale:
    return "scales";
  case StateCategory::FP8Weight:
    return "FP8 weight copies";
  case StateCategory::Other:
    return "other state";
  }
  llvm_unreachable("unknown category");
}

int64_t MemoryReport::numParameters() const {
  int64_t count = 0;
  for (const PlannedState &entry : state)
    if (entry.category == StateCategory::Master)
      count += entry.elements;
  return count;
}

int64_t MemoryReport::stateBytes() const {
  int64_t bytes = 0;
  for (const PlannedState &entry : state)
    bytes += entry.bytes;
  return bytes;
}

int64_t MemoryReport::stateBytes(StateCategory category) const {
  int64_t bytes = 0;
  for (const PlannedState &entry : state)
    if (entry.category == category)
      bytes += entry.bytes;
  return bytes;
}

int64_t MemoryReport::bytesAt(unsigned position,
                              MemoryCategory category) const {
  int64_t bytes = 0;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.category == category && buffer.begin <= position &&
        position <= buffer.end)
      bytes += buffer.bytes;
  return bytes;
}

int64_t MemoryReport::wgradCopyBytes() const {
  int64_t bytes = 0;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.isWgradCopy && turn && buffer.begin <= *turn &&
        *turn <= buffer.end)
      bytes += buffer.bytes;
  return bytes;
}

std::map<unsigned, int64_t>
MemoryReport::liveBytes(std::optional<MemoryCategory> category) const {
  std::map<unsigned, int64_t> live;
  for (const PlannedBuffer &buffer : buffers)
    if (!category || buffer.category == *category) {
      live[buffer.begin] += buffer.bytes;
      live[buffer.end + 1] -= buffer.bytes;
    }
  int64_t alive = 0;
  for (auto &[position, bytes] : live)
    bytes = alive += bytes;
  return live;
}

int64_t MemoryReport::mostBytes(MemoryCategory category) const {
  int64_t most = 0;
  for (auto [position, bytes] : liveBytes(category))
    most = std::max(most, bytes);
  return most;
}

int64_t MemoryReport::totalBytes() const {
  return stateBytes() + inputBytes + resultBytes + constantBytes + arenaBytes;
}

std::optional<double> MemoryReport::unit() const {
  if (!tokens.value || !width.value)
    return std::nullopt;
  return 2.0 * *tokens.value * *width.value;
}

double MemoryReport::predict(double tokenFactor, double layerFactor) const {
  auto grow = [](double bytes, double share, double factor) {
    return bytes * (1 + share * (factor - 1));
  };
  double total = inputBytes * tokenFactor + resultBytes + constantBytes;
  for (const PlannedState &entry : state)
    total += grow(entry.bytes, entry.layerShare, layerFactor);
  // The live bytes change where a buffer begins and after it ends.
  std::map<unsigned, double> changes;
  for (const PlannedBuffer &buffer : buffers) {
    double bytes = grow(grow(buffer.bytes, buffer.layerShare, layerFactor),
                        buffer.tokenShare, tokenFactor);
    changes[buffer.begin] += bytes;
    changes[buffer.end + 1] -= bytes;
  }
  double alive = 0, most = 0;
  for (auto &[position, change] : changes)
    most = std::max(most, alive += change);
  // Assume the same relative fragmentation as in the plan.
  return total + (peakBytes ? most * arenaBytes / peakBytes : 0);
}

double MemoryReport::largestFactor(double budget, bool ofLayers) const {
  auto fits = [&](double factor) {
    return (ofLayers ? predict(1, factor) : predict(factor, 1)) <= budget;
  };
  double low = 0, high = 1;
  if (!fits(low))
    return 0;
  while (fits(high) && high < 1e12)
    high *= 2;
  while (high - low > 1e-6 * high) {
    double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::optional<double> fp8::parseBytes(StringRef text) {
  static constexpr std::pair<StringLiteral, double> units[] = {
      {"", 1},         {"B", 1},       {"KB", 1e3},     {"MB", 1e6},
      {"GB", 1e9},     {"TB", 1e12},   {"KiB", 1024.0}, {"MiB", 1048576.0},
      {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  size_t end = text.find_last_of("0123456789.");
  double number;
  if (end == StringRef::npos || text.take_front(end + 1).getAsDouble(number) ||
      number <= 0)
    return std::nullopt;
  StringRef unit = text.drop_front(end + 1).trim();
  for (auto &[name, factor] : units)
    if (unit == name)
      return number * factor;
  return std::nullopt;
}
