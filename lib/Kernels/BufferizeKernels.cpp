//===- BufferizeKernels.cpp - Tensors to buffers, kernel by kernel --------===//

#include "BuildSchedule.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BUFFERIZEKERNELS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// One-shot bufferization of the kernels in a module of their own, and removal
/// of their results, which are destination arguments by construction.
LogicalResult bufferizeKernels(ArrayRef<func::FuncOp> kernels,
                               ModuleOp module) {
  OwningOpRef<ModuleOp> scratch(ModuleOp::create(module.getLoc()));
  for (func::FuncOp kernel : kernels) {
    // Others read what is an input only: a loop that carries it copies it.
    unsigned numInputs = kernel.getNumArguments() - kernel.getNumResults();
    for (unsigned i = 0; i < numInputs; ++i)
      kernel.setArgAttr(i,
                        bufferization::BufferizationDialect::kWritableAttrName,
                        BoolAttr::get(module.getContext(), false));
    kernel->remove();
    scratch->push_back(kernel);
  }
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(
      bufferization::LayoutMapOption::IdentityLayoutMap);
  // Only loops that one task runs carry, so that one task copies.
  options.memCpyFn = [](OpBuilder &b, Location loc, Value from, Value to) {
    linalg::GenericOp copy = linalg::makeMemRefCopyOp(b, loc, from, to);
    copy->setAttr(kTaskDimsAttr, b.getDenseI64ArrayAttr({}));
    return success();
  };
  bufferization::BufferizationState state;
  LogicalResult result = bufferization::runOneShotModuleBufferize(
      scratch->getOperation(), options, state);
  for (func::FuncOp kernel : kernels) {
    kernel->remove();
    module.push_back(kernel);
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      kernel.removeArgAttr(
          i, bufferization::BufferizationDialect::kWritableAttrName);
  }
  if (failed(result))
    return failure();

  // A loop that carries a buffer hands the same one on: canonical loops do not
  // carry it at all.
  RewritePatternSet patterns(module.getContext());
  scf::ForOp::getCanonicalizationPatterns(patterns, module.getContext());
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (func::FuncOp kernel : kernels)
    if (!kernel.getOps<scf::ForOp>().empty())
      if (failed(applyPatternsGreedily(kernel, frozen)))
        return failure();

  for (func::FuncOp kernel : kernels) {
    auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
    unsigned numInputs = kernel.getNumArguments() - ret.getNumOperands();
    for (auto [index, value] : llvm::enumerate(ret.getOperands()))
      if (value != kernel.getArgument(numInputs + index))
        return ret.emitOpError("expected result ")
               << index << " of a kernel to be written in place";
    OpBuilder builder(ret);
    func::ReturnOp::create(builder, ret.getLoc());
    ret.erase();
    kernel.setFunctionType(
        builder.getFunctionType(kernel.getArgumentTypes(), {}));
  }
  return success();
}

class BufferizeKernels
    : public fp8::impl::BufferizeKernelsBase<BufferizeKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> kernels, schedules;
    for (auto func : module.getOps<func::FuncOp>())
      (func->hasAttr(kDomainAttr) ? kernels : schedules).push_back(func);
    if (failed(bufferizeKernels(kernels, module)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (func::FuncOp schedule : schedules)
      if (failed(buildSchedule(schedule, symbols)))
        return signalPassFailure();
  }
};

} // namespace
