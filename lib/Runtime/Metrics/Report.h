//===- Report.h - Logs and the loss picture ---------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_METRICS_REPORT_H
#define FP8_LIB_RUNTIME_METRICS_REPORT_H

#include "fp8-c/Runtime.h"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fp8::rt {

/// The log entry of one step.
struct LogRow {
  int64_t step = 0;
  double loss = 0;
  double heldOut = std::numeric_limits<double>::quiet_NaN(); // if evaluated
  bool hasHeldOut = false;
  std::vector<double> evalMetrics; // if evaluated
  double tokensPerSecond = 0;
  double seconds = 0; // since the run began, including those before a resume
  std::vector<double> metrics;
  bool isSkipped = false;          // by an alarm: the update was discarded
  std::vector<std::string> alarms; // their messages about the step
};

/// Writes log.csv and log.jsonl, one row a step, and loss.svg. Without a
/// directory it only keeps the rows in memory.
class Report {
public:
  Report(std::string directory, std::vector<std::string> metricNames,
         std::vector<std::string> evalMetricNames, std::string unit)
      : directory(std::move(directory)), metricNames(std::move(metricNames)),
        evalMetricNames(std::move(evalMetricNames)), unit(std::move(unit)) {}
  ~Report();

  /// Opens the logs. With `lastStep` >= 0 they continue after that step; rows
  /// that a stopped run logged beyond its last checkpoint are dropped.
  void open(int64_t lastStep);
  void append(const LogRow &row);
  /// Writes the logs again, with the last row, after a failure in the course of
  /// its step: they may lack it, or have a part of it.
  void restore(const LogRow &row);
  void writePicture() const;
  const std::vector<LogRow> &rows() const { return log; }

private:
  std::string csvLine(const LogRow &row) const;
  std::string jsonLine(const LogRow &row) const;
  void readBack(int64_t lastStep);
  void writeAll();
  std::optional<LogRow> readJson(const std::string &line);
  std::optional<LogRow> readCells(const std::vector<std::string> &columns,
                                  const std::vector<std::string> &cells);

  std::string directory;
  std::vector<std::string> metricNames, evalMetricNames;
  std::string unit;
  std::vector<LogRow> log;
  std::FILE *csv = nullptr;
  std::FILE *jsonl = nullptr;
};

/// Returns the picture: training loss raw and smoothed, held-out points, axes.
std::string lossPicture(const std::vector<LogRow> &rows,
                        const std::string &unit);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_METRICS_REPORT_H
