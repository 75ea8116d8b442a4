//===- VerifyScheduled.cpp - Contract of the kernels stage ----------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYSCHEDULED
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Checks that the tasks of a launch for `slices` slices divide evenly among
/// them. A copy of one task need not divide.
LogicalResult verifySlices(LaunchOp launch, int64_t slices) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      launch, launch.getKernelAttr());
  if (!kernel || (kernel.getCopy() && kernel.getDomain().empty()))
    return success();
  auto parts = kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kSlicesAttrName);
  if (parts && parts.getInt() % slices == 0 && !kernel.getDomain().empty() &&
      kernel.getDomain()[0] % parts.getInt() == 0)
    return success();
  return launch.emitOpError("expected a kernel that divides into ")
         << slices << " slices along its leading dimension";
}

/// Checks that state of one rank is only accessed by launches of that rank, and
/// state in slices only by kernels that divide into these.
LogicalResult verifyShard(LaunchOp launch) {
  auto shard = launch->getAttrOfType<IntegerAttr>(FP8Dialect::kShardAttrName);
  for (OpOperand &operand : launch->getOpOperands()) {
    auto arg = dyn_cast<BlockArgument>(memoryOf(operand.get()));
    auto schedule =
        arg ? dyn_cast<ScheduleOp>(arg.getOwner()->getParentOp()) : nullptr;
    auto own = schedule ? schedule.getArgAttrOfType<IntegerAttr>(
                              arg.getArgNumber(), FP8Dialect::kShardAttrName)
                        : IntegerAttr();
    bool reads = launch.getAccess(operand.getOperandNumber()) != Access::Write;
    if (own && own != shard && (shard || reads))
      return launch.emitOpError("expected to be run by the owner of shard ")
             << own.getInt() << ", whose state is operand "
             << operand.getOperandNumber();
    auto slices = own ? schedule.getArgAttrOfType<IntegerAttr>(
                            arg.getArgNumber(), FP8Dialect::kSlicesAttrName)
                      : IntegerAttr();
    if (slices && own == shard && failed(verifySlices(launch, slices.getInt())))
      return failure();
  }
  return success();
}

/// Checks that a view with a constant offset lies inside of its source.
LogicalResult verifyView(ViewLikeOpInterface view) {
  std::optional<int64_t> begin = beginOf(view);
  int64_t bytes = byteSize(cast<MemRefType>(view->getResult(0).getType()));
  int64_t available =
      byteSize(cast<MemRefType>(view.getViewSource().getType()));
  if (!begin || (*begin >= 0 && bytes <= available - *begin))
    return success();
  return view->emitOpError("expected a view inside of the ")
         << available << " bytes of its source but got bytes " << *begin
         << " to " << *begin + bytes;
}

/// Bytes of an argument or of a constant that an operand of a launch accesses.
struct MemoryRange {
  Value memory;
  int64_t begin, end;
  unsigned operand, set;
};

/// Returns the bytes that an operand accesses, if they are constant.
std::optional<MemoryRange> rangeOf(LaunchOp launch, OpOperand &operand) {
  Value buffer = operand.get();
  int64_t bytes = byteSize(cast<MemRefType>(buffer.getType())), begin = 0;
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    std::optional<int64_t> offset = beginOf(view);
    if (!offset)
      return std::nullopt;
    begin += *offset;
    buffer = view.getViewSource();
  }
  unsigned number = operand.getOperandNumber();
  return MemoryRange{buffer, begin, begin + bytes, number,
                     launch.getFirstOfSet(number)};
}

/// Checks that no set of operands accesses memory that another set writes. The
/// verifier of the launch compares buffers; here they may be views.
LogicalResult verifySets(LaunchOp launch) {
  if (launch.getNumSets() == 1)
    return success();
  SmallVector<MemoryRange> writes;
  for (OpOperand *destination : launch.getDestinations())
    if (std::optional<MemoryRange> range = rangeOf(launch, *destination))
      writes.push_back(*range);
  for (OpOperand &operand : launch->getOpOperands()) {
    std::optional<MemoryRange> range = rangeOf(launch, operand);
    const auto *writer = llvm::find_if(writes, [&](const MemoryRange &other) {
      return range && other.set != range->set &&
             other.memory == range->memory && other.begin < range->end &&
             range->begin < other.end;
    });
    if (writer != writes.end())
      return launch.emitOpError("expected no set of operands to access what "
                                "another set writes but got operand ")
             << range->operand << " in the memory of operand "
             << writer->operand;
  }
  return success();
}

LogicalResult verifySchedule(ScheduleOp schedule) {
  llvm::SmallBitVector numbers;
  WalkResult result = schedule.walk([&](Operation *op) -> WalkResult {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op);
        view && failed(verifyView(view)))
      return failure();
    if (isa<LaunchOp, StartAllReduceOp, StartExchangeOp>(op)) {
      auto launch = dyn_cast<LaunchOp>(op);
      if (launch && (failed(verifyShard(launch)) || failed(verifySets(launch))))
        return failure();
      std::optional<int64_t> number =
          llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
              .Case<LaunchOp, StartAllReduceOp, StartExchangeOp>(
                  [](auto numbered) { return numbered.getNumber(); })
              .Default([](Operation *) { return std::nullopt; });
      if (!number)
        return op->emitOpError("expected a number");
      if (*number >= static_cast<int64_t>(numbers.size()))
        numbers.resize(*number + 1);
      if (numbers.test(*number))
        return op->emitOpError("expected a number of its own but got ")
               << *number << " again";
      numbers.set(*number);
      return success();
    }
    bool scalar =
        isa<arith::ArithDialect>(op->getDialect()) &&
        llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
    if (scalar ||
        isa<ScheduleOp, ReturnOp, memref::ViewOp, memref::GetGlobalOp,
            memref::ExpandShapeOp, memref::CollapseShapeOp, SubbufferOp,
            CollectivesOp, WaitOp, RankOp, scf::ForOp, scf::WhileOp, scf::IfOp,
            scf::IndexSwitchOp, scf::YieldOp, scf::ConditionOp>(op))
      return success();
    // A condition or a counter.
    if (isa<memref::LoadOp, memref::StoreOp>(op) &&
        cast<MemRefType>(op->getOperand(isa<memref::StoreOp>(op)).getType())
                .getNumElements() == 1)
      return success();
    return op->emitOpError("is not part of a planned schedule: expected "
                           "launches of kernels, collectives, control flow, "
                           "scalars and views of the arena");
  });
  return failure(result.wasInterrupted());
}

LogicalResult verifyKernel(KernelOp kernel) {
  if (failed(verifyBody(kernel)))
    return failure();
  if (kernel.isExternal())
    return success();
  for (BlockArgument arg : kernel.getArguments()) {
    Access declared = kernel.getAccess(arg.getArgNumber()),
           found = accessOf(arg);
    if (declared != found && declared != Access::Update)
      return kernel.emitOpError("expected argument ")
             << arg.getArgNumber() << " to be '" << stringifyAccess(found)
             << "', as the body does, but got '" << stringifyAccess(declared)
             << "'";
  }
  return success();
}

class VerifyScheduled : public fp8::impl::VerifyScheduledBase<VerifyScheduled> {
public:
  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      LogicalResult result = success();
      if (auto kernel = dyn_cast<KernelOp>(op))
        result = verifyKernel(kernel);
      else if (auto schedule = dyn_cast<ScheduleOp>(op))
        result = verifySchedule(schedule);
      else if (!isa<memref::GlobalOp>(op))
        result = op.emitOpError("is not part of the result of stage 4: "
                                "expected schedules, kernels and constants");
      if (failed(result))
        return signalPassFailure();
    }
  }
};

} // namespace
