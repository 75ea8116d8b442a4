//===- Trace.cpp - Statistics of quantized tensors ------------------------===//

#include "Trace.h"
#include "../Support/Files.h"

#include <cerrno>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>
#include <unordered_map>

namespace fp8::rt {

//===----------------------------------------------------------------------===//
// From rows to metrics
//===----------------------------------------------------------------------===//

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace {
/// How to read the rows of one kind.
struct Reader {
  fp8_kind kind;
  std::string prefix; ///< Precedes the tensor's path in the result's name.
  int64_t size;
  std::vector<std::string> metrics;
  void (*read)(const double *row, double *values);
};
} // namespace

/// Computes the metrics; without counted elements (a branch that was not taken)
/// they are NaN.
static void readQuantization(const double *row, double *values) {
  double count = row[FP8_TRACE_COUNT];
  double mean = row[FP8_TRACE_SUM1] / count;
  double square = row[FP8_TRACE_SUM2] / count;
  double cube = row[FP8_TRACE_SUM3] / count;
  double fourth = row[FP8_TRACE_SUM4] / count;
  double variance = square - mean * mean;
  double central = fourth - 4 * mean * cube + 6 * mean * mean * square -
                   3 * mean * mean * mean * mean;
  if (!(count > 0)) {
    std::fill_n(values, 7, kNaN);
    return;
  }
  *values++ = row[FP8_TRACE_AMAX];
  *values++ = row[FP8_TRACE_SCALE];
  *values++ = -row[FP8_TRACE_MINUS_SCALE];
  *values++ = row[FP8_TRACE_UNDERFLOW] / count;
  *values++ = row[FP8_TRACE_SATURATED] / count;
  *values++ = 10 * std::log10(row[FP8_TRACE_SUM2] / row[FP8_TRACE_ERROR]);
  *values++ = central / (variance * variance);
}

static void readUpdate(const double *row, double *values) {
  values[0] =
      std::sqrt(row[FP8_TRACE_UPDATE_SUM] / row[FP8_TRACE_UPDATE_COUNT]);
}

static void readAlignment(const double *row, double *values) {
  double count = row[FP8_TRACE_ALIGNMENT_COUNT];
  values[0] = count > 0 ? row[FP8_TRACE_ALIGNMENT_MAX] : kNaN;
  values[1] = row[FP8_TRACE_ALIGNMENT_SUM] / count;
}

static const std::vector<Reader> &readers() {
  static const std::vector<Reader> all = {
      {FP8_KIND_TRACE_QUANTIZATION,
       "trace.quantization.",
       FP8_TRACE_QUANTIZATION_SIZE,
       {"amax", "scale", "scale_min", "underflow", "saturation", "snr",
        "kurtosis"},
       readQuantization},
      {FP8_KIND_TRACE_UPDATE,
       "trace.update.",
       FP8_TRACE_UPDATE_SIZE,
       {"update_rms"},
       readUpdate},
      {FP8_KIND_TRACE_ALIGNMENT,
       "trace.alignment.",
       FP8_TRACE_ALIGNMENT_SIZE,
       {"alignment_max", "alignment_mean"},
       readAlignment}};
  return all;
}

static const Reader *findReader(fp8_kind kind) {
  for (const Reader &reader : readers())
    if (reader.kind == kind)
      return &reader;
  return nullptr;
}

bool isTrace(fp8_kind kind) { return findReader(kind) != nullptr; }

const std::vector<std::string> &traceMetricNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Reader &reader : readers())
      all.insert(all.end(), reader.metrics.begin(), reader.metrics.end());
    return all;
  }();
  return names;
}

Trace::Trace(const std::vector<TensorInfo> &results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorInfo &info = results[i];
    const Reader *reader = findReader(info.kind);
    if (!reader)
      continue;
    if (info.type.dtype != FP8_DTYPE_F64 || info.type.dims.empty() ||
        info.type.dims.back() != reader->size)
      throw Error(FP8_ERROR_INVALID,
                  str("trace '", info.name, "': expected f64 rows of ",
                      reader->size, " numbers but got ", info.type.text()));
    Source source{i, info.kind, all.size(),
                  info.type.elements() / reader->size};
    std::string tensor = info.name.rfind(reader->prefix, 0) == 0
                             ? info.name.substr(reader->prefix.size())
                             : info.name;
    std::vector<int64_t> layers(info.type.dims.begin(),
                                info.type.dims.end() - 1);
    for (const std::string &metric : reader->metrics)
      all.push_back({tensor, metric, layers, std::vector<double>(source.rows)});
    sources.push_back(source);
  }
  ofResults = all.size();
}

/// Sums with one label, such as those of a loop over layers, are one tensor.
void Trace::readWires(fp8_step &step) {
  all.resize(ofResults);
  std::vector<WireScale> scales;
  if (fp8_group *group = step.group())
    scales = group->wireScales();
  std::map<std::string, size_t> firstOf;
  for (const WireScale &scale : scales) {
    auto [it, isNew] = firstOf.try_emplace(scale.label, all.size());
    if (isNew)
      for (const char *metric : {"mu", "mu_age", "saturation"})
        all.push_back({scale.label, metric, {}, {}});
    TraceSeries *series = &all[it->second];
    size_t row = scale.slice < 0 ? series[0].values.size()
                                 : static_cast<size_t>(scale.slice);
    double values[] = {scale.mu, scale.age, scale.saturation};
    for (size_t i = 0; i < 3; ++i) {
      series[i].values.resize(std::max(series[i].values.size(), row + 1));
      series[i].values[row] = values[i];
    }
  }
  for (size_t i = ofResults; i < all.size(); ++i)
    if (all[i].values.size() > 1)
      all[i].layers = {static_cast<int64_t>(all[i].values.size())};
}

void Trace::read(fp8_step &step) {
  readWires(step);
  for (const Source &source : sources) {
    const Reader &reader = *findReader(source.kind);
    const auto *rows =
        reinterpret_cast<const double *>(step.result(source.result));
    std::vector<double> values(reader.metrics.size());
    for (int64_t row = 0; row < source.rows; ++row) {
      reader.read(rows + row * reader.size, values.data());
      for (size_t i = 0; i < values.size(); ++i)
        all[source.first + i].values[row] = values[i];
    }
  }
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Returns "3", or "1, 2" for nested loops.
static std::string layerText(const TraceSeries &series, size_t index) {
  std::string text;
  for (size_t i = series.layers.size(); i-- > 0;) {
    std::string number = std::to_string(index % series.layers[i]);
    text = text.empty() ? number : number + ", " + text;
    index /= series.layers[i];
  }
  return text;
}

std::string placeText(const TraceSeries &series, size_t index) {
  std::string text = series.tensor;
  if (!series.layers.empty())
    text += ", layer " + layerText(series, index);
  return text;
}

/// Appends a number, or nested lists with a number for each layer. JSON has no
/// NaN and no infinity.
static void appendValues(std::string &text, const TraceSeries &series,
                         size_t dim, size_t &next) {
  if (dim == series.layers.size()) {
    double value = series.values[next++];
    text += std::isfinite(value) ? numberText(value) : "null";
    return;
  }
  text += "[";
  for (int64_t i = 0; i < series.layers[dim]; ++i) {
    text += i ? ", " : "";
    appendValues(text, series, dim + 1, next);
  }
  text += "]";
}

std::string Trace::jsonLine(int64_t step) const {
  // Statistics of one tensor may come from several results.
  std::vector<std::string> order;
  std::unordered_map<std::string, std::string> tensors;
  for (const TraceSeries &entry : all) {
    auto [it, isNew] = tensors.try_emplace(entry.tensor);
    if (isNew)
      order.push_back(entry.tensor);
    else
      it->second += ", ";
    it->second += '"' + entry.metric + "\": ";
    size_t next = 0;
    appendValues(it->second, entry, 0, next);
  }
  std::string line = str("{\"step\": ", step, ", \"tensors\": {");
  for (size_t i = 0; i < order.size(); ++i)
    line +=
        str(i ? ", " : "", jsonText(order[i]), ": {", tensors[order[i]], "}");
  return line + "}}\n";
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

TraceFile::~TraceFile() {
  if (file)
    std::fclose(file);
}

void TraceFile::trim(int64_t lastStep) const {
  if (!fileExists(path))
    return;
  if (lastStep < 0) {
    if (unlink(path.c_str()) != 0)
      throw Error(FP8_ERROR_IO,
                  str("cannot remove '", path, "': ", errnoText(errno)));
    return;
  }
  auto old = classic<std::istringstream>(readTextFile(path));
  std::string line, kept;
  int64_t last = -1;
  while (std::getline(old, line)) {
    nlohmann::json object =
        nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    // A killed process may leave an incomplete line.
    if (!object.is_object() || !object.contains("step") ||
        !object["step"].is_number_integer())
      continue;
    int64_t step = object["step"].get<int64_t>();
    if (step > lastStep || step <= last)
      continue;
    last = step;
    kept += line + "\n";
  }
  writeFileAtomically(path, kept);
}

void TraceFile::append(const std::string &line) {
  if (!file)
    file = std::fopen(path.c_str(), "ae");
  if (!file || std::fputs(line.c_str(), file) == EOF || std::fflush(file) != 0)
    throw Error(FP8_ERROR_IO,
                str("cannot write '", path, "': ", errnoText(errno)));
}

//===----------------------------------------------------------------------===//
// The summary
//===----------------------------------------------------------------------===//

void TraceSummary::add(const std::vector<TraceSeries> &series, int64_t step) {
  for (const TraceSeries &entry : series) {
    Extreme *extreme = entry.metric == "snr"          ? &snr
                       : entry.metric == "underflow"  ? &underflow
                       : entry.metric == "saturation" ? &saturation
                                                      : nullptr;
    if (!extreme)
      continue;
    for (size_t i = 0; i < entry.values.size(); ++i) {
      double value = entry.values[i];
      bool worse =
          extreme == &snr ? value < extreme->value : value > extreme->value;
      if (std::isfinite(value) && (extreme->step < 0 || worse))
        *extreme = {value, placeText(entry, i), step};
    }
  }
}

std::vector<std::string> TraceSummary::lines() const {
  std::vector<std::string> text;
  auto number = [](double value, const char *format) {
    char digits[40];
    std::snprintf(digits, sizeof(digits), format, value);
    return std::string(digits);
  };
  auto where = [](const Extreme &extreme) {
    return str(extreme.place, " in step ", extreme.step);
  };
  if (snr.step >= 0)
    text.push_back(
        str("worst SNR ", number(snr.value, "%.2f"), " dB, ", where(snr)));
  auto share = [&](const char *name, const Extreme &extreme) {
    if (extreme.step < 0)
      return;
    text.push_back(extreme.value > 0 ? str("largest ", name, " ",
                                           number(extreme.value * 100, "%.3g"),
                                           " %, ", where(extreme))
                                     : str("no ", name));
  };
  share("underflow", underflow);
  share("saturation", saturation);
  return text;
}

} // namespace fp8::rt
