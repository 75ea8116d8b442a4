//===- ElideCopies.cpp - Removal of copies --------------------------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_ELIDECOPIES
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Returns true if argument `read` of a kernel may share its buffer with
/// `written`: every read must be of the element that the same iteration writes,
/// and precede the write.
bool safeInPlace(KernelOp kernel, unsigned read, unsigned written) {
  BlockArgument source = kernel.getArgument(read);
  BlockArgument target = kernel.getArgument(written);
  linalg::GenericOp writer;
  for (OpOperand &use : target.getUses()) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic)
      return false;
    // Later ops read the new contents.
    if (generic.isDpsInput(&use))
      continue;
    if (writer || !allParallel(generic))
      return false;
    writer = generic;
  }
  if (!writer)
    return false;
  AffineMap write = writer.getMatchingIndexingMap(&writer->getOpOperand(
      llvm::find(writer->getOperands(), target).getIndex()));
  if (!write.isPermutation())
    return false;
  return llvm::all_of(source.getUses(), [&](OpOperand &use) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    return generic && generic->getBlock() == writer->getBlock() &&
           (generic == writer || generic->isBeforeInBlock(writer)) &&
           generic.isDpsInput(&use) &&
           generic.getMatchingIndexingMap(&use) == write &&
           generic.getStaticLoopRanges() == writer.getStaticLoopRanges() &&
           generic->getAttr(FP8Dialect::kTaskDimsAttrName) ==
               writer->getAttr(FP8Dialect::kTaskDimsAttrName);
  });
}

/// An operand through which an op of the schedule accesses a buffer.
struct OperandAccess {
  OpOperand *operand;
  bool writes;
  Operation *op() const { return operand->getOwner(); }
};

/// Returns true if `second` can run after `first` in one run of `scope`, which
/// holds both.
bool mayFollow(Operation *first, Operation *second, Block *scope) {
  Operation *a = scope->findAncestorOpInBlock(*first);
  Operation *b = scope->findAncestorOpInBlock(*second);
  if (a != b)
    return a->isBeforeInBlock(b);
  if (a == first || a == second)
    return false;
  if (isa<LoopLikeOpInterface>(a))
    return true;
  Region *ra = nullptr, *rb = nullptr;
  for (Region &region : a->getRegions()) {
    if (region.isAncestor(first->getParentRegion()))
      ra = &region;
    if (region.isAncestor(second->getParentRegion()))
      rb = &region;
  }
  return ra == rb && mayFollow(first, second, &ra->front());
}

/// Returns true if `op` runs at most once in one run of `scope`. In its second
/// iteration a loop reads what its first one wrote.
bool runsOnce(Operation *op, Block *scope) {
  for (Operation *parent = op->getParentOp(); parent != scope->getParentOp();
       parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      return false;
  return true;
}

class CopyElision {
public:
  explicit CopyElision(ScheduleOp schedule)
      : schedule(schedule), symbols(schedule->getParentOfType<ModuleOp>()) {}

  unsigned run();

private:
  bool elide(LaunchOp copy);
  bool mayShare(LaunchOp copy, memref::AllocOp alloc, Value target);
  bool safeInOneLaunch(const OperandAccess &read, Value from,
                       const OperandAccess &write, Value to);
  bool hoist(Value value, Operation *before, bool move);
  SmallVector<OperandAccess> accessesTo(Value root, Block *scope);
  KernelOp kernelOf(LaunchOp launch) {
    return symbols.lookup<KernelOp>(launch.getKernel());
  }

  ScheduleOp schedule;
  SymbolTable symbols;
};

/// Returns all accesses below `scope` to `root` or a view of it.
SmallVector<OperandAccess> CopyElision::accessesTo(Value root, Block *scope) {
  SmallVector<OperandAccess> accesses;
  SmallVector<Value> views{root};
  while (!views.empty())
    for (OpOperand &use : views.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<ViewLikeOpInterface>(user)) {
        views.push_back(user->getResult(0));
        continue;
      }
      if (!scope->findAncestorOpInBlock(*user))
        continue;
      accesses.push_back({&use, mayWrite(use)});
    }
  return accesses;
}

/// Returns true if one launch may read `from` and write `to` though both are
/// the same memory.
bool CopyElision::safeInOneLaunch(const OperandAccess &read, Value from,
                                  const OperandAccess &write, Value to) {
  auto launch = dyn_cast<LaunchOp>(write.op());
  return launch && read.operand->get() == from && write.operand->get() == to &&
         safeInPlace(kernelOf(launch), read.operand->getOperandNumber(),
                     write.operand->getOperandNumber());
}

/// Returns true if the contents of `alloc` may live in `target` from their
/// first write on, so that `copy` from `alloc` to `target` is not needed.
bool CopyElision::mayShare(LaunchOp copy, memref::AllocOp alloc, Value target) {
  Block *scope = copy->getBlock();
  SmallVector<OperandAccess> ours = accessesTo(alloc, scope);
  SmallVector<OperandAccess> theirs = accessesTo(memoryOf(target), scope);
  for (const OperandAccess &write : ours) {
    if (!write.writes)
      continue;
    // A write to the allocation after the copy would change the target.
    if (mayFollow(copy, write.op(), scope))
      return false;
    for (const OperandAccess &access : theirs) {
      if (access.op() == copy)
        continue;
      if (access.op() == write.op()) {
        if (!runsOnce(write.op(), scope) || access.writes ||
            !safeInOneLaunch(access, target, write, alloc))
          return false;
        continue;
      }
      if (!mayFollow(write.op(), access.op(), scope))
        continue;
      if (!mayFollow(copy, access.op(), scope))
        return false;
      // After the copy both hold the same contents until the target is written,
      // perhaps by the op that still reads the allocation.
      if (access.writes && llvm::any_of(ours, [&](const OperandAccess &later) {
            return later.op() == access.op()
                       ? !runsOnce(access.op(), scope) ||
                             !safeInOneLaunch(later, alloc, access, target)
                       : mayFollow(access.op(), later.op(), scope);
          }))
        return false;
    }
  }
  return true;
}

/// Makes `value` available before `before`, an op of the same block, if its
/// computation can move there. Returns whether it can; moves nothing unless
/// `move`.
bool CopyElision::hoist(Value value, Operation *before, bool move) {
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != before->getBlock() ||
      def->isBeforeInBlock(before))
    return true;
  if (!isa<ViewLikeOpInterface>(def) && !isa<memref::AllocOp>(def) &&
      !isa<arith::ArithDialect>(def->getDialect()))
    return false;
  for (Value operand : def->getOperands())
    if (!hoist(operand, before, move))
      return false;
  if (move)
    def->moveBefore(before);
  return true;
}

bool CopyElision::elide(LaunchOp copy) {
  Value source = copy.getOperand(0), target = copy.getOperand(1);
  if (source == target) {
    copy.erase();
    return true;
  }
  auto alloc = source.getDefiningOp<memref::AllocOp>();
  if (!alloc || alloc->getBlock() != copy->getBlock() ||
      alloc == memoryOf(target).getDefiningOp() ||
      !hoist(target, alloc, false) || !mayShare(copy, alloc, target))
    return false;
  hoist(target, alloc, true);
  alloc.getResult().replaceAllUsesWith(target);
  alloc.erase();
  copy.erase();
  return true;
}

unsigned CopyElision::run() {
  SmallVector<LaunchOp> copies;
  schedule.walk([&](LaunchOp launch) {
    if (kernelOf(launch).getCopy())
      copies.push_back(launch);
  });
  // Eliding a copy may turn another one into a copy of a buffer to itself.
  unsigned elided = 0;
  for (bool changed = true; changed;) {
    changed = false;
    llvm::erase_if(copies, [&](LaunchOp copy) {
      bool gone = elide(copy);
      changed |= gone;
      elided += gone;
      return gone;
    });
  }
  return elided;
}

/// Returns the shard of the state that `buffer` belongs to.
IntegerAttr shardOf(Value buffer) {
  auto arg = dyn_cast<BlockArgument>(memoryOf(buffer));
  auto schedule =
      arg ? dyn_cast<ScheduleOp>(arg.getOwner()->getParentOp()) : ScheduleOp();
  return schedule ? schedule.getArgAttrOfType<IntegerAttr>(
                        arg.getArgNumber(), FP8Dialect::kShardAttrName)
                  : IntegerAttr();
}

/// Returns the number of slices of each shard that has several, by the number
/// of the shard.
llvm::DenseMap<int64_t, int64_t> slicesOf(ScheduleOp schedule) {
  llvm::DenseMap<int64_t, int64_t> slices;
  for (unsigned i = 0; i < schedule.getNumArguments(); ++i)
    if (auto count = schedule.getArgAttrOfType<IntegerAttr>(
            i, FP8Dialect::kSlicesAttrName))
      slices[schedule
                 .getArgAttrOfType<IntegerAttr>(i, FP8Dialect::kShardAttrName)
                 .getInt()] = count.getInt();
  return slices;
}

/// Marks kernels that owners launch for their slices with the number of slices
/// into which they divide.
void divideKernels(ScheduleOp schedule, const SymbolTable &symbols) {
  llvm::DenseMap<int64_t, int64_t> slices = slicesOf(schedule);
  schedule.walk([&](LaunchOp launch) {
    auto shard = launch->getAttrOfType<IntegerAttr>(FP8Dialect::kShardAttrName);
    int64_t count = shard ? slices.lookup(shard.getInt()) : 0;
    auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
    if (count == 0 || kernel.getDomain().empty())
      return;
    auto known =
        kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kSlicesAttrName);
    int64_t all = known ? std::lcm(known.getInt(), count) : count;
    kernel->setAttr(FP8Dialect::kSlicesAttrName,
                    Builder(kernel.getContext()).getI64IntegerAttr(all));
  });
}

/// Marks launches that owners alone run: copies that access the state of one
/// shard, and other launches that write only to it. Launches other than copies
/// that write to a shard with slices may not divide into these, so all ranks
/// run them.
void markOwners(ScheduleOp schedule, const SymbolTable &symbols) {
  llvm::DenseMap<int64_t, int64_t> slices = slicesOf(schedule);
  schedule.walk([&](LaunchOp launch) {
    if (launch->hasAttr(FP8Dialect::kShardAttrName))
      return;
    bool isCopy = symbols.lookup<KernelOp>(launch.getKernel()).getCopy();
    IntegerAttr shard;
    bool isOne = true;
    for (OpOperand &operand : launch->getOpOperands()) {
      bool writes =
          launch.getAccess(operand.getOperandNumber()) != fp8::Access::Read;
      IntegerAttr own = shardOf(operand.get());
      if (!own && (!writes || isCopy))
        continue;
      isOne &= own && (!shard || shard == own);
      shard = own;
    }
    if (isOne && shard && (isCopy || !slices.contains(shard.getInt())))
      launch->setAttr(FP8Dialect::kShardAttrName, shard);
  });
}

class ElideCopies : public fp8::impl::ElideCopiesBase<ElideCopies> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(verifyLaunches(module)))
      return signalPassFailure();
    for (auto schedule : module.getOps<ScheduleOp>())
      numElided += CopyElision(schedule).run();
    SymbolTable symbols(module);
    for (auto schedule : module.getOps<ScheduleOp>()) {
      markOwners(schedule, symbols);
      divideKernels(schedule, symbols);
    }
    // Kernels of elided copies may be unused now.
    DenseSet<StringAttr> launched;
    module.walk([&](LaunchOp launch) {
      launched.insert(launch.getKernelAttr().getAttr());
    });
    for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
      if (kernel.getCopy() && !launched.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }
};

} // namespace
