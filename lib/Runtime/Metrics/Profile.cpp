//===- Profile.cpp - The times of launches and their limits ---------------===//

#include "Profile.h"
#include "../Support/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace fp8::rt {

static double rounded(double value, double digits) {
  return std::round(value * digits) / digits;
}

std::string profileJson(const std::vector<fp8_launch_stat> &launches) {
  std::string text = "[\n";
  for (size_t i = 0; i < launches.size(); ++i) {
    const fp8_launch_stat &stat = launches[i];
    double runs = static_cast<double>(std::max<int64_t>(stat.runs, 1));
    text += str(i ? ",\n" : "", "  {\"launch\": ", i,
                ", \"name\": ", jsonText(stat.name ? stat.name : ""),
                ", \"tasks\": ", stat.tasks, ", \"runs\": ", stat.runs,
                ", \"microseconds\": ",
                numberText(rounded(stat.seconds / runs * 1e6, 10)), "}");
  }
  return text + "\n]\n";
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {
/// The totals of all launches of one name, over all steps.
struct Row {
  double calls = 0, seconds = 0;
  double flops = 0, bytes = 0;
  // The least time that arithmetic and traffic need on this machine.
  double flopSeconds = 0, byteSeconds = 0;

  void add(const Row &other) {
    calls += other.calls;
    seconds += other.seconds;
    flops += other.flops;
    bytes += other.bytes;
    flopSeconds += other.flopSeconds;
    byteSeconds += other.byteSeconds;
  }
};

struct LaunchCost {
  double flops = 0, dotFlops = 0, dotFlopsF32 = 0, bytes = 0;
};
} // namespace

static std::map<int64_t, LaunchCost> readCosts(const char *cost) {
  std::map<int64_t, LaunchCost> costs;
  if (!cost)
    return costs;
  try {
    nlohmann::json json = nlohmann::json::parse(cost);
    for (const nlohmann::json &launch :
         json.value("launches", nlohmann::json::array()))
      costs[launch.at("launch")] = {
          launch.at("flops"), launch.at("dot_flops"),
          launch.value("dot_flops_f32", 0.0), // packages of before lack it
          launch.at("bytes")};
  } catch (const nlohmann::json::exception &error) {
    throw Error(FP8_ERROR_INVALID, str("expected the costs of launches, as in "
                                       "cost.json, but got others: ",
                                       error.what()));
  }
  return costs;
}

void checkCosts(const char *cost) { readCosts(cost); }

/// Returns the name with all layers merged: [3] becomes [*].
static std::string nameOfAllLayers(const char *name) {
  std::string result;
  for (const char *c = name; *c; ++c) {
    result += *c;
    if (*c != '[')
      continue;
    const char *end = c + 1;
    while (*end >= '0' && *end <= '9')
      ++end;
    if (end > c + 1 && *end == ']') {
      result += '*';
      c = end - 1;
    }
  }
  return result.empty() ? "(no name)" : result;
}

static Row rowOf(const fp8_launch_stat &stat, const LaunchCost &cost,
                 const fp8_limits &limits) {
  Row row;
  row.calls = static_cast<double>(stat.runs);
  row.seconds = stat.seconds;
  if (limits.f32_flops <= 0 || limits.bytes <= 0)
    return row;
  row.flops = row.calls * cost.flops;
  row.bytes = row.calls * cost.bytes;
  // Dots of narrow operands may use the faster bf16 instructions; anything else
  // is f32.
  double narrowRate = std::max(limits.f32_flops, limits.bf16_flops);
  double narrow = cost.dotFlops - cost.dotFlopsF32;
  row.flopSeconds = row.calls * (narrow / narrowRate +
                                 (cost.flops - narrow) / limits.f32_flops);
  row.byteSeconds = row.bytes / limits.bytes;
  return row;
}

static std::string format(const char *form, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), form, value);
  return text;
}

/// Returns the rate of the resource that limits the launches most, and how
/// close it comes to its limit.
static std::string rateText(const Row &row) {
  double least = std::max(row.flopSeconds, row.byteSeconds);
  if (row.seconds <= 0 || least <= 0)
    return str(std::string(14, ' '), "-", std::string(8, ' '), "-");
  bool isArithmetic = row.flopSeconds >= row.byteSeconds;
  double rate = (isArithmetic ? row.flops : row.bytes) / row.seconds / 1e9;
  return format("%7.1f", rate) + (isArithmetic ? " GFLOP/s" : " GB/s   ") +
         format("%7.0f %%", 100 * least / row.seconds);
}

static std::string cut(const std::string &name, size_t width) {
  if (name.size() <= width)
    return name;
  size_t end = width - 3;
  while (end > 0 && (name[end] & 0xc0) == 0x80) // inside a UTF-8 character
    --end;
  return name.substr(0, end) + "...";
}

/// Fits `attention_backward llama/export.py:77:13 (dot_general) for wgrad
/// params['layers'][*]['w_down']`.
constexpr size_t widest = 100;

/// Returns the slowest rows, and one row for all others.
template <typename Row>
static std::vector<std::pair<std::string, Row>>
longestFirst(std::map<std::string, Row> byName) {
  constexpr size_t shown = 20;
  std::vector<std::pair<std::string, Row>> rows(byName.begin(), byName.end());
  std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    return a.second.seconds != b.second.seconds
               ? a.second.seconds > b.second.seconds
               : a.first < b.first;
  });
  if (rows.size() > shown + 1) {
    Row rest;
    for (size_t i = shown; i < rows.size(); ++i)
      rest.add(rows[i].second);
    std::string name = str(rows.size() - shown, " others");
    rows.resize(shown);
    rows.emplace_back(name, rest);
  }
  return rows;
}

template <typename Rows> static size_t widthOfNames(const Rows &rows) {
  size_t width = 0;
  for (auto &[name, row] : rows)
    width = std::max(width, std::min(name.size(), widest));
  return width;
}

std::vector<std::string>
profileTable(const std::vector<fp8_launch_stat> &launches, const char *cost,
             const fp8_limits &limits, int64_t steps) {
  std::map<int64_t, LaunchCost> costs = readCosts(cost);
  std::map<std::string, Row> byName;
  Row all;
  for (size_t i = 0; i < launches.size(); ++i) {
    if (launches[i].runs == 0)
      continue;
    Row row = rowOf(launches[i], costs[static_cast<int64_t>(i)], limits);
    byName[nameOfAllLayers(launches[i].name ? launches[i].name : "")].add(row);
    all.add(row);
  }
  std::vector<std::pair<std::string, Row>> rows =
      longestFirst(std::move(byName));
  rows.emplace_back("in all", all);

  size_t width = widthOfNames(rows);
  auto count = static_cast<double>(std::max<int64_t>(steps, 1));
  std::vector<std::string> lines = {
      str("kernel", std::string(width > 6 ? width - 6 : 0, ' '),
          "  calls    ms a step   time              rate  of limit")};
  for (auto &[name, row] : rows) {
    std::string text = cut(name, widest);
    lines.push_back(
        str(text, std::string(width - text.size(), ' '),
            format("%7.0f", row.calls / count),
            format("%13.3f", 1e3 * row.seconds / count),
            format("%6.1f %%",
                   all.seconds > 0 ? 100 * row.seconds / all.seconds : 0),
            "  ", rateText(row)));
  }
  return lines;
}

//===----------------------------------------------------------------------===//
// Traffic between ranks
//===----------------------------------------------------------------------===//

namespace {
/// The totals of all collectives of one name, over all steps.
struct Traffic {
  double runs = 0, bytes = 0, seconds = 0, waited = 0;

  void add(const Traffic &other) {
    runs += other.runs;
    bytes += other.bytes;
    seconds += other.seconds;
    waited += other.waited;
  }
};
} // namespace

static double hiddenPart(double seconds, double waited) {
  return seconds > 0 ? std::max(0.0, 1 - waited / seconds) : 1;
}

static Traffic trafficOf(const fp8_collective_stat &stat) {
  return {static_cast<double>(stat.runs), static_cast<double>(stat.bytes),
          stat.seconds, stat.waited};
}

std::string collectivesJson(const std::vector<fp8_collective_stat> &collectives,
                            int64_t ranks, const std::string &transport,
                            const std::string &carrier, int64_t steps) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Traffic all;
  for (const fp8_collective_stat &stat : collectives) {
    double runs = static_cast<double>(std::max<int64_t>(stat.runs, 1));
    all.add(trafficOf(stat));
    rows.push_back({{"number", stat.number},
                    {"label", stat.label},
                    {"runs", stat.runs},
                    {"bytes", static_cast<double>(stat.bytes) / runs},
                    {"microseconds", stat.seconds / runs * 1e6},
                    {"waited_microseconds", stat.waited / runs * 1e6},
                    {"hidden", hiddenPart(stat.seconds, stat.waited)}});
  }
  double count = static_cast<double>(std::max<int64_t>(steps, 1));
  nlohmann::ordered_json json = {
      {"ranks", ranks},
      {"transport", transport},
      {"hidden", hiddenPart(all.seconds, all.waited)},
      {"step",
       {{"bytes", all.bytes / count},
        {"microseconds", all.seconds / count * 1e6},
        {"waited_microseconds", all.waited / count * 1e6}}},
      {"collectives", rows}};
  if (!carrier.empty())
    json["carrier"] = carrier;
  return json.dump(2) + "\n";
}

std::vector<std::string>
collectiveTable(const std::vector<fp8_collective_stat> &collectives,
                int64_t steps) {
  std::map<std::string, Traffic> byName;
  Traffic all;
  for (const fp8_collective_stat &stat : collectives) {
    byName[nameOfAllLayers(stat.label)].add(trafficOf(stat));
    all.add(trafficOf(stat));
  }
  std::vector<std::pair<std::string, Traffic>> rows =
      longestFirst(std::move(byName));
  rows.emplace_back("in all", all);

  std::string head = "between ranks";
  size_t width = std::max(widthOfNames(rows), head.size());
  auto count = static_cast<double>(std::max<int64_t>(steps, 1));
  std::vector<std::string> lines = {
      str(head, std::string(width - head.size(), ' '),
          "  calls    ms a step  hidden   KB a step")};
  for (auto &[name, row] : rows) {
    std::string text = cut(name, widest);
    lines.push_back(
        str(text, std::string(width - text.size(), ' '),
            format("%7.0f", row.runs / count),
            format("%13.3f", 1e3 * row.seconds / count),
            format("%6.0f %%", 100 * hiddenPart(row.seconds, row.waited)),
            format("%12.1f", row.bytes / 1e3 / count)));
  }
  return lines;
}

} // namespace fp8::rt
