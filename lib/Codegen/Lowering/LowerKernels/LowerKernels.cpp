//===- LowerKernels.cpp - Lowering of kernels to tasks --------------------===//

#include "Booleans.h"
#include "TaskLowering.h"

#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERKERNELS
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Returns the scalars that no store of the kernel changes: those that it
/// reads, unless a launch may update them in place, which takes a result of
/// their size.
static SmallVector<unsigned> unchangedScalars(KernelOp kernel) {
  SmallVector<unsigned> scalars;
  llvm::SmallDenseSet<int64_t> written;
  for (auto [i, argument] : llvm::enumerate(kernel.getArguments())) {
    auto type = cast<MemRefType>(argument.getType());
    if (kernel.getAccess(i) != Access::Read)
      written.insert(byteSize(type));
    else if (type.getRank() == 0)
      scalars.push_back(i);
  }
  llvm::erase_if(scalars, [&](unsigned i) {
    return written.contains(
        byteSize(cast<MemRefType>(kernel.getArgument(i).getType())));
  });
  return scalars;
}

/// Moves the kernel into a function, into which its tasks are emitted.
static func::FuncOp toFunction(KernelOp kernel) {
  OpBuilder builder(kernel);
  func::FuncOp func = moveToFunction(builder, kernel, kernel.getSymName());
  func.setPrivate();
  kernel.erase();
  return func;
}

namespace {

class LowerKernels : public fp8::impl::LowerKernelsBase<LowerKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<CPUTargetAttr> attr = targetOf(module);
    if (failed(attr))
      return signalPassFailure();
    if (module.getOps<KernelOp>().empty() &&
        module.getOps<ScheduleOp>().empty()) {
      module.emitError("expected kernels and a schedule but got none; run "
                       "fp8-kernels first");
      return signalPassFailure();
    }
    TargetInfo target = TargetInfo::of(*attr);
    for (auto schedule : module.getOps<ScheduleOp>())
      storeBooleansAsBytes(schedule);
    storeBooleansAsBytes(module);
    for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
      if (failed(lower(kernel, target)))
        return signalPassFailure();
  }

private:
  /// Returns whether a tile needs no more than `count` keys, and can run over
  /// that many.
  static bool covers(KernelOp kernel, const KeyBand &band,
                     ArrayRef<int64_t> tile, int64_t count) {
    if (band.keyLoop || count >= band.numKeys)
      return count == band.numKeys && (band.keyLoop || count >= kKeyStep);
    return count % kKeyStep == 0 && windowOf(kernel, band, tile) <= count;
  }

  static LogicalResult lower(KernelOp kernel, const TargetInfo &target) {
    auto plan = dyn_cast_or_null<CPUPlanAttr>(kernel.getPlanAttr());
    if (kernel.isExternal() || !plan)
      return kernel.emitOpError(
          "expected a body and a plan: run --fp8-plan-tiles first");
    if (failed(verifyBody(kernel)))
      return failure();
    SmallVector<int64_t> domain(kernel.getDomain());
    std::optional<int64_t> block = kernel.getBlock();
    SmallVector<int64_t> tile(plan.getTile());
    std::optional<int64_t> keys = plan.getKeys();
    std::optional<KeyBand> band;
    if (keys) {
      band =
          KeyBand::find(kernel.getBody().front(), KeyBand::Checks::WholeRows);
      if (!band || !covers(kernel, *band, tile, *keys))
        return kernel.emitOpError("expected a plan with keys to be that of an "
                                  "attention with a causal mask or a window, "
                                  "and its keys to be all, or a multiple of ")
               << kKeyStep << " that covers the window";
    }
    unsigned numArguments = kernel.getNumArguments();
    SmallVector<unsigned> unchanged = unchangedScalars(kernel);
    func::FuncOp func = toFunction(kernel);
    TaskLowering lowering(func, domain, tile, block, target);
    if (band)
      lowering.setKeyCounts(*band, *keys);
    if (failed(lowering.run()))
      return failure();
    // LLVM may load them before loops then, and compute there what follows from
    // them: the key of random numbers, for example. The task and its scratch
    // have become the first arguments.
    unsigned inserted = func.getNumArguments() - numArguments;
    for (unsigned argument : unchanged)
      func.setArgAttr(inserted + argument,
                      LLVM::LLVMDialect::getNoAliasAttrName(),
                      UnitAttr::get(func.getContext()));
    return success();
  }
};

} // namespace
