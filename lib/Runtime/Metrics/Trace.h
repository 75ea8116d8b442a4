//===- Trace.h - Statistics of quantized tensors ----------------*- C++ -*-===//
//
// A traced step has results of kind trace_*: rows of maxima and sums, one row
// for each layer of a loop (see fp8-c/Runtime/Tensors.h). This file turns them
// into the metrics that people read.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_METRICS_TRACE_H
#define FP8_LIB_RUNTIME_METRICS_TRACE_H

#include "../Step/Step.h"

#include <cstdio>

namespace fp8::rt {

/// Returns whether a result is a statistic rather than one of the user's.
bool isTrace(fp8_kind kind);

/// Returns the names of all metrics that a trace may hold.
const std::vector<std::string> &traceMetricNames();

/// One metric of one tensor, with a value for each of its layers.
struct TraceSeries {
  std::string tensor; ///< Its tree path.
  std::string metric;
  std::vector<int64_t> layers; ///< Shape; empty: a single value.
  std::vector<double> values;  ///< May be NaN or infinite.
};

/// The statistics of one executable's steps.
class Trace {
public:
  explicit Trace(const std::vector<TensorInfo> &results);

  bool empty() const { return sources.empty(); }
  /// Reads the statistics of the step's last run. Behind those of its results
  /// are those of the sums between ranks on f8 wires.
  void read(fp8_step &step);
  const std::vector<TraceSeries> &series() const { return all; }
  /// Returns {"step": n, "tensors": {...}} and a line break.
  std::string jsonLine(int64_t step) const;

private:
  void readWires(fp8_step &step);

  struct Source {
    size_t result;
    fp8_kind kind;
    size_t first; ///< Its first series.
    int64_t rows;
  };
  std::vector<Source> sources;
  std::vector<TraceSeries> all;
  size_t ofResults = 0; // those of `all` that results have
};

/// trace.jsonl.
class TraceFile {
public:
  explicit TraceFile(const std::string &directory)
      : path(directory + "/trace.jsonl") {}
  ~TraceFile();

  /// Keeps the lines up to `lastStep` (-1: none) of an earlier run and drops
  /// those of steps that will run again. Does nothing if there is no file.
  void trim(int64_t lastStep) const;
  void append(const std::string &line);

private:
  std::string path;
  std::FILE *file = nullptr;
};

/// The worst values of a run.
class TraceSummary {
public:
  void add(const std::vector<TraceSeries> &series, int64_t step);
  /// Returns one line each: the worst SNR, the largest underflow and
  /// saturation.
  std::vector<std::string> lines() const;

private:
  struct Extreme {
    double value = 0;
    std::string place;
    int64_t step = -1;
  };
  Extreme snr, underflow, saturation;
};

/// Returns "params['wq'].activation", with the layer if there are several.
std::string placeText(const TraceSeries &series, size_t index);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_TRACE_H
