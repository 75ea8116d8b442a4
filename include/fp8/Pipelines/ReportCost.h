//===- ReportCost.h - How long a step would take ----------------*- C++ -*-===//

#ifndef FP8_PIPELINES_REPORTCOST_H
#define FP8_PIPELINES_REPORTCOST_H

namespace mlir::fp8 {

/// Registers `report-cost`, which runs all stages up to the kernels and reports
/// a lower bound of their time on a card.
void registerReportCostPipeline();

} // namespace mlir::fp8

#endif // FP8_PIPELINES_REPORTCOST_H
