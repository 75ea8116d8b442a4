//===- PlanMemory.cpp - Planning of the arena -----------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/MemoryReport.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"
#include "fp8/Support/FirstFit.h"
#include "fp8/Support/OutputFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_PLANMEMORY
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The positions of all ops of a schedule in program order, nested ones
/// included.
class Positions {
public:
  explicit Positions(ScheduleOp schedule) {
    schedule.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { begin[op] = next++; });
    schedule.walk([&](Operation *op) {
      unsigned &last = end[op] = begin[op];
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (!block.empty())
            last = std::max(last, end.lookup(&block.back()));
    });
  }

  /// Returns the live interval: from the first to the last op that uses the
  /// buffer or a view of it. A loop between the two uses it from beginning to
  /// end: every iteration sees what the previous one has left.
  PlannedBuffer liveInterval(memref::AllocOp alloc) const {
    PlannedBuffer buffer;
    buffer.alloc = alloc;
    buffer.bytes = byteSize(alloc.getType());
    buffer.begin = ~0u;
    SmallVector<Value> views{alloc.getResult()};
    while (!views.empty())
      for (Operation *user : views.pop_back_val().getUsers()) {
        if (isa<ViewLikeOpInterface>(user)) {
          views.push_back(user->getResult(0));
          continue;
        }
        Operation *use = alloc->getBlock()->findAncestorOpInBlock(*user);
        // Branches are not loops: only the ops in them count that use the
        // buffer.
        while (use != user && !isa<LoopLikeOpInterface>(use))
          use = innerOf(use, user);
        buffer.begin = std::min(buffer.begin, begin.lookup(use));
        buffer.end = std::max(buffer.end, end.lookup(use));
      }
    return buffer;
  }

  unsigned of(Operation *op) const { return begin.lookup(op); }

private:
  /// Returns the op that contains `inner`, or is it, one region below `op`.
  static Operation *innerOf(Operation *op, Operation *inner) {
    while (inner->getParentOp() != op)
      inner = inner->getParentOp();
    return inner;
  }

  unsigned next = 0;
  DenseMap<Operation *, unsigned> begin, end;
};

/// Places the largest buffers first, each at the lowest offset that is free
/// during its interval. Returns the size of the arena.
int64_t pack(MutableArrayRef<PlannedBuffer> buffers) {
  SmallVector<PlannedBuffer *> order;
  for (PlannedBuffer &buffer : buffers)
    order.push_back(&buffer);
  llvm::sort(order, [](PlannedBuffer *a, PlannedBuffer *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });
  FirstFit arena(kArenaAlignment);
  for (PlannedBuffer *buffer : order)
    buffer->offset = arena.place({buffer->begin, buffer->end}, buffer->bytes);
  return llvm::alignTo(arena.size(), kArenaAlignment);
}

class PlanMemory : public fp8::impl::PlanMemoryBase<PlanMemory> {
public:
  using PlanMemoryBase::PlanMemoryBase;
  PlanMemory(PlanMemoryOptions options, MemoryReport *sink)
      : PlanMemoryBase(std::move(options)), sink(sink) {}

  LogicalResult initialize(MLIRContext *context) override {
    if (report.empty() && !sink && (printBuffers || !budget.empty()))
      return emitError(UnknownLoc::get(context))
             << "expected report=FILE with budget or report-buffers";
    if (budget.empty())
      return success();
    std::optional<double> bytes = parseBytes(budget);
    if (!bytes)
      return emitError(UnknownLoc::get(context))
             << "expected a budget as 80GB, 512MiB or 4096 but got '" << budget
             << "'";
    budgetBytes = *bytes;
    return success();
  }

  void runOnOperation() override {
    for (auto schedule : getOperation().getOps<ScheduleOp>()) {
      if (failed(plan(schedule)))
        return signalPassFailure();
      int64_t number = 0;
      schedule.walk([&](Operation *op) {
        if (auto launch = dyn_cast<LaunchOp>(op))
          launch.setNumber(number++);
        else if (auto start = dyn_cast<StartAllReduceOp>(op))
          start.setNumber(number++);
        else if (auto start = dyn_cast<StartExchangeOp>(op))
          start.setNumber(number++);
      });
    }
    Builder builder(&getContext());
    int64_t number = 0;
    for (auto global : getOperation().getOps<memref::GlobalOp>())
      global->setAttr(FP8Dialect::kNumberAttrName,
                      builder.getI64IntegerAttr(number++));
  }

private:
  LogicalResult plan(ScheduleOp schedule) {
    Block &entry = schedule.getBody().front();
    Positions positions(schedule);
    std::vector<PlannedBuffer> buffers;
    schedule.walk([&](memref::AllocOp alloc) {
      if (alloc->use_empty())
        alloc.erase();
      else
        buffers.push_back(positions.liveInterval(alloc));
    });
    int64_t total = pack(buffers);
    if (sink || !report.empty()) {
      MemoryReport memory =
          makeMemoryReport(schedule, buffers, total,
                           [&](Operation *op) { return positions.of(op); });
      if (!report.empty() && failed(write(memory, schedule.getLoc())))
        return failure();
      if (sink)
        *sink = std::move(memory);
    }

    OpBuilder builder(&entry, entry.begin());
    auto arenaType = MemRefType::get({total}, builder.getI8Type());
    (void)schedule.insertArgument(0, arenaType, DictionaryAttr(),
                                  schedule.getLoc());
    schedule.setArenaBytes(total);
    for (PlannedBuffer &buffer : buffers) {
      auto alloc = buffer.alloc.getDefiningOp<memref::AllocOp>();
      if (printPlan)
        llvm::errs() << "arena " << buffer.offset << " + " << buffer.bytes
                     << " live [" << buffer.begin << ", " << buffer.end << "] "
                     << alloc.getType() << "\n";
      builder.setInsertionPoint(alloc);
      Value offset = arith::ConstantIndexOp::create(builder, alloc.getLoc(),
                                                    buffer.offset);
      Value view =
          memref::ViewOp::create(builder, alloc.getLoc(), alloc.getType(),
                                 entry.getArgument(0), offset, ValueRange{});
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
    return success();
  }

  LogicalResult write(const MemoryReport &memory, Location loc) {
    llvm::Error error = writeFile(report, [&](raw_ostream &os) {
      if (StringRef(report).ends_with(".json"))
        memory.printJSON(os, budgetBytes);
      else
        memory.print(os, budgetBytes);
      if (printBuffers)
        memory.printBuffers(os);
    });
    if (error)
      return emitError(loc) << llvm::toString(std::move(error));
    return success();
  }

  MemoryReport *sink = nullptr;
  double budgetBytes = 0;
};

} // namespace

std::unique_ptr<Pass> fp8::createPlanMemoryPass(PlanMemoryOptions options,
                                                MemoryReport *sink) {
  return std::make_unique<PlanMemory>(std::move(options), sink);
}
