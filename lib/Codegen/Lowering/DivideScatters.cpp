//===- DivideScatters.cpp - Several tasks for a scatter -------------------===//
//
// A scatter adds rows at places that are data, so its rows are added one after
// another, in one task. But rows of a batch are added to parts of their own,
// and so are the columns of all rows: a loop whose counter is an index of
// everything that is written can be divided. The order in which an element gets
// its terms stays the same.
//
//===----------------------------------------------------------------------===//

#include "LowerKernels/IrregularLoops.h"

#include "fp8/Codegen/Passes.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DIVIDESCATTERS
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Returns the only irregular nest of a kernel, if there are only fills beside
/// it.
static scf::ForOp nestOf(KernelOp kernel) {
  scf::ForOp nest;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && isIrregular(loop) && !nest && loop.getNumResults() == 0)
      nest = loop;
    else if (!isa<linalg::FillOp>(op) && !isPure(&op))
      return nullptr;
  }
  return nest;
}

/// Returns whether iterations of `loop` share nothing that the nest writes:
/// every access to it is in the loop, and along the loop in the same dimension.
static bool isDivisible(scf::ForOp nest, scf::ForOp loop) {
  DenseMap<Value, unsigned> written;
  auto isOfLoop = [&](Operation *access, Value buffer, ValueRange indices) {
    std::optional<unsigned> dim = lowering::dimensionOf(
        loop, indices, cast<MemRefType>(buffer.getType()));
    return loop->isProperAncestor(access) && isa<BlockArgument>(buffer) &&
           dim && written.try_emplace(buffer, *dim).first->second == *dim;
  };
  WalkResult stores = nest->walk([&](memref::StoreOp store) {
    return WalkResult(
        success(isOfLoop(store, store.getMemRef(), store.getIndices())));
  });
  WalkResult loads = nest->walk([&](memref::LoadOp load) {
    return WalkResult(
        success(!written.contains(load.getMemRef()) ||
                isOfLoop(load, load.getMemRef(), load.getIndices())));
  });
  // What is filled besides would be filled by every task.
  bool fillsOthers = llvm::any_of(
      nest->getBlock()->getOps<linalg::FillOp>(), [&](linalg::FillOp fill) {
        return !written.contains(fill.getOutputs()[0]);
      });
  return !written.empty() && !stores.wasInterrupted() &&
         !loads.wasInterrupted() && !fillsOthers;
}

namespace {
struct DivideScatters : fp8::impl::DivideScattersBase<DivideScatters> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // A plan is that of the domain.
    if (kernel.isExternal() || kernel.getPlan() || !kernel.getDomain().empty())
      return;
    scf::ForOp nest = nestOf(kernel);
    if (!nest)
      return;
    for (auto [number, loop] : llvm::enumerate(loopsOfNest(nest))) {
      std::optional<int64_t> count = lowering::tripCountOf(loop);
      if (!count || *count < 2 || loop.getNumResults() > 0 ||
          !isDivisible(nest, loop))
        continue;
      kernel.setDomain({*count});
      nest->setAttr(FP8Dialect::kTaskDimsAttrName,
                    Builder(&getContext())
                        .getDenseI64ArrayAttr({static_cast<int64_t>(number)}));
      ++numDivided;
      return;
    }
  }
};
} // namespace
