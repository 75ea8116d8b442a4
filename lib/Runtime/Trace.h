//===- Trace.h - Statistics of what a step quantizes ------------*- C++ -*-===//
//
// A traced step has results of kind trace_*: rows of maxima and sums, one row
// for each layer of a loop (see fp8-c/Runtime.h). Here they become the metrics
// that people read.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TRACE_H
#define FP8_LIB_RUNTIME_TRACE_H

#include "Step.h"

#include <cstdio>

namespace fp8::rt {

/// Not one of the user's results.
bool isTrace(fp8_kind kind);

/// The metrics that a trace may hold.
const std::vector<std::string> &traceMetricNames();

/// One metric of one tensor, with a value for each of its layers.
struct TraceSeries {
  std::string tensor; ///< Its tree path.
  std::string metric;
  std::vector<int64_t> layers; ///< Sizes; empty: a single value.
  std::vector<double> values;  ///< NaN and infinite ones too.
};

/// What the steps of one executable tell.
class Trace {
public:
  explicit Trace(const std::vector<TensorInfo> &results);

  bool empty() const { return sources.empty(); }
  /// Reads what the step that was just run tells.
  void read(fp8_step &step);
  const std::vector<TraceSeries> &series() const { return all; }
  /// {"step": n, "tensors": {...}} and a line break.
  std::string jsonLine(int64_t step) const;

private:
  struct Source {
    size_t result;
    fp8_kind kind;
    size_t first; ///< Its first series.
    int64_t rows;
  };
  std::vector<Source> sources;
  std::vector<TraceSeries> all;
};

/// trace.jsonl.
class TraceFile {
public:
  explicit TraceFile(const std::string &directory)
      : path(directory + "/trace.jsonl") {}
  ~TraceFile();

  /// Keeps the lines up to `lastStep` (-1: none) of an earlier run; those of
  /// steps that will be taken again go. Nothing is begun if there is no file.
  void trim(int64_t lastStep) const;
  void append(const std::string &line);

private:
  std::string path;
  std::FILE *file = nullptr;
};

/// The worst of a run.
class TraceSummary {
public:
  void add(const std::vector<TraceSeries> &series, int64_t step);
  /// One line each: the worst SNR, the largest underflow and saturation.
  std::vector<std::string> lines() const;

private:
  struct Extreme {
    double value = 0;
    std::string place;
    int64_t step = -1;
  };
  Extreme snr, underflow, saturation;
};

/// "params['wq'].activation", with the layer where there are several.
std::string placeText(const TraceSeries &series, size_t index);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_TRACE_H
