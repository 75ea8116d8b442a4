//===- ReportVerdicts.cpp - Write the report ------------------------------===//

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "llvm/Support/raw_ostream.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8REPORTVERDICTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct ReportVerdicts : fp8::impl::FP8ReportVerdictsBase<ReportVerdicts> {
  using FP8ReportVerdictsBase::FP8ReportVerdictsBase;
  ReportVerdicts(FP8ReportVerdictsOptions options, VerdictReport *sink)
      : FP8ReportVerdictsBase(std::move(options)), sink(sink) {}

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<VerdictReport> report = VerdictReport::get(getOperation());
    if (failed(report))
      return signalPassFailure();
    if (dotsAlone)
      report->collectives.clear();
    if (!file.empty() && failed(write(*report)))
      return signalPassFailure();
    if (sink)
      *sink = std::move(*report);
  }

  LogicalResult write(const VerdictReport &report) {
    if (update && report.state.empty() && report.softmaxes.empty() &&
        report.collectives.empty())
      return success();
    // The table of the dots is printed already.
    if (update && file == "-") {
      report.printSoftmaxTable(llvm::errs());
      report.printCollectiveTable(llvm::errs());
      report.printStateTable(llvm::errs());
      return success();
    }
    std::string error;
    if (succeeded(report.write(file, error)))
      return success();
    return emitError(UnknownLoc::get(&getContext())) << error;
  }

  VerdictReport *sink = nullptr;
};
} // namespace

std::unique_ptr<Pass>
fp8::createReportVerdictsPass(FP8ReportVerdictsOptions options,
                              VerdictReport *sink) {
  return std::make_unique<ReportVerdicts>(std::move(options), sink);
}
