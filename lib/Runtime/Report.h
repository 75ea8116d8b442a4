//===- Report.h - Logs and the loss picture ---------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_REPORT_H
#define FP8_LIB_RUNTIME_REPORT_H

#include "Support.h"

#include <cstdio>
#include <limits>

namespace fp8::rt {

/// What one step leaves in the log.
struct LogRow {
  int64_t step = 0;
  double loss = 0;
  double heldOut = std::numeric_limits<double>::quiet_NaN(); // if evaluated
  bool hasHeldOut = false;
  std::vector<double> evalMetrics; // if evaluated
  double tokensPerSecond = 0;
  double seconds = 0; // since the run began, those before a resume included
  std::vector<double> metrics;
  bool isSkipped = false;          // by an alarm: the state stayed as it was
  std::vector<std::string> alarms; // what they said of the step
};

/// log.csv and log.jsonl, one row a step, and loss.svg. Without a directory it
/// keeps the rows in memory alone.
class Report {
public:
  Report(std::string directory, std::vector<std::string> metricNames,
         std::vector<std::string> evalMetricNames, std::string unit)
      : directory(std::move(directory)), metricNames(std::move(metricNames)),
        evalMetricNames(std::move(evalMetricNames)), unit(std::move(unit)) {}
  ~Report();

  /// Begins the logs; with `lastStep` >= 0 they go on after that step (what a
  /// stopped run logged beyond its last checkpoint is dropped).
  void open(int64_t lastStep);
  void append(const LogRow &row);
  void writePicture() const;
  const std::vector<LogRow> &rows() const { return log; }

private:
  std::string csvLine(const LogRow &row) const;
  std::string jsonLine(const LogRow &row) const;
  void readBack(int64_t lastStep);

  std::string directory;
  std::vector<std::string> metricNames, evalMetricNames;
  std::string unit;
  std::vector<LogRow> log;
  std::FILE *csv = nullptr;
  std::FILE *jsonl = nullptr;
};

/// The picture: train loss raw and smoothed, held-out points, axes.
std::string lossPicture(const std::vector<LogRow> &rows,
                        const std::string &unit);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_REPORT_H
