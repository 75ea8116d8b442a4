//===- ReportPage.h - A run as one page of HTML ----------------*- C++ -*-===//

#ifndef FP8_RUN_REPORTPAGE_H
#define FP8_RUN_REPORTPAGE_H

#include "fp8/Run/RunOptions.h"

namespace fp8run {

/// Writes report.html into the directory of a run; false, with a message, if
/// that fails.
bool writeReport(const RunOptions &options);

} // namespace fp8run

#endif // FP8_RUN_REPORTPAGE_H
