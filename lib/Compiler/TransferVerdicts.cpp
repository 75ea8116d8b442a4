//===- TransferVerdicts.cpp - Verdicts on transfers of shards -------------===//

#include "TransferVerdicts.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Locations.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::fp8;

/// Notes that a gradient goes one way, to its owner. Its row was written before
/// the state was dealt.
static void noteOwner(StartAllReduceOp start, VerdictReport &report,
                      llvm::DenseSet<CollectiveVerdict *> &noted) {
  std::string location = describeLocation(start.getLoc());
  for (CollectiveVerdict &row : report.collectives)
    if (row.what == start.getLabel().value_or("") && row.location == location &&
        noted.insert(&row).second) {
      row.bytes /= 2;
      row.reason += "; to the owner of its shard alone";
      return;
    }
}

static void readLoops(Operation *op, CollectiveVerdict &row) {
  for (Operation *parent = op->getParentOp(); !isa<ScheduleOp>(parent);
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      std::optional<APInt> trips = loop.getStaticTripCount();
      row.loops.push_back(trips ? trips->getSExtValue() : 0);
    } else if (isa<scf::WhileOp>(parent)) {
      row.loops.push_back(0);
    } else {
      row.inBranch = true;
    }
}

static CollectiveVerdict verdictOfOwner(StartAllReduceOp start) {
  MemRefType type = start.getInput().getType();
  CollectiveVerdict row;
  row.function = start->getParentOfType<ScheduleOp>().getSymName().str();
  row.what = start.getLabel().value_or("").str();
  row.operation = stringifyReduction(start.getReduction()).str();
  row.shape = llvm::to_vector(type.getShape());
  llvm::raw_string_ostream(row.from) << type.getElementType();
  row.wire = row.from;
  row.bytes = byteSize(type);
  readLoops(start, row);
  row.reason = type.getElementType().isFloat(8)
                   ? "computed by the owner of its shard; every reader takes "
                     "this payload"
                   : "computed by the owner of its shard; other ranks read it "
                     "unchanged";
  row.location = describeLocation(start.getLoc());
  return row;
}

void fp8::addTransferVerdicts(ModuleOp module, VerdictReport &report) {
  llvm::DenseSet<CollectiveVerdict *> noted;
  std::vector<CollectiveVerdict> owners;
  module.walk([&](StartAllReduceOp start) {
    if (start.getReduction() == Reduction::Owner)
      owners.push_back(verdictOfOwner(start));
    else if (start.getShard())
      noteOwner(start, report, noted);
  });
  llvm::append_range(report.collectives, owners);
}
