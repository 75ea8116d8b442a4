//===- CostReport.cpp - What a schedule computes and moves ----------------===//

#include "fp8/Kernels/CostReport.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/JSON.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_REPORTCOST
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

Cost &Cost::add(const Cost &other, double times) {
  flops += times * other.flops;
  dotFlops += times * other.dotFlops;
  bytes += times * other.bytes;
  return *this;
}

/// How often the body of a loop with known bounds runs.
static std::optional<int64_t> tripCount(scf::ForOp loop) {
  std::optional<llvm::APInt> count = loop.getStaticTripCount();
  return count ? std::optional<int64_t>(count->getSExtValue()) : std::nullopt;
}

namespace {
/// How often an op runs each time that `top`, an ancestor of it, does; what
/// data decide (`isExact` is false then) counts as once.
struct Runs {
  Runs(Operation *op, Operation *top) {
    for (Operation *parent = op->getParentOp(); parent != top;
         parent = parent->getParentOp()) {
      if (isa<linalg::LinalgOp>(parent))
        continue;
      auto loop = dyn_cast<scf::ForOp>(parent);
      std::optional<int64_t> turns = loop ? tripCount(loop) : std::nullopt;
      isExact &= turns.has_value();
      count *= turns.value_or(1);
    }
  }

  int64_t count = 1;
  bool isExact = true;
};
} // namespace

static bool isFlop(Operation *op) {
  if (op->getNumResults() != 1 || !isa<FloatType>(op->getResult(0).getType()))
    return false;
  if (isa<math::MathDialect>(op->getDialect()))
    return !isa<math::AbsFOp, math::CopySignOp>(op);
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
             arith::RemFOp>(op);
}

static Cost costOf(KernelOp kernel) {
  Cost cost;
  kernel.getBody().walk([&](Operation *op) {
    auto runs = static_cast<double>(Runs(op, kernel).count);
    auto generic = dyn_cast<linalg::GenericOp>(op->getParentOp());
    if (generic)
      runs *= static_cast<double>(iterationVolume(generic));
    if (auto dot = dyn_cast<linalg::GenericOp>(op); dot && isDot(dot))
      cost.dotFlops += runs * 2 * static_cast<double>(iterationVolume(dot));
    if (isFlop(op) && !(generic && isDot(generic)))
      cost.flops += runs;
  });
  cost.flops += cost.dotFlops;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Access access = kernel.getAccess(index);
    cost.bytes += static_cast<double>(byteSize(cast<MemRefType>(type))) *
                  (access == Access::Update ? 2 : 1);
  }
  return cost;
}

CostReport fp8::makeCostReport(ModuleOp module) {
  CostReport report;
  llvm::StringMap<Cost> costs;
  for (auto kernel : module.getOps<KernelOp>())
    costs[kernel.getSymName()] = costOf(kernel);
  for (auto schedule : module.getOps<ScheduleOp>())
    schedule.walk([&](LaunchOp launch) {
      Runs runs(launch, schedule);
      LaunchCost each;
      each.number = static_cast<int64_t>(launch.getNumber().value_or(0));
      each.label = launch.getLabel().value_or("").str();
      each.cost = costs.lookup(launch.getKernel());
      if (runs.isExact)
        each.runs = runs.count;
      report.launches.push_back(std::move(each));
    });
  llvm::sort(report.launches, [](const LaunchCost &a, const LaunchCost &b) {
    return a.number < b.number;
  });
  return report;
}

Cost CostReport::total() const {
  Cost total;
  for (const LaunchCost &launch : launches)
    total.add(launch.cost, launch.runs.value_or(1));
  return total;
}

bool CostReport::isExact() const {
  return llvm::all_of(launches, [](const LaunchCost &launch) {
    return launch.runs.has_value();
  });
}

void CostReport::printJSON(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  auto print = [&](const Cost &cost) {
    json.attribute("flops", static_cast<int64_t>(cost.flops));
    json.attribute("dot_flops", static_cast<int64_t>(cost.dotFlops));
    json.attribute("bytes", static_cast<int64_t>(cost.bytes));
  };
  json.object([&] {
    print(total());
    json.attribute("exact", isExact());
    json.attributeArray("launches", [&] {
      for (const LaunchCost &launch : launches)
        json.object([&] {
          json.attribute("launch", launch.number);
          json.attribute("name", launch.label);
          json.attribute("runs", launch.runs ? llvm::json::Value(*launch.runs)
                                             : llvm::json::Value(nullptr));
          print(launch.cost);
        });
    });
  });
  os << "\n";
}

namespace {
struct ReportCost : public mlir::fp8::impl::ReportCostBase<ReportCost> {
  void runOnOperation() override {
    makeCostReport(getOperation()).printJSON(llvm::outs());
    markAllAnalysesPreserved();
  }
};
} // namespace
