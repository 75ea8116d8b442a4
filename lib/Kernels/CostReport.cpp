//===- CostReport.cpp - Arithmetic and traffic of launches ----------------===//

#include "fp8/Kernels/CostReport.h"

#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/CostModel.h"
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
  for (auto [own, added] : llvm::zip(dotFlopsByType, other.dotFlopsByType))
    own += times * added;
  operations += times * other.operations;
  bytes += times * other.bytes;
  return *this;
}

/// Returns the static trip count of `loop`.
static std::optional<int64_t> tripCount(scf::ForOp loop) {
  std::optional<llvm::APInt> count = loop.getStaticTripCount();
  return count ? std::optional<int64_t>(count->getSExtValue()) : std::nullopt;
}

namespace {
/// How often an op runs per run of its ancestor `top`. A loop or branch that
/// depends on data counts as once; `isExact` is then false.
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

/// The additions that take as long as a math function, quotient or root, and as
/// a cast to or from f8.
static constexpr double kFunctionOperations = 16, kCastOperations = 8;

static double operationsOf(Operation *op) {
  Dialect *dialect = op->getDialect();
  if (isa<math::AbsFOp, math::CopySignOp, math::FmaOp>(op))
    return 1;
  if (isa<math::MathDialect>(dialect) || isa<arith::DivFOp, arith::RemFOp>(op))
    return kFunctionOperations;
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return llvm::any_of(std::array{op->getOperand(0).getType(),
                                   op->getResult(0).getType()},
                        [](Type type) { return type.isFloat(8); })
               ? kCastOperations
               : 1;
  return isa<arith::ArithDialect>(dialect) && !isa<arith::ConstantOp>(op);
}

/// Returns the class of the operands' wider type: f8 (0), 16 bits (1), or more
/// (2).
static unsigned typeOfDot(linalg::GenericOp dot) {
  unsigned bits = 0;
  for (unsigned i = 0; i < 2; ++i)
    bits = std::max(bits, cast<ShapedType>(dot.getDpsInputs()[i].getType())
                              .getElementTypeBitWidth());
  return bits <= 8 ? 0 : bits <= 16 ? 1 : 2;
}

static Cost costOf(KernelOp kernel) {
  Cost cost;
  kernel.getBody().walk([&](Operation *op) {
    auto runs = static_cast<double>(Runs(op, kernel).count);
    auto generic = dyn_cast<linalg::GenericOp>(op->getParentOp());
    if (generic)
      runs *= static_cast<double>(iterationVolume(generic));
    if (auto dot = dyn_cast<linalg::GenericOp>(op); dot && isDot(dot)) {
      double flops = runs * 2 * static_cast<double>(iterationVolume(dot));
      cost.dotFlops += flops;
      cost.dotFlopsByType[typeOfDot(dot)] += flops;
    }
    if (generic && isDot(generic))
      return;
    if (isFlop(op))
      cost.flops += runs;
    cost.operations += runs * operationsOf(op);
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
      each.cost.add(costs.lookup(launch.getKernel()), launch.getNumSets());
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
    json.attribute("dot_flops_f32",
                   static_cast<int64_t>(cost.dotFlopsByType[2]));
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
  using Base::Base;

  void runOnOperation() override {
    if (ranks < 1 || (card.empty() && (ranks > 1 || !limits.empty()))) {
      getOperation().emitError()
          << "expected ranks > 0, and a card for ranks and limits, but got "
          << "card='" << card.getValue() << "' and ranks=" << ranks.getValue();
      return signalPassFailure();
    }
    CostReport report = makeCostReport(getOperation());
    markAllAnalysesPreserved();
    if (card.empty())
      return report.printJSON(llvm::outs());
    if (llvm::Error error = predictStep(report)) {
      getOperation().emitError(llvm::toString(std::move(error)));
      signalPassFailure();
    }
  }

  llvm::Error predictStep(const CostReport &report) {
    llvm::Expected<Machine> machine = machineOf(card, limits);
    if (!machine)
      return machine.takeError();
    llvm::Expected<Network> joined = networkOf(network, ranks);
    if (!joined)
      return joined.takeError();
    PredictedStep step = predict(report, *machine);
    if (ranks > 1) {
      DenseMap<int64_t, double> seconds;
      for (const PredictedLaunch &launch : step.launches)
        seconds[launch.launch->number] = launch.seconds;
      step.communication =
          predictCommunication(getOperation(), *joined, [&](LaunchOp launch) {
            return seconds.lookup(
                static_cast<int64_t>(launch.getNumber().value_or(0)));
          });
    }
    asJSON ? step.printJSON(llvm::outs()) : step.printTable(llvm::outs());
    return llvm::Error::success();
  }
};
} // namespace
